//! Errors name the address, the cause and the remedy, and never the token.

use std::net::TcpListener;

use muster_provision::{Journal, ProvisionError, provisioner};
use muster_transport::throwaway;

use crate::peers::{answering, answering_tls};
use crate::world::{Patient, TOKEN, World};

fn refused(world: &World, wanted: &[&str]) -> ProvisionError {
    let error = world.create().unwrap_err();
    let text = error.to_string();
    for part in wanted.iter().chain([&world.url.as_str()]) {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(!text.contains(TOKEN), "{text}");
    error
}

#[test]
fn a_wrong_token_is_401_with_the_key_to_change() {
    let world = World::start(1).keys("token: battery-staple");
    refused(
        &world,
        &[
            "GET ",
            "status 401",
            "no token, or none that is valid",
            "`provision.token`",
        ],
    );
    assert_eq!(World::start(1).create().unwrap().kinds.len(), 3);
}

#[test]
fn a_gateway_that_is_not_there_is_named() {
    let world = World::start(1).keys("gateway: edge-2");
    refused(
        &world,
        &[
            "no gateway whose alternate id is `edge-2`",
            "`provision.gateway`",
        ],
    );
}

#[test]
fn nobody_there_is_silence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = refused(&World::at(&url), &["refused", "`provision.url`"]);
    assert!(error.is_silence());
}

#[test]
fn a_peer_that_never_answers_is_silence_after_the_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let world = World::at(&url).keys("timeout: 50ms");
    assert!(refused(&world, &["timeout"]).is_silence());
}

#[test]
fn an_error_of_the_server_is_shown_with_what_it_says_but_for_the_token() {
    let body = "<h1>out of order</h1>\n for correct-horse";
    let address = answering("500 Internal Server Error", body);
    let world = World::at(&format!("http://{address}"));
    let error = refused(
        &world,
        &["status 500", "`<h1>out of order</h1> for ***`", "own log"],
    );
    assert!(!error.is_silence());
}

#[test]
fn an_endless_answer_is_cut_and_a_redirection_is_not_followed() {
    let body: &'static str = Box::leak("x".repeat(100_000).into_boxed_str());
    let address = answering("404 Not Found", body);
    let error = refused(
        &World::at(&format!("http://{address}")),
        &["xxx...`", "is the base"],
    );
    assert!(error.to_string().len() < 700);
    let address = answering("302 Found", "");
    refused(
        &World::at(&format!("http://{address}")),
        &["status 302, without a word", "leads to"],
    );
}

#[test]
fn an_answer_of_something_else_is_unreadable() {
    for (body, why) in [
        ("hello", "expected value"),
        ("{}", "it is no list"),
        (r#"[{"alternateId":"edge-1"}]"#, "it has no `id`"),
    ] {
        let address = answering("200 OK", body);
        refused(
            &World::at(&format!("http://{address}")),
            &[why, "`provision.url`"],
        );
    }
}

#[test]
fn certificates_are_checked_unless_any_will_do() {
    let made = throwaway(&["localhost".to_owned()]).unwrap();
    let address = answering_tls(&made, "200 OK", "[]");
    let other = throwaway(&["localhost".to_owned()]).unwrap();
    let named = format!("https://localhost:{}", address.port());
    let tried = |url: &str, keys: &str, ca: &[u8]| {
        let world = World::at(url).keys(keys);
        let plan = world.plan(ca);
        let provisioner = provisioner(&plan).unwrap().unwrap();
        let journal = Journal::open(world.folder(), provisioner.target()).unwrap();
        provisioner.create(&plan, &journal, &Patient).unwrap_err()
    };
    let met = |error: &ProvisionError| matches!(error, ProvisionError::NoGateway { .. });
    assert!(met(&tried(&named, "tls: { ca: ca.pem }", made.ca.text())));
    assert!(met(&tried(&named, "tls: { insecure: true }", &[])));
    let stranger = tried(&named, "tls: { ca: ca.pem }", other.ca.text());
    assert!(stranger.is_silence());
    assert!(
        stranger.to_string().contains("whom `tls.ca` trusts"),
        "{stranger}"
    );
    let wrong_name = format!("https://127.0.0.1:{}", address.port());
    let misnamed = tried(&wrong_name, "tls: { ca: ca.pem }", made.ca.text());
    assert!(
        misnamed.to_string().contains("not valid for name"),
        "{misnamed}"
    );
}
