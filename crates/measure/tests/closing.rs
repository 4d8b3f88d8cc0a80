//! Figures of a closed run in the cases that instants and bounds decide.

use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, FleetTrack, Latency, Percentiles, Phase,
    PublishedPlan, Recorder, RecorderPlan, Role, State, StreamTrack, Summary, WindowDelta,
};
use muster_model::{
    Arrival, Attempt, BackendId, Cause, ConnectFailure, ConsumerId, DeviceId, DeviceSample,
    FleetId, Integrity, LinkEvent, LinkFact, LinkId, Listening, MessageId, Micros, Outcome, Reason,
    RunId, ShedCause, StreamId,
};

use proptest::prelude::*;

const STREAM: StreamId = StreamId(0);
const BACKEND: BackendId = BackendId(0);
const ORIGIN: Micros = Micros(1_000_000);
const QUIET: Micros = Micros(3_000_000);

/// One device, a message every 100 ms: 10 of warm-up, then `measured`.
struct Tenths {
    measured: u32,
}

impl Calendar for Tenths {
    fn scheduled(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(10 + self.measured)
    }

    fn warm_up(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(10)
    }

    fn due(&self, _: StreamId, _: DeviceId, seq: u32) -> Option<Micros> {
        Some(due(seq))
    }

    fn nominal(&self, _: StreamId, until: Micros) -> u64 {
        let count = (until - ORIGIN).get().div_ceil(100_000);
        count.min(u64::from(10 + self.measured))
    }
}

fn due(seq: u32) -> Micros {
    ORIGIN + Micros(100_000 * u64::from(seq))
}

fn plan() -> RecorderPlan {
    plan_of(false)
}

fn plan_of(by_order: bool) -> RecorderPlan {
    RecorderPlan {
        run: RunId(1),
        warm_up: Micros::from_secs(1),
        measure: Micros::from_secs(2),
        streams: vec![StreamTrack {
            fleet: FleetId(0),
            first_device: DeviceId(0),
            devices: 1,
            most_per_device: 100,
            role: Role::Uplink,
            answers: true,
            closed: None,
            by_order,
            deadline: None,
            bounds: Bounds {
                response: vec![Micros::from_millis(50)],
                service: vec![Micros::from_millis(30), Micros::from_millis(50)],
                end_to_end: vec![Micros::from_millis(50)],
                ..Bounds::default()
            },
        }],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: 3,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

/// A recorder and the account beside it, told the same.
struct Line {
    plan: RecorderPlan,
    recorder: Recorder,
    account: Account,
    windows: WindowDelta,
}

impl Line {
    fn new() -> Self {
        Self::of(plan())
    }

    fn of(plan: RecorderPlan) -> Self {
        let mut recorder = Recorder::new(plan.clone());
        recorder.start(ORIGIN);
        Self {
            recorder,
            account: Account::new(&plan),
            plan,
            windows: WindowDelta::default(),
        }
    }

    fn id(seq: u32) -> MessageId {
        MessageId {
            run: RunId(1),
            device: DeviceId(0),
            stream: STREAM,
            seq,
        }
    }

    fn end(&mut self, seq: u32, took: Micros, outcome: Outcome) {
        self.end_own(seq, took, outcome, Micros::ZERO);
    }

    fn end_own(&mut self, seq: u32, took: Micros, outcome: Outcome, own: Micros) {
        let (id, due) = (Self::id(seq), due(seq));
        let is_sent = State::from(&outcome) != State::Shed;
        if is_sent {
            self.account.sent(&id);
        }
        self.account.ended(&id, &outcome, false);
        self.recorder.attempt(&Attempt {
            id,
            due,
            taken: Some(due),
            sent: is_sent.then_some(due),
            ended: due + took,
            outcome,
            resent: false,
            own,
        });
    }

    fn arrive(&mut self, seq: u32, consumer: u16, seen: Micros) {
        self.arrive_own(seq, consumer, seen, Micros::ZERO);
    }

    fn arrive_own(&mut self, seq: u32, consumer: u16, seen: Micros, own: Micros) {
        let id = Self::id(seq);
        self.account.consumed(BACKEND);
        self.account.read(BACKEND, Some(&id), Integrity::Intact);
        self.recorder.copies(BACKEND, seen).consumed += 1;
        self.recorder.arrival(&Arrival {
            id: Some(id),
            due: Some(due(seq)),
            seen,
            backend: BACKEND,
            consumer: ConsumerId(consumer),
            integrity: Integrity::Intact,
            own,
        });
    }

    fn link(&mut self, link: u32, at: Micros, event: LinkEvent) {
        let link = LinkId(link);
        match event {
            LinkEvent::Connected { .. } => self.account.connected(link),
            LinkEvent::Returned { is_kept } => self.account.returned(link, is_kept),
            LinkEvent::Failed(failure) => self.account.connect_failed(link, &failure),
            LinkEvent::Disconnected(cause) => self.account.disconnected(link, &cause),
            LinkEvent::LastSent { .. } => {}
        }
        self.recorder.link(&LinkFact {
            link,
            at,
            event,
            by_us: false,
        });
    }

    fn opened(&mut self, link: u32) {
        self.account.opened();
        self.recorder.opened(LinkId(link), Micros::ZERO);
    }

    fn close(self, measured: u32, end: Micros) -> Summary {
        self.close_heard(measured, end, Listening::until(end))
    }

    fn close_heard(self, measured: u32, end: Micros, listening: Listening) -> Summary {
        self.close_with(measured, end, (listening, true))
    }

    fn close_with(
        mut self,
        measured: u32,
        end: Micros,
        (listening, has_one_clock): (Listening, bool),
    ) -> Summary {
        let timeline = self.recorder.timeline();
        self.windows.merge(&self.recorder.flush(end));
        let identity = self.recorder.finish();
        let closing = Closing {
            plan: &self.plan,
            windows: &self.windows,
            identity: Some(&identity),
            account: Some(&self.account),
            calendar: Some(&Tenths { measured }),
            timeline,
            end,
            listening,
            devices_until: end,
            has_one_clock,
            quiet: QUIET,
            lost_ranges_most: 2,
        };
        closing.summary()
    }
}

fn accept_all(line: &mut Line, count: u32) {
    (0..count).for_each(|seq| line.end(seq, Micros::from_millis(20), Outcome::Accepted));
}

/// As by a consumer that loses a copy between its counter and its reader.
#[test]
fn a_copy_that_was_counted_and_not_read_leaves_a_residue() {
    let close = |lost: u64| {
        let mut line = Line::new();
        accept_all(&mut line, 30);
        (0..30).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(30)));
        for _ in 0..lost {
            line.account.consumed(BACKEND);
            line.recorder.copies(BACKEND, due(3)).consumed += 1;
        }
        line.close(20, Micros::from_secs(9)).residue
    };
    assert_eq!((close(0), close(1)), (Some(0), Some(1)));
}

