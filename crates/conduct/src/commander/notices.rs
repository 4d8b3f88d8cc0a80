//! Reports of a platform on a command after it accepted it: that its device did not get it, or by a
//! reply that it did (ADR 0017).

use muster_device::Sink;
use muster_model::{Delivery, MessageId, Micros};
use muster_plan::Plan;
use rustc_hash::FxHashMap;

use super::{CommandSink, Commander};

/// For how long a platform that took a command may still say that its device did not get it: longer than
/// its own time-outs, and than a broker that stands still for some seconds.
pub const NOTICE_WAIT: Micros = Micros::from_secs(30);

/// Commands on which a further word may come.
#[derive(Debug)]
pub(super) struct Notices {
    are_given: bool,
    /// No more than are pending.
    tokens: FxHashMap<MessageId, u32>,
    /// Notices that changed nothing.
    idle: u64,
}

impl Notices {
    /// The notices that the platform of a plan gives: none if the outcome of a command is final.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut issuing = plan.backends.iter().filter(|it| it.issues_commands);
        let is_final = issuing.any(|it| it.kind().outcome_is_final);
        Self {
            are_given: plan.platform.dialect().application.notices.is_some() && !is_final,
            tokens: FxHashMap::default(),
            idle: 0,
        }
    }

    /// A command that wants a reply was handed over.
    pub(super) fn await_word(&mut self, id: MessageId, token: u32) {
        if self.are_given {
            self.tokens.insert(id, token);
        }
    }

    pub(super) fn forget(&mut self, id: &MessageId) {
        self.tokens.remove(id);
    }

    pub(super) fn token(&self, id: &MessageId) -> Option<u32> {
        self.tokens.get(id).copied()
    }
}

impl Commander {
    /// A notice of delivery came.
    pub(super) fn note_notice<S: Sink>(
        &mut self,
        id: &MessageId,
        delivery: Delivery,
        now: Micros,
        sink: &mut CommandSink<'_, S>,
    ) {
        match self.notices.token(id) {
            Some(token) => self.settle(token, delivery, now, sink),
            None => self.notices.idle += 1,
        }
    }

    /// The last word on a command. Where whoever took it has not said so yet, its place is kept till then: a
    /// later command there would be taken for it.
    pub(super) fn settle<S: Sink>(
        &mut self,
        token: u32,
        delivery: Delivery,
        now: Micros,
        sink: &mut CommandSink<'_, S>,
    ) {
        let place = self.pending.get_mut(token as usize);
        let Some(pending) = place.and_then(Option::as_mut) else {
            return;
        };
        if pending.taken.is_some() {
            return self.end(token, delivery, now, sink);
        }
        pending.word.get_or_insert(delivery);
    }

    /// Commands that were taken so long ago that no notice is to be expected are delivered.
    pub fn expire<S: Sink>(&mut self, now: Micros, sink: &mut CommandSink<'_, S>) {
        if self.notices.tokens.is_empty() {
            return;
        }
        for token in 0..self.pending.len() as u32 {
            let taken = self.pending_at(token).and_then(|pending| pending.taken);
            if taken.is_some_and(|taken| taken + NOTICE_WAIT <= now) {
                self.end(token, Delivery::Delivered, now, sink);
            }
        }
    }

    /// Ends every command at the end of the run. A command that the platform accepted counts as
    /// delivered; the others end as a notice or a reply reported, else as unknown.
    pub(super) fn close<S: Sink>(&mut self, now: Micros, sink: &mut CommandSink<'_, S>) {
        for token in 0..self.pending.len() as u32 {
            let Some(pending) = self.pending_at(token) else {
                continue;
            };
            let by_word = pending.word.unwrap_or(Delivery::Unknown);
            let delivery = pending.taken.map_or(by_word, |_| Delivery::Delivered);
            self.end(token, delivery, now, sink);
        }
    }

    /// Notices that changed nothing: they came too late, a second time, or after the reply.
    pub fn idle_notices(&self) -> u64 {
        self.notices.idle
    }
}

