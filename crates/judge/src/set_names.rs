//! Named sets of SLOs.

use serde::{Deserialize, Serialize};

/// Names of the sets of SLOs that a rule belongs to. A rule without a name belongs to all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SetNames(Vec<String>);

impl SetNames {
    /// The sets of these names; all sets if there is none.
    pub const fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Returns whether a rule belongs to all sets.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a rule belongs to the set of this name.
    pub fn contain(&self, set: &str) -> bool {
        self.is_all() || self.0.iter().any(|name| name == set)
    }

    /// Returns whether two rules belong to one set.
    pub(crate) fn share_one_with(&self, other: &Self) -> bool {
        other.is_all() || other.0.iter().any(|set| self.contain(set))
    }

    /// The scope of a rule with its sets: `run`, `meters`, `gold`, or `meters, gold`.
    pub fn place(&self, scope: &str) -> String {
        match (scope, &self.0[..]) {
            (_, []) => scope.to_owned(),
            ("run", sets) => sets.join(", "),
            (_, sets) => format!("{scope}, {}", sets.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_named_by_its_scope_and_by_the_sets_that_it_does_not_share_with_all() {
        let gold = SetNames::new(vec!["gold".to_owned()]);
        let two = SetNames::new(vec!["gold".to_owned(), "silver".to_owned()]);
        let all = SetNames::default();
        assert_eq!([all.place("run"), all.place("meters")], ["run", "meters"]);
        assert_eq!(
            [gold.place("run"), two.place("run")],
            ["gold", "gold, silver"]
        );
        assert_eq!(gold.place("meters"), "meters, gold");
    }

    #[test]
    fn a_rule_of_all_sets_shares_one_with_any() {
        let [gold, silver] = ["gold", "silver"].map(|set| SetNames::new(vec![set.to_owned()]));
        let all = SetNames::default();
        assert!(gold.share_one_with(&all) && all.share_one_with(&gold));
        assert!(gold.share_one_with(&gold) && !gold.share_one_with(&silver));
        assert!(all.contain("bronze") && !gold.contain("bronze"));
    }
}
