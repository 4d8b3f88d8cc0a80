//! Selection of samples of a page that Prometheus would read.

/// Selects samples by metric and labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The metric.
    pub metric: String,
    /// Conditions that all hold.
    pub labels: Vec<LabelMatch>,
}

/// A condition on a label. A label that a sample lacks has an empty value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMatch {
    /// The label.
    pub label: String,
    /// Its value.
    pub value: String,
    /// True if it must have this value, false if any other.
    pub is_equal: bool,
}

impl Selector {
    /// Reads `metric{label="value", other!="value"}`, as Prometheus writes it; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (metric, rest) = name(text.trim(), ":")?;
        let mut labels = Vec::new();
        let mut rest = match rest.trim_start() {
            "" => {
                return Some(Self {
                    metric: metric.to_owned(),
                    labels,
                });
            }
            rest => rest.strip_prefix('{')?.trim_start(),
        };
        while rest != "}" {
            let (label, after) = name(rest, "")?;
            let after = after.trim_start();
            let (is_equal, after) = match after.strip_prefix("!=") {
                Some(after) => (false, after),
                None => (true, after.strip_prefix('=')?),
            };
            let (value, after) = quoted_label(after.trim_start())?;
            labels.push(LabelMatch {
                label: label.to_owned(),
                value,
                is_equal,
            });
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(after) => after.trim_start(),
                None if after == "}" => after,
                None => return None,
            };
        }
        Some(Self {
            metric: metric.to_owned(),
            labels,
        })
    }

    /// True if a sample of a metric is selected; `value_of` is the value of a label of the sample.
    pub fn selects(&self, metric: &str, value_of: impl Fn(&str) -> Option<String>) -> bool {
        let holds = |of: &LabelMatch| {
            let value = value_of(&of.label).unwrap_or_default();
            (value == of.value) == of.is_equal
        };
        self.metric == metric && self.labels.iter().all(holds)
    }
}

/// Splits a text that begins with a name, in which `also` may stand too.
fn name<'a>(text: &'a str, also: &str) -> Option<(&'a str, &'a str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || also.contains(c);
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let begins_well = !name.starts_with(|c: char| c.is_ascii_digit());
    (!name.is_empty() && begins_well).then_some((name, rest))
}

/// Splits a text that begins with a quoted string into that string and the rest, as pages for Prometheus
/// quote the values of labels. None if no quoted string begins there, or it does not end.
pub fn quoted_label(text: &str) -> Option<(String, &str)> {
    let mut chars = text.strip_prefix('"')?.chars();
    let mut value = String::new();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_selected_by_metric_and_labels() {
        let text = " a:b_1 { x = \"1\" , y!=\"q\\\"}\\\\\\n\" , } ";
        let label = |label: &str, value: &str, is_equal| LabelMatch {
            label: label.to_owned(),
            value: value.to_owned(),
            is_equal,
        };
        let labels = vec![label("x", "1", true), label("y", "q\"}\\\n", false)];
        let metric = "a:b_1".to_owned();
        assert_eq!(Selector::parse(text), Some(Selector { metric, labels }));
    }

    #[test]
    fn a_label_that_is_absent_is_empty() {
        let selects = |text: &str, x: Option<&str>| {
            let selector = Selector::parse(text).expect("a selector");
            selector.selects("up", |label| x.filter(|_| label == "x").map(str::to_owned))
        };
        assert!(selects("up", None) && !selects("down", None));
        assert!(selects("up{x=\"1\"}", Some("1")) && !selects("up{x=\"1\"}", Some("2")));
        assert!(!selects("up{x=\"1\"}", None) && selects("up{x!=\"1\"}", None));
        assert!(selects("up{x=\"\"}", None) && !selects("up{x!=\"\"}", None));
    }

    #[test]
    fn anything_else_selects_nothing() {
        for text in [
            "",
            "1a",
            "a b",
            "a{",
            "a{x}",
            "a{x=1}",
            "a{x=\"1}",
            "a{x=\"1\"} 2",
            "rate(a)",
            "a{x=~\"1\"}",
            "a{x=\"1\" y=\"2\"}",
        ] {
            assert_eq!(Selector::parse(text), None, "{text}");
        }
    }
}
