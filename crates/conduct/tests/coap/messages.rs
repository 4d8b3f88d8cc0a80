//! Outcomes of the messages of a device over CoAP.

use muster_measure::Counts;
use muster_model::{Attempt, Micros, Outcome, Reason, ShedCause};
use muster_protocol::coap::Code;

use crate::world::{Peer, WAY, World};

/// Messages of a run: one a second.
const MESSAGES: usize = 10;

fn world(peer: Peer, fleet: &str, stream: &str) -> World {
    let payload = match stream.contains("payload") {
        true => "",
        false => "payload: { size: 64 },",
    };
    let text = format!(
        "name: t\nplatform: {{ kind: hono, devices: [ \"coap://127.0.0.1\" ] }}\nfleet: [ {{ name: f, \
         tenant: t1, {fleet} streams: [ {{ rate: 1/s, {payload} {stream} }} ] }} ]\n\
         phases: {{ warm-up: 0s, measure: {MESSAGES}s, settle: {{ at-most: 300s }} }}\n"
    );
    World::new(peer, &text)
}

/// Returns the end of every message, each once.
fn end(mut world: World) -> (Vec<Attempt>, Counts) {
    let told = world.end();
    let mut ids: Vec<u32> = told.attempts.iter().map(|attempt| attempt.id.seq).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..MESSAGES as u32), "{ids:?}");
    let counts = told.counts();
    (told.attempts, counts)
}

fn run(peer: Peer, fleet: &str, stream: &str) -> (Vec<Attempt>, Counts) {
    let mut world = world(peer, fleet, stream);
    world.run_until(Micros::from_secs(300));
    end(world)
}

fn all_ended_as(attempts: &[Attempt], outcome: Outcome) -> bool {
    attempts.iter().all(|attempt| attempt.outcome == outcome)
}

#[test]
fn a_message_is_a_request_whose_answer_ends_it() {
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    let round = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap() == WAY + WAY;
    assert!(attempts.iter().all(round));
    assert_eq!(
        (counts.handed, counts.session.retransmitted),
        (MESSAGES as u64, 0)
    );
    assert_eq!(counts.session.bytes_payload, 64 * MESSAGES as u64);
    assert!(counts.session.bytes_wire > counts.session.bytes_payload);
}

#[test]
fn what_is_refused_keeps_its_code() {
    let (attempts, _) = run(Peer::Answers(Code::NOT_FOUND), "", "");
    assert!(all_ended_as(
        &attempts,
        Outcome::Rejected(Reason::Coap(0x84))
    ));
    let (attempts, _) = run(Peer::Resets, "", "");
    assert!(all_ended_as(&attempts, Outcome::Rejected(Reason::Coap(0))));
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let (attempts, counts) = run(Peer::Deaf, "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert!(attempts.iter().all(|attempt| attempt.resent));
    assert_eq!(
        (counts.handed, counts.session.retransmitted),
        (MESSAGES as u64, MESSAGES as u64)
    );
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    let is_within = |wait: Micros| (2_000..3_100).contains(&(wait.get() / 1_000));
    assert!(
        attempts.iter().map(waited).all(is_within),
        "ACK_TIMEOUT, times 1 to 1.5"
    );
}

/// RFC 7252 section 4.2: the last copy waits as well, and NSTART keeps the others back meanwhile.
#[test]
fn silence_is_a_time_out_after_all_copies() {
    let times = "client: { coap: { ack-timeout: 1s, ack-random-factor: 1, max-retransmit: 1 } },";
    let (attempts, counts) = run(Peer::Silent, times, "");
    assert!(all_ended_as(&attempts, Outcome::TimedOut));
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| waited(it) == Micros::from_secs(3)));
    assert_eq!(counts.session.retransmitted, MESSAGES as u64);
    let starts: Vec<Micros> = attempts.iter().filter_map(|attempt| attempt.sent).collect();
    let apart = |pair: &[Micros]| pair[1] - pair[0] == Micros::from_secs(3);
    assert!(starts.windows(2).all(apart), "one at a time: {starts:?}");
}

#[test]
fn a_time_out_of_the_stream_ends_before_the_protocols_and_a_late_answer_is_counted() {
    let late = Peer::Later(Micros::from_millis(800));
    let (attempts, counts) = run(late, "", "timeout: 500ms");
    assert!(all_ended_as(&attempts, Outcome::TimedOut));
    assert_eq!(counts.session.answered_late, MESSAGES as u64);
}

#[test]
fn an_answer_in_a_message_of_its_own_is_waited_for() {
    let after = Micros::from_secs(20);
    let (attempts, counts) = run(Peer::Later(after), "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(
        counts.session.retransmitted, 0,
        "the requests were acknowledged"
    );
    assert_eq!(counts.session.separate_responses, MESSAGES as u64);
    assert_eq!(counts.session.duplicate_responses, 0);
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| waited(it) == after + WAY + WAY));
}

