//! From parts and a scope to bytes, and how many those can be.

use muster_model::{STAMP_TEXT, mix, unit};

use super::instant::{DATE_TIME, date_time};
use super::json::{escape, escaped_length};
use super::number::{digits, fixed, signed, unsigned};
use super::parse::NORMAL_REACH;
use super::{Bounds, Part, Scope, Template, Variable};
use crate::random::Draws;

/// Stands where the stamp will be written.
const FILLER: [u8; STAMP_TEXT] = [b'-'; STAMP_TEXT];

impl Template {
    /// Appends the text of one message. Returns the offset in `out` of the 30 characters that the
    /// stamp is to be written over; none if the template has no stamp.
    ///
    /// A variable without a value (a column without a table) is empty. Random values depend on the
    /// seed, the device, the stream, the sequence number and the variable's place only.
    pub fn render(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Option<usize> {
        let mut stamp = None;
        for (place, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Variable {
                    variable: Variable::Stamp,
                    ..
                } => {
                    stamp = Some(out.len());
                    out.extend_from_slice(&FILLER);
                }
                Part::Variable { variable, .. } => variable.render(scope, place as u64, out),
            }
        }
        stamp
    }

    /// The least and greatest length of the text, in bytes.
    pub fn size_bounds(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        self.parts.iter().fold((0, 0), |(least, most), part| {
            let (shortest, longest) = match part {
                Part::Literal(text) => (text.len(), text.len()),
                Part::Variable { variable, .. } => variable.lengths(bounds),
            };
            (least + shortest, most + longest)
        })
    }
}

impl Variable {
    fn render(&self, scope: &Scope<'_>, place: u64, out: &mut Vec<u8>) {
        match self {
            Self::Id => out.extend_from_slice(scope.name.as_bytes()),
            Self::Index { width } => unsigned(u64::from(scope.index), *width, out),
            Self::Tenant => out.extend_from_slice(scope.tenant.as_bytes()),
            Self::Seq => unsigned(u64::from(scope.id.seq), 1, out),
            Self::DueMs => unsigned(due_us(scope) / 1_000, 1, out),
            Self::DueUs => unsigned(due_us(scope), 1, out),
            Self::DueIso => date_time(due_us(scope), out),
            Self::UniqueMs { step, offset } => unsigned(unique_ms(scope, *step, *offset), 1, out),
            Self::Stamp => out.extend_from_slice(&FILLER),
            Self::Run => unsigned(u64::from(scope.id.run.0), 1, out),
            Self::Normal {
                mean,
                deviation,
                decimals,
            } => {
                let value = mean + deviation * draws(scope, place).normal();
                fixed(scaled(value, *decimals), *decimals, out);
            }
            Self::Uniform {
                low,
                high,
                decimals,
            } => {
                let value = low + (high - low) * unit(draws(scope, place).bits());
                fixed(scaled(value, *decimals), *decimals, out);
            }
            Self::Int { low, high } => signed(whole(*low, *high, draws(scope, place).bits()), out),
            Self::Hex(length) => hex(*length, draws(scope, place), out),
            Self::Choice(choices) => {
                let bits = u128::from(draws(scope, place).bits());
                let choice = (bits * choices.len() as u128) >> 64;
                out.extend_from_slice(choices[choice as usize].as_bytes());
            }
            Self::Column(name) => {
                let cell = scope
                    .columns
                    .and_then(|row| row.get(name))
                    .unwrap_or_default();
                out.extend_from_slice(cell.as_bytes());
            }
            Self::Json(inner) => {
                let start = out.len();
                inner.render(scope, place, out);
                escape(out, start);
            }
        }
    }

