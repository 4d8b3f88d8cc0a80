//! A state of a target that a search measures.

use serde::{Deserialize, Serialize};

/// Instances of each component, and the environment that they have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Numbers of instances, one for each component, in their order.
    pub sizes: Vec<u32>,
    /// The environment, by its place in a list; 0 where there is one.
    pub environment: usize,
}

impl Setting {
    /// Instances in the only environment.
    pub fn new(sizes: Vec<u32>) -> Self {
        Self {
            sizes,
            environment: 0,
        }
    }

    /// True if the environment is the same and no component has fewer instances than in `other`.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let mut pairs = self.sizes.iter().zip(&other.sizes);
        self.environment == other.environment && pairs.all(|(mine, theirs)| mine >= theirs)
    }
}
