//! The figures of a run on their way to those who watch it.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use muster_measure::WindowDelta;
use muster_model::Micros;
use muster_plan::Plan;
use muster_report::{Event, Report};
use muster_result::{LAG_S, Live};

use crate::finals;
use crate::identity::Identity;
use crate::influx::{self, Lines, Names};
use crate::otlp::{self, Requests};
use crate::push::{Call, Client, Encode, Pusher, Receiver};
use crate::running;
use crate::server::Server;
use crate::snapshot::{Annotation, Point, Snapshot};
use crate::table;
use crate::totals::Totals;
use crate::url::AddressError;

/// Annotations that wait for the next snapshot at most: a run has a few each second.
const ANNOTATIONS_MAX: usize = 1_000;

/// Destinations of a run's figures, as the command line names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The address of the page for Prometheus.
    pub listen: Option<SocketAddr>,
    /// The address of an InfluxDB.
    pub influx: Option<String>,
    /// Names of measurements and fields there.
    pub names: Names,
    /// The address of an OTLP receiver.
    pub otlp: Option<String>,
}

/// Something that keeps metrics from being exported at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An address or credential that cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A port that is taken, or an address of another machine.
    #[error("--metrics {at}: {why}; {}", remedy(.why))]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's words.
        why: io::Error,
    },
}

fn remedy(why: &io::Error) -> &'static str {
    let of = |kind| why.kind() == kind;
    if of(io::ErrorKind::AddrNotAvailable) {
        "name an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
    } else if of(io::ErrorKind::PermissionDenied) {
        "name a port from 1024 on"
    } else {
        "name a free port, or port 0 for any"
    }
}

/// The ways out of a run that has not begun.
#[derive(Debug, Default)]
pub struct Outlets {
    server: Option<Server>,
    influx: Option<Receiver>,
    names: Names,
    otlp: Option<Receiver>,
}

impl Outlets {
    /// Opens the ways out; `env` looks up a variable of the environment.
    ///
    /// # Errors
    /// [`OpenError`] for an address that cannot be used, or a port that is taken.
    pub fn open(
        settings: &Settings,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, OpenError> {
        let influx = settings.influx.as_deref();
        let otlp = settings.otlp.as_deref();
        let listen = |at: SocketAddr| Server::open(at).map_err(|why| OpenError::Listen { at, why });
        Ok(Self {
            influx: influx.map(|text| influx::receiver(text, env)).transpose()?,
            names: settings.names,
            otlp: otlp.map(|text| otlp::receiver(text, env)).transpose()?,
            server: settings.listen.map(listen).transpose()?,
        })
    }

    /// The address of the page for Prometheus.
    pub fn url(&self) -> Option<String> {
        self.server.as_ref().map(Server::url)
    }

    /// Sends each server a first body, and returns the words of those that do not take it. The run goes on
    /// without them, and they are tried again.
    pub fn probe(&self, wall_ms: u64) -> Vec<String> {
        let first = Snapshot {
            wall_ms,
            second_ms: wall_ms,
            annotations: vec![Annotation {
                wall_ms,
                until_ms: None,
                kind: "prepare".to_owned(),
                text: "the run is being prepared".to_owned(),
            }],
            ..Snapshot::default()
        };
        let lines = Lines::new(Identity::default(), self.names).encode(&first).0;
        let bodies = [(&self.influx, lines), (&self.otlp, Vec::new())];
        let probes = bodies.into_iter().filter_map(|(receiver, body)| {
            let receiver = receiver.as_ref()?;
            let failure = Client::new(receiver.clone()).post(&body).err()?;
            Some(format!(
                "{} at {}: {}",
                receiver.name, receiver.shown, failure.why
            ))
        });
        probes.collect()
    }

    /// Starts exporting; none if no one watches.
    pub fn start(self, identity: Identity, plan: &Plan) -> Option<Exporter> {
        if self.server.is_none() && self.influx.is_none() && self.otlp.is_none() {
            return None;
        }
        let influx = self.influx.map(|receiver| {
            let mut lines = Lines::new(identity.clone(), self.names);
            let encode: Encode = Box::new(move |snapshot| lines.encode(snapshot));
            (receiver, encode)
        });
        let otlp = self.otlp.map(|receiver| {
            let requests = Requests::new(identity.clone());
            let encode: Encode = Box::new(move |snapshot| requests.encode(snapshot));
            (receiver, encode)
        });
        let pushers = influx.into_iter().chain(otlp);
        Some(Exporter {
            pushers: pushers
                .filter_map(|(receiver, encode)| Pusher::start(receiver, encode))
                .collect(),
            server: self.server,
            totals: Totals::new(plan),
            identity,
            next: 0,
            annotations: Vec::new(),
            phase: None,
            last_ms: 0,
        })
    }
}

/// Exports the figures of a run each second, in threads that no one waits for.
#[derive(Debug)]
pub struct Exporter {
    server: Option<Server>,
    pushers: Vec<Pusher>,
    totals: Totals,
    identity: Identity,
    /// The next second to export.
    next: u32,
    annotations: Vec<Annotation>,
    phase: Option<&'static str>,
    /// Wall clock of the last snapshot: the next one is later, so that it is the last value of its series.
    last_ms: u64,
}

impl Exporter {
    /// Adds windows that came in.
    pub fn add(&mut self, delta: &WindowDelta) {
        self.totals.add(delta);
    }

