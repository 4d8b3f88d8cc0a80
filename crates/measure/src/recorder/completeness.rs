//! Marks beyond which what is absent at a backend may still come.

use muster_model::DeviceId;

use super::Recorder;

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
