//! A real Kafka consumer before the mock cluster that librdkafka brings: no broker, but its protocol.

mod commands;
mod headers;
mod rig;

use std::time::Duration;

use muster_backend::{Look, look};
use muster_conduct::{Diagnostic, Handover, Order};
use muster_model::{BackendId, Micros};
use muster_plan::Northbound;
use rdkafka::types::RDKafkaRespErr;

use headers::publish_named;
use rig::{Mock, TOPIC, disturbed, plan, plan_of, start, up};

use crate::rig::{RUN, Rig, said};

#[test]
fn what_comes_after_the_consumer_is_up_is_consumed_and_nothing_before() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    (0..40).for_each(|seq| mock.publish_message(&plan, seq));
    let mut rig = up(&plan);
    (40..90).for_each(|seq| mock.publish_message(&plan, seq));
    mock.publish("", b"");
    mock.publish("somebody", b"else");
    rig.until(|rig| rig.copies == 52);
    let (handover, diagnostics) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (52, 2));
    assert_eq!(account.read.count, 50);
    assert!(!disturbed(&diagnostics), "{diagnostics:?}");
}

#[test]
fn two_consumers_of_a_group_share_what_comes() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 2, shared: g");
    mock.publish_message(&plan, 0);
    let mut first = start(&plan);
    let mut second = start(&plan);
    first.until(Rig::is_up);
    second.until(Rig::is_up);
    for rig in [&first, &second] {
        let origin = rig.clock.now();
        rig.order(Order::Start { origin });
    }
    (1..101).for_each(|seq| mock.publish_message(&plan, seq));
    while first.copies + second.copies < 100 {
        first.until(|_| true);
        second.until(|_| true);
    }
    let (first, second) = (first.finish().0, second.finish().0);
    let of = |handover: &Handover| handover.account.backends[0].consumed;
    assert_eq!(of(&first) + of(&second), 100);
    assert!(of(&first) > 0 && of(&second) > 0);
}

/// A name that is no text is nobody's of ours, and ends nothing.
#[test]
fn a_record_with_a_header_whose_name_is_no_text_is_consumed_as_any_other() {
    let mock = Mock::start();
    let plan = plan_of(&mock.servers(), "consumers: 1", "carrier: property");
    let mut rig = up(&plan);
    publish_named(&mock, TOPIC, b"muster-\xff");
    mock.publish("somebody", b"else");
    rig.until(|rig| rig.copies == 2);
    let account = &rig.finish().0.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (2, 2));
}

/// The first has all partitions when the second joins, which takes some of them.
#[test]
fn a_consumer_of_ours_that_joins_before_the_load_is_no_loss_of_the_others() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 2, shared: g");
    let mut first = start(&plan).until_up();
    let mut second = start(&plan).until_up();
    first.until(Rig::is_up);
    first.begin();
    second.begin();
    (0..100).for_each(|seq| mock.publish_message(&plan, seq));
    while first.copies + second.copies < 100 {
        first.until(|_| true);
        second.until(|_| true);
    }
    assert!(first.copies > 0 && second.copies > 0);
    // Both leave at the end, as all consumers of a run do.
    for rig in [&first, &second] {
        rig.order(Order::Finish);
    }
    for rig in [first, second] {
        let (_, diagnostics) = rig.finished();
        assert!(!disturbed(&diagnostics), "{diagnostics:?}");
    }
}

#[test]
fn a_consumer_that_is_paused_stays_in_its_group() {
    let mock = Mock::start();
    let keys = "consumers: 1, shared: g, pause: [ { at: 0s, for: 12s } ]";
    let plan = plan(&mock.servers(), keys);
    let mut rig = up(&plan);
    rig.until(|_| true);
    rig.until(|_| true);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies == 20);
    let (_, diagnostics) = rig.finish();
    assert!(!disturbed(&diagnostics), "{diagnostics:?}");
}

/// Makes the brokers refuse to say where partitions end, `times` times.
fn refuse_ends(mock: &Mock, times: usize) {
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    let asked = rdkafka::types::RDKafkaApiKey::ListOffsets;
    mock.cluster.request_errors(asked, &vec![refused; times]);
}

#[test]
fn a_consumer_that_cannot_take_its_groups_partitions_up_tries_again() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    refuse_ends(&mock, 2);
    let mut rig = up(&plan);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies == 20);
    let (_, diagnostics) = rig.finish();
    assert!(
        said(&diagnostics, "find where the topics end"),
        "{diagnostics:?}"
    );
    assert!(!said(&diagnostics, "ConsumerLost"), "{diagnostics:?}");
}

/// Law: messages since the first due instant would be missed if it began at the ends.
#[test]
fn a_consumer_that_is_given_partitions_during_the_load_goes_on_where_its_group_was() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    let mut rig = start(&plan);
    rig.begin();
    rig.until(|rig| rig.is_up() && rig.copies == 20);
    rig.finish();
}

