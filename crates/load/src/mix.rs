//! Messages of several kinds in one stream, and rare ones among them.

use muster_model::mix;
use serde::{Deserialize, Serialize};

use crate::template::{Bounds, Scope, Template, TemplateError};

/// Keeps the choice of a kind apart from what is drawn within a message.
const KIND: u64 = 0x6d69_7800;
/// Keeps the choice of the devices that send rare messages apart from both.
const TURN: u64 = 0x7475_726e;

/// Messages of several kinds, each the source text of a template, and rare ones in their place.
///
/// The kind of a message depends on the seed and its id alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixSpec {
    /// The kinds, each with its share; the shares are taken of their sum.
    pub kinds: Vec<(u32, String)>,
    /// Payload of the rare messages.
    pub rare: Option<RareSpec>,
}

/// Messages in the place of others: exactly `count` of those with sequence numbers from `first`
/// to before `end`, evenly spread.
///
/// The k-th messages of all devices are a *round*. Each round has its part of `count`, rounded up
/// or down so that the sum over any rounds from the first on is off by less than one; which device's
/// turn they fall in is drawn anew for each round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RareSpec {
    /// The source text of their template.
    pub template: String,
    /// Number of messages if all of these rounds are sent.
    pub count: u64,
    /// The first round with rare messages,
    pub first: u32,
    /// and the first one after them.
    pub end: u32,
    /// Number of devices of the stream, at least 1; their ids are consecutive.
    pub devices: u32,
}

/// A mix ready to be rendered.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    kinds: Vec<(u32, Template)>,
    total: u64,
    rare: Option<(RareSpec, Template)>,
}

impl Mix {
    /// Compiles a mix; `None` if it has no kind or no share.
    pub(crate) fn compile(spec: &MixSpec) -> Result<Option<Self>, TemplateError> {
        let mut kinds = Vec::new();
        for (share, source) in &spec.kinds {
            kinds.push((*share, Template::parse(source)?));
        }
        let total = kinds.iter().map(|(share, _)| u64::from(*share)).sum();
        let rare = match &spec.rare {
            Some(rare) => Some((rare.clone(), Template::parse(&rare.template)?)),
            None => None,
        };
        Ok((total > 0).then_some(Self { kinds, total, rare }))
    }

    pub(crate) fn template(&self, scope: &Scope<'_>) -> &Template {
        match &self.rare {
            Some((rare, template)) if rare.is_one(scope) => template,
            Some(_) | None => self.usual(scope),
        }
    }

    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let usual = self.kinds.iter().map(|(_, template)| template);
        usual.chain(self.rare.iter().map(|(_, template)| template))
    }

    /// The least and greatest length of all of them, in bytes.
    pub(crate) fn bounds(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        let sizes = self
            .templates()
            .map(|template| template.size_bounds(bounds));
        let widest = sizes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        widest.unwrap_or_default()
    }

    fn usual(&self, scope: &Scope<'_>) -> &Template {
        let mut drawn = below(key(scope, KIND), self.total);
        for (share, template) in &self.kinds {
            match drawn.checked_sub(u64::from(*share)) {
                Some(rest) => drawn = rest,
                None => return template,
            }
        }
        &self.kinds[0].1
    }
}

impl RareSpec {
    /// Returns true for a rare message: the running sum passes a whole number there.
    fn is_one(&self, scope: &Scope<'_>) -> bool {
        let round = scope.id.seq;
        if !(self.first..self.end).contains(&round) {
            return false;
        }
        let devices = u64::from(self.devices.max(1));
        let stream = u64::from(scope.id.stream.0) << 32;
        let turn = below(mix(scope.seed ^ TURN, stream | u64::from(round)), devices);
        let place = (u64::from(scope.id.device.0) + turn) % devices;
        let number = u64::from(round - self.first) * devices + place;
        self.among(number + 1) > self.among(number)
    }

    /// Returns how many of the first `messages` are rare.
    fn among(&self, messages: u64) -> u64 {
        let all = u128::from(self.end - self.first) * u128::from(self.devices.max(1));
        (u128::from(messages) * u128::from(self.count) / all) as u64
    }
}

/// A number in `0..bound` of a well-mixed one.
fn below(value: u64, bound: u64) -> u64 {
    ((u128::from(value) * u128::from(bound)) >> 64) as u64
}

