//! Choice of a fault for each uplink: exact counts at positions that the seed chooses.

use muster_model::behaviour::{Amount, Behaviour};
use muster_model::{Micros, mix, unit};

/// Copies of an uplink that subscribers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Never,
    Once,
    Twice,
    /// With one bit flipped.
    Corrupted,
    /// After the next uplink of its sender and topic.
    Overtaken,
    Late(Micros),
    /// To subscribers, and not into the store.
    Unstored,
}

/// Response to the sender of an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Response {
    Accept,
    AcceptTwice,
    AcceptLate(Micros),
    /// An acknowledgement by the application that cannot be read; of a protocol, the right one.
    Garbled,
    /// An acknowledgement by the application of a message that nobody sent; of a protocol, the right
    /// one.
    Misnamed,
    /// With a code of the dialect.
    Reject(u16),
    /// No: no receiver takes it for now.
    Unavailable,
    Silence,
}

struct Spec {
    fault: Fault,
    /// The name in the scenario and in the account.
    name: &'static str,
    /// Number of the expected uplinks that get it.
    wanted: fn(&Behaviour, u64) -> u64,
    delivery: fn(&Behaviour) -> Delivery,
    /// By the code of a negative answer.
    response: fn(&Behaviour, u16) -> Response,
}

macro_rules! faults {
    ($($fault:ident $name:literal $wanted:expr, $delivery:expr, $response:expr;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Fault {
            $($fault,)*
        }

        static SPECS: &[Spec] = &[$(
            Spec {
                fault: Fault::$fault,
                name: $name,
                wanted: $wanted,
                delivery: $delivery,
                response: $response,
            },
        )*];
    };
}

faults! {
    Behave "behave" |_, _| 0, |_| Delivery::Once, |_, _| Response::Accept;
    LoseAfterAccept "lose-after-accept"
        |b, _| b.lose_after_accept.into(), |_| Delivery::Never, |_, _| Response::Accept;
    Drop "drop" |b, _| b.drop.into(), |_| Delivery::Never, |_, _| Response::Silence;
    Ignore "ignore" |b, _| b.ignore.into(), |_| Delivery::Once, |_, _| Response::Silence;
    AnswerLate "answer-late" |b, _| b.answer_late.count.into(),
        |_| Delivery::Once, |b, _| Response::AcceptLate(b.answer_late.by);
    AnswerTwice "answer-twice"
        |b, _| b.answer_twice.into(), |_| Delivery::Once, |_, _| Response::AcceptTwice;
    AnswerGarbled "answer-garbled"
        |b, _| b.answer_garbled.into(), |_| Delivery::Once, |_, _| Response::Garbled;
    AnswerUnknown "answer-unknown"
        |b, _| b.answer_unknown.into(), |_| Delivery::Once, |_, _| Response::Misnamed;
    Duplicate "duplicate"
        |b, _| b.duplicate.into(), |_| Delivery::Twice, |_, _| Response::Accept;
    Reorder "reorder" |b, _| b.reorder.into(), |_| Delivery::Overtaken, |_, _| Response::Accept;
    DeliverLate "deliver-late" |b, _| b.deliver_late.count.into(),
        |b| Delivery::Late(b.deliver_late.by), |_, _| Response::Accept;
    LoseStored "lose-stored"
        |b, _| b.lose_stored.into(), |_| Delivery::Unstored, |_, _| Response::Accept;
    Corrupt "corrupt" |b, _| b.corrupt.into(), |_| Delivery::Corrupted, |_, _| Response::Accept;
    Reject "reject" |b, expected| b.reject.map_or(0, |reject| reject.amount.of(expected)),
        |_| Delivery::Never, |_, code| Response::Reject(code);
    RejectButDeliver "reject-but-deliver" |b, _| b.reject_but_deliver.count.into(),
        |b| match b.reject_but_deliver.by {
            Micros::ZERO => Delivery::Once,
            by => Delivery::Late(by),
        },
        |_, code| Response::Reject(code);
}

impl Fault {
    /// Faults that can befall a command, by their names there.
    const OF_COMMANDS: [(Fault, &'static str); 3] = [
        (Fault::LoseAfterAccept, "lose-commands"),
        (Fault::Duplicate, "duplicate-commands"),
        (Fault::DeliverLate, "delay-commands"),
    ];

    fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    /// The name where it befell a command.
    pub(crate) fn name_of_command(self) -> &'static str {
        let named = Self::OF_COMMANDS.iter().find(|(fault, _)| *fault == self);
        named.map_or(self.name(), |(_, name)| name)
    }

    /// True if subscribers get it at once, if at all.
    pub(crate) fn is_immediate(self, behaviour: &Behaviour) -> bool {
        use Delivery::{Corrupted, Once, Twice, Unstored};
        matches!(
            self.delivery(behaviour),
            Once | Twice | Corrupted | Unstored
        )
    }

    pub(crate) fn delivery(self, behaviour: &Behaviour) -> Delivery {
        (self.spec().delivery)(behaviour)
    }

    /// `code` is that of a negative answer.
    pub(crate) fn response(self, behaviour: &Behaviour, code: u16) -> Response {
        (self.spec().response)(behaviour, code)
    }

    /// True if only the answer is wrong.
    pub(crate) const fn is_about_answer(self) -> bool {
        matches!(self, Self::Ignore | Self::AnswerLate | Self::AnswerTwice)
    }

    /// True if a second transmission of the same message must get the same treatment, so that a
    /// message that was lost or refused stays so.
    pub(crate) const fn is_lasting(self) -> bool {
        matches!(
            self,
            Self::LoseAfterAccept | Self::LoseStored | Self::Drop | Self::Reject
        )
    }
}

/// Picks faults, one uplink after the other, by sampling without replacement: at each position
/// the chance of a bad fault is bad faults left over positions left, so that all of them, and no
/// more, have been picked when the expected number of uplinks has come. (Selection sampling,
/// Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S.)
#[derive(Debug)]
pub(crate) struct FaultPicks {
    seed: u64,
    /// Chance of [`Fault::Reject`] where a share was asked for and nobody knows of how many.
    reject_chance: f64,
    /// By the order of [`SPECS`].
    left: Vec<u64>,
    positions_left: u64,
    next: u64,
}

impl FaultPicks {
    pub(crate) fn new(behaviour: &Behaviour, seed: u64, expected: u64) -> Self {
        let wanted = SPECS.iter().map(|spec| (spec.wanted)(behaviour, expected));
        let left: Vec<u64> = wanted.collect();
        let positions_left = expected.max(left.iter().sum());
        let reject_chance = match behaviour.reject.map(|reject| reject.amount) {
            Some(Amount::Share(share)) if expected == 0 => share,
            Some(Amount::Share(_) | Amount::Count(_)) | None => 0.0,
        };
        Self {
            seed,
            reject_chance,
            left,
            positions_left,
            next: 0,
        }
    }

    pub(crate) fn pick(&mut self) -> Fault {
        let position = self.next;
        self.next += 1;
        let bad: u64 = self.left.iter().sum();
        if bad == 0 {
            let is_rejected = unit(mix(self.seed, position)) < self.reject_chance;
            return match is_rejected {
                true => Fault::Reject,
                false => Fault::Behave,
            };
        }
        let draw = below(mix(self.seed, position), self.positions_left);
        self.positions_left -= 1;
        if draw < bad {
            self.take(draw)
        } else {
            Fault::Behave
        }
    }

    /// Takes the fault in which the drawn number lies when all that are left lie in a row.
    fn take(&mut self, mut draw: u64) -> Fault {
        for (left, spec) in self.left.iter_mut().zip(SPECS) {
            if draw < *left {
                *left -= 1;
                return spec.fault;
            }
            draw -= *left;
        }
        Fault::Behave
    }
}

/// A number in `[0, bound)` from a well-mixed one.
fn below(value: u64, bound: u64) -> u64 {
    ((u128::from(value) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muster_model::behaviour::{Delayed, Reject};
    use proptest::prelude::*;

    use super::*;

    fn picked(behaviour: &Behaviour, seed: u64, expected: u64, uplinks: u64) -> Vec<Fault> {
        let mut faults = FaultPicks::new(behaviour, seed, expected);
        (0..uplinks).map(|_| faults.pick()).collect()
    }

    proptest! {
        /// Once the expected uplinks have come, each fault was picked exactly as often as asked.
        #[test]
        fn counts_are_exact(
            seed: u64, lose in 0u32..40, drop in 0u32..40, late in 0u32..40, reject in 0u32..40,
            spare in 0u64..2_000,
        ) {
            let behaviour = Behaviour {
                lose_after_accept: lose,
                drop,
                answer_late: Delayed { count: late, by: Micros(1) },
                reject: Some(Reject { code: 0x97, amount: Amount::Count(reject) }),
                ..Behaviour::default()
            };
            let expected = u64::from(lose + drop + late + reject) + spare;
            let mut counts = BTreeMap::new();
            for fault in picked(&behaviour, seed, expected, expected + 50) {
                *counts.entry(fault).or_insert(0u32) += 1;
            }
            let count = |fault| counts.get(&fault).copied().unwrap_or(0);
            prop_assert_eq!(count(Fault::LoseAfterAccept), lose);
            prop_assert_eq!(count(Fault::Drop), drop);
            prop_assert_eq!(count(Fault::AnswerLate), late);
            prop_assert_eq!(count(Fault::Reject), reject);
        }
    }

    #[test]
    fn positions_are_spread_over_the_run_and_chosen_by_the_seed() {
        let behaviour = Behaviour {
            drop: 100,
            ..Behaviour::default()
        };
        let places = |seed| -> Vec<usize> {
            let faults = picked(&behaviour, seed, 100_000, 100_000);
            (0..faults.len())
                .filter(|at| faults[*at] == Fault::Drop)
                .collect()
        };
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
        let early = places(1).iter().filter(|at| **at < 50_000).count();
        assert!(
            (30..70).contains(&early),
            "{early} of 100 in the first half"
        );
    }

    #[test]
    fn a_share_of_all_rejects_all() {
        let amount = Amount::Share(1.0);
        let behaviour = Behaviour {
            reject: Some(Reject { code: 0x97, amount }),
            ..Behaviour::default()
        };
        assert!(
            picked(&behaviour, 3, 500, 500)
                .iter()
                .all(|fault| *fault == Fault::Reject)
        );
    }

    #[test]
    fn a_share_of_an_unknown_number_is_a_chance() {
        let amount = Amount::Share(0.1);
        let behaviour = Behaviour {
            reject: Some(Reject { code: 0x97, amount }),
            ..Behaviour::default()
        };
        let faults = picked(&behaviour, 3, 0, 100_000);
        let rejected = faults
            .iter()
            .filter(|fault| **fault == Fault::Reject)
            .count();
        assert!((9_600..10_400).contains(&rejected), "{rejected}");
    }
}
