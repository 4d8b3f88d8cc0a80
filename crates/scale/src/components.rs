//! Growth of a target of several components: which of them gets an instance more.

use crate::growth::{BELOW, End, HELPS, Measured, Next, Outcome, Wanted};
use crate::setting::Setting;
use crate::tries::{Judged, Tries};

/// Limits of a growth of several components.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentsSpec {
    /// The least and the most instances of each component, in their order; at least one component.
    pub limits: Vec<ComponentLimits>,
    /// The first rate of the first search.
    pub first: f64,
}

/// Limits of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComponentLimits {
    /// The first number of its instances, at least 1.
    pub least: u32,
    /// The last one.
    pub most: u32,
}

/// Instances that were added, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// The components that got an instance more, by their places.
    pub components: Vec<usize>,
    /// The instances with it.
    pub setting: Setting,
    /// Their capacity.
    pub measured: Measured,
    /// By how much the middle of its interval exceeds that of the instances before.
    pub gain: f64,
    /// True if the gain counts, so that the instances were kept; false if they were put back.
    pub has_helped: bool,
}

/// A growth of several components under way.
///
/// From the instances that were kept last, each component gets one more in turn, the one that helped last first. An
/// instance that helps is kept, and one that does not is put back. If none helps alone, all components that may grow
/// get one more together.
#[derive(Debug, Clone)]
pub struct ComponentGrowth {
    spec: ComponentsSpec,
    /// Capacities of instances that were kept.
    kept: Vec<(Setting, Measured)>,
    additions: Vec<Addition>,
    /// Number of additions to the last kept instances.
    tried: usize,
    /// The component that is tried first.
    foremost: usize,
    tries: Tries,
    end: Option<End<Setting>>,
}

impl ComponentGrowth {
    /// A growth that begins with the least of each component.
    pub fn new(spec: ComponentsSpec) -> Self {
        Self {
            spec,
            kept: Vec::new(),
            additions: Vec::new(),
            tried: 0,
            foremost: 0,
            tries: Tries::default(),
            end: None,
        }
    }

    /// The next move.
    pub fn next(&self) -> Next<Setting> {
        match &self.end {
            Some(end) => Next::End(end.clone()),
            None => Next::Measure(Wanted {
                instances: self.wanted(),
                first: self.tries.first(match self.kept.last() {
                    Some((_, last)) => last.lower * BELOW,
                    None => self.spec.first,
                }),
            }),
        }
    }

    /// Takes the outcome of the search that [`ComponentGrowth::next`] named.
    pub fn record(&mut self, outcome: &Outcome) {
        if self.end.is_some() {
            return;
        }
        match self.tries.record(outcome) {
            Judged::Found(measured) => self.advance(measured),
            Judged::Again => {}
            Judged::Not => self.end = Some(self.tries.end(self.wanted(), self.kept.is_empty())),
        }
    }

    /// The most further searches, if each is judged. Before an instance helps, one of each other component is tried and
    /// put back.
    pub fn further(&self) -> u32 {
        if self.end.is_some() {
            return 0;
        }
        let sizes = self.last_sizes();
        let limits = self.spec.limits.iter().zip(&sizes);
        let left = limits.map(|(of, size)| of.most.saturating_sub(*size));
        let open: Vec<u32> = left.filter(|left| *left > 0).collect();
        let number = open.len() as u32;
        // All stay open until each has one instance left; then they close one after the other.
        let until_last = number * (open.iter().sum::<u32>() - number);
        let most = until_last + number * (number + 1) / 2;
        most - self.tried as u32 + u32::from(self.kept.is_empty())
    }

    /// The end for want of time, with what is known of the instances under way.
    pub fn out_of_budget(&self, why: String) -> End<Setting> {
        self.tries.unclear(self.wanted(), why)
    }

    /// The capacities of instances that were kept, in order.
    pub fn kept(&self) -> &[(Setting, Measured)] {
        &self.kept
    }

    /// Every addition that was measured, in order.
    pub fn additions(&self) -> &[Addition] {
        &self.additions
    }

    fn last_sizes(&self) -> Vec<u32> {
        match self.kept.last() {
            Some((setting, _)) => setting.sizes.clone(),
            None => self.spec.limits.iter().map(|of| of.least).collect(),
        }
    }

    /// The instances of the next search.
    fn wanted(&self) -> Setting {
        let mut sizes = self.last_sizes();
        if !self.kept.is_empty() {
            self.addition()
                .iter()
                .for_each(|component| sizes[*component] += 1);
        }
        Setting::new(sizes)
    }

    /// The components that get an instance more next: each that may grow alone, then all of them; none after that.
    fn addition(&self) -> Vec<usize> {
        let sizes = self.last_sizes();
        let count = sizes.len();
        let in_turn = (0..count).map(|turn| (self.foremost + turn) % count);
        let open: Vec<usize> = in_turn
            .filter(|at| sizes[*at] < self.spec.limits[*at].most)
            .collect();
        match open.get(self.tried) {
            Some(alone) => vec![*alone],
            None if self.tried == open.len() && open.len() > 1 => open,
            None => Vec::new(),
        }
    }

    fn advance(&mut self, measured: Measured) {
        let setting = self.wanted();
        self.tries = Tries::default();
        match self.kept.last() {
            None => self.kept.push((setting, measured)),
            Some((_, before)) => {
                let components = self.addition();
                let gain = measured.middle - before.middle;
                let has_helped = gain >= self.enough(&components);
                if has_helped {
                    self.kept.push((setting.clone(), measured));
                    self.foremost = components[0];
                    self.tried = 0;
                } else {
                    self.tried += 1;
                }
                self.additions.push(Addition {
                    components,
                    setting,
                    measured,
                    gain,
                    has_helped,
                });
            }
        }
        if self.addition().is_empty() {
            self.end = Some(match self.tried {
                0 => End::AtMost,
                _ => End::NoGain {
                    since: Setting::new(self.last_sizes()),
                },
            });
        }
    }

    /// The gain that counts: a part of what each of the first instances carries. The component with most of them
    /// decides.
    fn enough(&self, components: &[usize]) -> f64 {
        let first = self.kept.first().map_or(0.0, |(_, first)| first.middle);
        let least = components.iter().map(|at| self.spec.limits[*at].least);
        first / f64::from(least.max().unwrap_or(1)) * HELPS
    }
}
