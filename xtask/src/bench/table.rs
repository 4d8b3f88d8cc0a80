//! Figures as Markdown.

use std::io::Write;

use anyhow::Result;

/// The middle one; the mean of the two in the middle where there is none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    match values.get(low).zip(values.get(high)) {
        Some((low, high)) => f64::midpoint(*low, *high),
        None => f64::NAN,
    }
}

/// Thousands, as in `71k`.
pub(super) fn thousands(value: f64) -> String {
    format!("{:.1}k", value / 1e3)
}

/// Bytes, as in `1.4 MiB`.
pub(super) fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / 1_048_576.0)
}

/// A ratio, marked where it misses its goal.
pub(super) fn at_least(value: f64, goal: f64) -> String {
    let missed = if value < goal {
        format!(" (goal {goal})")
    } else {
        String::new()
    };
    format!("{value:.2}{missed}")
}

/// Medians of both sides, and of the ratios of the second to the first.
pub(super) fn medians(pairs: &[(f64, f64)]) -> [f64; 3] {
    [
        median(pairs.iter().map(|(first, _)| *first)),
        median(pairs.iter().map(|(_, second)| *second)),
        median(pairs.iter().map(|(first, second)| second / first)),
    ]
}

/// A heading and a table's first two lines; `|` stands between columns.
pub(super) fn begin(out: &mut dyn Write, title: &str, columns: &str) -> Result<()> {
    writeln!(out, "### {title}\n\n| {columns} |")?;
    row(out, &vec!["---"; columns.matches('|').count() + 1])
}

/// One row.
pub(super) fn row(out: &mut dyn Write, cells: &[impl AsRef<str>]) -> Result<()> {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    writeln!(out, "| {} |", cells.join(" | "))?;
    Ok(out.flush()?)
}

/// The line after a table, with what it means.
pub(super) fn end(out: &mut dyn Write, note: &str) -> Result<()> {
    Ok(writeln!(out, "\n{note}\n")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_missed_goal_is_marked() {
        assert_eq!(at_least(0.81, 0.8), "0.81");
        assert_eq!(at_least(0.79, 0.8), "0.79 (goal 0.8)");
    }

    #[test]
    fn a_table_is_markdown() -> Result<()> {
        let mut out = Vec::new();
        begin(&mut out, "T", "a | b")?;
        row(&mut out, &["1", "2"])?;
        let text = String::from_utf8(out)?;
        assert_eq!(text, "### T\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n");
        Ok(())
    }
}
