//! A Hono is told of devices, by both management APIs of its registry.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../surroundings/page.rs"]
mod page;
mod server;
mod world;

use serde_json::{Value, json};

use crate::server::Server;
use crate::world::{PSK, World};

const V1: &str = "";
const LEGACY: &str = ", api: pre-1.0";

/// APIs, with the paths of their tenants, devices and credentials.
const APIS: [(&str, [&str; 3]); 2] = [
    (V1, ["/v1/tenants/", "/v1/devices/", "/v1/credentials/"]),
    (LEGACY, ["/tenant/", "/registration/", "/credentials/"]),
];

#[test]
fn what_is_created_is_there_once_and_goes_again() {
    for (api, paths) in APIS {
        let world = World::start(20, api, PSK);
        assert_eq!(
            world.create().unwrap().to_string(),
            "device: 20 created; tenant: 1 created"
        );
        let counts = paths.map(|path| world.server.below(path).len());
        assert_eq!(counts, [1, 20, 20], "{api}");
        let again = "device: 20 already there; tenant: 1 already there";
        assert_eq!(world.create().unwrap().to_string(), again, "{api}");
        assert_eq!(world.verify().unwrap().to_string(), again, "{api}");
        let removed = "device: 20 removed; tenant: 1 removed";
        assert_eq!(world.remove().unwrap().to_string(), removed, "{api}");
        assert!(world.server.held().things.is_empty(), "{api}");
        assert_eq!(world.remove().unwrap().to_string(), "nothing");
    }
}

#[test]
fn each_body_is_what_the_api_takes() {
    let psk = json!({
        "type": "psk", "auth-id": "auth-0", "enabled": true,
        "secrets": [{ "key": "a2V5LTA=" }],
    });
    let v1 = World::start(1, V1, PSK);
    v1.create().unwrap();
    {
        let held = v1.server.held();
        assert_eq!(held.things["/v1/tenants/t1"], json!({ "enabled": true }));
        assert_eq!(
            held.things["/v1/devices/t1/ns:d-0"],
            json!({ "enabled": true })
        );
        assert_eq!(held.things["/v1/credentials/t1/ns:d-0"], json!([psk]));
    }
    let legacy = World::start(1, LEGACY, PSK);
    legacy.create().unwrap();
    let held = legacy.server.held();
    let device = json!({ "device-id": "ns:d-0", "enabled": true });
    assert_eq!(held.things["/registration/t1/ns:d-0"], device);
    let mut psk = psk;
    psk["device-id"] = json!("ns:d-0");
    assert_eq!(held.things["/credentials/t1/auth-0/psk"], psk);
}

/// Hono sends the messages of a tenant over the network that the tenant names, if it has both.
#[test]
fn a_tenant_names_the_messaging_network_of_the_backend() {
    for network in ["kafka", "amqp"] {
        let world = World::start(1, V1, PSK).with_backend(&format!("{network}://127.0.0.1"));
        world.create().unwrap();
        let wanted = json!({ "enabled": true, "ext": { "messaging-type": network } });
        assert_eq!(world.server.held().things["/v1/tenants/t1"], wanted);
    }
}

#[test]
fn a_password_is_hashed_as_the_scenario_says() {
    let fleet = "id: 'd-${index}', credential: { kind: password, secret: 's' }";
    for (keys, function) in [
        (V1, "sha-512"),
        (", password-hash: bcrypt, bcrypt-cost: 4", "bcrypt"),
    ] {
        let world = World::start(1, keys, fleet);
        world.create().unwrap();
        let held = world.server.held();
        let secret = &held.things["/v1/credentials/t1/d-0"][0]["secrets"][0];
        assert_eq!(secret["hash-function"], function);
    }
}

