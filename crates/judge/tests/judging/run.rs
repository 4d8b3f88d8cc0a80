//! A run made of messages, and summed up independently of any recorder.

use std::collections::BTreeMap;

use muster_judge::{
    Ending, Evidence, GeneratorHealth, Hints, Hold, Latency, ResourceOutlook, RuleName,
    RuleOutcome, RuleResult, Rules, Scope, SloBound, StepVerdict, StreamEvidence, StreamRole,
    Verdict, Warning, judge, judge_step,
};
use muster_measure::{
    Above, ArrivalFigures, ArrivalRow, Arrivals, BackendLedger, DeliverySecond, DeliverySeconds,
    Distribution, Flow, Latency as Kept, LatencyTable, LatencyView, Ledger, LinkLedger, Outcomes,
    Phase, Rates, Scope as Measured, ScopeSummary, SecondRow, State, Summary, TimeSums, Timeline,
    WindowDelta, WindowKey,
};
use muster_model::{
    BackendId, Cause, FleetId, Listening, Micros, Outcome, Promise, Rate, StreamId,
};

/// Origin of every run here, in seconds.
pub(crate) const ORIGIN: u64 = 2;
/// Start of the measured phase of every run here, in seconds.
pub(crate) const MEASURE: u64 = 4;

/// One message and its whole life, in microseconds since T0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) due: u64,
    pub(crate) late: u64,
    pub(crate) held: u64,
    pub(crate) ended: u64,
    pub(crate) outcome: Outcome,
    pub(crate) seen: Option<u64>,
    pub(crate) outstanding: bool,
    /// The part of the response that may be the generator's own.
    pub(crate) own: u64,
    /// The part of the end-to-end time that may be the consumer's own.
    pub(crate) own_seen: u64,
}

impl Message {
    pub(crate) fn state(&self) -> State {
        State::from(&self.outcome)
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.state() != State::Shed
    }

    fn is_answered(&self) -> bool {
        matches!(self.state(), State::Accepted | State::Rejected)
    }

    fn is_measured(&self) -> bool {
        self.due >= MEASURE * 1_000_000
    }

    /// Ends the message with `outcome` and without an arrival.
    pub(crate) fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.seen = None;
    }
}

/// A run of one stream, one fleet and one backend.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) rules: Rules,
    pub(crate) messages: Vec<Message>,
    pub(crate) rate: u64,
    pub(crate) measure_s: u64,
    pub(crate) links: LinkLedger,
    pub(crate) windows: WindowDelta,
    pub(crate) health: GeneratorHealth,
    pub(crate) ending: Ending,
    pub(crate) is_closed: bool,
    pub(crate) residue: Option<u64>,
    pub(crate) holds: Option<Vec<Hold>>,
    pub(crate) backend: String,
    pub(crate) is_part: bool,
    pub(crate) listening: Listening,
    pub(crate) found: Vec<Warning>,
    pub(crate) resources: Vec<ResourceOutlook>,
    pub(crate) reason_strings: BTreeMap<String, String>,
    pub(crate) hints: Hints,
    pub(crate) promise: Promise,
    pub(crate) is_delivery_seen: bool,
    /// True if the backend is a store that was read back.
    pub(crate) is_store: bool,
}

impl Run {
    /// `rate` messages a second, each taken at once, answered after 10 ms and seen after 12 ms.
    pub(crate) fn healthy(rate: u64, measure_s: u64) -> Self {
        let count = rate * (MEASURE - ORIGIN + measure_s);
        let messages = (0..count).map(|n| {
            let due = ORIGIN * 1_000_000 + n * 1_000_000 / rate;
            Message {
                due,
                late: 20,
                held: 10,
                ended: due + 10_000,
                outcome: Outcome::Accepted,
                seen: Some(due + 12_000),
                outstanding: false,
                own: 0,
                own_seen: 0,
            }
        });
        Self {
            rules: Rules::builder(true).build(),
            messages: messages.collect(),
            rate,
            measure_s,
            links: LinkLedger {
                wanted: 100,
                up_at_start: 100,
                opened: 100,
                connected: 100,
                open_at_end: Some(100),
                ..LinkLedger::default()
            },
            windows: links(&[(1, 100, 0)]),
            health: GeneratorHealth::default(),
            ending: Ending::Planned,
            is_closed: false,
            residue: Some(0),
            holds: None,
            backend: "app".to_owned(),
            is_part: false,
            listening: Listening::until(Micros::from_secs(MEASURE + measure_s + 20)),
            found: Vec::new(),
            resources: Vec::new(),
            reason_strings: BTreeMap::new(),
            hints: Hints::default(),
            promise: Promise::Enqueued,
            is_delivery_seen: true,
            is_store: false,
        }
    }

