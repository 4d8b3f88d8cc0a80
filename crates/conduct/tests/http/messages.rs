//! Outcomes of the messages of a device over HTTP.

use muster_load::{Octets, Template};
use muster_model::{Attempt, Micros, Outcome, Reason, ShedCause};
use muster_plan::{Credential, HttpSettings, Secret};

use crate::world::{MESSAGES, Step, WAY, World, plan, says, status};

const KEPT: HttpSettings = HttpSettings::new();

#[test]
fn a_message_is_a_request_whose_answer_ends_it_and_all_go_on_one_connection() {
    let (told, asked) = World::run(&KEPT, "", |_| status(202));
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    let round = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap() == WAY + WAY;
    assert!(told.attempts.iter().all(round));
    assert_eq!((told.connected(), told.ends()), (1, Vec::new()));
    assert_eq!(asked.len(), MESSAGES);
    let first = &asked[0];
    assert!(
        first.line.starts_with("POST /telemetry/t1/f-")
            || first.line.starts_with("PUT /telemetry/t1/f-"),
        "{}",
        first.line
    );
    assert_eq!(first.field("host"), Some("127.0.0.1:8080"));
    assert_eq!(first.field("authorization"), None);
    assert_eq!((first.body.len(), first.is_last), (64, false));
    let counts = told.counts();
    assert_eq!(counts.session.bytes_payload, 64 * MESSAGES as u64);
    assert!(counts.session.bytes_wire > counts.session.bytes_payload);
}

#[test]
fn a_request_has_the_headers_of_its_platform() {
    for (stream, level) in [("", Some("1")), ("confirmable: false,", None)] {
        let (_, asked) = World::run(&KEPT, stream, |_| status(202));
        assert_eq!(asked.len(), MESSAGES);
        let levels: Vec<_> = asked.iter().map(|it| it.field("qos-level")).collect();
        assert_eq!(levels, [level; MESSAGES], "{stream}");
    }
}

#[test]
fn what_is_refused_keeps_its_status_and_a_redirect_is_a_refusal() {
    for code in [302, 401, 404, 422, 499, 500, 599] {
        let (told, asked) = World::run(&KEPT, "", move |_| status(code));
        let refused = Outcome::Rejected(Reason::Http(code));
        assert!(told.all_ended_as(refused), "{code}: {:?}", told.outcomes());
        assert_eq!((told.connected(), asked.len()), (1, MESSAGES), "{code}");
    }
}

/// RFC 9110 section 15.2: a client may ignore interim responses.
#[test]
fn an_answer_is_whole_however_it_comes() {
    let answers = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nyes",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "\r\nHTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    ];
    for answer in answers {
        let (told, _) = World::run(&KEPT, "", move |_| {
            let bytes = answer.as_bytes().iter();
            bytes
                .map(|byte| Step::Says(Micros(7), vec![*byte]))
                .collect()
        });
        assert!(
            told.all_ended_as(Outcome::Accepted),
            "{answer}: {:?}",
            told.outcomes()
        );
        assert_eq!(told.connected(), 1, "{answer}");
    }
}

/// RFC 9110 section 15.5.14: an answer may come before the request is whole.
#[test]
fn an_early_answer_ends_a_message_that_the_kernel_still_holds() {
    let mut world = World::new(&plan("", "", &KEPT), |_| status(413));
    world.holds = true;
    world.start();
    world.run_until(Micros::from_millis(1_500));
    world.shard.traffic_mut().flushed(0, world.now);
    world.run_until(Micros::from_secs(300));
    let told = world.end();
    let refused = Outcome::Rejected(Reason::Http(413));
    assert!(told.all_ended_as(refused), "{:?}", told.outcomes());
    assert_eq!(told.connected(), 1);
    assert!(told.attempts.iter().all(|attempt| attempt.sent.is_some()));
}

#[test]
fn a_request_at_a_time_is_open_unless_the_scenario_pipelines() {
    let late = |_: &_| {
        let answer = b"HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n".to_vec();
        vec![Step::Says(Micros::from_millis(1_700), answer)]
    };
    let (told, _) = World::run(&KEPT, "", late);
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    let mut spans: Vec<(Micros, Micros)> = told
        .attempts
        .iter()
        .map(|it| (it.sent.unwrap(), it.ended))
        .collect();
    spans.sort_unstable();
    assert!(
        spans.windows(2).all(|pair| pair[1].0 >= pair[0].1),
        "{spans:?}"
    );
    let pipelining = HttpSettings {
        pipelining: 2,
        ..KEPT
    };
    let (told, _) = World::run(&pipelining, "", late);
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    let lateness = |it: &Attempt| it.sent.unwrap() - it.due;
    assert!(told.attempts.iter().all(|it| lateness(it) == Micros::ZERO));
    assert_eq!(told.connected(), 1);
}

#[test]
fn a_link_is_silent_for_as_long_as_retry_after_says_unless_it_does_not_obey() {
    for code in [429, 503] {
        for (obeys_retry_after, apart) in [(true, 5_002), (false, 1_000)] {
            let settings = HttpSettings {
                obeys_retry_after,
                ..KEPT
            };
            let (told, _) = World::run(&settings, "", move |_| {
                let retry = "Retry-After: 5\r\nContent-Length: 0";
                says(&format!("HTTP/1.1 {code} X\r\n{retry}\r\n\r\n"))
            });
            assert!(told.all_ended_as(Outcome::Rejected(Reason::Http(code))));
            let mut sent: Vec<_> = told.attempts.iter().filter_map(|it| it.sent).collect();
            sent.sort_unstable();
            let gaps = sent
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).get() / 1_000);
            assert!(
                gaps.clone().all(|gap| gap == apart),
                "{:?}",
                gaps.collect::<Vec<_>>()
            );
            assert_eq!(told.connected(), 1);
        }
    }
}