#[test]
fn max_age_of_5_03_keeps_a_device_silent_unless_it_does_not_obey() {
    let starts = |fleet: &str| {
        let (attempts, _) = run(Peer::Unavailable(5), fleet, "");
        assert!(all_ended_as(
            &attempts,
            Outcome::Rejected(Reason::Coap(0xa3))
        ));
        attempts.iter().filter_map(|it| it.sent).collect::<Vec<_>>()
    };
    let apart = |starts: &[Micros]| -> Vec<u64> {
        let pairs = starts.windows(2);
        pairs
            .map(|pair| (pair[1] - pair[0]).get() / 1_000)
            .collect()
    };
    assert_eq!(
        apart(&starts("")),
        [5_002; MESSAGES - 1],
        "sent when the silence is over"
    );
    assert_eq!(
        apart(&starts("obey-retry-after: false,")),
        [1_000; MESSAGES - 1]
    );
}

#[test]
fn what_is_shed_in_the_silence_is_told_by_that() {
    let shed = "loop: { in-flight: 1, overflow: shed }";
    let (attempts, _) = run(Peer::Unavailable(5), "", shed);
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::Rejected(Reason::Coap(0xa3))), 2);
    assert_eq!(of(Outcome::Shed(ShedCause::BackOff)), MESSAGES - 2);
}

#[test]
fn a_non_that_nobody_waits_for_is_over_when_it_is_sent() {
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", "confirmable: false");
    assert!(all_ended_as(&attempts, Outcome::Unacknowledged));
    assert!(attempts.iter().all(|it| Some(it.ended) == it.sent));
    assert_eq!(
        (counts.handed, counts.session.answered_late),
        (MESSAGES as u64, 0)
    );
    assert_eq!(counts.refused_unawaited.total(), 0);
    let waited_for = "confirmable: false, ack: transport";
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", waited_for);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(counts.session.retransmitted, 0);
}

/// The message stays unacknowledged, and its refusal is not lost.
#[test]
fn a_refusal_of_a_non_that_nobody_waits_for_is_counted() {
    let (attempts, counts) = run(Peer::Answers(Code::FORBIDDEN), "", "confirmable: false");
    assert!(all_ended_as(&attempts, Outcome::Unacknowledged));
    let forbidden = Reason::Coap(Code::FORBIDDEN.0);
    assert_eq!(counts.refused_unawaited.of(forbidden), MESSAGES as u64);
    assert_eq!(counts.session.answered_late, 0);
}

/// Law: it counts for the message, in whatever second it comes.
#[test]
fn such_a_refusal_counts_in_the_second_in_which_its_message_was_due() {
    let mut world = world(
        Peer::Refuses(Micros::from_millis(1_500)),
        "",
        "confirmable: false",
    );
    world.run_until(Micros::from_secs(300));
    let told = world.end();
    let refused = told
        .windows
        .iter()
        .map(|(second, counts)| (*second, counts.refused_unawaited.total()));
    let refused: Vec<_> = refused.filter(|(_, count)| *count > 0).collect();
    let due = told
        .attempts
        .iter()
        .map(|attempt| (attempt.due.second(), 1));
    assert_eq!(refused, due.collect::<Vec<_>>());
}

#[test]
fn a_body_longer_than_a_block_goes_in_several_and_is_one_message() {
    let body = "payload: { size: 5000 }";
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", body);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(
        (counts.handed, counts.session.retransmitted),
        (MESSAGES as u64, 0)
    );
    assert_eq!(counts.session.bytes_payload, 5_000 * MESSAGES as u64);
    assert!(
        counts.session.bytes_wire > counts.session.bytes_payload,
        "all blocks are counted"
    );
    // It is sent with its last block, four answers after it was taken.
    let round = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| round(it) == WAY + WAY));
    let four_blocks = Micros(4 * (WAY + WAY).get());
    assert!(attempts.iter().all(|it| held(it) == four_blocks));
}

fn held(attempt: &Attempt) -> Micros {
    attempt.sent.unwrap() - attempt.taken.unwrap()
}

/// Each block is lost once; what counts is when the last one went for the first time.
#[test]
fn a_body_in_blocks_is_sent_with_its_last_block_and_no_copy_of_it() {
    let (attempts, _) = run(Peer::Deaf, RETRANSMITS_AT_ONCE, "payload: { size: 5000 }");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    let round = Micros::from_millis(300) + WAY + WAY;
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| waited(it) == round));
    assert!(attempts.iter().all(|it| held(it).get() >= 4 * round.get()));
}

