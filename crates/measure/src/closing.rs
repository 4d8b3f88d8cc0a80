//! Closes the account: from merged windows, sets and accounts to ledgers and their residue.

use muster_model::{BackendId, DeviceSample, Listening, Micros, StreamId};

use crate::cohort::{Cohort, PerCohort};
use crate::command::CommandsClosed;
use crate::equations::{Equations, Row, residue};
use crate::gather::{Gathered, copies, links};
use crate::lost::AbsentIds;
use crate::merge::sum_of;
use crate::per_device_close::{CloseInputs, StreamSums};
use crate::reception::ReceptionsClosed;
use crate::{
    Account, ArrivalFigures, BackendLedger, Calendar, CopyCounts, CountBy, Identity, Ledger,
    RecorderPlan, State, StreamAccount, StreamTrack, Timeline, WindowDelta, WindowKey,
};

/// Everything that is known of a run when it has ended.
///
/// A run that was killed has windows only; then what needs identity sets, the session's own
/// account or the schedule is null, and so is the residue.
#[derive(Clone, Copy)]
pub struct Closing<'a> {
    /// Plan of what was recorded.
    pub plan: &'a RecorderPlan,
    /// The windows of all processes, merged.
    pub windows: &'a WindowDelta,
    /// The identity sets of all recorders, merged.
    pub identity: Option<&'a Identity>,
    /// The session's own accounts of all shards and consumers, merged.
    pub account: Option<&'a Account>,
    /// The schedules.
    pub calendar: Option<&'a dyn Calendar>,
    /// Beginnings of the phases.
    pub timeline: Timeline,
    /// Instant at which settling ended.
    pub end: Micros,
    /// Listening of every consumer: until before the end where one of several parts left before the
    /// others.
    pub listening: Listening,
    /// Instant until which every device received; before the end if one of several parts left early.
    pub devices_until: Micros,
    /// True if senders and consumers read one clock. Otherwise nothing is known about the time
    /// between a due instant and the instant at which a copy was seen.
    pub has_one_clock: bool,
    /// The `quiet` of settling: an absent message is lost if its backend was silent so long, or
    /// was overtaken so long before the end.
    pub quiet: Micros,
    /// Number of ranges of lost ids listed for each backend, at most.
    pub lost_ranges_most: usize,
}

/// Figures derived for one stream before scopes are made.
pub(crate) struct StreamClosed {
    pub(crate) stream: StreamId,
    pub(crate) gathered: PerCohort<Gathered>,
    pub(crate) sums: Option<StreamSums>,
    pub(crate) ledgers: PerCohort<Ledger>,
    pub(crate) commands: Option<CommandsClosed>,
    pub(crate) receptions: Option<ReceptionsClosed>,
}

/// Figures derived for the run before scopes are made.
pub(crate) struct Closed {
    pub(crate) streams: Vec<StreamClosed>,
    pub(crate) backends: Vec<BackendLedger>,
    /// Equations about backends and links, which are no stream's.
    pub(crate) equations: Equations,
}

impl<'a> Closing<'a> {
    /// Derives the figures; `steps` are the seconds in which the steps of the run begin.
    pub(crate) fn close(&self, steps: &[u32]) -> Closed {
        let mut absent = vec![AbsentIds::default(); usize::from(self.plan.backends)];
        let tracks = self.plan.streams.iter().zip(0u8..=u8::MAX);
        let streams: Vec<_> = tracks
            .map(|(track, at)| self.close_stream((StreamId(at), track), steps, &mut absent))
            .collect();
        let mut equations = Equations::default();
        let backends = absent.into_iter().zip(0u8..=u8::MAX).map(|(absent, at)| {
            self.close_backend(BackendId(at), &streams, absent, &mut equations)
        });
        let backends = backends.collect();
        self.close_links(&mut equations);
        Closed {
            streams,
            backends,
            equations,
        }
    }

    /// Returns whether everything is there that the residue needs.
    pub(crate) fn is_whole(&self) -> bool {
        self.inputs(&[]).is_some() && self.account.is_some()
    }

