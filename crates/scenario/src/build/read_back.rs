//! Read-back of what the platform has stored.

use muster_plan::{BackendPlan, FleetPlan, ProvisionPlan, STORE};
use muster_platform::Carrier;

use super::target;
use crate::view::View;

/// Returns true if what is stored is read back; checks that each stored message can be joined to the one that was sent.
pub(super) fn read_back(
    root: &View<'_>,
    fleets: &[FleetPlan],
    (backends, provision): (Option<&[BackendPlan]>, Option<&ProvisionPlan>),
) -> Option<bool> {
    if !provision.is_some_and(|it| it.board.read_back) {
        return Some(false);
    }
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
        let carries = match &stream.carrier {
            Carrier::Payload => true,
            Carrier::Field(path) => path.ends_with("/musterId"),
            Carrier::Property
            | Carrier::ApplicationId
            | Carrier::Blind(_)
            | Carrier::Order
            | Carrier::None => false,
        };
        if !carries {
            let what = format!(
                "`read-back` cannot join what is stored to the messages of {name}: none carries its id as a value"
            );
            let help = "`carrier: payload`, with a payload that has `musterId` among its values";
            return view.refuse_at("read-back", what, help);
        }
    }
    if backends
        .into_iter()
        .flatten()
        .any(|backend| backend.name == STORE)
    {
        let what = format!("a backend is named `{STORE}`, as is what is read back");
        return view.refuse_at("read-back", what, "give the backend another name");
    }
    Some(true)
}
