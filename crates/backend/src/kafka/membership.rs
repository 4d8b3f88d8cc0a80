//! Membership of a Kafka consumer, from the library's news.

use muster_conduct::{Diagnostic, RefusalCause, RefusalKind};
use muster_model::Micros;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::brokers::BrokerWatch;
use super::client::GROUP_WAITS;
use super::layout::Layout;
use super::listener::News;
use super::refusal;
use super::sample::Sample;
use super::topic_watch::TopicWatch;
use super::topics::Finding;
use crate::consumer::Consumer;

/// Tries for which a topic may be without a leader, as one is that was created just now: some seconds.
const PASSING_TRIES: u32 = 20;

/// Membership of one consumer in its group, or in none, and the state of its brokers and topics.
#[derive(Debug)]
pub(crate) struct Membership {
    has_group: bool,
    /// True if the consumer is down because a broker is silent, and not because its group took its
    /// partitions.
    is_silent: bool,
    starts: Starts,
    process: ProcessWatch,
    brokers: BrokerWatch,
    topics: TopicWatch,
}

/// Tries to come up.
#[derive(Debug, Default)]
struct Starts {
    /// Number of failed tries.
    failed: u32,
    /// Last cause that counted as passing.
    passing: Option<RefusalCause>,
}

/// Notices that this process stood still, so that its group may have removed it.
#[derive(Debug, Default)]
struct ProcessWatch {
    /// Instant of the last check.
    checked: Option<Micros>,
    /// End and length of the last standstill.
    stood_still: Option<(Micros, Micros)>,
}

impl ProcessWatch {
    /// Notes a check, as happens several times a second if this process gets to run.
    fn check(&mut self, now: Micros) {
        let last = self.checked.replace(now).unwrap_or(now);
        if now - last >= GROUP_WAITS {
            self.stood_still = Some((now, now - last));
        }
    }

    /// Takes out the length of a standstill that may be why the group removed the consumer now.
    fn take_standstill(&mut self, now: Micros) -> Option<Micros> {
        let (at, length) = self.stood_still.take()?;
        (now - at <= GROUP_WAITS).then_some(length)
    }
}

impl Membership {
    pub(crate) fn new(has_group: bool) -> Self {
        Self {
            has_group,
            is_silent: false,
            starts: Starts::default(),
            process: ProcessWatch::default(),
            brokers: BrokerWatch::default(),
            topics: TopicWatch::new(has_group),
        }
    }

    pub(crate) fn has_group(&self) -> bool {
        self.has_group
    }

    /// Notes that fetching stops, or resumes.
    pub(crate) fn pause(&mut self, now: Micros, is_paused: bool) {
        self.brokers.pause(now, is_paused);
    }

    /// Notes a failed start, which is tried again.
    pub(crate) fn not_up(&mut self, consumer: &mut Consumer, cause: &RefusalCause) {
        self.starts.failed += 1;
        self.refused(consumer, cause, false);
    }

    fn refused(&mut self, consumer: &mut Consumer, cause: &RefusalCause, is_final: bool) {
        if cause.kind == RefusalKind::NotReady && self.starts.failed < PASSING_TRIES {
            self.starts.passing = Some(cause.clone());
            return;
        }
        self.starts.passing = None;
        consumer.refused(cause, is_final);
    }

    /// Reports findings on topics.
    pub(crate) fn found(&mut self, consumer: &mut Consumer, findings: Vec<Finding>) {
        self.topics.found(consumer, findings);
    }

    /// Notes the partitions that its topics have now; later changes by others are reported.
    pub(crate) fn watch(&mut self, layout: Layout) {
        self.topics.watch(layout);
    }

    /// Takes out the added partitions that it is to consume besides those that it has.
    pub(crate) fn take_further(&mut self, consumer: &Consumer) -> Option<TopicPartitionList> {
        consumer.is_up().then(|| self.topics.take_further())?
    }

    /// Notes added partitions that could not be taken up, and are tried again.
    pub(crate) fn further_refused(
        &mut self,
        consumer: &mut Consumer,
        further: TopicPartitionList,
        cause: &RefusalCause,
    ) {
        self.topics.put_back(further);
        consumer.limited("take up the partitions that were added", cause);
    }

