//! Queries of a device that speaks CoAP, the commands that come for them, and its replies.

use muster_measure::Counts;
use muster_model::{
    Answer, Answering, Attempt, Cause, Command, Integrity, Met, Micros, Outcome, Presence,
    QueryOutcome, Reason, Receipt, ShedCause,
};
use muster_platform::{Dialect, Protocol, Status};
use muster_protocol::coap::Code;

use crate::commanding::{Bringing, Commands, body, reply_path};
use crate::world::{Peer, Told, WAY, World};

/// Queries of a run: one a second.
const QUERIES: usize = 10;
const SECOND: Micros = Micros::from_secs(1);

/// Commands come half a second after their queries, and replies are taken.
const COMMANDS: Commands = Commands {
    after: Micros::from_millis(500),
    brings: Bringing::TwoWay,
    to_replies: Code::CHANGED,
    loses: 0,
};

/// A device that asks once a second for ten seconds, with these further keys of the query and further
/// streams.
fn world(peer: Peer, query: &str, streams: &str) -> World {
    commanded("to: waiting", peer, query, streams)
}

/// The same, with these keys of `commands`.
fn commanded(commands: &str, peer: Peer, query: &str, streams: &str) -> World {
    let text = format!(
        "name: t\nplatform: {{ dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: {{ commands: {{ \
         {commands}, mode: two-way }} }} }}\nfleet: [ {{ name: f, tenant: t1, streams: [ {{ kind: \
         command-query, every: 1s, ttd: 3s, payload: {{ size: 64 }}, {query} }}, {{ kind: command, timeout: \
         100s }}, {streams} ] }} ]\nphases: {{ warm-up: 0s, measure: {QUERIES}s, settle: {{ at-most: 300s }} }}\n"
    );
    World::new(peer, &text)
}

/// Facts of a run.
struct Run {
    told: Told,
    world: World,
}

impl Run {
    fn of(mut world: World, until: Micros) -> Self {
        world.run_until(until);
        let told = world.end();
        Self { told, world }
    }

    fn with(commands: Commands) -> Self {
        let world = world(Peer::Commands(commands), "", "");
        Self::of(world, Micros::from_secs(300))
    }

    fn counts(&self) -> Counts {
        self.told.counts()
    }

    fn answers(&self) -> Vec<Answer> {
        let answers = self
            .told
            .commands
            .iter()
            .filter_map(|command| match command {
                Command::Answer(answer) => Some(*answer),
                Command::Query(_)
                | Command::Issue(_)
                | Command::Met(_)
                | Command::Receipt(_)
                | Command::Reply(_) => None,
            });
        answers.collect()
    }

    /// Returns the ends of the queries' messages, each once.
    fn uplinks(&self) -> Vec<Attempt> {
        let of = self.told.attempts.iter();
        let uplinks: Vec<Attempt> = of.filter(|it| it.id.stream.0 == 0).copied().collect();
        let mut seqs: Vec<u32> = uplinks.iter().map(|attempt| attempt.id.seq).collect();
        seqs.sort_unstable();
        assert!(seqs.iter().copied().eq(0..QUERIES as u32), "{seqs:?}");
        uplinks
    }

    fn all_queries_ended_as(&self, outcome: QueryOutcome) {
        let queries = self.told.queries();
        assert_eq!(
            queries.len(),
            QUERIES,
            "{queries:?} {:?}",
            self.world.commanding.queries
        );
        let ended: Vec<_> = queries.iter().map(|query| query.outcome).collect();
        assert_eq!(ended, [outcome; QUERIES]);
    }

    fn all_answers_ended_as(&self, outcome: Answering) {
        let ended: Vec<_> = self.answers().iter().map(|it| it.outcome).collect();
        assert_eq!(ended, [outcome; QUERIES]);
    }
}

fn shed(uplinks: &[Attempt], cause: ShedCause) -> usize {
    let is_shed = |it: &&Attempt| it.outcome == Outcome::Shed(cause);
    uplinks.iter().filter(is_shed).count()
}

