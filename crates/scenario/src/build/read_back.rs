//! Read-back of what the platform has stored.

use muster_judge::Share;
use muster_load::Payload;
use muster_model::DeviceSample;
use muster_plan::{BackendPlan, FleetPlan, ProvisionPlan, STORE, StreamPlan};
use muster_platform::{Carrier, field_before};

use super::target;
use crate::view::View;

/// The key of the value that names a message.
const KEY: &str = "musterId";

/// Returns true if `provision` wants to have read back what is stored, of all devices or of a sample.
pub(super) fn is_wanted(provision: &View<'_>) -> Option<bool> {
    let wanted = provision.optional("read-back", |view| match view.is_map() {
        true => Some(true),
        false => provision.truth("read-back"),
    })?;
    Some(wanted.unwrap_or(false))
}

/// Returns the devices whose stored messages are to be read back, if any are; checks that they can be.
pub(super) fn reads_back(
    root: &View<'_>,
    fleets: &[FleetPlan],
    backends: Option<&[BackendPlan]>,
    provision: Option<&ProvisionPlan>,
) -> Option<Option<DeviceSample>> {
    if !provision.is_some_and(|it| it.board.read_back) {
        return Some(None);
    }
    can_be_joined(root, fleets)?;
    has_its_name(root, backends.unwrap_or_default())?;
    let of = fleets.iter().map(|fleet| fleet.devices).sum();
    sample(
        &root.get("provision")?.get("read-back")?,
        of,
        root.whole("seed")?,
    )
    .map(Some)
}

/// Reads the number or the share of the devices that are to be read; all where none is given.
fn sample(view: &View<'_>, of: u32, seed: u64) -> Option<DeviceSample> {
    let devices = view.optional("devices", |_| view.whole::<u32>("devices"))?;
    let share = view.optional("share", |_| view.share("share"))?;
    match (devices, share) {
        (Some(_), Some(_)) => {
            let what = "both `devices` and `share` give the size of the sample";
            view.refuse_at("share", what, "keep one of both")
        }
        (Some(devices), None) if devices > of => {
            let what = format!("a sample of {devices} devices, and the fleets have {of}");
            view.refuse_at(
                "devices",
                what,
                "fewer devices, or `read-back: true` for all of them",
            )
        }
        (Some(devices), None) => Some(DeviceSample::new(devices, of, seed)),
        (None, Some(Share::ZERO)) => view.refuse_at(
            "share",
            "a sample of no devices: nothing would be read",
            "such as 10%",
        ),
        (None, Some(share)) => {
            let devices = (share.as_fraction() * f64::from(of)).round();
            Some(DeviceSample::new(devices as u32, of, seed))
        }
        (None, None) => Some(DeviceSample::all(of)),
    }
}

/// Checks that what is read back can be joined to the messages that were sent.
fn can_be_joined(root: &View<'_>, fleets: &[FleetPlan]) -> Option<()> {
    let view = root.get("provision")?;
    let dialect = target::dialect(&root.get("platform")?);
    let streams = fleets.iter().flat_map(|fleet| {
        let streams = fleet.streams.iter().filter(|stream| stream.is_uplink());
        streams.map(move |stream| (fleet, stream))
    });
    for (fleet, stream) in streams {
        let name = format!("{}/{}", fleet.name, stream.name);
        if !(dialect.topic)(stream.topic.source()).has_instants {
            let what = format!("`read-back` finds no messages of {name}: they are not time series");
            return view.refuse_at("read-back", what, "remove the stream, or `read-back`");
        }
        if !is_stored_with_id(stream) {
            let what = format!(
                "`read-back` cannot join what is stored to the messages of {name}: none carries its id as the value \
                 `{KEY}`"
            );
            let help = "`carrier: payload`, with `\"musterId\": \"${stamp}\"` among the values of the payload";
            return view.refuse_at("read-back", what, help);
        }
    }
    Some(())
}

/// Checks that no backend has the name of the store.
fn has_its_name(root: &View<'_>, backends: &[BackendPlan]) -> Option<()> {
    if backends.iter().all(|backend| backend.name != STORE) {
        return Some(());
    }
    let what = format!("a backend is named `{STORE}`, as is what is read back");
    let view = root.get("provision")?;
    view.refuse_at("read-back", what, "give the backend another name")
}

/// Returns true if the platform stores the id of a message as a value with our key.
fn is_stored_with_id(stream: &StreamPlan) -> bool {
    match &stream.carrier {
        Carrier::Payload => {
            let payload = Payload::compile(&stream.payload).ok();
            let anchor = payload.as_ref().and_then(Payload::stamp_anchor);
            anchor.is_some_and(|anchor| field_before(anchor) == KEY)
        }
        Carrier::Field(path) => {
            *path == format!("/{KEY}") || path.ends_with(&format!("/values/{KEY}"))
        }
        Carrier::Property
        | Carrier::ApplicationId
        | Carrier::Blind(_)
        | Carrier::Order
        | Carrier::None => false,
    }
}