    /// True once a second.
    pub fn is_due(&self, now: Micros) -> bool {
        now.second() >= self.next
    }

    /// Exports the state of the run.
    pub fn show(&mut self, live: &Live) {
        let now = live.clock.elapsed;
        let second = now.second().saturating_sub(LAG_S);
        self.next = now.second() + 1;
        let phase = live.clock.phase_name();
        if self.phase.replace(phase) != Some(phase) {
            let from_s = live.clock.phase_from.as_secs_f64();
            self.annotate(&Event::new(from_s, "phase", phase.to_owned()));
        }
        let mut points = self.totals.points();
        points.push(self.identity.point());
        points.extend(running::points(live));
        let snapshot = Snapshot {
            wall_ms: self.wall_ms(now),
            second_ms: self.wall_ms(Micros::from_secs(u64::from(second))),
            is_final: false,
            points,
            classes: self.totals.classes(),
            links_up: live.links.up,
            annotations: std::mem::take(&mut self.annotations),
        };
        self.export(snapshot);
    }

    /// Adds an event to the time axis. One that has no room comes with the result.
    pub fn annotate(&mut self, event: &Event) {
        if self.has_room() {
            self.push_annotation(event);
        }
    }

    fn has_room(&self) -> bool {
        self.annotations.len() < ANNOTATIONS_MAX
    }

    fn push_annotation(&mut self, event: &Event) {
        let at = |seconds: f64| self.wall_ms(Micros::from_secs_f64(seconds));
        // Of two remarks of one kind and instant a server would keep one.
        let known = self
            .annotations
            .iter()
            .filter(|known| known.kind == event.kind);
        let taken: BTreeSet<u64> = known.map(|known| known.wall_ms).collect();
        let free = (at(event.t_s)..).find(|at| !taken.contains(at));
        self.annotations.push(Annotation {
            wall_ms: free.unwrap_or_else(|| at(event.t_s)),
            until_ms: event.until_s.map(at),
            kind: event.kind.clone(),
            text: event.detail.clone(),
        });
    }

    /// Words for what servers do not have until now.
    pub fn lacks(&mut self) -> Vec<String> {
        self.pushers.iter_mut().filter_map(Pusher::lack).collect()
    }

    /// Exports the values of the result, and its events and verdict as remarks.
    pub fn show_result(&mut self, report: &Report) {
        let end_s = report.phases.last().map_or(0.0, |phase| phase.until_s);
        self.annotate_result(report, end_s);
        // A report holds only keys that are texts, so that it is always JSON.
        let result = serde_json::to_value(report).unwrap_or_default();
        let mut points = finals::points(&result);
        points.push(self.identity.point());
        points.push(Point::count(&table::RUN_FINISHED, &[], 1));
        let end_ms = self.wall_ms(Micros::from_secs_f64(end_s));
        let snapshot = Snapshot {
            wall_ms: end_ms,
            second_ms: end_ms,
            is_final: true,
            points,
            classes: self.totals.classes(),
            links_up: report.links.open_at_end.unwrap_or(0),
            annotations: std::mem::take(&mut self.annotations),
        };
        self.export(snapshot);
    }

