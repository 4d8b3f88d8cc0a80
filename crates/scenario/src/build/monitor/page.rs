//! Figures of a page that Prometheus would read.

use muster_plan::{PagePlan, PageSeries, Selector};

use crate::units::{self, Unreadable};
use crate::view::View;

/// Figures of one page: each is sampled and drawn.
const SERIES_MAX: usize = 32;

pub(super) fn page(view: &View<'_>) -> Option<PagePlan> {
    let url = super::plain_page(&view.get("url")?, "pages")?;
    let series = view.get("series")?;
    let limits = limits(view)?;
    let all = series.entries().map(|(name, of)| {
        let (selector, is_rate) = of.accept(selected(of.text()))?;
        let limit = limits.iter().find(|(of, _)| *of == name);
        Some(PageSeries {
            name: name.to_owned(),
            selector,
            is_rate,
            limit: limit.map(|(_, value)| *value),
        })
    });
    let all: Vec<Option<PageSeries>> = all.collect();
    let all: Vec<PageSeries> = all.into_iter().collect::<Option<_>>()?;
    match all.len() {
        0 => series.refuse("no figure is named", "such as `series: { up: up }`"),
        1..=SERIES_MAX => Some(PagePlan { url, series: all }),
        more => {
            let what = format!("{more} figures of one page are too many");
            series.refuse(what, &format!("at most {SERIES_MAX}"))
        }
    }
}

/// The limits by the names of figures that are there.
fn limits<'a>(view: &View<'a>) -> Option<Vec<(&'a str, f64)>> {
    let Some(limits) = view.get("limits") else {
        return Some(Vec::new());
    };
    let series = view.get("series")?;
    let all = limits.entries().map(|(name, of)| {
        if series.get(name).is_none() {
            let what = format!("no figure under `series` is named `{name}`");
            return of.refuse(what, "the name of a figure that is there");
        }
        Some((name, of.accept(units::quantity(of.text()))?))
    });
    all.collect::<Vec<_>>().into_iter().collect()
}

/// Reads `metric{label="value"}`, or that within `rate(...)`.
fn selected(text: &str) -> Result<(Selector, bool), Unreadable> {
    let bad = || Unreadable {
        what: format!("`{text}` selects no samples"),
        help: "such as 'name{label=\"value\", other!=\"value\"}' or 'rate(name)'".to_owned(),
    };
    let trimmed = text.trim();
    let inner = trimmed
        .strip_prefix("rate(")
        .and_then(|it| it.strip_suffix(')'));
    let selector = Selector::parse(inner.unwrap_or(trimmed)).ok_or_else(bad)?;
    Ok((selector, inner.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_samples_within_it() {
        let plain = Selector::parse("up{job=\"a\"}").unwrap();
        assert_eq!(selected("up{job=\"a\"}").unwrap(), (plain.clone(), false));
        assert_eq!(selected(" rate(up{job=\"a\"}) ").unwrap(), (plain, true));
        assert!(selected("rate(up").is_err() && selected("sum(up)").is_err());
    }
}
