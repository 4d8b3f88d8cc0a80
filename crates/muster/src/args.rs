//! The command line.

mod calibration;
mod capacity;
mod compare;
mod gateway;
mod import;
mod metrics;
mod scale;
mod verify;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use muster_conduct::{LostCopy, Part};
use muster_gateway::Dialect;
use muster_model::Micros;

pub(crate) use self::calibration::CalibrationArgs;
pub(crate) use self::capacity::{CapacityArgs, Load};
pub(crate) use self::compare::{CompareArgs, CompareFormat};
pub(crate) use self::gateway::GatewayArgs;
pub(crate) use self::import::{
    Generation, HonoArgs, ImportArgs, ImportFrom, SapArgs, ThingsboardArgs,
};
pub(crate) use self::metrics::{InfluxNames, MetricsArgs};
pub(crate) use self::scale::ScaleArgs;
pub(crate) use self::verify::VerifyArgs;
use crate::wall_clock;

/// Load tests for IoT platforms: follows every message to its final state and gives a verdict.
#[derive(Debug, Parser)]
#[command(name = "muster", version, about, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario; the exit code is the verdict.
    #[command(
        after_help = "Exit codes: 0 pass, 1 fail, 2 usage or scenario error, 3 invalid, \
        4 none (the target was not there, or would not let the consumers in, so that the run could \
        not begin), 130 stopped twice. With --repeat the worst of all runs: \
        none before invalid before fail before pass.\n\n\
        Example: muster run scenarios/first.yaml --set fleet.count=500 --out results/try"
    )]
    Run(RunArgs),
    /// Find the highest rate, or number of devices, that the target carries by the scenario's SLOs.
    #[command(
        after_help = "Each stream keeps its share of the rate. Steps follow one another without reconnecting, \
        and the target rests between them; each is judged as a run is. The folder of the result has the \
        answer and every step: capacity.json, capacity.html with the response curve, capacity.csv.\n\n\
        Exit codes: 0 found, 1 the SLOs fail at the first rate, 2 usage or scenario error, 3 the highest rate \
        passes, the budget is too short, steps stayed unclear, the target died or did not come to rest, or the \
        closed ledger refutes what was found; 4 the target is silent.\n\n\
        Example: muster capacity scenarios/capacity.yaml --budget 10m"
    )]
    Capacity(CapacityArgs),
    /// Add instances to the target, and find the rate that each number of them carries.
    #[command(
        after_help = "The scenario's `scale` names the actuator that adds them. For each number of them \
        the highest rate is searched as `muster capacity` does; `scale.json` in the folder of the result \
        has the answer. In the end the target is as it was.\n\n\
        Exit codes: 0 measured up to the limit, or instances no longer help; 1 the SLOs fail at the first rate; \
        2 usage or scenario error, or the target does not follow; 3 some number of instances could not be \
        judged; 5 the target could not be put back as it was.\n\n\
        Example: muster scale scenarios/scale-gateway.yaml"
    )]
    Scale(ScaleArgs),
    /// Parse a scenario, work out whether it can run here, and see whether the target answers.
    #[command(
        after_help = "At each address of devices and backends one session is opened and subscribes, \
        as in the run, and is closed again: nothing is published. Over HTTP no request is sent either, so that \
        the credentials in it are tried by --loop alone. If all answer, the generator's own ceiling is measured \
        against a gateway on this machine, for a few seconds.\n\n\
        Exit codes: 0 ready, 2 scenario error, or the target refuses what it says, such as a \
        password; 3 infeasible on this machine, 4 target silent (no address, no connection, no \
        answer in time).\n\n\
        Example: muster check scenarios/first.yaml"
    )]
    Check(CheckArgs),
    /// Show a result again, in another form, from its folder alone; also after a killed run.
    #[command(
        after_help = "Example: muster report results/first-20261121T101500Z --format html > report.html"
    )]
    Report(ReportArgs),
    /// Compare results: what differs in set-up and figures, and whether chance explains it.
    Compare(CompareArgs),
    /// Make one result and one verdict of the parts of one run.
    #[command(after_help = "Example: muster merge part-1 part-2 --out whole")]
    Merge(MergeArgs),
    /// Recompute every figure of a certificate from the windows in its folder.
    Verify(VerifyArgs),
    /// Create, verify or remove a scenario's devices on the platform, or restore its rule chain.
    #[command(
        after_help = "Devices that are there with the same content are left alone, so that `create` can be \
        repeated, also after it was killed. `create` records each device in provisioned.jsonl in the \
        folder of --out; `remove` removes the recorded ones, and nothing else. `restore` puts back the root \
        rule chain that a killed run with `provision.count` has left.\n\n\
        Exit codes: 0 done, 1 refused, in conflict, or (verify) not all there, 2 usage or scenario \
        error, 3 interrupted, 4 the management API is silent.\n\n\
        Example: muster provision scenarios/site.yaml create --set fleet.count=500"
    )]
    Provision(ProvisionArgs),
    /// Make a scenario of the options of another load test.
    Import(ImportArgs),
    /// Run the reference gateway alone until it is stopped; prints its account at the end.
    #[command(
        after_help = "Example: muster gateway --listen 127.0.0.1:1883 --behaviour 'service-time: 2ms'"
    )]
    Gateway(GatewayArgs),
    /// Print the completions of a shell.
    #[command(
        after_help = "Example: muster completions bash > ~/.local/share/bash-completion/completions/muster"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one a command.
    #[command(
        after_help = "Example: muster man --out ~/.local/share/man/man1; then man muster-run"
    )]
    Man(ManArgs),
    /// Print the JSON schema of the scenario.
    #[command(after_help = "Example: muster schema > muster-schema.json")]
    Schema,
    /// Serve as a worker of a larger run, over standard input and output.
    #[command(hide = true)]
    Agent,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ScenarioArgs {
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// Replace a value of the scenario, such as `fleet.count=500`.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Replace the seed.
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Add a label to the result.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<String>,
}