#[test]
fn a_gateway_is_registered_before_the_devices_that_it_acts_for() {
    let fleet = "gateway: { devices: 3, id: 'gw-${index}' }, id: 'd-${index}', \
                 credential: { kind: psk, user: '${id}@${tenant}', secret: 's' }";
    let world = World::start(6, V1, fleet);
    assert_eq!(world.create().unwrap().kinds["device"].created, 8);
    let held = world.server.held();
    assert_eq!(held.things["/v1/devices/t1/d-4"]["via"], json!(["gw-1"]));
    let credentials = &held.things["/v1/credentials/t1/gw-1"];
    assert_eq!(credentials[0]["auth-id"], "gw-1");
    assert!(!held.things.contains_key("/v1/credentials/t1/d-4"));
}

#[test]
fn what_was_there_before_stays_whatever_else_goes() {
    for (api, [_, devices, _]) in APIS {
        let server = Server::start();
        let first = World::at(server.clone(), 2, api, PSK);
        first.create().unwrap();
        let more = World::at(server.clone(), 5, api, PSK);
        assert_eq!(more.create().unwrap().kinds["device"].created, 3);
        assert_eq!(more.remove().unwrap().to_string(), "device: 3 removed");
        assert_eq!(server.below(devices).len(), 2, "{api}");
    }
}

/// As a device that is refused has itself registered: what is there stays, and only what is missing is made.
#[test]
fn a_link_that_was_refused_is_registered_with_all_that_is_missing() {
    for (api, paths) in APIS {
        let world = World::start(4, &format!("{api}, mode: on-refusal"), PSK);
        let created = "device: 1 created";
        assert_eq!(world.register(2).unwrap().to_string(), created, "{api}");
        let counts = paths.map(|path| world.server.below(path).len());
        assert_eq!(counts, [0, 1, 1], "{api}: no tenant is made");
        let there = "device: 1 already there";
        assert_eq!(world.register(2).unwrap().to_string(), there, "{api}");
        // A device of others that has no credentials yet gets them, and stays.
        let device = format!("{}t1/ns:d-3", paths[1]);
        let bare = json!({ "enabled": true });
        world.server.held().things.insert(device.clone(), bare);
        assert_eq!(world.register(3).unwrap().to_string(), there, "{api}");
        assert_eq!(world.server.below(paths[2]).len(), 2, "{api}");
        assert_eq!(world.remove().unwrap().to_string(), "device: 1 removed");
        assert!(world.server.held().things.contains_key(&device), "{api}");
    }
}

/// A device of others without the credentials that the plan wants.
fn bare(world: &World) -> &'static str {
    let mut held = world.server.held();
    let device = "/v1/devices/t1/ns:d-3".to_owned();
    held.things.insert(device, json!({ "enabled": true }));
    let credentials = "/v1/credentials/t1/ns:d-3";
    held.things.insert(credentials.to_owned(), json!([]));
    credentials
}

/// Credentials that others give a device.
fn theirs(auth_ids: &[&str]) -> Value {
    let one = |auth_id: &&str| json!({ "type": "psk", "auth-id": auth_id });
    auth_ids.iter().map(one).collect()
}

/// Law: what others write between our reading and our writing stays.
#[test]
fn credentials_that_others_add_meanwhile_stay() {
    let world = World::start(4, ", mode: on-refusal", PSK);
    let path = bare(&world);
    world.server.held().meanwhile = [theirs(&["a"])].into();
    world.register(3).unwrap();
    let held = world.server.held();
    let all = held.things[path].as_array().unwrap();
    let auth_ids: Vec<_> = all.iter().map(|one| &one["auth-id"]).collect();
    assert_eq!(auth_ids, ["a", "auth-3"]);
}

#[test]
fn credentials_that_others_keep_changing_are_left_after_two_tries() {
    let world = World::start(4, ", mode: on-refusal", PSK);
    let path = bare(&world);
    world.server.held().meanwhile = [theirs(&["a"]), theirs(&["a", "b"])].into();
    let error = world.register(3).unwrap_err().to_string();
    assert!(
        error.contains("status 412") && error.ends_with("try again"),
        "{error}"
    );
    assert_eq!(world.server.held().things[path], theirs(&["a", "b"]));
}