/// RFC 9110 section 10.2.3.
#[test]
fn retry_after_may_be_a_date_of_the_servers_clock() {
    let (told, _) = World::run(&KEPT, "", |_| {
        let dates =
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:41 GMT";
        says(&format!(
            "HTTP/1.1 503 X\r\n{dates}\r\nContent-Length: 0\r\n\r\n"
        ))
    });
    let mut sent: Vec<_> = told.attempts.iter().filter_map(|it| it.sent).collect();
    sent.sort_unstable();
    let apart = Micros::from_millis(4_002);
    assert!(
        sent.windows(2).all(|pair| pair[1] - pair[0] == apart),
        "{sent:?}"
    );
}

#[test]
fn a_silence_that_is_longer_than_the_run_or_cannot_be_read_is_reported() {
    for (value, note) in [
        ("100000", Some("86,400 s of silence, longer than")),
        ("soon", Some("`soon` is neither a number")),
        ("2", None),
    ] {
        for obeys_retry_after in [true, false] {
            let settings = HttpSettings {
                obeys_retry_after,
                ..KEPT
            };
            let mut world = World::new(&plan("", "", &settings), move |_| {
                let retry = format!("Retry-After: {value}\r\nContent-Length: 0");
                says(&format!("HTTP/1.1 429 X\r\n{retry}\r\n\r\n"))
            });
            world.start();
            world.run_until(Micros::from_secs(20));
            let notes = format!("{:?}", world.shard.recording().refusals().take());
            let note = note.filter(|_| obeys_retry_after);
            assert_eq!(notes.contains("ReasonString"), note.is_some(), "{notes}");
            assert!(notes.contains(note.unwrap_or_default()), "{notes}");
        }
    }
}

#[test]
fn another_refusal_asks_for_no_silence() {
    let (told, _) = World::run(&KEPT, "", |_| {
        says("HTTP/1.1 500 X\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
    });
    let lateness = |it: &Attempt| it.sent.unwrap() - it.due;
    assert!(told.attempts.iter().all(|it| lateness(it) == Micros::ZERO));
}

#[test]
fn a_message_that_may_not_wait_is_shed_while_the_platform_asks_for_silence() {
    let (told, _) = World::run(
        &KEPT,
        "loop: { in-flight: 1, overflow: shed },",
        |asked| match asked.number {
            0 => says("HTTP/1.1 503 X\r\nRetry-After: 4\r\nContent-Length: 0\r\n\r\n"),
            _ => status(202),
        },
    );
    let shed = Outcome::Shed(ShedCause::RetryAfter);
    let of = |outcome| told.outcomes().iter().filter(|it| **it == outcome).count();
    assert_eq!(
        (of(shed), of(Outcome::Accepted)),
        (4, 5),
        "{:?}",
        told.outcomes()
    );
}

/// RFC 7617 section 2 and RFC 6750 section 2.1.
#[test]
fn credentials_go_with_each_request() {
    let template = |text| Template::parse(text).unwrap();
    let password = Credential::Password {
        user: template("Aladdin"),
        secret: Secret::new(Octets::text(template("open sesame"))),
    };
    let token = Credential::Token {
        token: Secret::new(template("t-${index}")),
    };
    for (credential, expected) in [
        (password, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        (token, "Bearer t-0"),
    ] {
        let mut plan = plan("", "", &KEPT);
        plan.fleets[0].credential = credential;
        let (told, asked) = World::new(&plan, |_| status(204)).whole();
        assert!(told.all_ended_as(Outcome::Accepted));
        let all = asked.iter().map(|it| it.field("authorization"));
        assert!(
            all.clone().all(|it| it == Some(expected)),
            "{:?}",
            all.collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_credential_that_no_header_can_hold_is_never_sent() {
    let mut plan = plan("", "", &KEPT);
    plan.fleets[0].credential = Credential::Token {
        token: Secret::new(Template::parse("a\r\nb").unwrap()),
    };
    let mut world = World::new(&plan, |_| status(204));
    world.start();
    world.run_until(Micros::from_secs(20));
    let (_, why) = world.shard.take_unsendable().expect("it is reported");
    assert!(why.to_string().contains("line break"), "{why}");
    let told = world.end();
    assert!(
        told.all_ended_as(Outcome::Shed(ShedCause::Unsendable)),
        "{:?}",
        told.outcomes()
    );
}

#[test]
fn what_is_tried_again_goes_out_again() {
    let (told, asked) = World::run(&KEPT, "retry: 1,", |asked| {
        status(if asked.number % 2 == 0 { 500 } else { 202 })
    });
    assert!(
        told.all_ended_as(Outcome::Accepted),
        "{:?}",
        told.outcomes()
    );
    assert_eq!(asked.len(), 2 * MESSAGES);
    assert!(told.attempts.iter().all(|attempt| attempt.resent));
}
