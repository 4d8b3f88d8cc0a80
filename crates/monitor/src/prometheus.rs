//! The text format of samples that Prometheus and its like read: one a line
//! (`name{label="value"} 1`), and comments.
//!
//! Other lines are passed over, since a page holds much that nobody here asks for.

use muster_plan::quoted_label;

/// One sample of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: &'a str,
    labels: &'a str,
    /// Its value; may be infinite or no number.
    pub value: f64,
}

impl Sample<'_> {
    /// The value of a label, if the sample has it.
    pub fn label(&self, wanted: &str) -> Option<String> {
        let mut rest = self.labels;
        loop {
            let (name, after) = rest.split_once('=')?;
            let (value, after) = quoted_label(after.trim_start())?;
            let name = name.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
            if name.trim_end() == wanted {
                return Some(value);
            }
            rest = after;
        }
    }

    /// The value as a count; none if it is none, or too large to be exact.
    pub fn count(&self) -> Option<u64> {
        /// From here on not every whole number can be represented (2^53).
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let is_count = self.value >= 0.0 && self.value < EXACT && self.value.fract() == 0.0;
        is_count.then_some(self.value as u64)
    }
}

/// The samples of a page, in its order.
pub fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim_ascii();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let end = line.find(|c| !is_name(c)).unwrap_or(line.len());
    let (name, rest) = line
        .split_at_checked(end)
        .filter(|(name, _)| !name.is_empty())?;
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => {
            let (labels, rest) = rest.split_at_checked(end_of_labels(rest)?)?;
            (labels, rest.strip_prefix('}')?)
        }
        None => ("", rest),
    };
    // A time stamp may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// Finds the brace that ends the labels, skipping quoted values.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = r#"# HELP hono_x A text with {braces} and "quotes" 7
# TYPE hono_x summary
hono_x_count{tenant="t1",type="telemetry", status = "forwarded" ,} 18500.0 1700000000000
hono_x_count{tenant="a\"}b\\\nc",type="event"} 2
up 1

process_start_time_seconds 1.7E9
hono_x_max{tenant="t1"} NaN
hono_x_sum +Inf
no value
{tenant="t1"} 3
torn{tenant="t1
"#;

    #[test]
    fn a_page_is_read_line_by_line() {
        let names: Vec<(&str, Option<u64>)> = samples(PAGE)
            .map(|sample| (sample.name, sample.count()))
            .collect();
        let wanted = [
            ("hono_x_count", Some(18_500)),
            ("hono_x_count", Some(2)),
            ("up", Some(1)),
            ("process_start_time_seconds", Some(1_700_000_000)),
            ("hono_x_max", None),
            ("hono_x_sum", None),
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn labels_are_found_by_their_names() {
        let all: Vec<Sample<'_>> = samples(PAGE).collect();
        let label = |at: usize, name| all[at].label(name);
        assert_eq!(label(0, "status").as_deref(), Some("forwarded"));
        assert_eq!(label(0, "type").as_deref(), Some("telemetry"));
        assert_eq!(label(0, "stat"), None);
        assert_eq!(label(1, "tenant").as_deref(), Some("a\"}b\\\nc"));
        assert_eq!(label(1, "type").as_deref(), Some("event"));
        assert_eq!(label(2, "type"), None);
    }

    #[test]
    fn what_is_no_count_is_none() {
        for (value, count) in [
            ("-1", None),
            ("0.5", None),
            ("9007199254740992", None),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("0", Some(0)),
        ] {
            let line = format!("m {value}");
            let read: Vec<Option<u64>> = samples(&line).map(|it| it.count()).collect();
            assert_eq!(read, [count], "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(text in "[ -~\n\"\\\\{}=,\u{e9}]{0,200}") {
            for sample in samples(&text) {
                let _ = (sample.label("tenant"), sample.count());
            }
        }

        #[test]
        fn what_was_written_is_read_again(value in "\\PC{0,20}", other in "\\PC{0,20}", count in 0u64..1 << 53) {
            let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let line = format!("m{{a=\"{}\",b=\"{}\"}} {count}", escaped(&other), escaped(&value));
            let read: Vec<Sample<'_>> = samples(&line).collect();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(read[0].label("b"), Some(value));
            prop_assert_eq!(read[0].label("a"), Some(other));
            prop_assert_eq!(read[0].count(), Some(count));
        }
    }
}