    fn inputs<'b>(&self, steps: &'b [u32]) -> Option<CloseInputs<'b>>
    where
        'a: 'b,
    {
        Some(CloseInputs {
            steps,
            identity: self.identity?,
            calendar: self.calendar?,
            cold: self.plan.cold,
            measure: self.timeline.measure,
            settle: self.timeline.settle,
            end: self.end,
            listening: self.listening,
            quiet: self.quiet,
            plan: self.plan,
            lost_ranges_most: self.lost_ranges_most,
        })
    }

    fn close_stream(
        &self,
        (stream, track): (StreamId, &StreamTrack),
        steps: &[u32],
        absent: &mut [AbsentIds],
    ) -> StreamClosed {
        let gather = |cohort: Cohort| {
            let is_wanted = move |key: &WindowKey| cohort.holds(key);
            Gathered::of(self.windows, stream, self.plan.backends, is_wanted)
        };
        let gathered = PerCohort {
            uplink: gather(Cohort::Uplink),
            measured: gather(Cohort::Measured),
        };
        let sums = self
            .inputs(steps)
            .map(|inputs| StreamSums::of(&inputs, stream, track, absent));
        let mut closed = StreamClosed {
            stream,
            gathered,
            sums,
            ledgers: PerCohort::default(),
            commands: self.close_commands(stream),
            receptions: self.close_receptions(stream),
        };
        for cohort in Cohort::BOTH {
            let mut ledger = self.ledger(&closed, track, cohort);
            if let Some(equations) = self.stream_equations(&closed, track, cohort) {
                ledger.residue = Some(equations.residue());
                ledger.equations = equations.broken;
            }
            *closed.ledgers.of_mut(cohort) = ledger;
        }
        closed
    }

    pub(crate) fn ledger(
        &self,
        closed: &StreamClosed,
        track: &StreamTrack,
        cohort: Cohort,
    ) -> Ledger {
        let gathered = closed.gathered.of(cohort);
        let (counts, outcomes) = (gathered.counts(), gathered.outcomes());
        let sums = closed.sums.as_ref();
        let states = sums.map_or(outcomes.states, |sums| *sums.states.of(cohort));
        let of = |state: State| states[state.index()];
        let own = self.own(closed.stream).filter(|_| cohort == Cohort::Uplink);
        let nominal = self.nominal(closed.stream, cohort);
        let scheduled = sums.map(|sums| self.scheduled(sums, closed.stream, track, cohort));
        let mut ledger = Ledger {
            nominal,
            scheduled,
            omitted: nominal.zip(scheduled).map(|(nominal, scheduled)| {
                if track.closed.is_some() {
                    nominal.saturating_sub(scheduled)
                } else {
                    0
                }
            }),
            shed: of(State::Shed),
            shed_by_cause: by_name(&outcomes.shed),
            sent: own.map_or(outcomes.sent, |own| own.sent.count),
            session: counts.session,
            accepted: of(State::Accepted),
            refused_unawaited: counts.refused_unawaited.total(),
            refused_unawaited_by_code: by_name(&counts.refused_unawaited),
            rejected: of(State::Rejected),
            rejected_by_code: by_name(&outcomes.rejected),
            timed_out: of(State::TimedOut),
            broken: of(State::Broken),
            broken_by_cause: by_name(&outcomes.broken),
            unacknowledged: of(State::Unacknowledged),
            in_flight: of(State::InFlight),
            ..Ledger::default()
        }
        .with_failed();
        match sums.map(|sums| sums.backends.first()) {
            Some(Some(backend)) => {
                set_arrivals(&mut ledger, backend.figures.of(cohort));
                let is_known =
                    track.deadline.is_some() && self.has_one_clock && closed.unsure() == 0;
                ledger.arrivals.late = is_known.then_some(backend.figures.of(cohort).late);
            }
            None if self.plan.timed() > 0 => {
                let seen = arrival_figures(closed, BackendId(0), cohort);
                ledger.arrivals.consumed = Some(seen.copies);
                ledger.arrivals.arrived = Some(seen.arrived);
            }
            Some(None) | None => {}
        }
        ledger
    }

    fn own(&self, stream: StreamId) -> Option<&'a StreamAccount> {
        self.account?.streams.get(stream.index())
    }

    fn nominal(&self, stream: StreamId, cohort: Cohort) -> Option<u64> {
        let calendar = self.calendar?;
        let all = calendar.nominal(stream, self.timeline.settle);
        match cohort {
            Cohort::Uplink => Some(all),
            Cohort::Measured => {
                Some(all.saturating_sub(calendar.nominal(stream, self.timeline.measure)))
            }
        }
    }

    /// The schedule's own count; for a closed loop, the count made when messages came due.
    fn scheduled(
        &self,
        sums: &StreamSums,
        stream: StreamId,
        track: &StreamTrack,
        cohort: Cohort,
    ) -> u64 {
        let own = self
            .own(stream)
            .filter(|_| track.closed.is_some() && cohort == Cohort::Uplink);
        own.map_or(*sums.scheduled.of(cohort), |own| own.scheduled.count)
    }

    fn stream_equations(
        &self,
        closed: &StreamClosed,
        track: &StreamTrack,
        cohort: Cohort,
    ) -> Option<Equations> {
        let (sums, own) = (closed.sums.as_ref()?, self.own(closed.stream)?);
        let facts = self.identity?.facts.streams.get(closed.stream.index())?;
        let mut equations = Equations::about(format!("stream {}", closed.stream.0));
        match cohort {
            Cohort::Uplink => {
                equations.schedule(sums, own);
                if track.closed.is_none() {
                    let nominal = self.nominal(closed.stream, cohort)?;
                    let name = "schedule of the stream = sum of its devices' schedules";
                    equations.counts(name, nominal, sums.scheduled.uplink);
                } else {
                    let name = "messages that came due";
                    equations.row(&Row::new(name, own.scheduled, facts.scheduled));
                }
                equations.states(sums, own, facts, closed.gathered.uplink.flow());
            }
            Cohort::Measured => {
                let name = "measured: scheduled = sum of final states";
                let finals = sums.states.measured.iter().sum();
                equations.counts(name, sums.scheduled.measured, finals);
                let sent = State::SENT
                    .iter()
                    .map(|state| sums.states.measured[state.index()]);
                let name = "measured: sent = sum of its final states";
                equations.counts(name, closed.gathered.measured.outcomes().sent, sent.sum());
            }
        }
        equations.windows_by_due(
            closed.gathered.of(cohort).outcomes(),
            sums.states.of(cohort),
        );
        for (backend, arrivals) in sums
            .backends
            .iter()
            .zip(&closed.gathered.of(cohort).arrivals)
        {
            let altered = self.identity?.corrupted();
            equations.table(backend.figures.of(cohort), sums.states.of(cohort), altered);
            if cohort == Cohort::Uplink {
                let copies = arrivals.arrived + arrivals.again;
                equations.counts("windows: copies", copies, backend.figures.uplink.copies);
            }
        }
        Some(equations)
    }

    fn close_backend(
        &self,
        backend: BackendId,
        streams: &[StreamClosed],
        absent: AbsentIds,
        equations: &mut Equations,
    ) -> BackendLedger {
        let counted = copies(self.windows, backend, |_| true);
        let read_of = self.plan.read_of(backend.index());
        let mut ledger = BackendLedger {
            is_store: read_of.is_some(),
            sample: read_of.filter(DeviceSample::is_part),
            consumed: counted.consumed,
            foreign: counted.foreign,
            unstamped: counted.unstamped,
            corrupted: counted.corrupted,
            lost_ids: absent.lost,
            overwritten_ids: absent.overwritten,
            split: self.identity.map_or(0, |identity| identity.split(backend)),
            ..BackendLedger::default()
        };
        for stream in streams {
            let figures = |cohort| arrival_figures(stream, backend, cohort);
            let (uplink, measured) = (figures(Cohort::Uplink), figures(Cohort::Measured));
            ledger.uplink.merge(&uplink);
            ledger.measured.merge(&measured);
            ledger.streams.push(uplink);
            ledger.streams_measured.push(measured);
        }
        if ledger.uplink.outstanding() > 0 {
            ledger.still_delivering_per_s = self.last_second(backend);
        }
        self.backend_equations(backend, (&mut ledger, streams), &counted, equations);
        ledger
    }

    fn backend_equations(
        &self,
        backend: BackendId,
        (ledger, streams): (&mut BackendLedger, &[StreamClosed]),
        counted: &CopyCounts,
        equations: &mut Equations,
    ) {
        let known = self
            .account
            .zip(self.identity)
            .and_then(|(account, identity)| {
                let at = backend.index();
                let own = account.backends.get(at)?;
                Some((
                    own,
                    identity.facts.backends.get(at)?,
                    identity.backends.get(at)?,
                ))
            });
        let Some((own, facts, seen)) = known else {
            return;
        };
        ledger.consumed = own.consumed;
        ledger.foreign = seen.foreign;
        ledger.unstamped = own.unstamped;
        ledger.corrupted = seen.corrupted;
        let mut about = Equations::about(format!("backend {}", backend.0));
        let parts = ledger.uplink.copies + ledger.foreign + ledger.unstamped;
        let name = "consumed = arrived + duplicates + duplicate_own + foreign + unstamped";
        about.counts(name, own.consumed, parts);
        about.row(&Row::new("copies with an id", own.read, facts.read));
        let unstamped = Row::of_counts("copies without an id", own.unstamped, facts.unstamped);
        about.row(&unstamped.window(counted.unstamped));
        let surplus: u64 = streams.iter().map(|of| of.surplus(backend)).sum();
        let first = ledger.uplink.arrived + ledger.split + surplus;
        about.counts("windows: first copies", self.first_copies(backend), first);
        about.counts("windows: consumed", counted.consumed, own.consumed);
        about.counts("windows: foreign", counted.foreign, seen.foreign);
        about.counts("windows: corrupted", counted.corrupted, seen.corrupted);
        equations.broken.append(&mut about.broken);
    }

    fn close_links(&self, equations: &mut Equations) {
        let Some((account, identity)) = self.account.zip(self.identity) else {
            return;
        };
        let (own, facts) = (&account.links, &identity.facts.links);
        let counted = links(self.windows, None, |_| true).counts;
        let mut about = Equations::about("links".to_owned());
        let tried = own.connected.count + own.failed.count;
        about.counts("opened = connected + connect_failures", own.opened, tried);
        let ended = own.disconnected.count + own.open_at_end;
        about.counts(
            "connected = disconnects + open at the end",
            own.connected.count,
            ended,
        );
        let failures = counted.failures.total();
        let disconnects = counted.disconnects.total();
        about.counts("windows: opened", counted.opened, own.opened);
        for row in [
            Row::new("connected", own.connected, facts.connected).window(counted.connected),
            Row::new("returned", own.returned, facts.returned),
            Row::new("connect_failures", own.failed, facts.failed).window(failures),
            Row::new("disconnects", own.disconnected, facts.disconnected).window(disconnects),
        ] {
            about.row(&row);
        }
        equations.broken.append(&mut about.broken);
    }

    fn first_copies(&self, backend: BackendId) -> u64 {
        let windows = &self.windows.arrivals;
        sum_of(windows, |(of, ..)| *of == backend).arrived
    }

    /// Copies of this run in the last whole second before the end.
    fn last_second(&self, backend: BackendId) -> u64 {
        let Some(second) = self.end.second().checked_sub(1) else {
            return 0;
        };
        let windows = &self.windows.arrivals;
        let last = sum_of(windows, |(of, _, key)| {
            *of == backend && key.second == second
        });
        last.arrived + last.again
    }
}

