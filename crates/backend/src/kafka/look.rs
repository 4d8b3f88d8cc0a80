//! Whether a cluster answers, and what it has of a backend's topics; nothing is created or consumed.

use std::time::Duration;

use muster_model::{BackendId, ConsumerId, RunId};
use muster_scenario::{BackendPlan, KafkaNorthbound};
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::client::config;
use super::listener::{Listener, News};
use super::refusal::Refusal;
use super::topics::find;
use crate::consumers::{Look, Seat};

/// What the run of a plan would find there.
#[must_use]
pub fn look(backend: &BackendPlan, id: BackendId, run: RunId) -> Look {
    let Some(kafka) = backend.kafka() else {
        return Look::Found(Vec::new());
    };
    let seat = Seat {
        backend: id,
        consumer: ConsumerId(0),
        target: ([0, 0, 0, 0], 0).into(),
    };
    let (listener, heard) = Listener::new();
    let made = config(backend, kafka, &seat, run).create_with_context(listener);
    let consumer: BaseConsumer<Listener> = match made {
        Ok(consumer) => consumer,
        Err(error) => return refused(&Refusal::unbuilt(&error)),
    };
    match topics(&consumer, kafka) {
        Ok(found) => Look::Found(found),
        // The reason is said beside the answer.
        Err(refusal) => {
            while consumer.poll(Duration::ZERO).is_some() || consumer.context().was_touched() {}
            let has_group = backend.shared.is_some();
            let said = heard.news.try_iter().filter_map(|news| match news {
                News::Failed(code, _) if !has_group && Refusal::is_of_group(code) => None,
                News::Failed(code, reason) => Some(Refusal::said(code, &reason)),
                News::Revoked(_) | News::Sampled(_) => None,
            });
            let said: Vec<Refusal> = said.collect();
            // What was asked is answered before what the library asked by itself.
            let answers = [&refusal].into_iter().chain(&said);
            let mut answers = answers.filter(|it| !it.is_silence());
            let reason = answers.next().or(said.first());
            refused(reason.unwrap_or(&refusal))
        }
    }
}

fn topics(
    consumer: &BaseConsumer<Listener>,
    kafka: &KafkaNorthbound,
) -> Result<Vec<String>, Refusal> {
    let topics = kafka.topics.iter();
    let found = topics.map(|topic| {
        let (name, wanted) = (&topic.name, topic.partitions);
        Ok(match find(consumer, topic)? {
            Some(known) => format!("topic `{name}` has {} partitions", known.partitions),
            None => format!("the run creates topic `{name}` with {wanted} partitions"),
        })
    });
    found.collect()
}

fn refused(refusal: &Refusal) -> Look {
    if refusal.is_silence() {
        Look::Silent(refusal.to_string())
    } else {
        Look::Refused(refusal.to_string())
    }
}