    /// Replaces the rules by those that name this beside the defaults.
    pub(crate) fn names(mut self, bounds: &[SloBound]) -> Self {
        let builder = Rules::builder(true);
        self.rules = bounds
            .iter()
            .fold(builder, |rules, bound| rules.slo(Scope::Run, *bound))
            .build();
        self
    }

    /// Replaces the rules by those that name this and switch the defaults off.
    pub(crate) fn names_only(mut self, bounds: &[SloBound]) -> Self {
        let defaults = [
            RuleName::Loss,
            RuleName::FailureRatio,
            RuleName::Connected,
            RuleName::Disconnects,
        ];
        let off = defaults
            .iter()
            .filter(|rule| !bounds.iter().any(|bound| bound.name() == **rule));
        let builder = off.fold(Rules::builder(true), |rules, rule| {
            rules.any(Scope::Run, *rule)
        });
        self.rules = bounds
            .iter()
            .fold(builder, |rules, bound| rules.slo(Scope::Run, *bound))
            .build();
        self
    }

    /// The messages of the measured cohort.
    pub(crate) fn measured(&mut self) -> impl Iterator<Item = &mut Message> {
        self.messages
            .iter_mut()
            .filter(|message| message.is_measured())
    }

    pub(crate) fn judged(&self) -> Verdict {
        self.judged_by(&self.summary())
    }

    /// The verdict on figures that somebody else summed up.
    pub(crate) fn judged_by(&self, summary: &Summary) -> Verdict {
        self.judged_streams(summary, 1)
    }

    /// The verdict on so many streams of the fleet, which are all planned alike.
    pub(crate) fn judged_streams(&self, summary: &Summary, streams: usize) -> Verdict {
        self.judged_roles(summary, &vec![(FleetId(0), StreamRole::Uplink); streams])
    }

    /// The verdict on streams of these fleets and roles.
    pub(crate) fn judged_roles(
        &self,
        summary: &Summary,
        roles: &[(FleetId, StreamRole)],
    ) -> Verdict {
        self.with_evidence(summary, roles, |evidence| judge(&self.rules, evidence))
    }

    /// The verdict on a step of one stream of the fleet.
    pub(crate) fn judged_step(&self, whole: &Summary, step: &Summary) -> Option<StepVerdict> {
        let roles = [(FleetId(0), StreamRole::Uplink)];
        self.with_evidence(whole, &roles, |run| judge_step(&self.rules, run, step))
    }

