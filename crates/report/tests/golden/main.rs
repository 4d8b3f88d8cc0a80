//! Every form of a report against its golden file.
//!
//! Golden files change only on purpose: `MUSTER_BLESS=1 INSTA_UPDATE=always cargo test`.

mod documented;
mod rules;
mod sample;
mod series;
mod simulation;

use std::path::Path;

use muster_judge::{Warning, WarningKind};
use muster_report::{
    Consequence, Figure, Report, Rule, RuleKind, RuleResult, RunResult, csv, html, junit,
    steps_csv, text,
};

/// Compares with a file of the folder `golden` of the workspace, or writes it when blessing.
fn check_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden")
        .join(name);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, found).expect("the folder golden can be written");
    }
    let wanted = std::fs::read_to_string(&path).expect("the golden file is there");
    assert!(
        wanted == found,
        "golden/{name} differs: bless it if the change is meant"
    );
}

#[test]
fn the_sample_result_is_the_golden_one() {
    check_golden("sample-result.json", &sample::failed().to_json());
    check_golden("sample-invalid.json", &sample::invalid().to_json());
    check_golden("sample-pass.json", &sample::passed().to_json());
}

#[test]
fn a_result_reads_back_as_it_was_written() {
    for report in [
        sample::failed(),
        sample::invalid(),
        sample::apart(),
        sample::hostile(),
        sample::empty(),
    ] {
        let json = report.to_json();
        let again = Report::from_json(&json).unwrap();
        assert!(again == report, "{} differs", report.name);
        assert_eq!(again.to_json(), json);
    }
}

#[test]
fn another_schema_is_refused_by_name() {
    let json = sample::empty().to_json().replace("muster/1", "muster/9");
    let error = Report::from_json(&json).unwrap_err().to_string();
    assert!(
        error.contains("muster/9") && error.contains("muster/1"),
        "{error}"
    );
}

#[test]
fn the_keys_of_a_result_are_those_of_the_design() {
    let value: serde_json::Value = serde_json::from_str(&sample::failed().to_json()).unwrap();
    let keys = |value: &serde_json::Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    };
    insta::assert_snapshot!(
        [
            keys(&value),
            keys(&value["verdict"]["rules"][0]),
            keys(&value["ledger"]),
            keys(&value["ledger"]["uplink"]),
            keys(&value["ledger"]["by_backend"]["northbound"]),
            keys(&value["ledger"]["by_stream"]["meters/readings"]),
            keys(&value["links"]),
            keys(&value["rates"]),
            keys(&value["latency"]),
            keys(&value["latency"]["response"]),
            keys(&value["generator"]),
            keys(&value["target"]),
            keys(&value["events"][0]),
            keys(&value["windows"][0]),
        ]
        .join("\n")
    );
}

#[test]
fn the_summary_fits_one_screen() {
    for report in [
        sample::failed(),
        sample::invalid(),
        sample::passed(),
        sample::unlooked(),
        sample::apart(),
        sample::empty(),
    ] {
        let summary = text(&report, 80);
        assert!(summary.lines().count() <= 27, "{summary}");
        assert!(
            summary.lines().all(|line| line.chars().count() <= 80),
            "{summary}"
        );
        insta::assert_snapshot!(format!("summary_of_{}", report.name), summary);
    }
}

/// Rejected and timed-out messages that arrived stand with the arrived, and not with the lost.
#[test]
fn what_arrived_although_it_failed_stands_with_the_arrived() {
    let mut report = sample::failed();
    let arrivals = &mut report.ledger.uplink.arrivals;
    (arrivals.arrived, arrivals.lost) = (Some(1_187), Some(7));
    arrivals.rejected_but_arrived = Some(2);
    let told = "1,187 arrived (2 of these though rejected)  7 lost  ";
    assert!(text(&report, 100).contains(told));
    report.ledger.uplink.arrivals.timed_out_but_arrived = Some(3);
    let told = "1,187 arrived (2 of these though rejected, 3 of these though timed out)  7 lost";
    assert!(text(&report, 100).contains(told));
}

