//! Marks beyond which what is absent at a backend may still come.

use std::ops::Range;

use muster_model::{DeviceId, MessageId, StreamId};

use super::Recorder;
use crate::Identity;
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
        let Some(sample) = self.plan.store else {
            return 0;
        };
        let devices = (0..sample.of()).map(DeviceId);
        let devices = devices.filter(|device| sample.holds(*device));
        let absent = devices.flat_map(|device| self.absent_of(run, device));
        absent.map(|(_, seqs)| len(&seqs)).sum()
    }

    /// The messages of a device, accepted or unacknowledged, that the store does not have so far.
    pub fn absent_of<'a>(
        &'a self,
        run: &'a Identity,
        device: DeviceId,
    ) -> impl Iterator<Item = (StreamId, Range<u32>)> + 'a {
        let store = self.identity.backends.get(usize::from(self.plan.timed()));
        let streams = self.plan.streams.iter().zip(&run.streams);
        let streams = store.into_iter().flat_map(move |store| {
            let streams = (0..).map(StreamId).zip(streams.clone());
            streams.zip(&store.streams)
        });
        streams.flat_map(move |((stream, (track, finals)), seen)| {
            let slot = track.slot(device);
            let ended = slot.and_then(|slot| finals.devices.get(slot));
            let seen = slot.and_then(|slot| seen.get(slot));
            let sets = ended.into_iter().flat_map(|it| it.sets(finals.primary));
            let expected = sets.filter(|(state, _)| state.is_expected());
            expected.flat_map(move |(_, set)| {
                let arrived = seen.into_iter().flat_map(|seen| seen.arrived.runs());
                let absent = merge_runs(set.runs(), arrived);
                let absent = absent.filter(|stretch| stretch.in_first && !stretch.in_second);
                absent.map(move |stretch| (stream, stretch.range))
            })
        })
    }

    /// Records that the store holds another message of the device at the instant of an absent one.
    pub fn overwritten(&mut self, id: &MessageId) {
        let store = usize::from(self.plan.timed());
        let track = self.plan.stream(id.stream);
        let slot = track.and_then(|track| track.slot(id.device));
        if let (Some(store), Some(slot)) = (self.identity.backends.get_mut(store), slot) {
            store.streams[id.stream.index()]
                .get_mut(slot)
                .overwrite(id.seq);
        }
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
