//! Questions of devices, answered from ThingsBoard's store: attributes, calls, and devices that are to be made.

use muster_model::behaviour::Behaviour;
use muster_protocol::mqtt::{Connect, Qos, Version};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::peer::{CLOCK, Peer};
use crate::tenant::{PATIENCE, Tenant};

const REPLY_NODE: &str = "org.thingsboard.rule.engine.rpc.TbSendRPCReplyNode";
const TYPE_SWITCH: &str = "org.thingsboard.rule.engine.filter.TbMsgTypeSwitchNode";

/// The answer to a message of a device that subscribed to answers.
fn asked(device: &mut Peer, topic: &str, question: &str) -> Value {
    let count = device.got().len() + 1;
    device.publish(topic, question.as_bytes(), Qos::AtLeastOnce);
    let got = device.messages(count).pop().expect("it came");
    serde_json::from_slice(&got.payload).expect("it is JSON")
}

/// The status and the body of the answer to a request of a device.
fn requested(tenant: &Tenant, line: &str, body: &str) -> (u16, Value) {
    let answer = Browser::new(tenant.at("http")).answer(line, &[], body);
    let body = serde_json::from_slice(&answer.body);
    (answer.status, body.unwrap_or_default())
}

#[test]
fn a_device_gets_the_attributes_of_the_keys_that_it_asks_for() {
    let tenant = Tenant::new();
    let path = format!("/api/plugins/telemetry/DEVICE/{}", tenant.create("d"));
    for (scope, values) in [
        ("SHARED_SCOPE", json!({ "interval": 5, "on": true })),
        ("SERVER_SCOPE", json!({ "secret": 1 })),
    ] {
        tenant.post(&format!("{path}/attributes/{scope}"), &values);
    }
    let mut device = tenant.device("d");
    device.subscribe("v1/devices/me/attributes/response/+", Qos::AtLeastOnce);
    let own = br#"{"model":"m","mac":[1]}"#;
    device.publish("v1/devices/me/attributes", own, Qos::AtLeastOnce);
    let give_up = CLOCK.now() + PATIENCE;
    while tenant.gateway.account().counts.stored < 1 {
        assert!(CLOCK.now() < give_up, "never stored");
    }
    let all =
        json!({ "client": { "mac": [1], "model": "m" }, "shared": { "interval": 5, "on": true } });
    let some = json!({ "client": { "model": "m" }, "shared": { "on": true } });
    for (question, query, wanted) in [
        ("{}", "", all),
        (
            r#"{"clientKeys":"model,x","sharedKeys":"on,secret"}"#,
            "?clientKeys=model,x&sharedKeys=on,secret",
            some,
        ),
        (
            r#"{"sharedKeys":"interval"}"#,
            "?sharedKeys=interval",
            json!({ "shared": { "interval": 5 } }),
        ),
        (r#"{"clientKeys":"x"}"#, "?clientKeys=x", json!({})),
    ] {
        let topic = "v1/devices/me/attributes/request/1";
        assert_eq!(asked(&mut device, topic, question), wanted, "{question}");
        let line = format!("GET /api/v1/d/attributes{query}");
        assert_eq!(requested(&tenant, &line, ""), (200, wanted), "{query}");
    }
}

#[test]
fn a_call_is_answered_by_a_node_of_the_root_chain_or_waits() {
    let tenant = Tenant::new();
    tenant.create("d");
    let call = r#"{"method":"getTime","params":{}}"#;
    let mut waiting = Browser::new(tenant.at("http"));
    waiting.ask("POST /api/v1/d/rpc", &[], call);
    let give_up = CLOCK.now() + PATIENCE;
    while tenant.gateway.account().counts.queries < 1 {
        assert!(CLOCK.now() < give_up, "it does not wait");
    }
    let chain = tenant.post("/api/ruleChain", &json!({ "name": "replies" }));
    let node = |class: &str| json!({ "type": class, "name": "n", "configuration": {} });
    tenant.post(
        "/api/ruleChain/metadata",
        &json!({
            "ruleChainId": chain["id"], "firstNodeIndex": 0,
            "nodes": [node(TYPE_SWITCH), node(REPLY_NODE)],
            "connections": [{ "fromIndex": 0, "toIndex": 1, "type": "RPC Request from Device" }],
        }),
    );
    let id = chain["id"]["id"].as_str().expect("an id");
    tenant.post(&format!("/api/ruleChain/{id}/root"), &Value::Null);
    let wanted: Value = serde_json::from_str(call).expect("it is JSON");
    let answer = requested(&tenant, "POST /api/v1/d/rpc", call);
    assert_eq!(answer, (200, wanted.clone()));
    let mut device = tenant.device("d");
    device.subscribe("v1/devices/me/rpc/response/+", Qos::AtLeastOnce);
    let answer = asked(&mut device, "v1/devices/me/rpc/request/1", call);
    assert_eq!(answer, wanted);
    let account = tenant.gateway.stop().counts;
    assert_eq!((account.queries, account.unanswered), (1, 1));
}

/// A tenant that lets devices of a profile make themselves.
fn provisioning(behaviour: Behaviour) -> Tenant {
    let tenant = Tenant::with(behaviour, None);
    let profile = json!({
        "name": "made", "type": "DEFAULT", "transportType": "DEFAULT",
        "provisionType": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceKey": "k",
        "profileData": { "provisionConfiguration": { "provisionDeviceSecret": "s" } },
    });
    tenant.post("/api/deviceProfile", &profile);
    tenant
}

fn request(name: &str, secret: &str, token: Option<&str>) -> String {
    let mut request =
        json!({ "deviceName": name, "provisionDeviceKey": "k", "provisionDeviceSecret": secret });
    if let Some(token) = token {
        request["token"] = json!(token);
    }
    request.to_string()
}

#[test]
fn a_device_is_made_in_the_store_by_the_key_and_the_secret_of_its_profile() {
    let tenant = provisioning(Behaviour::default());
    let connect = Connect {
        user: Some("provision"),
        ..Connect::new("c")
    };
    let mut link = Peer::open(tenant.gateway.addr(), Version::V5, &connect);
    let mut over_mqtt = |body: &str| asked(&mut link, "/provision/request", body);
    let over_http = |body: &str| {
        let (status, answer) = requested(&tenant, "POST /api/v1/provision", body);
        assert_eq!(status, 200);
        answer
    };
    let success = |token: &str| json!({ "status": "SUCCESS", "credentialsType": "ACCESS_TOKEN", "credentialsValue": token });
    assert_eq!(
        over_mqtt(&request("a", "s", Some("chosen"))),
        success("chosen")
    );
    // A token that the server makes is in its answer alone.
    let made = over_http(&request("b", "s", None));
    let token = made["credentialsValue"].as_str().expect("a token");
    assert_eq!(made, success(token));
    for (token, name) in [("chosen", "a"), (token, "b")] {
        let line = format!("POST /api/v1/{token}/telemetry");
        assert_eq!(requested(&tenant, &line, "{}").0, 200);
        let device = tenant.get(&format!("/api/tenant/devices?deviceName={name}"));
        assert_eq!(device["type"], "made");
    }
    for (wrong, wanted) in [
        (request("c", "other", None), "NOT_FOUND"),
        (request("a", "s", None), "FAILURE"),
        (request("c", "s", Some("chosen")), "FAILURE"),
    ] {
        assert_eq!(over_mqtt(&wrong)["status"], wanted, "{wrong}");
        assert_eq!(over_http(&wrong)["status"], wanted, "{wrong}");
    }
}

#[test]
fn a_device_above_the_limit_of_the_tenant_is_not_made() {
    let tenant = provisioning(Behaviour {
        device_limit: Some(1),
        ..Behaviour::default()
    });
    for (name, wanted) in [("a", "SUCCESS"), ("b", "FAILURE")] {
        let line = "POST /api/v1/provision";
        let (_, answer) = requested(&tenant, line, &request(name, "s", None));
        assert_eq!(answer["status"], wanted, "{name}");
    }
}
