//! The figures of published tests, as `published` in the result holds them.

mod hono;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_load::{PayloadSpec, ScheduleSpec, Shape, StreamSchedule};
use muster_measure::{DeviceFigures, Identity, Summary};
use muster_model::Micros;
use muster_plan::{FleetPlan, Plan, StreamPlan};
use muster_platform::{ApplicationId, NamedPayload, PublishedFigures};
use muster_report::{SapDevice, SapFigures, SapVerdict};
use serde_json::Value;

/// A device so far behind is disconnected by the published test of SAP Edge.
const BEHIND: Micros = Micros::from_secs(15);
/// From here on a correlation is strongly positive. The test's author gives 0.89 and 0.98 for a
/// target that is overloaded, -0.14 to -0.10 for one that copes, and no border.
const STRONG: f64 = 0.5;

/// The figures by name; empty where the dialect has none for the devices of the plan, or a run was
/// killed.
pub(crate) fn published(
    plan: &Plan,
    schedules: &[Arc<StreamSchedule>],
    identity: Option<&Identity>,
    summary: &Summary,
    host: String,
) -> BTreeMap<String, Value> {
    let Some(identity) = identity else {
        return BTreeMap::new();
    };
    match plan.platform.dialect().published_figures {
        PublishedFigures::None => BTreeMap::new(),
        PublishedFigures::BySlot if !plan.fleets.iter().any(hono::speaks_coap) => BTreeMap::new(),
        PublishedFigures::BySlot => {
            let figures = hono::figures(plan, identity.slots(), summary);
            let value = serde_json::to_value(figures).unwrap_or_default();
            BTreeMap::from([("hono".to_owned(), value)])
        }
        PublishedFigures::ByDevice => {
            let devices = sap_devices(plan, schedules, identity.published(), summary);
            let figures = SapFigures {
                host,
                left_out: u64::from(plan.devices()).saturating_sub(devices.len() as u64),
                devices,
            };
            let value = serde_json::to_value(figures).unwrap_or_default();
            BTreeMap::from([("sap".to_owned(), value)])
        }
    }
}

fn sap_devices(
    plan: &Plan,
    schedules: &[Arc<StreamSchedule>],
    all: &[DeviceFigures],
    summary: &Summary,
) -> Vec<SapDevice> {
    let fleets = plan.fleets.iter();
    let means: Vec<Means> = fleets
        .map(|fleet| Means::of(fleet, schedules, summary))
        .collect();
    let device = |figures: &DeviceFigures| {
        let fleet = plan.fleet_of(figures.device)?;
        Some(sap_device(fleet, figures, &means[fleet.id.index()]))
    };
    all.iter().filter_map(device).collect()
}

/// The values that the devices of a fleet share.
struct Means {
    /// Messages a second that one device is to send.
    desired_rate: f64,
    /// From a device's message, or its burst, to its next one, in seconds.
    period_s: f64,
    /// Payload bytes a message.
    bytes: Option<f64>,
    /// Samples a message.
    samples: Option<u64>,
}

impl Means {
    fn of(fleet: &FleetPlan, schedules: &[Arc<StreamSchedule>], summary: &Summary) -> Self {
        let of_fleet = fleet.streams.iter();
        let specs = of_fleet
            .clone()
            .map(|stream| schedules[stream.id.index()].spec());
        let periods = specs.clone().map(period_s);
        let ledgers = of_fleet
            .clone()
            .map(|stream| &summary.streams[stream.id.index()].uplink);
        let (sent, bytes) = ledgers.fold((0, 0), |(sent, bytes), ledger| {
            (sent + ledger.sent, bytes + ledger.session.bytes_payload)
        });
        let samples = of_fleet.clone().enumerate().map(samples);
        Self {
            desired_rate: specs.map(of_one_device).sum(),
            period_s: periods.fold(0.0, f64::max),
            bytes: (sent > 0).then(|| bytes as f64 / sent as f64),
            samples: match samples.collect::<Vec<_>>()[..] {
                [only] => only,
                _ => None,
            },
        }
    }
}

fn period_s(spec: &ScheduleSpec) -> f64 {
    if let Shape::Burst { n: _, every } = &spec.shape {
        every.as_secs_f64()
    } else {
        of_one_device(spec).recip()
    }
}

/// Messages a second that one device is to send; bursts are counted by device as they are.
fn of_one_device(spec: &ScheduleSpec) -> f64 {
    if let Shape::Burst { n, every } = &spec.shape {
        f64::from(*n) / every.as_secs_f64()
    } else {
        spec.rate.get() / f64::from(spec.devices.max(1))
    }
}

/// Samples of each message, if the payload is the published test's.
fn samples((place, stream): (usize, &StreamPlan)) -> Option<u64> {
    let PayloadSpec::Template(text) = &stream.payload else {
        return None;
    };
    let samples = text.matches(r#"{"ts": "#).count();
    let named = NamedPayload::SapMeasures {
        samples: u32::try_from(samples).ok()?,
    };
    let is_it = named.spec(place as u8) == stream.payload;
    let has_id = text.contains(&ApplicationId::template(place as u8));
    (is_it && has_id).then_some(samples as u64)
}

fn sap_device(fleet: &FleetPlan, figures: &DeviceFigures, means: &Means) -> SapDevice {
    let mut name = String::new();
    fleet
        .names
        .render(fleet.index_of(figures.device), &mut name);
    // The published test's clock runs on for the pause after the last message.
    let seconds = figures.publishing.as_secs_f64() + means.period_s;
    let actual_rate = (seconds > 0.0).then(|| figures.messages as f64 / seconds);
    let missing = figures.messages - figures.acknowledged;
    let correlation = f64::from(figures.correlation_ppm) / 1e6;
    let percentile = |at: usize| figures.percentiles_ms.map(|all| all[at]);
    SapDevice {
        device: name,
        verdict: verdict(figures.lag, missing, correlation),
        seconds,
        messages: figures.messages,
        actual_rate,
        desired_rate: means.desired_rate,
        bytes_per_message: means.bytes,
        samples: means.samples.map(|samples| samples * figures.messages),
        kbytes_per_s: actual_rate
            .zip(means.bytes)
            .map(|(rate, bytes)| rate * bytes / 1_000.0),
        acknowledged: figures.acknowledged,
        missing,
        behind_s: figures.lag.as_secs_f64(),
        correlation,
        p50_ms: percentile(0),
        p95_ms: percentile(1),
        p99_ms: percentile(2),
    }
}

fn verdict(lag: Micros, missing: u64, correlation: f64) -> SapVerdict {
    if lag > BEHIND {
        SapVerdict::Behind
    } else if missing > 0 {
        SapVerdict::Invalid
    } else if correlation >= STRONG {
        SapVerdict::Overloaded
    } else {
        SapVerdict::Copes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_verdict_is_by_lag_then_by_what_is_missing_then_by_correlation() {
        assert_eq!(verdict(Micros::ZERO, 0, -0.12), SapVerdict::Copes);
        assert_eq!(verdict(Micros::ZERO, 0, 0.89), SapVerdict::Overloaded);
        assert_eq!(verdict(Micros::ZERO, 1, 0.89), SapVerdict::Invalid);
        let late = BEHIND + Micros(1);
        assert_eq!(verdict(late, 1, 0.89), SapVerdict::Behind);
    }
}
