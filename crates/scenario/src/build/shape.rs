//! Schedule of a stream's messages: rate, period, shape, phase and count.

use std::sync::Arc;

use muster_load::{Phase, Record, Records, Shape, Stage};
use muster_model::{Micros, Rate};

use crate::units;
use crate::view::View;

pub(super) struct Load {
    pub(super) shape: Shape,
    pub(super) rate: Rate,
    pub(super) poisson: bool,
}

/// Two rates agree if they differ by less than what the units can be blamed for.
const SLACK: f64 = 1e-9;

/// Reads the keys of rate and shape, for a class of this number of devices.
pub(super) fn load(view: &View<'_>, devices: u32) -> Option<Load> {
    let declared = declared_rate(view, devices)?;
    let shape = view.get("shape")?;
    let kinds: Vec<&str> = shape
        .entries()
        .map(|(key, _)| key)
        .filter(|key| *key != "poisson")
        .collect();
    if let [_, second, ..] = kinds[..] {
        let help = "keep one; stages can say most of what two shapes would";
        return shape
            .get(second)?
            .refuse(format!("`{second}` is a second shape"), help);
    }
    let poisson = shape.truth("poisson").unwrap_or(false);
    let (shape, rate) = match kinds.first() {
        None => (Shape::Constant, needed(view, declared, "a constant shape")?),
        Some(&kind) => shaped(view, kind, &shape.get(kind)?, declared)?,
    };
    Some(Load {
        shape,
        rate,
        poisson,
    })
}

/// `rate`, or `every` as the rate of the class; the inner option: whether either stands.
fn declared_rate(view: &View<'_>, devices: u32) -> Option<Option<Rate>> {
    match (view.rate("rate"), view.time("every")) {
        (Some(_), Some(_)) => {
            let what = "`rate` (of the class) and `every` (of a device) say the same twice";
            view.refuse_at("every", what, "keep one of them")
        }
        (Some(rate), None) => Some(Some(rate)),
        (None, Some(every)) => {
            let rate = Rate::per_second(f64::from(devices) / every.as_secs_f64());
            Some(rate)
        }
        (None, None) => Some(None),
    }
}

fn needed(view: &View<'_>, declared: Option<Rate>, what: &str) -> Option<Rate> {
    if declared.is_none() {
        let what = format!("`{}` has no rate, which {what} needs", view.text_of("name"));
        view.wrong(
            what,
            "add `rate: 500/s` (of the class) or `every: 5s` (of a device)",
        );
    }
    declared
}

fn shaped(
    stream: &View<'_>,
    kind: &str,
    view: &View<'_>,
    declared: Option<Rate>,
) -> Option<(Shape, Rate)> {
    match kind {
        "ramp" => ramp(stream, view, declared),
        "stages" => stages(stream, declared),
        "spike" => spike(stream, view, declared),
        "sine" => sine(view, declared),
        "burst" => burst(stream, view),
        _ => replay(stream, view),
    }
}

fn ramp(stream: &View<'_>, view: &View<'_>, declared: Option<Rate>) -> Option<(Shape, Rate)> {
    let rate = match view.rate("to") {
        Some(to) => agreed(&view.get("to")?, to, declared)?,
        None => needed(stream, declared, "a ramp without `to`")?,
    };
    let shape = Shape::Ramp {
        from: view.rate("from")?,
        over: view.time("over")?,
    };
    Some((shape, rate))
}

fn stages(stream: &View<'_>, declared: Option<Rate>) -> Option<(Shape, Rate)> {
    let views = stream.get("shape")?.list("stages");
    let mut stages = Vec::new();
    for view in &views {
        let (over, hold) = (view.time("over")?, view.time("hold")?);
        if over + hold == Micros::ZERO {
            return view.refuse("this stage takes no time", "add `over` or `hold`");
        }
        stages.push(Stage {
            to: view.rate("to")?,
            over,
            hold,
        });
    }
    let Some((last, view)) = stages.last().zip(views.last()) else {
        return stream.refuse_at(
            "shape",
            "`stages` is empty",
            "such as [ { to: 500/s, hold: 60s } ]",
        );
    };
    let rate = agreed(&view.get("to")?, last.to, declared)?;
    Some((Shape::Stages(stages), rate))
}

fn spike(stream: &View<'_>, view: &View<'_>, declared: Option<Rate>) -> Option<(Shape, Rate)> {
    let rate = needed(stream, declared, "a spike")?;
    let (to, at, lasts) = (view.rate("to")?, view.time("at")?, view.time("for")?);
    if same(to, rate) {
        return view.refuse_at(
            "to",
            "a spike to the stream's own rate is none",
            "another rate",
        );
    }
    Some((Shape::Spike { to, at, lasts }, rate))
}

