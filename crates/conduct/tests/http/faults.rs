//! Answers that cannot be read, and any server.

use muster_model::{Cause, Micros, Outcome, Reason};
use muster_plan::HttpSettings;
use proptest::prelude::*;

use crate::world::{MESSAGES, Step, World, plan, says, status};

const KEPT: HttpSettings = HttpSettings::new();
const BOUNDED: HttpSettings = HttpSettings {
    body_max: 1_000,
    ..HttpSettings::new()
};

#[test]
fn an_answer_that_cannot_be_read_breaks_its_message_and_is_told_with_the_fault() {
    let long = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n{}",
        "x".repeat(2_000)
    );
    let fields = "A: b\r\n".repeat(200);
    for (answer, fault) in [
        ("220 mail.example ESMTP\r\n", "right port"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
            "two ways",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "chunked",
        ),
        ("HTTP/1.1 101 Switching\r\n\r\n", "switches protocols"),
        (&long, "longer than 1000 bytes"),
        (
            &format!("HTTP/1.1 200 OK\r\n{fields}\r\n"),
            "more than 100 fields",
        ),
    ] {
        let answer = answer.to_owned();
        let mut world = World::new(&plan("", "", &BOUNDED), move |_| says(&answer));
        world.start();
        world.run_until(Micros::from_secs(300));
        let notes = format!("{:?}", world.shard.recording().refusals().take());
        assert!(notes.contains(fault), "{notes}");
        let told = world.end();
        let broken = Outcome::Broken(Cause::Malformed);
        assert!(told.all_ended_as(broken), "{fault}: {:?}", told.outcomes());
        assert!(told.ends().iter().all(|end| *end == Cause::Malformed));
    }
}

#[test]
fn an_answer_that_ends_within_its_body_is_no_plain_close() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    let close = || Step::Closes(Micros(10));
    let reset = || Step::Resets(Micros(10));
    for (answer, end, cause) in [
        (length, close as fn() -> Step, Cause::AnswerCutOff),
        (length, reset, Cause::AnswerCutOff),
        (chunked, close, Cause::AnswerCutOff),
        ("HTTP/1.1 200 OK\r\nContent-Le", close, Cause::PeerClosed),
        ("", close, Cause::PeerClosed),
        ("", reset, Cause::Reset),
    ] {
        let mut world = World::new(&plan("", "", &KEPT), move |_| {
            let mut steps = says(answer);
            steps.push(end());
            steps
        });
        world.start();
        world.run_until(Micros::from_secs(300));
        let notes = format!("{:?}", world.shard.recording().refusals().take());
        let told = world.end();
        let broken = Outcome::Broken(cause);
        assert!(told.all_ended_as(broken), "{:?}", told.outcomes());
        assert!(told.ends().iter().all(|end| *end == cause), "{cause}");
        let is_told = notes.contains("Content-Length or its last chunk");
        assert_eq!(is_told, cause == Cause::AnswerCutOff, "{notes}");
    }
}

#[test]
fn a_redirect_is_told_with_its_target_and_not_followed() {
    let answer =
        "HTTP/1.1 307 X\r\nLocation: https://h/v2?key=hunter2\r\nContent-Length: 0\r\n\r\n";
    let mut world = World::new(&plan("", "", &KEPT), move |_| says(answer));
    world.start();
    world.run_until(Micros::from_secs(300));
    let notes = format!("{:?}", world.shard.recording().refusals().take());
    let wanted =
        "code http-307: redirects are not followed; send to where it leads, https://h/v2\"";
    assert!(notes.contains(wanted), "{notes}");
    assert_eq!(world.asked.len(), MESSAGES);
    let redirected = Outcome::Rejected(Reason::Http(307));
    assert!(world.end().all_ended_as(redirected));
}

