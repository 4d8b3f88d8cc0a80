//! The next number of instances.

use serde::{Deserialize, Serialize};

/// The first rate of a search, as a part of the capacity that fewer instances had.
const BELOW: f64 = 0.9;
/// The first rate of a search is this part of the one at which the service levels did not hold.
const RETREAT: f64 = 0.25;
/// Searches of one number of instances, at the most: an unclear one is repeated.
const TRIES: u32 = 2;
/// A gain counts if it is this part of what each of the first instances carries.
const HELPS: f64 = 0.2;
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
    fn known(&self) -> Option<Measured> {
        match self {
            Self::Unclear { known, .. } => *known,
            Self::Found(_)
            | Self::FailsAtFirst { .. }
            | Self::AtLeast { .. }
            | Self::Idle { .. } => None,
        }
    }
}

/// A search to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// The number of instances.
    pub instances: u32,
    /// The first rate.
    pub first: f64,
}

/// The next move of a growth.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Search the capacity of this number of instances.
    Measure(Wanted),
    /// Nothing: the growth is over.
    End(End),
}

/// The end of a growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum End {
    /// The last number of instances was measured.
    AtMost,
    /// The gain of each further instance does not count, by the upper end of what it can be.
    NoGain {
        /// The number of instances before these.
        since: u32,
    },
    /// The service levels hold at the highest rate that was tried.
    AtLeast {
        /// The number of instances.
        instances: u32,
        /// The rate.
        rate: f64,
        /// The reason why the generator judges no higher one, with the remedy; none if it may.
        bound: Option<String>,
    },
    /// The target could not be set to some number of instances.
    NotSet {
        /// The number of instances.
        instances: u32,
        /// The reason.
        why: String,
    },
    /// The service levels do not hold with the first number of instances, at any rate that was tried.
    FailsAtFirst {
        /// The lowest rate.
        rate: f64,
    },
    /// Some number of instances could not be judged.
    Unclear {
        /// The number of instances.
        instances: u32,
        /// The reason.
        why: String,
        /// The interval that the last of its searches to leave one left; none if nothing is known.
        known: Option<Measured>,
    },
}

/// A growth under way: the policy `muster`.
#[derive(Debug, Clone)]
pub struct Growth {
    spec: GrowthSpec,
    /// Number of instances of the next search.
    instances: u32,
    /// Outcomes of searches with that number.
    tries: Vec<Outcome>,
    found: Vec<(u32, Measured)>,
    end: Option<End>,
}

impl Growth {
    /// A growth that begins with the least number of instances.
    pub fn new(spec: GrowthSpec) -> Self {
        Self {
            instances: spec.least.max(1),
            spec,
            tries: Vec::new(),
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
        self.tries.push(outcome.clone());
        match outcome {
            Outcome::Found(measured) => self.advance(*measured),
            Outcome::AtLeast { rate, bound } => {
                self.end = Some(End::AtLeast {
                    instances: self.instances,
                    rate: *rate,
                    bound: bound.clone(),
                });
            }
            Outcome::FailsAtFirst { .. } | Outcome::Idle { .. } | Outcome::Unclear { .. } => {
                if self.tries.len() as u32 >= TRIES {
                    self.end = Some(self.without(outcome));
                }
            }
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
        End::Unclear {
            instances: self.instances,
            why,
            known: self.known(),
        }
    }

    /// The capacities so far, by the number of instances.
    pub fn found(&self) -> &[(u32, Measured)] {
        &self.found
    }

    /// The first rate: one that fewer instances carry, or far below one that these did not.
    fn first(&self) -> f64 {
        let failed = self.tries.iter().filter_map(|outcome| match outcome {
            Outcome::FailsAtFirst { rate } => Some(*rate * RETREAT),
            Outcome::Found(_)
            | Outcome::AtLeast { .. }
            | Outcome::Idle { .. }
            | Outcome::Unclear { .. } => None,
        });
        let carried = self.found.last().map(|(_, last)| last.lower * BELOW);
        failed.fold(carried.unwrap_or(self.spec.first), f64::min)
    }

    fn advance(&mut self, measured: Measured) {
        self.found.push((self.instances, measured));
        self.tries.clear();
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

    /// The interval that the last search of this number of instances to leave one left.
    fn known(&self) -> Option<Measured> {
        self.tries.iter().rev().find_map(Outcome::known)
    }

    fn without(&self, outcome: &Outcome) -> End {
        let instances = self.instances;
        match outcome {
            Outcome::FailsAtFirst { rate } if self.found.is_empty() => {
                End::FailsAtFirst { rate: *rate }
            }
            Outcome::FailsAtFirst { rate } => End::Unclear {
                instances,
                why: format!("the SLOs fail at {rate:.0}/s, which fewer instances carried"),
                known: self.known(),
            },
            Outcome::Idle { address } => End::Unclear {
                instances,
                why: format!("the instance at {address} received no load"),
                known: self.known(),
            },
            Outcome::Unclear { why, .. } => End::Unclear {
                instances,
                why: why.clone(),
                known: self.known(),
            },
            Outcome::Found(_) | Outcome::AtLeast { .. } => End::AtMost,
        }
    }
}