    /// Notes that the consumer has its partitions.
    pub(crate) fn up(&mut self, consumer: &mut Consumer, now: Micros) {
        self.is_silent = false;
        self.starts.passing = None;
        consumer.up(now);
    }

    /// Handles the library's news. `has_begun` says that the first message is due.
    pub(crate) fn handle(
        &mut self,
        consumer: &mut Consumer,
        news: News,
        now: Micros,
        has_begun: bool,
    ) {
        match news {
            // The library asks for a group even if the consumer needs none.
            News::Failed(code, _) if !self.has_group && refusal::is_of_group(code) => {}
            News::Failed(code, reason) => self.failed(consumer, now, code, &reason),
            News::Revoked(_) if !has_begun => {
                // The run's own consumers join their group one after the other.
                self.is_silent = false;
                consumer.restart();
            }
            News::Revoked(partitions) => self.revoked(consumer, now, partitions),
            News::Sampled(sample) => self.sampled(consumer, now, &sample),
        }
    }

    /// Notes a check, as happens several times a second if this process gets to run.
    pub(crate) fn check(&mut self, now: Micros) {
        self.process.check(now);
    }

    /// The run is over.
    pub(crate) fn finish(&mut self, consumer: &mut Consumer) {
        if let Some(cause) = self.starts.passing.take() {
            consumer.report_refusal(cause);
        }
        if let Some(lag) = self.brokers.lag() {
            consumer.report(Diagnostic::ConsumerLag, lag);
        }
    }

    fn failed(
        &mut self,
        consumer: &mut Consumer,
        now: Micros,
        code: RDKafkaErrorCode,
        reason: &str,
    ) {
        // Until it is up the library may still have what it knew before the topics were created.
        if consumer.was_up() {
            self.topics.note_error(consumer, reason);
        }
        if code == RDKafkaErrorCode::PollExceeded {
            let why = "it was not asked for messages in time, and its group left it out";
            self.away(consumer, why);
        } else if consumer.is_starting() {
            let is_final = refusal::is_of_credentials(code);
            self.refused(consumer, &refusal::reported(code, reason), is_final);
        } else if refusal::is_final(code) && !refusal::is_of_missing_topic(code) {
            self.is_silent = true;
            consumer.lost(now, reason);
        }
    }

    fn sampled(&mut self, consumer: &mut Consumer, now: Micros, sample: &Sample) {
        if consumer.was_up() {
            self.topics.sampled(consumer, &sample.topics);
        }
        consumer.note_received(now - sample.last_answer_age);
        let ended = self.brokers.add(now, sample);
        match &sample.silent {
            Some(why) if consumer.is_up() && !self.brokers.has_just_resumed(now) => {
                self.is_silent = true;
                consumer.lost(consumer.received_until(), why);
            }
            None if consumer.is_up() && ended > 0 => {
                let why = "a connection to a broker ended, and was opened again";
                consumer.lost(now, why);
                self.up(consumer, now);
            }
            None if self.is_silent => self.up(consumer, now),
            Some(_) | None => {}
        }
    }

    /// Attributes a rebalance to us after a pause of this process, else to others.
    fn revoked(&mut self, consumer: &mut Consumer, now: Micros, partitions: usize) {
        if let Some(length) = self.process.take_standstill(now) {
            let length = length.as_secs_f64();
            let why =
                format!("this process stood still for {length:.0} s, and its group left it out");
            self.away(consumer, &why);
        } else {
            self.is_silent = false;
            let why = format!("its group took {partitions} partitions back (a rebalance)");
            consumer.lost(now, &why);
        }
    }

    /// Notes an absence by our own fault.
    fn away(&mut self, consumer: &mut Consumer, why: &str) {
        self.is_silent = false;
        consumer.away(why);
        consumer.leave();
    }
}

#[cfg(test)]
mod tests {
    use muster_conduct::ConsumerName;
    use muster_model::{BackendId, ConsumerId, Listening};

    use super::super::layout::TopicView;
    use super::super::sample::Connections;
    use super::*;
    use crate::consumers::ConsumerPlan;

    /// A consumer and its membership.
    struct World {
        consumer: Consumer,
        membership: Membership,
        origin: Option<Micros>,
    }

