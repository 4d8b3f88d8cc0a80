//! Commands: what is produced, and what is known of them afterwards.

use std::time::Duration;

use muster_conduct::{Diagnostic, Order};
use muster_model::{Micros, Reason};
use muster_plan::Plan;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders, OwnedMessage};
use rdkafka::producer::BaseRecord;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::headers::publish_named;
use super::rig::{Mock, start, up};
use crate::rig::{DELIVERED, PATIENCE, Rig, Sent, UNDELIVERABLE, ended, parsed, said, sent};

const COMMANDS: &str = "hono.command.t1";
const REPLIES: &str = "hono.command_response.t1";
const FAILURE: &str = "application/vnd.eclipse-hono-delivery-failure-notification+json";

fn plan(mock: &Mock, commands: &str) -> Plan {
    plan_of(mock, commands, "ditto-modify")
}

/// The same, with queries that say so.
fn plan_of(mock: &Mock, commands: &str, payload: &str) -> Plan {
    for topic in ["telemetry", "event", "command", "command_response"] {
        let name = format!("hono.{topic}.t1");
        mock.cluster.create_topic(&name, 3, 1).expect("a topic");
    }
    for topic in ["tenant", "device"] {
        let name = format!("hono.notification.registry-{topic}");
        mock.cluster.create_topic(&name, 1, 1).expect("a topic");
    }
    let servers = mock.servers();
    parsed(&format!(
        "name: commands
platform:
  kind: hono
  devices: [ 'coap://127.0.0.1:5683' ]
  backend: {{ url: 'kafka://{servers}', commands: {{ {commands} }} }}
fleet: [ {{ name: meters, count: 10, tenant: t1, streams: [ {{ name: asks, kind: command-query, every: 1s, ttd: 5s, payload: {payload} }}, {{ kind: command }} ] }} ]
phases: {{ measure: 60s }}
"
    ))
}

/// Hono without devices: receives commands, and answers them.
struct Hono<'a> {
    mock: &'a Mock,
    consumer: BaseConsumer,
}

impl<'a> Hono<'a> {
    fn of(mock: &'a Mock) -> Self {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", mock.servers());
        config.set("group.id", "hono");
        config.set("auto.offset.reset", "earliest");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_range(COMMANDS, 0, 2);
        consumer.assign(&partitions).unwrap();
        Self { mock, consumer }
    }

    /// A query of a device surfaces.
    fn query(&self, plan: &Plan, device: u32) {
        let Sent { device, scratch } = sent(plan, device);
        let record = BaseRecord::to("hono.telemetry.t1").key(device.as_str());
        self.mock.send(record.payload(&scratch.payload));
    }

    fn commands(&self, count: usize) -> Vec<OwnedMessage> {
        let next = || self.consumer.poll(PATIENCE).expect("a command").unwrap();
        (0..count).map(|_| next().detach()).collect()
    }

    fn answer(&self, command: &OwnedMessage, media_type: &str, status: &str) {
        let mut headers = OwnedHeaders::new();
        for (key, value) in [
            ("correlation-id", header(command, "correlation-id")),
            ("content-type", media_type),
            ("status", status),
        ] {
            let value = Some(value);
            headers = headers.insert(Header { key, value });
        }
        let key = std::str::from_utf8(command.key().unwrap()).unwrap();
        let record = BaseRecord::to(REPLIES).key(key).headers(headers);
        self.mock.send(record.payload(command.payload().unwrap()));
    }
}

fn header<'a>(command: &'a OwnedMessage, name: &str) -> &'a str {
    let mut headers = command.headers().unwrap().iter();
    let found = headers.find(|header| header.key == name);
    std::str::from_utf8(found.and_then(|header| header.value).unwrap()).unwrap()
}

/// Law: messages of other applications on the topic of replies are no replies.
#[test]
fn what_others_have_on_the_topic_of_replies_is_unstamped_and_not_damaged() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: waiting, mode: two-way");
    let mut rig = up(&plan);
    for (media_type, status) in [("text/plain", "200"), (FAILURE, "503")] {
        let mut headers = OwnedHeaders::new();
        for (key, value) in [
            ("correlation-id", "7f3a"),
            ("content-type", media_type),
            ("status", status),
        ] {
            let value = Some(value);
            headers = headers.insert(Header { key, value });
        }
        let record = BaseRecord::to(REPLIES).key("somebody").headers(headers);
        mock.send(record.payload(b"{}"));
    }
    publish_named(&mock, REPLIES, b"correlation-\xff");
    rig.until(|rig| rig.copies == 3);
    let (handover, _) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (3, 3));
    let commands = &handover.account.commands[1];
    assert_eq!((commands.replies_taken, commands.replies_damaged), (0, 0));
}

