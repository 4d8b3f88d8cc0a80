//! Pushing of snapshots to a server, in a thread that no one waits for.

mod buffer;
mod client;

use std::fmt;
use std::sync::mpsc::{Receiver as Inbox, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use buffer::Buffer;
pub(crate) use client::Client;

use crate::snapshot::Snapshot;

/// Snapshots that may wait while a call to the server hangs: a minute of them.
const WAITING_MAX: usize = 60;
/// Longest time that the end of a run waits for what was not yet delivered.
const END_MAX: Duration = Duration::from_secs(5);

/// A secret of the user's; it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    header: String,
    secrets: Vec<String>,
}

impl Credential {
    /// The value of a header, and its parts that nobody may see.
    pub(crate) const fn new(header: String, secrets: Vec<String>) -> Self {
        Self { header, secrets }
    }

    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    /// A text in which the secret is masked.
    pub(crate) fn mask(&self, mut text: String) -> String {
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "***");
        }
        text
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

/// A server that receives metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Receiver {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Its address in messages.
    pub(crate) shown: String,
    /// The address of the calls.
    pub(crate) url: String,
    pub(crate) media_type: &'static str,
    pub(crate) credential: Option<Credential>,
    /// Further headers.
    pub(crate) headers: Vec<(String, Credential)>,
    /// Remedies by status.
    pub(crate) remedies: &'static [(u16, &'static str)],
}

/// Writes snapshots as a server reads them: the bytes, and the number of values in them. Bytes behind each
/// other are one body with the values of all.
pub(crate) type Encode = Box<dyn FnMut(&Snapshot) -> (Vec<u8>, u64) + Send>;

/// Values and their end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Account {
    /// Values that the server took.
    pub(crate) delivered: u64,
    /// Values that it will not have.
    pub(crate) dropped: u64,
    /// Values that wait since a call failed.
    pub(crate) waiting: u64,
    /// Snapshots for which no room was left while a call hung.
    pub(crate) skipped: u64,
    /// Calls that failed.
    pub(crate) failures: u64,
    /// Words for the last failure, with the remedy.
    pub(crate) last_failure: Option<String>,
}

/// A thread that pushes snapshots.
#[derive(Debug)]
pub(crate) struct Pusher {
    /// Words for the server.
    what: String,
    to: SyncSender<Arc<Snapshot>>,
    /// Closed when the thread has ended.
    ended: Inbox<()>,
    account: Arc<Mutex<Account>>,
    /// True once somebody knows that the server lacks something.
    is_known: bool,
}

impl Pusher {
    /// Starts a thread; none if the system gives no thread.
    pub(crate) fn start(receiver: Receiver, encode: Encode) -> Option<Self> {
        let what = format!("{} at {}", receiver.name, receiver.shown);
        Self::with(what, Client::new(receiver), encode)
    }

    fn with(what: String, call: impl Call + 'static, encode: Encode) -> Option<Self> {
        let (to, inbox) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel::<()>(0);
        let account = Arc::new(Mutex::new(Account::default()));
        let mut thread = Thread {
            call: Box::new(call),
            encode,
            buffer: Buffer::default(),
            account: Arc::clone(&account),
        };
        let run = move || {
            let _end = end;
            thread.serve(&inbox);
        };
        let name = thread::Builder::new().name("metrics-push".to_owned());
        name.spawn(run).ok()?;
        Some(Self {
            what,
            to,
            ended,
            account,
            is_known: false,
        })
    }

    /// Passes a snapshot on. Never waits.
    pub(crate) fn push(&self, snapshot: &Arc<Snapshot>) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.to.try_send(Arc::clone(snapshot))
        {
            locked(&self.account).skipped += 1;
        }
    }

    /// Words for what the server does not have until now; none if it has everything.
    pub(crate) fn lack(&mut self) -> Option<String> {
        let lack = lack(&self.what, &locked(&self.account));
        self.is_known |= lack.is_some();
        lack
    }

    /// Waits until all is delivered or given up, for at most some seconds; words for what is not, unless
    /// [`Pusher::lack`] had words already.
    pub(crate) fn end(self) -> Option<String> {
        drop(self.to);
        let is_over =
            self.ended.recv_timeout(END_MAX) != Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        let account = locked(&self.account).clone();
        let lack = match is_over {
            true => lack(&self.what, &account),
            false => Some(format!(
                "{} did not take the last values in time",
                self.what
            )),
        };
        lack.filter(|_| !self.is_known)
    }
}

fn lack(what: &str, account: &Account) -> Option<String> {
    let skipped = match account.skipped {
        0 => String::new(),
        seconds => format!(" and those of {seconds} s"),
    };
    let lacking = account.dropped + account.waiting;
    if lacking + account.skipped == 0 {
        return None;
    }
    let cause = account.last_failure.as_deref().unwrap_or("it was too slow");
    let all = account.delivered + lacking;
    Some(format!(
        "{what} lacks {lacking} of {all} values{skipped}: {cause}"
    ))
}

fn locked(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

/// End of a call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The words, with the remedy.
    pub(crate) why: String,
    /// True if the same body would fail again.
    pub(crate) is_of_body: bool,
}

/// One call to a server.
pub(crate) trait Call: Send {
    /// Delivers a body.
    fn post(&self, body: &[u8]) -> Result<(), Failure>;
}