impl Closed {
    /// Contribution of the equations about backends and links to the residue; none if it cannot be
    /// known.
    pub(crate) fn residue(&self, is_whole: bool) -> Option<u64> {
        is_whole.then(|| residue(&self.equations.broken))
    }
}

/// The figures of a stream at a backend; of a killed run, what the windows saw arrive.
pub(crate) fn arrival_figures(
    stream: &StreamClosed,
    backend: BackendId,
    cohort: Cohort,
) -> ArrivalFigures {
    let sums = stream
        .sums
        .as_ref()
        .and_then(|sums| sums.backends.get(backend.index()));
    if let Some(sums) = sums {
        return *sums.figures.of(cohort);
    }
    let seen = stream.gathered.of(cohort).arrivals.get(backend.index());
    seen.map_or_else(ArrivalFigures::default, |seen| ArrivalFigures {
        copies: seen.arrived + seen.again,
        arrived: match cohort {
            Cohort::Uplink => seen.arrived,
            Cohort::Measured => seen.arrived_due,
        },
        late: seen.late,
        ..ArrivalFigures::default()
    })
}

fn set_arrivals(ledger: &mut Ledger, figures: &ArrivalFigures) {
    ledger.arrivals.consumed = Some(figures.copies);
    ledger.arrivals.arrived = Some(figures.arrived);
    ledger.arrivals.lost = Some(figures.lost());
    ledger.arrivals.lost_unacknowledged = Some(figures.lost_unacknowledged());
    ledger.arrivals.outstanding = Some(figures.outstanding());
    ledger.arrivals.duplicates = Some(figures.duplicates);
    ledger.arrivals.duplicate_own = Some(figures.duplicate_own);
    ledger.arrivals.reordered = Some(figures.reordered);
    ledger.arrivals.rejected_but_arrived = Some(figures.of(State::Rejected).arrived);
    ledger.arrivals.timed_out_but_arrived = Some(figures.of(State::TimedOut).arrived);
    ledger.arrivals.broken_but_arrived = Some(figures.of(State::Broken).arrived);
}

pub(crate) fn by_name<K: Ord + Copy + ToString>(
    counts: &CountBy<K>,
) -> std::collections::BTreeMap<String, u64> {
    counts
        .iter()
        .map(|(code, count)| (code.to_string(), count))
        .collect()
}
