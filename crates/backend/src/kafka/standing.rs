//! State of a Kafka consumer, and its diagnostics.

use std::collections::BTreeMap;

use muster_conduct::Diagnostic;
use muster_model::{Listening, Micros, figure};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::client::GROUP_WAITS;
use super::layout::{Change, Layout};
use super::listener::News;
use super::refusal::Refusal;
use super::sample::{Connections, SILENT, Sample};
use super::topics::Finding;
use crate::northbound::idle_notices;

/// Tries for which a topic may be without a leader, as one is that was created just now: some seconds.
const PASSING_TRIES: u32 = 20;

/// One consumer as the run sees it.
#[derive(Debug)]
pub(crate) struct Standing {
    name: String,
    /// True if it consumes as one of a group.
    has_group: bool,
    state: State,
    has_been_up: bool,
    /// True if brokers refused its login before it was ever up: they answer the next try alike.
    is_refused: bool,
    /// Due instant of the first message: from then on, a miss of the consumer is one of the run.
    origin: Option<Micros>,
    /// Instant of the last check.
    seen: Option<Micros>,
    /// End and length of a pause in which its group may have removed it.
    stood_still: Option<(Micros, Micros)>,
    /// Since when it consumes, and until when that is known, while it is up and not paused.
    heard: Listening,
    is_paused: bool,
    /// End of its last pause, in which its brokers had nothing to answer.
    resumed: Option<Micros>,
    /// Remedies that have been told since it was up the last time: it tries again and again.
    told: Vec<&'static str>,
    /// Findings on topics that were reported.
    found: Vec<Finding>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Number of failed starts.
    tries: u32,
    /// Last refusal that counted as passing.
    untold: Option<String>,
    /// Connections that had ended by the last sample, by broker.
    ended: BTreeMap<i32, i64>,
    lag: Lag,
    layout: Layout,
    /// Partitions that were added to its topics and that it has not taken up yet; a group gives them by itself.
    further: TopicPartitionList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing to consume yet.
    Down,
    /// Consuming.
    Up,
    /// A broker is silent.
    Silent,
    /// The group has taken its partitions back.
    Revoked,
}

/// Lag of a consumer.
#[derive(Debug, Default)]
struct Lag {
    /// Number of samples.
    samples: u64,
    most: u64,
    at: Micros,
    last: u64,
}

impl Lag {
    fn add(&mut self, now: Micros, behind: u64) {
        if behind > self.most {
            (self.most, self.at) = (behind, now);
        }
        self.samples += 1;
        self.last = behind;
    }

    /// None where it was never known, which is not the same as none at all.
    fn told(&self) -> Option<String> {
        let [samples, most, last] = [self.samples, self.most, self.last].map(figure::count);
        let at = self.at.as_secs_f64();
        match (self.samples, self.most) {
            (0, _) => None,
            (_, 0) => Some(format!(
                "never behind the ends of its partitions, sampled {samples}x"
            )),
            (_, _) => Some(format!(
                "at most {most} messages behind the ends of its partitions, at {at:.0} s; {last} when \
                 last sampled, {samples}x in all"
            )),
        }
    }
}

