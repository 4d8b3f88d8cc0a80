//! Marks beyond which what is absent at a backend may still come.

use muster_model::DeviceId;

use super::Recorder;
use crate::Identity;
use crate::copies::Seen;
use crate::set_merge::{len, merge_runs};

impl Recorder {
    /// Remembers how far each stream of each device has come, at `quiet` before the latest
    /// possible end of settling: what is absent at the end and was overtaken before this mark is
    /// lost, what was not may still come.
    pub fn mark_drain(&mut self) {
        self.is_draining = true;
        for backend in &mut self.identity.backends {
            for seen in &mut backend.streams {
                for (_, seen) in seen.iter_mut() {
                    seen.drained = seen.next;
                }
            }
        }
        for (backend, seen) in self.backends.iter().zip(&mut self.identity.backends) {
            for ((stream, slot, _), next) in &backend.orders {
                let seen = seen.streams[usize::from(*stream)].get_mut(*slot);
                seen.drained = seen.drained.min(*next);
            }
        }
        self.identity.mark_drain();
    }

    /// Number of a run's messages, accepted or unacknowledged, of the devices that are read, that the store does not have
    /// so far.
    pub fn absent_at_store(&self, run: &Identity) -> u64 {
        let store = self.identity.backends.get(usize::from(self.plan.timed()));
        let Some((sample, store)) = self.plan.store.zip(store) else {
            return 0;
        };
        let nothing = Seen::default();
        let streams = self
            .plan
            .streams
            .iter()
            .zip(&run.streams)
            .zip(&store.streams);
        let devices = streams.flat_map(|((track, finals), seen)| {
            let is_read = move |slot: &u32| sample.holds(DeviceId(track.first_device.0 + slot));
            (0..track.devices).filter(is_read).filter_map(move |slot| {
                let ended = finals.devices.get(slot)?;
                Some((ended.sets(finals.primary), seen.get(slot)))
            })
        });
        let absent = devices.flat_map(|(sets, seen)| {
            let seen = seen.unwrap_or(&nothing);
            let expected = sets.filter(|(state, _)| state.is_expected());
            expected.flat_map(|(_, set)| merge_runs(set.runs(), seen.arrived.runs()))
        });
        let absent = absent.filter(|stretch| stretch.in_first && !stretch.in_second);
        absent.map(|stretch| len(&stretch.range)).sum()
    }

    /// Records that all was read that the store keeps of a device: what is absent there will not come.
    pub fn all_read(&mut self, device: DeviceId) {
        let stores = usize::from(self.plan.timed())..;
        for store in &mut self.identity.backends[stores] {
            for (track, seen) in self.plan.streams.iter().zip(&mut store.streams) {
                if let Some(slot) = track.slot(device) {
                    seen.get_mut(slot).drained = u32::MAX;
                }
            }
        }
    }
}
