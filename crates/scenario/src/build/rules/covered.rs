//! The streams that an `slo` is about, and the figures that exist of them.

use muster_judge::{Latency, Scope, StabilityBounds};
use muster_model::{Micros, Promise};
use muster_plan::{Ack, FleetPlan, StreamKind, StreamPlan};
use muster_platform::Carrier;

use super::{Judged, Place, streams};
use crate::build::expected::due_from;
use crate::view::View;

pub(super) struct Covered<'a> {
    pub(super) streams: Vec<(&'a FleetPlan, &'a StreamPlan)>,
    has_backend: bool,
    reads_back: bool,
    pub(super) messages: u64,
}

impl<'a> Covered<'a> {
    pub(super) fn all(place: &Place<'a, '_>) -> Self {
        Self::but(place, |_| false)
    }

    /// The streams of a scope without those of narrower scopes that have the key as well.
    pub(super) fn by(place: &Place<'a, '_>, key: &str) -> Self {
        let has_key = |scope: &Scope| {
            let mut all = place.all.iter();
            all.any(|(other, view)| other == scope && view.get(key).is_some())
        };
        Self::but(place, has_key)
    }

    fn but(place: &Place<'a, '_>, is_out: impl Fn(&Scope) -> bool) -> Self {
        let narrower = place.all.iter().map(|(scope, _)| scope);
        let narrower: Vec<&Scope> = narrower
            .filter(|scope| place.scope.is_wider_than(scope) && is_out(scope))
            .collect();
        let is_covered = |fleet: &FleetPlan, stream: &StreamPlan| {
            let holds = |scope: &Scope| scope.contains(fleet.id, stream.id);
            holds(place.scope) && !narrower.iter().any(|scope| holds(scope))
        };
        let streams: Vec<_> = streams(place.judged.fleets)
            .filter(|(fleet, stream)| stream.is_uplink() && is_covered(fleet, stream))
            .collect();
        let messages = streams
            .iter()
            .map(|(_, stream)| due_from(stream, stream.schedule.warm_up))
            .sum();
        Self {
            streams,
            has_backend: !place.judged.backends.is_empty(),
            reads_back: place.judged.reads_back,
            messages,
        }
    }

    /// Loss and end-to-end are known only where arrivals are, and where these carry an id.
    pub(super) fn needs_arrivals(&self, view: &View<'_>, key: &str) {
        let Some(view) = view.get(key).or_else(|| Some(view.clone())) else {
            return;
        };
        if !self.has_backend && (key == "end-to-end" || !self.reads_back) {
            let what = format!("`{key}` cannot be known without a backend");
            view.wrong(what, "add `platform.backend`, or remove the SLO");
        } else if let Some((fleet, stream)) = self
            .streams
            .iter()
            .find(|(_, stream)| stream.carrier == Carrier::None)
        {
            let what = format!(
                "`{key}` cannot be known: the messages of {}/{} carry no id",
                fleet.name, stream.name
            );
            view.wrong(
                what,
                "give the stream a `carrier`, or put the SLO into other streams",
            );
        }
    }

    /// Checks that the streams have the latency at all.
    pub(super) fn can_measure(&self, view: &View<'_>, latency: Latency) {
        match latency {
            Latency::EndToEnd => self.needs_arrivals(view, "end-to-end"),
            Latency::Response | Latency::Service => self.needs_answers(view, latency),
            // Legs of commands are no messages of the devices' own.
            Latency::Lateness
            | Latency::CommandRequest
            | Latency::CommandResponse
            | Latency::CommandLoop => {}
        }
    }

    fn needs_answers(&self, view: &View<'_>, latency: Latency) {
        let silent = self
            .streams
            .iter()
            .find(|(_, stream)| stream.ack == Ack::None);
        let asking = |(_, stream): &&(&FleetPlan, &StreamPlan)| {
            matches!(stream.kind, StreamKind::CommandQuery { .. })
        };
        if let Some((fleet, stream)) = self.streams.iter().find(asking) {
            let what = format!(
                "a `{}` SLO on {}/{}, whose answer is a command",
                latency.name(),
                fleet.name,
                stream.name
            );
            view.wrong(what, "put the SLO into the other streams");
        }
        if let Some((fleet, stream)) = silent {
            let what = format!(
                "a `{}` SLO on {}/{}, whose messages have no answer (QoS 0)",
                latency.name(),
                fleet.name,
                stream.name
            );
            view.wrong(
                what,
                "use qos: 1, or `end-to-end`, or put the SLO into the streams with answers",
            );
        }
    }

    /// A backlog behind an acknowledgement that promises no delivery is seen by no device.
    pub(super) fn needs_delivery(&self, view: &View<'_>, judged: &Judged<'_>) {
        let is_unseen = |stream: &StreamPlan| {
            let is_seen = (self.has_backend || self.reads_back) && stream.carrier != Carrier::None;
            !stream.promise(judged.dialect).is_of_delivery() && !is_seen
        };
        let unseen = self.streams.iter().find(|(_, stream)| is_unseen(stream));
        if let (Some((fleet, stream)), false) = (unseen, judged.is_watched) {
            let what = format!(
                "`stable` cannot be known: no backend sees the messages of {}/{}, and their acknowledgements promise {}",
                fleet.name,
                stream.name,
                match stream.promise(judged.dialect) {
                    Promise::Enqueued => "no more than a place in a queue",
                    Promise::Stored
                    | Promise::Processed
                    | Promise::Forwarded
                    | Promise::Nothing => "nothing",
                }
            );
            let help = match judged.dialect.has_northbound {
                true => "add `platform.backend`, or remove the SLO",
                false => "use `ack: application`, or remove the SLO",
            };
            view.get("stable")
                .unwrap_or_else(|| view.clone())
                .wrong(what, help);
        }
    }

    /// A named rule that can never be evaluated makes every run invalid.
    pub(super) fn is_long_enough(&self, view: &View<'_>, measure: Micros, bounds: StabilityBounds) {
        let windows = measure.get() / 1_000_000;
        if windows < u64::from(bounds.min_windows) {
            let what = format!(
                "`stable` needs {} windows of a second, and only {windows} are measured",
                bounds.min_windows
            );
            let help = "a named SLO that cannot be evaluated makes the run invalid: measure longer";
            view.get("stable")
                .unwrap_or_else(|| view.clone())
                .warn(what, help);
        }
    }
}
