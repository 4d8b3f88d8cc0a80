//! `muster compare`: results of two sides, and results over time.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Said, json as read, muster};

/// A result that passed, from which the others are made.
const SAMPLE: &str = include_str!("../../../../golden/sample-pass.json");

fn sample() -> Value {
    serde_json::from_str(SAMPLE).expect("JSON")
}

/// A result whose response p99 is that.
fn run(p99_us: u64) -> Value {
    let mut run = sample();
    run["latency"]["response"]["p99_us"] = json!(p99_us);
    run["latency"]["response"]["all_due"]["p99_us"] = json!(p99_us);
    run
}

/// Writes results into `side/1`, `side/2` and so on, each a run of its own.
fn write(folder: &Path, side: &str, runs: Vec<Value>) {
    for (at, mut run) in runs.into_iter().enumerate() {
        run["run"] = json!(format!("{side}-{at}"));
        run["started"] = json!(format!("2026-11-{:02}T02:10:00Z", at + 1));
        let path = folder.join(side).join((at + 1).to_string());
        std::fs::create_dir_all(&path).expect("a folder");
        std::fs::write(path.join("result.json"), run.to_string()).expect("a result");
    }
}

/// Three runs of about this response p99.
fn about(p99_us: u64) -> Vec<Value> {
    [p99_us - p99_us / 500, p99_us, p99_us + p99_us / 500]
        .map(run)
        .into()
}

/// A base of about 1 ms, beside another side.
fn beside(change: Vec<Value>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "base", about(1_000));
    write(folder.path(), "change", change);
    folder
}

fn compared(folder: &Path, more: &[&str]) -> Said {
    muster(folder, &[&["compare", "base", "change"], more].concat())
}

fn changed(change: impl Fn(&mut Value)) -> Vec<Value> {
    let mut runs = about(1_000);
    runs.iter_mut().for_each(change);
    runs
}

