//! The command line of `muster compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    after_help = "Run each side at least three times: `muster run SCENARIO --repeat 3 --out base`. \
    Repetitions are what the statistics rest on, as with benchstat or hyperfine. One run a side shows at most \
    that these runs differ.\n\n\
    A figure is better or worse if it moved by more than the tolerance and chance does not explain it. \
    At most 5 % of the comparisons of equal sides end with better or worse. docs/compare.md has the method.\n\n\
    Exit codes: 0 same or better, 1 worse, 2 usage error, 3 not comparable: different loads, too few \
    runs, or figures that scatter too much.\n\n\
    Examples: muster compare base change\n\
    \x20         muster compare --a base/1 base/2 base/3 --b results/change-* --tolerance 10% --format markdown"
)]
pub(crate) struct CompareArgs {
    /// The base, and each side that is compared with it: the folder of a run, of a `--repeat`, or
    /// one that holds folders of runs; or a `result.json`. A `certificate.json` stands for its folder.
    #[arg(value_name = "SIDE", required_unless_present_any = ["a", "history"], conflicts_with_all = ["a", "b"])]
    pub(crate) sides: Vec<PathBuf>,
    /// The base as several folders.
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "b")]
    pub(crate) a: Vec<PathBuf>,
    /// The side that is compared with it, as several folders.
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "a")]
    pub(crate) b: Vec<PathBuf>,
    /// The results of this folder over time: changes of level, and the drift since the last one. The
    /// runs of one `--repeat` are one result.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["sides", "a", "b", "out"])]
    pub(crate) history: Option<PathBuf>,
    /// Relative difference that does not matter.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) tolerance: f64,
    /// Compare although this key of the scenario differs, or keys below it, such as `phases.warm-up`.
    #[arg(long, value_name = "KEY")]
    pub(crate) ignore: Vec<String>,
    /// Decide by this figure alone, such as `response p99` or `response p99 [meters/readings]`; may be
    /// repeated. By default: accepted, arrived, response and end-to-end p50 and p99, command-loop p50 and
    /// p99, failure-ratio, lost, duplicates.
    #[arg(long, value_name = "FIGURE")]
    pub(crate) decide: Vec<String>,
    /// The form of the comparison.
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub(crate) format: CompareFormat,
    /// Also write `compare.json`, `compare.md` and `compare.html` into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Text for a terminal.
    Text,
    /// Markdown for a comment on a pull request.
    Markdown,
    /// One file for a browser, with the runs laid over each other.
    Html,
    /// The comparison itself.
    Json,
}

/// A share such as `5%`.
fn share(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        Some(_) | None => Err(format!(
            "`{text}` is no share such as `5%`, from 0% to 100%"
        )),
    }
}