/// As where another joins just then: the group goes on only when the partitions are assigned.
#[test]
fn a_consumer_that_cannot_tell_its_group_where_it_begins_tries_again() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS;
    let told_to = rdkafka::types::RDKafkaApiKey::OffsetCommit;
    mock.cluster.request_errors(told_to, &[refused; 2]);
    let mut rig = up(&plan);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies == 20);
    let (_, diagnostics) = rig.finish();
    assert!(
        said(&diagnostics, "commit to the group where it begins"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_consumer_that_never_took_its_groups_partitions_up_ends_all_the_same() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    refuse_ends(&mock, 1_000);
    let mut rig = start(&plan);
    rig.until(|rig| rig.said("ConsumerRefused"));
    let (handover, _) = rig.finish();
    assert_eq!(handover.account.backends[0].consumed, 0);
}

/// Law: it joins its group once more, and continues where the group was.
#[test]
fn a_consumer_that_its_group_has_left_out_comes_back() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    let mut rig = up(&plan);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies == 20);
    // It tells its group once a second how far it is; what it had not told would come again.
    let told_by = rig.clock.now() + Micros::from_secs(2);
    rig.until(|rig| rig.clock.now() > told_by);
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
    let beat = rdkafka::types::RDKafkaApiKey::Heartbeat;
    mock.cluster.request_errors(beat, &[unknown]);
    rig.until(|rig| rig.said("ConsumerLost"));
    (20..40).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.is_up() && rig.said("ConsumerBack") && rig.copies >= 40);
    let (handover, diagnostics) = rig.finish();
    assert!(said(&diagnostics, "(a rebalance)"), "{diagnostics:?}");
    assert_eq!(handover.account.backends[0].read.count, 40);
}

#[test]
fn a_broker_that_does_not_answer_is_told_and_so_is_its_return() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let mut rig = up(&plan);
    mock.cluster
        .broker_round_trip_time(1, Duration::from_secs(8))
        .unwrap();
    rig.until(|rig| rig.said("ConsumerLost"));
    assert!(rig.said("has not answered for"), "{:?}", rig.diagnostics);
    mock.cluster
        .broker_round_trip_time(1, Duration::ZERO)
        .unwrap();
    rig.until(|rig| rig.is_up() && rig.said("ConsumerBack"));
    rig.finish();
}

#[test]
fn a_broker_that_ends_its_connections_is_told() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let mut rig = up(&plan);
    mock.cluster.broker_down(1).unwrap();
    rig.until(|rig| rig.said("ConsumerLost"));
    mock.cluster.broker_up(1).unwrap();
    rig.until(|rig| rig.is_up() && rig.said("ConsumerBack"));
    mock.publish_message(&plan, 0);
    rig.until(|rig| rig.copies == 1);
    rig.finish();
}

/// As where the right to read is taken away and given back.
#[test]
fn a_fetch_that_is_refused_for_a_while_is_told_and_nothing_is_left_out() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    let mut rig = up(&plan);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies == 20);
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    let asked = rdkafka::types::RDKafkaApiKey::Fetch;
    mock.cluster.request_errors(asked, &[refused; 3]);
    rig.until(|rig| rig.said("ConsumerLost"));
    (20..40).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.is_up() && rig.copies >= 40);
    let (handover, diagnostics) = rig.finish();
    assert!(
        said(&diagnostics, "authorization failed"),
        "{diagnostics:?}"
    );
    assert_eq!(handover.account.backends[0].read.count, 40);
}

/// More than are taken in one turn, all waiting before the first is taken.
#[test]
fn many_that_wait_are_all_consumed() {
    let mock = Mock::start();
    let keys = "consumers: 1, pause: [ { at: 0s, for: 2s } ]";
    let plan = plan(&mock.servers(), keys);
    let mut rig = up(&plan);
    rig.until(|_| true);
    mock.publish_messages(&plan, 0..3_000);
    rig.until(|rig| rig.copies == 3_000);
    let (handover, diagnostics) = rig.finish();
    assert!(!disturbed(&diagnostics), "{diagnostics:?}");
    assert_eq!(handover.account.backends[0].read.count, 3_000);
}

#[test]
fn what_comes_while_the_consumer_is_paused_is_consumed_after_it() {
    let mock = Mock::start();
    let plan = plan(
        &mock.servers(),
        "consumers: 1, pause: [ { at: 0s, for: 3s } ]",
    );
    let mut rig = up(&plan);
    let resumed = rig.clock.now() + Micros::from_secs(2);
    // The pause begins with the run, and the first news after it may still hold copies.
    rig.until(|_| true);
    rig.until(|_| true);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig| rig.copies > 0);
    assert!(rig.clock.now() > resumed);
    rig.until(|rig| rig.copies == 20);
    assert_eq!(rig.finish().0.account.backends[0].consumed, 20);
}

