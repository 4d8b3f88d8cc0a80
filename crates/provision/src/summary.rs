//! Counts of provisioned things.

use std::collections::BTreeMap;
use std::fmt;

/// Things that are named in a summary at the most; the others are counted.
const NAMED_MAX: usize = 10;

/// Counts of provisioned things by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The counts of each kind, such as `device`.
    pub kinds: BTreeMap<&'static str, Counts>,
    /// The first things that are not as they should be, each in words.
    pub wrong: Vec<String>,
}

/// Counts of one kind of thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Made now.
    pub created: u64,
    /// Existed before, with the same content.
    pub already_there: u64,
    /// Not there.
    pub missing: u64,
    /// Existed with another content.
    pub different: u64,
    /// Taken away now.
    pub removed: u64,
    /// Taken away before, by somebody else.
    pub already_gone: u64,
    /// Made again what it was before the run.
    pub restored: u64,
    /// Existed and not known to be ours: not removed.
    pub left: u64,
}

impl Summary {
    pub(crate) fn of(&mut self, kind: &'static str) -> &mut Counts {
        self.kinds.entry(kind).or_default()
    }

    /// Adds the counts of another one.
    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, counts) in &other.kinds {
            let sum = self.of(kind);
            sum.created += counts.created;
            sum.already_there += counts.already_there;
            sum.missing += counts.missing;
            sum.different += counts.different;
            sum.removed += counts.removed;
            sum.already_gone += counts.already_gone;
            sum.restored += counts.restored;
            sum.left += counts.left;
        }
        for wrong in &other.wrong {
            self.name(|| wrong.clone());
        }
    }

    /// Notes in words what is not as it should be.
    pub(crate) fn name(&mut self, wrong: impl FnOnce() -> String) {
        if self.wrong.len() < NAMED_MAX {
            self.wrong.push(wrong());
        }
    }

    /// A thing that was looked for: not there, there, or there with another content.
    pub(crate) fn looked(&mut self, kind: &'static str, name: &str, found: Option<Option<String>>) {
        match found {
            None => {
                self.of(kind).missing += 1;
                self.name(|| format!("the {kind} `{name}` is not there"));
            }
            Some(Some(how)) => {
                self.of(kind).different += 1;
                self.name(|| format!("the {kind} `{name}` differs: {how}"));
            }
            Some(None) => self.of(kind).already_there += 1,
        }
    }

    /// Counts things that are to be there now; `created` of them were made.
    pub(crate) fn ensured(&mut self, kind: &'static str, all: u64, created: u64) {
        let counts = self.of(kind);
        counts.created += created;
        counts.already_there += all.saturating_sub(created);
    }

    /// Counts things that are to be gone now; `removed` of them were taken away.
    pub(crate) fn cleared(&mut self, kind: &'static str, all: u64, removed: u64) {
        let counts = self.of(kind);
        counts.removed += removed;
        counts.already_gone += all.saturating_sub(removed);
    }

    /// A thing that stays, since it is not known to be ours.
    pub(crate) fn left(&mut self, kind: &'static str, name: &str, why: &str) {
        self.of(kind).left += 1;
        self.name(|| {
            format!("the {kind} `{name}` is left there: {why}; remove it there if it is yours")
        });
    }

    /// Returns true if the platform has everything.
    pub fn is_as_wanted(&self) -> bool {
        let mut counts = self.kinds.values();
        counts.all(|counts| counts.missing + counts.different == 0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, counts)) in self.kinds.iter().enumerate() {
            let comma = if at == 0 { "" } else { "; " };
            write!(f, "{comma}{kind}: {counts}")?;
        }
        if self.kinds.is_empty() {
            f.write_str("nothing")?;
        }
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.created, "created"),
            (self.already_there, "already there"),
            (self.missing, "missing"),
            (self.different, "different"),
            (self.removed, "removed"),
            (self.already_gone, "already gone"),
            (self.restored, "put back"),
            (self.left, "left"),
        ];
        let some = all.iter().filter(|(count, _)| *count > 0);
        let some = some.map(|(count, what)| format!("{count} {what}"));
        f.write_str(&some.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_tells_what_is_not_zero() {
        let mut summary = Summary::default();
        assert_eq!(summary.to_string(), "nothing");
        summary.of("device").created = 40;
        summary.of("device").already_there = 2;
        summary.of("capability").already_there = 1;
        let text = "capability: 1 already there; device: 40 created, 2 already there";
        assert_eq!(summary.to_string(), text);
        assert!(summary.is_as_wanted());
        summary.of("device").missing = 1;
        assert!(!summary.is_as_wanted());
    }

    #[test]
    fn what_is_wrong_is_named_up_to_a_bound() {
        let mut summary = Summary::default();
        (0..100).for_each(|n| summary.name(|| n.to_string()));
        assert_eq!(summary.wrong.len(), NAMED_MAX);
    }
}
