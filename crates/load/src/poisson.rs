//! A Poisson process of unit rate whose n-th arrival can be asked for in any order.
//!
//! The arrival of index `BLOCK * 2^k` is a sum of independent gammas (the *spine*), each doubling
//! the last. Between two arrivals of known instant that are `2h` apart in index, the one in the
//! middle lies at a symmetric Beta(h, h) of the way; within a block the gaps are exponentials
//! scaled to the block's length. Both are the exact conditional laws of the process (Devroye 1986,
//! chapters V and VI), so what comes out is a Poisson process and no approximation. Every draw is
//! keyed by its place in this tree: nothing is stored but the spine, one number per doubling.

use std::fmt;

use crate::profile::UNITS;
use crate::random::Draws;

/// Arrivals in a block: a block's exponentials cost about as much as the tree above it.
const BLOCK: usize = 64;
/// Deepest tree: 2^46 blocks are more arrivals than a schedule may hold.
const MAX_DEPTH: usize = 46;

/// The part of the process that one schedule needs.
#[derive(Debug, Clone)]
pub(crate) struct Poisson {
    seed: u64,
    spine: Vec<f64>,
}

/// The arrivals of `2^level` blocks from `first` on: those after `from`, the last one at `to`.
#[derive(Debug, Clone, Copy)]
struct Node {
    first: u64,
    level: u32,
    from: f64,
    to: f64,
}

impl Poisson {
    /// A process that reaches beyond `units` of position.
    pub(crate) fn new(seed: u64, units: u64) -> Self {
        let mut end = Draws::new(seed, 0).gamma(BLOCK as f64);
        let mut spine = vec![end];
        while position(end) <= units && spine.len() < MAX_DEPTH {
            let arrivals = BLOCK as f64 * (1u64 << (spine.len() - 1)) as f64;
            end += Draws::new(seed, spine.len() as u64).gamma(arrivals);
            spine.push(end);
        }
        Self { seed, spine }
    }

    /// The position of arrival `n` in units; none if it lies beyond the spine.
    pub(crate) fn arrival(&self, n: u64) -> Option<u64> {
        let node = self.descend(n / BLOCK as u64)?;
        Some(self.leaf(node)[(n % BLOCK as u64) as usize])
    }

    /// The number of arrivals before position `units`, which the process reaches.
    pub(crate) fn count_before(&self, units: u64) -> u64 {
        let passed = self.spine.partition_point(|end| position(*end) < units);
        let first = if passed == 0 { 0 } else { 1u64 << (passed - 1) };
        let Some(mut node) = self.root(first) else {
            return first * BLOCK as u64;
        };
        while node.level > 0 {
            let (left, right) = self.halves(node);
            node = if position(left.to) < units {
                right
            } else {
                left
            };
        }
        let within = self.leaf(node).partition_point(|arrival| *arrival < units);
        node.first * BLOCK as u64 + within as u64
    }

    /// The node of the spine that holds `block`.
    fn root(&self, block: u64) -> Option<Node> {
        let place = (u64::BITS - block.leading_zeros()) as usize;
        let to = *self.spine.get(place)?;
        Some(match place {
            0 => Node {
                first: 0,
                level: 0,
                from: 0.0,
                to,
            },
            _ => Node {
                first: 1 << (place - 1),
                level: place as u32 - 1,
                from: self.spine[place - 1],
                to,
            },
        })
    }

    /// The node of `block` alone.
    fn descend(&self, block: u64) -> Option<Node> {
        let mut node = self.root(block)?;
        while node.level > 0 {
            let (left, right) = self.halves(node);
            node = if block < right.first { left } else { right };
        }
        Some(node)
    }

    fn halves(&self, node: Node) -> (Node, Node) {
        let level = node.level - 1;
        let arrivals = BLOCK as f64 * (1u64 << level) as f64;
        let mut draws = self.draws(node);
        let (before, after) = (draws.gamma(arrivals), draws.gamma(arrivals));
        let middle = node.from + (node.to - node.from) * (before / (before + after));
        let middle = middle.min(node.to);
        let right = node.first + (1 << level);
        (
            Node {
                level,
                to: middle,
                ..node
            },
            Node {
                level,
                first: right,
                from: middle,
                to: node.to,
            },
        )
    }