#[test]
fn where_no_broker_listens_the_consumer_names_the_key() {
    let plan = plan("127.0.0.1:1", "consumers: 1");
    let mut rig = start(&plan);
    rig.until(|rig| rig.said("ConsumerRefused"));
    let (_, diagnostics) = rig.finish();
    assert!(said(&diagnostics, "127.0.0.1:1"), "{diagnostics:?}");
    assert!(
        said(&diagnostics, "platform.backend.url"),
        "{diagnostics:?}"
    );
    let refusals = diagnostics.iter();
    let refusals = refusals.filter(|it| matches!(it, Diagnostic::ConsumerRefused(_)));
    assert_eq!(refusals.count(), 1, "{diagnostics:?}");
}

#[test]
fn a_topic_that_the_consumer_may_not_read_names_the_right() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    mock.cluster.topic_error(TOPIC, refused).unwrap();
    let mut rig = start(&plan);
    rig.until(|rig| rig.said("ConsumerRefused"));
    let (_, diagnostics) = rig.finish();
    assert!(said(&diagnostics, "`readings`"), "{diagnostics:?}");
    assert!(
        said(&diagnostics, "allow platform.backend.user"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_topic_with_other_partitions_is_told_by_both_numbers() {
    let mock = Mock::start();
    let mut plan = plan(&mock.servers(), "consumers: 1");
    let Northbound::Kafka(kafka) = &mut plan.backends[0].northbound else {
        panic!("it is Kafka's");
    };
    kafka.topics[0].partitions = 9;
    let Look::Found { warnings, .. } = look(&plan.backends[0], BackendId(0), RUN) else {
        panic!("it is there");
    };
    let differs = "topic `readings` has 4 partitions, not 9";
    assert!(warnings[0].starts_with(differs), "{warnings:?}");
    let rig = up(&plan);
    let (_, diagnostics) = rig.finish();
    let mut differing = diagnostics.iter();
    let differing = differing.find(|it| matches!(it, Diagnostic::TopicsDiffer(_)));
    assert!(
        format!("{differing:?}").contains(differs),
        "{diagnostics:?}"
    );
}

/// The right to a group, so many times.
fn refuse_group(mock: &Mock) {
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
    let asked = rdkafka::types::RDKafkaApiKey::FindCoordinator;
    mock.cluster.request_errors(asked, &[refused; 1_000]);
}

#[test]
fn a_group_that_the_consumer_may_not_join_names_the_acl_and_the_key() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    refuse_group(&mock);
    let mut rig = start(&plan);
    rig.until(|rig| rig.said("ConsumerRefused"));
    let (_, diagnostics) = rig.finish();
    assert!(said(&diagnostics, "resource Group"), "{diagnostics:?}");
    assert!(
        said(&diagnostics, "platform.backend.shared"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_consumer_without_a_group_needs_no_right_to_one() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    refuse_group(&mock);
    let mut rig = up(&plan);
    mock.publish_message(&plan, 0);
    rig.until(|rig| rig.copies == 1);
    let later = rig.clock.now() + Micros::from_secs(2);
    rig.until(|rig| rig.clock.now() > later);
    let (_, diagnostics) = rig.finish();
    assert!(!disturbed(&diagnostics), "{diagnostics:?}");
}

#[test]
fn a_look_tells_of_the_right_to_the_topic_and_not_to_a_group() {
    let mock = Mock::start();
    refuse_group(&mock);
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    mock.cluster.topic_error(TOPIC, refused).unwrap();
    let plan = plan(&mock.servers(), "consumers: 1, shared: g");
    let Look::Refused(why) = look(&plan.backends[0], BackendId(0), RUN) else {
        panic!("the topic is refused");
    };
    assert!(why.contains("read the topics"), "{why}");
}

/// The mock cluster deletes no topic, and can say that it knows none of the name.
#[test]
fn a_topic_that_is_deleted_while_it_is_consumed_is_named_and_so_is_its_return() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let mut rig = up(&plan);
    let says = |mock: &Mock, error| mock.cluster.topic_error(TOPIC, error).unwrap();
    says(
        &mock,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
    );
    let changed = |rig: &Rig, what: &str| {
        let mut diagnostics = rig.diagnostics.iter();
        diagnostics.any(|it| matches!(it, Diagnostic::TopicsChanged(text) if text.contains(what)))
    };
    rig.until(|rig| changed(rig, "topic `readings` was deleted"));
    says(&mock, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR);
    rig.until(|rig| changed(rig, "topic `readings` was created anew with 4 partitions"));
    mock.publish_message(&plan, 0);
    rig.until(|rig| rig.copies == 1);
    let _ = rig.finish();
}