    fn lengths(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        let same = |length| (length, length);
        match self {
            Self::Id => bounds.name,
            Self::Index { width } => {
                let length = |index| digits(u64::from(index)).max(usize::from(*width));
                (length(bounds.index.0), length(bounds.index.1))
            }
            Self::Tenant => same(bounds.tenant.len()),
            Self::Seq => (1, digits(u64::from(bounds.last_seq))),
            Self::DueMs => (digits(bounds.wall_ms.0), digits(bounds.wall_ms.1)),
            Self::DueUs => {
                let digits = |ms: u64| digits(ms.saturating_mul(1_000));
                (
                    digits(bounds.wall_ms.0),
                    digits(bounds.wall_ms.1.saturating_add(1)),
                )
            }
            Self::DueIso => same(DATE_TIME),
            Self::UniqueMs { .. } => (digits(bounds.wall_ms.0), digits(bounds.wall_ms.1)),
            Self::Stamp => same(STAMP_TEXT),
            Self::Run => (1, digits(u64::from(u32::MAX))),
            Self::Normal {
                mean,
                deviation,
                decimals,
            } => {
                let reach = NORMAL_REACH * deviation;
                numbers(mean - reach, mean + reach, *decimals)
            }
            Self::Uniform {
                low,
                high,
                decimals,
            } => numbers(*low, *high, *decimals),
            Self::Int { low, high } => integers(*low, *high),
            Self::Hex(length) => same(*length as usize),
            Self::Choice(choices) => choice_lengths(choices, str::len),
            Self::Column(name) => column_lengths(bounds, name, str::len),
            Self::Json(inner) => inner.json_lengths(bounds),
        }
    }

    /// The same in a string of JSON.
    fn json_lengths(&self, bounds: &Bounds<'_>) -> (usize, usize) {
        let length = |text: &str| escaped_length(text.as_bytes());
        match self {
            Self::Id => bounds.name_in_json,
            Self::Tenant => (length(bounds.tenant), length(bounds.tenant)),
            Self::Choice(choices) => choice_lengths(choices, length),
            Self::Column(name) => column_lengths(bounds, name, length),
            Self::Index { .. }
            | Self::Seq
            | Self::DueMs
            | Self::DueUs
            | Self::DueIso
            | Self::UniqueMs { .. }
            | Self::Stamp
            | Self::Run
            | Self::Normal { .. }
            | Self::Uniform { .. }
            | Self::Int { .. }
            | Self::Hex(_)
            | Self::Json(_) => self.lengths(bounds),
        }
    }
}

fn choice_lengths(choices: &[Box<str>], length: impl Fn(&str) -> usize) -> (usize, usize) {
    let lengths = || choices.iter().map(|choice| length(choice));
    (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0))
}

fn column_lengths(
    bounds: &Bounds<'_>,
    name: &str,
    length: impl Fn(&str) -> usize,
) -> (usize, usize) {
    let table = bounds.table.and_then(|table| table.lengths(name, length));
    table.unwrap_or_default()
}

/// Returns the due instant on the wall clock.
fn due_us(scope: &Scope<'_>) -> u64 {
    scope
        .wall_ms_at_t0
        .saturating_mul(1_000)
        .saturating_add(scope.due.get())
}

/// The due instant in milliseconds, moved so that no other message of the device has it.
fn unique_ms(scope: &Scope<'_>, step: u32, offset: u32) -> u64 {
    let due_us = due_us(scope);
    let tick = match scope.unique {
        Some(unique) => unique.tick(scope, due_us, step),
        None => due_us / (u64::from(step) * 1_000),
    };
    tick * u64::from(step) + u64::from(offset)
}

/// Everything random at one place of one message. The run's number is left out: a seed alone
/// reproduces the payloads.
fn draws(scope: &Scope<'_>, place: u64) -> Draws {
    let id = scope.id;
    let message = mix(scope.seed, u64::from(id.device.0) << 32 | u64::from(id.seq));
    Draws::new(message, u64::from(id.stream.0) << 32 | place)
}

fn scaled(value: f64, decimals: u8) -> i64 {
    (value * 10f64.powi(i32::from(decimals))).round() as i64
}

