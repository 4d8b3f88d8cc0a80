//! The next number of instances.

use serde::{Deserialize, Serialize};

use crate::tries::{Judged, Tries};

/// The first rate of a search, as a part of the capacity that fewer instances had.
pub(crate) const BELOW: f64 = 0.9;
/// A gain counts if it is this part of what each of the first instances carries.
pub(crate) const HELPS: f64 = 0.2;
/// The growth ends after this number of gains in a row that do not count.
const IDLE_STEPS: usize = 2;

/// Limits of a growth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GrowthSpec {
    /// The first number of instances, at least 1.
    pub least: u32,
    /// The last one.
    pub most: u32,
    /// The first rate of the first search.
    pub first: f64,
}

/// An interval of rates that holds the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its lower end.
    pub lower: f64,
    /// The rate that the capacity exceeds as likely as not.
    pub middle: f64,
    /// Its upper end.
    pub upper: f64,
}

/// The outcome of a search with some number of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// The capacity was found.
    Found(Measured),
    /// The service levels do not hold at the first rate.
    FailsAtFirst {
        /// The rate.
        rate: f64,
    },
    /// The service levels hold at the highest rate that was tried.
    AtLeast {
        /// The rate.
        rate: f64,
        /// The reason why the generator judges no higher one, with the remedy; none if it may.
        bound: Option<String>,
    },
    /// Some instance received no load, so that the search does not count.
    Idle {
        /// Its address.
        address: String,
    },
    /// The search did not come to an end.
    Unclear {
        /// The reason.
        why: String,
        /// The interval that its steps leave; none if nothing is known.
        known: Option<Measured>,
    },
}

impl Outcome {
    /// Returns whether the search says anything of the capacity.
    pub fn is_judged(&self) -> bool {
        match self {
            Self::Found(_) | Self::FailsAtFirst { .. } | Self::AtLeast { .. } => true,
            Self::Idle { .. } | Self::Unclear { .. } => false,
        }
    }

    /// The interval of a search that did not come to an end.
    pub(crate) fn known(&self) -> Option<Measured> {
        match self {
            Self::Unclear { known, .. } => *known,
            Self::Found(_)
            | Self::FailsAtFirst { .. }
            | Self::AtLeast { .. }
            | Self::Idle { .. } => None,
        }
    }
}

/// A search to be made, with instances as `N` has it: a number, or a [`Setting`](crate::Setting).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<N = u32> {
    /// The instances.
    pub instances: N,
    /// The first rate.
    pub first: f64,
}

/// The next move of a growth.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<N = u32> {
    /// Search the capacity of these instances.
    Measure(Wanted<N>),
    /// Nothing: the growth is over.
    End(End<N>),
}

/// The end of a growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum End<N = u32> {
    /// All instances that there may be were measured.
    AtMost,
    /// The gain of further instances does not count.
    NoGain {
        /// The instances before these.
        since: N,
    },
    /// The service levels hold at the highest rate that was tried.
    AtLeast {
        /// The instances.
        instances: N,
        /// The rate.
        rate: f64,
        /// The reason why the generator judges no higher one, with the remedy; none if it may.
        bound: Option<String>,
    },
    /// The target could not be set to some instances.
    NotSet {
        /// The instances.
        instances: N,
        /// The reason.
        why: String,
    },
    /// The service levels do not hold with the first instances, at any rate that was tried.
    FailsAtFirst {
        /// The lowest rate.
        rate: f64,
    },
    /// Some instances could not be judged.
    Unclear {
        /// The instances.
        instances: N,
        /// The reason.
        why: String,
        /// The interval that the last of its searches to leave one left; none if nothing is known.
        known: Option<Measured>,
    },
}

impl<N> End<N> {
    /// The same end with other words for the instances.
    pub fn map<M>(self, of: impl FnOnce(N) -> M) -> End<M> {
        match self {
            Self::AtMost => End::AtMost,
            Self::NoGain { since } => End::NoGain { since: of(since) },
            Self::AtLeast {
                instances,
                rate,
                bound,
            } => End::AtLeast {
                instances: of(instances),
                rate,
                bound,
            },
            Self::NotSet { instances, why } => End::NotSet {
                instances: of(instances),
                why,
            },
            Self::FailsAtFirst { rate } => End::FailsAtFirst { rate },
            Self::Unclear {
                instances,
                why,
                known,
            } => End::Unclear {
                instances: of(instances),
                why,
                known,
            },
        }
    }
}

/// A growth under way: the policy `muster`.
#[derive(Debug, Clone)]
pub struct Growth {
    spec: GrowthSpec,
    /// Number of instances of the next search.
    instances: u32,
    tries: Tries,
    found: Vec<(u32, Measured)>,
    end: Option<End>,
}

impl Growth {
    /// A growth that begins with the least number of instances.
    pub fn new(spec: GrowthSpec) -> Self {
        Self {
            instances: spec.least.max(1),
            spec,
            tries: Tries::default(),
            found: Vec::new(),
            end: None,
        }
    }

    /// The next move.
    pub fn next(&self) -> Next {
        match &self.end {
            Some(end) => Next::End(end.clone()),
            None => Next::Measure(Wanted {
                instances: self.instances,
                first: self.first(),
            }),
        }
    }

    /// Takes the outcome of the search that [`Growth::next`] named.
    pub fn record(&mut self, outcome: &Outcome) {
        if self.end.is_some() {
            return;
        }
        match self.tries.record(outcome) {
            Judged::Found(measured) => self.advance(measured),
            Judged::Again => {}
            Judged::Not => self.end = Some(self.tries.end(self.instances, self.found.is_empty())),
        }
    }

    /// Number of further numbers of instances, the one under way included.
    pub fn further(&self) -> u32 {
        match self.end {
            Some(_) => 0,
            None => self.spec.most.max(self.instances) - self.instances + 1,
        }
    }

    /// The end for want of time, with what is known of this number of instances.
    pub fn out_of_budget(&self, why: String) -> End {
        self.tries.unclear(self.instances, why)
    }

    /// The capacities so far, by the number of instances.
    pub fn found(&self) -> &[(u32, Measured)] {
        &self.found
    }

    /// The first rate: one that fewer instances carry, or far below one that these did not.
    fn first(&self) -> f64 {
        let carried = self.found.last().map(|(_, last)| last.lower * BELOW);
        self.tries.first(carried.unwrap_or(self.spec.first))
    }

    fn advance(&mut self, measured: Measured) {
        self.found.push((self.instances, measured));
        self.tries = Tries::default();
        let has_no_gain = self.idle_gains() >= IDLE_STEPS;
        if let Some(since) = self.helped_until().filter(|_| has_no_gain) {
            self.end = Some(End::NoGain { since });
        } else if self.instances >= self.spec.most {
            self.end = Some(End::AtMost);
        } else {
            self.instances += 1;
        }
    }

    /// The last number of instances whose gain may count; none if that of the last one may.
    pub fn helped_until(&self) -> Option<u32> {
        let idle = self.idle_gains();
        let helped = self.found.len().checked_sub(idle + 1)?;
        (idle > 0).then(|| self.found[helped].0)
    }

    /// Number of the last gains in a row that do not count.
    fn idle_gains(&self) -> usize {
        let Some((first, each)) = self.found.first() else {
            return 0;
        };
        let enough = each.middle / f64::from(*first) * HELPS;
        let gains = self.found.windows(2).rev();
        let idle = gains.take_while(|pair| pair[1].1.upper - pair[0].1.lower < enough);
        idle.count()
    }
}