/// Messages 12 and 29 never come. At the drain mark, 28 was the last that had; after it the
/// backend still delivers one, so it is not quiet.
fn overtaken(mark: bool) -> Summary {
    let mut line = Line::new();
    accept_all(&mut line, 30);
    for seq in (0..28).filter(|seq| *seq != 12) {
        line.arrive(seq, 0, due(seq) + Micros::from_millis(30));
    }
    if mark {
        line.recorder.mark_drain();
    }
    line.arrive(28, 0, Micros::from_secs(9));
    line.close(20, Micros::from_secs(10))
}

#[test]
fn absent_and_overtaken_before_the_mark_is_lost_and_the_rest_outstanding() {
    let summary = overtaken(true);
    let ledger = &summary.run.uplink;
    assert_eq!(
        (ledger.arrivals.lost, ledger.arrivals.outstanding),
        (Some(1), Some(1))
    );
    assert_eq!(summary.backends[0].lost_ids.lost[0].ranges, [[12, 12]]);
    assert_eq!(summary.residue, Some(0));
}

#[test]
fn without_a_mark_nothing_is_lost_while_the_backend_delivers() {
    let ledger = overtaken(false).run.uplink;
    assert_eq!(
        (ledger.arrivals.lost, ledger.arrivals.outstanding),
        (Some(0), Some(2))
    );
}

#[test]
fn what_is_absent_at_a_quiet_backend_is_lost() {
    let mut line = Line::new();
    accept_all(&mut line, 30);
    (0..25).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(30)));
    let end = due(24) + Micros::from_millis(30) + QUIET;
    let summary = line.close(20, end);
    assert_eq!(summary.run.uplink.arrivals.lost, Some(5));
    assert_eq!(summary.run.uplink.arrivals.outstanding, Some(0));
    assert_eq!(summary.backends[0].lost_ids.lost[0].ranges, [[25, 29]]);
    let lost_due: u64 = summary
        .run
        .series
        .iter()
        .map(|row| row.arrivals[0].lost_due)
        .sum();
    assert_eq!(lost_due, 5);
}