impl RunArgs {
    /// A run that says nothing by itself, and leaves its result there.
    pub(crate) fn quiet(scenario: ScenarioArgs, out: PathBuf) -> Self {
        Self {
            scenario,
            out: Some(out),
            quiet: true,
            repeat: None,
            json: None,
            sign: None,
            facts: None,
            facts_max: 0,
            part: None,
            listen: None,
            join: None,
            start_at: None,
            run_id: None,
            shards: Some(1),
            workers: None,
            slots: 1_024,
            buffers: 64,
            lose_copy: None,
            every: None,
            metrics: MetricsArgs::default(),
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run N times, 2 to 1000, one after the other, judge each run, and report the spread of the
    /// headline figures (`repeat.json`). All runs have the same seed: the spread is the target's and
    /// the machine's. Ctrl-C ends all of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000),
        conflicts_with_all = ["part", "start_at", "run_id"])]
    pub(crate) repeat: Option<u32>,
    /// The folder of the result; by default `results/<name>-<UTC time>`. With --repeat each run has
    /// a folder `1`, `2`, ... in it.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Also write `result.json` here; with --repeat `repeat.json`.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Sign `certificate.json` with this private key of ed25519 in PEM; `certificate.sig` is its signature.
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    /// Write every fact to this file, one line each; with --repeat to FILE.1, FILE.2, ...
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,
    /// The most facts to write.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub(crate) facts_max: u64,
    /// Run one part on this host: `devices` or `backend`; `i/n`, share i of n of both; `devices:i/n` or
    /// `backend:i/n`. `muster merge` makes one result and one verdict of the parts. A part that did its
    /// work ends with 0.
    #[arg(long, value_name = "PART", requires = "run_id", requires = "start_at")]
    pub(crate) part: Option<Part>,
    /// Listen for the other parts, which name this address with `--join`: an address and a port, or a
    /// port alone on 127.0.0.1. All parts then settle together, as one process would. Otherwise a part
    /// with the backend listens until `settle.at-most`.
    #[arg(long, value_name = "ADDRESS", value_parser = listen, requires = "part", conflicts_with = "join")]
    pub(crate) listen: Option<SocketAddr>,
    /// Report to the part that listens at this host and port, or at this port of 127.0.0.1.
    #[arg(long, value_name = "HOST:PORT", requires = "part")]
    pub(crate) join: Option<String>,
    /// The begin of the connect phase, such as `2026-11-21T10:15:00Z`; the parts of one run share
    /// it. Messages are due from the longest time on that connecting may take.
    #[arg(long, value_name = "UTC", value_parser = instant)]
    pub(crate) start_at: Option<u64>,
    /// The run's id as hexadecimal digits; the parts of one run share it.
    #[arg(long, value_name = "HEX", value_parser = hex)]
    pub(crate) run_id: Option<u32>,
    /// Device shards (threads) of each process; by default the cores, or half of them if the
    /// target is on this machine.
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u32>,
    /// Worker processes; by default as many as the limit of descriptors asks for.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// The most messages that may wait or be unanswered at once on one shard.
    #[arg(long, value_name = "N", default_value_t = 4_194_304)]
    pub(crate) slots: u32,
    /// The most buffers for bytes that wait for the sockets of one shard.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) buffers: u32,
    /// Has our own consumers lose a copy, `uncounted` or `counted`: the accounts must show it.
    #[arg(long, value_name = "HOW", value_parser = lost_copy, hide = true)]
    pub(crate) lose_copy: Option<LostCopy>,
    /// Print the summary only.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print a short line at this interval, such as `10s`, with rates, p99 and the SLOs that fail so far.
    /// SLOs that only the end of the run decides, such as loss, are not among them.
    #[arg(long, value_name = "TIME", value_parser = every, conflicts_with = "quiet")]
    pub(crate) every: Option<Micros>,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Do not try to reach the target.
    #[arg(long)]
    pub(crate) offline: bool,
    /// Take the first device of each fleet through the whole loop: one message of each stream to the
    /// platform and on to the backends, and one command. The run after it counts them as `foreign`.
    #[arg(long = "loop", conflicts_with = "offline")]
    pub(crate) whole_loop: bool,
    /// Open each link of each fleet once, with its own credential, and close it again: as fast as
    /// `connect` of the fleet allows, with at most 256 handshakes under way. Links over HTTP send
    /// no request.
    #[arg(long, conflicts_with = "offline")]
    pub(crate) all_links: bool,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write `muster.1`, `muster-run.1` and the others into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The folder of a result.
    pub(crate) folder: PathBuf,
    /// The form of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One screen of text.
    Text,
    /// One file for a browser.
    Html,
    /// One row a window.
    Csv,
    /// One test case a rule, for a CI server.
    Junit,
    /// Interval log of HdrHistogram.
    Hdr,
    /// The result itself.
    Json,
    /// The log of the published test of SAP Edge, with its figures by device.
    Sap,
    /// The result of the published test of Eclipse Hono, field by field.
    HonoSimulator,
    /// The tables of the published tests of ThingsBoard: resources of the target, counts of the server.
    Thingsboard,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The folders of the parts.
    #[arg(required = true, num_args = 1..)]
    pub(crate) folders: Vec<PathBuf>,
    /// The folder of the whole result.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Sign `certificate.json` with this private key of ed25519 in PEM.
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The action.
    #[arg(value_enum)]
    pub(crate) action: Action,
    /// The folder of the record; by default `results/<name>-provision`. That of a run that was
    /// killed holds what the run had created.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the outcome only.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// An action on the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// Create what is not there.
    Create,
    /// Look whether all is there.
    Verify,
    /// Remove what the record says was created.
    Remove,
    /// Make the rule chain root again that was so before a run that was killed.
    Restore,
}

