//! The command line of `muster import`.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) from: ImportFrom,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportFrom {
    /// The performance test of the SAP Edge Gateway Service.
    #[command(
        after_help = "The flags, their defaults and their limits are those of that test.\n\n\
        Example: muster import sap -b gateway.example -d 6 -r 2300 -t 180 --out six.yaml"
    )]
    Sap(SapArgs),
    /// The scale test of Eclipse Hono with devices over HTTP and MQTT (hono-simulator).
    #[command(
        after_help = "Its programs are configured by environment variables alone. A name that none of them reads \
        is refused; a variable without a meaning here becomes a comment with the reason.\n\n\
        Example: muster import hono-simulator --env http.env --env consumer.env --out simulator.yaml"
    )]
    HonoSimulator(HonoArgs),
    /// The performance tests of ThingsBoard, of 2019 or the current ones.
    #[command(
        after_help = "They are configured by environment variables alone. A name that they do not read, and a value \
        that Muster cannot do, are refused; a variable without a meaning here becomes a comment with the reason.\n\n\
        Example: muster import thingsboard --env tests.env --out board.yaml"
    )]
    Thingsboard(ThingsboardArgs),
}

/// A generation of the performance tests of ThingsBoard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Generation {
    /// The tests of 2019: each device sends at its own instants.
    #[value(name = "2019")]
    First,
    /// The current ones: all messages of a second at its begin.
    #[value(name = "current")]
    Later,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ThingsboardArgs {
    /// A file with the variables, one NAME=value a line; by default they are those of this process.
    #[arg(long, value_name = "FILE")]
    pub(crate) env: Option<PathBuf>,
    /// The generation of the tests; by default that whose variables are set.
    #[arg(long, value_enum)]
    pub(crate) generation: Option<Generation>,
    /// Write the scenario to this file, which must not be there; by default it is printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HonoArgs {
    /// A file with the variables of one pod, one NAME=value a line; several are one test. By default the
    /// variables are those of this process.
    #[arg(long, value_name = "FILE")]
    pub(crate) env: Vec<PathBuf>,
    /// Write the scenario to this file, which must not be there; by default it is printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SapArgs {
    /// The host of the gateway's message bus.
    #[arg(short = 'b', long, value_name = "HOST", default_value = "localhost", value_parser = host)]
    pub(crate) host: String,
    /// Its port.
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = 61_657,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,
    /// Simulated devices, 1 to 10; more are a matter of `fleet.count`.
    #[arg(short = 'd', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) devices: u32,
    /// Messages a second of each device.
    #[arg(short = 'r', long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: u32,
    /// Measures in each message.
    #[arg(short = 's', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) samples: u32,
    /// Seconds.
    #[arg(short = 't', long, value_name = "SECONDS", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub(crate) time: u32,
    /// Worker processes, 1 to 8; no matter of a scenario, which says how to have them.
    #[arg(short = 'm', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) multiprocess: u32,
    /// Write the scenario to this file, which must not be there; by default it is printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

fn host(text: &str) -> Result<String, String> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if bare.unwrap_or(text).parse::<Ipv6Addr>().is_ok() {
        return Ok(bare.unwrap_or(text).to_owned());
    }
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if text.is_empty() || !text.chars().all(is_host) {
        return Err(
            "a name or an address alone, without scheme and port: the port goes to -p".to_owned(),
        );
    }
    Ok(text.to_owned())
}