#[test]
fn a_backend_that_delivered_nothing_is_quiet_only_after_the_quiet_time() {
    for (short, lost, outstanding) in [(Micros(1), 0, 30), (Micros::ZERO, 30, 0)] {
        let mut line = Line::new();
        accept_all(&mut line, 30);
        let end = line.recorder.timeline().settle + QUIET - short;
        let ledger = line.close(20, end).run.uplink;
        assert_eq!(
            (ledger.arrivals.lost, ledger.arrivals.outstanding),
            (Some(lost), Some(outstanding))
        );
    }
}

#[test]
fn with_two_clocks_nobody_knows_how_long_a_delivery_took() {
    let close = |has_one_clock| {
        let mut line = Line::new();
        accept_all(&mut line, 30);
        (0..30).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(30)));
        let end = Micros::from_secs(20);
        line.close_with(20, end, (Listening::until(end), has_one_clock))
            .run
    };
    for has_one_clock in [true, false] {
        let run = close(has_one_clock);
        assert_eq!(run.latency.end_to_end.is_some(), has_one_clock);
        assert_eq!(
            run.above
                .iter()
                .any(|above| above.latency == Latency::EndToEnd),
            has_one_clock
        );
        assert_eq!(run.uplink.arrivals.arrived, Some(30));
    }
}

/// The device sheds message 3, the target refuses 12 and takes the others; 28 copies come, which
/// can be told apart by nothing but their order.
#[test]
fn by_order_what_was_shed_or_refused_is_neither_an_arrival_nor_makes_another_lost() {
    let close = |copies: u32| {
        let mut line = Line::of(plan_of(true));
        for seq in 0..30 {
            let outcome = match seq {
                3 => Outcome::Shed(ShedCause::Busy),
                12 => Outcome::Rejected(Reason::Coap(0xa3)),
                _ => Outcome::Accepted,
            };
            line.end(seq, Micros::from_millis(20), outcome);
        }
        (0..copies).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(130)));
        line.close(20, Micros::from_secs(20))
    };
    for (copies, lost, refused, again, unsure) in [
        (28, 0, 0, 0, 25),
        (25, 3, 0, 0, 25),
        (29, 0, 1, 0, 26),
        (31, 0, 1, 2, 31),
    ] {
        let summary = close(copies);
        let uplink = &summary.run.uplink;
        assert_eq!(summary.residue, Some(0), "{:?}", uplink.equations);
        let arrived = u64::from(copies) - again;
        assert_eq!(
            (uplink.arrivals.arrived, uplink.arrivals.lost),
            (Some(arrived), Some(lost))
        );
        assert_eq!(uplink.arrivals.rejected_but_arrived, Some(refused));
        assert_eq!(
            (uplink.arrivals.outstanding, uplink.arrivals.duplicates),
            (Some(0), Some(again))
        );
        assert_eq!(summary.run.unsure_by_order, unsure, "of {copies}");
        assert!(summary.run.latency.end_to_end.is_none());
    }
}

#[test]
fn by_how_much_copies_were_early_is_kept_where_end_to_end_times_are_not() {
    let mut line = Line::new();
    accept_all(&mut line, 3);
    line.arrive(0, 0, due(0) + Micros::from_millis(30));
    line.arrive(1, 0, due(1) - Micros::from_millis(7));
    line.arrive(2, 0, due(2) - Micros::from_millis(5));
    let mut windows = line.recorder.flush(Micros::from_secs(20));
    windows.forget_end_to_end();
    assert_eq!(windows.early(), Micros::from_millis(7));
}

#[test]
fn what_came_after_a_consumer_had_left_is_not_called_lost() {
    let mut line = Line::new();
    accept_all(&mut line, 30);
    let last = due(24) + Micros::from_millis(30);
    (0..25).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(30)));
    // One part listened for less than the quiet time, the other much longer.
    let left = Listening::until(last + QUIET - Micros(1));
    let ledger = line.close_heard(20, last + QUIET + QUIET, left).run.uplink;
    assert_eq!(
        (ledger.arrivals.lost, ledger.arrivals.outstanding),
        (Some(0), Some(5))
    );
}