const RETRANSMITS_AT_ONCE: &str = "client: { coap: { ack-timeout: 300ms, ack-random-factor: 1 } },";

#[test]
fn the_time_out_of_a_body_in_blocks_counts_from_the_block_that_went_last() {
    let body = "payload: { size: 5000 }, timeout: 500ms";
    // Five blocks of 302 ms each.
    let (attempts, _) = run(Peer::Deaf, RETRANSMITS_AT_ONCE, body);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    // Of the first message the third block is met with silence, of the others the first.
    let (mut attempts, _) = run(Peer::SilentAfter(2), "", body);
    assert!(all_ended_as(&attempts, Outcome::TimedOut));
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(
        attempts
            .iter()
            .all(|it| waited(it) == Micros::from_millis(500))
    );
    attempts.sort_unstable_by_key(|attempt| attempt.id.seq);
    let held: Vec<Micros> = attempts.iter().map(held).collect();
    assert_eq!(held[0], Micros(2 * (WAY + WAY).get()));
    assert_eq!(held[1..], [Micros::ZERO; MESSAGES - 1]);
}

#[test]
fn a_copy_of_a_block_counts_as_that_block() {
    let (attempts, counts) = run(Peer::Deaf, "", "payload: { size: 5000 }");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(
        counts.session.retransmitted,
        5 * MESSAGES as u64,
        "each block once"
    );
    assert_eq!(counts.session.bytes_payload, 2 * 5_000 * MESSAGES as u64);
}

#[test]
fn a_copy_counts_when_it_is_written_and_not_before() {
    let mut world = world(Peer::Deaf, "", "");
    world.loses_further = true;
    world.run_until(Micros::from_secs(600));
    let (attempts, counts) = end(world);
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::TimedOut), MESSAGES / 2, "no copy went out");
    assert!(attempts.iter().all(|attempt| !attempt.resent));
    assert_eq!(
        (counts.handed, counts.session.retransmitted),
        (MESSAGES as u64, 0)
    );
    assert_eq!(counts.session.bytes_payload, 64 * MESSAGES as u64);
}

/// Two streams of one device whose messages are due together, on a socket that is shared.
#[test]
fn what_waits_for_the_end_of_the_turn_only_is_not_shed() {
    let each = "every: 1s, phase: together, confirmable: false, ack: transport, payload: { size: 64 }, \
                loop: { in-flight: 1, overflow: shed }";
    let text = format!(
        "name: t\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ] }}\nfleet: [ {{ tenant: t1, client: {{ coap: {{ nstart: 4 }} }}, \
         streams: [ {{ name: a, {each} }}, {{ name: b, {each} }} ] }} ]\n\
         phases: {{ warm-up: 0s, measure: {MESSAGES}s, settle: {{ at-most: 300s }} }}\n"
    );
    let ended = |keeps_back| {
        let mut world = World::new(Peer::Answers(Code::CHANGED), &text);
        world.keeps_back = Some(keeps_back);
        world.run_until(Micros::from_secs(30));
        world.end().attempts
    };
    let attempts = ended(Micros::ZERO);
    assert_eq!(attempts.len(), 2 * MESSAGES);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    // So long that the next of each falls due: they would be one more than may be in flight.
    let attempts = ended(Micros::from_millis(2_500));
    let is_told = |it: &Attempt| {
        let full = Outcome::Shed(ShedCause::InFlight);
        it.outcome == Outcome::Accepted || it.outcome == full
    };
    assert!(attempts.iter().all(is_told), "{attempts:?}");
    assert!(!all_ended_as(&attempts, Outcome::Accepted));
}

/// The platform acknowledges and never answers: how many may wait so is a bound of ours.
#[test]
fn what_a_bound_of_our_own_keeps_back_is_shed_as_that() {
    let text = "name: t\nplatform: { kind: hono, devices: [ 'coap://127.0.0.1' ] }\nfleet: [ { tenant: t1, \
                streams: [ { rate: 2/s, payload: { size: 64 } } ] } ]\n\
                phases: { warm-up: 0s, measure: 200s, settle: { at-most: 300s } }\n";
    let mut world = World::new(Peer::Later(Micros::from_secs(1_000)), text);
    world.run_until(Micros::from_secs(600));
    let attempts = world.end().attempts;
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::TimedOut), 256);
    assert_eq!(of(Outcome::Shed(ShedCause::GeneratorLimit)), 400 - 256);
}

#[test]
fn what_is_open_at_the_end_is_told_as_in_flight_and_the_rest_by_what_held_it() {
    let mut world = world(Peer::Silent, "", "");
    world.run_until(Micros::from_millis(9_500));
    let (attempts, _) = end(world);
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::InFlight), 1);
    assert_eq!(of(Outcome::Shed(ShedCause::Window)), MESSAGES - 1);
}
