//! Devices over CoAP whose messages are named in the envelope of Ditto, where applications have an id of
//! their own: a stamp there, or the device's index and the message's number.

use std::collections::BTreeSet;

use crate::hono::over;
use crate::truth::{Id, MESSAGES, Truth};

const POINTER: &str = "/headers/correlation-id";
const BEHAVIOUR: &str = "lose-after-accept: 17, drop: 5, duplicate: 12, reject-but-deliver: 9, \
                         deliver-late: { count: 7, by: 300ms }";

/// Parts of the payload before and after the id.
const BEFORE: &str = r#"{"topic":"org.eclipse.muster/meter/things/twin/commands/modify","headers":{"response-required":false,"correlation-id":""#;
const AFTER: &str = r#""},"path":"/features/temperature/properties","value":{"temperature":20.5,"unit":"Celsius"}}"#;

/// A run whose messages are named there, with this template of a payload or without one.
fn run(carrier: &str, template: Option<&str>, behaviour: &str) -> Truth {
    let scenario = over("coap", false).scenario(behaviour, "1500ms");
    let (before, after) = scenario.split_once("payload: ").expect("it has a payload");
    let (_, after) = after.split_once('\n').expect("it has further lines");
    let payload = match template {
        Some(template) => format!("{{ template: '{template}' }}"),
        None => "ditto-modify".to_owned(),
    };
    let carrier = format!("carrier: {{ {carrier}: {POINTER} }}");
    Truth::run(&format!(
        "{before}payload: {payload}\n        {carrier}\n{after}"
    ))
}

/// Number of messages that the gateway says it treated so.
fn befell(truth: &Truth, misbehaviour: &str) -> usize {
    let hashes = truth.gateway["misbehaved"][misbehaviour].as_array();
    hashes.expect("the misbehaviour happened").len()
}

/// Checks that all that the gateway counted is found, and nothing else, wherever the id is.
fn agrees(truth: &Truth) {
    truth.agrees();
    assert_eq!(truth.lost_ids(), truth.absent_of("accepted"));
    assert_eq!(truth.lost_ids().len(), befell(truth, "lose-after-accept"));
    assert_eq!(truth.uplink("lost"), 17);
    assert_eq!(truth.in_state("timed_out").len(), befell(truth, "drop"));
    assert_eq!(truth.uplink("duplicates"), 12);
    assert_eq!(befell(truth, "duplicate"), 12);
    assert_eq!(truth.uplink("rejected_but_arrived"), 9);
    assert_eq!(truth.uplink("arrived"), MESSAGES - 17 - 5);
    for none in ["unstamped", "foreign", "corrupted"] {
        assert_eq!(truth.uplink(none), 0, "{none}");
    }
}

impl Truth {
    /// Messages that ended so and never came.
    fn absent_of(&self, state: &str) -> BTreeSet<Id> {
        self.ids_where(|fared| fared.state == state && fared.seen_us.is_empty())
    }

    /// Checks that the ids are those of the gateway's account.
    fn are_the_same(&self) {
        assert_eq!(self.lost_ids(), self.befell("lose-after-accept", 17));
        assert_eq!(self.in_state("timed_out"), self.befell("drop", 5));
        assert_eq!(
            self.in_state("rejected"),
            self.befell("reject-but-deliver", 9)
        );
        let twice = self.ids_where(|fared| fared.seen_us.len() == 2);
        assert_eq!(twice, self.befell("duplicate", 12));
    }
}

/// No stamp travels: what arrives is joined by two numbers.
#[test]
fn messages_named_by_an_id_of_the_applications_own_are_found_each() {
    agrees(&run("blind", None, BEHAVIOUR));
    let template = format!("{BEFORE}${{index}}-${{seq}}{AFTER}");
    let truth = run("blind", Some(&template), BEHAVIOUR);
    agrees(&truth);
    truth
        .named(|(device, seq)| format!("{BEFORE}{device}-{seq}{AFTER}"))
        .are_the_same();
}

#[test]
fn messages_named_by_a_stamp_in_a_field_are_found_each() {
    agrees(&run("field", None, BEHAVIOUR));
    let template = format!("{BEFORE}${{stamp}}{AFTER}");
    let truth = run("field", Some(&template), BEHAVIOUR);
    agrees(&truth);
    truth.named_by_stamps(BEFORE, AFTER).are_the_same();
}

/// The stamp's check covers the whole envelope.
#[test]
fn an_envelope_that_was_altered_is_counted_as_corrupted() {
    let truth = run("field", None, "corrupt: 19");
    truth.agrees();
    assert_eq!(truth.uplink("corrupted"), 19);
    assert_eq!(befell(&truth, "corrupt"), 19);
    // Where the id cannot be read, its message is missing.
    let unreadable = truth.absent().len() as u64;
    assert_eq!(
        truth.uplink("unstamped") + truth.uplink("foreign"),
        unreadable
    );
    assert_eq!(truth.uplink("lost"), unreadable);
    let read = truth.ids_where(|fared| fared.is_corrupted).len() as u64;
    assert_eq!(read + unreadable, 19);
}
