//! Scatter of a mean: between runs, or within one run by sections.

use super::student;

/// Numbers of sections that are tried, most first. Fewer, longer ones are less correlated.
const SECTIONS: [usize; 3] = [20, 10, 5];

/// Windows of a section at least.
const WINDOWS_MIN: usize = 2;

/// Normal quantile of a one-sided 95 % bound.
const Z_95: f64 = 1.644_853_627;

/// Standard error of a difference and its degrees of freedom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    error: f64,
    freedom: f64,
}

impl Spread {
    /// The sum of independent parts, each a variance with its degrees of freedom (Satterthwaite 1946); none
    /// if a part has no degree of freedom or nothing scatters.
    pub(super) fn new(parts: &[(f64, f64)]) -> Option<Self> {
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        let fourth = parts
            .iter()
            .map(|(variance, freedom)| variance * variance / freedom);
        let freedom = variance * variance / fourth.sum::<f64>();
        let is_known = variance > 0.0 && freedom.is_finite() && freedom > 0.0;
        is_known.then(|| Self {
            error: variance.sqrt(),
            freedom,
        })
    }

    /// Half the width of an interval that misses the truth with probability `error`.
    pub(super) fn half(self, error: f64) -> f64 {
        self.error * student::quantile(error, self.freedom)
    }

    /// Half the width that as much scatter has with `times` as many runs.
    pub(super) fn half_with(self, times: f64, error: f64) -> f64 {
        let freedom = self.freedom * times;
        self.error / times.sqrt() * student::quantile(error, freedom)
    }

    /// The two-sided probability of so large a difference by chance.
    pub(super) fn p(self, difference: f64) -> f64 {
        student::two_sided(difference / self.error, self.freedom)
    }
}

/// The variance of the mean of correlated windows and its degrees of freedom, from the means of sections
/// (batch means, Schmeiser 1982): the most sections that are not correlated with their neighbours. None
/// if the run is too short for five.
pub(super) fn variance(windows: &[f64]) -> Option<(f64, f64)> {
    let windows: Vec<f64> = windows.iter().copied().filter(|v| v.is_finite()).collect();
    let fit = |count: &&usize| windows.len() >= **count * WINDOWS_MIN;
    let mut all = SECTIONS
        .iter()
        .filter(fit)
        .map(|count| means(&windows, *count));
    let fewest = SECTIONS
        .iter()
        .rfind(fit)
        .map(|count| means(&windows, *count));
    let sections = all.find(|means| !is_correlated(means)).or(fewest)?;
    let count = sections.len() as f64;
    let mean = sections.iter().sum::<f64>() / count;
    let squares = sections.iter().map(|section| (section - mean).powi(2));
    Some((squares.sum::<f64>() / (count - 1.0) / count, count - 1.0))
}

/// The means of sections of equal length; windows that are left over come last and are left out.
fn means(windows: &[f64], count: usize) -> Vec<f64> {
    let length = windows.len() / count;
    let sections = windows.chunks_exact(length).take(count);
    sections
        .map(|section| section.iter().sum::<f64>() / length as f64)
        .collect()
}

/// True if neighbours are alike more than by chance (von Neumann 1941).
fn is_correlated(sections: &[f64]) -> bool {
    let count = sections.len() as f64;
    let mean = sections.iter().sum::<f64>() / count;
    let power: f64 = sections.iter().map(|one| (one - mean).powi(2)).sum();
    let products = sections
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() > Z_95 / count.sqrt() * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_short_a_run_has_no_sections() {
        assert_eq!(variance(&[1.0; 9]), None);
        assert!(variance(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]).is_some());
    }

    #[test]
    fn correlated_windows_count_as_fewer() {
        // A slow wave: forty windows hold far fewer values that are independent.
        let wave =
            |length: f64| -> Vec<f64> { (0..40).map(|t| (f64::from(t) / length).sin()).collect() };
        let (slow, few) = variance(&wave(8.0)).expect("sections");
        let (fast, many) = variance(&wave(0.4)).expect("sections");
        assert!(few < many, "{few} {many}");
        assert!(slow > 5.0 * fast, "{slow} {fast}");
    }

    #[test]
    fn nothing_that_scatters_has_no_spread() {
        assert!(Spread::new(&[(0.0, 2.0), (0.0, 2.0)]).is_none());
        assert!(Spread::new(&[(1.0, 0.0), (1.0, 2.0)]).is_none());
        assert!(Spread::new(&[]).is_none());
    }
}