#[test]
fn while_a_consumer_is_away_silence_makes_nothing_lost_but_what_was_overtaken() {
    let end = Micros::from_secs(20);
    let back = |since| Listening { since, until: end };
    for (listening, lost, outstanding) in [
        (Listening::deaf(end), 1, 5),
        (back(end - QUIET + Micros(1)), 1, 5),
        (back(end - QUIET), 6, 0),
    ] {
        let mut line = Line::new();
        accept_all(&mut line, 30);
        for seq in (0..25).filter(|seq| *seq != 12) {
            line.arrive(seq, 0, due(seq) + Micros::from_millis(30));
        }
        line.recorder.mark_drain();
        let ledger = line.close_heard(20, end, listening).run.uplink;
        let found = (ledger.arrivals.lost, ledger.arrivals.outstanding);
        assert_eq!(found, (Some(lost), Some(outstanding)), "{listening:?}");
    }
}

#[test]
fn what_the_device_gave_up_and_the_backend_may_still_deliver_has_not_failed_to_arrive() {
    let failed_absent = |mark: bool| -> u64 {
        let mut line = Line::new();
        (0..30).for_each(|seq| line.end(seq, Micros::from_millis(20), Outcome::TimedOut));
        for seq in (0..28).filter(|seq| *seq != 12) {
            line.arrive(seq, 0, due(seq) + Micros::from_millis(30));
        }
        if mark {
            line.recorder.mark_drain();
        }
        line.arrive(28, 0, Micros::from_secs(9));
        let summary = line.close(20, Micros::from_secs(10));
        let rows = summary.run.series.iter();
        rows.map(|row| row.arrivals[0].failed_absent_due).sum()
    };
    assert_eq!(failed_absent(true), 1, "12 was overtaken, 29 was not");
    assert_eq!(failed_absent(false), 0);
}

#[test]
fn a_consumer_that_lags_keeps_its_stream_outstanding() {
    let mut line = Line::new();
    accept_all(&mut line, 30);
    line.arrive(0, 1, due(1));
    (1..28)
        .filter(|seq| *seq != 12)
        .for_each(|seq| line.arrive(seq, 0, due(seq)));
    line.recorder.mark_drain();
    line.arrive(28, 0, Micros::from_secs(9));
    let ledger = line.close(20, Micros::from_secs(10)).run.uplink;
    assert_eq!(
        (ledger.arrivals.lost, ledger.arrivals.outstanding),
        (Some(0), Some(2))
    );
}

#[test]
fn lost_ids_are_bounded_and_their_count_is_not() {
    let mut line = Line::new();
    accept_all(&mut line, 30);
    (0..30)
        .step_by(2)
        .for_each(|seq| line.arrive(seq, 0, due(seq)));
    let summary = line.close(20, Micros::from_secs(20));
    let lost = &summary.backends[0].lost_ids;
    assert_eq!((lost.lost[0].ranges.len(), lost.truncated), (2, true));
    assert_eq!(summary.run.uplink.arrivals.lost, Some(15));
    assert_eq!(summary.run.measured.arrivals.lost, Some(10));
}

#[test]
fn exact_counters_hold_what_a_rule_needs() {
    let mut line = Line::new();
    accept_all(&mut line, 20);
    line.end(20, Micros::from_millis(50), Outcome::Accepted);
    line.end(21, Micros(50_001), Outcome::Accepted);
    line.end(22, Micros::from_secs(10), Outcome::TimedOut);
    line.end(23, Micros::from_millis(1), Outcome::Broken(Cause::Reset));
    line.end(
        24,
        Micros::from_millis(1),
        Outcome::Shed(ShedCause::Offline),
    );
    line.end(25, Micros::from_secs(10), Outcome::InFlight);
    for seq in 26..30 {
        let no = Outcome::Rejected(Reason::Mqtt(0x97));
        line.end(seq, Micros::from_millis(1), no);
    }
    (0..21).for_each(|seq| line.arrive(seq, 0, due(seq) + Micros::from_millis(50)));
    line.arrive(21, 0, due(21) + Micros(50_001));
    line.arrive(26, 0, due(26) + Micros::from_millis(60));
    let summary = line.close(20, Micros::from_secs(20));
    assert_eq!(
        summary.residue,
        Some(0),
        "{:?}",
        summary.run.uplink.equations
    );
    let bound = Micros::from_millis(50);
    let response = summary
        .run
        .above(Latency::Response, bound, None)
        .expect("it is registered");
    assert_eq!((response.above, response.missing, response.n), (1, 4, 20));
    let found = summary.run.above(Latency::EndToEnd, bound, Some(BACKEND));
    let end_to_end = found.expect("it is registered");
    assert_eq!(
        (end_to_end.above, end_to_end.missing, end_to_end.n),
        (2, 4, 17)
    );
    let view = summary
        .run
        .latency
        .of(Latency::Response)
        .expect("the stream answers");
    assert_eq!((view.figures.count, view.figures.censored), (16, 4));
    assert_eq!(view.censored.max_us, 10_000_000);
}