#[test]
fn each_step_has_a_line_and_a_row() {
    let report = sample::staircase();
    let summary = text(&report, 80);
    assert!(
        summary.lines().all(|line| line.chars().count() <= 80),
        "{summary}"
    );
    let table = summary.split_once("steps  ").map(|(_, after)| after);
    let (table, _) = table
        .and_then(|after| after.split_once("\n\n"))
        .expect("a table");
    insta::assert_snapshot!(table);
    insta::assert_snapshot!(steps_csv(&report).expect("a table"));
    let again = Report::from_json(&report.to_json()).unwrap();
    assert!(again == report);
}

#[test]
fn a_step_is_a_change_of_rate_even_if_it_begins_and_ends_with_the_same_rate() {
    let mut report = sample::staircase();
    report.steps[1].rate_until = report.steps[1].rate;
    assert!(text(&report, 80).contains("1,000 > 1,000"));
}

#[test]
fn a_percentile_that_a_rule_names_is_seen_in_each_step() {
    let mut report = sample::staircase();
    let p90 = |scope: &str, us, at_least| Rule {
        scope: scope.to_owned(),
        observed: Some(Figure::Time { us, at_least }),
        bound: Some(Figure::time(20_000)),
        ..rules::rule(RuleKind::Slo, "response p90", RuleResult::Pass)
    };
    for (step, us) in report.steps.iter_mut().zip([5_000, 0, 7_000]) {
        step.rules = match us {
            0 => Vec::new(),
            us => vec![p90("run", us, us > 6_000), p90("a/b", 2 * us, false)],
        };
    }
    let summary = text(&report, 80);
    assert!(
        summary.contains("\n      response p90 [run] 5 ms (at most 20 ms)\n"),
        "{summary}"
    );
    let table = steps_csv(&report).expect("a table");
    let ends: Vec<&str> = table
        .lines()
        .map(|line| {
            line.rsplitn(4, ',')
                .nth(3)
                .map_or("", |cut| &line[cut.len()..])
        })
        .collect();
    let expected = [
        ",response_p90_us,response_p90_us [a/b],rules_at_least",
        ",5000,10000,",
        ",,,",
        ",7000,14000,response_p90_us",
    ];
    assert_eq!(ends, expected);
}

#[test]
fn each_of_several_backends_has_a_line() {
    insta::assert_snapshot!(text(&sample::two_backends(), 100));
}

#[test]
fn nothing_of_a_long_reason_is_lost() {
    let why = (0..40)
        .map(|n| format!("consumer {n}: refused"))
        .collect::<Vec<_>>();
    let why = format!("{} {}", why.join("; "), "x".repeat(150));
    let mut report = sample::empty();
    report.verdict.rules.push(Rule {
        evidence: why.clone(),
        ..rules::rule(RuleKind::Validity, "uninterrupted", RuleResult::Fail)
    });
    let summary = text(&report, 100);
    assert!(
        summary.lines().all(|line| line.chars().count() <= 100),
        "{summary}"
    );
    let words: String = summary.split_whitespace().collect();
    assert!(words.contains(&why.replace(' ', "")), "{summary}");
}

#[test]
fn the_rules_are_test_cases() {
    for report in [sample::failed(), sample::invalid(), sample::passed()] {
        insta::assert_snapshot!(format!("junit_of_{}", report.name), junit(&report));
    }
}

#[test]
fn a_broken_rule_on_the_generator_is_an_error_and_no_failure() {
    let mut report = sample::failed();
    report.verdict.result = RunResult::Invalid;
    let rules = report.verdict.rules.iter_mut();
    let broken = rules.filter(|rule| rule.consequence == Consequence::Fails);
    let broken = broken.map(|rule| rule.consequence = Consequence::Invalidates);
    let broken = broken.count();
    let xml = junit(&report);
    assert!(
        broken > 0 && xml.matches("<error ").count() == broken,
        "{xml}"
    );
    assert!(!xml.contains("<failure "), "{xml}");
}