/// Law: a device whose creation was cut off is no longer ours once others give it credentials.
#[test]
fn what_was_cut_off_is_not_completed_over_the_credentials_of_others() {
    let world = World::start(2, ", pending: 1", PSK);
    begun(&world);
    let path = "/v1/credentials/t1/ns:d-1".to_owned();
    {
        let mut held = world.server.held();
        let device = "/v1/devices/t1/ns:d-1".to_owned();
        held.things.insert(device, json!({ "enabled": true }));
        held.things.insert(path.clone(), json!([]));
        // The first is for the device that is created before.
        held.meanwhile = [json!([]), theirs(&["of-others"])].into();
    }
    let error = world.create().unwrap_err().to_string();
    assert!(error.contains("no credentials of type `psk`"), "{error}");
    assert_eq!(world.server.held().things[&path], theirs(&["of-others"]));
}

/// Credentials of the same name are somebody's choice: they are not doubled, and the difference is named.
#[test]
fn credentials_that_differ_are_left_as_they_are() {
    for (api, paths) in APIS {
        let world = World::start(4, &format!("{api}, mode: on-refusal"), PSK);
        world.register(2).unwrap();
        let path = world.server.below(paths[2]).pop().unwrap();
        let before = {
            let mut held = world.server.held();
            let credentials = held.things.get_mut(&path).unwrap();
            let one = match credentials.as_array_mut() {
                Some(all) => &mut all[0],
                None => credentials,
            };
            one["enabled"] = json!(false);
            held.things[&path].clone()
        };
        let error = world.register(2).unwrap_err().to_string();
        assert!(error.contains("`enabled` is false"), "{api}: {error}");
        assert_eq!(world.server.held().things[&path], before, "{api}");
    }
}

#[test]
fn a_gateway_that_was_refused_is_registered_with_its_devices() {
    let fleet = "gateway: { devices: 3, id: 'gw-${index}' }, id: 'd-${index}', \
                 credential: { kind: psk, user: '${id}@${tenant}', secret: 's' }";
    let world = World::start(8, ", mode: on-refusal", fleet);
    assert_eq!(world.register(2).unwrap().to_string(), "device: 3 created");
    let held = world.server.held();
    for device in ["gw-2", "d-6", "d-7"] {
        let path = format!("/v1/devices/t1/{device}");
        assert!(held.things.contains_key(&path), "{device}");
    }
}

/// A registry that breaks down between a device and its credentials leaves half of it, which is ours.
#[test]
fn what_was_cut_off_is_completed_or_removed() {
    for (api, put) in [
        (V1, "PUT /v1/credentials/t1/ns:d-1"),
        (LEGACY, "POST /credentials/t1"),
    ] {
        for is_taken_up in [true, false] {
            let world = World::start(2, &format!("{api}, pending: 1"), PSK);
            world.server.held().failing = Some((put.to_owned(), 1));
            let error = world.create().unwrap_err().to_string();
            assert!(
                error.contains("status 500") && error.contains("tried again"),
                "{error}"
            );
            if is_taken_up {
                world.create().unwrap();
                assert!(world.verify().unwrap().is_as_wanted(), "{api}");
            }
            world.remove().unwrap();
            assert!(world.server.held().things.is_empty(), "{api}");
        }
    }
}

