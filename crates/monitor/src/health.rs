//! The generator's samples, gathered into the account that `judge` reads.

use muster_judge::{
    GeneratorHealth, HostHealth, Incident, IncidentKind, ThreadHealth, ThreadRole, ThreadWindow,
};
use muster_model::Micros;

use crate::{GeneratorSample, ThreadShare};

/// Gathers one process's samples, second by second.
#[derive(Debug, Clone)]
pub struct HealthLog {
    prefix: String,
    health: GeneratorHealth,
    /// Incidents that have not ended, by kind and detail.
    lasting: Vec<(IncidentKind, String)>,
}

/// Stretches that are kept apart; beyond it those of one cause are one.
const STRETCHES_MAX: usize = 100;

impl HealthLog {
    /// An empty log of the process on `host`; `process` begins the names of its threads and is
    /// empty where there is only one.
    pub fn new(process: &str, host: &str) -> Self {
        let host = HostHealth {
            name: host.to_owned(),
            steal: Vec::new(),
        };
        let health = GeneratorHealth {
            hosts: vec![host],
            ..GeneratorHealth::default()
        };
        Self {
            prefix: match process {
                "" => String::new(),
                process => format!("{process} "),
            },
            health,
            lasting: Vec::new(),
        }
    }

    /// Adds one sample.
    pub fn add(&mut self, sample: &GeneratorSample) {
        for share in &sample.threads {
            self.add_thread(sample.at, share);
        }
        for host in &mut self.health.hosts {
            host.steal
                .extend(sample.steal.map(|steal| (sample.at, steal)));
        }
        for incident in clock_incidents(sample) {
            self.incident(incident);
        }
    }

    /// Adds something that must not happen and that the samples do not show.
    ///
    /// Repetitions are one incident with a count, from its first to its last time.
    pub fn incident(&mut self, incident: Incident) {
        match last(&mut self.health, incident.kind, &incident.detail) {
            Some(known) => {
                known.count += incident.count;
                known.until = known.until.max(incident.until);
            }
            None => self.health.incidents.push(incident),
        }
    }

    /// Adds something that lasts until [`HealthLog::end`], or to the end of the run.
    pub fn begin(&mut self, incident: Incident) {
        let key = (incident.kind, incident.detail.clone());
        if self.lasting.contains(&key) {
            return self.incident(incident);
        }
        self.lasting.push(key);
        if self.health.incidents.len() < STRETCHES_MAX {
            self.health.incidents.push(incident);
        } else {
            self.incident(incident);
        }
    }

    /// Extends every incident that has not ended to `now`.
    pub fn go_on(&mut self, now: Micros) {
        for (kind, detail) in &self.lasting {
            if let Some(incident) = last(&mut self.health, *kind, detail) {
                incident.until = incident.until.max(now);
            }
        }
    }

    /// Ends the incidents whose detail begins with the words `who`.
    pub fn end(&mut self, kind: IncidentKind, who: &str, now: Micros) {
        self.go_on(now);
        self.lasting
            .retain(|(known, detail)| *known != kind || !detail.starts_with(who));
    }

    /// The account so far.
    pub const fn health(&self) -> &GeneratorHealth {
        &self.health
    }

    /// The whole account.
    pub fn into_health(self) -> GeneratorHealth {
        self.health
    }

    fn add_thread(&mut self, until: Micros, share: &ThreadShare) {
        let word = match share.role {
            ThreadRole::Shard => "shard",
            ThreadRole::Consumer => "consumer",
        };
        let name = format!("{}{word} {}", self.prefix, share.index);
        let window = ThreadWindow {
            until,
            cpu: share.cpu,
            waiting: Some(share.wait),
        };
        let threads = &mut self.health.threads;
        match threads.iter_mut().find(|thread| thread.name == name) {
            Some(thread) => thread.windows.push(window),
            None => threads.push(ThreadHealth {
                name,
                role: share.role,
                windows: vec![window],
            }),
        }
    }
}

fn last<'a>(
    health: &'a mut GeneratorHealth,
    kind: IncidentKind,
    detail: &str,
) -> Option<&'a mut Incident> {
    let mut known = health.incidents.iter_mut().rev();
    known.find(|known| known.kind == kind && known.detail == detail)
}

