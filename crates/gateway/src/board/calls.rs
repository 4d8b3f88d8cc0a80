//! Commands of the REST API that wait for the reply of their device.

use std::sync::Mutex;

use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

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
    /// Has a command wait until the call is dropped; none if too many do.
    pub(super) fn wait(&self, number: u32, device: &str) -> Option<Call<'_>> {
        let mut calls = locked(&self.0);
        if calls.len() >= CALLS_MAX {
            return None;
        }
        let (reply, replied) = oneshot::channel();
        let device = device.into();
        calls.insert(number, Waiting { device, reply });
        Some(Call {
            calls: self,
            number,
            replied,
        })
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
}

/// A command that waits, as long as its caller does.
#[derive(Debug)]
pub(super) struct Call<'a> {
    calls: &'a Calls,
    number: u32,
    replied: oneshot::Receiver<Vec<u8>>,
}

impl Call<'_> {
    /// The reply; none if it does not come until then.
    pub(super) async fn reply(mut self, until: Instant) -> Option<Vec<u8>> {
        timeout_at(until, &mut self.replied).await.ok()?.ok()
    }
}

/// A caller that hangs up waits no more either.
impl Drop for Call<'_> {
    fn drop(&mut self) {
        locked(&self.calls.0).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_hangs_up_leaves_nothing() {
        let calls = Calls::default();
        let (first, second) = (calls.wait(1, "a"), calls.wait(2, "a"));
        drop(first);
        assert_eq!(locked(&calls.0).len(), 1);
        calls.reply("b", 2, b"not its own");
        assert_eq!(locked(&calls.0).len(), 1);
        drop(second);
        assert!(locked(&calls.0).is_empty());
    }
}
