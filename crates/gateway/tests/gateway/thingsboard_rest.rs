//! ThingsBoard's REST API: each row of what a real one answers, and what it stores.

use muster_model::behaviour::{Behaviour, Delayed, Stall};
use muster_model::{Micros, Rate, Reason};
use muster_protocol::coap::Code;
use muster_protocol::mqtt::{Connect, Qos, Version};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::device::{Ask, Device};
use crate::peer::{CLOCK, Peer, Seen};
use crate::tenant::{PATIENCE, Tenant, refused, text};

const TELEMETRY: &str = "v1/devices/me/telemetry";

#[test]
fn a_login_is_by_password_and_ends_with_its_session() {
    let tenant = Tenant::new();
    assert_eq!(refused(tenant.login("other")), (401, 10));
    let user = "GET /api/auth/user";
    assert_eq!(tenant.get("/api/auth/user")["authority"], "TENANT_ADMIN");
    let bearer = format!("Authorization: Bearer {}", tenant.token);
    assert_eq!(tenant.call_as(&bearer, user, &Value::Null).0, 200);
    assert_eq!(
        refused(tenant.call_as("X: y", user, &Value::Null)),
        (401, 10)
    );
    let (_, tokens) = tenant.login("open-sesame");
    let refresh = json!({ "refreshToken": tokens["refreshToken"] });
    let again = text(&tenant.post("/api/auth/token", &refresh)["token"]);
    let again = format!("X-Authorization: Bearer {again}");
    assert_eq!(tenant.call_as(&again, user, &Value::Null).0, 200);
    assert_eq!(
        tenant
            .call_as(&again, "POST /api/auth/logout", &Value::Null)
            .0,
        200
    );
    assert_eq!(
        refused(tenant.call_as(&again, user, &Value::Null)),
        (401, 11)
    );
    assert_eq!(
        refused(tenant.call("POST /api/auth/token", &refresh)),
        (401, 11)
    );
    assert_eq!(tenant.call(user, &Value::Null).0, 200);
}

#[test]
fn a_device_has_a_name_and_a_token_of_its_own() {
    let tenant = Tenant::new();
    let id = tenant.create("d1");
    let create = |query: &str, name: &str| {
        let body = json!({ "name": name });
        refused(tenant.call(&format!("POST /api/device{query}"), &body))
    };
    assert_eq!(create("?accessToken=other", "d1"), (400, 31));
    assert_eq!(create("?accessToken=d1", "d2"), (400, 31));
    assert_eq!(create("", ""), (400, 31));
    assert_eq!(create("", "d2"), (200, 0));
    assert_eq!(
        tenant.get("/api/tenant/devices?deviceName=d1")["id"]["id"],
        id.as_str()
    );
    let page = tenant.get("/api/tenant/devices?pageSize=1&page=1");
    assert_eq!(
        (
            &page["data"][0]["name"],
            &page["totalElements"],
            &page["hasNext"]
        ),
        (&json!("d2"), &json!(2), &json!(false))
    );
    let found = tenant.get("/api/tenant/devices?pageSize=9&page=0&textSearch=D2");
    assert_eq!(found["totalElements"], 1);
    let path = format!("/api/device/{id}");
    let mut credentials = tenant.get(&format!("{path}/credentials"));
    assert_eq!(credentials["credentialsId"], "d1");
    credentials["credentialsId"] = json!("changed");
    tenant.post("/api/device/credentials", &credentials);
    assert_eq!(
        tenant.get(&format!("{path}/credentials"))["credentialsId"],
        "changed"
    );
    let delete = |path: &str| refused(tenant.call(&format!("DELETE {path}"), &Value::Null));
    assert_eq!(delete(&path), (200, 0));
    assert_eq!(delete(&path), (404, 32));
    assert_eq!(
        refused(tenant.call(&format!("GET {path}"), &Value::Null)),
        (404, 32)
    );
    assert_eq!(delete("/api/device/none"), (400, 31));
    let gone = tenant.call("GET /api/tenant/devices?deviceName=d1", &Value::Null);
    assert_eq!(refused(gone), (404, 32));
    assert_eq!(create("?accessToken=d1", "d1"), (200, 0));
}

