//! Backends where messages do not surface.

use muster_plan::{FleetPlan, StreamPlan};
use muster_platform::Dialect;

use crate::view::View;

/// Checks that each backend issues commands: where messages do not surface, it has nothing to
/// consume.
pub(super) fn commands_only(
    views: &[View<'_>],
    dialect: Dialect,
    fleets: &[FleetPlan],
) -> Option<()> {
    for view in views {
        let Some(commands) = view.get("commands") else {
            return view.refuse(
                nothing_surfaces(dialect, fleets),
                "remove it, or give it `commands`",
            );
        };
        if commands.text_of("to") == "waiting" {
            let what = nothing_surfaces(dialect, fleets);
            return commands.refuse_at("to", what, "use `to: online`: no query is seen to come");
        }
    }
    Some(())
}

fn nothing_surfaces(dialect: Dialect, fleets: &[FleetPlan]) -> String {
    let mut streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let surfaces = |stream: &StreamPlan| (dialect.topic)(stream.topic.source()).surfaces;
    let silent = streams.find(|stream| stream.is_uplink() && !surfaces(stream));
    match silent.filter(|_| dialect.has_northbound) {
        Some(stream) => format!(
            "`{}` never surfaces, so that arrivals could not be distinguished from losses",
            stream.name
        ),
        None => format!("{dialect} has no northbound that a backend could consume"),
    }
}