/// Even over `low..=high`: the upper half of a product, whose bias is below 2^-64 a value.
fn whole(low: i64, high: i64, bits: u64) -> i64 {
    let values = (i128::from(high) - i128::from(low) + 1) as u128;
    let offset = (u128::from(bits) * values) >> 64;
    (i128::from(low) + offset as i128) as i64
}

fn hex(length: u32, mut draws: Draws, out: &mut Vec<u8>) {
    let mut left = length as usize;
    while left > 0 {
        let mut bits = draws.bits();
        for _ in 0..left.min(16) {
            out.push(b"0123456789abcdef"[(bits & 15) as usize]);
            bits >>= 4;
        }
        left -= left.min(16);
    }
}

/// Least and greatest length of the whole numbers from `low` to `high`.
fn integers(low: i64, high: i64) -> (usize, usize) {
    let length = |value: i64| usize::from(value < 0) + digits(value.unsigned_abs());
    let longest = length(low).max(length(high));
    let shortest = match (low > 0, high < 0) {
        (true, _) => length(low),
        (_, true) => length(high),
        (false, false) => 1,
    };
    (shortest, longest)
}

/// Least and greatest length of fixed-point numbers from `low` to `high`.
fn numbers(low: f64, high: f64, decimals: u8) -> (usize, usize) {
    let point = usize::from(decimals) + 1;
    let length = |value: f64| {
        let scaled = scaled(value, decimals);
        let whole = scaled.unsigned_abs() / 10u64.pow(u32::from(decimals));
        usize::from(scaled < 0) + digits(whole) + point
    };
    let shortest = match (low > 0.0, high < 0.0) {
        (true, _) => length(low),
        (_, true) => length(high).min(1 + 1 + point),
        (false, false) => 1 + point,
    };
    (shortest, length(low).max(length(high)))
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;
    use crate::table::Table;

    fn id(device: u32, seq: u32) -> MessageId {
        MessageId {
            run: RunId(9),
            device: DeviceId(device),
            stream: StreamId(1),
            seq,
        }
    }

    fn scope(seed: u64, id: MessageId, due: Micros) -> Scope<'static> {
        Scope {
            seed,
            id,
            due,
            wall_ms_at_t0: 1_700_000_000_000,
            name: "meter-007",
            index: 7,
            tenant: "t1",
            columns: None,
            unique: None,
        }
    }

    fn text(source: &str, scope: &Scope<'_>) -> String {
        let mut out = Vec::new();
        Template::parse(source).unwrap().render(scope, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn check(source: &str, expected: &str) {
        assert_eq!(
            text(source, &scope(1, id(3, 41), Micros(2_500_999))),
            expected
        );
    }

    #[test]
    fn variables_are_the_message_and_its_device() {
        check(
            "a ${id} ${index} ${index:04} ${tenant} z",
            "a meter-007 7 0007 t1 z",
        );
        check(
            "${seq} ${run} ${due_ms} ${due_us}",
            "41 9 1700000002500 1700000002500999",
        );
        check("${due_iso}", "2023-11-14T22:13:22.500999Z");
        check(
            "${int:5:5}|${uniform:1.5:1.5}|${normal:-2:0}|${choice:x}",
            "5|1.500|-2.00|x",
        );
        check("${missing}", "");
        check("$${id} costs 5$ or $$ {x} $", "${id} costs 5$ or $$ {x} $");
        check("", "");
    }

    #[test]
    fn columns_are_the_cells_of_the_row() {
        let table = Table::parse("serial,site\ns1,north\ns2,south\n").unwrap();
        let scope = Scope {
            columns: table.row(1),
            ..scope(1, id(0, 0), Micros::ZERO)
        };
        assert_eq!(text("${site}/${serial}", &scope), "south/s2");
    }

    #[test]
    fn json_variables_are_escaped_and_counted() {
        let table = Table::parse("v\n\"a\"\"b\"\nlonger\n").unwrap();
        let template = Template::parse("[\"${json:v}\",\"${json:tenant}\"]").unwrap();
        let scope = Scope {
            tenant: "t\\1",
            columns: table.row(0),
            ..scope(1, id(0, 0), Micros::ZERO)
        };
        let mut out = Vec::new();
        template.render(&scope, &mut out);
        assert_eq!(out, br#"["a\"b","t\\1"]"#);
        let bounds = Bounds {
            tenant: "t\\1",
            table: Some(&table),
            ..Bounds::default()
        };
        assert_eq!(template.size_bounds(&bounds), (out.len(), out.len() + 2));
        for wrong in ["${json:stamp}", "${json:json:v}", "${json:}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_stamp_has_a_place_and_an_anchor() {
        let template = Template::parse(r#"{"n":${seq},"id":"${stamp}"}"#).unwrap();
        let mut out = b"head".to_vec();
        let at = template
            .render(&scope(1, id(0, 5), Micros::ZERO), &mut out)
            .unwrap();
        assert_eq!(at, 4 + r#"{"n":5,"id":""#.len());
        assert!(out[at..at + STAMP_TEXT].iter().all(|byte| *byte == b'-'));
        assert_eq!(out.len(), at + STAMP_TEXT + 2);
        assert_eq!(template.stamp_anchor(), Some(r#","id":""#));
        assert_eq!(
            Template::parse("${stamp}").unwrap().stamp_anchor(),
            Some("")
        );
        assert_eq!(Template::parse("${seq}").unwrap().stamp_anchor(), None);
    }

    #[test]
    fn random_values_have_their_distribution() {
        let values = |source: &str| -> Vec<f64> {
            let template = Template::parse(source).unwrap();
            let value = |seq| {
                let mut out = Vec::new();
                template.render(&scope(1, id(0, seq), Micros::ZERO), &mut out);
                String::from_utf8(out).unwrap().parse().unwrap()
            };
            (0..20_000).map(value).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let normal = values("${normal:20:3}");
        // Five standard errors: 3 / sqrt(20,000) * 5.
        assert!((mean(&normal) - 20.0).abs() < 0.106);
        let squares: Vec<f64> = normal.iter().map(|v| (v - 20.0) * (v - 20.0)).collect();
        assert!((mean(&squares) - 9.0).abs() < 0.45);
        let dice = values("${int:1:6}");
        assert!((mean(&dice) - 3.5).abs() < 0.061);
        assert!((1..=6).all(|face| dice.contains(&f64::from(face))));
        assert!((mean(&values("${uniform:-1:1}"))).abs() < 0.0205);
    }

    #[test]
    fn two_places_of_one_message_draw_apart() {
        let text = text("${hex:16} ${hex:16}", &scope(1, id(0, 0), Micros::ZERO));
        let (a, b) = text.split_once(' ').unwrap();
        assert_ne!(a, b);
    }

    fn any_template() -> impl Strategy<Value = String> {
        let number = || -1_000i32..1_000;
        let part = prop_oneof![
            "[a-z{}\":, ]{0,8}",
            prop::sample::select(vec![
                "${id}",
                "${index}",
                "${index:03}",
                "${tenant}",
                "${seq}",
                "${due_ms}",
                "${due_us}",
                "${unique_ms}",
                "${unique_ms:3:1}",
                "${run}",
                "${choice:a|bb|}",
                "${hex:7}",
                "${hex:40}",
                "${site}",
                "${int:-9223372036854775808:9223372036854775807}",
                "${uniform:-0.001:0.001}",
                "${uniform:-9.9:-0.999}",
                "${uniform:9.999:10.5}",
            ])
            .prop_map(str::to_owned),
            (number(), 0i32..50).prop_map(|(low, more)| format!("${{int:{low}:{}}}", low + more)),
            (number(), 0i32..50).prop_map(|(m, sd)| format!("${{normal:{m}:{sd}.25}}")),
        ];
        prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
    }

    proptest! {
        /// Rendering twice gives the same bytes; another run's number changes only `${run}`; and
        /// the length lies within the bounds.
        #[test]
        fn rendering_is_a_pure_function_within_bounds(
            source in any_template(), seed: u64, device: u32, seq: u32, due in 0u64..1 << 40,
        ) {
            let table = Table::parse("site\nx\nlonger\n\"\"\n").unwrap();
            let template = Template::parse(&source).unwrap();
            let scope = Scope {
                columns: table.row(device as usize % 3),
                ..scope(seed, id(device, seq), Micros(due))
            };
            let (mut once, mut twice) = (Vec::new(), vec![0; 3]);
            template.render(&scope, &mut once);
            template.render(&scope, &mut twice);
            prop_assert_eq!(&once, &twice[3..]);
            if !source.contains("${run}") {
                let other = MessageId { run: RunId(4), ..scope.id };
                let mut again = Vec::new();
                template.render(&Scope { id: other, ..scope }, &mut again);
                prop_assert_eq!(&once, &again);
            }
            let bounds = Bounds {
                name: (9, 9),
                index: (0, 10),
                tenant: "t1",
                table: Some(&table),
                ..Bounds::default()
            };
            let (least, most) = template.size_bounds(&bounds);
            prop_assert!((least..=most).contains(&once.len()), "{} {least} {most}", once.len());
        }

        /// No text makes the parser panic, and what it takes it gives back as its source.
        #[test]
        fn any_text_is_a_template_or_refused(source in "(\\$?\\$\\{[a-z_]*(:[0-9.|a-]*){0,2}\\}?|\\PC){0,6}") {
            if let Ok(template) = Template::parse(&source) {
                prop_assert_eq!(template.source(), source.as_str());
            }
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_its_place() {
        for (source, offset, what) in [
            ("ab${id", 2, "a `${` that is not closed"),
            ("${stamp}${stamp}", 8, "a second `${stamp}`"),
            ("x${idx:3}", 1, "unknown variable `idx:3`"),
            ("${}", 0, "`${}` names nothing"),
            ("${normal}", 0, "`normal` without its arguments"),
            ("${normal:1}", 0, "`1` is not two numbers"),
            ("${normal:1:x}", 0, "`x` is no plain number"),
            ("${normal:1:-1}", 0, "a standard deviation of -1"),
            ("${uniform:2:1}", 0, "`2` above `1`"),
            ("${uniform:0:1e3}", 0, "`1e3` is no plain number"),
            (
                "${uniform:0:2000000000}",
                0,
                "`0:2000000000` reaches too far",
            ),
            (
                "${uniform:0:0.123456789}",
                0,
                "`0:0.123456789` is too exact",
            ),
            ("${int:1.5:2}", 0, "`1.5:2` is not two whole numbers"),
            ("${hex:0}", 0, "`hex` of no length"),
            (
                "${unique_ms:2}",
                0,
                "`2` is not a step and an offset below it",
            ),
            (
                "${unique_ms:2:2}",
                0,
                "`2:2` is not a step and an offset below it",
            ),
            ("${index:8}", 0, "`8` is no width of an index"),
            ("${env:HOME}", 0, "`${env:HOME}` in a template"),
        ] {
            let error = Template::parse(source).unwrap_err();
            assert_eq!(
                (error.offset, error.what.as_str()),
                (offset, what),
                "{source}"
            );
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn columns_are_named_with_their_places() {
        let template = Template::parse("${id}/${site}/${serial}").unwrap();
        assert_eq!(
            template.columns().collect::<Vec<_>>(),
            [("site", 6), ("serial", 14)]
        );
        assert_eq!(template.names().next(), Some(("id", 0)));
    }
}
