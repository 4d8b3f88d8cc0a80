//! One sequence of steps for several sets of service levels.

use muster_model::Micros;

use super::answer::{Next, Outcome, SearchEnd, Step, Tried};
use super::search::Search;
use super::spec::{SearchError, SearchSpec};

/// Searches for several sets of service levels, each with an answer, by one sequence of steps. Every step says
/// something to every set. The next step is asked for by the set with the widest interval.
#[derive(Debug, Clone)]
pub struct Searches {
    /// A search for each set, in the order of the sets.
    sets: Vec<Search>,
}

impl Searches {
    /// Begins a search for a number of sets.
    ///
    /// # Errors
    /// [`SearchError`] if nothing can be searched by the specification, or there is no set.
    pub fn new(spec: &SearchSpec, sets: usize) -> Result<Self, SearchError> {
        if sets == 0 {
            return Err(SearchError::NoSets);
        }
        let search = Search::new(spec.clone())?;
        Ok(Self {
            sets: vec![search; sets],
        })
    }

    /// Names the next step, the same until outcomes are recorded. None once every set has its end.
    pub fn next(&self) -> Option<Step> {
        self.asking().map(|(_, step)| step)
    }

    /// Takes the outcomes of the step that [`Searches::next`] named, in the order of the sets; a missing one is unclear.
    /// `took` and `has_recovered` are as in [`Search::record`].
    pub fn record(&mut self, outcomes: &[Outcome], took: Micros, has_recovered: bool) {
        let Some((asking, step)) = self.asking() else {
            return;
        };
        for (at, set) in self.sets.iter_mut().enumerate() {
            let outcome = outcomes.get(at).copied().unwrap_or(Outcome::Unclear);
            match at == asking {
                true => set.record(outcome, took, has_recovered),
                false => {
                    let tried = Tried {
                        step,
                        outcome,
                        decided: None,
                    };
                    set.observe(&tried, took, has_recovered);
                }
            }
        }
    }

    /// The search of each set, in their order.
    pub fn sets(&self) -> &[Search] {
        &self.sets
    }

    /// The end of each set, in their order; none while its search goes on.
    pub fn ends(&self) -> impl Iterator<Item = Option<SearchEnd>> {
        self.sets.iter().map(|set| match set.next() {
            Next::Hold(_) => None,
            Next::End(end) => Some(end),
        })
    }

    /// The set that asks for the next step: one whose step is being repeated, else the first with the widest interval.
    /// In the ramp an interval has no end.
    fn asking(&self) -> Option<(usize, Step)> {
        let asking = self.sets.iter().enumerate();
        let asking = asking.filter_map(|(at, set)| match set.next() {
            Next::Hold(step) => Some((at, set, step)),
            Next::End(_) => None,
        });
        let width = |set: &Search| match set.is_repeating() {
            true => f64::INFINITY,
            false => set.known().map_or(f64::MAX, |known| known.width()),
        };
        // Of equals the last is the greatest: in reverse order, the first set.
        let widest = asking
            .rev()
            .max_by(|(_, a, _), (_, b, _)| width(a).total_cmp(&width(b)));
        widest.map(|(at, _, step)| (at, step))
    }
}
