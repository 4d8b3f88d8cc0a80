//! Options of those who watch a run from outside.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use muster_model::Micros;

use super::listen;

/// Time for which the page of Prometheus stays up after a run: its usual interval is 15 s.
const WAIT: &str = "15s";

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MetricsArgs {
    /// Serve the figures of the run to Prometheus at /metrics: an address and a port, or a port alone on
    /// 127.0.0.1; port 0 is a free port. After the run the page holds the values of the result until it was
    /// read once, or until --metrics-wait is over.
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) metrics: Option<SocketAddr>,
    /// The longest time that the page stays up after the run; 0s is none.
    #[arg(long, value_name = "TIME", value_parser = muster_scenario::length_of_time, default_value = WAIT,
        requires = "metrics")]
    pub(crate) metrics_wait: Micros,
    /// Write the figures of each second to an InfluxDB: `http://HOST:8086?db=NAME` (version 1), or
    /// `http://HOST:8086?org=NAME&bucket=NAME` (version 2). Credentials are INFLUX_USERNAME and
    /// INFLUX_PASSWORD, or INFLUX_TOKEN, of the environment.
    #[arg(long, value_name = "URL")]
    pub(crate) influx: Option<String>,
    /// Names of measurements and fields there.
    #[arg(long, value_enum, default_value_t, requires = "influx")]
    pub(crate) influx_names: InfluxNames,
    /// Send the figures of each second to an OTLP receiver over HTTP, such as `http://HOST:4318`. Headers are
    /// OTEL_EXPORTER_OTLP_HEADERS of the environment.
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
}

/// Names of measurements and fields in InfluxDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum InfluxNames {
    /// The names of docs/metrics.md.
    #[default]
    Muster,
    /// The names of the published scale test of Eclipse Hono, such as `http-publish`.
    HonoSimulator,
}