/// The incidents of the clocks in the time of a sample.
fn clock_incidents(sample: &GeneratorSample) -> impl Iterator<Item = Incident> {
    let stepped = match sample.clock.stepped_us {
        ..0 => "wall clock set back",
        0.. => "wall clock set forward",
    };
    let stepped_us = sample.clock.stepped_us.unsigned_abs();
    let suspended = "CLOCK_BOOTTIME ran ahead of CLOCK_MONOTONIC";
    let incidents = [
        (IncidentKind::ClockStepped, stepped_us, stepped),
        (
            IncidentKind::Suspended,
            sample.clock.suspended_us,
            suspended,
        ),
    ];
    let happened = incidents.into_iter().filter(|(_, count, _)| *count > 0);
    happened.map(|(kind, count, detail)| Incident {
        kind,
        from: sample.at - Micros(sample.passed_us),
        until: sample.at,
        count,
        detail: detail.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClockChange;
    use crate::procfs::Memory;

    fn sample(second: u64) -> GeneratorSample {
        let share = |role, index| ThreadShare {
            role,
            index,
            cpu: 0.5,
            wait: 0.25,
        };
        GeneratorSample {
            at: Micros::from_secs(second),
            passed_us: 1_000_000,
            threads: vec![share(ThreadRole::Shard, 0), share(ThreadRole::Consumer, 0)],
            cpu_us: 1_000_000,
            process: Memory::default(),
            steal: Some(0.01),
            clock: ClockChange::default(),
        }
    }

    #[test]
    fn each_thread_that_must_keep_up_has_a_series() {
        let mut log = HealthLog::new("worker 2", "box");
        log.add(&sample(1));
        log.add(&sample(2));
        let health = log.into_health();
        let names: Vec<&str> = health
            .threads
            .iter()
            .map(|thread| thread.name.as_str())
            .collect();
        assert_eq!(names, ["worker 2 shard 0", "worker 2 consumer 0"]);
        let window = ThreadWindow {
            until: Micros::from_secs(2),
            cpu: 0.5,
            waiting: Some(0.25),
        };
        assert_eq!(health.threads[0].windows.len(), 2);
        assert_eq!(health.threads[0].windows[1], window);
        assert_eq!(health.hosts[0].steal.len(), 2);
    }

    #[test]
    fn what_lasts_has_lasted_until_it_ended() {
        let away = |second: u64, who: &str| Incident {
            kind: IncidentKind::ConsumerAway,
            from: Micros::from_secs(second),
            until: Micros::from_secs(second),
            count: 1,
            detail: format!("{who}: no port is left"),
        };
        let mut log = HealthLog::new("", "box");
        log.begin(away(3, "consumer 1"));
        log.begin(away(4, "consumer 12"));
        log.end(
            IncidentKind::ConsumerAway,
            "consumer 1: ",
            Micros::from_secs(8),
        );
        log.go_on(Micros::from_secs(20));
        log.begin(away(22, "consumer 1"));
        log.end(
            IncidentKind::ConsumerAway,
            "consumer 1: ",
            Micros::from_secs(23),
        );
        let stretches = || {
            let all = log.health().incidents.iter();
            let stretches = all.map(|known| (known.from.second(), known.until.second()));
            stretches.collect::<Vec<_>>()
        };
        assert_eq!(stretches(), [(3, 8), (4, 23), (22, 23)]);
    }

    #[test]
    fn a_quiet_second_has_no_incident() {
        let mut log = HealthLog::new("", "box");
        log.add(&sample(1));
        assert!(log.health().incidents.is_empty());
    }

    #[test]
    fn a_clock_set_back_is_an_incident_of_that_second() {
        let mut log = HealthLog::new("", "box");
        let clock = ClockChange {
            stepped_us: -200_000,
            suspended_us: 0,
        };
        log.add(&GeneratorSample { clock, ..sample(7) });
        let incident = &log.health().incidents[0];
        assert_eq!(
            (incident.kind, incident.count),
            (IncidentKind::ClockStepped, 200_000)
        );
        assert_eq!(incident.from, Micros::from_secs(6));
        assert!(incident.detail.contains("back"));
    }

    #[test]
    fn a_suspended_host_is_an_incident() {
        let mut log = HealthLog::new("", "box");
        let clock = ClockChange {
            stepped_us: 0,
            suspended_us: 60_000_000,
        };
        log.add(&GeneratorSample { clock, ..sample(7) });
        let kinds: Vec<_> = log
            .health()
            .incidents
            .iter()
            .map(|incident| incident.kind)
            .collect();
        assert_eq!(kinds, [IncidentKind::Suspended]);
    }
}
