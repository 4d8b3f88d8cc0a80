//! Makes the summary of a scope from what was derived of its streams.

use muster_model::{BackendId, Cause, FleetId, Micros, StreamId};

use crate::closing::{Closed, Closing, StreamClosed, by_name};
use crate::cohort::{Cohort, PerCohort};
use crate::command::CommandsClosed;
use crate::gather::{Gathered, copies, links};
use crate::per_device_close::BackendSums;
use crate::reception::ReceptionsClosed;
use crate::{
    Above, Cold, Distribution, Flow, GroupSummary, Latency, LatencyFigures, LatencyTable,
    LatencyView, Ledger, LinkLedger, Percentiles, Phase, Rates, Scope, ScopeSummary, State,
    Summary, TimeSums, WindowKey,
};

impl Closing<'_> {
    /// The run in figures.
    pub fn summary(&self) -> Summary {
        self.summarize(&self.close(&[]))
    }

    /// The scopes and the run, of what was derived before.
    pub(crate) fn summarize(&self, closed: &Closed) -> Summary {
        let of_fleet = |fleet: FleetId| {
            let is_its =
                |stream: &&StreamClosed| self.plan.streams[stream.stream.index()].fleet == fleet;
            closed.streams.iter().filter(is_its).collect::<Vec<_>>()
        };
        let fleet = |at: usize| {
            let fleet = FleetId(at as u8);
            self.scope(Scope::Fleet(fleet), &of_fleet(fleet), closed)
        };
        let stream = |of: &StreamClosed| self.scope(Scope::Stream(of.stream), &[of], closed);
        let group = |streams: &Vec<StreamId>| {
            let its = streams
                .iter()
                .filter_map(|id| closed.streams.get(id.index()));
            GroupSummary {
                streams: streams.clone(),
                scope: self.scope(Scope::Group, &its.collect::<Vec<_>>(), closed),
            }
        };
        let run = self.scope(
            Scope::Run,
            &closed.streams.iter().collect::<Vec<_>>(),
            closed,
        );
        Summary {
            timeline: self.timeline,
            end: self.end,
            listening: self.listening,
            has_one_clock: self.has_one_clock,
            measured_s: self.timeline.measured().as_secs_f64(),
            fleets: (0..self.plan.fleets.len()).map(fleet).collect(),
            streams: closed.streams.iter().map(stream).collect(),
            groups: self.plan.groups.iter().map(group).collect(),
            residue: residue_of(&run),
            run,
            backends: closed.backends.clone(),
        }
    }

    fn scope(&self, scope: Scope, streams: &[&StreamClosed], closed: &Closed) -> ScopeSummary {
        let fleet = match scope {
            Scope::Run | Scope::Group => None,
            Scope::Fleet(fleet) => Some(fleet),
            Scope::Stream(stream) => Some(self.plan.streams[stream.index()].fleet),
        };
        let mut ledgers: PerCohort<Ledger> = PerCohort::default();
        for cohort in Cohort::BOTH {
            let ledger = ledgers.of_mut(cohort);
            streams
                .iter()
                .for_each(|stream| ledger.merge(stream.ledgers.of(cohort)));
            if scope == Scope::Run {
                self.complete(ledger, cohort, closed);
            }
        }
        let series = self.series(streams);
        let apart = |part: Part| {
            let is_apart = self.plan.cold != Cold::Nothing;
            is_apart.then(|| self.latencies(streams, None, part))
        };
        ScopeSummary {
            scope,
            rates: self.rates(streams, &ledgers.measured),
            times: times(streams),
            latency: self.latencies(streams, Some(self.connects(fleet)), Part::Measured),
            cold: apart(Part::Cold),
            warm: apart(Part::Warm),
            above: self.above(streams),
            delivery: self.delivery(streams, &series),
            series,
            links: self.link_ledger(fleet),
            command: CommandsClosed::sum(
                streams.iter().filter_map(|stream| stream.commands.as_ref()),
                self.is_whole(),
            ),
            reception: ReceptionsClosed::sum(
                streams
                    .iter()
                    .filter_map(|stream| stream.receptions.as_ref()),
                self.is_whole(),
            ),
            uplink: ledgers.uplink,
            measured: ledgers.measured,
            unsure_by_order: unsure(streams),
        }
    }

    /// Adds to the run's ledger what is of no stream.
    fn complete(&self, ledger: &mut Ledger, cohort: Cohort, closed: &Closed) {
        if cohort == Cohort::Uplink {
            let rest = closed.residue(self.is_whole());
            ledger.residue = if self.is_whole() {
                Some(ledger.residue.unwrap_or(0) + rest.unwrap_or(0))
            } else {
                None
            };
            ledger
                .equations
                .extend(closed.equations.broken.iter().cloned());
        } else if self.is_whole() {
            ledger.residue = Some(ledger.residue.unwrap_or(0));
        }
        let Some(first) = closed.backends.first() else {
            return;
        };
        let (consumed, strays) = match cohort {
            Cohort::Uplink => (
                first.consumed,
                (first.foreign, first.unstamped, first.corrupted),
            ),
            Cohort::Measured => {
                let seen = copies(self.windows, BackendId(0), |key| cohort.holds(key));
                let known = ledger.arrivals.consumed.unwrap_or(0);
                let strays = (seen.foreign, seen.unstamped, seen.corrupted);
                (known + seen.foreign + seen.unstamped, strays)
            }
        };
        ledger.arrivals.consumed = Some(consumed);
        (
            ledger.arrivals.foreign,
            ledger.arrivals.unstamped,
            ledger.arrivals.corrupted,
        ) = (Some(strays.0), Some(strays.1), Some(strays.2));
    }

    fn rates(&self, streams: &[&StreamClosed], measured: &Ledger) -> Rates {
        let length = self.timeline.measured().as_secs_f64();
        let per_second = |count: u64| {
            if length > 0.0 {
                count as f64 / length
            } else {
                0.0
            }
        };
        let mut flow = Flow::default();
        let mut arrived = 0;
        for stream in streams {
            flow.merge(stream.gathered.measured.flow());
            arrived += stream
                .gathered
                .measured
                .arrivals
                .first()
                .map_or(0, |first| first.arrived);
        }
        Rates {
            offered: measured.nominal.map(per_second),
            issued: Some(per_second(flow.sent)),
            completed: Some(per_second(flow.answered())),
            accepted: Some(per_second(flow.of(State::Accepted))),
            arrived: (self.plan.timed() > 0).then(|| per_second(arrived)),
        }
    }

    fn latencies(
        &self,
        streams: &[&StreamClosed],
        connects: Option<Distribution>,
        part: Part,
    ) -> LatencyTable {
        let mut sum = Gathered::default();
        let mut end_to_end = Distribution::default();
        let mut absent = Distribution::default();
        for stream in streams {
            let is_wanted = |key: &WindowKey| part.holds(key);
            let gathered = Gathered::of(self.windows, stream.stream, self.plan.backends, is_wanted);
            sum.uplink.merge(&gathered.uplink);
            if let Some(first) = gathered.arrivals.first() {
                end_to_end.merge(&first.end_to_end);
            }
            let sums = stream.sums.as_ref().and_then(|sums| sums.backends.first());
            if let Some(sums) = sums {
                absent.merge(part.censored(sums));
            }
        }
        let answers = streams.iter().any(|stream| self.answers(stream.stream));
        let nothing = Distribution::default;
        let window = sum.uplink;
        let is_known = self.is_whole();
        LatencyTable {
            response_lower: answers.then(|| view(window.lower, window.censored.clone(), true)),
            response: answers.then(|| view(window.response, window.censored, true)),
            service: answers.then(|| view(window.service, nothing(), false)),
            lateness: Some(view(window.lateness, nothing(), false)),
            held: Some(view(window.held, nothing(), false)),
            end_to_end: (self.knows_delivery_times() && unsure(streams) == 0)
                .then(|| view(end_to_end, absent, is_known)),
            connect: connects.map(|connects| view(connects, nothing(), false)),
        }
    }

    fn connects(&self, fleet: Option<FleetId>) -> Distribution {
        links(self.windows, fleet, |_| true).connect
    }

    /// The counters of every bound that all streams with the latency have registered.
    fn above(&self, streams: &[&StreamClosed]) -> Vec<Above> {
        let mut found = Vec::new();
        for latency in Latency::ALL {
            if latency == Latency::EndToEnd && unsure(streams) > 0 {
                continue;
            }
            let having: Vec<_> = streams
                .iter()
                .filter(|stream| self.has(latency, stream.stream))
                .collect();
            let Some(first) = having.first() else {
                continue;
            };
            let backends = match latency {
                Latency::EndToEnd => (0..self.plan.timed())
                    .map(|at| Some(BackendId(at)))
                    .collect(),
                Latency::Response
                | Latency::Service
                | Latency::Lateness
                | Latency::Held
                | Latency::Connect => vec![None],
            };
            for bound in self.plan.streams[first.stream.index()]
                .bounds
                .sorted(latency)
            {
                for backend in &backends {
                    let parts: Option<Vec<_>> = having
                        .iter()
                        .map(|stream| self.above_of(stream, latency, *backend, bound))
                        .collect();
                    found.extend(parts.and_then(sum_above));
                }
            }
        }
        found
    }

    fn above_of(
        &self,
        stream: &StreamClosed,
        latency: Latency,
        backend: Option<BackendId>,
        bound: Micros,
    ) -> Option<Above> {
        let bounds = &self.plan.streams[stream.stream.index()].bounds;
        let at = bounds.place(latency, bound)?;
        let gathered = &stream.gathered.measured;
        let (uppers, lowers) = match backend {
            Some(backend) => {
                let seen = gathered.arrivals.get(backend.index())?;
                (&seen.above, &seen.above_lower)
            }
            None => (&gathered.uplink.above, &gathered.uplink.above_lower),
        };
        let counter = |counters: &[u64]| counters.get(at).copied().unwrap_or(0);
        let above = counter(uppers);
        let has_two_times = match latency {
            Latency::Response | Latency::Service | Latency::EndToEnd => true,
            Latency::Lateness | Latency::Held | Latency::Connect => false,
        };
        let (missing, n) = missing_of(stream, latency, backend);
        Some(Above {
            latency,
            backend,
            bound,
            above,
            above_lower: if has_two_times {
                counter(lowers)
            } else {
                above
            },
            missing,
            n,
        })
    }

    fn knows_delivery_times(&self) -> bool {
        self.plan.timed() > 0 && self.has_one_clock
    }

    fn answers(&self, stream: StreamId) -> bool {
        self.plan.stream(stream).is_some_and(|track| track.answers)
    }

    fn has(&self, latency: Latency, stream: StreamId) -> bool {
        match latency {
            Latency::Response | Latency::Service => self.answers(stream),
            Latency::Lateness | Latency::Held => true,
            Latency::EndToEnd => self.knows_delivery_times(),
            Latency::Connect => false,
        }
    }

    fn link_ledger(&self, fleet: Option<FleetId>) -> LinkLedger {
        let tracks = self.plan.fleets.iter().zip(0u8..=u8::MAX);
        let is_its = |at: u8| fleet.is_none_or(|fleet| fleet.0 == at);
        let wanted = tracks
            .filter(|(_, at)| is_its(*at))
            .map(|(track, _)| u64::from(track.links));
        let of = |is_wanted: fn(&WindowKey) -> bool| links(self.windows, fleet, is_wanted).counts;
        let all = of(|_| true);
        let before = of(|key| key.phase == Phase::Connect);
        let loaded = of(|key| key.phase != Phase::Settle);
        let own = self
            .account
            .filter(|_| fleet.is_none())
            .map(|account| &account.links);
        LinkLedger {
            wanted: wanted.sum(),
            up_at_start: before.usable(),
            opened: own.map_or(all.opened, |own| own.opened),
            connected: all.connected,
            connect_failures: by_name(&all.failures),
            timed_out_by_us: all.timed_out_by_us,
            down_by_us_at_start: before.down_by_us.saturating_sub(before.down_by_us_no_more),
            disconnects: by_name(&all.disconnects),
            ended_by_platform: by_name(&loaded.disconnects.only(Cause::is_of_platform)),
            last_sent: by_name(&all.last_sent),
            open_at_end: own.map(|own| own.open_at_end),
            counters: own.map(|own| own.counters.known()).unwrap_or_default(),
            targets: own.map(|own| own.targets.clone()).unwrap_or_default(),
        }
    }
}