#[test]
fn only_tokens_of_the_store_are_admitted_and_the_link_has_the_name_of_its_device() {
    let tenant = Tenant::new();
    let made = tenant.post(
        "/api/device?accessToken=secret",
        &json!({ "name": "meter" }),
    );
    let id = format!("DEVICE/{}", text(&made["id"]["id"]));
    let mut peer = tenant.device("secret");
    peer.publish(
        TELEMETRY,
        br#"{"ts":5,"values":{"a":1.50,"b":"x"}}"#,
        Qos::AtLeastOnce,
    );
    peer.answers(1);
    assert_eq!(
        tenant.series(&id, "a", 1),
        [json!({ "ts": 5, "value": "1.5" })]
    );
    // Over HTTP and CoAP its token stands in the path.
    let path = |token: &str| format!("api/v1/{token}/telemetry");
    let post = |token: &str| {
        let line = format!("POST /{}", path(token));
        let body = r#"{"ts":6,"values":{"a":2}}"#;
        Browser::new(tenant.at("http"))
            .answer(&line, &[], body)
            .status
    };
    let mut device = Device::new(tenant.at("coap"));
    let mut put = |token: &str| {
        let body = br#"{"ts":7,"values":{"a":3}}"#;
        device.answer(Ask::post(&path(token), body)).code
    };
    for (token, over_http, over_coap) in [("secret", 200, 201), ("stranger", 401, 401)] {
        let code = Code::of_status(over_coap).expect("it has a code");
        assert_eq!((post(token), put(token)), (over_http, code), "{token}");
    }
    let at: Vec<Value> = tenant
        .series(&id, "a", 3)
        .into_iter()
        .map(|point| point["ts"].clone())
        .collect();
    assert_eq!(at, [5, 6, 7]);
    let refusal = Connect {
        user: Some("stranger"),
        ..Connect::new("stranger")
    };
    let refused = Peer::open(tenant.gateway.addr(), Version::V311, &refusal);
    let reason = Reason::MqttConnack(5);
    assert_eq!(refused.seen.first(), Some(&Seen::Refused(reason)));
}

