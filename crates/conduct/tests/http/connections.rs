//! Connections of a device over HTTP: kept, one a request, and their ends.

use muster_model::{Attempt, Cause, Micros, Outcome, ShedCause};
use muster_plan::HttpSettings;

use crate::world::{MESSAGES, Step, WAY, World, plan, says, status};

const KEPT: HttpSettings = HttpSettings::new();
const ONE_EACH: HttpSettings = HttpSettings {
    closes: true,
    ..HttpSettings::new()
};
const LAST: &str = "HTTP/1.1 202 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// A connect of the world, which begins a step after it is asked for.
fn is_a_way_and_back(time: &Micros) -> bool {
    (WAY + WAY..=WAY + WAY + Micros(2)).contains(time)
}

fn then_closes(mut steps: Vec<Step>) -> Vec<Step> {
    steps.push(Step::Closes(Micros(10)));
    steps
}

#[test]
fn a_connection_that_the_server_ends_after_an_answer_is_no_lost_link() {
    for is_announced in [true, false] {
        let (told, asked) = World::run(&KEPT, "", move |_| match is_announced {
            true => then_closes(says(LAST)),
            false => then_closes(status(202)),
        });
        assert!(
            told.all_ended_as(Outcome::Accepted),
            "{:?}",
            told.outcomes()
        );
        let cause = match is_announced {
            true => Cause::BetweenRequests,
            false => Cause::ClosedIdle,
        };
        assert_eq!(told.ends(), vec![cause; MESSAGES]);
        assert_eq!((told.connected(), asked.len()), (MESSAGES, MESSAGES));
        // The first goes on the connection that stands; later ones wait for theirs.
        let waited = |it: &Attempt| it.sent.unwrap() - it.due;
        let mut waits: Vec<_> = told.attempts.iter().map(waited).collect();
        waits.sort_unstable();
        assert_eq!(waits[0], Micros::ZERO, "{waits:?}");
        assert!(waits[1..].iter().all(is_a_way_and_back), "{waits:?}");
    }
}

#[test]
fn a_server_that_announces_an_end_and_does_not_close_is_left() {
    let (told, _) = World::run(&KEPT, "", |_| says(LAST));
    assert!(told.all_ended_as(Outcome::Accepted));
    assert_eq!(told.ends(), vec![Cause::BetweenRequests; MESSAGES]);
}

#[test]
fn an_answer_without_a_length_ends_with_its_connection() {
    let (told, _) = World::run(&KEPT, "", |_| {
        then_closes(says("HTTP/1.0 200 OK\r\nServer: old\r\n\r\nall of it"))
    });
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    assert_eq!(told.ends(), vec![Cause::BetweenRequests; MESSAGES]);
}

/// RFC 9110 section 15.5.9.
#[test]
fn an_idle_connection_may_end_with_408() {
    for is_ended_by_close in [false, true] {
        let (told, asked) = World::run(&KEPT, "", move |_| {
            let length = match is_ended_by_close {
                true => "",
                false => "Content-Length: 0\r\n",
            };
            let late = format!("HTTP/1.1 408 X\r\nConnection: close\r\n{length}\r\n");
            let mut steps = status(202);
            steps.push(Step::Says(Micros::from_millis(100), late.into_bytes()));
            then_closes(steps)
        });
        assert!(told.all_ended_as(Outcome::Accepted));
        assert_eq!(told.ends(), vec![Cause::ClosedIdle; MESSAGES]);
        assert_eq!(asked.len(), MESSAGES);
    }
}

#[test]
fn a_link_with_a_connection_a_request_opens_each_when_a_message_is_due() {
    for closes_first in [true, false] {
        let mut world = World::new(&plan("", "", &ONE_EACH), move |_| match closes_first {
            true => then_closes(says(LAST)),
            false => says(LAST),
        });
        world.run_until(Micros::from_millis(999));
        assert_eq!(world.links_up(), 1, "it was up, and rests");
        let (told, asked) = world.whole();
        assert!(
            told.all_ended_as(Outcome::Accepted),
            "{:?}",
            told.outcomes()
        );
        assert!(
            asked.iter().all(|it| it.is_last),
            "each says that it is the last"
        );
        assert_eq!(told.connected(), 1 + MESSAGES, "the first one only looks");
        assert_eq!(told.ends(), vec![Cause::BetweenRequests; 1 + MESSAGES]);
        let took = |it: &Attempt| it.ended - it.due;
        assert!(
            told.attempts
                .iter()
                .all(|it| is_a_way_and_back(&(took(it) - WAY - WAY)))
        );
    }
}

#[test]
fn a_connection_a_request_is_left_even_if_the_server_keeps_it() {
    let (told, asked) = World::run(&ONE_EACH, "", |_| status(202));
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    assert_eq!(asked.len(), MESSAGES);
    assert_eq!(told.ends(), vec![Cause::BetweenRequests; 1 + MESSAGES]);
}

#[test]
fn messages_that_wait_for_one_another_have_a_connection_each_at_once() {
    let (told, _) = World::run(&ONE_EACH, "loop: closed, rate: 100/s, count: 10,", |_| {
        then_closes(says(LAST))
    });
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    let last = told.attempts.iter().map(|it| it.ended).max().unwrap();
    assert!(last < Micros::from_millis(1_200), "{last:?}");
}