#[test]
fn windows_sum_to_their_phase_and_rates_count_by_event() {
    let mut line = Line::new();
    accept_all(&mut line, 29);
    line.end(29, Micros::from_millis(200), Outcome::Accepted);
    let summary = line.close(20, Micros::from_secs(9));
    let rows = summary.run.series.iter();
    let due: u64 = rows
        .clone()
        .filter(|row| row.phase == Phase::Measure)
        .map(|row| row.due.finals())
        .sum();
    assert_eq!(due, 20);
    assert_eq!(summary.run.rates.offered, Some(10.0));
    assert_eq!(summary.run.rates.issued, Some(10.0));
    // The last answer comes while settling.
    assert_eq!(summary.run.rates.completed, Some(9.5));
    assert_eq!(rows.map(|row| row.offered.unwrap_or(0)).sum::<u64>(), 30);
}

#[test]
fn a_stopped_run_measures_until_it_was_stopped() {
    let mut line = Line::new();
    accept_all(&mut line, 15);
    line.recorder.stop(due(15));
    let summary = line.close(5, Micros::from_secs(9));
    assert_eq!(summary.measured_s, 0.5);
    assert_eq!(summary.run.measured.accepted, 5);
    assert_eq!(summary.run.rates.issued, Some(10.0));
    assert_eq!(
        summary.residue,
        Some(0),
        "{:?}",
        summary.run.uplink.equations
    );
}

#[test]
fn links_that_the_platform_ended_count_from_the_connect_phase_until_settling() {
    let mut line = Line::new();
    let connected = LinkEvent::Connected { took: Micros(700) };
    for link in 0..3 {
        line.opened(link);
    }
    line.link(0, Micros(10), connected);
    line.link(1, Micros(20), connected);
    line.link(2, Micros(30), LinkEvent::Failed(ConnectFailure::Refused));
    line.link(1, Micros(40), LinkEvent::Disconnected(Cause::Lifetime));
    line.opened(1);
    line.link(1, Micros(50), connected);
    line.link(0, Micros(60), LinkEvent::Disconnected(Cause::PeerClosed));
    line.opened(0);
    line.link(0, Micros(70), connected);
    line.link(1, due(12), LinkEvent::Disconnected(Cause::Reset));
    let (cause, messages) = (Cause::Reset, 7);
    line.link(1, due(12), LinkEvent::LastSent { cause, messages });
    let settling = due(0) + Micros::from_secs(4);
    line.link(0, settling, LinkEvent::Disconnected(Cause::Network));
    accept_all(&mut line, 30);
    let summary = line.close(20, Micros::from_secs(9));
    let links = &summary.run.links;
    assert_eq!(
        (
            links.wanted,
            links.up_at_start,
            links.opened,
            links.connected
        ),
        (3, 2, 5, 4)
    );
    assert_eq!(links.open_at_end, Some(0));
    let named = |causes: &[&str]| {
        causes
            .iter()
            .map(|cause| ((*cause).to_owned(), 1))
            .collect()
    };
    let all = ["closed-by-peer", "reset", "network", "lifetime"];
    assert_eq!(links.disconnects, named(&all));
    assert_eq!(links.last_sent, [("reset".to_owned(), 7)].into());
    assert_eq!(links.ended_by_platform, named(&["closed-by-peer", "reset"]));
    assert_eq!(links.connect_failures["refused"], 1);
    assert_eq!(
        summary.residue,
        Some(0),
        "{:?}",
        summary.run.uplink.equations
    );
}