#[test]
fn each_query_is_answered_once_and_reply_or_notice_says_what_became_of_the_command() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: waiting, mode: two-way");
    let hono = Hono::of(&mock);
    let mut rig = up(&plan);
    (0..10).for_each(|device| hono.query(&plan, device));
    hono.query(&plan, 3);
    let commands = hono.commands(10);
    for command in &commands {
        let key = std::str::from_utf8(command.key().unwrap()).unwrap();
        assert_eq!(header(command, "device_id"), key);
        assert_eq!(header(command, "subject"), "set");
        assert_eq!(header(command, "response-required"), "true");
    }
    let (refused, replied) = commands.split_at(4);
    refused
        .iter()
        .for_each(|it| hono.answer(it, FAILURE, "503"));
    let reply = |it| hono.answer(it, "application/json", "200");
    replied.iter().for_each(reply);
    // Again, each once: neither is counted a second time.
    hono.answer(&refused[0], FAILURE, "503");
    reply(&replied[0]);
    rig.until(|rig| rig.copies == 11 && rig.progress.open == 0 && rig.replies == 7);
    let (handover, diagnostics) = rig.finish();
    let account = &handover.account.commands[1];
    assert_eq!(ended(&handover), [6, 0, 4, 0, 0]);
    assert_eq!(account.issued.count, 10);
    assert_eq!(account.replies_taken, 7);
    assert_eq!(handover.account.backends[0].consumed, 11);
    assert!(hono.consumer.poll(Duration::from_millis(1)).is_none());
    assert!(!said(&diagnostics, "ConsumerRefused"), "{diagnostics:?}");
}

/// A record without a value, of whose device its key tells, and nothing else: one after the other.
#[test]
fn empty_notifications_are_told_by_their_order_and_answered_with_commands() {
    let mock = Mock::start();
    let plan = plan_of(&mock, "to: waiting, mode: two-way", "empty");
    let hono = Hono::of(&mock);
    let mut rig = up(&plan);
    let notification = "application/vnd.eclipse-hono-empty-notification";
    for _ in 0..2 {
        for device in 0..5 {
            let key = format!("meters-{device:08}");
            let headers = OwnedHeaders::new().insert(Header {
                key: "content-type",
                value: Some(notification),
            });
            let record: BaseRecord<'_, str, [u8]> = BaseRecord::to("hono.telemetry.t1");
            mock.send(record.key(key.as_str()).headers(headers));
        }
    }
    let commands = hono.commands(10);
    let replied = |it| hono.answer(it, "application/json", "503");
    commands.iter().for_each(replied);
    rig.until(|rig| rig.copies == 10 && rig.replies == 10);
    let by_status: Vec<_> = rig.by_status.iter().collect();
    assert_eq!(by_status, [(Reason::Application(503), 10)]);
    let (handover, _) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (10, 0));
    assert_eq!(account.read.count, 10);
    assert_eq!(handover.account.commands[1].issued.count, 10);
}

/// Law: Hono's own reports on devices are not altered; messages of another media type are.
#[test]
fn what_hono_itself_tells_of_devices_is_unstamped_and_not_corrupted() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: waiting, mode: two-way");
    let mut rig = up(&plan);
    for media_type in [
        "application/vnd.eclipse-hono-empty-notification",
        "application/vnd.eclipse-hono-dc-notification+json",
        "application/vnd.eclipse-hono-device-provisioning-notification",
        "application/vnd.eclipse.ditto+json",
    ] {
        let headers = OwnedHeaders::new().insert(Header {
            key: "content-type",
            value: Some(media_type),
        });
        let record = BaseRecord::to("hono.telemetry.t1").key("meters-00000003");
        mock.send(record.headers(headers).payload(b"{}"));
    }
    rig.until(|rig| rig.copies == 4);
    assert_eq!(rig.corrupted, 1);
    let (handover, _) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (4, 4));
}

#[test]
fn a_command_on_which_nothing_is_heard_before_the_end_is_delivered_if_a_broker_has_it() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: waiting, mode: two-way");
    let hono = Hono::of(&mock);
    let mut rig = up(&plan);
    hono.query(&plan, 7);
    let command = &hono.commands(1)[0];
    rig.until(|rig| rig.progress.open == 1);
    let (handover, _) = rig.finish();
    assert_eq!(command.payload().map(<[u8]>::is_empty), Some(false));
    assert_eq!(ended(&handover)[DELIVERED], 1);
}

#[test]
fn what_a_broker_refuses_is_undeliverable_by_its_code_and_names_the_right() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
    let mut rig = start(&plan);
    rig.until(Rig::is_up);
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    let requests = &mock.cluster;
    requests.request_errors(RDKafkaApiKey::Produce, &[refused]);
    rig.begin();
    rig.until(|rig| rig.said("ConsumerRefused"));
    let (handover, diagnostics) = rig.finish();
    assert!(ended(&handover)[UNDELIVERABLE] >= 1);
    assert!(said(&diagnostics, "kafka-29"), "{diagnostics:?}");
    assert!(said(&diagnostics, "to write the topic"), "{diagnostics:?}");
}

/// Commands are produced to the first and the Hono to the second: nothing of them is consumed.
#[test]
fn nothing_is_due_before_each_topic_has_all_its_leaders_consumed_or_not() {
    for topic in [COMMANDS, "hono.notification.registry-tenant"] {
        let mock = Mock::start();
        let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
        mock.cluster.partition_leader(topic, 0, None).unwrap();
        let mut rig = start(&plan);
        let named = format!("partition 0 of topic `{topic}` has no leader");
        rig.until(|rig| {
            assert!(!rig.is_up(), "{topic} has no leader");
            rig.said(&named)
        });
        mock.cluster.partition_leader(topic, 0, Some(1)).unwrap();
        rig.until(Rig::is_up);
        rig.finish();
    }
}