#[test]
fn a_message_waits_for_its_connection_even_if_others_are_shed() {
    let (told, _) = World::run(&ONE_EACH, "loop: { in-flight: 1, overflow: shed },", |_| {
        then_closes(says(LAST))
    });
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
}

#[test]
fn a_message_whose_connection_is_refused_is_shed_if_it_may_not_wait() {
    for (stream, outcome) in [
        (
            "loop: { in-flight: 1, overflow: shed },",
            Outcome::Shed(ShedCause::BackOff),
        ),
        ("", Outcome::Accepted),
    ] {
        let mut world = World::new(&plan("", stream, &ONE_EACH), |_| then_closes(says(LAST)));
        world.start();
        world.refuses_until = Some(Micros::from_millis(1_500));
        world.run_until(Micros::from_secs(300));
        let told = world.end();
        let first = told.attempts.iter().find(|it| it.id.seq == 0).unwrap();
        assert_eq!(first.outcome, outcome, "{:?}", told.outcomes());
        let last = told.attempts.iter().find(|it| it.id.seq == 9).unwrap();
        assert_eq!(last.outcome, Outcome::Accepted, "{:?}", told.outcomes());
    }
}

#[test]
fn a_time_out_ends_the_connection_and_a_late_answer_is_not_anothers() {
    let (told, asked) = World::run(&KEPT, "", |asked| match asked.number {
        0 => vec![Step::Says(
            Micros::from_millis(2_100),
            b"HTTP/1.1 500 late\r\nContent-Length: 0\r\n\r\n".to_vec(),
        )],
        _ => status(202),
    });
    let of = |outcome| told.outcomes().iter().filter(|it| **it == outcome).count();
    assert_eq!(
        (of(Outcome::TimedOut), of(Outcome::Accepted)),
        (1, MESSAGES - 1)
    );
    assert_eq!(told.ends(), [Cause::Unanswered]);
    assert_eq!((told.connected(), asked.len()), (2, MESSAGES));
}

#[test]
fn a_time_out_breaks_what_was_sent_behind_it() {
    let settings = HttpSettings {
        pipelining: 8,
        ..KEPT
    };
    let (told, _) = World::run(&settings, "", |asked| match asked.number {
        // A server answers in order.
        0..=1 => Vec::new(),
        _ => status(202),
    });
    let of = |outcome| told.outcomes().iter().filter(|it| **it == outcome).count();
    let broken = Outcome::Broken(Cause::Unanswered);
    let counts = (of(Outcome::TimedOut), of(broken), of(Outcome::Accepted));
    assert_eq!(counts, (1, 2, MESSAGES - 3), "{:?}", told.outcomes());
}

#[test]
fn an_answer_in_time_counts_behind_one_that_is_late() {
    let settings = HttpSettings {
        pipelining: 8,
        ..KEPT
    };
    let mut world = World::new(&plan("", "", &settings), |asked| match asked.number {
        0..=1 => Vec::new(),
        _ => status(202),
    });
    world.start();
    while world.shard.traffic().next_expiry().is_none() {
        world.run_until(world.now + WAY);
    }
    let at = world.shard.traffic().next_expiry().unwrap();
    world.run_until(at - WAY);
    // The first is overdue, and its connection not yet closed, as both answers come.
    assert!(world.shard.expire(at).is_some());
    let answers = "HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n".repeat(2);
    let _then = world
        .shard
        .received(0, at, answers.as_bytes(), &mut Vec::new());
    world.run_until(Micros::from_secs(300));
    let told = world.end();
    let of = |outcome| told.outcomes().iter().filter(|it| **it == outcome).count();
    let counts = (of(Outcome::TimedOut), of(Outcome::Accepted));
    assert_eq!(counts, (1, MESSAGES - 1), "{:?}", told.outcomes());
    let second = told.attempts.iter().find(|it| it.id.seq == 1).unwrap();
    assert_eq!((second.outcome, second.ended), (Outcome::Accepted, at));
    assert_eq!(told.counts().session.answered_late, 1);
}

#[test]
fn an_end_with_a_request_open_is_a_lost_link() {
    for (is_reset, cause) in [(false, Cause::PeerClosed), (true, Cause::Reset)] {
        let (told, _) = World::run(&KEPT, "", move |_| match is_reset {
            true => vec![Step::Resets(Micros(10))],
            false => vec![Step::Closes(Micros(10))],
        });
        assert!(
            told.all_ended_as(Outcome::Broken(cause)),
            "{:?}",
            told.outcomes()
        );
        assert!(told.ends().iter().all(|end| *end == cause));
    }
}

/// RFC 9112 section 9.6: what was sent behind the last request is not processed.
#[test]
fn requests_behind_an_announced_end_are_broken() {
    let settings = HttpSettings {
        pipelining: 3,
        ..KEPT
    };
    let (told, _) = World::run(&settings, "rate: 100/s, count: 10,", |asked| {
        match asked.number % 3 {
            0 => vec![Step::Says(
                Micros::from_millis(50),
                LAST.as_bytes().to_vec(),
            )],
            _ => Vec::new(),
        }
    });
    let outcomes = told.outcomes();
    let broken = Outcome::Broken(Cause::PeerClosed);
    let is_either = |it: &Outcome| [Outcome::Accepted, broken].contains(it);
    assert!(outcomes.iter().all(is_either), "{outcomes:?}");
    assert!(outcomes.contains(&broken), "{outcomes:?}");
}