    impl World {
        fn new(has_group: bool) -> Self {
            let plan = ConsumerPlan {
                backend: BackendId(0),
                consumer: ConsumerId(0),
                target: ([127, 0, 0, 1], 9092).into(),
            };
            let name = ConsumerName {
                number: ConsumerId(0),
                backend: "b".to_owned(),
                address: "h".to_owned(),
            };
            Self {
                consumer: Consumer::new(plan, name),
                membership: Membership::new(has_group),
                origin: None,
            }
        }

        fn begin(&mut self, origin: Micros) {
            self.origin = Some(origin);
        }

        fn handle(&mut self, now: Micros, news: News) {
            let has_begun = self.origin.is_some_and(|origin| now >= origin);
            self.membership
                .handle(&mut self.consumer, news, now, has_begun);
        }

        fn up(&mut self, now: Micros) {
            self.membership.up(&mut self.consumer, now);
        }

        fn pause(&mut self, now: Micros, is_paused: bool) {
            self.consumer.pause(now, is_paused);
            self.membership.pause(now, is_paused);
        }

        fn not_up(&mut self, cause: &RefusalCause) {
            self.membership.not_up(&mut self.consumer, cause);
        }

        fn listening(&self, now: Micros) -> Listening {
            self.consumer.listening(now)
        }

        fn diagnostics(&self) -> &[Diagnostic] {
            self.consumer.diagnostics()
        }
    }

    fn sample(connections: &[(i32, i64, bool)]) -> News {
        let connections = connections
            .iter()
            .map(|&(broker, ended, is_leader)| Connections {
                broker,
                ended,
                is_leader,
            });
        News::Sampled(Sample {
            lag: None,
            last_answer_age: Micros::ZERO,
            silent: None,
            connections: connections.collect(),
            topics: Vec::new(),
        })
    }

    fn up() -> World {
        let mut world = World::new(true);
        world.up(Micros(0));
        world.begin(Micros(0));
        world
    }

    #[test]
    fn a_connection_to_a_leader_that_ends_is_told_and_what_ended_before_it_led_is_not() {
        let mut world = up();
        world.handle(Micros(0), sample(&[(1, 0, true), (2, 5, false)]));
        world.handle(Micros(1), sample(&[(1, 0, false), (2, 5, true)]));
        assert_eq!(world.diagnostics(), []);
        world.handle(Micros(2), sample(&[(1, 4, false), (2, 6, true)]));
        let [Diagnostic::ConsumerLost { .. }, Diagnostic::ConsumerBack(_)] = world.diagnostics()
        else {
            panic!("{:?}", world.diagnostics());
        };
    }

    #[test]
    fn what_its_group_takes_back_before_it_is_up_is_no_loss_and_a_refusal_is_still_told() {
        let mut world = World::new(true);
        world.handle(Micros(0), News::Revoked(4));
        world.handle(
            Micros(0),
            News::Failed(RDKafkaErrorCode::Authentication, "no".to_owned()),
        );
        world.up(Micros(0));
        let [Diagnostic::ConsumerRefused(_)] = world.diagnostics() else {
            panic!("{:?}", world.diagnostics());
        };
    }