fn sine(view: &View<'_>, declared: Option<Rate>) -> Option<(Shape, Rate)> {
    let (from, to) = (view.rate("from")?, view.rate("to")?);
    let rate = agreed(&view.get("to")?, to, declared)?;
    Some((
        Shape::Sine {
            from,
            to,
            period: view.time("period")?,
        },
        rate,
    ))
}

fn burst(stream: &View<'_>, view: &View<'_>) -> Option<(Shape, Rate)> {
    no_rate(stream, "a burst has its own")?;
    let (n, every): (u32, Micros) = (view.whole("n")?, view.time("every")?);
    let rate = Rate::per_second(f64::from(n) / every.as_secs_f64()).unwrap_or(Rate::ZERO);
    Some((Shape::Burst { n, every }, rate))
}

fn replay(stream: &View<'_>, view: &View<'_>) -> Option<(Shape, Rate)> {
    no_rate(stream, "a replay is its own rate")?;
    let path = view.text();
    let bytes = view.file(path)?;
    let text = muster_load::text(&bytes).map_err(|error| {
        view.wrong(format!("{path}: {error}"), INSTANTS);
    });
    let instants = instants(view, text.ok()?)?;
    if instants.is_empty() {
        return view.refuse(format!("{path} holds no instant"), INSTANTS);
    }
    Some((Shape::Replay(Arc::from(instants)), Rate::ZERO))
}

const INSTANTS: &str =
    "seconds after warm-up, one a line, with a point before decimals, such as 12.5";

/// One instant a line, in seconds; further columns are passed over, and so is a first line of words.
fn instants(view: &View<'_>, text: &str) -> Option<Vec<Micros>> {
    let mut records = Records::new(text);
    let mut instants: Vec<Micros> = Vec::new();
    let mut columns = 1;
    let mut is_first = true;
    loop {
        let mut cells: Vec<String> = Vec::new();
        let record = records.next(|cell| cells.push(cell.to_owned()));
        let record = record.map_err(|error| {
            view.wrong(format!("{}: {error}", view.text()), INSTANTS);
        });
        let Some(Record { line, cells: found }) = record.ok()? else {
            return Some(instants);
        };
        let place = format!("{}:{line}", view.text());
        let cell = cells.first().map_or("", String::as_str);
        let is_header = is_first && cell.starts_with(char::is_alphabetic);
        is_first = false;
        if is_header {
            columns = found;
            continue;
        }
        if found > columns && is_decimal_comma(&cells, records.separator()) {
            let what = format!("{place}: `{}` may be one number or two", cells.join(","));
            let help = "write decimals with a point, such as 1.5; name further columns in a first line, such \
                        as `at,note`";
            return view.refuse(what, help);
        }
        let Ok(at) = units::time(&format!("{cell}s")) else {
            return view.refuse(format!("{place}: `{cell}` is no instant"), INSTANTS);
        };
        if instants.last().is_some_and(|last| *last > at) {
            let what = format!("{place}: {cell} lies before the line above");
            return view.refuse(what, "sort the file");
        }
        instants.push(at);
    }
}

/// True if the first cells read as one number with a comma in it, whatever stands behind it.
fn is_decimal_comma(cells: &[String], separator: char) -> bool {
    let is_digits = |cell: &str| !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit());
    let [whole, decimals, ..] = cells else {
        return false;
    };
    separator == ',' && is_digits(whole) && decimals.starts_with(|c: char| c.is_ascii_digit())
}

fn no_rate(stream: &View<'_>, why: &str) -> Option<()> {
    for key in ["rate", "every"] {
        if let Some(stray) = stream.get(key) {
            return stray.refuse(format!("`{key}` has no meaning here: {why}"), "remove it");
        }
    }
    Some(())
}

/// A shape's plateau, which the stream's own rate must not contradict.
fn agreed(to: &View<'_>, plateau: Rate, declared: Option<Rate>) -> Option<Rate> {
    match declared {
        Some(rate) if !same(rate, plateau) => {
            let what = format!(
                "the shape goes to {}/s, and the stream's rate is {}/s",
                plateau.get(),
                rate.get()
            );
            to.refuse(what, "make them agree, or remove one of them")
        }
        _ => Some(plateau),
    }
}

fn same(a: Rate, b: Rate) -> bool {
    (a.get() - b.get()).abs() <= SLACK * a.get().max(b.get())
}

pub(super) fn phase(view: &View<'_>) -> Phase {
    match view.text_of("phase") {
        "hash" => Phase::Hash,
        "together" => Phase::Together,
        _ => Phase::Even,
    }
}