/// The times of the measured cohort.
fn times(streams: &[&StreamClosed]) -> TimeSums {
    let mut sum = TimeSums::default();
    let measured = streams.iter().map(|stream| &stream.gathered.measured);
    measured.for_each(|gathered| sum.merge(&gathered.uplink.times));
    sum
}

/// Copies that may be of another message.
fn unsure(streams: &[&StreamClosed]) -> u64 {
    streams.iter().map(|stream| stream.unsure()).sum()
}

/// The residue of all ledgers of the run; none if one of them cannot be known.
fn residue_of(run: &ScopeSummary) -> Option<u64> {
    let uplink = run.uplink.residue.zip(run.measured.residue);
    let command = run.command.as_ref();
    let command = command.map_or(Some(0), |command| command.ledger.residue)?;
    let reception = run.reception.as_ref();
    let reception = reception.map_or(Some(0), |reception| reception.ledger.residue)?;
    uplink.map(|(a, b)| a + b + command + reception)
}

/// The messages that a table of latencies is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The measured cohort.
    Measured,
    /// Messages kept apart as cold, wherever they were due: with a warm-up the first message of a
    /// device lies in it.
    Cold,
    /// The measured cohort without those.
    Warm,
}

impl Part {
    pub(crate) fn holds(self, key: &WindowKey) -> bool {
        match self {
            Self::Measured => key.phase == Phase::Measure,
            Self::Cold => key.cold,
            Self::Warm => key.phase == Phase::Measure && !key.cold,
        }
    }