#[test]
fn a_longer_latency_is_worse_and_a_shorter_one_better() {
    let folder = beside(about(1_300));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out
            .starts_with("WORSE  base (3 runs) -> change (3 runs)"),
        "{}",
        said.out
    );
    assert!(
        said.unbroken()
            .contains("response p99 worse: 1.00 ms to 1.30 ms (+30.0 %"),
        "{}",
        said.out
    );
    let back = muster(folder.path(), &["compare", "change", "base"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert!(back.out.starts_with("BETTER"), "{}", back.out);
}

#[test]
fn runs_that_hardly_differ_are_the_same() {
    let folder = beside(about(1_005));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("SAME"), "{}", said.out);
    let json = compared(folder.path(), &["--format", "json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["verdict"]),
        (&json!("muster-compare/1"), &json!("same"))
    );
    let figures = json["comparisons"][0]["figures"]
        .as_array()
        .expect("figures");
    let deciding = figures
        .iter()
        .filter(|figure| figure["decides"] == true)
        .count();
    assert_eq!(deciding, 9, "rates, percentiles, shares");
}

#[test]
fn the_tolerance_is_the_users() {
    let folder = beside(about(1_300));
    assert_eq!(compared(folder.path(), &["--tolerance", "40%"]).code, 0);
    let said = compared(folder.path(), &["--tolerance", "0.4"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("5%"), "{}", said.err);
}

#[test]
fn what_scatters_too_much_is_not_comparable_and_says_how_many_runs_would_do() {
    let folder = beside([960, 1_000, 1_050].map(run).into());
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    let out = said.unbroken();
    assert!(out.contains("unclear: response p99"), "{out}");
    assert!(out.contains("runs a side would decide"), "{out}");
    assert_eq!(compared(folder.path(), &["--decide", "accepted"]).code, 0);
    let unknown = compared(folder.path(), &["--decide", "speed"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(
        unknown
            .out
            .contains("no run has a figure of the name speed"),
        "{}",
        unknown.out
    );
}

#[test]
fn one_run_a_side_differs_at_most_within_these_runs() {
    let folder = beside(vec![run(2_000)]);
    let said = muster(folder.path(), &["compare", "base/1", "change/1"]);
    assert_eq!(said.code, 3, "{said:?}");
    let out = said.unbroken();
    assert!(out.contains("the sides differ within these runs"), "{out}");
    assert!(out.contains("--repeat 3"), "{out}");
}

#[test]
fn another_load_is_not_comparable_unless_its_keys_are_ignored() {
    let folder = beside(changed(|run| {
        run["scenario"]["fleet"][0]["count"] = json!(500);
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("fleet[0].count"), "{}", said.out);
    assert!(said.out.contains("--ignore"), "{}", said.out);
    for ignored in ["fleet[0].count", "fleet", "scenario.fleet[0]"] {
        assert_eq!(
            compared(folder.path(), &["--ignore", ignored]).code,
            0,
            "{ignored}"
        );
    }
    assert_eq!(
        compared(folder.path(), &["--ignore", "fleet[0].cou"]).code,
        3
    );
}

#[test]
fn another_target_version_or_machine_is_listed() {
    let folder = beside(changed(|run| {
        run["muster"] = json!("0.2.0");
        run["environment"]["machine"] = json!({ "cpu_model": "other" });
        run["scenario"]["platform"]["kind"] = json!("mqtt");
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    for key in ["muster", "machine.cpu_model", "scenario.platform.kind"] {
        assert!(said.out.contains(key), "{key}: {}", said.out);
    }
}

#[test]
fn what_is_no_load_does_not_block() {
    let folder = beside(changed(|run| {
        let scenario = &mut run["scenario"];
        scenario["scale"] = json!({ "instances": { "max": 3 } });
        scenario["monitor"] = json!([{ "process": "other" }]);
        scenario["cold"] = json!({ "first": "10s" });
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("scenario.cold.first"), "{}", said.out);
}

#[test]
fn runs_that_are_left_out_have_no_part_in_the_load() {
    let mut runs = about(1_000);
    let mut other = run(1_000);
    other["verdict"]["result"] = json!("invalid");
    other["scenario"]["fleet"][0]["count"] = json!(500);
    runs.push(other);
    let folder = beside(runs);
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("left out: change/4"), "{}", said.out);
}

#[test]
fn runs_whose_load_was_searched_are_left_out() {
    let folder = beside(changed(|run| {
        run["environment"]["load"] = json!("searched");
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.out
            .contains("left out: change/1: a search decided on its load"),
        "{}",
        said.out
    );
}

/// Adds the answer of a search to each run of a side: a capacity, or none.
fn search(folder: &Path, side: &str, find: &str, capacity: Option<f64>) {
    for entry in std::fs::read_dir(folder.join(side)).expect("a side") {
        let path = entry.expect("an entry").path();
        let mut run = read(&path.join("result.json"));
        run["environment"]["load"] = json!("searched");
        std::fs::write(path.join("result.json"), run.to_string()).expect("a result");
        let interval = |middle: f64| json!({ "lower": middle * 0.98, "middle": middle, "upper": middle * 1.02 });
        let found = |middle| json!({ "end": "found", "interval": interval(middle), "first_failing": middle * 1.02 });
        let answer = json!({
            "schema": "muster-capacity/1", "muster": "", "name": "first", "run": run["run"], "scenario_sha256": null,
            "find": find, "limits": { "first": 1.0, "most": 9e9, "width": 0.1, "short": 5, "long": 20, "load_seconds": 0.0, "budget": 600 },
            "sessions": 1, "end": capacity.map(found), "known": null, "certified": capacity.map(|of| of * 0.98),
            "refuted": null, "first_failing": null, "generator": null, "steps": [],
        });
        std::fs::write(path.join("capacity.json"), answer.to_string()).expect("an answer");
    }
}

#[test]
fn a_capacity_in_devices_is_compared_only_with_one_in_devices() {
    let folder = beside(about(1_000));
    let path = folder.path();
    search(path, "base", "rate", Some(2_000.0));
    search(path, "change", "devices", Some(2_000.0));
    let said = compared(path, &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.unbroken().contains("with the same --find"), "{said:?}");
    search(path, "base", "devices", Some(1_000.0));
    let said = compared(path, &[]);
    assert_eq!(said.code, 0, "{said:?}");
    let moved = "capacity (devices) better: 1,000 devices to 2,000 devices";
    assert!(said.unbroken().contains(moved), "{said:?}");

    let mixed = history_since(1_000);
    search(mixed.path(), "results", "rate", Some(2_000.0));
    let path = mixed.path().join("results/3/capacity.json");
    let mut answer = read(&path);
    answer["find"] = json!("devices");
    std::fs::write(&path, answer.to_string()).expect("an answer");
    let history = ["compare", "--history", "results", "--format", "json"];
    let said = muster(mixed.path(), &history);
    let json: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(json["courses"].as_array().map(Vec::len), Some(2));
}

#[test]
fn capacities_are_compared_by_their_intervals_and_nothing_else_is() {
    let folder = beside(vec![run(9_000)]);
    let path = folder.path();
    write(path, "base", vec![run(1_000)]);
    for number in ["2", "3"] {
        std::fs::remove_dir_all(path.join("base").join(number)).expect("it was there");
    }
    search(path, "base", "rate", Some(2_000.0));
    for (capacity, code, verdict) in [
        (Some(2_200.0), 0, "BETTER  base"),
        (Some(1_800.0), 1, "WORSE  base"),
        (Some(2_010.0), 0, "SAME  base"),
        (None, 3, "NOT COMPARABLE  base"),
    ] {
        search(path, "change", "rate", capacity);
        let said = compared(path, &[]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.out.starts_with(verdict), "{}", said.out);
        assert!(!said.out.contains("response p99"), "{}", said.out);
    }
    assert!(
        compared(path, &[])
            .unbroken()
            .contains("certified no capacity: interrupted")
    );
    let mut changed = read(&path.join("change/1/result.json"));
    changed["scenario"]["slo"]["loss"] = json!("<= 7");
    std::fs::write(path.join("change/1/result.json"), changed.to_string()).expect("a result");
    search(path, "change", "rate", Some(2_010.0));
    let certificates = ["base/1/certificate.json", "change/1/certificate.json"];
    for name in certificates {
        std::fs::write(path.join(name), "{}").expect("it is written");
    }
    let said = muster(path, &[&["compare"], &certificates[..]].concat());
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("scenario.slo.loss"), "{}", said.out);
}

#[test]
fn a_choice_that_nothing_matches_is_named() {
    let folder = beside(about(1_000));
    for (choice, why) in [
        (
            ["--decide", "acepted"],
            "no run has a figure of the name acepted",
        ),
        (
            ["--ignore", "phases.warmup"],
            "no scenario has the key phases.warmup",
        ),
    ] {
        let said = compared(
            folder.path(),
            &[&["--decide", "accepted"], &choice[..]].concat(),
        );
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.unbroken().contains(why), "{}", said.out);
        let history = ["compare", "--history", "base", choice[0], choice[1]];
        let said = muster(folder.path(), &history);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn a_result_of_another_schema_is_not_comparable() {
    let folder = beside(changed(|run| run["schema"] = json!("muster/9")));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.unbroken()
            .contains("the result is of schema \"muster/9\""),
        "{}",
        said.out
    );
}

#[test]
fn runs_that_may_not_be_believed_are_left_out() {
    let folder = beside(changed(|run| run["verdict"]["result"] = json!("invalid")));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.out.contains("change has no run whose figures count"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("left out: change/1: its result is invalid"),
        "{}",
        said.out
    );
}

#[test]
fn a_percentile_that_one_side_lacks_leaves_the_question_open() {
    let folder = beside(changed(|run| {
        run["latency"]["response"]["p99_us"] = Value::Null;
        run["latency"]["response"]["all_due"]["p99_us"] = Value::Null;
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.unbroken().contains("not known in the change"),
        "{}",
        said.out
    );
}

#[test]
fn with_other_streams_only_the_common_ones_decide() {
    let folder = beside(changed(|run| {
        let stream = run["ledger"]["by_stream"]["first/readings"].clone();
        run["ledger"]["by_stream"]["first/events"] = stream;
        run["latency"]["response"]["p99_us"] = json!(9_000);
    }));
    let said = compared(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("* response p99 [first/readings]"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("events"), "{}", said.out);
}

#[test]
fn what_is_no_comparison_is_a_usage_error() {
    let folder = beside(about(1_000));
    for (arguments, why) in [
        (&["base"][..], "name the side that is compared with it"),
        (&["base", "base"], "both are run base-0"),
        (&["base", "nowhere"], "name the folder of a result"),
        (&["base", "empty"], "it holds no result"),
        (&["--a", "base"], "--b"),
    ] {
        std::fs::create_dir_all(folder.path().join("empty")).expect("a folder");
        let said = muster(folder.path(), &[&["compare"], arguments].concat());
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(why), "{why}: {}", said.err);
    }
}

#[test]
fn several_folders_make_a_side_and_several_sides_one_verdict() {
    let folder = beside(about(1_000));
    write(folder.path(), "slow", about(1_300));
    let of = |side: &str| -> Vec<String> { (1..=3).map(|at| format!("{side}/{at}")).collect() };
    let arguments: Vec<String> = ["compare".to_owned(), "--a".to_owned()]
        .into_iter()
        .chain(of("base"))
        .chain(["--b".to_owned()])
        .chain(of("slow"))
        .collect();
    assert_eq!(muster(folder.path(), &arguments).code, 1);
    let all = muster(folder.path(), &["compare", "base", "change", "slow"]);
    assert_eq!(all.code, 1, "the worst of two");
    assert!(
        all.out.contains("SAME  base") && all.out.contains("WORSE  base"),
        "{}",
        all.out
    );
}

#[test]
fn the_forms_say_the_same() {
    let folder = beside(about(1_300));
    let said = compared(folder.path(), &["--out", "out", "--format", "markdown"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.starts_with("### muster compare: worse"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("| response p99 | 1.00 ms | 1.30 ms | +30.0 % |"),
        "{}",
        said.out
    );
    let out = folder.path().join("out");
    assert_eq!(read(&out.join("compare.json"))["verdict"], "worse");
    let text = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    assert_eq!(text("compare.md").trim(), said.out.trim());
    let page = text("compare.html");
    assert!(page.contains("<title>worse: change</title>"));
    assert!(page.contains("\"overlaid\":[{\"side\":0,\"folder\":\"base/1\""));
    assert_eq!(compared(folder.path(), &["--out", "out"]).code, 1, "again");
    let said = compared(folder.path(), &["--out", "base/1"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("it holds `result.json`"), "{}", said.err);
}

/// Twenty results: of about 1 ms, and of the other p99 since the fifteenth.
fn history_since(p99_us: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let level = |at: u64| if at < 14 { 1_000 } else { p99_us };
    let runs = (0..20).map(|at| run(level(at) + at * 7 % 5)).collect();
    write(folder.path(), "results", runs);
    folder
}

#[test]
fn a_history_names_the_result_since_which_a_figure_is_worse() {
    let worse = history_since(1_200);
    let said = muster(worse.path(), &["compare", "--history", "results"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.starts_with("WORSE  first  20 results"),
        "{}",
        said.out
    );
    assert!(
        said.unbroken()
            .contains("worse since results/15: 1.00 ms to 1.20 ms"),
        "{}",
        said.out
    );
    let same = history_since(1_000);
    let said = muster(
        same.path(),
        &["compare", "--history", "results", "--format", "json"],
    );
    assert_eq!(said.code, 0, "{said:?}");
    let json: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(
        json["courses"][0]["results"].as_array().map(Vec::len),
        Some(20)
    );
}

#[test]
fn a_history_with_a_lower_bound_or_one_run_twice_is_not_called_the_same() {
    let bounded = history_since(1_000);
    let path = bounded.path().join("results/3/result.json");
    let mut run = read(&path);
    run["latency"]["response"]["at_least"] = json!(["p99_us"]);
    std::fs::write(&path, run.to_string()).expect("a result");
    let history = [
        "compare",
        "--history",
        "results",
        "--decide",
        "response p99",
    ];
    let said = muster(bounded.path(), &history);
    assert_eq!(said.code, 3, "{said:?}");
    let copied = history_since(1_000);
    let at = |number: u32| copied.path().join(format!("results/{number}/result.json"));
    std::fs::copy(at(4), at(5)).expect("it is copied");
    let said = muster(copied.path(), &history);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("name different runs"), "{}", said.err);
}

#[test]
fn a_short_history_says_what_it_needs() {
    let folder = beside(about(1_000));
    let said = muster(folder.path(), &["compare", "--history", "base"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.out.contains("a history needs 6 results"),
        "{}",
        said.out
    );
}