/// Everything random about one message and one decision, without the run's number.
fn key(scope: &Scope<'_>, what: u64) -> u64 {
    let id = scope.id;
    let message = mix(scope.seed, u64::from(id.device.0) << 32 | u64::from(id.seq));
    mix(message, what << 16 | u64::from(id.stream.0))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;

    fn scope(seed: u64, device: u32, seq: u32) -> Scope<'static> {
        Scope {
            seed,
            id: MessageId {
                run: RunId(1),
                device: DeviceId(device),
                stream: StreamId(2),
                seq,
            },
            due: Micros(0),
            wall_ms_at_t0: 0,
            name: "d",
            index: 0,
            tenant: "",
            columns: None,
            unique: None,
        }
    }

    fn mixed(kinds: &[(u32, &str)], rare: Option<RareSpec>) -> Mix {
        let kinds = kinds
            .iter()
            .map(|(share, text)| (*share, (*text).to_owned()));
        let kinds = kinds.collect();
        let mix = Mix::compile(&MixSpec { kinds, rare });
        mix.expect("templates").expect("shares")
    }

    fn rare(count: u64, rounds: std::ops::Range<u32>, devices: u32) -> RareSpec {
        RareSpec {
            template: "rare".to_owned(),
            count,
            first: rounds.start,
            end: rounds.end,
            devices,
        }
    }

    #[test]
    fn kinds_come_in_their_shares() {
        let mix = mixed(&[(29, "a"), (30, "b"), (40, "c"), (1, "d"), (0, "e")], None);
        let mut counts = BTreeMap::new();
        for seq in 0..1_000 {
            for device in 0..100 {
                let kind = mix.template(&scope(7, device, seq)).source().to_owned();
                *counts.entry(kind).or_insert(0.0) += 1.0;
            }
        }
        for (kind, share) in [("a", 0.29), ("b", 0.3), ("c", 0.4), ("d", 0.01)] {
            // Five standard errors of a share of 100,000.
            let bound = 5.0 * (share * (1.0 - share) / 1e5_f64).sqrt();
            assert!((counts[kind] / 1e5 - share).abs() < bound, "{counts:?}");
        }
        assert!(!counts.contains_key("e"));
    }

    #[test]
    fn the_device_of_a_rare_message_changes() {
        let mix = mixed(&[(1, "usual")], Some(rare(50, 0..50, 20)));
        let whose = (0..50).flat_map(|seq| (0..20).map(move |device| (seq, device)));
        let whose: Vec<(u32, u32)> = whose
            .filter(|(seq, device)| mix.template(&scope(1, *device, *seq)).source() == "rare")
            .collect();
        let rounds: BTreeSet<u32> = whose.iter().map(|(seq, _)| *seq).collect();
        let devices: BTreeSet<u32> = whose.iter().map(|(_, device)| *device).collect();
        assert_eq!((whose.len(), rounds.len()), (50, 50), "one each round");
        assert!(devices.len() > 10, "{devices:?}");
    }

    #[test]
    fn a_mix_without_a_share_is_none() {
        let spec = |kinds| MixSpec { kinds, rare: None };
        assert!(Mix::compile(&spec(vec![])).unwrap().is_none());
        assert!(
            Mix::compile(&spec(vec![(0, "a".to_owned())]))
                .unwrap()
                .is_none()
        );
        assert!(Mix::compile(&spec(vec![(1, "${".to_owned())])).is_err());
    }

    proptest! {
        /// Rare messages are exactly as many as asked for, none of them outside of their rounds, and
        /// after any number of rounds the sum is off by less than one.
        #[test]
        fn rare_messages_are_counted_exactly(
            seed: u64, devices in 1u32..40, first in 0u32..5, rounds in 1u32..20, share in 0.0..=1.0,
            first_device in 0u32..1_000,
        ) {
            let all = u64::from(devices) * u64::from(rounds);
            let count = (all as f64 * share) as u64;
            let mix = mixed(&[(1, "usual")], Some(rare(count, first..first + rounds, devices)));
            let mut sum = 0u64;
            for seq in 0..first + rounds + 3 {
                let ids = first_device..first_device + devices;
                let is_rare = |device: &u32| mix.template(&scope(seed, *device, seq)).source() == "rare";
                sum += ids.filter(is_rare).count() as u64;
                let sent = (seq + 1).clamp(first, first + rounds) - first;
                prop_assert_eq!(sum, u64::from(sent) * u64::from(devices) * count / all);
            }
            prop_assert_eq!(sum, count);
        }
    }
}