    fn with_evidence<T>(
        &self,
        summary: &Summary,
        roles: &[(FleetId, StreamRole)],
        judge: impl FnOnce(&Evidence<'_>) -> T,
    ) -> T {
        let planned = Hold {
            from: Micros::from_secs(MEASURE),
            until: Micros::from_secs(MEASURE + self.measure_s),
            offered: Rate::per_second(self.rate as f64).expect("a rate is finite and not negative"),
        };
        let stream = |(at, (fleet, role)): (usize, &(FleetId, StreamRole))| StreamEvidence {
            role: *role,
            name: match at {
                0 => "meters/readings".to_owned(),
                at => format!("meters/stream-{at}"),
            },
            fleet: *fleet,
            promise: self.promise,
            is_delivery_seen: self.is_delivery_seen,
            is_closed: self.is_closed,
            holds: self.holds.clone().unwrap_or_else(|| vec![planned]),
        };
        let streams: Vec<StreamEvidence> = roles.iter().enumerate().map(stream).collect();
        let evidence = Evidence {
            summary,
            windows: &self.windows,
            health: &self.health,
            streams: &streams,
            fleets: &["meters".to_owned()],
            reason_strings: &self.reason_strings,
            hints: &self.hints,
            backends: std::slice::from_ref(&self.backend),
            ending: &self.ending,
            is_part: self.is_part,
            found: &self.found,
            resources: &self.resources,
        };
        judge(&evidence)
    }

    pub(crate) fn summary(&self) -> Summary {
        let scope = self.scope();
        let of = |measured: Measured| ScopeSummary {
            scope: measured,
            ..scope.clone()
        };
        let uplink = figures(self.messages.iter());
        let measured = figures(self.messages.iter().filter(|m| m.is_measured()));
        let backend = BackendLedger {
            is_store: self.is_store,
            consumed: uplink.arrived,
            uplink,
            measured,
            streams: vec![uplink],
            streams_measured: vec![measured],
            still_delivering_per_s: 50,
            ..BackendLedger::default()
        };
        Summary {
            timeline: Timeline {
                origin: Micros::from_secs(ORIGIN),
                measure: Micros::from_secs(MEASURE),
                settle: Micros::from_secs(MEASURE + self.measure_s),
            },
            end: self.end(),
            listening: self.listening,
            has_one_clock: true,
            measured_s: self.measure_s as f64,
            fleets: vec![of(Measured::Fleet(FleetId(0)))],
            streams: vec![of(Measured::Stream(StreamId(0)))],
            groups: Vec::new(),
            run: scope,
            backends: vec![backend],
            residue: self.residue,
        }
    }

    /// The end of settling, so long after the last due that whatever is absent is lost.
    pub(crate) fn end(&self) -> Micros {
        Micros::from_secs(MEASURE + self.measure_s + 20)
    }

    fn scope(&self) -> ScopeSummary {
        let is_known = self.residue.is_some();
        let measured: Vec<Message> = self
            .messages
            .iter()
            .copied()
            .filter(Message::is_measured)
            .collect();
        ScopeSummary {
            command: None,
            reception: None,
            scope: Measured::Run,
            uplink: ledger(&self.messages, is_known),
            measured: ledger(&measured, is_known),
            rates: Rates::default(),
            times: times(&measured),
            latency: latencies(&measured, self.end().0),
            cold: None,
            warm: None,
            unsure_by_order: 0,
            above: self.counters(&measured),
            delivery: self.delivery(&measured),
            series: self.series(),
            links: self.links.clone(),
        }
    }

    fn counters(&self, measured: &[Message]) -> Vec<Above> {
        let all = [
            (Latency::Response, Kept::Response, None),
            (Latency::Service, Kept::Service, None),
            (Latency::Lateness, Kept::Lateness, None),
            (Latency::EndToEnd, Kept::EndToEnd, Some(BackendId(0))),
        ];
        let mut counters = Vec::new();
        for (of, kept, backend) in all {
            for bound in self.rules.thresholds(of, FleetId(0), StreamId(0)) {
                let (above, missing, n) = counted(kept, bound.0, measured);
                let above_lower = lower_above(kept, bound.0, measured);
                counters.push(Above {
                    latency: kept,
                    backend,
                    bound,
                    above,
                    above_lower,
                    missing,
                    n,
                });
            }
        }
        counters
    }

    fn delivery(&self, measured: &[Message]) -> Vec<DeliverySeconds> {
        let bounds = self
            .rules
            .thresholds(Latency::EndToEnd, FleetId(0), StreamId(0));
        let of_bound = |bound: Micros| {
            let seconds = measured.chunk_by(|a, b| a.due / 1_000_000 == b.due / 1_000_000);
            let seconds = seconds.map(|of| {
                let (above, missing, n) = counted(Kept::EndToEnd, bound.0, of);
                DeliverySecond {
                    second: (of[0].due / 1_000_000) as u32,
                    lateness_max_us: of.iter().map(|m| m.late).max().unwrap_or(0),
                    above,
                    above_lower: lower_above(Kept::EndToEnd, bound.0, of),
                    missing,
                    n,
                }
            });
            DeliverySeconds {
                backend: BackendId(0),
                bound,
                seconds: seconds.collect(),
            }
        };
        bounds.into_iter().map(of_bound).collect()
    }

    fn series(&self) -> Vec<SecondRow> {
        let settle = MEASURE + self.measure_s;
        let last = self
            .messages
            .iter()
            .map(|m| m.ended.max(m.seen.unwrap_or(0)))
            .max();
        let last = last.unwrap_or(0) / 1_000_000;
        let mut rows: Vec<SecondRow> = (0..=last.max(settle))
            .map(|second| empty(second, settle, self.rate))
            .collect();
        for message in &self.messages {
            let due = &mut rows[(message.due / 1_000_000) as usize];
            add_due(due, message);
            let ended = &mut rows[(message.ended / 1_000_000) as usize];
            ended.flow.ended[message.state().index()] += 1;
            if message.is_sent() {
                let sent = message.due + message.late + message.held;
                // What goes out after the last row is in none.
                if let Some(row) = rows.get_mut((sent / 1_000_000) as usize) {
                    row.flow.sent += 1;
                }
            }
            if let Some(seen) = message.seen {
                rows[(seen / 1_000_000) as usize].arrivals[0].arrived += 1;
            }
        }
        for row in &mut rows {
            let of = |m: &&Message| m.due / 1_000_000 == u64::from(row.second);
            let mut late = Distribution::default();
            // Messages are in order of due.
            let from = self
                .messages
                .partition_point(|m| m.due / 1_000_000 < u64::from(row.second));
            let due = self.messages[from..].iter().take_while(of);
            due.for_each(|m| late.record(Micros(m.late)));
            row.lateness_p99_us = late.quantile_us(0.99).filter(|_| late.count > 0);
            row.lateness_max_us = (late.count > 0).then_some(late.max_us);
        }
        rows
    }
}

fn empty(second: u64, settle: u64, rate: u64) -> SecondRow {
    let phase = match second {
        s if s < ORIGIN => Phase::Connect,
        s if s < MEASURE => Phase::WarmUp,
        s if s < settle => Phase::Measure,
        _ => Phase::Settle,
    };
    let is_loaded = matches!(phase, Phase::WarmUp | Phase::Measure);
    SecondRow {
        second: second as u32,
        phase,
        is_whole: true,
        offered: Some(if is_loaded { rate } else { 0 }),
        due: Outcomes::default(),
        refused_unawaited_due: 0,
        flow: Flow::default(),
        arrivals: vec![ArrivalRow::default()],
        lateness_p99_us: None,
        lateness_max_us: None,
        response: Distribution::default(),
        lower: Distribution::default(),
        censored: Distribution::default(),
        end_to_end: Distribution::default(),
    }
}

fn add_due(row: &mut SecondRow, message: &Message) {
    row.due.count(&message.outcome);
    let took = Micros(message.ended - message.due);
    match message.is_answered() {
        true => {
            row.response.record(took);
            row.lower.record(took - Micros(message.own));
        }
        false => row.censored.record(took),
    }
    let at = &mut row.arrivals[0];
    match (message.seen, message.state()) {
        (Some(seen), _) => {
            at.arrived_due += 1;
            row.end_to_end.record(Micros(seen - message.due));
        }
        (None, State::Accepted | State::Unacknowledged) if message.outstanding => {
            at.outstanding_due += 1;
        }
        (None, State::Accepted | State::Unacknowledged) => at.lost_due += 1,
        (None, State::Rejected) => at.rejected_absent_due += 1,
        (None, State::TimedOut | State::Broken | State::InFlight) if message.outstanding => {}
        (None, State::TimedOut | State::Broken | State::InFlight) => at.failed_absent_due += 1,
        (None, State::Shed) => {}
    }
}

fn ledger(messages: &[Message], is_known: bool) -> Ledger {
    let of = |state: State| messages.iter().filter(|m| m.state() == state).count() as u64;
    let table = figures(messages.iter()).table;
    let row = |state: State| *table.row(state).expect("a state of what was sent");
    let mut shed_by_cause = BTreeMap::new();
    for message in messages {
        if let Outcome::Shed(cause) = message.outcome {
            *shed_by_cause.entry(cause.name().to_owned()).or_default() += 1;
        }
    }
    let known = |count: u64| is_known.then_some(count);
    let waiting = row(State::Accepted).outstanding + row(State::Unacknowledged).outstanding;
    Ledger {
        scheduled: known(messages.len() as u64),
        shed: of(State::Shed),
        shed_by_cause,
        sent: messages.len() as u64 - of(State::Shed),
        accepted: of(State::Accepted),
        rejected: of(State::Rejected),
        timed_out: of(State::TimedOut),
        broken: of(State::Broken),
        unacknowledged: of(State::Unacknowledged),
        in_flight: of(State::InFlight),
        arrivals: Arrivals {
            lost: known(row(State::Accepted).absent),
            lost_unacknowledged: known(row(State::Unacknowledged).absent),
            outstanding: known(waiting),
            ..Arrivals::default()
        },
        ..Ledger::default()
    }
    .with_failed()
}

fn figures<'a>(messages: impl Iterator<Item = &'a Message>) -> ArrivalFigures {
    let mut figures = ArrivalFigures::default();
    for message in messages.filter(|message| message.is_sent()) {
        let row = &mut figures.table.rows[message.state().index()];
        match (message.seen, message.outstanding) {
            (Some(_), _) => row.arrived += 1,
            (None, true) => row.outstanding += 1,
            (None, false) => row.absent += 1,
        }
        figures.arrived += u64::from(message.seen.is_some());
    }
    figures
}