/// The line of a process that was killed in the call that creates the second device.
fn begun(world: &World) {
    let made = r#"{\"thing\":{\"enabled\":true},\"login\":[\"psk\",\"auth-1\"]}"#;
    let head = r#"{"did":"creating","kind":"device","key":"t1/ns:d-1""#;
    world.append(&format!(r#"{head},"id":"{made}"}}"#));
}

/// Somebody puts the second device there, and credentials for it.
fn put(world: &World, (api, paths): (&str, [&str; 3]), device: Value, auth_id: &str) {
    let mut held = world.server.held();
    let credentials = json!({ "type": "psk", "auth-id": auth_id, "device-id": "ns:d-1" });
    let (place, credentials) = match api {
        V1 => ("ns:d-1".to_owned(), json!([credentials])),
        _ => (format!("{auth_id}/psk"), credentials),
    };
    held.things.insert(format!("{}t1/ns:d-1", paths[1]), device);
    held.things
        .insert(format!("{}t1/{place}", paths[2]), credentials);
}

#[test]
fn a_record_that_ends_in_a_call_is_taken_up() {
    let world = World::start(2, V1, PSK);
    begun(&world);
    {
        let mut held = world.server.held();
        let there = json!({ "enabled": true });
        held.things
            .insert("/v1/devices/t1/ns:d-1".to_owned(), there);
    }
    let counts = world.create().unwrap().kinds["device"];
    assert_eq!((counts.created, counts.already_there), (1, 1));
    assert!(world.verify().unwrap().is_as_wanted());
    assert_eq!(world.remove().unwrap().kinds["device"].removed, 2);
}

/// The call of a killed process never came about, and others made the device since: with another content,
/// or with credentials of their own.
#[test]
fn what_others_made_after_a_killed_process_stays() {
    let cases = [
        (
            json!({ "enabled": true, "ext": { "of": "others" } }),
            "auth-1",
        ),
        (json!({ "enabled": true }), "of-others"),
    ];
    for api in APIS {
        for (device, auth_id) in &cases {
            let world = World::start(2, api.0, PSK);
            begun(&world);
            put(&world, api, device.clone(), auth_id);
            let before = world.server.held().things.clone();
            let removed = world.remove().unwrap();
            assert_eq!(removed.to_string(), "device: 1 left", "{api:?}");
            let named = &removed.wrong[0];
            assert!(named.contains("`t1/ns:d-1` is left there"), "{named}");
            assert_eq!(world.server.held().things, before, "{api:?}");
            assert_eq!(world.remove().unwrap().to_string(), "nothing");
        }
    }
}

/// Law: things of others are used as they are, or differ; either way they are not ours afterwards.
#[test]
fn what_others_made_after_a_killed_process_is_not_taken_over() {
    for api in APIS {
        let world = World::start(2, &format!("{}, pending: 1", api.0), PSK);
        begun(&world);
        put(&world, api, json!({ "enabled": true }), "of-others");
        let error = world.create().unwrap_err().to_string();
        assert!(error.contains("no credentials of type `psk`"), "{error}");
        put(&world, api, json!({ "enabled": true, "ext": {} }), "auth-1");
        assert_eq!(world.create().unwrap().kinds["device"].already_there, 2);
        assert_eq!(world.remove().unwrap().kinds["device"].removed, 1);
        assert_eq!(world.server.below(api.1[1]).len(), 1, "{api:?}");
    }
}

#[test]
fn what_is_missing_or_different_is_named() {
    let world = World::start(4, V1, PSK);
    world.create().unwrap();
    {
        let mut held = world.server.held();
        held.things.remove("/v1/devices/t1/ns:d-0");
        let credentials = "/v1/credentials/t1/ns:d-1".to_owned();
        held.things.insert(credentials, json!([]));
        let device = "/v1/devices/t1/ns:d-2".to_owned();
        held.things.insert(device, json!({ "enabled": false }));
    }
    let verified = world.verify().unwrap();
    let counts = verified.kinds["device"];
    assert_eq!(
        (counts.missing, counts.different, counts.already_there),
        (1, 2, 1)
    );
    let mut wrong = verified.wrong;
    wrong.sort();
    let expected = [
        "the device `t1/ns:d-0` is not there",
        "the device `t1/ns:d-1` differs: it has no credentials of type `psk` for `auth-1`",
        "the device `t1/ns:d-2` differs: `enabled` is false",
    ];
    assert_eq!(wrong, expected);
    let error = world.create().unwrap_err().to_string();
    assert!(error.contains("is there already and differs"), "{error}");
}

#[test]
fn an_identity_of_another_tenant_is_refused_before_any_device() {
    let fleet = "credential: { kind: psk, user: '${id}@t2', secret: 's' }";
    let world = World::start(1, V1, fleet);
    let error = world.create().unwrap_err().to_string();
    assert!(
        error.contains("`<auth-id>@t1`") && error.contains("@t2`"),
        "{error}"
    );
    assert!(world.server.below("/v1/devices").is_empty());
}

/// A registry whose `authenticationRequired` is true, as it is unless it was set otherwise. The header is the
/// second example of RFC 7617 (section 2.1), whose password has a letter outside ASCII.
#[test]
fn a_registry_that_wants_http_basic_is_told_user_and_password() {
    for api in [V1, LEGACY] {
        let server = Server::start();
        server.held().authorization = Some("Basic dGVzdDoxMjPCow==".to_owned());
        let world = |keys: &str| World::at(server.clone(), 2, &format!("{api}{keys}"), PSK);
        let right = world(", user: test, password: '123\u{a3}'");
        assert_eq!(right.create().unwrap().kinds["device"].created, 2, "{api}");
        assert!(right.verify().unwrap().is_as_wanted());
        assert!(!right.record().contains("123"), "{}", right.record());
        right.remove().unwrap();
        for keys in ["", ", token: t0ken", ", user: test, password: hunter2"] {
            let error = world(keys).create().unwrap_err().to_string();
            for part in ["status 401", "`provision.token`", "`provision.password`"] {
                assert!(error.contains(part), "{error}");
            }
            for secret in ["hunter2", "dGVzd", "t0ken"] {
                assert!(!error.contains(secret), "{error}");
            }
        }
        assert!(server.below("/").is_empty());
    }
}

#[test]
fn the_record_holds_no_secret_and_a_greeting_changes_nothing() {
    let world = World::start(1, V1, PSK);
    world.greet().unwrap();
    assert_eq!(world.server.held().calls, ["GET /v1/tenants/t1"]);
    world.create().unwrap();
    let record = world.record();
    assert_eq!(record.lines().count(), 5, "{record}");
    assert!(
        !record.contains("key-0") && !record.contains("a2V5LTA="),
        "{record}"
    );
}

/// Hono answers a path that nobody serves with a page, other servers with what they please.
#[test]
fn who_serves_no_such_path_is_no_registry_and_the_remedy_is_told() {
    let page = "<html><body><h1>Resource not found</h1></body></html>";
    let spring = r#"{"status":404,"error":"Not Found","path":"/wrong/tenants/t1"}"#;
    for (api, _) in APIS {
        for said in [
            page,
            spring,
            r#"{"message":"no"}"#,
            r#"["error"]"#,
            "404",
            "",
        ] {
            let world = World::start(1, api, PSK);
            world.server.held().nobody = Some(said);
            let greeted = world.greet().map_err(|error| error.to_string());
            if api == LEGACY && said.is_empty() {
                assert_eq!(
                    greeted,
                    Ok(()),
                    "a registry of that time has no words for it"
                );
                continue;
            }
            let error = greeted.unwrap_err();
            let remedy = "look whether `provision.url` is the base of the management API";
            assert!(
                error.contains("status 404") && error.ends_with(remedy),
                "{api}: {error}"
            );
        }
    }
}

#[test]
fn a_tenant_that_nobody_creates_has_to_be_there() {
    for (api, _) in APIS {
        let told = World::start(1, api, PSK);
        told.greet().unwrap();
        let looking = World::at(told.server.clone(), 1, &format!("{api}, mode: verify"), PSK);
        let error = looking.greet().unwrap_err().to_string();
        assert!(error.contains("there is no tenant `t1`"), "{error}");
        assert!(
            error.contains("`muster provision SCENARIO create`"),
            "{error}"
        );
        told.create().unwrap();
        looking.greet().unwrap();
    }
}