#[test]
fn an_answer_that_begins_and_does_not_end_in_time_is_not_like_none() {
    let drip = || (0..1_000).map(|_| Step::Says(Micros::from_millis(100), b"x".to_vec()));
    for (head, cause) in [
        ("HTTP/1.1 200 OK\r\nA: ", Cause::AnswerUnfinished),
        ("HTTP/1.1 202 OK\r\n\r\n", Cause::AnswerUnfinished),
        (
            "HTTP/1.1 202 OK\r\nContent-Length: 5000\r\n\r\n",
            Cause::AnswerUnfinished,
        ),
        ("", Cause::Unanswered),
    ] {
        let mut world = World::new(&plan("", "", &KEPT), move |_| match head {
            "" => Vec::new(),
            _ => says(head).into_iter().chain(drip()).collect(),
        });
        world.start();
        world.run_until(Micros::from_secs(300));
        let notes = format!("{:?}", world.shard.recording().refusals().take());
        let is_begun = cause == Cause::AnswerUnfinished;
        assert_eq!(notes.contains("did not end in time"), is_begun, "{notes}");
        let told = world.end();
        assert!(told.all_ended_as(Outcome::TimedOut), "{head}");
        assert!(told.ends().iter().all(|end| *end == cause), "{head}");
    }
}

/// A head, a body or a trailer that never ends meets a bound; one that comes byte by byte meets the time-out.
#[test]
fn an_endless_answer_ends_its_message() {
    let endless = |head: &'static str, more: &'static str| {
        let mut world = World::new(&plan("", "", &BOUNDED), move |_| {
            let mut steps = says(head);
            let more = more.repeat(40).into_bytes();
            steps.extend((0..300).map(|_| Step::Says(Micros(100), more.clone())));
            steps
        });
        world.start();
        world.run_until(Micros::from_secs(300));
        world.end()
    };
    for told in [
        endless("HTTP/1.1 200 OK\r\nA: ", "xxxxxxxxxx"),
        endless("HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxxxx"),
        endless(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1\r\nx\r\n",
        ),
        endless(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "A: b\r\n",
        ),
    ] {
        let broken = Outcome::Broken(Cause::Malformed);
        assert!(told.all_ended_as(broken), "{:?}", told.outcomes());
    }
    let (told, _) = World::run(&KEPT, "", |_| {
        let mut steps = says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        steps.extend((0..1_000).map(|_| Step::Says(Micros::from_millis(100), b"x".to_vec())));
        steps
    });
    assert!(
        told.all_ended_as(Outcome::TimedOut),
        "{:?}",
        told.outcomes()
    );
}

#[test]
fn an_answer_to_no_request_ends_the_link_as_malformed() {
    let (told, _) = World::run(&KEPT, "", |_| {
        let mut steps = status(202);
        steps.extend(status(200));
        steps
    });
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    assert!(told.ends().iter().all(|end| *end == Cause::Malformed));
}

fn step() -> impl Strategy<Value = Step> {
    let after = (0u64..3_000_000).prop_map(Micros);
    let answers = prop_oneof![
        Just("HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n"),
        Just("HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"),
        Just("HTTP/1.1 200 X\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
        Just("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
        Just("HTTP/1.0 200 X\r\n\r\nto the end"),
        Just("HTTP/1.1 100 Continue\r\n\r\n"),
        Just("HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nhalf"),
        Just("no HTTP"),
        Just("\r\n"),
    ];
    prop_oneof![
        6 => (after.clone(), answers).prop_map(|(at, text)| Step::Says(at, text.as_bytes().to_vec())),
        1 => after.clone().prop_map(Step::Closes),
        1 => after.prop_map(Step::Resets),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Law: whatever a server does, each message ends exactly once, and in a way that HTTP has.
    #[test]
    fn each_message_ends_once_whatever_the_server_does(
        scripts in prop::collection::vec(prop::collection::vec(step(), 0..4), 1..12),
        pipelining in 1u16..4,
        closes: bool,
        policy in prop::sample::select(&["", "loop: { in-flight: 1, overflow: shed },", "loop: closed, count: 10,", "retry: 1,"][..]),
    ) {
        let settings = HttpSettings { pipelining, closes, body_max: 1_000, ..KEPT };
        let mut turn = 0;
        let (told, _) = World::run(&settings, policy, move |_| {
            turn += 1;
            scripts[turn % scripts.len()].clone()
        });
        for attempt in &told.attempts {
            let is_known = match attempt.outcome {
                Outcome::Accepted | Outcome::TimedOut | Outcome::InFlight => attempt.sent.is_some(),
                Outcome::Rejected(reason) => matches!(reason, Reason::Http(503)),
                Outcome::Broken(_) => attempt.sent.is_some(),
                Outcome::Shed(_) => attempt.sent.is_none(),
                Outcome::Unacknowledged => false,
            };
            prop_assert!(is_known, "{attempt:?}");
        }
    }
}