/// Windows in which so many links came up and ended in these seconds.
pub(crate) fn links(seconds: &[(u32, u64, u64)]) -> WindowDelta {
    let mut windows = WindowDelta::default();
    for (second, connected, ended) in seconds {
        let key = WindowKey {
            second: *second,
            phase: Phase::Connect,
            cold: false,
        };
        let window = windows.links.entry((FleetId(0), key)).or_default();
        window.counts.connected = *connected;
        window.counts.disconnects.add(Cause::PeerClosed, *ended);
    }
    windows
}

/// Latencies of the measured cohort: what has no end was given up when it ended, what was never
/// seen was not seen until the run's end.
fn times(messages: &[Message]) -> TimeSums {
    let mut sum = TimeSums::default();
    for message in messages {
        sum.taken_us += message.ended - message.due;
        sum.own_us += message.own;
    }
    sum
}

fn latencies(messages: &[Message], end: u64) -> LatencyTable {
    let view = |time: &dyn Fn(&Message) -> Option<Result<u64, u64>>| {
        let mut view = LatencyView::default();
        for message in messages {
            match time(message) {
                Some(Ok(known)) => view.known.record(Micros(known)),
                Some(Err(at_least)) => view.censored.record(Micros(at_least)),
                None => {}
            }
        }
        Some(view)
    };
    let response = |m: &Message| {
        let took = m.ended - m.due;
        Some(if m.is_answered() { Ok(took) } else { Err(took) })
    };
    let lower = |m: &Message| {
        let took = m.ended - m.due;
        Some(if m.is_answered() {
            Ok(took - m.own)
        } else {
            Err(took)
        })
    };
    let end_to_end = |m: &Message| match (m.seen, m.state()) {
        (Some(seen), _) => Some(Ok(seen - m.due)),
        (None, State::Rejected) => None,
        (None, _) => Some(Err(end - m.due)),
    };
    LatencyTable {
        response: view(&response),
        response_lower: view(&lower),
        lateness: view(&|m| Some(Ok(m.late))),
        end_to_end: view(&end_to_end),
        ..LatencyTable::default()
    }
}

