//! A matrix of settings of the target.

use std::collections::BTreeSet;

use muster_plan::{ActuatorPlan, ComponentPlan, SweepPlan, Variable};

use crate::view::View;

/// A sweep of more cells would take days.
const CELLS_MOST: usize = 200;

/// The matrix; none where the scenario has none.
pub(super) fn sweep(view: &View<'_>, components: &[ComponentPlan]) -> Option<Option<SweepPlan>> {
    let axes = view.list("sweep");
    let Some(first) = axes.first() else {
        return Some(None);
    };
    let mut sizes: Vec<Option<Vec<u32>>> = vec![None; components.len()];
    let mut environments = vec![Vec::new()];
    let mut names = BTreeSet::new();
    for axis in &axes {
        match (axis.get("instances"), axis.get("variable")) {
            (Some(_), None) => {
                let place = component_of(axis, components)?;
                if sizes[place].is_some() {
                    return axis.refuse(
                        "another axis has the instances of the same component",
                        "put all numbers into one list",
                    );
                }
                sizes[place] = Some(sizes_of(axis, &components[place])?);
            }
            (None, Some(variable)) => {
                only_commands(&variable, components)?;
                if !names.insert(variable.text()) {
                    return variable.refuse(
                        format!("another axis has the variable `{}`", variable.text()),
                        "put all values into one list",
                    );
                }
                environments = with(&environments, &values_of(axis, variable.text())?);
            }
            (Some(_), Some(_)) | (None, None) => {
                return axis.refuse(
                    "an axis has either instances or a variable",
                    "use `{ component: NAME, instances: [ 1, 2 ] }` or `{ variable: NAME, values: [ a, b ] }`",
                );
            }
        }
    }
    let sizes = sizes.into_iter().zip(components);
    let sizes: Vec<Vec<u32>> = sizes
        .map(|(sizes, of)| sizes.unwrap_or_else(|| vec![of.least]))
        .collect();
    let cells = sizes.iter().map(Vec::len).product::<usize>() * environments.len();
    if cells > CELLS_MOST {
        let what = format!("the sweep has {cells} cells, and each takes a search");
        return first.refuse(
            what,
            &format!("at most {CELLS_MOST} cells: fewer numbers or values"),
        );
    }
    Some(Some(SweepPlan {
        sizes,
        environments,
    }))
}

/// The place of the component that an axis names.
fn component_of(axis: &View<'_>, components: &[ComponentPlan]) -> Option<usize> {
    let name = axis.text_of("component");
    let place = components.iter().position(|of| of.name == name);
    if place.is_some() {
        return place;
    }
    let names: Vec<String> = components
        .iter()
        .map(|of| format!("`{}`", of.name))
        .collect();
    match axis.get("component") {
        Some(written) if components.len() == 1 && components[0].name.is_empty() => written.refuse(
            format!("there is no component `{name}`: the target has one, without a name"),
            "remove `component`",
        ),
        Some(written) => written.refuse(
            format!("there is no component `{name}`"),
            &format!("one of {}", names.join(", ")),
        ),
        None => axis.refuse(
            "the axis does not say which component it is for",
            &format!("add `component`: one of {}", names.join(", ")),
        ),
    }
}

/// The numbers of instances of an axis.
fn sizes_of(axis: &View<'_>, component: &ComponentPlan) -> Option<Vec<u32>> {
    let mut sizes = Vec::new();
    for size in axis.list("instances") {
        let number: u32 = size.text().parse().ok()?;
        if number > component.most {
            let what = format!(
                "{number} instances are above `instances.max`, which is {}",
                component.most
            );
            return size.refuse(what, "a lower number, or a higher `instances.max`");
        }
        if sizes.contains(&number) {
            return size.refuse(format!("{number} is in the list already"), "remove it");
        }
        sizes.push(number);
    }
    match sizes.is_empty() {
        true => axis.refuse("the list of `instances` is empty", "such as [ 1, 2, 4 ]"),
        false => Some(sizes),
    }
}

/// Refuses a variable where nothing would receive it.
fn only_commands(variable: &View<'_>, components: &[ComponentPlan]) -> Option<()> {
    let is_of_cluster = |of: &&ComponentPlan| matches!(of.actuator, ActuatorPlan::Kubernetes(_));
    match components.iter().find(is_of_cluster) {
        None => Some(()),
        Some(_) => variable.refuse(
            "pods of a cluster do not receive the environment of a command",
            "remove the axis, or use `kind: process` or `kind: command`",
        ),
    }
}

/// The variable with each of its values.
fn values_of(axis: &View<'_>, name: &str) -> Option<Vec<Variable>> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if !name.chars().all(is_word) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let what = format!("`{name}` is no name of a variable");
        return axis.refuse_at("variable", what, "letters, digits and `_`, such as CPUS");
    }
    let values = axis.list("values");
    let values: Vec<Variable> = values
        .iter()
        .map(|value| Variable {
            name: name.to_owned(),
            value: value.text().to_owned(),
        })
        .collect();
    let is_twice = (1..values.len()).any(|at| values[..at].contains(&values[at]));
    match (values.is_empty(), is_twice) {
        (true, _) => axis.refuse(
            "the variable has no `values`",
            "such as `values: [ \"0\", \"0-1\" ]`",
        ),
        (false, true) => axis.refuse("a value is in the list twice", "each value once"),
        (false, false) => Some(values),
    }
}

/// Each environment with each of these values.
fn with(environments: &[Vec<Variable>], values: &[Variable]) -> Vec<Vec<Variable>> {
    let all = environments.iter();
    all.flat_map(|before| {
        let with = |value: &Variable| [&before[..], std::slice::from_ref(value)].concat();
        values.iter().map(with).collect::<Vec<_>>()
    })
    .collect()
}