#[cfg(test)]
mod tests {
    use muster_measure::{Account, Counts};
    use muster_model::{Attempt, Command, LinkFact, LinkId, Reason, Reception, RunId, StreamId};
    use muster_platform::{CommandScratch, Dialect, OutboundCommand};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::super::{CommandSender, CommandToken, Untaken};
    use super::*;

    const T0: Micros = Micros::ZERO;
    const LATER: Micros = Micros(1_000);

    /// Outcomes of commands, and the commands handed over.
    #[derive(Default)]
    struct World {
        ends: Vec<Delivery>,
        taken: Vec<(CommandToken, CommandScratch)>,
        counts: Counts,
    }

    impl Sink for World {
        fn attempt(&mut self, _: &Attempt) {}
        fn command(&mut self, command: &Command) {
            if let Command::Issue(issue) = command {
                self.ends.push(issue.delivery);
            }
        }
        fn reception(&mut self, _: &Reception) {}
        fn link(&mut self, _: &LinkFact) {}
        fn opened(&mut self, _: LinkId, _: Micros) {}
        fn counts(&mut self, _: StreamId, _: Micros) -> &mut Counts {
            &mut self.counts
        }
    }

    /// Takes everything.
    struct Taking<'a>(&'a mut Vec<(CommandToken, CommandScratch)>);

    impl CommandSender for Taking<'_> {
        fn is_connected(&self) -> bool {
            true
        }
        fn has_room(&self) -> bool {
            true
        }
        fn take(
            &mut self,
            _: Micros,
            token: CommandToken,
            command: &OutboundCommand<'_>,
        ) -> Result<(), Untaken> {
            let mut written = CommandScratch::default();
            (Dialect::Hono.application.write_command)(command, &mut written);
            self.0.push((token, written));
            Ok(())
        }
    }

    /// A commander of Hono's devices, and what it tells.
    struct Rig {
        commander: Commander,
        account: Account,
        world: World,
    }

    impl Rig {
        fn new(mode: &str, commands: u64) -> Self {
            Self::with("", mode, commands)
        }

        /// Hands over `commands` commands, due a second apart, to a backend with these keys.
        fn with(keys: &str, mode: &str, commands: u64) -> Self {
            let text = format!(
                "
name: notices
platform: {{ kind: gateway, dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: {{ {keys} commands: {{ rate: 1/s, mode: {mode} }} }} }}
fleet: [ {{ name: pumps, count: 1, streams: [ {{ name: r, rate: 1/s }}, {{ kind: command }} ] }} ]
phases: {{ measure: 100s }}
"
            );
            let source = Source {
                name: "notices.yaml",
                text: &text,
            };
            let plan = parse(source, &Overrides::default(), &NoFiles).unwrap();
            let (run, schedules) = (RunId(1), crate::schedules(&plan).unwrap());
            let mut commander = Commander::new(&plan, &schedules, run, 0).unwrap();
            let account = Account::new(&crate::recorder_plan(&plan, run, &schedules));
            commander.start(T0);
            let mut rig = Self {
                commander,
                account,
                world: World::default(),
            };
            rig.issue(Micros::from_secs(commands) - Micros(1));
            assert_eq!(rig.world.taken.len() as u64, commands);
            rig
        }

        fn issue(&mut self, until: Micros) {
            let mut taken = std::mem::take(&mut self.world.taken);
            let mut sender = Taking(&mut taken);
            self.tell(|commander, sink| commander.issue(until, &mut sender, sink));
            self.world.taken = taken;
        }

        fn tell<T>(
            &mut self,
            act: impl FnOnce(&mut Commander, &mut CommandSink<'_, World>) -> T,
        ) -> T {
            let (account, sink) = (&mut self.account, &mut self.world);
            act(&mut self.commander, &mut CommandSink { account, sink })
        }

        /// The word of whoever took the command of that number.
        fn learn(&mut self, number: usize, delivery: Delivery) {
            let token = self.world.taken[number].0;
            self.tell(|commander, sink| commander.learn(token, delivery, LATER, sink));
        }

        /// Receives the platform's report: a notice with that status, or a reply.
        fn hear(&mut self, number: usize, what: &str) {
            let command = &self.world.taken[number].1;
            let topic = command.topic.replacen("command/", what, 1);
            let topic = topic.replace("/set", "/503");
            let payload = command.payload.clone();
            let is_heard =
                self.tell(|commander, sink| commander.replied(&topic, &payload, LATER, sink));
            assert!(is_heard, "{topic}");
        }
    }

    const NOTICE: &str = "command_failure/";
    const REPLY: &str = "command_response/";
    const REFUSED: Delivery = Delivery::Undeliverable(Reason::Application(503));

    #[test]
    fn what_the_platform_took_is_not_delivered_before_it_had_its_time_to_say_otherwise() {
        let mut rig = Rig::new("two-way", 2);
        rig.learn(0, Delivery::Delivered);
        rig.learn(1, Delivery::Delivered);
        rig.tell(|commander, sink| commander.expire(LATER + NOTICE_WAIT - Micros(1), sink));
        assert_eq!((rig.commander.open(), rig.world.ends.len()), (2, 0));
        rig.hear(1, NOTICE);
        assert_eq!(rig.world.ends, [REFUSED]);
        rig.tell(|commander, sink| commander.expire(LATER + NOTICE_WAIT, sink));
        assert_eq!(rig.world.ends, [REFUSED, Delivery::Delivered]);
        assert_eq!(rig.commander.open(), 0);
    }

    #[test]
    fn of_a_command_that_wants_no_reply_the_first_word_is_the_last() {
        let mut rig = Rig::new("one-way", 1);
        rig.learn(0, Delivery::Delivered);
        assert_eq!(rig.world.ends, [Delivery::Delivered]);
    }

    #[test]
    fn over_amqp_the_outcome_of_a_command_is_final_whether_it_wants_a_reply_or_not() {
        let mut rig = Rig::with("url: 'amqp://127.0.0.1:0',", "two-way", 2);
        rig.learn(0, Delivery::Delivered);
        rig.learn(1, REFUSED);
        assert_eq!(rig.world.ends, [Delivery::Delivered, REFUSED]);
        assert_eq!(rig.commander.open(), 0);
    }

    #[test]
    fn a_reply_tells_that_its_command_was_delivered_and_a_notice_after_it_changes_nothing() {
        let mut rig = Rig::new("two-way", 1);
        rig.learn(0, Delivery::Delivered);
        rig.hear(0, REPLY);
        assert_eq!(rig.world.ends, [Delivery::Delivered]);
        rig.hear(0, NOTICE);
        rig.hear(0, REPLY);
        assert_eq!(rig.world.ends, [Delivery::Delivered]);
        assert_eq!(rig.commander.idle_notices(), 1);
    }

    /// Law: a place is free only once whoever took its command has said so, however early a notice comes.
    #[test]
    fn a_notice_before_the_acknowledgement_decides_and_keeps_the_place_till_then() {
        let mut rig = Rig::new("two-way", 1);
        rig.hear(0, NOTICE);
        assert_eq!((rig.commander.open(), rig.world.ends.len()), (1, 0));
        rig.issue(Micros::from_secs(2) - Micros(1));
        assert_ne!(rig.world.taken[0].0, rig.world.taken[1].0);
        rig.learn(0, Delivery::Delivered);
        assert_eq!(rig.world.ends, [REFUSED]);
        rig.learn(1, Delivery::Unknown);
        assert_eq!(rig.world.ends, [REFUSED, Delivery::Unknown]);
    }

    #[test]
    fn what_was_taken_before_a_connection_ended_is_delivered_and_the_rest_unknown() {
        let mut rig = Rig::new("two-way", 3);
        rig.learn(0, Delivery::Delivered);
        rig.hear(1, NOTICE);
        rig.tell(|commander, sink| commander.lost(LATER, sink));
        assert_eq!(rig.world.ends, [REFUSED, Delivery::Unknown]);
        let sender = Taking(&mut Vec::new());
        rig.tell(|commander, sink| commander.finish(&sender, LATER, sink));
        assert_eq!(rig.world.ends[2..], [Delivery::Delivered]);
    }
}