#[test]
fn a_query_is_answered_with_a_command_whose_reply_goes_where_it_said_word_for_word() {
    let run = Run::with(COMMANDS);
    run.all_queries_ended_as(QueryOutcome::Received);
    let uplinks = run.uplinks();
    assert!(uplinks.iter().all(|it| it.outcome == Outcome::Accepted));
    let took = COMMANDS.after + WAY + WAY;
    assert!(
        run.told
            .queries()
            .iter()
            .all(|it| it.ended - it.due == took)
    );
    assert!(
        run.told
            .receipts()
            .iter()
            .all(|it| it.integrity == Integrity::Intact)
    );
    assert_eq!(run.told.receipts().len(), QUERIES);
    run.all_answers_ended_as(Answering::Answered);
    let is_direct = |it: &Answer| it.ended - it.sent.unwrap() == WAY + WAY;
    assert!(run.answers().iter().all(is_direct));
    let (queries, replies) = (&run.world.commanding.queries, &run.world.commanding.replies);
    assert!(
        queries
            .iter()
            .all(|it| it.query == ["hono-ttd=3"] && it.is_confirmable)
    );
    assert_eq!(replies.len(), QUERIES);
    for (seq, reply) in (0..).zip(replies) {
        assert_eq!(reply.path, reply_path(seq));
        assert_eq!(reply.query, ["hono-cmd-status=200"]);
        assert_eq!((reply.method, reply.is_confirmable), (Code::PUT, true));
        // A reply names its command as the command does.
        assert_eq!(reply.payload, body(seq));
    }
    assert_eq!(
        run.counts().session.retransmitted,
        0,
        "the queries were acknowledged"
    );
}

