//! The last samples of the target's resources.

use muster_model::{Micros, Resource};

use super::LiveUse;
use crate::usage::UsageNote;

/// A sample is shown for this time: what is older says nothing of how the target stands.
const SHOWN_FOR: Micros = Micros::from_secs(60);

/// The last sample of each resource.
#[derive(Debug, Clone, Default)]
pub(super) struct LastUsage {
    last: Vec<Last>,
}

#[derive(Debug, Clone)]
struct Last {
    resource: Resource,
    sample: Option<(Micros, f64)>,
}

impl LastUsage {
    pub(super) fn add(&mut self, note: &UsageNote) {
        match note {
            UsageNote::Resources(all) => {
                let last = all.iter().cloned().map(|resource| Last {
                    resource,
                    sample: None,
                });
                self.last = last.collect();
            }
            UsageNote::Sample(sample) => {
                let last = self.last.iter_mut().skip(usize::from(sample.first));
                for (last, value) in last.zip(&sample.values) {
                    last.sample = value.map(|value| (sample.at, value));
                }
            }
            UsageNote::Event(_) => {}
        }
    }

    /// The samples that are not too old at an instant.
    pub(super) fn at(&self, now: Micros) -> Vec<LiveUse> {
        let known = self.last.iter().filter_map(|last| {
            let (at, value) = last.sample?;
            let resource = last.resource.clone();
            (now - at <= SHOWN_FOR).then_some(LiveUse { resource, value })
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use muster_model::ResourceUnit;

    use super::*;
    use crate::usage::UsageSample;

    #[test]
    fn a_sample_is_shown_until_the_next_one_or_for_a_minute() {
        let mut last = LastUsage::default();
        let resource = |name: &str| Resource {
            entry: "broker".to_owned(),
            name: name.to_owned(),
            unit: ResourceUnit::Number,
            limit: None,
        };
        last.add(&UsageNote::Resources(vec![resource("a"), resource("b")]));
        let mut sample = |seconds, value| {
            let (at, values) = (Micros::from_secs(seconds), vec![value]);
            last.add(&UsageNote::Sample(UsageSample {
                at,
                first: 1,
                values,
            }));
            last.at(Micros::from_secs(70))
        };
        let used = sample(11, Some(7.0));
        assert_eq!((used[0].resource.name.as_str(), used[0].value), ("b", 7.0));
        assert_eq!(sample(9, Some(7.0)), []);
        assert_eq!(sample(11, None), []);
    }
}