#[test]
fn of_a_killed_run_the_windows_tell_and_the_rest_is_null() {
    let mut line = Line::new();
    accept_all(&mut line, 20);
    (0..18).for_each(|seq| line.arrive(seq, 0, due(seq)));
    let timeline = line.recorder.timeline();
    let windows = line.recorder.flush(Micros::from_secs(3));
    let closing = Closing {
        plan: &plan(),
        windows: &windows,
        identity: None,
        account: None,
        calendar: None,
        timeline,
        end: Micros::from_secs(3),
        listening: Listening::until(Micros::from_secs(3)),
        devices_until: Micros::from_secs(3),
        has_one_clock: true,
        quiet: QUIET,
        lost_ranges_most: 2,
    };
    let summary = closing.summary();
    let ledger = &summary.run.uplink;
    assert_eq!(
        (ledger.accepted, ledger.sent, ledger.arrivals.arrived),
        (20, 20, Some(18))
    );
    assert_eq!(
        (ledger.arrivals.lost, ledger.scheduled, ledger.residue),
        (None, None, None)
    );
    assert_eq!(summary.run.measured.arrivals.arrived, Some(8));
    assert_eq!(summary.residue, None);
}

#[test]
fn a_percentile_needs_ten_values_above_it() {
    for (share, needed) in [
        (0.5, 20),
        (0.9, 100),
        (0.95, 200),
        (0.99, 1_000),
        (0.999, 10_000),
    ] {
        assert_eq!(Percentiles::needed(share), needed);
    }
}

/// Twenty measured messages against a bound of 50 ms: three take 60 ms, of which our own part is
/// 5, 20 and 60 ms.
#[test]
fn each_answer_is_counted_by_its_upper_and_its_lower_time() {
    let ms = Micros::from_millis;
    let mut line = Line::new();
    for seq in 0..30 {
        let (took, own) = match seq {
            12 => (ms(60), ms(5)),
            13 => (ms(60), ms(20)),
            14 => (ms(60), ms(60)),
            _ => (ms(20), ms(1)),
        };
        line.end_own(seq, took, Outcome::Accepted, own);
        line.arrive_own(seq, 0, due(seq) + took, own);
    }
    let run = line.close(20, Micros::from_secs(9)).run;
    let response = run
        .above(Latency::Response, ms(50), None)
        .expect("it is registered");
    assert_eq!((response.above, response.above_lower), (3, 1));
    for (bound, counts) in [(30, (3, 2)), (50, (3, 1))] {
        let service = run.above(Latency::Service, ms(bound), None);
        let service = service.expect("it is registered");
        assert_eq!((service.above, service.above_lower), counts, "{bound} ms");
    }
    let seen = run.above(Latency::EndToEnd, ms(50), Some(BACKEND));
    let seen = seen.expect("it is registered");
    assert_eq!((seen.above, seen.above_lower), (3, 1));
    let lower = run.latency.response_lower.as_ref().expect("answers exist");
    assert_eq!(
        (lower.figures.count, lower.figures.max_us),
        (20, Some(55_000))
    );
}

/// Of a closed loop's messages only those that took longer than its period can have left others out.
#[test]
fn the_times_of_a_closed_loop_are_summed_of_what_took_longer_than_a_period() {
    let ms = Micros::from_millis;
    let times = |closed| {
        let mut plan = plan();
        plan.streams[0].closed = closed;
        let mut line = Line::of(plan);
        accept_all(&mut line, 27);
        line.end_own(27, ms(100), Outcome::Accepted, ms(90));
        line.end_own(28, ms(101), Outcome::Accepted, ms(2));
        line.end_own(29, ms(10_000), Outcome::TimedOut, ms(9_000));
        let times = line.close(20, Micros::from_secs(14)).run.times;
        (times.taken_us, times.own_us)
    };
    assert_eq!(times(Some(ms(100))), (10_101_000, 9_002_000));
    assert_eq!(times(None), (0, 0));
}

/// A message that is never answered is above a bound in full, by either time.
#[test]
fn the_unanswered_have_no_lower_time() {
    let ms = Micros::from_millis;
    let mut line = Line::new();
    accept_all(&mut line, 29);
    line.end_own(29, ms(10_000), Outcome::TimedOut, ms(9_000));
    let run = line.close(20, Micros::from_secs(14)).run;
    let above = run
        .above(Latency::Response, ms(50), None)
        .expect("it is registered");
    assert_eq!((above.above, above.above_lower, above.missing), (0, 0, 1));
}

