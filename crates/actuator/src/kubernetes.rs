//! Pods of a Kubernetes cluster: the replicas of a Deployment or a StatefulSet.
//!
//! The API server is asked again and again, and every answer is compared with what is wanted, as controllers of a cluster do.
//! So a conflict, somebody else's change and a server that is away for a while are survived until the wait is over.

mod cluster;
mod pods;
mod workload;

use std::time::Duration;

use muster_model::Micros;
use muster_net::Clock;
use muster_plan::{Endpoint, KubernetesPlan, Variable};
use serde::{Deserialize, Serialize};

use self::cluster::{Cluster, Failure};
use self::workload::{Goal, Workload, creation_failure, ready};
use crate::journal::Journal;
use crate::program::SHOWN;
use crate::{Actuator, ActuatorError, Site, Wait};

/// The interval of requests to the API server.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// Time in which a server that was away may refuse what it allows: it reads its roles first.
const ROLES_READ_WITHIN: Micros = Micros::from_secs(5);

/// Sets the replicas of a workload.
pub(crate) struct KubernetesActuator {
    cluster: Cluster,
    journal: Journal,
    original: Option<Original>,
    clock: Clock,
}

/// The workload before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Original {
    replicas: u32,
    /// Identifies the workload among those of all clusters, whatever the kubeconfig names by now.
    uid: String,
}

/// Observations of a wait.
#[derive(Debug, Default)]
struct Seen {
    workload: Option<Workload>,
    /// The reason why the last request failed.
    failure: Option<String>,
    /// The last time that the server was away, since the last request that it answered.
    away_at: Option<Micros>,
    times_set: u32,
}

impl Seen {
    /// Returns whether a refusal may be that of a server that has not read its roles yet.
    fn may_pass(&self, code: u16, now: Micros) -> bool {
        let is_starting = |at: Micros| now < at + ROLES_READ_WITHIN;
        matches!(code, 401 | 403) && self.away_at.is_some_and(is_starting)
    }
}

impl KubernetesActuator {
    /// An actuator of a workload; asks the API server nothing.
    pub(crate) fn open(plan: &KubernetesPlan, site: &Site) -> Result<Self, ActuatorError> {
        let (journal, original) = Journal::open(site)?;
        Ok(Self {
            cluster: Cluster::open(plan)?,
            journal,
            original,
            clock: Clock::start(),
        })
    }

    /// Asks until the goal is met.
    fn follow(&self, count: u32, goal: Goal, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        let mut seen = Seen::default();
        let reached = wait.until_every(ASK_EVERY, || {
            let workload = self.ask(&mut seen, |seen| self.advance(count, seen))?;
            let is_met = workload.is_some_and(|workload| goal.is_met(&workload, count));
            Ok(is_met.then_some(()))
        })?;
        reached.ok_or_else(|| ActuatorError::DidNotFollow {
            wanted: count,
            there: seen
                .workload
                .as_ref()
                .map_or("an unknown number is".to_owned(), |workload| {
                    format!("{} are", ready(workload))
                }),
            after: wait.length(),
            why: self.why(&seen),
        })
    }

    /// Reads the workload, and sets its replicas if these are others.
    fn advance(&self, count: u32, seen: &mut Seen) -> Result<Workload, Failure> {
        let workload = self.cluster.workload()?;
        if self.is_original(&workload) && workload.spec.replicas != count {
            self.cluster.scale(&workload, count)?;
            seen.times_set += 1;
        }
        Ok(workload)
    }

    /// Makes requests; none if they are to be made again.
    fn ask(
        &self,
        seen: &mut Seen,
        request: impl FnOnce(&mut Seen) -> Result<Workload, Failure>,
    ) -> Result<Option<Workload>, ActuatorError> {
        match request(seen) {
            Ok(workload) if !self.is_original(&workload) => {
                return Err(ActuatorError::Replaced {
                    workload: self.cluster.described(),
                    path: self.journal.path().to_owned(),
                });
            }
            Ok(workload) => {
                seen.workload = Some(workload.clone());
                seen.failure = None;
                seen.away_at = None;
                return Ok(Some(workload));
            }
            Err(Failure::Conflict(why)) => seen.failure = Some(why),
            Err(Failure::Away(why)) => {
                seen.failure = Some(format!("the API server: {why}"));
                seen.away_at = Some(self.clock.now());
            }
            Err(Failure::Refused(status)) if seen.may_pass(status.code, self.clock.now()) => {
                seen.failure = Some(status.message);
            }
            Err(Failure::Refused(status)) => {
                return Err(ActuatorError::Refused {
                    workload: self.cluster.described(),
                    why: shortened(&status.message),
                    remedy: remedy(status.code),
                });
            }
        }
        Ok(None)
    }

    fn is_original(&self, workload: &Workload) -> bool {
        let uid = workload.metadata.uid.as_deref().unwrap_or_default();
        self.original
            .as_ref()
            .is_none_or(|original| original.uid == uid)
    }

    /// Reads the workload, again while the server is away.
    fn read(&self, wait: &Wait<'_>) -> Result<Workload, ActuatorError> {
        let mut seen = Seen::default();
        let read = wait.until_every(ASK_EVERY, || {
            self.ask(&mut seen, |_| self.cluster.workload())
        })?;
        read.ok_or_else(|| ActuatorError::Cluster {
            why: seen.failure.unwrap_or_default(),
        })
    }

    /// The reason why a number was not reached, behind a colon; empty without one.
    fn why(&self, seen: &Seen) -> String {
        let why = seen.failure.clone().or_else(|| {
            let workload = seen.workload.as_ref()?;
            let of_pods = || match self.cluster.pods(workload) {
                Ok(pods) => pods::first_unready(&pods),
                Err(Failure::Refused(_)) => {
                    Some("its pods may not be listed: allow that to see why".to_owned())
                }
                Err(_) => None,
            };
            let warning = || self.cluster.last_warning(workload).ok().flatten();
            creation_failure(workload).or_else(of_pods).or_else(warning)
        });
        let others = (seen.times_set > 1).then(|| {
            let times = seen.times_set - 1;
            format!("somebody else changed its replicas, such as an autoscaler ({times} times)")
        });
        let all: Vec<String> = [others, why].into_iter().flatten().collect();
        match all.is_empty() {
            true => String::new(),
            false => format!(": {}", shortened(&all.join("; "))),
        }
    }
}

impl Actuator for KubernetesActuator {
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if self.original.is_none() {
            let workload = self.read(wait)?;
            let original = Original {
                replicas: workload.spec.replicas,
                uid: workload.metadata.uid.unwrap_or_default(),
            };
            self.journal.write(&original)?;
            self.original = Some(original);
        }
        self.follow(count, Goal::Ready, wait)
    }

    fn actual(&mut self, wait: &Wait<'_>) -> Result<u32, ActuatorError> {
        self.read(wait).map(|workload| ready(&workload))
    }

    /// The pods that were there may not have been ready.
    fn restore(&mut self, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if let Some(original) = &self.original {
            self.follow(original.replicas, Goal::Observed, wait)?;
            self.journal.close()?;
            self.original = None;
        }
        Ok(())
    }

    fn set_environment(&mut self, _variables: &[Variable]) {}

    fn addresses(&self, _count: u32) -> Option<Vec<Endpoint>> {
        None
    }
}

/// Remedy of a refusal.
fn remedy(code: u16) -> &'static str {
    match code {
        401 => "renew the credentials of the context",
        403 => "allow it by a Role (docs/scale.md)",
        404 => "correct the names in `scale.actuator`",
        _ => "mend the workload",
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(2 * SHOWN).collect()
}
