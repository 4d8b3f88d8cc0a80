//! The equations of a ledger: those that do not hold are kept, with what they add to the residue.

use crate::per_device_close::StreamSums;
use crate::{ArrivalFigures, ChecksummedCount, Equation, Flow, Outcomes, State, StreamAccount};

/// Equations under test.
#[derive(Debug, Default)]
pub(crate) struct Equations {
    scope: String,
    pub(crate) broken: Vec<Equation>,
}

/// One thing as each of those has it who counted it by themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    name: &'a str,
    /// Counted where it happened.
    own: ChecksummedCount,
    /// Recorded.
    facts: ChecksummedCount,
    /// The size of its identity set; none where it has none.
    set: Option<u64>,
    /// Sum of the windows; none where they do not count it.
    window: Option<u64>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(name: &'a str, own: ChecksummedCount, facts: ChecksummedCount) -> Self {
        Self {
            name,
            own,
            facts,
            set: None,
            window: None,
        }
    }

    /// The same of things without a digest.
    pub(crate) fn of_counts(name: &'a str, own: u64, facts: u64) -> Self {
        let count = |count| ChecksummedCount { count, sum: 0 };
        Self::new(name, count(own), count(facts))
    }

    pub(crate) fn set(mut self, size: u64) -> Self {
        self.set = Some(size);
        self
    }

    pub(crate) fn window(mut self, count: u64) -> Self {
        self.window = Some(count);
        self
    }
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

    /// One thing, by everybody who counted it.
    pub(crate) fn row(&mut self, row: &Row<'_>) {
        let Row {
            name, own, facts, ..
        } = row;
        let recorded = format!("{name}: counted = recorded");
        self.check(&recorded, own.count, facts.count, own.distance(facts));
        if let Some(set) = row.set {
            self.counts(&format!("{name}: recorded = set"), facts.count, set);
        }
        if let Some(window) = row.window {
            self.counts(&format!("windows: {name}"), window, facts.count);
        }
    }

    /// Keeps an equation whose sides differ by more than nothing.
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

    /// Contribution of the broken equations to the residue.
    pub(crate) fn residue(&self) -> u64 {
        residue(&self.broken)
    }
}

impl Equations {
    /// The schedule against the sets, and against what was sent and shed.
    pub(crate) fn schedule(&mut self, sums: &StreamSums, own: &StreamAccount) {
        let scheduled = sums.scheduled.uplink;
        self.check(
            "scheduled = union of final states",
            scheduled,
            sums.union,
            sums.unmatched,
        );
        let sizes = sums.union + sums.overlap;
        self.counts("sum of final states = their union", sizes, sums.union);
        let shed = own.state(State::Shed).count;
        self.counts("scheduled = shed + sent", scheduled, shed + own.sent.count);
        let sent = State::SENT
            .iter()
            .map(|state| own.state(*state).count)
            .sum();
        self.counts("sent = sum of its final states", own.sent.count, sent);
    }

    /// Compares what was sent, and each final state, among everybody who counted them.
    pub(crate) fn states(
        &mut self,
        sums: &StreamSums,
        own: &StreamAccount,
        facts: &StreamAccount,
        flow: &Flow,
    ) {
        self.row(&Row::new("sent", own.sent, facts.sent).window(flow.sent));
        for state in State::ALL {
            let row = Row::new(state.name(), *own.state(state), *facts.state(state));
            let size = sums.states.uplink[state.index()];
            self.row(&row.set(size).window(flow.of(state)));
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
            let terms = "arrived + absent + outstanding + overwritten + outside_sample";
            let name = format!("{} = {terms}", state.name());
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

/// Contribution of broken equations to the residue.
pub(crate) fn residue(broken: &[Equation]) -> u64 {
    broken.iter().map(|equation| equation.difference).sum()
}
