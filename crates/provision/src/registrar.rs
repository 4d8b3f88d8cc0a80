//! Registration of devices that the platform refuses, while a run goes on.
//!
//! A device sends or connects first. Where the platform refuses its credentials, the registrar looks whether it
//! has the device and its credentials, and creates what is missing. The device tries again by itself, at its own
//! pace: nothing here delays it, and each refusal until then counts as the failure that it is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use muster_conduct::Refused;
use muster_model::LinkId;
use muster_plan::Plan;

use crate::{Journal, ProvisionError, Provisioner, Summary, Watch};

/// Links that wait to be registered: what an adapter refuses in some seconds. A link for which there is no
/// room comes again, with its next refusal.
const QUEUE_MAX: usize = 10_000;
/// Attempts to register a link: a registry that was busy has a second chance, and one that never takes the link is
/// not asked for ever.
const TRIES_MAX: u8 = 5;
/// Errors that are reported in full; the others are counted.
const ERRORS_MAX: usize = 3;

/// Registers those that are refused, on separate threads.
#[derive(Debug)]
pub struct Registrar {
    queue: Mutex<Option<SyncSender<LinkId>>>,
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// All that came of it.
#[derive(Debug, Default)]
pub struct Registered {
    /// The things that were created, or were there.
    pub summary: Summary,
    /// Refusals that were reported.
    pub refusals: u64,
    /// Links that were refused.
    pub links: u64,
    /// Links that could not be registered.
    pub failed: u64,
    /// The first errors.
    pub errors: Vec<String>,
}

/// Work of the threads, and what came of it.
struct Shared {
    plan: Plan,
    provisioner: Arc<dyn Provisioner>,
    journal: Arc<Journal>,
    /// Links that were queued.
    known: Mutex<BTreeMap<LinkId, Attempts>>,
    registered: Mutex<Registered>,
    refusals: AtomicU64,
    is_over: AtomicBool,
}

/// The attempts to register a link.
#[derive(Debug, Default)]
struct Attempts {
    count: u8,
    /// True if the last one failed; false if it succeeded or is not over.
    has_failed: bool,
}

impl Attempts {
    /// True if a further refusal asks for a further attempt.
    const fn may_be_repeated(&self) -> bool {
        self.has_failed && self.count < TRIES_MAX
    }
}

impl Registrar {
    /// Starts the threads: as many as calls may be under way.
    ///
    /// # Errors
    /// [`ProvisionError::Thread`] if the system gives none.
    pub fn start(
        plan: &Plan,
        provisioner: Arc<dyn Provisioner>,
        journal: Arc<Journal>,
    ) -> Result<Self, ProvisionError> {
        let (queue, inbox) = sync_channel(QUEUE_MAX);
        let pending = plan.provision.as_ref().map_or(1, |it| it.pending.max(1));
        let shared = Arc::new(Shared {
            plan: plan.clone(),
            provisioner,
            journal,
            known: Mutex::default(),
            registered: Mutex::default(),
            refusals: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let inbox = Arc::new(Mutex::new(inbox));
        let mut threads = Vec::new();
        for number in 0..pending {
            let (shared, inbox) = (Arc::clone(&shared), Arc::clone(&inbox));
            let thread = std::thread::Builder::new().name(format!("register-{number}"));
            let thread = thread.spawn(move || shared.work(&inbox));
            match thread {
                Ok(thread) => threads.push(thread),
                // With one thread the work gets done, only more slowly.
                Err(error) if threads.is_empty() => return Err(ProvisionError::Thread(error)),
                Err(_) => break,
            }
        }
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            shared,
            threads: Mutex::new(threads),
        })
    }

    /// Takes note of refusals; never waits.
    pub fn refused(&self, refused: &[Refused]) {
        let shared = &self.shared;
        let count = refused.len() as u64;
        shared.refusals.fetch_add(count, Ordering::Relaxed);
        let queue = locked(&self.queue);
        let Some(queue) = &*queue else { return };
        let mut known = locked(&shared.known);
        for who in refused {
            let link = match who {
                Refused::Link(link) => Some(*link),
                Refused::Device(device) => shared.plan.link_of(*device),
            };
            let is_wanted = |link: &LinkId| known.get(link).is_none_or(Attempts::may_be_repeated);
            if let Some(link) = link.filter(is_wanted)
                && queue.try_send(link).is_ok()
            {
                let attempts = known.entry(link).or_default();
                attempts.count += 1;
                attempts.has_failed = false;
            }
        }
    }