impl Standing {
    pub(crate) fn new(name: String, has_group: bool) -> Self {
        Self {
            name,
            has_group,
            state: State::Down,
            has_been_up: false,
            is_refused: false,
            origin: None,
            seen: None,
            stood_still: None,
            heard: Listening::deaf(Micros::ZERO),
            is_paused: false,
            resumed: None,
            told: Vec::new(),
            found: Vec::new(),
            diagnostics: Vec::new(),
            tries: 0,
            untold: None,
            ended: BTreeMap::new(),
            lag: Lag::default(),
            layout: Layout::default(),
            further: TopicPartitionList::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// True if brokers refused its login, so that another try does not help.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns the state of its listening.
    pub(crate) fn listening(&self, now: Micros) -> Listening {
        if self.is_up() && !self.is_paused {
            self.heard
        } else {
            Listening::deaf(now)
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Notes that it stops fetching for a while, or resumes.
    pub(crate) fn pause(&mut self, now: Micros, is_paused: bool) {
        self.is_paused = is_paused;
        self.resumed = (!is_paused).then_some(now);
        self.hears_from(now);
    }

    /// Returns true if partitions of its group continue where the group was, and do not begin at
    /// the ends.
    pub(crate) fn goes_on(&self, now: Micros) -> bool {
        self.has_been_up || self.has_begun(now)
    }

    fn has_begun(&self, now: Micros) -> bool {
        self.origin.is_some_and(|origin| now >= origin)
    }

    /// Notes a failed start, which is tried again.
    pub(crate) fn not_up(&mut self, refusal: &Refusal) {
        self.tries += 1;
        self.refused(refusal);
    }

    /// Notes a refusal of a broker or of the library.
    fn refused(&mut self, refusal: &Refusal) {
        if refusal.is_passing() && self.tries < PASSING_TRIES {
            self.untold = Some(self.text(refusal));
            return;
        }
        self.untold = None;
        // Who is refused everywhere has no broker left, which says no more.
        let is_said = refusal.is_silence() && !self.told.is_empty();
        if !is_said && !self.told.contains(&refusal.remedy) {
            self.told.push(refusal.remedy);
            let text = self.text(refusal);
            self.diagnostics.push(Diagnostic::ConsumerRefused(text));
        }
    }

    /// Notes findings on topics, which other consumers share.
    pub(crate) fn found(&mut self, told: Vec<Finding>) {
        let place = self.place();
        // It may try again before it is up.
        let new = told.into_iter().filter(|it| !self.found.contains(it));
        let new: Vec<Finding> = new.collect();
        self.found.extend_from_slice(&new);
        let told = new.into_iter().map(|finding| match finding {
            Finding::Created(what) => Diagnostic::Topics(format!("{place}: {what}")),
            Finding::Differs(what) => Diagnostic::TopicsDiffer(format!("{place}: {what}")),
            Finding::NewTenant(what) => Diagnostic::NewTenant(format!("{place}: {what}")),
        });
        self.diagnostics.extend(told);
    }

    /// Its topics have these partitions now; what others do to them from here on is told.
    pub(crate) fn watch(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Takes out the partitions that it is to consume beside those that it has.
    pub(crate) fn take_further(&mut self) -> Option<TopicPartitionList> {
        let is_due = self.is_up() && self.further.count() > 0;
        is_due.then(|| std::mem::take(&mut self.further))
    }

    /// Notes added partitions that could not be taken up, and are tried again.
    pub(crate) fn further_refused(&mut self, further: TopicPartitionList, refusal: &Refusal) {
        self.further = further;
        let what = "take up the partitions that were added";
        self.limited_again(what, refusal);
    }

    fn changed(&mut self, change: &Change) {
        if let Some((topic, added)) = change.added().filter(|_| !self.has_group) {
            self.further
                .add_partition_range(topic, added.start, added.end - 1);
        }
        let text = format!("{}: {change}", self.place());
        self.diagnostics.push(Diagnostic::TopicsChanged(text));
    }

    /// Returns the address of its topics, which other consumers share.
    fn place(&self) -> String {
        let (_, place) = self.name.split_once(" of ").unwrap_or(("", &self.name));
        place.to_owned()
    }

    /// Notes that it has its partitions.
    pub(crate) fn up(&mut self, now: Micros) {
        let before = std::mem::replace(&mut self.state, State::Up);
        self.hears_from(now);
        self.has_been_up = true;
        self.is_refused = false;
        self.untold = None;
        self.told.clear();
        if matches!(before, State::Silent | State::Revoked) {
            self.diagnostics
                .push(Diagnostic::ConsumerBack(self.name.clone()));
        }
    }

    /// Handles the library's news.
    pub(crate) fn heard(&mut self, now: Micros, news: News) {
        match news {
            // The library asks for a group all the same, and needs none.
            News::Failed(code, _) if !self.has_group && Refusal::is_of_group(code) => {}
            News::Failed(code, reason) => self.failed(now, code, &reason),
            News::Revoked(partitions) => self.revoked(now, partitions),
            News::Sampled(sample) => self.sampled(now, &sample),
        }
    }

    /// Sets the instant at which the first message is due, which may be ahead: parts of a run agree on it.
    pub(crate) fn begin(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// Notes a check, as happens several times a second if this process gets to run.
    pub(crate) fn look_after(&mut self, now: Micros) {
        let last = self.seen.replace(now).unwrap_or(now);
        if now - last >= GROUP_WAITS {
            self.stood_still = Some((now, now - last));
        }
    }

    /// The run is over.
    pub(crate) fn finish(&mut self) {
        let untold = self.untold.take();
        self.diagnostics
            .extend(untold.map(Diagnostic::ConsumerRefused));
        if let Some(what) = self.lag.told() {
            self.diagnostics
                .push(Diagnostic::ConsumerLag(self.text(what)));
        }
    }

    /// Commands are refused.
    pub(crate) fn commands_refused(&mut self, refusal: &Refusal) {
        let text = self.text(refusal);
        self.diagnostics.push(Diagnostic::ConsumerRefused(text));
    }

    /// Notes the number of notices that changed nothing.
    pub(crate) fn idle_notices(&mut self, count: u64) {
        if let Some(what) = idle_notices(count) {
            self.diagnostics
                .push(Diagnostic::IdleNotices(self.text(what)));
        }
    }

    /// Something of this machine was not to be had.
    pub(crate) fn limited(&mut self, why: &str) {
        let text = self.text(why);
        self.diagnostics.push(Diagnostic::Limit(text));
    }

    /// The same of what is tried again: told once until it is up.
    pub(crate) fn limited_again(&mut self, what: &'static str, why: impl std::fmt::Display) {
        if !self.told.contains(&what) {
            self.told.push(what);
            self.limited(&format!("{what}: {why}"));
        }
    }

    fn failed(&mut self, now: Micros, code: RDKafkaErrorCode, reason: &str) {
        // Until it is up the library may still have what it knew before the topics were created.
        let change = self.has_been_up.then(|| self.layout.told(reason));
        if let Some(change) = change.flatten() {
            self.changed(&change);
        }
        self.is_refused |= !self.has_been_up && Refusal::is_of_credentials(code);
        if code == RDKafkaErrorCode::PollExceeded {
            self.away("it was not asked for messages in time, and its group left it out");
        } else if self.state == State::Down {
            self.refused(&Refusal::said(code, reason));
        } else if Refusal::is_final(code) && !Refusal::is_of_missing_topic(code) {
            self.lost(now, State::Silent, reason);
        }
    }

    fn sampled(&mut self, now: Micros, sample: &Sample) {
        if let Some(lag) = sample.lag {
            self.lag.add(now, lag);
        }
        if self.has_been_up {
            for change in self.layout.changes(&sample.topics) {
                self.changed(&change);
            }
        }
        let heard = now - sample.heard_ago;
        self.heard.until = self.heard.until.max(heard);
        let ended = self.ended(&sample.connections);
        // Of an answer that it owes since a moment ago the library says that nothing came since before.
        let has_just_gone_on = self.resumed.is_some_and(|at| now - at < SILENT);
        match (&sample.silent, self.state) {
            (Some(why), State::Up) if !has_just_gone_on => {
                self.lost(self.heard.until, State::Silent, why);
            }
            (None, State::Up) if ended > 0 => {
                self.lost(
                    now,
                    State::Silent,
                    "a connection to a broker ended, and was opened again",
                );
                self.up(now);
            }
            (None, State::Silent) => self.up(now),
            (Some(_), State::Up | State::Down | State::Silent | State::Revoked)
            | (None, State::Up | State::Down | State::Revoked) => {}
        }
    }

    fn hears_from(&mut self, now: Micros) {
        let (since, until) = (now, now);
        self.heard = Listening { since, until };
    }

    /// Returns how many connections to leaders have ended since the last sample.
    fn ended(&mut self, connections: &[Connections]) -> i64 {
        let since = connections.iter().map(|of| {
            let before = self.ended.insert(of.broker, of.ended).unwrap_or(0);
            (of.ended - before) * i64::from(of.is_leader)
        });
        since.sum()
    }

    /// Attributes a rebalance: to the run's own consumers while they join; to us after a pause of
    /// this process; else to others.
    fn revoked(&mut self, now: Micros, partitions: usize) {
        if !self.has_begun(now) {
            self.state = State::Down;
            return;
        }
        let still = self.stood_still.take();
        let still = still.filter(|(at, _)| now - *at <= GROUP_WAITS);
        if let Some((_, length)) = still {
            let length = length.as_secs_f64();
            self.away(&format!(
                "this process stood still for {length:.0} s, and its group left it out"
            ));
        } else {
            let why = format!("its group took {partitions} partitions back (a rebalance)");
            self.lost(now, State::Revoked, &why);
        }
    }

    /// Notes an absence by our own fault.
    fn away(&mut self, why: &str) {
        self.state = State::Revoked;
        let text = self.text(why);
        self.diagnostics.push(Diagnostic::ConsumerAway(text));
    }

    /// Notes a loss, unless it never had partitions.
    fn lost(&mut self, since: Micros, to: State, why: &str) {
        if self.state == State::Down {
            return;
        }
        if std::mem::replace(&mut self.state, to) == State::Up {
            let what = self.text(why);
            self.diagnostics
                .push(Diagnostic::ConsumerLost { what, since });
        }
    }

    fn text(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::TopicView;
    use super::*;

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
            heard_ago: Micros::ZERO,
            silent: None,
            connections: connections.collect(),
            topics: Vec::new(),
        })
    }

    fn up() -> Standing {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        standing.up(Micros(0));
        standing.begin(Micros(0));
        standing
    }

    #[test]
    fn a_connection_to_a_leader_that_ends_is_told_and_what_ended_before_it_led_is_not() {
        let mut standing = up();
        standing.heard(Micros(0), sample(&[(1, 0, true), (2, 5, false)]));
        standing.heard(Micros(1), sample(&[(1, 0, false), (2, 5, true)]));
        assert_eq!(standing.diagnostics, []);
        standing.heard(Micros(2), sample(&[(1, 4, false), (2, 6, true)]));
        let [Diagnostic::ConsumerLost { .. }, Diagnostic::ConsumerBack(_)] =
            &standing.diagnostics[..]
        else {
            panic!("{:?}", standing.diagnostics);
        };
    }

    #[test]
    fn what_its_group_takes_back_before_it_is_up_is_no_loss_and_a_refusal_is_still_told() {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        standing.heard(Micros(0), News::Revoked(4));
        standing.heard(
            Micros(0),
            News::Failed(RDKafkaErrorCode::Authentication, "no".to_owned()),
        );
        standing.up(Micros(0));
        let [Diagnostic::ConsumerRefused(_)] = &standing.diagnostics[..] else {
            panic!("{:?}", standing.diagnostics);
        };
    }

    #[test]
    fn that_nobody_is_left_is_not_told_of_brokers_that_refused() {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        for (code, why) in [
            (RDKafkaErrorCode::Authentication, "no"),
            (RDKafkaErrorCode::AllBrokersDown, "1/1 brokers are down"),
        ] {
            standing.heard(Micros(0), News::Failed(code, why.to_owned()));
        }
        let [Diagnostic::ConsumerRefused(why)] = &standing.diagnostics[..] else {
            panic!("{:?}", standing.diagnostics);
        };
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
            let mut standing = Standing::new("consumer 0".to_owned(), true);
            standing.heard(Micros(0), failed(code));
            assert_eq!(standing.is_refused(), is_final, "{code}");
            standing.up(Micros(1));
            standing.heard(Micros(2), failed(code));
            assert!(!standing.is_refused(), "{code}: it was up");
        }
    }

    fn of_leaders() -> Refusal {
        Refusal::leaderless("t", 0)
    }

    #[test]
    fn only_tries_to_come_up_are_counted_as_such() {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        let code = RDKafkaErrorCode::LeaderNotAvailable;
        for _ in 0..2 * PASSING_TRIES {
            standing.heard(Micros(0), News::Failed(code, "no leader".to_owned()));
        }
        standing.not_up(&of_leaders());
        assert_eq!(standing.diagnostics, []);
        (1..PASSING_TRIES).for_each(|_| standing.not_up(&of_leaders()));
        assert_eq!(standing.diagnostics.len(), 1);
    }

    #[test]
    fn what_is_tried_again_is_told_once_until_it_is_up() {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        for _ in 0..3 {
            standing.limited_again("start a thread", "no");
        }
        assert_eq!(standing.diagnostics.len(), 1);
        standing.up(Micros(0));
        standing.limited_again("start a thread", "no");
        assert_eq!(standing.diagnostics.len(), 2);
    }

    fn heard(ago_s: u64, silent: Option<&str>) -> News {
        News::Sampled(Sample {
            lag: None,
            heard_ago: Micros::from_secs(ago_s),
            silent: silent.map(str::to_owned),
            connections: Vec::new(),
            topics: Vec::new(),
        })
    }

    #[test]
    fn it_listens_as_far_as_its_brokers_were_heard_and_from_anew_after_it_was_away() {
        let (secs, mut standing) = (Micros::from_secs, up());
        let from_to = |since, until| Listening {
            since: secs(since),
            until: secs(until),
        };
        standing.heard(secs(10), heard(1, None));
        assert_eq!(standing.listening(secs(10)), from_to(0, 9));
        standing.heard(secs(11), heard(2, None));
        assert_eq!(standing.listening(secs(11)), from_to(0, 9));
        standing.heard(secs(12), heard(3, Some("it owes an answer")));
        assert_eq!(standing.listening(secs(12)), Listening::deaf(secs(12)));
        let what = "consumer 0: it owes an answer".to_owned();
        let since = secs(9);
        assert_eq!(
            standing.diagnostics,
            [Diagnostic::ConsumerLost { what, since }]
        );
        standing.heard(secs(20), heard(0, None));
        assert_eq!(standing.listening(secs(20)), from_to(20, 20));
        standing.heard(secs(21), News::Revoked(3));
        assert_eq!(standing.listening(secs(22)), Listening::deaf(secs(22)));
        standing.up(secs(23));
        standing.pause(secs(24), true);
        assert_eq!(standing.listening(secs(25)), Listening::deaf(secs(25)));
        standing.pause(secs(26), false);
        assert_eq!(standing.listening(secs(26)), from_to(26, 26));
    }

    #[test]
    fn how_far_it_was_behind_is_told_if_it_was_ever_known() {
        for (samples, told) in [
            (&[None, None][..], &[][..]),
            (
                &[None, Some(0), Some(0)],
                &["consumer 0: never behind the ends of its partitions, sampled 2x"],
            ),
            (
                &[Some(0), Some(1_300), None, Some(7)],
                &[
                    "consumer 0: at most 1,300 messages behind the ends of its partitions, at 1 s; 7 when last \
                   sampled, 3x in all",
                ],
            ),
        ] {
            let mut standing = up();
            for (at, lag) in (0..).zip(samples) {
                standing.sampled(
                    Micros::from_secs(at),
                    &Sample {
                        lag: *lag,
                        heard_ago: Micros::ZERO,
                        silent: None,
                        connections: Vec::new(),
                        topics: Vec::new(),
                    },
                );
            }
            standing.finish();
            let told = told
                .iter()
                .map(|it| Diagnostic::ConsumerLag((*it).to_owned()));
            assert_eq!(standing.diagnostics, told.collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_silence_of_a_pause_is_not_that_of_a_broker() {
        let (secs, mut standing) = (Micros::from_secs, up());
        standing.pause(secs(10), true);
        standing.pause(secs(20), false);
        standing.heard(secs(21), heard(10, Some("it owes an answer")));
        assert_eq!(standing.diagnostics, []);
        standing.heard(secs(23), heard(13, Some("it owes an answer")));
        assert!(matches!(
            &standing.diagnostics[..],
            [Diagnostic::ConsumerLost { .. }]
        ));
    }

    #[test]
    fn a_rebalance_before_the_first_message_is_due_is_no_loss() {
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        standing.up(Micros(0));
        standing.heard(Micros(1), News::Revoked(4));
        assert!(!standing.is_up());
        standing.up(Micros(2));
        standing.begin(Micros(5));
        standing.heard(Micros(4), News::Revoked(4));
        standing.up(Micros(4));
        assert_eq!(standing.diagnostics, []);
        standing.heard(Micros(5), News::Revoked(4));
        assert!(matches!(
            &standing.diagnostics[..],
            [Diagnostic::ConsumerLost { .. }]
        ));
    }

    #[test]
    fn a_group_that_leaves_out_a_process_that_stood_still_is_not_to_blame() {
        let secs = Micros::from_secs;
        for (still, told, is_ours) in [(9, 10, false), (12, 14, true), (12, 30, false)] {
            let mut standing = up();
            standing.look_after(secs(1));
            standing.look_after(secs(1 + still));
            (1 + still..1 + told).for_each(|at| standing.look_after(secs(at)));
            standing.heard(secs(1 + told), News::Revoked(4));
            let is_away = matches!(&standing.diagnostics[..], [Diagnostic::ConsumerAway(_)]);
            assert_eq!(is_away, is_ours, "{:?}", standing.diagnostics);
        }
    }

    #[test]
    fn a_consumer_that_did_not_ask_in_time_is_away_by_our_fault_whatever_its_group_does_then() {
        let mut standing = up();
        let late = (RDKafkaErrorCode::PollExceeded, "late".to_owned());
        standing.heard(Micros(1), News::Failed(late.0, late.1));
        standing.heard(Micros(2), News::Revoked(4));
        assert!(matches!(
            &standing.diagnostics[..],
            [Diagnostic::ConsumerAway(_)]
        ));
    }

    #[test]
    fn a_topic_that_is_deleted_is_no_fault_of_the_consumer() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        let mut standing = up();
        standing.watch(Layout::of(&had));
        let code = RDKafkaErrorCode::UnknownTopicOrPartition;
        for words in [
            "topic does not exist",
            "Subscribed topic not available: t: no",
        ] {
            standing.heard(Micros(1), News::Failed(code, words.to_owned()));
        }
        let told = "consumer 0: topic `t` was deleted".to_owned();
        assert_eq!(standing.diagnostics, [Diagnostic::TopicsChanged(told)]);
        assert!(standing.is_up());
    }

    /// A topic that was created just now, of which the library has heard nothing yet.
    #[test]
    fn a_topic_that_is_not_there_before_the_consumer_is_up_was_not_deleted() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        let mut standing = Standing::new("consumer 0".to_owned(), true);
        standing.watch(Layout::of(&had));
        let code = RDKafkaErrorCode::LeaderNotAvailable;
        let words = "Subscribed topic not available: t: no".to_owned();
        standing.heard(Micros(0), News::Failed(code, words));
        standing.up(Micros(1));
        assert_eq!(standing.diagnostics, []);
    }

    #[test]
    fn partitions_that_are_added_are_told_and_taken_up_where_no_group_gives_them() {
        let mut had = TopicPartitionList::new();
        had.add_partition_range("t", 0, 3);
        for (has_group, taken) in [(false, 2), (true, 0)] {
            let name = "consumer 1 of backend `b` at h";
            let mut standing = Standing::new(name.to_owned(), has_group);
            standing.watch(Layout::of(&had));
            standing.up(Micros(0));
            let News::Sampled(mut sample) = heard(0, None) else {
                panic!("it is a sample");
            };
            sample.topics = vec![TopicView::new("t", 6)];
            standing.sampled(Micros(1), &sample);
            standing.sampled(Micros(2), &sample);
            let told = "backend `b` at h: topic `t` grew from 4 to 6 partitions".to_owned();
            assert_eq!(standing.diagnostics, [Diagnostic::TopicsChanged(told)]);
            let further = standing.take_further();
            assert_eq!(further.map_or(0, |it| it.count()), taken);
            assert_eq!(standing.take_further(), None);
        }
    }
}