    fn censored(self, sums: &BackendSums) -> &Distribution {
        match self {
            Self::Measured => &sums.censored,
            Self::Cold => &sums.censored_cold,
            Self::Warm => &sums.censored_warm,
        }
    }
}

/// Number of messages that count as above without a time, and the number of all.
fn missing_of(stream: &StreamClosed, latency: Latency, backend: Option<BackendId>) -> (u64, u64) {
    let ledger = &stream.ledgers.measured;
    let outcomes = stream.gathered.measured.outcomes();
    let scheduled = ledger.scheduled.unwrap_or_else(|| outcomes.finals());
    let unanswered = ledger.timed_out + ledger.broken + ledger.in_flight;
    match latency {
        Latency::Response => (ledger.shed + unanswered, scheduled),
        Latency::Service => (unanswered, outcomes.sent),
        Latency::Lateness => (0, outcomes.taken),
        Latency::Held => (0, outcomes.sent),
        Latency::EndToEnd => missing_end_to_end(stream, backend, scheduled),
        Latency::Connect => (0, 0),
    }
}

fn missing_end_to_end(
    stream: &StreamClosed,
    backend: Option<BackendId>,
    scheduled: u64,
) -> (u64, u64) {
    let at = backend.map_or(0, BackendId::index);
    let seen = stream.gathered.measured.arrivals.get(at);
    let undated = seen.map_or(0, |seen| seen.undated);
    match stream.sums.as_ref().and_then(|sums| sums.backends.get(at)) {
        Some(sums) => {
            let figures = &sums.figures.measured;
            let rejected = figures.of(State::Rejected);
            let n = scheduled.saturating_sub(rejected.absent + rejected.outstanding);
            let arrived: u64 = State::SENT
                .iter()
                .map(|state| figures.of(*state).arrived)
                .sum();
            (n.saturating_sub(arrived) + undated, n)
        }
        None => {
            let n = scheduled.saturating_sub(stream.ledgers.measured.rejected);
            (n.saturating_sub(seen.map_or(0, |seen| seen.arrived_due)), n)
        }
    }
}

fn sum_above(parts: Vec<Above>) -> Option<Above> {
    parts.into_iter().reduce(|sum, part| Above {
        above: sum.above + part.above,
        above_lower: sum.above_lower + part.above_lower,
        missing: sum.missing + part.missing,
        n: sum.n + part.n,
        ..sum
    })
}

pub(crate) fn view(
    known: Distribution,
    censored: Distribution,
    can_be_censored: bool,
) -> LatencyView {
    let all_due = can_be_censored.then(|| Percentiles::of_all_due(&known, &censored));
    let figures = LatencyFigures {
        count: known.count,
        censored: censored.count,
        above_top: known.above_top,
        mean_us: known.mean_us(),
        percentiles: Percentiles::of(&known),
        max_us: (known.count > 0).then_some(known.max_us),
        all_due,
        lower: None,
    };
    LatencyView {
        figures,
        known,
        censored,
    }
}
