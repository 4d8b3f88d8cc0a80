//! The schedule's own count, as the ledger asks for it.

use std::ops::Range;

use muster_model::{DeviceId, Micros, StreamId};

/// Schedules of a run by themselves, independent of what was recorded.
///
/// Instants are on the run's clock (`origin` added). A run that was stopped early counts only
/// what was due before it was stopped.
pub trait Calendar {
    /// Number of messages of the device's stream that came due in warm-up and measured phase; none
    /// for a closed loop, whose due instants follow the answers.
    fn scheduled(&self, stream: StreamId, device: DeviceId) -> Option<u32>;

    /// Number of them that were due before the measured phase; none for a closed loop.
    fn warm_up(&self, stream: StreamId, device: DeviceId) -> Option<u32>;

    /// Instant at which a message was due; none for a closed loop and for numbers beyond the
    /// schedule.
    fn due(&self, stream: StreamId, device: DeviceId, seq: u32) -> Option<Micros>;

    /// Number of messages of the whole stream that the nominal schedule wants before `until`: for
    /// open loops the schedule's own count, for closed loops the reference of `omitted`.
    fn nominal(&self, stream: StreamId, until: Micros) -> u64;

    /// Number of commands of the stream that came due for the device; none where commands follow
    /// queries, and for a stream of anything else.
    fn commands(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        let _ = (stream, device);
        None
    }

    /// The numbers of a device's messages, or of the commands to it, that came due from `from` on
    /// and before `until`; none where the schedule does not determine them.
    fn due_between(
        &self,
        stream: StreamId,
        device: DeviceId,
        from: Micros,
        until: Micros,
    ) -> Option<Range<u32>> {
        let _ = (stream, device, from, until);
        None
    }

    /// Calls `each` for every device that subscribes by a stream of kind `receive` and every
    /// device's stream whose messages it is to get by that: subscriber, sending stream, sender.
    fn audience(&self, stream: StreamId, each: &mut dyn FnMut(DeviceId, StreamId, DeviceId)) {
        let _ = (stream, each);
    }
}
