//! The equations of a ledger: those that do not hold are kept, with what they add to the residue.

use crate::walk::StreamWalk;
use crate::{ArrivalFigures, Equation, Flow, Outcomes, State, StreamAccount, Tally};

/// Equations under test.
#[derive(Debug, Default)]
pub(crate) struct Equations {
    scope: String,
    pub(crate) broken: Vec<Equation>,
}

impl Equations {
    /// Equations about one stream or backend, which their names begin with.
    pub(crate) fn about(scope: String) -> Self {
        Self {
            scope,
            broken: Vec::new(),
        }
    }

    /// Both sides count the same.
    pub(crate) fn counts(&mut self, name: &str, left: u64, right: u64) {
        self.check(name, left, right, left.abs_diff(right));
    }

    /// Both sides counted the same things.
    pub(crate) fn tallies(&mut self, name: &str, left: &Tally, right: &Tally) {
        self.check(name, left.count, right.count, left.distance(right));
    }

    /// Both sides are the same but for so many things.
    pub(crate) fn check(&mut self, name: &str, left: u64, right: u64, difference: u64) {
        if difference > 0 {
            let name = format!("{}: {name}", self.scope);
            self.broken.push(Equation {
                name,
                left,
                right,
                difference,
            });
        }
    }

    /// What they add to the residue.
    pub(crate) fn residue(&self) -> u64 {
        residue(&self.broken)
    }
}

impl Equations {
    /// The schedule against the sets, and against what was sent and shed.
    pub(crate) fn schedule(
        &mut self,
        walk: &StreamWalk,
        own: &StreamAccount,
        facts: &StreamAccount,
    ) {
        let scheduled = walk.scheduled.uplink;
        self.check(
            "scheduled = union of final states",
            scheduled,
            walk.union,
            walk.unmatched,
        );
        let sizes = walk.union + walk.overlap;
        self.counts("sum of final states = their union", sizes, walk.union);
        let shed = own.state(State::Shed).count;
        self.counts("scheduled = shed + sent", scheduled, shed + own.sent.count);
        self.tallies("sent: socket = recorded", &own.sent, &facts.sent);
        let sent = State::SENT
            .iter()
            .map(|state| own.state(*state).count)
            .sum();
        self.counts("sent = sum of its final states", own.sent.count, sent);
    }

    /// Each final state: counted at the session, recorded, and as a set.
    pub(crate) fn states(&mut self, walk: &StreamWalk, own: &StreamAccount, facts: &StreamAccount) {
        for state in State::ALL {
            let (own, facts) = (own.state(state), facts.state(state));
            let size = walk.states.uplink[state.index()];
            self.tallies(&format!("{}: session = recorded", state.name()), own, facts);
            self.counts(
                &format!("{}: recorded = set", state.name()),
                facts.count,
                size,
            );
        }
    }

    /// The windows by event against what was recorded.
    pub(crate) fn windows_by_event(&mut self, flow: &Flow, facts: &StreamAccount) {
        self.counts("windows: sent", flow.sent, facts.sent.count);
        for state in State::ALL {
            let name = format!("windows by event: {}", state.name());
            self.counts(&name, flow.of(state), facts.state(state).count);
        }
    }

    /// The windows by due against the sets of the cohort.
    pub(crate) fn windows_by_due(&mut self, outcomes: &Outcomes, sizes: &[u64; State::ALL.len()]) {
        for state in State::ALL {
            let name = format!("windows by due: {}", state.name());
            self.counts(&name, outcomes.of(state), sizes[state.index()]);
        }
        let of = |state: State| sizes[state.index()];
        self.counts(
            "rejected by code",
            outcomes.rejected.total(),
            of(State::Rejected),
        );
        self.counts(
            "broken by cause",
            outcomes.broken.total(),
            of(State::Broken),
        );
        self.counts("shed by cause", outcomes.shed.total(), of(State::Shed));
    }

    /// A backend's table against the sets; the `altered` copies may bear the number of a message that was never sent.
    pub(crate) fn table(
        &mut self,
        figures: &ArrivalFigures,
        sizes: &[u64; State::ALL.len()],
        altered: u64,
    ) {
        let mut arrived = 0;
        for state in State::SENT {
            let row = figures.of(state);
            arrived += row.arrived;
            let name = format!("{} = arrived + absent + outstanding", state.name());
            self.counts(&name, sizes[state.index()], row.total());
        }
        let difference = figures.arrived.abs_diff(arrived).saturating_sub(altered);
        self.check(
            "arrived = arrived of what was sent",
            figures.arrived,
            arrived,
            difference,
        );
    }
}

/// What broken equations add to the residue.
pub(crate) fn residue(broken: &[Equation]) -> u64 {
    broken.iter().map(|equation| equation.difference).sum()
}