/// Text, JSON, page and JUnit.
#[test]
fn every_form_counts_the_same_rules() {
    for report in [sample::failed(), sample::invalid(), sample::passed()] {
        let counts = report.verdict.counts();
        let summary = text(&report, 100);
        assert!(summary.contains(&format!("  {counts}")), "{summary}");
        let value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let of = |name: &str| value["verdict"]["counts"][name].as_u64();
        assert_eq!(of("rules"), Some(counts.rules));
        assert_eq!(of("hold"), Some(counts.hold));
        assert_eq!(of("not_evaluated"), Some(counts.not_evaluated));
        let xml = junit(&report);
        // The verdict has a suite of its own where no rule says it.
        let (rules, _) = xml.split_once("</testsuite>").unwrap();
        let cases = |inside: &str| rules.matches(inside).count() as u64;
        assert_eq!(cases("<testcase "), counts.rules, "{xml}");
        assert_eq!(cases("<failure ") + cases("<error "), counts.fail);
        assert_eq!(cases("<skipped "), counts.not_evaluated + counts.not_judged);
        for count in [
            ("rules", counts.rules),
            ("hold", counts.hold),
            ("fail", counts.fail),
        ] {
            let property = format!("<property name=\"{}\" value=\"{}\"/>", count.0, count.1);
            assert!(xml.contains(&property), "{property}");
        }
        let page = html(&report);
        assert!(
            page.contains("rulesInWords(report.verdict.counts)"),
            "it counts none itself"
        );
    }
}

#[test]
fn junit_tells_times_warnings_and_the_figures_of_rules_that_hold() {
    let mut report = sample::passed();
    report.verdict.warnings.push(Warning {
        kind: WarningKind::NewTenant,
        scope: "run".to_owned(),
        detail: "tenant <t1> is new".to_owned(),
    });
    let xml = junit(&report);
    assert!(
        xml.contains("<system-out>warning: tenant &lt;t1&gt; is new [run]</system-out>"),
        "{xml}"
    );
    assert_eq!(
        xml.matches("<testcase ").count(),
        xml.matches("<testcase classname").count()
    );
    let length = report.phases.last().unwrap().until_s;
    let times = xml.matches(&format!(" time=\"{length:.3}\"")).count();
    assert_eq!(times, 1 + report.verdict.rules.len());
    for rule in report.verdict.rules_that(RuleResult::Pass) {
        if let Some(seen) = rule.seen() {
            assert!(
                xml.contains(&format!("<system-out>observed {seen}, allowed: ")),
                "{seen}: {xml}"
            );
        }
    }
}

/// The page shows a word's meaning only if the list has it.
#[test]
fn the_page_explains_the_words_of_its_account() {
    let page = html(&sample::failed());
    for word in [
        "residue",
        "held",
        "censored",
        "shed",
        "lateness",
        "outstanding",
        "drain",
        "recovered",
    ] {
        assert!(page.contains(&format!("\n  \"{word}\": \"")), "{word}");
    }
}

#[test]
fn the_page_holds_its_data_and_no_markup_of_others() {
    let page = html(&sample::hostile());
    let scripts: Vec<&str> = page.split("<script").collect();
    assert_eq!(
        scripts.len(),
        3,
        "one script of data and one of code, as in the template"
    );
    let data = scripts[1]
        .split_once('>')
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    assert!(!data.contains(['<', '>', '&', '\u{2028}']), "{data}");
    assert!(Report::from_json(data).unwrap() == sample::hostile());
    let outside = page.replace(data, "");
    assert!(
        !outside.contains("alert(1)</script>"),
        "the title or the summary is not escaped"
    );
}

#[test]
fn the_page_asks_for_nothing() {
    let page = html(&sample::failed());
    for request in [
        " src=",
        " href=",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!page.contains(request), "{request}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(
        page.contains("Copyright (c) 2022 Leon Sorokin"),
        "the licence of uPlot"
    );
}

#[test]
fn the_windows_are_a_table() {
    insta::assert_snapshot!(csv(&sample::passed()));
}
