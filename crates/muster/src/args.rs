//! The command line.

mod calibration;
mod capacity;
mod compare;
mod import;
mod metrics;
mod verify;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use muster_conduct::{LostCopy, Part};
use muster_gateway::Dialect;
use muster_model::Micros;

pub(crate) use self::calibration::CalibrationArgs;
pub(crate) use self::capacity::{CapacityArgs, Find};
pub(crate) use self::compare::{CompareArgs, CompareFormat};
pub(crate) use self::import::{HonoArgs, ImportArgs, ImportFrom, SapArgs};
pub(crate) use self::metrics::{InfluxNames, MetricsArgs};
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
    /// Find the highest rate that the target carries by the scenario's SLOs.
    #[command(
        after_help = "Each stream keeps its share of the rate. Steps follow one another without reconnecting, \
        and the target rests between them; each is judged as a run is. The folder of the result has the \
        answer and every step: capacity.json, capacity.html with the response curve, capacity.csv.\n\n\
        Exit codes: 0 found, 1 the SLOs fail at the first rate, 2 usage or scenario error, 3 the highest rate \
        passes, the budget is too short, or the target did not come to rest; 4 the target is silent.\n\n\
        Example: muster capacity scenarios/capacity.yaml --budget 10m"
    )]
    Capacity(CapacityArgs),
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
    /// Create, verify or remove a scenario's devices on the platform.
    #[command(
        after_help = "Devices that are there with the same content are left alone, so that `create` can be \
        repeated, also after it was killed. `create` records each device in provisioned.jsonl in the \
        folder of --out; `remove` removes the recorded ones, and nothing else.\n\n\
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
}

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// The address to listen on; port 0 is a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1883")]
    pub(crate) listen: SocketAddr,
    /// The address for CoAP, besides MQTT for the application; port 0 is a free port. Only with
    /// --dialect hono.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) coap: Option<SocketAddr>,
    /// The same over DTLS. Shared keys are the names and passwords of --users, such as
    /// `sensor1@tenant:key`. With --cert it shows a certificate. With --client-ca it asks devices without
    /// a shared key for theirs, whose common name is the identity.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) coaps: Option<SocketAddr>,
    /// The address for HTTP, besides MQTT for the application; port 0 is a free port. Only with --dialect hono
    /// or http. Users of --users show their names and passwords by Basic.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// The same over TLS, with the certificate of --cert. A client's certificate names its device, as with
    /// --coaps.
    #[arg(long, value_name = "ADDRESS", requires = "cert")]
    pub(crate) https: Option<SocketAddr>,
    /// Push each message that surfaces to this endpoint of the application, such as
    /// http://127.0.0.1:8088/muster: one POST, with the topic behind the path.
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Option<String>,
    /// The file of the bearer token that each push shows.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(crate) webhook_token: Option<PathBuf>,
    /// The address for applications over AMQP 1.0; port 0 is a free port. Telemetry of Hono's devices is
    /// then refused while no receiver has credit.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) amqp: Option<SocketAddr>,
    /// The same over TLS, with the certificate of --cert. With --client-ca applications show theirs, whose common
    /// name logs in by EXTERNAL.
    #[arg(long, value_name = "ADDRESS", requires = "cert")]
    pub(crate) amqps: Option<SocketAddr>,
    /// The file of the key of every identity that --users does not name; without it those get no
    /// answer.
    #[arg(long, value_name = "FILE", requires = "coaps")]
    pub(crate) psk: Option<PathBuf>,
    /// Decline connection ids (RFC 9146), as Hono does; devices then cannot share sockets.
    #[arg(long, requires = "coaps")]
    pub(crate) no_connection_id: bool,
    /// Refuse longer payloads of requests (4.13, 413), as the `maxPayloadSize` of Hono's adapters does; by
    /// default 2048 with --dialect hono.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_payload: Option<u32>,
    /// A file of the registered devices, in lines `device@tenant`: requests of others are refused (4.04, 404).
    /// Without it every device is registered.
    #[arg(long, value_name = "FILE")]
    pub(crate) devices: Option<PathBuf>,
    /// Threads; by default one a core.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u16>,
    /// The dialect: mqtt, hono, thingsboard, sap-edge or http.
    #[arg(long, value_name = "NAME", default_value = "mqtt", value_parser = dialect)]
    pub(crate) dialect: Dialect,
    /// Serve MQTT over WebSocket, at any path.
    #[arg(long)]
    pub(crate) websocket: bool,
    /// Serve over TLS: the file of the certificate and its chain.
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The file of its key; by default that of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Refuse clients without a certificate that one of this file signed.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// The misbehaviour, as keys of `platform.behaviour` in YAML.
    #[arg(long, value_name = "YAML")]
    pub(crate) behaviour: Option<String>,
    /// The seed that chooses the positions of the faults.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The number of uplinks that are expected: counts are positions among them.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) expect: u64,
    /// A file of those who may connect, in lines `name:password`; without it everybody may.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// A file with one line `method:secret` for the enhanced authentication of MQTT 5. The gateway
    /// sends a challenge of 16 bytes; the device answers with it and the secret behind it
    /// (`authentication: { method, answer, echo: true }` of a scenario's client).
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication: Option<PathBuf>,
    /// Serve the management API over HTTP: devices of SAP Edge, or the counts of ThingsBoard's rule
    /// engine. Port 0 is a free port. Only with --dialect sap-edge or thingsboard.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rest: Option<SocketAddr>,
    /// The file of the bearer token that each call of the management API must show.
    #[arg(long, value_name = "FILE", requires = "rest")]
    pub(crate) rest_token: Option<PathBuf>,
    /// The gateway's own alternate id at the management API; with thingsboard the service's id.
    #[arg(
        long,
        value_name = "NAME",
        requires = "rest",
        default_value = "muster-gateway"
    )]
    pub(crate) rest_gateway: String,
    /// Refuse devices that were not created by the management API.
    #[arg(long, requires = "rest")]
    pub(crate) only_provisioned: bool,
    /// The most messages at QoS 1 and 2 that a device may have unanswered at once.
    #[arg(long, value_name = "N", default_value_t = u16::MAX,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) receive_maximum: u16,
    /// Read at most this number of bytes from each device in each 10 ms.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) read_slowly: Option<u32>,
    /// Serve one run: its configuration comes on standard input, its end ends the gateway.
    #[arg(long, hide = true)]
    pub(crate) embedded: bool,
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