    /// Adds the verdict and those events of a result that have room; a remark counts the others.
    fn annotate_result(&mut self, report: &Report, end_s: f64) {
        let verdict = report.verdict.result.to_string();
        self.push_annotation(&Event::new(end_s, "verdict", verdict));
        let room = ANNOTATIONS_MAX.saturating_sub(self.annotations.len());
        let (shown, others) = report.events.split_at(room.min(report.events.len()));
        shown.iter().for_each(|event| self.push_annotation(event));
        if !others.is_empty() {
            let text = format!("{} further events are in result.json only", others.len());
            self.push_annotation(&Event::new(end_s, "events-left-out", text));
        }
    }

    /// Ends exporting: delivers what waits, for some seconds at most, and leaves the page up until somebody has
    /// read the final values, for `most` at most or until `is_unwanted`. Returns words
    /// for what servers lack, where [`Exporter::lacks`] had none.
    pub fn end(self, most: Duration, is_unwanted: &dyn Fn() -> bool) -> Vec<String> {
        let lacks = self.pushers.into_iter().filter_map(Pusher::end).collect();
        if let Some(server) = self.server {
            server.wait(most, is_unwanted);
        }
        lacks
    }

    fn export(&mut self, mut snapshot: Snapshot) {
        snapshot.wall_ms = snapshot.wall_ms.max(self.last_ms + 1);
        self.last_ms = snapshot.wall_ms;
        let snapshot = Arc::new(snapshot);
        self.pushers
            .iter()
            .for_each(|pusher| pusher.push(&snapshot));
        if let Some(server) = &self.server {
            server.show(snapshot);
        }
    }

    fn wall_ms(&self, at: Micros) -> u64 {
        self.identity.began_ms + at.get() / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_can_listen_at_names_its_own_remedy() {
        let said = |kind: io::ErrorKind| {
            let at = SocketAddr::from(([192, 0, 2, 1], 9_100));
            let why = io::Error::from(kind);
            OpenError::Listen { at, why }.to_string()
        };
        for (kind, remedy) in [
            (io::ErrorKind::AddrInUse, "name a free port"),
            (
                io::ErrorKind::AddrNotAvailable,
                "name an address of this machine",
            ),
            (io::ErrorKind::PermissionDenied, "name a port from 1024 on"),
        ] {
            let said = said(kind);
            assert!(said.starts_with("--metrics 192.0.2.1:9100: "), "{said}");
            assert!(said.contains(remedy), "{said}");
        }
    }

    #[test]
    fn a_result_has_its_verdict_on_the_time_axis_however_many_events_there_are() {
        for (known, events, shown, left_out) in [
            (0, 3, 3, None),
            (0, 999, 999, None),
            (0, 1_000, 999, Some("1 further events")),
            (900, 1_000, 99, Some("901 further events")),
            (1_000, 5, 0, Some("5 further events")),
        ] {
            let mut exporter = Exporter {
                server: None,
                pushers: Vec::new(),
                totals: Totals::default(),
                identity: Identity::default(),
                next: 0,
                annotations: Vec::new(),
                phase: None,
                last_ms: 0,
            };
            let event = |kind, at: u32| Event::new(f64::from(at), kind, String::new());
            (0..known).for_each(|at| exporter.annotate(&event("phase", at)));
            let report = Report {
                events: (0..events).map(|at| event("outage", at)).collect(),
                ..Report::default()
            };
            exporter.annotate_result(&report, 60.0);
            let of = |kind: &str| {
                let all = exporter.annotations.iter();
                all.filter(|it| it.kind == kind).collect::<Vec<_>>()
            };
            assert_eq!(of("verdict").len(), 1, "{events}");
            assert_eq!(of("outage").len(), shown, "{events}");
            let remarks = of("events-left-out");
            let remark = remarks.first().map(|it| it.text.as_str());
            assert!(
                match left_out {
                    Some(wanted) => remark.is_some_and(|text| text.starts_with(wanted)),
                    None => remark.is_none(),
                },
                "{events}: {remark:?}"
            );
        }
    }
}