/// The thread's own state.
struct Thread {
    call: Box<dyn Call>,
    encode: Encode,
    buffer: Buffer,
    account: Arc<Mutex<Account>>,
}

impl Thread {
    /// Delivers what comes, until nothing comes any more; a server that is away is tried again with the next
    /// snapshot.
    fn serve(&mut self, inbox: &Inbox<Arc<Snapshot>>) {
        while let Ok(first) = inbox.recv() {
            for snapshot in std::iter::once(first).chain(inbox.try_iter()) {
                let (bytes, values) = (self.encode)(&snapshot);
                if values > 0 {
                    let dropped = self.buffer.add(bytes, values);
                    locked(&self.account).dropped += dropped;
                }
            }
            self.deliver();
            locked(&self.account).waiting = self.buffer.values();
        }
        // What is still there has had its last chance.
        let mut account = locked(&self.account);
        account.dropped += std::mem::take(&mut account.waiting);
    }

    fn deliver(&mut self) {
        while let Some((body, values)) = self.buffer.batch() {
            let done = self.call.post(&body);
            let mut account = locked(&self.account);
            match done {
                Ok(()) => account.delivered += values,
                Err(failure) => {
                    account.failures += 1;
                    account.last_failure = Some(failure.why);
                    if !failure.is_of_body {
                        return;
                    }
                    account.dropped += values;
                }
            }
            drop(account);
            self.buffer.forget_batch();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver as Out, Sender, channel};

    use super::*;

    /// A server whose answers the test decides, one by one.
    struct Scripted {
        bodies: Sender<Vec<u8>>,
        answers: Mutex<Out<Result<(), Failure>>>,
    }

    impl Call for Scripted {
        fn post(&self, body: &[u8]) -> Result<(), Failure> {
            let _ = self.bodies.send(body.to_vec());
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.recv().unwrap_or(Ok(()))
        }
    }

    fn failure(is_of_body: bool) -> Result<(), Failure> {
        Err(Failure {
            why: "it said no".to_owned(),
            is_of_body,
        })
    }

    struct World {
        pusher: Pusher,
        bodies: Out<Vec<u8>>,
        answer: Sender<Result<(), Failure>>,
    }

    /// A pusher whose snapshots are one byte each: their time.
    fn world() -> World {
        let (bodies, received) = channel();
        let (answer, answers) = channel();
        let call = Scripted {
            bodies,
            answers: Mutex::new(answers),
        };
        let encode: Encode = Box::new(|snapshot| (vec![snapshot.wall_ms as u8], 1));
        let pusher = Pusher::with("it".to_owned(), call, encode).expect("a thread");
        World {
            pusher,
            bodies: received,
            answer,
        }
    }

    fn push(world: &World, wall_ms: u64) {
        let snapshot = Snapshot {
            wall_ms,
            ..Snapshot::default()
        };
        world.pusher.push(&Arc::new(snapshot));
    }

    #[test]
    fn a_server_that_comes_back_gets_what_it_missed() {
        let mut world = world();
        push(&world, 1);
        assert_eq!(world.bodies.recv(), Ok(vec![1]));
        push(&world, 2);
        world.answer.send(failure(false)).expect("it waits");
        assert_eq!(world.bodies.recv(), Ok(vec![1, 2]));
        let lack = world.pusher.lack();
        assert_eq!(lack.as_deref(), Some("it lacks 1 of 1 values: it said no"));
        world.answer.send(Ok(())).expect("it waits");
        assert_eq!(world.pusher.end(), None);
    }

    #[test]
    fn a_body_that_is_refused_is_not_sent_again_and_is_missed() {
        let world = world();
        push(&world, 1);
        assert_eq!(world.bodies.recv(), Ok(vec![1]));
        push(&world, 2);
        world.answer.send(failure(true)).expect("it waits");
        assert_eq!(world.bodies.recv(), Ok(vec![2]));
        world.answer.send(Ok(())).expect("it waits");
        let lack = world.pusher.end();
        assert_eq!(lack.as_deref(), Some("it lacks 1 of 2 values: it said no"));
    }

    #[test]
    fn a_server_that_hangs_holds_nobody_up() {
        let mut world = world();
        push(&world, 0);
        assert_eq!(world.bodies.recv(), Ok(vec![0]));
        let more = WAITING_MAX as u64 + 3;
        (1..=more).for_each(|at| push(&world, at));
        let slow = world.pusher.lack();
        assert_eq!(
            slow.as_deref(),
            Some("it lacks 0 of 0 values and those of 3 s: it was too slow")
        );
        world.answer.send(failure(false)).expect("it waits");
        let all: Vec<u8> = (0..=WAITING_MAX as u8).collect();
        assert_eq!(world.bodies.recv(), Ok(all));
        world.answer.send(failure(false)).expect("it waits");
        let account = Arc::clone(&world.pusher.account);
        assert_eq!(world.pusher.end(), None, "it is known");
        let expected = "it lacks 61 of 61 values and those of 3 s: it said no";
        assert_eq!(lack("it", &locked(&account)).as_deref(), Some(expected));
    }

    #[test]
    fn a_secret_is_masked() {
        let credential = Credential::new(
            "Token t0p".to_owned(),
            vec!["t0p".to_owned(), String::new()],
        );
        assert_eq!(credential.mask("bad t0p, t0p".to_owned()), "bad ***, ***");
        assert_eq!(format!("{credential:?}"), "Credential(***)");
    }
}