    #[test]
    fn that_nobody_is_left_is_not_told_of_brokers_that_refused() {
        let mut world = World::new(true);
        for (code, why) in [
            (RDKafkaErrorCode::Authentication, "no"),
            (RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down"),
        ] {
            world.handle(Micros(0), News::Failed(code, why.to_owned()));
        }
        let [Diagnostic::ConsumerRefused(refusal)] = world.diagnostics() else {
            panic!("{:?}", world.diagnostics());
        };
        let why = refusal.to_string();
        assert!(why.contains("platform.backend.password"), "{why}");
    }

    #[test]
    fn a_login_that_is_refused_before_it_is_up_is_final() {
        let failed = |code| News::Failed(code, "no".to_owned());
        for (code, is_final) in [
            (RDKafkaErrorCode::Authentication, true),
            (RDKafkaErrorCode::SaslAuthenticationFailed, true),
            (RDKafkaErrorCode::AllBrokersDown, false),
        ] {
            let mut world = World::new(true);
            world.handle(Micros(0), failed(code));
            assert_eq!(world.consumer.is_refused(), is_final, "{code}");
            world.up(Micros(1));
            world.handle(Micros(2), failed(code));
            assert!(!world.consumer.is_refused(), "{code}: it was up");
        }
    }

    fn of_leaders() -> RefusalCause {
        refusal::leaderless("t", 0)
    }

    #[test]
    fn only_tries_to_come_up_are_counted_as_such() {
        let mut world = World::new(true);
        let code = RDKafkaErrorCode::LeaderNotAvailable;
        for _ in 0..2 * PASSING_TRIES {
            world.handle(Micros(0), News::Failed(code, "no leader".to_owned()));
        }
        world.not_up(&of_leaders());
        assert_eq!(world.diagnostics(), []);
        (1..PASSING_TRIES).for_each(|_| world.not_up(&of_leaders()));
        assert_eq!(world.diagnostics().len(), 1);
    }

    #[test]
    fn what_is_tried_again_is_told_once_until_it_is_up() {
        let mut world = World::new(true);
        for _ in 0..3 {
            world.consumer.limited("start a thread", "no");
        }
        assert_eq!(world.diagnostics().len(), 1);
        world.up(Micros(0));
        world.consumer.limited("start a thread", "no");
        assert_eq!(world.diagnostics().len(), 2);
    }

    fn heard(ago_s: u64, silent: Option<&str>) -> News {
        News::Sampled(Sample {
            lag: None,
            last_answer_age: Micros::from_secs(ago_s),
            silent: silent.map(str::to_owned),
            connections: Vec::new(),
            topics: Vec::new(),
        })
    }

    #[test]
    fn it_listens_as_far_as_its_brokers_were_heard_and_from_anew_after_it_was_away() {
        let (secs, mut world) = (Micros::from_secs, up());
        let from_to = |since, until| Listening {
            since: secs(since),
            until: secs(until),
        };
        world.handle(secs(10), heard(1, None));
        assert_eq!(world.listening(secs(10)), from_to(0, 9));
        world.handle(secs(11), heard(2, None));
        assert_eq!(world.listening(secs(11)), from_to(0, 9));
        world.handle(secs(12), heard(3, Some("it owes an answer")));
        assert_eq!(world.listening(secs(12)), Listening::deaf(secs(12)));
        let [Diagnostic::ConsumerLost { absence, since }] = world.diagnostics() else {
            panic!("{:?}", world.diagnostics());
        };
        let what = "consumer 0 of backend `b` at h: it owes an answer";
        assert_eq!((absence.to_string().as_str(), *since), (what, secs(9)));
        world.handle(secs(20), heard(0, None));
        assert_eq!(world.listening(secs(20)), from_to(20, 20));
        world.handle(secs(21), News::Revoked(3));
        assert_eq!(world.listening(secs(22)), Listening::deaf(secs(22)));
        world.up(secs(23));
        world.pause(secs(24), true);
        assert_eq!(world.listening(secs(25)), Listening::deaf(secs(25)));
        world.pause(secs(26), false);
        assert_eq!(world.listening(secs(26)), from_to(26, 26));
    }

    #[test]
    fn how_far_it_was_behind_is_told_if_it_was_ever_known() {
        for (samples, told) in [
            (&[None, None][..], &[][..]),
            (
                &[None, Some(0), Some(0)],
                &[
                    "consumer 0 of backend `b` at h: never behind the ends of its partitions, sampled 2x",
                ],
            ),
            (
                &[Some(0), Some(1_300), None, Some(7)],
                &[
                    "consumer 0 of backend `b` at h: at most 1,300 messages behind the ends of its partitions, at 1 s; 7 when last \
                   sampled, 3x in all",
                ],
            ),
        ] {
            let mut world = up();
            for (at, lag) in (0..).zip(samples) {
                let sample = Sample {
                    lag: *lag,
                    last_answer_age: Micros::ZERO,
                    silent: None,
                    connections: Vec::new(),
                    topics: Vec::new(),
                };
                world.handle(Micros::from_secs(at), News::Sampled(sample));
            }
            world.membership.finish(&mut world.consumer);
            let told = told
                .iter()
                .map(|it| Diagnostic::ConsumerLag((*it).to_owned()));
            assert_eq!(world.diagnostics(), told.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_silence_of_a_pause_is_not_that_of_a_broker() {
        let (secs, mut world) = (Micros::from_secs, up());
        world.pause(secs(10), true);
        world.pause(secs(20), false);
        world.handle(secs(21), heard(10, Some("it owes an answer")));
        assert_eq!(world.diagnostics(), []);
        world.handle(secs(23), heard(13, Some("it owes an answer")));
        assert!(matches!(
            world.diagnostics(),
            [Diagnostic::ConsumerLost { .. }]
        ));
    }

    #[test]
    fn a_rebalance_before_the_first_message_is_due_is_no_loss() {
        let mut world = World::new(true);
        world.up(Micros(0));
        world.handle(Micros(1), News::Revoked(4));
        assert!(!world.consumer.is_up());
        world.up(Micros(2));
        world.begin(Micros(5));
        world.handle(Micros(4), News::Revoked(4));
        world.up(Micros(4));
        assert_eq!(world.diagnostics(), []);
        world.handle(Micros(5), News::Revoked(4));
        assert!(matches!(
            world.diagnostics(),
            [Diagnostic::ConsumerLost { .. }]
        ));
    }

    #[test]
    fn a_group_that_leaves_out_a_process_that_stood_still_is_not_to_blame() {
        let secs = Micros::from_secs;
        for (still, told, is_ours) in [(9, 10, false), (12, 14, true), (12, 30, false)] {
            let mut world = up();
            world.membership.check(secs(1));
            world.membership.check(secs(1 + still));
            (1 + still..1 + told).for_each(|at| world.membership.check(secs(at)));
            world.handle(secs(1 + told), News::Revoked(4));
            let is_away = matches!(world.diagnostics(), [Diagnostic::ConsumerAway(_)]);
            assert_eq!(is_away, is_ours, "{:?}", world.diagnostics());
        }
    }

    #[test]
    fn a_consumer_that_did_not_ask_in_time_is_away_by_our_fault_whatever_its_group_does_then() {
        let mut world = up();
        let late = (RDKafkaErrorCode::PollExceeded, "late".to_owned());
        world.handle(Micros(1), News::Failed(late.0, late.1));
        world.handle(Micros(2), News::Revoked(4));
        assert!(matches!(world.diagnostics(), [Diagnostic::ConsumerAway(_)]));
    }

    #[test]
    fn a_topic_that_is_deleted_is_no_fault_of_the_consumer() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        let mut world = up();
        world.membership.watch(Layout::of(&had));
        let code = RDKafkaErrorCode::UnknownTopicOrPartition;
        for words in [
            "topic does not exist",
            "Subscribed topic not available: t: no",
        ] {
            world.handle(Micros(1), News::Failed(code, words.to_owned()));
        }
        let told = "backend `b` at h: topic `t` was deleted".to_owned();
        assert_eq!(world.diagnostics(), [Diagnostic::TopicsChanged(told)]);
        assert!(world.consumer.is_up());
    }

    /// A topic that was created just now, of which the library has heard nothing yet.
    #[test]
    fn a_topic_that_is_not_there_before_the_consumer_is_up_was_not_deleted() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        let mut world = World::new(true);
        world.membership.watch(Layout::of(&had));
        let code = RDKafkaErrorCode::LeaderNotAvailable;
        let words = "Subscribed topic not available: t: no".to_owned();
        world.handle(Micros(0), News::Failed(code, words));
        world.up(Micros(1));
        assert_eq!(world.diagnostics(), []);
    }

    #[test]
    fn partitions_that_are_added_are_told_and_taken_up_where_no_group_gives_them() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        for (has_group, taken) in [(false, 2), (true, 0)] {
            let mut world = World::new(has_group);
            world.membership.watch(Layout::of(&had));
            world.up(Micros(0));
            let News::Sampled(mut sample) = heard(0, None) else {
                panic!("it is a sample");
            };
            sample.topics = vec![TopicView::new("t", 6)];
            world.handle(Micros(1), News::Sampled(sample.clone()));
            world.handle(Micros(2), News::Sampled(sample));
            let told = "backend `b` at h: topic `t` grew from 4 to 6 partitions".to_owned();
            assert_eq!(world.diagnostics(), [Diagnostic::TopicsChanged(told)]);
            let mut further = || world.membership.take_further(&world.consumer);
            assert_eq!(further().map_or(0, |it| it.count()), taken);
            assert_eq!(further(), None);
        }
    }
}
