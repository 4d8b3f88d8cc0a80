//! The equations of the ledger of commands (docs/semantics.md#commands).

use super::close::{Sizes, Walk};
use super::{
    ANSWERED, ANSWERING_NAMES, CommandAccount, CommandCounts, DELIVERY_NAMES, QUERY_NAMES,
    QueriesDue, StreamCommands, WITHHELD,
};
use crate::Tally;
use crate::equations::Equations;

/// All who have counted the commands of one stream, each by itself.
pub(super) struct Witnesses<'a> {
    /// Backend and devices, where things happened.
    pub(super) own: &'a CommandAccount,
    /// What was told.
    pub(super) facts: &'a CommandAccount,
    /// The sets.
    pub(super) walk: &'a Walk,
    /// What is in no set.
    pub(super) strays: &'a StreamCommands,
    /// The windows.
    pub(super) counts: &'a CommandCounts,
}

impl Equations {
    pub(super) fn queries(&mut self, sent: u64, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            counts,
            ..
        } = of;
        let sum = own.queries.iter().map(|tally| tally.count).sum();
        self.counts("queries sent = sum of their ends", sent, sum);
        self.ends(
            &QUERY_NAMES,
            (&own.queries, &facts.queries),
            &walk.queries,
            &counts.queries,
        );
        let coded = counts.queries_rejected.total();
        self.counts("query_rejected by code", coded, counts.queries[2]);
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
        let ends = own.issues.iter().map(|tally| tally.count);
        let issued = ends.take(WITHHELD).sum();
        let name = "issued = delivered + expired + undeliverable + unknown";
        self.counts(name, own.issued.count, issued);
        self.tallies("issued: socket = recorded", &own.issued, &facts.issued);
        self.ends(
            &DELIVERY_NAMES,
            (&own.issues, &facts.issues),
            &walk.issues,
            &counts.issues.ends,
        );
        let coded = counts.issues.undeliverable.total();
        self.counts("undeliverable by status", coded, counts.issues.ends[2]);
        let coded = counts.issues.withheld.total();
        self.counts("withheld by cause", coded, counts.issues.ends[WITHHELD]);
        let Some(scheduled) = walk.scheduled else {
            return;
        };
        let ends = issued + own.issues[WITHHELD].count;
        let name = "commands scheduled = issued + withheld";
        self.check(
            name,
            scheduled,
            ends,
            walk.unscheduled.max(scheduled.abs_diff(ends)),
        );
        let met: u64 = own.met.iter().map(|tally| tally.count).sum();
        let name = "commands scheduled = those that a device's side met";
        self.check(
            name,
            scheduled,
            met,
            walk.unmet.max(scheduled.abs_diff(met)),
        );
        for (place, (own, facts)) in own.met.iter().zip(&facts.met).enumerate() {
            self.tallies("presence: device = recorded", own, facts);
            self.counts(
                "presence: recorded = set",
                facts.count,
                walk.rows[place].scheduled,
            );
            self.counts("windows: presence", counts.met[place], facts.count);
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
        self.counts(
            "copies at devices: socket = recorded",
            own.taken,
            facts.taken,
        );
        self.tallies(
            "copies with an id: device = recorded",
            &own.read,
            &facts.read,
        );
        self.counts(
            "copies without one: device = recorded",
            own.damaged,
            facts.damaged,
        );
        let parts = walk.copies + strays.foreign + facts.damaged;
        self.counts(
            "copies = received + again + foreign + damaged",
            own.taken,
            parts,
        );
        self.tallies(
            "received: device = recorded",
            &own.received,
            &facts.received,
        );
        self.counts(
            "received: recorded = set",
            facts.received.count,
            walk.received,
        );
        self.counts("windows: received", counts.received, walk.received);
        let copies = counts.received + counts.again + counts.foreign + counts.damaged;
        self.counts("windows: copies at devices", copies, own.taken);
    }

    pub(super) fn answers(&mut self, of: &Witnesses<'_>) {
        let Witnesses {
            own,
            facts,
            walk,
            counts,
            ..
        } = of;
        let ends = own.answers.iter().map(|tally| tally.count).sum();
        let name = "received = one_way + answered + answers that failed";
        self.check(
            name,
            own.received.count,
            ends,
            walk.unanswered.max(own.received.count.abs_diff(ends)),
        );
        self.tallies(
            "replies sent: socket = recorded",
            &own.replied,
            &facts.replied,
        );
        self.ends(
            &ANSWERING_NAMES,
            (&own.answers, &facts.answers),
            &walk.answers,
            &counts.answers,
        );
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
        self.counts(
            "replies: socket = recorded",
            own.replies_taken,
            facts.replies_taken,
        );
        self.tallies(
            "replies with an id: backend = recorded",
            &own.replies_read,
            &facts.replies_read,
        );
        self.counts(
            "replies without one: backend = recorded",
            own.replies_damaged,
            facts.replies_damaged,
        );
        let copies = walk.reply_copies + strays.replies_foreign + facts.replies_damaged;
        self.counts(
            "replies = first copies + again + foreign + damaged",
            own.replies_taken,
            copies,
        );
        self.counts("windows: replies", counts.replies, walk.replies);
        let copies =
            counts.replies + counts.replies_again + counts.replies_foreign + counts.replies_damaged;
        self.counts("windows: copies of replies", copies, own.replies_taken);
    }

    /// Each end: counted where it happened, recorded, as a set, and in the windows.
    fn ends(
        &mut self,
        names: &[&str],
        (own, facts): (&[Tally], &[Tally]),
        sizes: &Sizes,
        windows: &[u64],
    ) {
        for (place, name) in names.iter().enumerate() {
            let (own, facts) = (&own[place], &facts[place]);
            self.tallies(&format!("{name}: session = recorded"), own, facts);
            self.counts(
                &format!("{name}: recorded = set"),
                facts.count,
                sizes.ends[place],
            );
            self.counts(&format!("windows: {name}"), windows[place], facts.count);
        }
        self.counts("one end each", sizes.overlap, 0);
    }
}