/// At least a second: the figures are those of seconds.
fn every(text: &str) -> Result<Micros, String> {
    let every = muster_scenario::length_of_time(text)?;
    if every < Micros::from_secs(1) {
        return Err(format!("`{text}` is shorter than a second"));
    }
    Ok(every)
}

fn dialect(text: &str) -> Result<Dialect, String> {
    let names = || Dialect::ALL.map(|dialect| dialect.name).join(", ");
    Dialect::named(text).ok_or_else(|| format!("`{text}` is no dialect; one of {}", names()))
}

/// A port alone is one of this machine's, which nobody else reaches.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let on_loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bare = text.parse().map(on_loopback);
    bare.or_else(|_| text.parse()).map_err(|_| {
        format!("`{text}` is neither a port, such as 7411, nor an address with one, such as 10.0.0.1:7411")
    })
}

/// Milliseconds since the Unix epoch.
fn instant(text: &str) -> Result<u64, String> {
    wall_clock::parse_ms(text)
        .ok_or_else(|| format!("`{text}` is no instant such as 2026-11-21T10:15:00Z"))
}

fn lost_copy(text: &str) -> Result<LostCopy, String> {
    match text {
        "uncounted" => Ok(LostCopy::Uncounted),
        "counted" => Ok(LostCopy::Counted),
        _ => Err(format!("`{text}` is neither `uncounted` nor `counted`")),
    }
}

/// Any number of 64 bits.
fn seed(text: &str) -> Result<u64, String> {
    let most = u64::MAX;
    text.parse()
        .map_err(|_| format!("write it as a whole number from 0 to {most}"))
}

fn hex(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16)
        .map_err(|_| format!("`{text}` is no hexadecimal number of 32 bits"))
}
