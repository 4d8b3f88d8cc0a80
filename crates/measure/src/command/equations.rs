//! The equations of the ledger of commands (docs/semantics.md#commands).

use super::close::{Sizes, Walk};
use super::{
    ANSWERED, ANSWERING_NAMES, CommandAccount, CommandCounts, DELIVERY_NAMES, QUERY_NAMES,
    QueriesDue, StreamCommands, WITHHELD,
};
use crate::ChecksummedCount;
use crate::equations::{Equations, Row};

/// All who have counted the commands of one stream, each by itself.
pub(super) struct Witnesses<'a> {
    /// Backend and devices, where things happened.
    pub(super) own: &'a CommandAccount,
    /// The recorded facts.
    pub(super) facts: &'a CommandAccount,
    /// The sets.
    pub(super) walk: &'a Walk,
    /// Copies that are in no set.
    pub(super) strays: &'a StreamCommands,
    /// The windows.
    pub(super) counts: &'a CommandCounts,
}

/// The ends of one kind of exchange, by everybody who counted them.
struct Ends<'a> {
    names: &'a [&'static str],
    own: &'a [ChecksummedCount],
    facts: &'a [ChecksummedCount],
    sets: &'a Sizes,
    windows: &'a [u64],
}

impl Witnesses<'_> {
    fn queries(&self) -> Ends<'_> {
        Ends {
            names: &QUERY_NAMES,
            own: &self.own.queries,
            facts: &self.facts.queries,
            sets: &self.walk.queries,
            windows: &self.counts.queries,
        }
    }

    fn issues(&self) -> Ends<'_> {
        Ends {
            names: &DELIVERY_NAMES,
            own: &self.own.issues,
            facts: &self.facts.issues,
            sets: &self.walk.issues,
            windows: &self.counts.issues.ends,
        }
    }

    fn answers(&self) -> Ends<'_> {
        Ends {
            names: &ANSWERING_NAMES,
            own: &self.own.answers,
            facts: &self.facts.answers,
            sets: &self.walk.answers,
            windows: &self.counts.answers,
        }
    }
}

impl Ends<'_> {
    /// The sum of the first `ends` of them.
    fn sum(&self, ends: usize) -> u64 {
        self.own.iter().take(ends).map(|count| count.count).sum()
    }
}

impl Equations {
    pub(super) fn queries(&mut self, sent: u64, of: &Witnesses<'_>) {
        let ends = of.queries();
        self.counts(
            "queries sent = sum of their ends",
            sent,
            ends.sum(usize::MAX),
        );
        self.ends(&ends);
        let coded = of.counts.queries_rejected.total();
        self.counts("query_rejected by code", coded, of.counts.queries[2]);
    }

    /// The windows by due against those by event.
    pub(super) fn queries_due(&mut self, due: &QueriesDue, by_event: &CommandCounts, shed: u64) {
        for (place, name) in QUERY_NAMES.iter().enumerate() {
            let name = format!("windows by due: {name}");
            self.counts(&name, due.ends[place], by_event.queries[place]);
        }
        self.counts("windows by due: queries shed", due.shed, shed);
    }

    pub(super) fn issues(&mut self, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            counts,
            ..
        } = of;
        let ends = of.issues();
        let issued = ends.sum(WITHHELD);
        let name = "issued = delivered + expired + undeliverable + unknown";
        self.counts(name, own.issued.count, issued);
        self.row(&Row::new("issued", own.issued, facts.issued));
        self.ends(&ends);
        let coded = counts.issues.undeliverable.total();
        self.counts("undeliverable by status", coded, counts.issues.ends[2]);
        let coded = counts.issues.withheld.total();
        self.counts("withheld by cause", coded, counts.issues.ends[WITHHELD]);
        let Some(scheduled) = walk.scheduled else {
            return;
        };
        let name = "commands scheduled = issued + withheld";
        self.sets(name, scheduled, ends.sum(usize::MAX), walk.unscheduled);
        let met = own.met.iter().map(|count| count.count).sum();
        let name = "commands scheduled = those that a device's side met";
        self.sets(name, scheduled, met, walk.unmet);
        for (place, (own, facts)) in own.met.iter().zip(&facts.met).enumerate() {
            let row = Row::new("presence", *own, *facts);
            let set = walk.rows[place].scheduled;
            self.row(&row.set(set).window(counts.met[place]));
        }
    }

    pub(super) fn receipts(&mut self, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            strays,
            counts,
        } = of;
        let copies = counts.received + counts.again + counts.foreign + counts.damaged;
        let received = Row::new("received", own.received, facts.received);
        for row in [
            Row::of_counts("copies at devices", own.taken, facts.taken).window(copies),
            Row::new("copies with an id", own.read, facts.read),
            Row::of_counts("copies without an id", own.damaged, facts.damaged),
            received.set(walk.received).window(counts.received),
        ] {
            self.row(&row);
        }
        let parts = walk.copies + strays.foreign + facts.damaged;
        let name = "copies = received + again + foreign + damaged";
        self.counts(name, own.taken, parts);
    }

    pub(super) fn answers(&mut self, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            counts,
            ..
        } = of;
        let ends = of.answers();
        let name = "received = one_way + answered + answers that failed";
        let received = own.received.count;
        self.sets(name, received, ends.sum(usize::MAX), walk.unanswered);
        self.row(&Row::new("replies sent", own.replied, facts.replied));
        self.ends(&ends);
        let coded = counts.answers_rejected.total();
        self.counts("answer_rejected by code", coded, counts.answers[2]);
        let coded = counts.answers_shed.total();
        self.counts("answer_shed by cause", coded, counts.answers[6]);
    }

    pub(super) fn replies(&mut self, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            strays,
            counts,
        } = of;
        let parts = walk.replies_arrived + walk.replies_lost + walk.replies_outstanding;
        let name = "answered = replies_arrived + replies_lost + replies_outstanding";
        self.counts(name, own.answers[ANSWERED].count, parts);
        let copies =
            counts.replies + counts.replies_again + counts.replies_foreign + counts.replies_damaged;
        for row in [
            Row::of_counts("replies", own.replies_taken, facts.replies_taken).window(copies),
            Row::new("replies with an id", own.replies_read, facts.replies_read),
            Row::of_counts(
                "replies without an id",
                own.replies_damaged,
                facts.replies_damaged,
            ),
        ] {
            self.row(&row);
        }
        let copies = walk.reply_copies + strays.replies_foreign + facts.replies_damaged;
        let name = "replies = first copies + again + foreign + damaged";
        self.counts(name, own.replies_taken, copies);
        self.counts("windows: first replies", counts.replies, walk.replies);
    }

    /// Counts of two sets, which differ in so many members.
    fn sets(&mut self, name: &str, left: u64, right: u64, unlike: u64) {
        self.check(name, left, right, unlike.max(left.abs_diff(right)));
    }

    fn ends(&mut self, of: &Ends<'_>) {
        for (place, name) in of.names.iter().enumerate() {
            let row = Row::new(name, of.own[place], of.facts[place]);
            let set = of.sets.ends[place];
            self.row(&row.set(set).window(of.windows[place]));
        }
        self.counts("one end each", of.sets.overlap, 0);
    }
}
