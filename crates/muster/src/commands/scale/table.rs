//! The capacities of a growth as a table.

use super::answer::Capacity;
use super::log::Basis;

/// The capacities as comma-separated values: a column for each component and each variable, then the figures.
pub(super) fn csv(basis: &Basis, capacities: &[Capacity]) -> String {
    let names = basis.components.iter().map(|of| match &of.name[..] {
        "" => "instances".to_owned(),
        name => name.to_owned(),
    });
    let environments = basis.sweep.as_ref().map(|sweep| &sweep.environments[..]);
    let environments = environments.unwrap_or_default();
    let variables = environments.first().into_iter().flatten();
    let mut heading: Vec<String> = names.collect();
    heading.extend(variables.map(|variable| cell(&variable.name)));
    heading.extend(FIGURES.map(str::to_owned));
    let rows = capacities.iter().map(|of| {
        let mut row: Vec<String> = of.setting.sizes.iter().map(u32::to_string).collect();
        let environment = environments.get(of.setting.environment);
        row.extend(
            environment
                .into_iter()
                .flatten()
                .map(|variable| cell(&variable.value)),
        );
        let addition = of.addition.as_ref();
        row.extend([
            of.certified_per_s.to_string(),
            of.interval.middle.to_string(),
            of.interval.upper.to_string(),
            known(of.per_instance),
            known(of.price_per_million),
            addition.map_or_else(String::new, |added| added.components.join(" ")),
            known(addition.map(|added| added.gain_per_s)),
            addition.map_or_else(String::new, |added| added.has_helped.to_string()),
        ]);
        row
    });
    let lines = std::iter::once(heading).chain(rows);
    lines.map(|line| line.join(",") + "\n").collect()
}

/// Columns behind those of the setting.
const FIGURES: [&str; 8] = [
    "certified_per_s",
    "middle_per_s",
    "upper_per_s",
    "per_instance",
    "price_per_million",
    "added",
    "gain_per_s",
    "has_helped",
];

fn known(figure: Option<f64>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

/// A text as a cell: in quotes if it has to be.
fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