#[test]
fn a_device_is_a_gateway_only_if_it_was_created_as_one() {
    let tenant = Tenant::new();
    tenant.create("device");
    tenant.create_gateway("gateway");
    for (token, answers) in [("device", 1), ("gateway", 3)] {
        let mut peer = tenant.device(token);
        for (topic, body) in [
            ("v1/gateway/connect", r#"{"device":"a"}"#),
            ("v1/gateway/telemetry", r#"{"a":[{"x":1}]}"#),
            (TELEMETRY, r#"{"x":1}"#),
        ] {
            peer.publish(topic, body.as_bytes(), Qos::AtLeastOnce);
        }
        peer.catch_up();
        let is_answer = |seen: &&Seen| matches!(seen, Seen::Accepted { .. });
        assert_eq!(
            peer.seen.iter().filter(is_answer).count(),
            answers,
            "{token}"
        );
    }
}

#[test]
fn devices_come_from_lines_of_csv_up_to_the_limit_of_the_tenant() {
    let tenant = Tenant::with(
        Behaviour {
            device_limit: Some(3),
            ..Behaviour::default()
        },
        None,
    );
    tenant.create("d0");
    let import = |file: &str| {
        let columns = ["NAME", "TYPE", "ACCESS_TOKEN"].map(|kind| json!({ "type": kind }));
        let mapping =
            json!({ "columns": columns, "delimiter": ",", "update": false, "header": true });
        tenant.post(
            "/api/device/bulk_import",
            &json!({ "file": file, "mapping": mapping }),
        )
    };
    let imported =
        import("NAME,TYPE,TOKEN\nd0,default,d0\nd1,meters,t1\nd2,meters,t2\nd3,meters,t3\n");
    let wanted =
        json!({ "created": 2, "updated": 1, "errors": 1, "errorsList": ["Devices limit reached"] });
    assert_eq!(imported, wanted);
    let (status, body) = tenant.call("POST /api/device", &json!({ "name": "d4" }));
    let wanted = json!({
        "status": 403, "message": "Devices limit reached", "errorCode": 41, "entityType": "DEVICE", "limit": 3,
    });
    assert_eq!((status, body), (403, wanted));
    let profiles = tenant.get("/api/deviceProfiles?pageSize=10&page=0&textSearch=meters");
    assert_eq!(profiles["totalElements"], 1);
}

#[test]
fn a_tenant_that_has_sent_all_its_messages_gets_no_links_and_no_requests() {
    let message_limit = Delayed {
        count: 3,
        by: Micros::ZERO,
    };
    let tenant = Tenant::with(
        Behaviour {
            message_limit,
            ..Behaviour::default()
        },
        None,
    );
    tenant.create("d");
    let mut peer = tenant.device("d");
    for _ in 0..3 {
        peer.publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    }
    peer.answers(3);
    for (version, reason) in [
        (Version::V311, Reason::MqttConnack(3)),
        (Version::V5, Reason::Mqtt(0x9f)),
    ] {
        let connect = Connect {
            user: Some("d"),
            ..Connect::new("d")
        };
        let refused = Peer::open(tenant.gateway.addr(), version, &connect);
        assert_eq!(refused.seen.first(), Some(&Seen::Refused(reason)));
    }
    let mut device = Browser::new(tenant.at("http"));
    let answer = device.answer("POST /api/v1/d/telemetry", &[], "{}");
    assert_eq!((answer.status, answer.body.len()), (500, 0));
}

#[test]
fn more_calls_than_the_tenant_may_make_are_refused() {
    let tenant = Tenant::with(
        Behaviour {
            rest_rate: Some(Rate::per_second(1.0).expect("a rate")),
            ..Behaviour::default()
        },
        None,
    );
    let call = || tenant.call("GET /api/auth/user", &Value::Null);
    let limited = std::iter::repeat_with(call)
        .take(10_000)
        .find(|(status, _)| *status != 200);
    let wanted = json!({ "status": 429, "message": "Too many requests for current tenant!", "errorCode": 33 });
    assert_eq!(limited, Some((429, wanted)));
}

/// The nodes of the published chain: whatever is stored is counted.
fn counting(chain: &Value) -> Value {
    let node = |class: &str, configuration: Value| json!({ "type": format!("org.thingsboard.rule.engine.{class}"), "name": class, "configuration": configuration });
    let connection =
        |from: u32, to: u32, kind: &str| json!({ "fromIndex": from, "toIndex": to, "type": kind });
    json!({
        "ruleChainId": chain["id"],
        "firstNodeIndex": 0,
        "nodes": [
            node("filter.TbMsgTypeSwitchNode", json!({})),
            node("telemetry.TbMsgTimeseriesNode", json!({})),
            node("action.TbMsgCountNode", json!({ "telemetryPrefix": "perf", "interval": 1 })),
            node("telemetry.TbMsgTimeseriesNode", json!({})),
        ],
        "connections": [
            connection(0, 1, "Post telemetry"), connection(1, 2, "Success"), connection(2, 3, "Success"),
        ],
    })
}

#[test]
fn rule_chains_are_created_made_root_and_deleted_unless_they_are() {
    let tenant = Tenant::new();
    let chains = || tenant.get("/api/ruleChains?pageSize=10&page=0");
    let before = chains()["data"][0].clone();
    assert_eq!(
        (&before["root"], &before["type"]),
        (&json!(true), &json!("CORE"))
    );
    let first = tenant.post("/api/ruleChain", &json!({ "name": "test" }));
    let second = tenant.post("/api/ruleChain", &json!({ "name": "test" }));
    assert_eq!(chains()["totalElements"], 3);
    let mut nodes = counting(&first);
    nodes["nodes"][1]["type"] = json!("nobody's");
    let written = tenant.post("/api/ruleChain/metadata", &nodes);
    assert_eq!(written["nodes"].as_array().map(Vec::len), Some(4));
    nodes["version"] = json!(1);
    assert_eq!(
        refused(tenant.call("POST /api/ruleChain/metadata", &nodes)),
        (409, 35)
    );
    nodes["version"] = Value::Null;
    nodes["firstNodeIndex"] = json!(4);
    assert_eq!(
        refused(tenant.call("POST /api/ruleChain/metadata", &nodes)),
        (400, 31)
    );
    let path = |chain: &Value| format!("/api/ruleChain/{}", text(&chain["id"]["id"]));
    let delete =
        |chain: &Value| refused(tenant.call(&format!("DELETE {}", path(chain)), &Value::Null));
    let root = tenant.post(&format!("{}/root", path(&second)), &Value::Null);
    assert_eq!(root["root"], true);
    assert_eq!(tenant.get(&path(&before))["root"], false);
    assert_eq!(delete(&second), (400, 31));
    tenant.post(&format!("{}/root", path(&before)), &Value::Null);
    assert_eq!(
        (delete(&second), delete(&second), delete(&first)),
        ((200, 0), (404, 32), (200, 0))
    );
}

#[test]
fn exported_chains_are_imported_without_their_versions_and_refused_with_them() {
    let tenant = Tenant::new();
    let chain = tenant.post("/api/ruleChain", &json!({ "name": "test" }));
    tenant.post("/api/ruleChain/metadata", &counting(&chain));
    let mut exported = tenant.get("/api/ruleChains/export?limit=10");
    let import = |query: &str, data: &Value| {
        let imported = tenant.post(&format!("/api/ruleChains/import{query}"), data);
        let results = imported.as_array().expect("a list").clone();
        results.into_iter().map(|result| {
            let error = result["error"]
                .as_str()
                .and_then(|error| error.split_once(':'));
            let error = error.map_or_else(String::new, |(name, _)| name.to_owned());
            (
                result["ruleChainId"].clone(),
                result["updated"] == true,
                error,
            )
        })
    };
    let stale = || (Value::Null, false, "StaleObjectStateException".to_owned());
    assert!(import("", &exported).eq([stale(), stale()]));
    exported["ruleChains"][1]["version"] = Value::Null;
    let imported: Vec<_> = import("", &exported).collect();
    let (id, ..) = &imported[1];
    assert_eq!(imported, [stale(), (id.clone(), false, String::new())]);
    let nodes = tenant.get(&format!("/api/ruleChain/{}/metadata", text(&id["id"])));
    assert_eq!(nodes["nodes"][2]["name"], "action.TbMsgCountNode");
    assert_eq!(nodes["connections"], counting(&chain)["connections"]);
    // What has the same name is replaced, the first of them, if it is as it was exported.
    let exported = tenant.get("/api/ruleChains/export?limit=2");
    let replaced = |at: usize| {
        (
            exported["ruleChains"][at]["id"].clone(),
            true,
            String::new(),
        )
    };
    assert!(import("?overwrite=True", &exported).eq([replaced(0), replaced(1)]));
    let page = tenant.get("/api/ruleChains?pageSize=10&page=0");
    assert_eq!(page["totalElements"], 3);
    assert_eq!(page["data"][0]["root"], true);
}

#[test]
fn what_is_stored_is_counted_each_second_while_a_chain_with_a_count_node_is_root() {
    let tenant = Tenant::new();
    let tenant_id = text(&tenant.get("/api/auth/user")["tenantId"]["id"]);
    let of_tenant = format!("TENANT/{tenant_id}");
    tenant.create_gateway("GW00000000");
    let keys = || {
        tenant.get(&format!(
            "/api/plugins/telemetry/{of_tenant}/keys/timeseries"
        ))
    };
    assert_eq!(keys(), json!([]));
    let chain = tenant.post("/api/ruleChain", &json!({ "name": "test" }));
    tenant.post("/api/ruleChain/metadata", &counting(&chain));
    let id = text(&chain["id"]["id"]);
    tenant.post(&format!("/api/ruleChain/{id}/root"), &Value::Null);
    let mut peer = tenant.device("GW00000000");
    let both = br#"{"a":[{"x":1}],"b":[{"x":2}]}"#;
    for _ in 0..10 {
        peer.publish("v1/gateway/telemetry", both, Qos::AtLeastOnce);
    }
    peer.answers(10);
    let counts = |points: usize| -> Vec<u64> {
        let points = tenant.series(&of_tenant, "perf_node", points).into_iter();
        points
            .map(|point| text(&point["value"]).parse().expect("a count"))
            .collect()
    };
    // Twenty in all, and zeros too: both devices of a gateway are there now.
    let mut points = 2;
    while counts(points).iter().sum::<u64>() < 20 || counts(points).last() != Some(&0) {
        points += 1;
    }
    assert_eq!(counts(points).iter().sum::<u64>(), 20);
    assert_eq!(
        tenant.get("/api/tenant/devices?deviceName=b")["type"],
        "default"
    );
    let counts = tenant.gateway.stop().counts;
    assert_eq!((counts.processed, counts.stored), (20, 20));
}

/// The count node stands behind the node that stores: the tenant has no room for the second device of the gateway.
#[test]
fn what_is_not_stored_is_not_counted() {
    let behaviour = Behaviour {
        device_limit: Some(2),
        ..Behaviour::default()
    };
    let tenant = Tenant::with(behaviour, None);
    let tenant_id = text(&tenant.get("/api/auth/user")["tenantId"]["id"]);
    tenant.create_gateway("GW00000000");
    let chain = tenant.post("/api/ruleChain", &json!({ "name": "test" }));
    tenant.post("/api/ruleChain/metadata", &counting(&chain));
    let id = text(&chain["id"]["id"]);
    tenant.post(&format!("/api/ruleChain/{id}/root"), &Value::Null);
    let mut peer = tenant.device("GW00000000");
    let both = br#"{"a":[{"x":1}],"b":[{"x":2}]}"#;
    for _ in 0..10 {
        peer.publish("v1/gateway/telemetry", both, Qos::AtLeastOnce);
    }
    peer.answers(10);
    let of_tenant = format!("TENANT/{tenant_id}");
    let counts = |points: usize| -> Vec<u64> {
        let points = tenant.series(&of_tenant, "perf_node", points).into_iter();
        let count = points.map(|point| text(&point["value"]).parse().expect("a count"));
        count.collect()
    };
    let mut points = 2;
    while counts(points).iter().sum::<u64>() < 10 || counts(points).last() != Some(&0) {
        points += 1;
    }
    assert_eq!(counts(points).iter().sum::<u64>(), 10);
    let counts = tenant.gateway.stop().counts;
    assert_eq!((counts.stored, counts.store_discarded), (10, 10));
}

#[test]
fn series_are_read_by_key_range_order_and_interval() {
    let tenant = Tenant::new();
    let id = format!("DEVICE/{}", tenant.create("d"));
    let mut peer = tenant.device("d");
    for ts in 1..=5 {
        let body = format!(r#"{{"ts":{ts},"values":{{"n":{ts},"on":true,"o":{{"a":1}}}}}}"#);
        peer.publish(TELEMETRY, body.as_bytes(), Qos::AtLeastOnce);
    }
    // The same instant again replaces the point.
    peer.publish(
        TELEMETRY,
        br#"{"ts":5,"values":{"n":50}}"#,
        Qos::AtLeastOnce,
    );
    peer.answers(6);
    tenant.series(&id, "n", 5);
    let give_up = CLOCK.now() + PATIENCE;
    while tenant.gateway.account().counts.stored < 6 {
        assert!(CLOCK.now() < give_up);
    }
    let path = format!("/api/plugins/telemetry/{id}");
    assert_eq!(
        tenant.get(&format!("{path}/keys/timeseries")),
        json!(["n", "o", "on"])
    );
    let read = |query: &str| tenant.get(&format!("{path}/values/timeseries?{query}"));
    let point = |ts: i64, value: Value| json!({ "ts": ts, "value": value });
    let rows = [
        (
            "keys=n&startTs=2&endTs=5&orderBy=ASC",
            json!({ "n": [point(2, json!("2")), point(3, json!("3")), point(4, json!("4"))] }),
        ),
        (
            "keys=n&startTs=0&endTs=9&limit=2",
            json!({ "n": [point(5, json!("50")), point(4, json!("4"))] }),
        ),
        (
            "keys=n,on&startTs=1&endTs=2&useStrictDataTypes=true",
            json!({ "n": [point(1, json!(1))], "on": [point(1, json!(true))] }),
        ),
        (
            "keys=o&startTs=1&endTs=2",
            json!({ "o": [point(1, json!("{\"a\":1}"))] }),
        ),
        ("keys=n&startTs=2", json!({ "n": [point(5, json!("50"))] })),
        (
            "keys=n&startTs=0&endTs=10&agg=COUNT&interval=10",
            json!({ "n": [point(5, json!("5"))] }),
        ),
        (
            "keys=n&startTs=0&endTs=4&agg=SUM&interval=2&useStrictDataTypes=true",
            json!({ "n": [point(1, json!(1.0)), point(3, json!(5.0))] }),
        ),
        ("keys=nothing&startTs=0&endTs=9", json!({})),
    ];
    for (query, wanted) in rows {
        assert_eq!(read(query), wanted, "{query}");
    }
    let refused_as = |path: String| refused(tenant.call(&format!("GET {path}"), &Value::Null));
    let range = "values/timeseries?keys=n&startTs=0&endTs=9";
    assert_eq!(refused_as(format!("{path}/{range}&limit=0")), (400, 31));
    assert_eq!(
        refused_as(format!("{path}/{range}99&agg=COUNT&interval=1")),
        (400, 31)
    );
    let wrong =
        format!("/api/plugins/telemetry/TENANT/13814000-1dd2-11b2-8080-808080808080/{range}");
    assert_eq!(refused_as(wrong), (404, 32));
}

#[test]
fn an_exact_number_is_lost_between_acknowledgement_and_store() {
    let tenant = Tenant::with(
        Behaviour {
            lose_stored: 3,
            ..Behaviour::default()
        },
        None,
    );
    let id = format!("DEVICE/{}", tenant.create("d"));
    let mut peer = tenant.device("d");
    for ts in 1..=20 {
        let body = format!(r#"{{"ts":{ts},"values":{{"n":{ts}}}}}"#);
        peer.publish(TELEMETRY, body.as_bytes(), Qos::AtLeastOnce);
    }
    peer.answers(20);
    let stored = tenant.series(&id, "n", 17);
    let account = tenant.gateway.stop();
    assert_eq!((account.counts.accepted, account.counts.stored), (20, 17));
    let lost: Vec<u64> = (1..=20)
        .filter(|ts| !stored.iter().any(|point| point["ts"] == json!(ts)))
        .map(|ts| {
            muster_gateway::payload_hash(
                format!(r#"{{"ts":{ts},"values":{{"n":{ts}}}}}"#).as_bytes(),
            )
        })
        .collect();
    let mut booked = account.misbehaved["lose-stored"].clone();
    booked.sort_by_key(|hash| lost.iter().position(|lost| lost == hash));
    assert_eq!((booked, account.befell("lose-stored")), (lost, 3));
}

#[test]
fn a_store_that_stands_still_lets_uplinks_be_accepted_meanwhile() {
    let stall = Stall {
        at: Micros::ZERO,
        lasts: Micros::from_secs(2),
    };
    let tenant = Tenant::with(
        Behaviour {
            stall_store: Some(stall),
            ..Behaviour::default()
        },
        None,
    );
    let id = format!("DEVICE/{}", tenant.create("d"));
    let mut peer = tenant.device("d");
    let begun = CLOCK.now();
    peer.publish(TELEMETRY, br#"{"ts":1,"values":{"n":1}}"#, Qos::AtLeastOnce);
    peer.answers(1);
    tenant.series(&id, "n", 1);
    let took = CLOCK.now() - begun;
    assert!(took >= Micros::from_millis(1_900), "{took:?}");
    assert_eq!(tenant.gateway.stop().befell("stall-store"), 0);
}

#[test]
fn what_was_answered_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store");
    let tenant = Tenant::with(Behaviour::default(), Some(&file));
    let id = tenant.create("d");
    let token = tenant.token.clone();
    drop(tenant);
    let mut tenant = Tenant::with(Behaviour::default(), Some(&file));
    tenant.token = token;
    assert_eq!(tenant.get(&format!("/api/device/{id}"))["name"], "d");
}
