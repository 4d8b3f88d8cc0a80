//! Searches for several sets of service levels, which share their steps.

use muster_model::Micros;

use super::answer::{Next, Step};
use super::margin::Observed;
use super::search::Search;
use super::spec::{SearchError, SearchSpec};

/// Searches for several sets of service levels on one target, numbered from 0. Each step is held for one of them, and
/// counts in all that go on.
///
/// The strictest set is served first: its search expects the lowest capacity. While no set has failed,
/// their searches want the same steps. The searches that go on share the time that is left.
#[derive(Debug, Clone)]
pub struct JointSearch {
    searches: Vec<Search>,
}

/// A step, and the set that it is held for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The step.
    pub step: Step,
    /// Number of the set.
    pub set: usize,
}

impl JointSearch {
    /// Begins searches for this number of sets, at least one.
    ///
    /// # Errors
    /// [`SearchError`] if nothing can be searched by the specification.
    pub fn new(spec: &SearchSpec, sets: usize) -> Result<Self, SearchError> {
        let searches = (0..sets.max(1)).map(|_| Search::new(spec.clone()));
        let mut joint = Self {
            searches: searches.collect::<Result<_, _>>()?,
        };
        joint.share_time();
        Ok(joint)
    }

    /// Names the next step; none once all searches have ended.
    pub fn next(&self) -> Option<Turn> {
        let turns = self.open().filter_map(|set| {
            let search = &self.searches[set];
            match search.next() {
                Next::Hold(step) => Some((Turn { step, set }, Urgency::new(search, &step))),
                Next::End(_) => None,
            }
        });
        let most_urgent = turns.min_by(|(_, a), (_, b)| a.compare(b));
        most_urgent.map(|(turn, _)| turn)
    }

    /// The sets whose searches go on.
    pub fn open(&self) -> impl Iterator<Item = usize> {
        let goes_on = |set: &usize| matches!(self.searches[*set].next(), Next::Hold(_));
        (0..self.searches.len()).filter(goes_on)
    }

    /// Takes what came of a step by each set, as [`Search::replay`] does. A set without an outcome had ended its search;
    /// the time of the step passes for it.
    pub fn replay(&mut self, step: &Step, took: Micros, outcomes: &[Option<Observed>]) {
        for (search, observed) in self.searches.iter_mut().zip(outcomes) {
            match observed {
                Some(observed) => search.replay(step, observed),
                None => search.pass(took),
            }
        }
        self.share_time();
    }

    /// Notes that the target was idle, as [`Search::cool`] does.
    pub fn cool(&mut self) {
        self.searches.iter_mut().for_each(Search::cool);
    }

    /// The searches, in the order of the sets.
    pub fn searches(&self) -> &[Search] {
        &self.searches
    }

    /// The length of the parts of a step whose figures are counted apart.
    pub fn batch(&self, step: &Step) -> Micros {
        self.searches[0].batch(step)
    }

    /// The time of the budget that is left.
    pub fn left(&self) -> Micros {
        self.searches[0].left()
    }

    fn share_time(&mut self) {
        let open = self.open().count().max(1);
        for search in &mut self.searches {
            search.share_time(open);
        }
    }
}

/// The place of a search among those that go on.
#[derive(Debug, Clone, Copy)]
struct Urgency {
    /// True if its last step has to be held again: a step between would be taken for a repetition.
    is_repeating: bool,
    /// The rate that its capacity is close to; in the ramp the next one.
    near: f64,
}

impl Urgency {
    fn new(search: &Search, next: &Step) -> Self {
        Self {
            is_repeating: search.is_repeating(),
            near: search.known().map_or(next.rate, |known| known.middle),
        }
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let repeating_first = other.is_repeating.cmp(&self.is_repeating);
        repeating_first.then(self.near.total_cmp(&other.near))
    }
}