#[test]
fn a_run_that_ends_before_a_leader_was_waited_for_in_vain_names_the_partition() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
    mock.cluster.partition_leader(COMMANDS, 2, None).unwrap();
    let mut rig = start(&plan);
    let later = rig.clock.now() + Micros::from_secs(1);
    rig.until(|rig| rig.clock.now() > later);
    assert!(!rig.said("ConsumerRefused"));
    let (_, diagnostics) = rig.finish();
    assert!(
        said(&diagnostics, "partition 2 of topic"),
        "{diagnostics:?}"
    );
}

/// The library knows by then that the topic is refused, and hands no further record on.
#[test]
fn what_the_library_refuses_in_a_brokers_place_is_undeliverable_by_the_brokers_code() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
    let mut rig = start(&plan);
    rig.until(Rig::is_up);
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    mock.cluster.topic_error(COMMANDS, refused).unwrap();
    rig.begin();
    rig.until(|rig| rig.said("ConsumerRefused"));
    let later = rig.clock.now() + Micros::from_secs(1);
    rig.until(|rig| rig.clock.now() > later);
    let at = rig.clock.now();
    rig.order(Order::EndDue { at });
    rig.until(|rig| rig.progress.open == 0);
    let (handover, diagnostics) = rig.finish();
    let issued = handover.account.commands[1].issued.count;
    assert!(issued > 10, "{issued}");
    assert_eq!(ended(&handover), [0, 0, issued, 0, 0]);
    let refusals = diagnostics.iter();
    let refusals = refusals.filter(|it| matches!(it, Diagnostic::ConsumerRefused(_)));
    assert_eq!(refusals.count(), 1, "{diagnostics:?}");
    assert!(said(&diagnostics, "to write the topic"), "{diagnostics:?}");
}

#[test]
fn each_refusal_of_a_broker_is_told_with_its_own_remedy() {
    use RDKafkaRespErr as Error;
    for (refused, code, remedy) in [
        (
            Error::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
            "kafka-10",
            "max.message.bytes",
        ),
        (
            Error::RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
            "kafka-44",
            "rules that the brokers have",
        ),
        (
            Error::RD_KAFKA_RESP_ERR_INVALID_RECORD,
            "kafka-87",
            "rules that the brokers have",
        ),
    ] {
        let mock = Mock::start();
        let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
        let mut rig = start(&plan);
        rig.until(Rig::is_up);
        mock.cluster
            .request_errors(RDKafkaApiKey::Produce, &[refused]);
        rig.begin();
        rig.until(|rig| rig.said("ConsumerRefused"));
        let (handover, diagnostics) = rig.finish();
        assert!(ended(&handover)[UNDELIVERABLE] >= 1);
        assert!(
            said(&diagnostics, code) && said(&diagnostics, remedy),
            "{diagnostics:?}"
        );
    }
}

#[test]
fn commands_that_come_due_while_the_broker_is_away_are_written_once_when_it_is_back() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
    let hono = Hono::of(&mock);
    let mut rig = up(&plan);
    hono.commands(5);
    mock.cluster.broker_down(1).unwrap();
    rig.until(|rig| rig.said("ConsumerLost"));
    mock.cluster.broker_up(1).unwrap();
    rig.until(|rig| rig.said("ConsumerBack"));
    rig.order(Order::EndDue {
        at: rig.clock.now(),
    });
    rig.until(|rig| rig.progress.open == 0);
    let (handover, _) = rig.finish();
    let issued = handover.account.commands[1].issued.count;
    assert_eq!(ended(&handover), [issued, 0, 0, 0, 0]);
    let end = |partition| {
        let ends = hono
            .consumer
            .fetch_watermarks(COMMANDS, partition, PATIENCE);
        ends.unwrap().1
    };
    assert_eq!((0..3).map(end).sum::<i64>(), issued.cast_signed());
}

#[test]
fn a_producer_that_may_not_write_names_the_right_and_its_commands_are_withheld() {
    let mock = Mock::start();
    let plan = plan(&mock, "to: online, rate: 20/s, mode: one-way");
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    let errors = [refused; 8];
    mock.cluster
        .request_errors(RDKafkaApiKey::InitProducerId, &errors);
    let mut rig = up(&plan);
    rig.until(|rig| rig.said("no further command"));
    // Some more are due meanwhile.
    let later = rig.clock.now() + Micros::from_millis(200);
    rig.until(|rig| rig.clock.now() > later);
    let (handover, diagnostics) = rig.finish();
    let [delivered, _, _, unknown, withheld] = ended(&handover);
    let issued = handover.account.commands[1].issued.count;
    assert_eq!((delivered, unknown), (0, issued));
    assert!(withheld > 0);
    assert!(said(&diagnostics, "to write the topic"), "{diagnostics:?}");
}