/// Above, missing and n of one bound, by the words of docs/semantics.md#percentile-rules.
fn counted(of: Kept, bound: u64, messages: &[Message]) -> (u64, u64, u64) {
    let count = |is: &dyn Fn(&Message) -> bool| messages.iter().filter(|m| is(m)).count() as u64;
    let all = messages.len() as u64;
    match of {
        Kept::Response => (
            count(&|m| m.is_answered() && m.ended - m.due > bound),
            count(&|m| !m.is_answered()),
            all,
        ),
        Kept::Service => (
            count(&|m| m.is_answered() && m.ended.saturating_sub(m.due + m.late + m.held) > bound),
            count(&|m| m.is_sent() && !m.is_answered()),
            count(&Message::is_sent),
        ),
        Kept::EndToEnd => (
            count(&|m| m.seen.is_some_and(|seen| seen - m.due > bound)),
            count(&|m| m.seen.is_none() && m.state() != State::Rejected),
            all - count(&|m| m.seen.is_none() && m.state() == State::Rejected),
        ),
        Kept::Lateness => (count(&|m| m.late > bound), 0, all),
        Kept::Held | Kept::Connect => (0, 0, 0),
    }
}

/// Above one bound by the lower times.
fn lower_above(of: Kept, bound: u64, messages: &[Message]) -> u64 {
    let without_own: Vec<Message> = messages
        .iter()
        .map(|m| Message {
            ended: m.ended - m.own,
            seen: m.seen.map(|seen| seen - m.own_seen),
            ..*m
        })
        .collect();
    match of {
        Kept::Response | Kept::Service | Kept::EndToEnd => counted(of, bound, &without_own).0,
        Kept::Lateness | Kept::Held | Kept::Connect => counted(of, bound, messages).0,
    }
}

/// The one rule of that name.
pub(crate) fn rule<'a>(verdict: &'a Verdict, name: &str) -> &'a RuleResult {
    let mut named = verdict.rules.iter().filter(|rule| rule.rule == name);
    let found = named
        .next()
        .unwrap_or_else(|| panic!("no rule {name}: {verdict:#?}"));
    assert!(named.next().is_none(), "two rules {name}");
    found
}

/// The names of the rules with that outcome.
pub(crate) fn failed(verdict: &Verdict) -> Vec<&str> {
    let failed = verdict
        .rules
        .iter()
        .filter(|rule| rule.outcome == RuleOutcome::Fail);
    failed.map(|rule| rule.rule.as_str()).collect()
}
