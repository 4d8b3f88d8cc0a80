//! Commands of ThingsBoard's REST API to devices over MQTT, HTTP and CoAP.

use muster_model::Micros;
use muster_protocol::coap::Code;
use muster_protocol::mqtt::Qos;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::device::{Ask, Device};
use crate::peer::CLOCK;
use crate::tenant::{Pending, Tenant, refused};

const COMMANDS: &str = "v1/devices/me/rpc/request/+";
/// Time for which a command waits at the least.
const LEAST: Micros = Micros::from_secs(5);

/// A command to a device, on its way; `path` is what stands before its id.
fn issue(tenant: &Tenant, path: &str, device: &str) -> Pending {
    let command = json!({ "method": "setGpio", "params": { "a": 1 }, "timeout": 1 });
    tenant.begin(&format!("POST {path}/{device}"), &command)
}

/// The same, with an answer that comes at once.
fn answered(tenant: &Tenant, path: &str, device: &str) -> (u16, u64) {
    refused(issue(tenant, path, device).end())
}

#[test]
fn a_device_over_mqtt_gets_commands_and_its_reply_is_the_answer() {
    let tenant = Tenant::new();
    let id = tenant.create("d");
    let mut device = tenant.device("d");
    device.subscribe(COMMANDS, Qos::AtLeastOnce);
    assert_eq!(answered(&tenant, "/api/rpc/oneway", &id), (200, 0));
    for (path, count) in [("/api/rpc/twoway", 2), ("/api/plugins/rpc/twoway", 3)] {
        let issued = issue(&tenant, path, &id);
        let got = device.messages(count).pop().expect("it came");
        let number = got
            .topic
            .strip_prefix(COMMANDS.trim_end_matches('+'))
            .expect("it is numbered");
        let command: Value = serde_json::from_slice(&got.payload).expect("it is JSON");
        assert_eq!(
            command,
            json!({ "method": "setGpio", "params": { "a": 1 } })
        );
        // A reply under another number is nobody's.
        for (number, reply) in [("999999", "{}"), (number, r#"{"on":true}"#)] {
            let topic = format!("v1/devices/me/rpc/response/{number}");
            device.publish(&topic, reply.as_bytes(), Qos::AtLeastOnce);
        }
        assert_eq!(issued.end(), (200, json!({ "on": true })), "{path}");
    }
}

#[test]
fn a_gateway_gets_the_commands_of_its_devices_and_replies_for_them() {
    let tenant = Tenant::new();
    tenant.create_gateway("gateway");
    let id = tenant.create("d");
    let mut gateway = tenant.device("gateway");
    gateway.subscribe("v1/gateway/rpc", Qos::AtLeastOnce);
    gateway.publish("v1/gateway/connect", br#"{"device":"d"}"#, Qos::AtLeastOnce);
    gateway.answers(1);
    let issued = issue(&tenant, "/api/rpc/twoway", &id);
    let got = gateway.messages(1).remove(0);
    let command: Value = serde_json::from_slice(&got.payload).expect("it is JSON");
    assert_eq!(command["device"], "d");
    let reply = json!({ "device": "d", "id": command["data"]["id"], "data": { "on": true } });
    gateway.publish(
        "v1/gateway/rpc",
        reply.to_string().as_bytes(),
        Qos::AtLeastOnce,
    );
    assert_eq!(issued.end(), (200, json!({ "on": true })));
}

#[test]
fn a_device_over_http_gets_commands_while_it_waits_and_its_reply_is_the_answer() {
    let tenant = Tenant::new();
    // The token of the device is not its name.
    let made = tenant.post("/api/device?accessToken=secret", &json!({ "name": "d" }));
    let id = made["id"]["id"].as_str().expect("an id");
    for path in ["/api/rpc/oneway", "/api/rpc/twoway"] {
        let issued = issue(&tenant, path, id);
        let mut device = Browser::new(tenant.at("http"));
        let answer = device.answer("GET /api/v1/secret/rpc?timeout=20000", &[], "");
        let command: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
        let number = &command["id"];
        assert_eq!(
            command,
            json!({ "id": number, "method": "setGpio", "params": { "a": 1 } })
        );
        let line = format!("POST /api/v1/secret/rpc/{number}");
        assert_eq!(device.answer(&line, &[], r#"{"on":true}"#).status, 200);
        let wanted = match path {
            "/api/rpc/oneway" => Value::Null,
            _ => json!({ "on": true }),
        };
        assert_eq!(issued.end(), (200, wanted), "{path}");
    }
}

/// A device over CoAP that observes its commands.
fn observer(tenant: &Tenant, token: &str) -> Device {
    let mut device = Device::new(tenant.at("coap"));
    let answer = device.answer(Ask::observe(&format!("api/v1/{token}/rpc")));
    assert_eq!((answer.code, answer.payload), (Code::VALID, Vec::new()));
    device
}

#[test]
fn a_device_over_coap_is_notified_of_commands_and_its_reply_is_the_answer() {
    let tenant = Tenant::new();
    let made = tenant.post("/api/device?accessToken=secret", &json!({ "name": "d" }));
    let id = made["id"]["id"].as_str().expect("an id");
    let mut device = observer(&tenant, "secret");
    for (count, path) in (1..).zip(["/api/rpc/oneway", "/api/rpc/twoway", "/api/rpc/twoway"]) {
        let issued = issue(&tenant, path, id);
        device.until("a command", |device| device.notified.len() == count);
        let command: Value =
            serde_json::from_slice(&device.notified[count - 1]).expect("it is JSON");
        let number = &command["id"];
        assert_eq!(
            command,
            json!({ "id": number, "method": "setGpio", "params": { "a": 1 } })
        );
        let reply = Ask::post(&format!("api/v1/secret/rpc/{number}"), br#"{"on":true}"#);
        assert_eq!(device.answer(reply).code, Code(0x41));
        let wanted = match path {
            "/api/rpc/oneway" => Value::Null,
            _ => json!({ "on": true }),
        };
        assert_eq!(issued.end(), (200, wanted), "{path}");
    }
    let counts = tenant.gateway.stop().counts;
    assert_eq!(
        (counts.commands_handed, counts.separate_acknowledged),
        (3, 3)
    );
    assert_eq!((counts.queries, counts.unanswered), (0, 0));
}

/// RFC 7641 section 4.1.
#[test]
fn only_the_last_observer_of_a_device_is_notified() {
    let tenant = Tenant::new();
    let id = tenant.create("d");
    let mut earlier = observer(&tenant, "d");
    let mut device = observer(&tenant, "d");
    assert_eq!(answered(&tenant, "/api/rpc/oneway", &id), (200, 0));
    device.until("a command", |device| device.notified.len() == 1);
    earlier.read_all();
    assert!(earlier.notified.is_empty());
    let refused = earlier.answer(Ask::observe("api/v1/nobody/rpc"));
    assert_eq!(refused.code, Code::UNAUTHORIZED);
    let unobserved = Ask {
        observes: false,
        ..Ask::observe("api/v1/d/rpc")
    };
    assert_eq!(earlier.answer(unobserved).code, Code::BAD_REQUEST);
}

/// RFC 7641 section 4.5.
#[test]
fn a_device_that_resets_a_notification_is_away() {
    let tenant = Tenant::new();
    let id = tenant.create("d");
    let mut device = observer(&tenant, "d");
    device.forget_all();
    // The first call is answered once it went out.
    assert_eq!(answered(&tenant, "/api/rpc/oneway", &id), (200, 0));
    let before = device.came;
    device.until("a notification", |device| device.came > before);
    assert_eq!(answered(&tenant, "/api/rpc/oneway", &id).0, 504);
    let counts = tenant.gateway.stop().counts;
    assert_eq!((counts.separate_refused, counts.commands_handed), (1, 1));
}

#[test]
fn a_command_that_cannot_be_sent_is_refused_at_once() {
    let tenant = Tenant::new();
    let id = tenant.create("d");
    for path in ["/api/rpc/oneway", "/api/rpc/twoway"] {
        let unknown = "13814000-1dd2-11b2-8080-808080808080";
        assert_eq!(answered(&tenant, path, unknown), (404, 32));
        assert_eq!(answered(&tenant, path, "none"), (400, 31));
        let nameless = tenant.call(&format!("POST {path}/{id}"), &json!({ "params": {} }));
        assert_eq!(refused(nameless).0, 500);
        // One that waits for its device however long has an id of its own.
        let kept = json!({ "method": "setGpio", "params": {}, "persistent": true });
        let (status, kept) = tenant.call(&format!("POST {path}/{id}"), &kept);
        assert_eq!((status, kept["rpcId"].is_string()), (200, true), "{kept}");
    }
}

#[test]
fn a_command_ends_after_its_time_with_a_status_by_its_path() {
    let tenant = Tenant::new();
    let (away, silent) = (tenant.create("away"), tenant.create("silent"));
    let mut device = tenant.device("silent");
    device.subscribe(COMMANDS, Qos::AtLeastOnce);
    let began = CLOCK.now();
    let issued = [
        ("/api/rpc/oneway", &away, 504),
        ("/api/rpc/twoway", &away, 504),
        ("/api/rpc/twoway", &silent, 504),
        ("/api/plugins/rpc/oneway", &away, 409),
        ("/api/plugins/rpc/twoway", &away, 409),
        ("/api/plugins/rpc/twoway", &silent, 408),
    ]
    .map(|(path, device, status)| (path, issue(&tenant, path, device), status));
    for (path, issued, status) in issued {
        assert_eq!(issued.end(), (status, Value::Null), "{path}");
    }
    // The least time is five seconds, whatever is asked for.
    assert!(CLOCK.now() - began >= LEAST);
    assert_eq!(device.messages(2).len(), 2, "both came");
    // However often each was tried.
    let counts = tenant.gateway.stop().counts;
    assert_eq!(
        (
            counts.commands,
            counts.commands_routed,
            counts.commands_undelivered
        ),
        (6, 2, 4)
    );
}