#[test]
fn a_command_in_the_acknowledgement_is_as_good_as_one_in_a_message_of_its_own() {
    let run = Run::with(Commands {
        after: Micros::ZERO,
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::Received);
    run.all_answers_ended_as(Answering::Answered);
    assert!(
        run.told
            .queries()
            .iter()
            .all(|it| it.ended - it.due == WAY + WAY)
    );
}

#[test]
fn a_command_that_wants_no_reply_gets_none() {
    let run = Run::with(Commands {
        brings: Bringing::OneWay,
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::Received);
    run.all_answers_ended_as(Answering::OneWay);
    assert_eq!(run.world.commanding.replies, []);
}

#[test]
fn a_query_whose_time_is_over_had_no_command_and_was_accepted_all_the_same() {
    let run = Run::with(Commands {
        after: Micros::from_millis(900),
        brings: Bringing::Nothing,
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::NoCommand);
    let uplinks = run.uplinks();
    assert!(uplinks.iter().all(|it| it.outcome == Outcome::Accepted));
    assert_eq!((run.told.receipts(), run.answers()), (vec![], vec![]));
}

#[test]
fn a_refused_query_keeps_its_code() {
    let world = world(Peer::Answers(Code::NOT_FOUND), "", "");
    let run = Run::of(world, Micros::from_secs(300));
    run.all_queries_ended_as(QueryOutcome::Rejected(Reason::Coap(0x84)));
    let hint = (Dialect::Hono.requests(Protocol::Coap).hint)(Status(404));
    assert!(hint.is_some());
}

/// docs/semantics.md#time-outs: a query times out ttd + 10 s after it was sent, and one is under way at a time.
#[test]
fn silence_ends_a_query_ten_seconds_after_its_time() {
    let world = world(Peer::Silent, "", "");
    let run = Run::of(world, Micros::from_secs(300));
    let uplinks = run.uplinks();
    assert_eq!(shed(&uplinks, ShedCause::Busy), QUERIES - 1);
    let [query] = run.told.queries()[..] else {
        panic!("one was sent");
    };
    assert_eq!(query.outcome, QueryOutcome::TimedOut);
    let sent = uplinks.iter().find_map(|it| it.sent).unwrap();
    assert_eq!(query.ended - sent, Micros::from_secs(13));
    assert!(run.counts().session.retransmitted > 0);
}

#[test]
fn what_is_due_while_a_query_is_under_way_is_shed_as_busy() {
    let run = Run::with(Commands {
        after: Micros::from_millis(2_500),
        ..COMMANDS
    });
    let uplinks = run.uplinks();
    assert_eq!(shed(&uplinks, ShedCause::Busy), 6, "two of three");
    assert_eq!(run.told.queries().len(), 4);
    assert_eq!(run.answers().len(), 4);
}

#[test]
fn what_is_due_while_a_query_is_under_way_waits_where_the_stream_says_so() {
    let after = Micros::from_millis(2_500);
    let peer = Peer::Commands(Commands { after, ..COMMANDS });
    let queue = "loop: { in-flight: 1, overflow: queue, bound: 100 }";
    let run = Run::of(world(peer, queue, ""), Micros::from_secs(300));
    run.all_queries_ended_as(QueryOutcome::Received);
    let mut sent: Vec<Micros> = run.uplinks().iter().filter_map(|it| it.sent).collect();
    sent.sort_unstable();
    let apart = |pair: &[Micros]| pair[1] - pair[0] == after + WAY + WAY;
    assert!(sent.windows(2).all(apart), "one at a time: {sent:?}");
    let bounded = "loop: { in-flight: 1, overflow: queue, bound: 1 }";
    let run = Run::of(world(peer, bounded, ""), Micros::from_secs(300));
    assert!(shed(&run.uplinks(), ShedCause::QueueFull) > 0);
    // At the end of a run what waits behind a query is shed by that.
    let run = Run::of(world(peer, queue, ""), Micros::from_secs(9));
    let busy = shed(&run.uplinks(), ShedCause::Busy);
    assert!(busy > 3, "{busy}");
}

/// NSTART is 1: while a message of its own is under way a device sends nothing else for a moment.
#[test]
fn a_query_waits_for_the_end_of_another_message_of_its_device() {
    let telemetry = "{ name: t, every: 1s, phase: together, payload: { size: 64 } }";
    let peer = Peer::Commands(COMMANDS);
    let run = Run::of(
        world(peer, "phase: together", telemetry),
        Micros::from_secs(300),
    );
    run.all_queries_ended_as(QueryOutcome::Received);
    run.all_answers_ended_as(Answering::Answered);
    assert_eq!(run.world.commanding.others.len(), QUERIES);
}

#[test]
fn a_query_waits_while_another_message_is_on_its_way_to_a_shared_socket() {
    let telemetry =
        "{ name: t, every: 900ms, phase: together, confirmable: false, payload: { size: 64 } }";
    let mut world = world(Peer::Commands(COMMANDS), "phase: together", telemetry);
    // What is due at 900 ms is kept back until 1,020 ms.
    world.keeps_back = Some(Micros::from_millis(120));
    let run = Run::of(world, Micros::from_secs(300));
    run.all_queries_ended_as(QueryOutcome::Received);
    run.all_answers_ended_as(Answering::Answered);
}

#[test]
fn a_command_that_comes_again_is_counted_and_not_replied_to_again() {
    let run = Run::with(Commands {
        brings: Bringing::TheFirst,
        ..COMMANDS
    });
    // The device had a command in each of its answers.
    run.all_queries_ended_as(QueryOutcome::Received);
    assert_eq!(run.told.receipts().len(), QUERIES);
    assert_eq!(run.answers().len(), 1);
    assert_eq!(run.world.commanding.replies.len(), 1);
}

#[test]
fn a_damaged_command_is_told_as_such_and_believed_by_nobody() {
    let run = Run::with(Commands {
        brings: Bringing::Damaged,
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::Received);
    let receipts = run.told.receipts();
    assert_eq!(receipts.len(), QUERIES);
    let is_damaged = |it: &Receipt| it.integrity == Integrity::Corrupted && it.id.is_none();
    assert!(receipts.iter().all(is_damaged));
    assert_eq!(run.answers(), []);
}

#[test]
fn a_command_in_blocks_is_put_together_and_one_that_is_too_long_fails_its_query() {
    let run = Run::with(Commands {
        brings: Bringing::Long(5_000),
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::Received);
    let receipts = run.told.receipts();
    assert!(receipts.iter().all(|it| it.integrity == Integrity::Intact));
    run.all_answers_ended_as(Answering::Answered);
    let run = Run::with(Commands {
        brings: Bringing::Long(70_000),
        ..COMMANDS
    });
    run.all_queries_ended_as(QueryOutcome::Broken(Cause::Malformed));
    assert_eq!(run.told.receipts(), []);
}

#[test]
fn a_reply_that_is_lost_is_sent_again_as_it_was() {
    let peer = Peer::Commands(Commands {
        loses: 1,
        ..COMMANDS
    });
    let queue = "loop: { in-flight: 1, overflow: queue, bound: 100 }";
    let run = Run::of(world(peer, queue, ""), Micros::from_secs(300));
    run.all_answers_ended_as(Answering::Answered);
    assert_eq!(run.counts().session.retransmitted, 1);
    let replies = &run.world.commanding.replies;
    assert_eq!(replies.len(), QUERIES);
    let paths: Vec<_> = replies.iter().map(|it| it.path.clone()).collect();
    let expected: Vec<_> = (0..QUERIES as u32).map(reply_path).collect();
    assert!(expected.iter().all(|path| paths.contains(path)));
}

#[test]
fn a_refused_reply_keeps_its_code_and_one_into_silence_times_out() {
    let run = Run::with(Commands {
        to_replies: Code::BAD_REQUEST,
        ..COMMANDS
    });
    run.all_answers_ended_as(Answering::Rejected(Reason::Coap(0x80)));
    let run = Run::with(Commands {
        loses: u32::MAX,
        ..COMMANDS
    });
    let answers = run.answers();
    let timed_out = |it: &&Answer| it.outcome == Answering::TimedOut;
    assert!(answers.iter().filter(timed_out).count() > 0);
    assert!(answers.iter().all(|it| it.outcome == Answering::TimedOut));
}

/// The device has given the query up: what comes then is counted as late, and changes nothing.
#[test]
fn a_command_that_comes_after_the_query_was_given_up_is_late() {
    let late = Commands {
        after: Micros::from_millis(800),
        ..COMMANDS
    };
    let world = world(Peer::Commands(late), "timeout: 500ms", "");
    let run = Run::of(world, Micros::from_secs(300));
    run.all_queries_ended_as(QueryOutcome::TimedOut);
    assert_eq!(run.counts().session.answered_late, QUERIES as u64);
    assert_eq!((run.told.receipts(), run.answers()), (vec![], vec![]));
}

#[test]
fn what_is_open_when_the_run_or_the_link_ends_is_told_as_such() {
    let silent = Commands {
        loses: u32::MAX,
        ..COMMANDS
    };
    let run = Run::of(
        world(Peer::Commands(silent), "", ""),
        Micros::from_millis(1_900),
    );
    let of = |outcome| {
        run.answers()
            .iter()
            .filter(|it| it.outcome == outcome)
            .count()
    };
    assert!(of(Answering::InFlight) > 0, "{:?}", run.answers());
    let mut world = world(Peer::Silent, "", "");
    world.run_until(SECOND);
    world.shard.closed(0, SECOND, Cause::Network);
    let run = Run::of(world, SECOND + SECOND);
    let ended: Vec<_> = run.told.queries().iter().map(|it| it.outcome).collect();
    assert_eq!(ended, [QueryOutcome::Broken(Cause::Network)]);
}

#[test]
fn a_device_with_a_query_under_way_is_waiting_and_else_online() {
    let peer = Peer::Commands(COMMANDS);
    // Queries are due on the second and take half of one; commands are due four times a second.
    let mut world = commanded("rate: 4/s, to: online", peer, "", "");
    world.run_until(Micros::from_secs(300));
    let told = world.end();
    let met = told.commands.iter().filter_map(|command| match command {
        Command::Met(met) => Some(*met),
        Command::Query(_)
        | Command::Issue(_)
        | Command::Receipt(_)
        | Command::Answer(_)
        | Command::Reply(_) => None,
    });
    let met: Vec<Met> = met.collect();
    assert_eq!(met.len(), 4 * QUERIES);
    let (begun, ended) = (Micros::ZERO, COMMANDS.after + WAY + WAY);
    for met in met {
        let into = Micros(met.due.get() % SECOND.get());
        let expected = match into {
            into if into > begun && into < ended => Presence::Waiting,
            into if into > ended => Presence::Online,
            // In the very moment of a beginning or an end it may be either.
            _ => met.presence,
        };
        assert_eq!(met.presence, expected, "due at {}", met.due);
        assert_ne!(met.presence, Presence::Offline);
    }
}
