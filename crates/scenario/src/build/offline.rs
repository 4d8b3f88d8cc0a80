//! Time in which the devices of a fleet are offline on purpose.

use muster_model::Micros;
use muster_plan::{ConnectPlan, MqttSettings, Offline, Phases, StreamKind, StreamPlan};
use muster_protocol::mqtt::{Qos, Version};

use crate::view::View;

/// Reads `offline`. The outer option: whether it could be read; the inner one: whether it is there.
pub(super) fn offline(fleet: &View<'_>, phases: &Phases) -> Option<Option<Offline>> {
    let Some(view) = fleet.get("offline") else {
        return Some(None);
    };
    let (from, lasts) = (view.time("at")?, view.time("for")?);
    let end = phases.warm_up + phases.measure;
    if from + lasts > end {
        let what = format!("the devices would be offline beyond the last message, at {end}");
        let help = "an earlier `at`, which counts from the start of warm-up, a shorter `for`, or a \
                    longer `phases.measure`";
        return view.refuse(what, help);
    }
    Some(Some(Offline {
        from,
        until: from + lasts,
        is_abrupt: view.truth("abrupt")?,
    }))
}

/// Time until all links of a fleet have come back.
fn ramp(links: u32, connect: &ConnectPlan) -> Micros {
    Micros::from_secs_f64(f64::from(links) / connect.rate.get())
}

/// Says aloud where nothing can wait for the devices: sessions that end before they are back, and
/// subscriptions at QoS 0.
pub(super) fn warn(
    fleet: &View<'_>,
    client: &MqttSettings,
    streams: &[StreamPlan],
    (away, links, connect): (&Option<Offline>, u32, &ConnectPlan),
) {
    let (Some(view), Some(away)) = (fleet.get("offline"), away) else {
        return;
    };
    let back = away.until - away.from + ramp(links, connect);
    let listens = |stream: &&StreamPlan| {
        matches!(
            stream.kind,
            StreamKind::Command { .. } | StreamKind::Receive
        )
    };
    let mut listening = streams.iter().filter(listens);
    if listening.clone().next().is_none() {
        return;
    }
    let is_kept = match client.version {
        Version::V311 => !client.clean_start,
        Version::V5 => {
            !client.clean_start && Micros::from_secs(client.session_expiry_s.into()) >= back
        }
    };
    if !is_kept {
        let what = format!("sessions do not outlast the {back} until the last device is back");
        let help =
            "`client: { clean-start: false, session-expiry: ... }` with a time that is longer";
        view.warn(what, help);
    }
    if let Some(stream) = listening.find(|stream| stream.qos == Qos::AtMostOnce) {
        let what = format!("stream `{}` subscribes at QoS 0", stream.name);
        let help = "platforms need not keep QoS 0 for devices that are offline: use `qos: 1`";
        view.warn(what, help);
    }
}
