//! Requests whose form the scenario gives, and the answers that accept them.

use muster_load::Template;
use muster_model::{Micros, Outcome, Reason};
use muster_plan::{AnswerId, HttpCall, HttpSettings, Plan, Secret};

use crate::world::{World, plan, says, status};

/// A plan whose stream has this form.
fn calling(call: HttpCall, path: &str) -> Plan {
    let mut plan = plan("", "", &HttpSettings::new());
    let stream = &mut plan.fleets[0].streams[0];
    stream.topic = Template::parse(path).unwrap();
    stream.http = Some(Box::new(call));
    plan
}

fn value(text: &str) -> Secret<Template> {
    Secret::new(Template::parse(text).unwrap())
}

fn call() -> HttpCall {
    HttpCall {
        method: "PATCH".to_owned(),
        headers: vec![
            ("X-Device".to_owned(), value("${id}")),
            ("X-Key".to_owned(), value("k ${index} ${seq}")),
        ],
        success: vec![(200, 204), (409, 409)],
        id: None,
    }
}

#[test]
fn a_request_has_the_form_that_the_scenario_gives_it() {
    let mut plan = calling(call(), "v1/${id}/data?full=1");
    plan.platform.endpoints[0].path = "/api/".to_owned();
    let (told, asked) = World::new(&plan, |_| status(204)).whole();
    assert!(told.all_ended_as(Outcome::Accepted));
    let device = asked[0].field("x-device").unwrap().to_owned();
    assert_eq!(asked[0].line, format!("PATCH /api/v1/{device}/data?full=1"));
    let keys = [0, 9].map(|at| asked[at].field("x-key"));
    assert_eq!(keys, [Some("k 0 0"), Some("k 0 9")]);
}

#[test]
fn a_status_accepts_if_the_scenario_says_so() {
    for (code, is_accepted) in [
        (200, true),
        (204, true),
        (205, false),
        (302, false),
        (409, true),
    ] {
        let (told, _) = World::new(&calling(call(), "x"), move |_| status(code)).whole();
        let outcome = match is_accepted {
            true => Outcome::Accepted,
            false => Outcome::Rejected(Reason::Http(code)),
        };
        assert!(told.all_ended_as(outcome), "{code}: {:?}", told.outcomes());
    }
}

#[test]
fn a_success_without_the_id_that_it_has_to_name_is_a_refusal_of_its_own() {
    let header = AnswerId::Header("X-Id".to_owned());
    let pointer = AnswerId::Pointer("/data/id".to_owned());
    for (id, answer, has_id) in [
        (&header, "x-id: 41\r\nContent-Length: 0\r\n\r\n", true),
        (&header, "x-id: \r\nContent-Length: 0\r\n\r\n", false),
        (&header, "Content-Length: 0\r\n\r\n", false),
        (
            &pointer,
            "Content-Length: 24\r\n\r\n{\"data\": {\"id\": \"a-41\"}}",
            true,
        ),
        (
            &pointer,
            "Content-Length: 20\r\n\r\n{\"data\": {\"id\": 41}}",
            true,
        ),
        (
            &pointer,
            "Content-Length: 22\r\n\r\n{\"data\": {\"id\": null}}",
            false,
        ),
        (&pointer, "Content-Length: 2\r\n\r\n{}", false),
        (&pointer, "Content-Length: 9\r\n\r\nno JSON..", false),
    ] {
        let call = HttpCall {
            id: Some(id.clone()),
            ..call()
        };
        let text = format!("HTTP/1.1 201 X\r\n{answer}");
        let (told, _) = World::new(&calling(call, "x"), move |_| says(&text)).whole();
        let outcome = match has_id {
            true => Outcome::Accepted,
            false => Outcome::Rejected(Reason::HttpNoId(201)),
        };
        assert!(
            told.all_ended_as(outcome),
            "{answer}: {:?}",
            told.outcomes()
        );
    }
}

#[test]
fn a_success_of_http_that_the_scenario_does_not_name_is_reported_with_the_remedy() {
    let mut world = World::new(&calling(call(), "v1"), |asked| match asked.number {
        0 => says("HTTP/1.1 205 X\r\nContent-Length: 5\r\n\r\nhello"),
        _ => status(204),
    });
    world.start();
    world.run_until(Micros::from_secs(20));
    let notes = format!("{:?}", world.shard.recording().refusals().take());
    assert!(
        notes.contains("code http-205: `success` does not name"),
        "{notes}"
    );
}
