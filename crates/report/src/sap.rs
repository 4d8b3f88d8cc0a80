//! The figures of the published test of SAP Edge, and its log as it would have been.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::Report;

/// The figures of the published test, by its own formulas (`published.sap`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SapFigures {
    /// Address that devices connect to.
    pub host: String,
    /// The devices, in the order of the plan.
    pub devices: Vec<SapDevice>,
    /// Devices beyond those.
    pub left_out: u64,
}

/// The figures of one device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SapDevice {
    /// Its name.
    pub device: String,
    /// Verdict that the published test would have reached.
    pub verdict: SapVerdict,
    /// Time that the device published, in seconds.
    pub seconds: f64,
    /// Messages sent.
    pub messages: u64,
    /// Messages a second, as sent.
    pub actual_rate: Option<f64>,
    /// Messages a second, as wanted.
    pub desired_rate: f64,
    /// Mean length of a message's payload, in bytes.
    pub bytes_per_message: Option<f64>,
    /// Samples sent; null where the payload is not the published test's.
    pub samples: Option<u64>,
    /// Payload in kilobytes (1,000 bytes) a second.
    pub kbytes_per_s: Option<f64>,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Messages whose acknowledgement is missing.
    pub missing: u64,
    /// Largest delay of a message behind its due instant, in seconds.
    pub behind_s: f64,
    /// The time correlation.
    pub correlation: f64,
    /// Percentiles of the latency in milliseconds; null without an acknowledgement.
    pub p50_ms: Option<u64>,
    /// See [`SapDevice::p50_ms`].
    pub p95_ms: Option<u64>,
    /// See [`SapDevice::p50_ms`].
    pub p99_ms: Option<u64>,
}

/// Verdict of the published test on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SapVerdict {
    /// All acknowledgements came, and the correlation is not strongly positive.
    #[default]
    Copes,
    /// All acknowledgements came, and the correlation is strongly positive.
    Overloaded,
    /// Acknowledgements are missing.
    Invalid,
    /// The device fell 15 s behind, so that it would have been disconnected.
    Behind,
}

/// The log of the published test; none where the run has no such figures.
pub fn sap(report: &Report) -> Option<String> {
    let figures: SapFigures = report.published("sap")?;
    let mut log = String::new();
    for device in &figures.devices {
        connection(&mut log, &figures.host, device);
        publishing(&mut log, device);
        acknowledgements(&mut log, device);
    }
    if figures.left_out > 0 {
        let _ = writeln!(log, "{} more devices are left out", figures.left_out);
    }
    log.push_str("Exiting\n");
    Some(log)
}

fn connection(log: &mut String, host: &str, device: &SapDevice) {
    let name = &device.device;
    let _ = writeln!(log, "Connection to {host} opened for {name}");
    let _ = writeln!(log, "Subscribed to topic ack/{name}");
}

fn publishing(log: &mut String, device: &SapDevice) {
    let name = &device.device;
    if device.verdict == SapVerdict::Behind {
        let behind = device.behind_s;
        let _ = writeln!(
            log,
            "{name} is {behind:.0} s behind its schedule: disconnecting"
        );
        return;
    }
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let _ = writeln!(
        log,
        "Publishing done for {name} in {:.0} s, actual/desired rate {}/{:.1} messages/s, \
         {} bytes/message, {} samples, {} KByte/s",
        device.seconds,
        rate(device.actual_rate),
        device.desired_rate,
        rate(device.bytes_per_message),
        device.samples.map_or("-".to_owned(), |n| n.to_string()),
        rate(device.kbytes_per_s),
    );
}

fn acknowledgements(log: &mut String, device: &SapDevice) {
    let name = &device.device;
    if device.missing > 0 {
        let missing = device.missing;
        let _ = writeln!(
            log,
            "{missing} acknowledgements are missing for {name}: test results are invalid"
        );
        return;
    }
    let ms = |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| ms.to_string());
    let _ = writeln!(
        log,
        "All acknowledgements received for {name}, time correlation {:.2}, \
         percentiles 50/95/99 {}/{}/{} ms",
        device.correlation,
        ms(device.p50_ms),
        ms(device.p95_ms),
        ms(device.p99_ms),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> SapDevice {
        SapDevice {
            device: "PerfTest_0".to_owned(),
            verdict: SapVerdict::Copes,
            seconds: 60.0,
            messages: 6_000,
            actual_rate: Some(100.0),
            desired_rate: 100.0,
            bytes_per_message: Some(162.6),
            samples: Some(6_000),
            kbytes_per_s: Some(16.26),
            acknowledged: 6_000,
            missing: 0,
            behind_s: 0.001,
            correlation: -0.131,
            p50_ms: Some(2),
            p95_ms: Some(53),
            p99_ms: Some(175),
        }
    }

    fn report(device: SapDevice) -> Report {
        let figures = SapFigures {
            host: "mqtt://127.0.0.1:61657".to_owned(),
            devices: vec![device],
            left_out: 3,
        };
        let mut report = Report::default();
        let value = serde_json::to_value(figures).expect("it is plain data");
        report.published.insert("sap".to_owned(), value);
        report
    }

    #[test]
    fn the_log_is_the_published_tests() {
        let log = sap(&report(device())).expect("it has the figures");
        insta::assert_snapshot!(log, @r"
        Connection to mqtt://127.0.0.1:61657 opened for PerfTest_0
        Subscribed to topic ack/PerfTest_0
        Publishing done for PerfTest_0 in 60 s, actual/desired rate 100.0/100.0 messages/s, 162.6 bytes/message, 6000 samples, 16.3 KByte/s
        All acknowledgements received for PerfTest_0, time correlation -0.13, percentiles 50/95/99 2/53/175 ms
        3 more devices are left out
        Exiting
        ");
    }

    #[test]
    fn a_device_that_is_not_fully_acknowledged_or_behind_is_said_so() {
        let missing = SapDevice {
            verdict: SapVerdict::Invalid,
            missing: 7,
            ..device()
        };
        let log = sap(&report(missing)).expect("it has the figures");
        assert!(
            log.contains("7 acknowledgements are missing for PerfTest_0: test results are invalid")
        );
        let behind = SapDevice {
            verdict: SapVerdict::Behind,
            behind_s: 16.2,
            ..device()
        };
        let log = sap(&report(behind)).expect("it has the figures");
        assert!(log.contains("PerfTest_0 is 16 s behind its schedule"));
        assert!(!log.contains("Publishing done"));
    }

    #[test]
    fn a_run_without_the_figures_has_no_such_log() {
        assert_eq!(sap(&Report::default()), None);
    }
}
