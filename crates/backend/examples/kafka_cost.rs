//! Cost of a consumer of Kafka next to `rdkafka` alone, on a topic that is full already: CPU time
//! of the whole process, including librdkafka's threads, from joining the group to the last
//! message.
//!
//! ```text
//! kafka_cost fill SERVERS MESSAGES            # fills the topic
//! kafka_cost bare SERVERS MESSAGES GROUP      # takes every message and looks at none
//! kafka_cost muster SERVERS MESSAGES GROUP    # decodes each, and has it join the ledger
//! ```
//!
//! Prints a line of JSON. A group that nobody was in before begins with the first message.

#[path = "cost/running.rs"]
mod running;

use std::io::Write;
use std::time::Duration;

use muster_backend::{KAFKA_SETTINGS, kafka_loop};
use muster_conduct::Order;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use running::{Done, Messages, PATIENCE, Running, START, cpu_s, report};

const TOPIC: &str = "hono.telemetry.load-tests";

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", servers, messages] => fill(servers, messages.parse()?),
        ["bare", servers, messages, group] => bare(servers, messages.parse()?, group),
        ["muster", servers, messages, group] => muster(servers, messages.parse()?, group),
        _ => Err("usage: kafka_cost fill|bare|muster SERVERS MESSAGES [GROUP]".into()),
    }
}

fn fill(servers: &str, messages: u64) -> Done {
    let plan = running::plan(&backend(servers, "nobody"), messages)?;
    let creating = Running::start(
        &plan,
        |spec, mailbox| kafka_loop(spec, None, mailbox),
        ORDERS,
    )?;
    while creating.next_dispatch()?.progress.consumers_up == 0 {}
    creating.finish()?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers);
    config.set("linger.ms", "50");
    let producer: BaseProducer = config.create()?;
    let (mut all, mut bytes) = (Messages::new(&plan)?, 0);
    for number in 0..messages {
        let (key, payload) = all.render(number)?;
        bytes = payload.len();
        let record = BaseRecord::to(TOPIC).key(&key).payload(payload);
        let mut record = record.headers(headers(&key));
        while let Err((_, back)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = back;
        }
    }
    producer.flush(PATIENCE)?;
    writeln!(std::io::stdout(), "{{\"bytes\":{bytes}}}")?;
    Ok(())
}

/// The eight that Hono's adapter for CoAP gives a record.
fn headers(device: &str) -> OwnedHeaders {
    let all = [
        ("device_id", device),
        ("content-type", "application/vnd.eclipse.ditto+json"),
        ("creation-time", "1712345678901"),
        ("qos", "1"),
        ("orig_adapter", "hono-coap"),
        ("orig_address", "/telemetry"),
        ("ttd", "10"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    let begin = OwnedHeaders::new_with_capacity(all.len());
    all.iter().fold(begin, |headers, (key, value)| {
        headers.insert(Header {
            key,
            value: Some(*value),
        })
    })
}

/// The crate's own loop with the same settings.
fn bare(servers: &str, messages: u64, group: &str) -> Done {
    let mut config = ClientConfig::new();
    for (key, value) in KAFKA_SETTINGS.into_iter().flatten() {
        config.set(*key, *value);
    }
    config.set("bootstrap.servers", servers);
    config.set("group.id", group);
    let began = cpu_s();
    let consumer: BaseConsumer = config.create()?;
    consumer.subscribe(&[TOPIC])?;
    let mut taken = 0;
    while taken < messages {
        // A rebalance gives none.
        taken += u64::from(matches!(consumer.poll(PATIENCE), Some(Ok(_))));
    }
    report(taken, taken, began)
}

/// A consumer as a run has it, which creates missing topics.
fn muster(servers: &str, messages: u64, group: &str) -> Done {
    let plan = running::plan(&backend(servers, group), messages)?;
    let began = cpu_s();
    let consumer = Running::start(
        &plan,
        |spec, mailbox| kafka_loop(spec, None, mailbox),
        ORDERS,
    )?;
    consumer.consume(messages, began)
}

/// The run has begun when the group gives out its partitions, so that they continue where the group is: at the
/// first message.
const ORDERS: [Order; 2] = [Order::Connect, START];

/// The keys of the backend at these servers.
fn backend(servers: &str, group: &str) -> String {
    format!(r#"url: "kafka://{servers}", shared: "{group}""#)
}
