//! `docs/result.md` names every key of a result, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use muster_measure::{CommandLedger, Equation, PresenceRow, ReceptionLedger};
use muster_report::{
    CommandAccount, CounterGrowth, DrainAccount, Figure, LatencyFigures, Percentiles, QueriesDue,
    ReceiveAccount, Report, SubscriberRow, csv,
};
use serde_json::Value;

use crate::sample;

/// The objects that a heading names, and the rows of its table.
struct Section {
    places: Vec<Vec<String>>,
    rows: Vec<Row>,
}

struct Row {
    key: String,
    form: String,
}

struct Page {
    text: String,
    sections: Vec<Section>,
}

impl Page {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.md");
        let text = std::fs::read_to_string(path).expect("the page is there");
        let mut sections: Vec<Section> = Vec::new();
        let keys = text.lines().take_while(|line| *line != "# As CSV");
        for line in keys {
            if let Some(heading) = line.strip_prefix("## ") {
                let places = match heading {
                    "Top level" => vec![Vec::new()],
                    places => quoted(places).map(|place| parts(&place)).collect(),
                };
                let rows = Vec::new();
                sections.push(Section { places, rows });
            } else if line.starts_with("| `") {
                let cells: Vec<&str> = line.split(" | ").collect();
                sections
                    .last_mut()
                    .expect("a table has a heading")
                    .rows
                    .push(Row {
                        key: quoted(cells[0]).next().expect("a key"),
                        form: cells[1].to_owned(),
                    });
            }
        }
        Self { text, sections }
    }

    /// The section of an object, the one that names it best.
    fn section(&self, place: &[String]) -> Option<usize> {
        let stars = |pattern: &[String]| pattern.iter().filter(|part| *part == "*").count();
        let fits = |pattern: &[String]| {
            let pairs = || pattern.iter().zip(place);
            pattern.len() == place.len() && pairs().all(|(p, own)| p == "*" || p == own)
        };
        let all = self.sections.iter().enumerate();
        let fitting = all.flat_map(|(at, section)| {
            let places = section.places.iter().filter(|place| fits(place));
            places.map(move |place| (stars(place), at))
        });
        fitting.min().map(|(_, at)| at)
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn parts(place: &str) -> Vec<String> {
    place.split('.').map(str::to_owned).collect()
}

struct Walk<'a> {
    page: &'a Page,
    met: BTreeSet<(usize, String)>,
}

impl Walk<'_> {
    fn object(&mut self, value: &Value, place: &[String]) {
        let at = self.page.section(place);
        let at = at.unwrap_or_else(|| panic!("docs/result.md says nothing of {place:?}"));
        for (key, value) in value.as_object().expect("an object") {
            let rows = &self.page.sections[at].rows;
            let named = rows.iter().find(|row| row.key == *key);
            let row = named.or_else(|| rows.iter().find(|row| row.key.starts_with('<')));
            let row = row.unwrap_or_else(|| panic!("docs/result.md lacks {key} of {place:?}"));
            self.met.insert((at, row.key.clone()));
            let form = row.form.clone();
            let mut place = place.to_vec();
            place.push(key.clone());
            self.value(value, &place, &form);
        }
    }

    fn value(&mut self, value: &Value, place: &[String], form: &str) {
        match value {
            Value::Object(map) if form.starts_with("map") => {
                for (key, value) in map.iter().filter(|(_, value)| value.is_object()) {
                    let mut place = place.to_vec();
                    place.push(key.clone());
                    self.object(value, &place);
                }
            }
            Value::Object(_) if form == "any" => {}
            Value::Object(_) => self.object(value, place),
            Value::Array(list) => {
                let mut place = place.to_vec();
                let last = place.last_mut().expect("a list has a key");
                last.push_str("[]");
                for value in list.iter().filter(|value| value.is_object()) {
                    self.object(value, &place);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A report in which every part that can be there is.
fn full() -> Report {
    let (mut report, apart) = (sample::failed(), sample::apart());
    let response = report.latency.response.as_mut();
    let all_due = response.and_then(|leg| leg.all_due.as_mut());
    all_due.expect("all due").at_least.add("p99_9_us");
    report.verdict.rules[0].observed = Some(Figure::Time {
        us: 749,
        at_least: true,
    });
    report.latency_cold = apart.latency_cold;
    report.latency_warm = apart.latency_warm;
    let equation = Equation {
        name: "sent".to_owned(),
        left: 2,
        right: 1,
        difference: 1,
    };
    let queue = DrainAccount {
        took: Some(LatencyFigures {
            all_due: Some(Percentiles::default()),
            lower: Some(Percentiles::default()),
            ..LatencyFigures::default()
        }),
        ..DrainAccount::default()
    };
    report.ledger.command = Some(CommandAccount {
        offline_queue: Some(queue.clone()),
        queries_cold: Some(QueriesDue::default()),
        queries_warm: Some(QueriesDue::default()),
        ledger: CommandLedger {
            by_presence: BTreeMap::from([("online".to_owned(), PresenceRow::default())]),
            equations: vec![equation.clone()],
            ..CommandLedger::default()
        },
        ..CommandAccount::default()
    });
    report.ledger.receive = Some(ReceiveAccount {
        offline_queue: Some(queue),
        end_to_end: Some(LatencyFigures {
            all_due: Some(Percentiles::default()),
            ..LatencyFigures::default()
        }),
        by_subscriber: BTreeMap::from([("sub-1/all".to_owned(), SubscriberRow::default())]),
        ledger: ReceptionLedger {
            equations: vec![equation.clone()],
            ..ReceptionLedger::default()
        },
    });
    report.ledger.uplink.equations.push(equation);
    report.target.counters = Some(vec![CounterGrowth {
        platform: "hono".to_owned(),
        kind: "telemetry".to_owned(),
        status: "forwarded".to_owned(),
        grown: Some(1),
        ledger: 1,
        unanswered: 0,
        agrees: Some(true),
    }]);
    report
}

#[test]
fn every_key_of_a_result_is_documented_and_nothing_else_is() {
    let page = Page::read();
    let mut walk = Walk {
        page: &page,
        met: BTreeSet::new(),
    };
    for report in [
        full(),
        sample::invalid(),
        sample::passed(),
        sample::unlooked(),
        sample::empty(),
    ] {
        let json: Value = serde_json::from_str(&report.to_json()).expect("JSON");
        walk.object(&json, &[]);
    }
    for (at, section) in page.sections.iter().enumerate() {
        for row in &section.rows {
            let is_met = walk.met.contains(&(at, row.key.clone()));
            assert!(is_met, "no result has {} of {:?}", row.key, section.places);
        }
    }
}

#[test]
fn every_column_of_the_csv_is_documented() {
    let page = Page::read();
    let table = csv(&sample::passed());
    let heading = table.lines().next().expect("a heading");
    for column in heading.split(',') {
        assert!(page.text.contains(&format!("`{column}`")), "{column}");
    }
}