    /// The positions of a block's arrivals.
    fn leaf(&self, node: Node) -> [u64; BLOCK] {
        let mut draws = self.draws(node);
        let mut sums = [0.0; BLOCK];
        let mut sum = 0.0;
        for place in &mut sums {
            sum += draws.exponential();
            *place = sum;
        }
        let scale = (node.to - node.from) / sum;
        sums.map(|sum| position((node.from + sum * scale).min(node.to)))
    }

    fn draws(&self, node: Node) -> Draws {
        Draws::new(self.seed, (u64::from(node.level) + 1) << 48 | node.first)
    }
}

/// Arrivals in ascending order, each tree node and each block drawn once.
#[derive(Clone)]
pub(crate) struct Walk {
    path: Vec<Node>,
    block: Option<u64>,
    leaf: [u64; BLOCK],
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk")
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

impl Walk {
    pub(crate) fn new() -> Self {
        Self {
            path: Vec::with_capacity(MAX_DEPTH),
            block: None,
            leaf: [0; BLOCK],
        }
    }

    /// The same as [`Poisson::arrival`], in amortised constant time if `n` never falls.
    pub(crate) fn arrival(&mut self, poisson: &Poisson, n: u64) -> Option<u64> {
        let block = n / BLOCK as u64;
        if self.block != Some(block) {
            self.descend(poisson, block)?;
        }
        Some(self.leaf[(n % BLOCK as u64) as usize])
    }

    /// The path holds right halves still to come, the nearest last.
    fn descend(&mut self, poisson: &Poisson, block: u64) -> Option<()> {
        let mut node = loop {
            match self.path.pop() {
                Some(node) if block < node.first => {
                    self.path.clear();
                }
                Some(node) if block - node.first < 1 << node.level => break node,
                Some(_) => {}
                None => break poisson.root(block)?,
            }
        };
        while node.level > 0 {
            let (left, right) = poisson.halves(node);
            if block < right.first {
                self.path.push(right);
                node = left;
            } else {
                node = right;
            }
        }
        self.leaf = poisson.leaf(node);
        self.block = Some(block);
        Some(())
    }
}

/// Blocks lately asked for, so that questions that are nearly in order draw each block once.
#[derive(Clone)]
pub(crate) struct Recent {
    blocks: [Option<u64>; RECENT],
    leaves: [[u64; BLOCK]; RECENT],
}

/// Blocks kept: at 20,000 messages a second 1,024 arrivals are 50 ms of reordering.
const RECENT: usize = 16;

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent")
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self {
            blocks: [None; RECENT],
            leaves: [[0; BLOCK]; RECENT],
        }
    }

    /// The same as [`Poisson::arrival`].
    pub(crate) fn arrival(&mut self, poisson: &Poisson, n: u64) -> Option<u64> {
        let block = n / BLOCK as u64;
        let place = (block % RECENT as u64) as usize;
        if self.blocks[place] != Some(block) {
            self.leaves[place] = poisson.leaf(poisson.descend(block)?);
            self.blocks[place] = Some(block);
        }
        Some(self.leaves[place][(n % BLOCK as u64) as usize])
    }
}

