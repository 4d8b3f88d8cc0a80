//! Commands of the REST API that wait for the reply of their device.

use std::sync::Mutex;

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::lock::locked;

/// Commands that wait at the most: one for each of the devices that one process of a generator can have, several
/// times over.
const CALLS_MAX: usize = 100_000;

/// Commands by their numbers.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<FxHashMap<u32, Waiting>>);

#[derive(Debug)]
struct Waiting {
    device: Box<str>,
    reply: oneshot::Sender<Vec<u8>>,
}

impl Calls {
    /// Has a command wait; none if too many do.
    pub(super) fn wait(&self, number: u32, device: &str) -> Option<oneshot::Receiver<Vec<u8>>> {
        let mut calls = locked(&self.0);
        if calls.len() >= CALLS_MAX {
            return None;
        }
        let (reply, replied) = oneshot::channel();
        let device = device.into();
        calls.insert(number, Waiting { device, reply });
        Some(replied)
    }

    /// Takes a reply of a device; one that nobody waits for is forgotten.
    pub(super) fn reply(&self, device: &str, number: u32, payload: &[u8]) {
        let mut calls = locked(&self.0);
        if calls
            .get(&number)
            .is_some_and(|waiting| *waiting.device == *device)
            && let Some(waiting) = calls.remove(&number)
        {
            // Whoever waited may have given up.
            let _ = waiting.reply.send(payload.to_vec());
        }
    }

    /// A command waits no more.
    pub(super) fn forget(&self, number: u32) {
        locked(&self.0).remove(&number);
    }
}
