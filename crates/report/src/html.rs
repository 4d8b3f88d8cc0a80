//! The report as one page that needs no network: style, script and data are all within it.
//!
//! Nothing of a report ever becomes markup. The data stand as JSON in a script element of a type
//! that no browser runs, and the page's script sets them as text; the few strings that stand
//! outside are escaped. A content security policy forbids every request.

use std::fmt::Write as _;

use crate::{CapacityReport, Certificate, Compare, OverlaidRun, Report, text};

const PAGE: &str = include_str!("../assets/page.html");

/// The page's own style after that of uPlot.
const STYLES: [&str; 2] = [
    include_str!("../assets/uplot.css"),
    include_str!("../assets/page.css"),
];

/// The notice that uPlot's licence (MIT) asks to stand in every copy; it holds no end of a comment.
const UPLOT_LICENSE: &str = include_str!("../assets/uplot-LICENSE.txt");

/// uPlot and then the parts that the scripts of all pages share, in the order in which they build on each other.
const SCRIPTS: [&str; 7] = [
    include_str!("../assets/uplot.js"),
    include_str!("../assets/base.js"),
    include_str!("../assets/words.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/flow.js"),
    include_str!("../assets/frame.js"),
    include_str!("../assets/sections.js"),
];
/// The rest of the script for the page of a run.
const OF_RUN: &str = include_str!("../assets/page.js");
/// The rest of the script for the page of a comparison.
const OF_COMPARISON: &str = include_str!("../assets/compare.js");

/// The rest of the script for the page of a certificate.
const OF_CERTIFICATE: &str = include_str!("../assets/certificate.js");

/// The rest of the script for the page of a capacity.
const OF_CAPACITY: &str = include_str!("../assets/capacity.js");

/// The rest of the script for the page of a growth.
const OF_GROWTH: &str = include_str!("../assets/scale.js");

/// Width of the summary for browsers that run no script.
const PLAIN_WIDTH: usize = 80;

/// The report as one HTML file.
pub fn html(report: &Report) -> String {
    let result = match &report.unfinished {
        Some(unfinished) => unfinished.to_string(),
        None => report.verdict.result.name().to_owned(),
    };
    page(&Page {
        title: format!("{result}: {}", report.name),
        summary: text(report, PLAIN_WIDTH),
        json: report.to_json(),
        script: OF_RUN,
    })
}

/// A comparison as one HTML file, with the windows of these runs laid over each other.
pub fn compare_html(compare: &Compare, overlaid: &[OverlaidRun]) -> String {
    let comparisons = compare.comparisons.iter();
    let names: Vec<&str> = comparisons.map(|one| one.change.name.as_str()).collect();
    page(&Page {
        title: format!("{}: {}", compare.verdict.name(), names.join(", ")),
        summary: compare.text(),
        json: compare.json_with(overlaid),
        script: OF_COMPARISON,
    })
}

/// A certificate as one HTML file.
pub fn certificate_html(certificate: &Certificate) -> String {
    page(&Page {
        title: format!(
            "{}: {}",
            certificate.verdict.result.name(),
            certificate.name
        ),
        summary: certificate.text(),
        json: certificate.to_json(),
        script: OF_CERTIFICATE,
    })
}

/// The answer of a search for a capacity as one HTML file, with the response curve.
pub fn capacity_html(answer: &CapacityReport) -> String {
    page(&Page {
        title: format!("{}: {}", answer.result(), answer.name),
        summary: answer.text(),
        json: answer.to_json(),
        script: OF_CAPACITY,
    })
}

/// The answer of a growth as one HTML file, with its load, instances and failures over time. `json` is the answer, and
/// `summary` says it in words.
pub fn scale_html(title: String, summary: String, json: String) -> String {
    page(&Page {
        title,
        summary,
        json,
        script: OF_GROWTH,
    })
}

/// The parts in which pages differ.
struct Page {
    title: String,
    /// For browsers that run no script.
    summary: String,
    json: String,
    script: &'static str,
}

fn page(page: &Page) -> String {
    let script = format!(
        "\"use strict\";\n/*! {UPLOT_LICENSE}*/\n{}\n{}",
        SCRIPTS.join("\n"),
        page.script
    );
    fill(
        PAGE,
        &[
            ("title", escape(&page.title)),
            ("style", STYLES.join("\n")),
            ("summary", escape(&page.summary)),
            ("data", data(&page.json)),
            ("script", script),
        ],
    )
}

/// JSON that cannot end its script element or open a comment within it (HTML section 4.12.1.3): `<`,
/// `>` and `&` occur only in strings, where an escape means the same.
fn data(json: &str) -> String {
    let mut data = String::new();
    for symbol in json.chars() {
        match symbol {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(data, "\\u{:04x}", symbol as u32);
            }
            symbol => data.push(symbol),
        }
    }
    data
}

/// Replaces each `{{name}}` of the template once; what is put in is not looked at again.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .expect("the template closes what it opens");
        let value = values.iter().find(|(known, _)| *known == name);
        page.push_str(before);
        page.push_str(&value.expect("every slot of the template has a value").1);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The text for use in an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            symbol => escaped.push(symbol),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The name of what a line defines for all parts of the script.
    fn defined(line: &str) -> Option<&str> {
        let rest = ["function ", "const ", "let "]
            .iter()
            .find_map(|word| line.strip_prefix(word))?;
        let end = rest.find(|symbol: char| !symbol.is_alphanumeric() && symbol != '_')?;
        (end > 0).then(|| &rest[..end])
    }

    /// A second function of one name would take the first one's place without a word.
    #[test]
    fn no_two_parts_of_the_script_share_a_name() {
        for (own, known) in [
            (OF_RUN, "causeList"),
            (OF_COMPARISON, "forest"),
            (OF_CERTIFICATE, "declaredRules"),
            (OF_CAPACITY, "responseCurve"),
            (OF_GROWTH, "growthOverTime"),
        ] {
            let mut names = BTreeSet::new();
            let parts = SCRIPTS[1..].iter().chain([&own]);
            for name in parts.flat_map(|part| part.lines()).filter_map(defined) {
                assert!(names.insert(name), "{name} is defined twice");
            }
            assert!(names.contains("causes") && names.contains(known));
        }
    }
}