/// The seconds of a bound on end-to-end times sum to its counters.
#[test]
fn the_seconds_of_a_bound_are_its_counters() {
    let ms = Micros::from_millis;
    let mut line = Line::new();
    for seq in 0..30 {
        let outcome = match seq {
            17 => Outcome::Rejected(Reason::Mqtt(0x97)),
            _ => Outcome::Accepted,
        };
        line.end(seq, ms(20), outcome);
        let took = if seq % 7 == 0 { ms(80) } else { ms(30) };
        let is_seen = !matches!(seq, 11 | 17 | 25);
        if is_seen {
            line.arrive_own(seq, 0, due(seq) + took, ms(40));
        }
    }
    let run = line.close(20, Micros::from_secs(9)).run;
    let whole = run.above(Latency::EndToEnd, ms(50), Some(BACKEND));
    let whole = whole.expect("it is registered");
    let seconds = &run.delivery(ms(50), BACKEND).expect("likewise").seconds;
    let sum = |of: fn(&muster_measure::DeliverySecond) -> u64| seconds.iter().map(of).sum::<u64>();
    assert_eq!(
        seconds.iter().map(|of| of.second).collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!((sum(|of| of.above), whole.above), (3, 3));
    assert_eq!((sum(|of| of.above_lower), whole.above_lower), (0, 0));
    assert_eq!((sum(|of| of.missing), whole.missing), (2, 2));
    assert_eq!((sum(|of| of.n), whole.n), (19, 19));
}

/// Link 0 timed out by the target, link 1 by us before the end of the run cut off its next try, link
/// 2 twice by us before it came up.
#[test]
fn tries_that_timed_out_by_our_own_delay_are_counted_apart() {
    let mut line = Line::new();
    let timed_out = ConnectFailure::TimedOut;
    let cut_off = ConnectFailure::RunEnded;
    for (link, failure, by_us) in [
        (0, timed_out, false),
        (1, timed_out, true),
        (2, timed_out, true),
        (2, timed_out, true),
        (1, cut_off, false),
    ] {
        line.opened(link);
        line.account.connect_failed(LinkId(link), &failure);
        line.recorder.link(&LinkFact {
            link: LinkId(link),
            at: Micros(500),
            event: LinkEvent::Failed(failure),
            by_us,
        });
    }
    line.opened(2);
    line.link(2, Micros(600), LinkEvent::Connected { took: Micros(100) });
    let links = line.close(0, Micros::from_secs(9)).run.links;
    assert_eq!(links.connect_failures["timed-out"], 4);
    assert_eq!((links.timed_out_by_us, links.down_by_us_at_start), (3, 1));
}

/// A store is read when the load has ended: what is absent of a device is not stored once all of it was read, and not
/// known before.
#[test]
fn what_a_store_lacks_is_lost_once_all_of_its_device_was_read() {
    let close = |is_read: bool| {
        let mut line = Line::of(RecorderPlan {
            store: Some(DeviceSample::all(1)),
            ..plan()
        });
        accept_all(&mut line, 30);
        (0..30)
            .filter(|seq| *seq != 12)
            .for_each(|seq| line.arrive(seq, 0, due(seq)));
        if is_read {
            line.recorder.all_read(DeviceId(0));
        }
        line.close(20, Micros::from_secs(9))
    };
    for (is_read, wanted) in [(true, (1, 0)), (false, (0, 1))] {
        let summary = close(is_read);
        let store = &summary.backends[0];
        assert_eq!((store.uplink.lost(), store.uplink.outstanding()), wanted);
        assert_eq!((store.is_store, summary.residue), (true, Some(0)));
        // The instant of a read is none of an arrival.
        assert!(summary.run.latency.end_to_end.is_none());
        assert_eq!(summary.run.rates.arrived, None);
        assert!(
            summary
                .run
                .above
                .iter()
                .all(|above| above.latency != Latency::EndToEnd)
        );
    }
}

/// A sample of one of two devices, which holds the first or not.
fn sample(holds_first: bool) -> DeviceSample {
    let mut samples = (0..).map(|seed| DeviceSample::new(1, 2, seed));
    let found = samples.find(|sample| sample.holds(DeviceId(0)) == holds_first);
    found.expect("a seed decides on the device")
}

/// Law: accepted = stored + not stored + outside the sample. Nobody looks for what is outside of it.
#[test]
fn messages_outside_the_sample_of_a_store_are_neither_lost_nor_outstanding() {
    for (sample, lost, outside) in [(sample(false), 0, 30), (sample(true), 30, 0)] {
        let mut line = Line::of(RecorderPlan {
            store: Some(sample),
            ..plan()
        });
        accept_all(&mut line, 30);
        line.recorder.all_read(DeviceId(0));
        let summary = line.close(20, Micros::from_secs(9));
        let store = &summary.backends[0];
        let figures = &store.uplink;
        assert_eq!(
            (
                figures.lost(),
                figures.outstanding(),
                figures.outside_sample()
            ),
            (lost, 0, outside)
        );
        assert_eq!(figures.expected(), lost);
        assert_eq!(figures.of(State::Accepted).total(), 30);
        assert_eq!((store.sample, summary.residue), (Some(sample), Some(0)));
    }
}

/// As by a platform that stores a message under another device.
#[test]
fn a_stored_message_of_a_device_outside_the_sample_is_foreign() {
    let mut line = Line::of(RecorderPlan {
        store: Some(sample(false)),
        ..plan()
    });
    accept_all(&mut line, 30);
    (0..3).for_each(|seq| line.arrive(seq, 0, due(seq)));
    let summary = line.close(20, Micros::from_secs(9));
    let store = &summary.backends[0];
    assert_eq!((store.foreign, store.uplink.copies), (3, 0));
    assert_eq!(store.uplink.outside_sample(), 30);
    assert_eq!(summary.residue, Some(0));
}

proptest! {
    /// Law: accepted = stored + not stored + overwritten + outstanding. Where the store was not read to its end, nobody
    /// knows what is overwritten.
    #[test]
    fn each_accepted_message_is_stored_or_not_or_overwritten(
        ends in prop::collection::vec((any::<bool>(), 0u8..3), 30),
        is_read: bool,
    ) {
        let mut line = Line::of(RecorderPlan {
            store: Some(DeviceSample::all(1)),
            ..plan()
        });
        for ((is_accepted, end), seq) in ends.iter().zip(0..) {
            let outcome = if *is_accepted { Outcome::Accepted } else { Outcome::TimedOut };
            line.end(seq, Micros::from_millis(20), outcome);
            match end {
                0 => line.arrive(seq, 0, due(seq)),
                1 => line.recorder.overwritten(&Line::id(seq)),
                _ => {}
            }
        }
        if is_read {
            line.recorder.all_read(DeviceId(0));
        }
        let summary = line.close(20, Micros::from_secs(9));
        let of = |end| ends.iter().filter(|it| **it == (true, end)).count() as u64;
        let wanted = match is_read {
            true => (of(0), of(1), of(2), 0),
            false => (of(0), 0, 0, of(1) + of(2)),
        };
        let figures = &summary.backends[0].uplink;
        let row = figures.of(State::Accepted);
        prop_assert_eq!((row.arrived, row.overwritten, row.absent, row.outstanding), wanted);
        prop_assert_eq!(figures.of(State::TimedOut).overwritten, 0);
        let lost_due: u64 = summary.run.series.iter().map(|row| row.arrivals[0].lost_due).sum();
        prop_assert_eq!((lost_due, summary.residue), (row.absent, Some(0)));
    }
}

/// Messages 3 and 4 are absent, and of these nobody accepted 4.
#[test]
fn absent_at_a_store_is_what_was_accepted_and_is_not_there() {
    let with_store = || {
        Line::of(RecorderPlan {
            store: Some(DeviceSample::all(1)),
            ..plan()
        })
    };
    let mut devices = with_store();
    for seq in 0..10 {
        let outcome = match seq {
            4 => Outcome::TimedOut,
            _ => Outcome::Accepted,
        };
        devices.end(seq, Micros::from_millis(20), outcome);
    }
    let run = devices.recorder.finish();
    let mut store = with_store();
    assert_eq!(store.recorder.absent_at_store(&run), 9);
    for seq in (0..10).filter(|seq| ![3, 4].contains(seq)) {
        store.arrive(seq, 0, due(seq));
    }
    assert_eq!(store.recorder.absent_at_store(&run), 1);
}
