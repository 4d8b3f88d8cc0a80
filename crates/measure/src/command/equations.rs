//! The equations of the ledger of commands (docs/semantics.md#commands).

use super::close::{CommandSums, Sizes};
use super::{
    ANSWERED, ANSWERING_NAMES, CommandAccount, CommandCounts, DELIVERY_NAMES, QUERY_NAMES,
    QueriesDue, StreamCommands, WITHHELD,
};
use crate::ChecksummedCount;
use crate::equations::{Equations, Row};

/// The independent counts of one stream's commands.
pub(super) struct Witnesses<'a> {
    /// Counted by backend and devices, where things happened.
    pub(super) own: &'a CommandAccount,
    /// Counted from the facts.
    pub(super) facts: &'a CommandAccount,
    /// Sizes of the identity sets.
    pub(super) sums: &'a CommandSums,
    /// Copies that are in no set.
    pub(super) strays: &'a StreamCommands,
    /// Sums of the windows.
    pub(super) counts: &'a CommandCounts,
}

/// A kind of exchange: the names of its ends, and the place of their counts on each side.
struct Exchange {
    names: &'static [&'static str],
    counted: fn(&CommandAccount) -> &[ChecksummedCount],
    sets: fn(&CommandSums) -> &Sizes,
    windows: fn(&CommandCounts) -> &[u64],
}

const QUERIES: Exchange = Exchange {
    names: &QUERY_NAMES,
    counted: |of| &of.queries,
    sets: |of| &of.queries,
    windows: |of| &of.queries,
};
const ISSUES: Exchange = Exchange {
    names: &DELIVERY_NAMES,
    counted: |of| &of.issues,
    sets: |of| &of.issues,
    windows: |of| &of.issues.ends,
};
const ANSWERS: Exchange = Exchange {
    names: &ANSWERING_NAMES,
    counted: |of| &of.answers,
    sets: |of| &of.answers,
    windows: |of| &of.answers,
};

impl Equations {
    /// Queries: what was sent against the ends, and the windows by due against those by event.
    pub(super) fn queries(
        &mut self,
        (sent, shed): (u64, u64),
        of: &Witnesses<'_>,
        due: &QueriesDue,
    ) {
        let counts = of.counts;
        let ends = sum(&of.own.queries);
        self.counts("queries sent = sum of their ends", sent, ends);
        self.ends(&QUERIES, of);
        let coded = counts.queries_rejected.total();
        self.counts("query_rejected by code", coded, counts.queries[2]);
        for (place, name) in QUERY_NAMES.iter().enumerate() {
            let name = format!("windows by due: {name}");
            self.counts(&name, due.ends[place], counts.queries[place]);
        }
        self.counts("windows by due: queries shed", due.shed, shed);
    }

    /// Commands and their replies.
    pub(super) fn commands(&mut self, of: &Witnesses<'_>) {
        self.issues(of);
        self.receipts(of);
        self.answers(of);
        self.replies(of);
    }

    fn issues(&mut self, of: &Witnesses<'_>) {
        let (own, facts, sums, counts) = (of.own, of.facts, of.sums, of.counts);
        let issues = &counts.issues;
        self.row(&Row::new("issued", own.issued, facts.issued));
        self.ends(&ISSUES, of);
        for (name, left, right) in [
            (
                "issued = delivered + expired + undeliverable + unknown",
                own.issued.count,
                sum(&own.issues[..WITHHELD]),
            ),
            (
                "undeliverable by status",
                issues.undeliverable.total(),
                issues.ends[2],
            ),
            (
                "withheld by cause",
                issues.withheld.total(),
                issues.ends[WITHHELD],
            ),
        ] {
            self.counts(name, left, right);
        }
        let Some(scheduled) = sums.scheduled else {
            return;
        };
        let name = "commands scheduled = issued + withheld";
        self.sets(name, scheduled, sum(&own.issues), sums.unlike.scheduled);
        let name = "commands scheduled = those that a device's side met";
        self.sets(name, scheduled, sum(&own.met), sums.unlike.met);
        for (place, (own, facts)) in own.met.iter().zip(&facts.met).enumerate() {
            let row = Row::new("presence", *own, *facts);
            let set = sums.rows[place].scheduled;
            self.row(&row.set(set).window(counts.met[place]));
        }
    }

    fn receipts(&mut self, of: &Witnesses<'_>) {
        let (own, facts, sums, counts) = (of.own, of.facts, of.sums, of.counts);
        let copies = counts.received + counts.again + counts.foreign + counts.damaged;
        let received = Row::new("received", own.received, facts.received);
        for row in [
            Row::of_counts("copies at devices", own.taken, facts.taken).window(copies),
            Row::new("copies with an id", own.read, facts.read),
            Row::new("copies without an id", own.damaged, facts.damaged),
            received.set(sums.received.first).window(counts.received),
        ] {
            self.row(&row);
        }
        let parts = sums.received.all() + of.strays.foreign + facts.damaged.count;
        let name = "copies = received + again + foreign + damaged";
        self.counts(name, own.taken, parts);
    }

    fn answers(&mut self, of: &Witnesses<'_>) {
        let (own, counts) = (of.own, of.counts);
        let name = "received = one_way + answered + answers that failed";
        let (received, ends) = (own.received.count, sum(&own.answers));
        self.sets(name, received, ends, of.sums.unlike.answered);
        self.row(&Row::new("replies sent", own.replied, of.facts.replied));
        self.ends(&ANSWERS, of);
        let coded = counts.answers_rejected.total();
        self.counts("answer_rejected by code", coded, counts.answers[2]);
        let coded = counts.answers_shed.total();
        self.counts("answer_shed by cause", coded, counts.answers[6]);
    }

    fn replies(&mut self, of: &Witnesses<'_>) {
        let (own, facts, sums, counts) = (of.own, of.facts, of.sums, of.counts);
        let name = "answered = replies_arrived + replies_lost + replies_outstanding";
        let answered = own.answers[ANSWERED].count;
        self.counts(name, answered, sums.answered.total());
        let copies =
            counts.replies + counts.replies_again + counts.replies_foreign + counts.replies_damaged;
        let (damaged, damaged_facts) = (own.replies_damaged, facts.replies_damaged);
        for row in [
            Row::of_counts("replies", own.replies_taken, facts.replies_taken).window(copies),
            Row::new("replies with an id", own.replies_read, facts.replies_read),
            Row::of_counts("replies without an id", damaged, damaged_facts),
        ] {
            self.row(&row);
        }
        let copies = sums.replies.all() + of.strays.replies_foreign + facts.replies_damaged;
        let name = "replies = first copies + again + foreign + damaged";
        self.counts(name, own.replies_taken, copies);
        self.counts("windows: first replies", counts.replies, sums.replies.first);
    }

    /// Counts of two sets, `unlike` being the members of one alone.
    fn sets(&mut self, name: &str, left: u64, right: u64, unlike: u64) {
        self.check(name, left, right, unlike.max(left.abs_diff(right)));
    }

    fn ends(&mut self, kind: &Exchange, of: &Witnesses<'_>) {
        let (own, facts) = ((kind.counted)(of.own), (kind.counted)(of.facts));
        let (sets, windows) = ((kind.sets)(of.sums), (kind.windows)(of.counts));
        for (place, name) in kind.names.iter().enumerate() {
            let row = Row::new(name, own[place], facts[place]);
            self.row(&row.set(sets.ends[place]).window(windows[place]));
        }
        self.counts("one end each", sets.overlap, 0);
    }
}

fn sum(counts: &[ChecksummedCount]) -> u64 {
    counts.iter().map(|of| of.count).sum()
}