    /// Ends it: what is under way stops before its next call, and what waits is left.
    pub fn end(&self) -> Registered {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(locked(&self.queue).take());
        for thread in locked(&self.threads).drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
        let mut registered = std::mem::take(&mut *locked(&self.shared.registered));
        registered.refusals = self.shared.refusals.load(Ordering::Relaxed);
        let known = locked(&self.shared.known);
        registered.links = known.len() as u64;
        registered.failed = known.values().filter(|it| it.has_failed).count() as u64;
        registered
    }
}

impl Shared {
    fn work(&self, inbox: &Mutex<Receiver<LinkId>>) {
        while !self.is_over()
            && let Ok(link) = next(inbox)
        {
            let done = self
                .provisioner
                .register(&self.plan, link, &self.journal, self);
            let mut registered = locked(&self.registered);
            match done {
                Ok(summary) => registered.summary.add(&summary),
                Err(ProvisionError::Interrupted) => {}
                Err(error) => {
                    if let Some(attempts) = locked(&self.known).get_mut(&link) {
                        attempts.has_failed = true;
                    }
                    if registered.errors.len() < ERRORS_MAX {
                        registered.errors.push(error.to_string());
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("registered", &self.registered)
            .finish_non_exhaustive()
    }
}

impl Watch for Shared {
    fn progress(&self, _done: u64, _of: u64) {}

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The next link; one thread at a time waits for it.
fn next(inbox: &Mutex<Receiver<LinkId>>) -> Result<LinkId, std::sync::mpsc::RecvError> {
    locked(inbox).recv()
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use muster_model::DeviceId;
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    /// Reports each link that it is asked to register, and fails with every second one.
    #[derive(Debug)]
    struct Reporting(Mutex<Sender<LinkId>>);

    impl Provisioner for Reporting {
        fn create(&self, _: &Plan, _: &Journal, _: &dyn Watch) -> Result<Summary, ProvisionError> {
            Err(ProvisionError::NoRegistration)
        }

        fn verify(&self, _: &Plan, _: &dyn Watch) -> Result<Summary, ProvisionError> {
            Err(ProvisionError::NoRegistration)
        }

        fn greet(&self, _: &dyn Watch) -> Result<(), ProvisionError> {
            Err(ProvisionError::NoRegistration)
        }

        fn remove(&self, _: &Journal, _: &dyn Watch) -> Result<Summary, ProvisionError> {
            Err(ProvisionError::NoRegistration)
        }

        fn register(
            &self,
            _: &Plan,
            link: LinkId,
            _: &Journal,
            _: &dyn Watch,
        ) -> Result<Summary, ProvisionError> {
            let _ = locked(&self.0).send(link);
            if link.0 % 2 == 1 {
                return Err(ProvisionError::NoRegistration);
            }
            let mut summary = Summary::default();
            summary.ensured("device", 1, 1);
            Ok(summary)
        }

        fn target(&self) -> &'static str {
            "nowhere"
        }
    }

    fn plan() -> Plan {
        let text = "name: t\nplatform: { kind: hono, devices: [ 'mqtt://127.0.0.1' ] }\n\
                    provision: { mode: on-refusal, url: 'http://127.0.0.1', pending: 1 }\n\
                    fleet: [ { count: 9, credential: { kind: password, secret: s }, streams: [] } ]\n";
        let source = Source {
            name: "t.yaml",
            text,
        };
        let plan = parse(source, &Overrides::new(), &NoFiles);
        plan.unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn each_link_is_registered_once_however_often_it_is_refused() {
        let (sender, asked) = std::sync::mpsc::channel();
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Arc::new(Journal::open(folder.path(), "nowhere").expect("a record"));
        let provisioner = Arc::new(Reporting(Mutex::new(sender)));
        let plan = plan();
        assert!(plan.management.registers_refused);
        let registrar = Registrar::start(&plan, provisioner, journal).expect("a thread");
        let links = [4, 7].map(LinkId);
        registrar.refused(&[Refused::Link(links[0]), Refused::Link(links[0])]);
        registrar.refused(&[Refused::Device(DeviceId(7)), Refused::Link(links[0])]);
        let first: Vec<LinkId> = asked.iter().take(2).collect();
        assert_eq!(first, links);
        let done = registrar.end();
        assert!(
            asked.try_recv().is_err(),
            "no link is asked for again at once"
        );
        assert_eq!((done.refusals, done.links, done.failed), (4, 2, 1));
        assert_eq!(done.summary.to_string(), "device: 1 created");
        assert_eq!(done.errors.len(), 1);
        registrar.refused(&[Refused::Link(LinkId(8))]);
        assert_eq!(registrar.end().links, 2, "it is over");
    }

    /// Law: a link whose registration failed is tried again with its next refusals, and not for ever.
    #[test]
    fn a_registration_that_failed_is_tried_again_a_few_times() {
        let attempts = |count, has_failed| Attempts { count, has_failed };
        assert!(attempts(1, true).may_be_repeated());
        assert!(attempts(TRIES_MAX - 1, true).may_be_repeated());
        assert!(!attempts(TRIES_MAX, true).may_be_repeated());
        assert!(!attempts(1, false).may_be_repeated());
    }
}