/// A position in whole units; monotone, since rounding down is.
fn position(arrivals: f64) -> u64 {
    (arrivals * UNITS as f64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MESSAGES: u64 = 200_000;

    fn process(seed: u64) -> Poisson {
        Poisson::new(seed, MESSAGES * UNITS)
    }

    fn arrivals(seed: u64) -> Vec<f64> {
        let (process, mut walk) = (process(seed), Walk::new());
        (0..)
            .map_while(|n| walk.arrival(&process, n))
            .map(|units| units as f64 / UNITS as f64)
            .take_while(|arrival| *arrival < MESSAGES as f64)
            .collect()
    }

    /// The index of dispersion of counts in windows of `length`, standardised: for a Poisson
    /// process (n - 1) * variance / mean is chi-squared with n - 1 degrees of freedom, which for
    /// hundreds of windows is normal. Beyond 3.89 lies 0.01 % of true processes.
    fn dispersion(arrivals: &[f64], length: f64) -> f64 {
        let windows = (MESSAGES as f64 / length) as usize;
        let mut counts = vec![0.0; windows];
        for arrival in arrivals {
            if let Some(count) = counts.get_mut((arrival / length) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / windows as f64;
        let squares: f64 = counts.iter().map(|c| (c - mean) * (c - mean)).sum();
        let freedom = windows as f64 - 1.0;
        (squares / mean - freedom) / (2.0 * freedom).sqrt()
    }

    /// Four seeds at six scales from a tenth of a message to 512 (below, at and above a block):
    /// 24 tests at 0.01 % each, so a true process fails here in 0.24 % of all choices of seeds.
    #[test]
    fn counts_are_dispersed_as_poisson_at_every_scale() {
        for seed in 1..=4 {
            let arrivals = arrivals(seed);
            for length in [0.1, 1.0, 8.0, 64.0, 128.0, 512.0] {
                let z = dispersion(&arrivals, length);
                assert!(z.abs() < 3.89, "seed {seed}, windows of {length}: {z}");
            }
        }
    }

    /// Kolmogorov-Smirnov of the gaps against the exponential: sqrt(n) D beyond 2.23 has
    /// probability 2 exp(-2 * 2.23^2) = 0.01 % for a true process; four seeds, 0.04 %.
    #[test]
    fn gaps_are_exponential() {
        for seed in 1..=4 {
            let arrivals = arrivals(seed);
            let mut gaps: Vec<f64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps.iter().enumerate().fold(0.0f64, |worst, (i, gap)| {
                let law = 1.0 - (-gap).exp();
                worst
                    .max((law - i as f64 / n).abs())
                    .max(((i + 1) as f64 / n - law).abs())
            });
            assert!(
                distance * n.sqrt() < 2.23,
                "seed {seed}: {}",
                distance * n.sqrt()
            );
        }
    }

    /// Neighbouring gaps are independent: their correlation times sqrt(n) is standard normal, also
    /// at the distance of a block and across block borders. 12 tests at 0.01 %.
    #[test]
    fn gaps_are_independent() {
        for seed in 1..=4 {
            let arrivals = arrivals(seed);
            let gaps: Vec<f64> = arrivals
                .windows(2)
                .map(|pair| pair[1] - pair[0] - 1.0)
                .collect();
            for lag in [1, 2, BLOCK] {
                let pairs = gaps.iter().zip(&gaps[lag..]);
                let z = pairs.map(|(a, b)| a * b).sum::<f64>() / (gaps.len() as f64).sqrt();
                assert!(z.abs() < 3.89, "seed {seed}, lag {lag}: {z}");
            }
        }
    }

    /// Over many seeds the count in a fixed span has the mean and variance of the span: 400 counts,
    /// mean within 3.89 standard errors, dispersion within 3.89.
    #[test]
    fn totals_over_seeds_are_poisson() {
        let span = 1_000.0;
        let counts: Vec<f64> = (0..400)
            .map(|seed| Poisson::new(seed, 2_000 * UNITS).count_before(1_000 * UNITS) as f64)
            .collect();
        let mean = counts.iter().sum::<f64>() / 400.0;
        assert!(
            ((mean - span) / (span / 400.0f64).sqrt()).abs() < 3.89,
            "{mean}"
        );
        let squares: f64 = counts.iter().map(|c| (c - span) * (c - span)).sum();
        let z = (squares / span - 400.0) / 800.0f64.sqrt();
        assert!(z.abs() < 3.89, "{z}");
    }

    proptest! {
        /// A walk in any ascending steps gives what random access gives.
        #[test]
        fn walking_is_asking(seed: u64, steps in proptest::collection::vec(0u64..300, 1..200)) {
            let (process, mut walk) = (process(seed), Walk::new());
            let mut n = 0;
            for step in steps {
                n += step;
                prop_assert_eq!(walk.arrival(&process, n), process.arrival(n));
            }
        }

        /// Questions in any order have the answers of random access.
        #[test]
        fn recalling_is_asking(seed: u64, questions in prop::collection::vec(0u64..4_000, 1..200)) {
            let (process, mut recent) = (process(seed), Recent::new());
            for n in questions {
                prop_assert_eq!(recent.arrival(&process, n), process.arrival(n));
            }
        }

        /// count_before(arrival(n)) <= n < count_before(arrival(n) + 1), and arrivals never fall.
        #[test]
        fn counting_inverts_arriving(seed: u64, n in 0..MESSAGES / 2) {
            let process = process(seed);
            let here = process.arrival(n).unwrap();
            prop_assert!(process.count_before(here) <= n);
            prop_assert!(n < process.count_before(here + 1));
            prop_assert!(here <= process.arrival(n + 1).unwrap());
        }
    }
}
