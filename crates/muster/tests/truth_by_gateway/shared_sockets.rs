//! Devices over CoAP that share their sockets: plain, where message ids and tokens tell them apart, and
//! over DTLS, where connection ids do.

use crate::hono::all;
use crate::truth::{DEVICES, MESSAGES, Truth};

/// At 400 messages a second the 65,536 ids of a socket last for 247 s with two sockets.
const SCENARIO: &str = r#"
name: shared
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "SCHEME://127.0.0.1:0" ]
  behaviour: { BEHAVIOUR }
fleet:
  - name: meters
    count: 50
    tenant: t
    sockets: shared
    client: { coap: { ack-timeout: 200ms, max-retransmit: 2, exchange-lifetime: LIFETIME } }
    CREDENTIAL
    streams:
      - name: readings
        rate: 400/s
        count: 12
        timeout: 2s
        payload: { template: '{"id":"${stamp}"}' }
phases: { warm-up: 0s, measure: 1500ms, settle: { at-most: 15s, quiet: 400ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

/// Protocol that devices speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Coap,
    Dtls,
}

const BOTH: [Over; 2] = [Over::Coap, Over::Dtls];

fn scenario(over: Over, behaviour: &str, lifetime: &str) -> String {
    let (scheme, credential) = match over {
        Over::Coap => ("coap", ""),
        Over::Dtls => {
            let credential = r#"credential: { kind: psk, user: "${id}@t", secret: "key-${id}" }"#;
            ("coaps", credential)
        }
    };
    SCENARIO
        .replace("SCHEME", scheme)
        .replace("BEHAVIOUR", behaviour)
        .replace("CREDENTIAL", credential)
        .replace("LIFETIME", lifetime)
}

fn truth(over: Over, behaviour: &str) -> Truth {
    Truth::run(&scenario(over, behaviour, "247s")).named_by_stamps(r#"{"id":""#, r#""}"#)
}

/// The same, where no machine is so busy that what is answered at all is answered too late.
fn patient(over: Over, behaviour: &str) -> Truth {
    let scenario = scenario(over, behaviour, "247s");
    let scenario = scenario
        .replace("max-retransmit: 2", "max-retransmit: 5")
        .replace(" timeout: 2s", " timeout: 6s");
    Truth::run(&scenario).named_by_stamps(r#"{"id":""#, r#""}"#)
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree_and_the_gateway_sees_two_peers() {
    for over in BOTH {
        let truth = truth(over, "");
        truth.agrees();
        assert_eq!(truth.uplink("accepted"), MESSAGES);
        assert_eq!(truth.uplink("arrived"), MESSAGES);
        assert_eq!(truth.exit_code, 0);
        let devices = u64::from(DEVICES);
        match over {
            // A peer is an address, and over DTLS a session.
            Over::Coap => assert_eq!(truth.account("peers"), 2),
            Over::Dtls => {
                assert_eq!(truth.account("peers"), devices);
                assert_eq!(truth.account("dtls-connection-ids"), devices);
            }
        }
    }
}

#[test]
fn the_lost_are_the_same_that_the_gateway_lost() {
    for over in BOTH {
        let truth = truth(over, "lose-after-accept: 17");
        truth.agrees();
        let lost = truth.befell("lose-after-accept", 17);
        assert_eq!(truth.uplink("lost"), 17);
        assert_eq!(truth.lost_ids(), lost);
        assert_eq!(truth.absent(), lost);
    }
}

/// An answer that one device gets must not end what another one waits for.
#[test]
fn the_rejected_are_the_same_that_the_gateway_rejected() {
    for over in BOTH {
        let truth = truth(over, "reject: { code: \"4.04\", count: 17 }");
        truth.agrees();
        let rejected = truth.befell("reject", 17);
        assert_eq!(truth.by_code("4.04"), 17);
        assert_eq!(truth.in_state("rejected"), rejected);
    }
}

#[test]
fn those_that_nobody_answers_are_sent_again_and_time_out() {
    for over in BOTH {
        let truth = truth(over, "drop: 13");
        truth.agrees();
        let dropped = truth.befell("drop", 13);
        assert_eq!(truth.in_state("timed_out"), dropped);
        assert_eq!(truth.absent(), dropped);
        assert!(truth.uplink("retransmitted") >= 13);
    }
}

/// Devices get no answers in a stall, so that all devices of a socket send again at once.
#[test]
fn what_is_refused_lost_or_sent_again_in_a_stall_keeps_its_counts() {
    let behaviour = "reject: { code: \"4.04\", share: 5% }, reject-but-deliver: 9, \
                     lose-after-accept: 7, service-time: 30ms, stall: { at: 500ms, for: 400ms }";
    for over in BOTH {
        let truth = patient(over, behaviour);
        truth.agrees();
        let rejected = truth.befell("reject", 30);
        let delivered = truth.befell("reject-but-deliver", 9);
        let lost = truth.befell("lose-after-accept", 7);
        assert_eq!(truth.by_code("4.04"), 39);
        assert_eq!(truth.cell("rejected", "arrived"), 9);
        assert_eq!(truth.lost_ids(), lost);
        assert_eq!(truth.in_state("rejected"), all([&rejected, &delivered]));
        assert_eq!(truth.absent(), all([&rejected, &lost]));
        assert_eq!(truth.account("stalled"), 1);
        let again = truth.uplink("retransmitted");
        assert_eq!(truth.account("received-again"), again);
        assert!(again >= 20, "{again}");
    }
}

#[test]
fn a_full_queue_drops_or_blocks_what_it_says() {
    for over in BOTH {
        let truth = truth(over, "capacity: 200/s, queue: 20, full: drop");
        truth.agrees();
        let dropped = truth.account("capacity-dropped");
        // A device that waits in vain sends nothing else meanwhile.
        assert!(dropped > 20, "{dropped}");
        assert_eq!(truth.not_arrived("timed_out"), dropped);
        assert_eq!(truth.absent(), truth.in_state("timed_out"));
        let truth = patient(over, "capacity: 200/s, queue: 20, full: block");
        truth.agrees();
        assert!(truth.account("capacity-blocked") > 20);
        assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
    }
}

/// RFC 7252 section 4.4: within a lifetime each message id is used once.
#[test]
fn a_shorter_lifetime_lets_all_share_one_socket() {
    let truth = Truth::run(&scenario(Over::Coap, "", "20s"));
    truth.agrees();
    assert_eq!(truth.account("peers"), 1);
}
