//! Sums of counters, field by field: windows, accounts and ledgers of several parts of a run.

use std::collections::BTreeMap;

use muster_model::Micros;

use crate::{Equation, LostOf, SubscriberRow};

/// A value that adds up over streams, shards and processes. The order of parts makes no difference,
/// except in lists of findings.
pub(crate) trait Merge {
    /// Adds the part of another.
    fn merge(&mut self, other: &Self);
}

/// Implements the sum of a type by the sums of its fields. A list that misses a field does not compile.
macro_rules! merge_fields {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        impl $name {
            /// Adds what `other` counted.
            pub fn merge(&mut self, other: &Self) {
                let Self { $($field),+ } = other;
                $($crate::merge::Merge::merge(&mut self.$field, $field);)+
            }
        }

        impl $crate::merge::Merge for $name {
            fn merge(&mut self, other: &Self) {
                Self::merge(self, other);
            }
        }
    )+};
}

pub(crate) use merge_fields;

/// Sums the values whose keys are wanted.
pub(crate) fn sum_of<'a, K: 'a, V: Merge + Default + 'a>(
    values: impl IntoIterator<Item = (K, &'a V)>,
    is_wanted: impl Fn(&K) -> bool,
) -> V {
    let mut sum = V::default();
    for (_, value) in values.into_iter().filter(|(key, _)| is_wanted(key)) {
        sum.merge(value);
    }
    sum
}

impl Merge for u64 {
    fn merge(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
}

impl Merge for bool {
    fn merge(&mut self, other: &Self) {
        *self |= other;
    }
}

/// The later instant, or the longer time.
impl Merge for Micros {
    fn merge(&mut self, other: &Self) {
        *self = (*self).max(*other);
    }
}

/// A figure that is null on one side is the other's.
impl<T: Merge + Clone> Merge for Option<T> {
    fn merge(&mut self, other: &Self) {
        match (self, other) {
            (_, None) => {}
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, Some(_)) => mine.clone_from(other),
        }
    }
}

impl<T: Merge, const N: usize> Merge for [T; N] {
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.iter_mut().zip(other) {
            mine.merge(theirs);
        }
    }
}

/// Place by place; the shorter side counts as zero.
impl<T: Merge + Default> Merge for Vec<T> {
    fn merge(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize_with(other.len(), T::default);
        }
        for (mine, theirs) in self.iter_mut().zip(other) {
            mine.merge(theirs);
        }
    }
}

impl<K: Ord + Clone, V: Merge + Default> Merge for BTreeMap<K, V> {
    fn merge(&mut self, other: &Self) {
        for (key, value) in other {
            self.entry(key.clone()).or_default().merge(value);
        }
    }
}

macro_rules! append_findings {
    ($($finding:ty),+) => {$(
        impl Merge for Vec<$finding> {
            fn merge(&mut self, other: &Self) {
                self.extend(other.iter().cloned());
            }
        }
    )+};
}

append_findings!(Equation, LostOf, SubscriberRow);
