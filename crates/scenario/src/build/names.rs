//! Names of devices and links, and client ids: each leads back to one device.

use std::sync::Arc;

use muster_load::{NameTable, NameTableError, Names, Octets};
use muster_plan::{
    ClientId, ClientPlan, Credential, FleetPlan, PlatformPlan, ProvisionPlan, StreamPlan,
};
use muster_platform::{Carrier, Rest};
use muster_protocol::mqtt::topic;

use super::fleet::FleetContext;
use super::secret::MEND;
use super::templates::{Variables, device_template, line};
use crate::view::View;

const NO_NUL: &str = "MQTT forbids it in texts (MQTT-1.5.4-2): mend the file";

/// Devices that texts are made for, and where their rows stand.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) first: u32,
    pub(super) count: u32,
    /// Devices from one to the next.
    pub(super) step: u32,
}

impl Rows {
    const fn row(&self, place: u32) -> u32 {
        place.saturating_mul(self.step)
    }

    /// The place in words: `device 7 (meters.csv:5)`.
    fn owner(&self, place: u32, variables: Option<&Variables<'_>>) -> String {
        let row = self.row(place);
        let line = variables.map(|variables| variables.line(row));
        let index = u64::from(self.first) + u64::from(row);
        format!("device {index}{}", line.unwrap_or_default())
    }
}

/// The names that a template gives: by a formula where it has one, else by a table.
pub(super) fn names(id: &View<'_>, variables: &Variables<'_>, rows: Rows) -> Option<Names> {
    let names = match Names::formula(id.text()) {
        Ok(names) => names,
        Err(_) => Names::Listed(Arc::new(listed(id, variables, rows)?)),
    };
    let last = rows.first.saturating_add(rows.count - 1);
    let (_, longest) = names.lengths(rows.first, last);
    fits(id, "names", longest).then_some(names)
}

/// The names that `gateway.id` gives the links of a fleet: the number of links, and of devices on each.
pub(super) fn link_names(
    fleet: &View<'_>,
    variables: &Variables<'_>,
    (links, devices): (u32, u32),
) -> Option<Option<Names>> {
    let Some(id) = fleet.get("gateway").and_then(|gateway| gateway.get("id")) else {
        return Some(None);
    };
    let rows = Rows {
        first: 0,
        count: links,
        step: devices,
    };
    names(&id, variables, rows).map(Some)
}

fn fits(id: &View<'_>, what: &str, longest: usize) -> bool {
    let fits = longest <= topic::TOPIC_MAXIMUM;
    if !fits {
        let what = format!("{what} of {longest} bytes are too long for MQTT");
        id.wrong(what, "at most 65535 bytes (MQTT 5 section 1.5.4)");
    }
    fits
}

fn listed(id: &View<'_>, variables: &Variables<'_>, rows: Rows) -> Option<NameTable> {
    let template = device_template(id, variables)?;
    if let Some((_, offset)) = template.names().find(|(name, _)| *name == "id") {
        let help = "use ${index} or a column of `data`";
        id.wrong_at(offset, "`${id}` is the name itself", help);
        return None;
    }
    let table = NameTable::build(rows.first, rows.count, |place, out| {
        let index = rows.first.saturating_add(place);
        out.push_str(&variables.render_as(&template, rows.row(place), index));
    });
    let has_columns = template.columns().next().is_some();
    let wording = Wording {
        what: "name",
        empty: "give each row of `data` a name",
        twice: match has_columns {
            true => "give each row of `data` its own name",
            false => "a name with ${index} or a column of `data`",
        },
        other: "shorter names, or fewer devices",
    };
    let same = |place| {
        let index = rows.first.saturating_add(place);
        format!(
            "`{}`",
            variables.render_as(&template, rows.row(place), index)
        )
    };
    let owner = |place| rows.owner(place, has_columns.then_some(variables));
    table
        .map_err(|error| wording.report(id, error, &owner, &same))
        .ok()
}

/// The words of problems with texts that do not lead back to one device.
struct Wording {
    what: &'static str,
    empty: &'static str,
    twice: &'static str,
    other: &'static str,
}

impl Wording {
    fn report(
        &self,
        id: &View<'_>,
        error: NameTableError,
        owner: &dyn Fn(u32) -> String,
        same: &dyn Fn(u32) -> String,
    ) {
        let what = self.what;
        match error {
            NameTableError::Empty { place } => {
                id.wrong(
                    format!("the {what} of {} is empty", owner(place)),
                    self.empty,
                );
            }
            NameTableError::Nul { place } => {
                id.wrong(
                    format!("the {what} of {} holds a NUL", owner(place)),
                    NO_NUL,
                );
            }
            NameTableError::Twice { first, second } => {
                let (first, same, second) = (owner(first), same(second), owner(second));
                let what = format!("{first} and {second} have the same {what}, {same}");
                id.wrong(what, self.twice);
            }
            NameTableError::TooLarge | _ => id.wrong(error.to_string(), self.other),
        }
    }
}

pub(super) fn client_id(view: &View<'_>, variables: &Variables<'_>) -> Option<ClientId> {
    let Some(id) = view.get("id") else {
        return Some(ClientId::Name);
    };
    if !id.text().is_empty() {
        return device_template(&id, variables).map(ClientId::Template);
    }
    let is_kept = view
        .time("session-expiry")
        .is_some_and(|expiry| expiry.get() > 0);
    if super::fleet::version(view) == muster_protocol::mqtt::Version::V311
        && !view.truth("clean-start")?
    {
        let what = "MQTT 3.1.1 takes an empty client id only with a clean session (MQTT-3.1.3-7)";
        return id.refuse(what, "`clean-start: true`, or a client id");
    }
    if is_kept {
        let what =
            "the server assigns another client id with each CONNECT, so that no session is resumed";
        id.warn(what, "`session-expiry: 0s`, or a client id");
    }
    Some(ClientId::Assigned)
}

/// The client ids of a fleet's links as a table, which is kept only to compare them with others'; none
/// where the fleet gives none.
pub(super) fn client_ids(view: &View<'_>, plan: &FleetPlan) -> Option<Option<NameTable>> {
    let variables = Variables {
        names: &plan.names,
        index: (plan.first_index, plan.first_index + (plan.devices - 1)),
        tenant: &plan.tenant,
        table: plan.data.as_deref(),
        file: view.text_of("data"),
    };
    let Some(ClientId::Template(template)) = plan.client.mqtt().map(|mqtt| &mqtt.client_id) else {
        return Some(None);
    };
    let id = view.get("client").and_then(|client| client.get("id"))?;
    let rows = Rows {
        first: plan.first_index,
        count: plan.links,
        step: plan.devices_per_link,
    };
    let mut name = String::new();
    let table = NameTable::build(0, plan.links, |link, out| {
        let names = plan.link_names.as_ref().map(|names| {
            name.clear();
            names.render(link, &mut name);
            name.as_str()
        });
        out.push_str(&variables.render_called(template, rows.row(link), names));
    });
    let uses_names = template.names().any(|(name, _)| name == "id");
    let has_columns =
        template.columns().next().is_some() || (plan.has_listed_names() && uses_names);
    let wording = Wording {
        what: "client id",
        empty: "give each row of `data` one, or write `id: \"\"`",
        twice: "a client id that differs, such as c-${id}",
        other: "shorter client ids",
    };
    let same = |_| "so that each would end the other's session".to_owned();
    let owner = |link| rows.owner(link, has_columns.then_some(&variables));
    let table = table.map_err(|error| wording.report(&id, error, &owner, &same));
    let table = table.ok()?;
    let (_, longest) = table.lengths();
    fits(&id, "client ids", longest).then_some(Some(table))
}

/// Refuses devices or client ids of one name in different fleets: two devices of one name would take
/// over each other's session, and their messages could not be distinguished.
pub(super) fn differ(views: &[View<'_>], fleets: &[FleetPlan], client_ids: &[Option<NameTable>]) {
    let of = |at: usize, place: u32, has_columns: bool| {
        let fleet = &fleets[at];
        let index = u64::from(fleet.first_index) + u64::from(place);
        let table = fleet.data.as_ref().filter(|_| has_columns);
        let line = table.map(|table| line(views[at].text_of("data"), table, place));
        format!(
            "device {index} of fleet `{}`{}",
            fleet.name,
            line.unwrap_or_default()
        )
    };
    let pairs = (0..fleets.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    for (earlier, later) in pairs {
        let (one, other) = (&fleets[earlier], &fleets[later]);
        if let (Some((theirs, ours)), Some(id)) = (common(one, other), views[later].get("id")) {
            let name = other.name_at(ours);
            let theirs = of(earlier, theirs, one.has_listed_names());
            let ours = of(later, ours, other.has_listed_names());
            let what = format!("{theirs} and {ours} have the same name, `{name}`");
            id.wrong(
                what,
                "give the fleets different `id`s, or this one another `first`",
            );
            continue;
        }
        let ids = |at: usize| client_ids.get(at).and_then(Option::as_ref);
        let client = views[later]
            .get("client")
            .and_then(|client| client.get("id"));
        if let (Some(theirs), Some(ours), Some(id)) = (ids(earlier), ids(later), client)
            && let Some((their_link, link)) = ours.common(theirs)
        {
            let theirs = of(earlier, their_link * one.devices_per_link, true);
            let ours = of(later, link * other.devices_per_link, true);
            let what = format!("{theirs} and {ours} have the same client id");
            id.wrong(what, "give the fleets different client ids");
        }
    }
}

/// The places of a device of each of two fleets that have one name.
fn common(one: &FleetPlan, other: &FleetPlan) -> Option<(u32, u32)> {
    if let (Names::Formula(a), Names::Formula(b)) = (&one.names, &other.names) {
        if !a.may_meet(b) {
            return None;
        }
        if a == b {
            let first = one.first_index.max(other.first_index);
            let (theirs, ours) = (first - one.first_index, first - other.first_index);
            return (theirs < one.devices && ours < other.devices).then_some((theirs, ours));
        }
    }
    let mut name = String::new();
    if one.devices < other.devices {
        return (0..one.devices).find_map(|place| {
            one.render_name_at(place, &mut name);
            Some((place, other.place_named(&name)?))
        });
    }
    (0..other.devices).find_map(|place| {
        other.render_name_at(place, &mut name);
        Some((one.place_named(&name)?, place))
    })
}

/// Checks what links log in with. Where a device is known by its link, the embedded gateway takes
/// it for the device's name, and matches messages without an id by it alone.
pub(super) fn links_are_named(
    view: &View<'_>,
    context: &FleetContext<'_>,
    (credential, client): (&Credential, &ClientPlan),
    streams: &[StreamPlan],
) -> Option<()> {
    let has_order = streams.iter().any(|of| of.carrier == Carrier::Order);
    let is_gateway = view.get("gateway").is_some();
    if !context.is_embedded || !context.dialect.knows_links || !has_order || is_gateway {
        return Some(());
    }
    let named = |what: &str| {
        format!(
            "`carrier: order` finds a device by its name, and for the embedded gateway that is {what}"
        )
    };
    match (credential, client.mqtt().map(|mqtt| &mqtt.client_id)) {
        (Credential::Token { token }, _) if token.expose().source() != "${id}" => {
            let help =
                "remove `secret`, so that the token is the device's name, or use another carrier";
            let secret = view.get("credential")?.get("secret")?;
            secret.refuse(named("the token"), help)
        }
        (
            Credential::None | Credential::Certificate { .. },
            Some(ClientId::Template(_) | ClientId::Assigned),
        ) => {
            let help = "remove it, or use another carrier";
            let id = view.get("client")?.get("id")?;
            id.refuse(named("the client id"), help)
        }
        (_, _) => Some(()),
    }
}

/// Checks client ids: the embedded gateway knows provisioned devices by them.
pub(super) fn clients_are_registered(
    views: &[View<'_>],
    fleets: &[FleetPlan],
    platform: &PlatformPlan,
    provision: Option<&ProvisionPlan>,
) -> Option<()> {
    let is_embedded = matches!(platform.kind, muster_plan::PlatformKind::Gateway { .. });
    if !is_embedded || provision.is_none() || platform.dialect().server.rest != Some(Rest::Devices)
    {
        return Some(());
    }
    for (view, fleet) in views.iter().zip(fleets) {
        let own = fleet.client.mqtt().map(|mqtt| &mqtt.client_id);
        let is_name = match own {
            None | Some(ClientId::Name) => true,
            Some(ClientId::Template(template)) => template.source() == "${id}",
            Some(ClientId::Assigned) => false,
        };
        if !is_name {
            let what = "the embedded gateway knows devices that were provisioned by their client ids, which \
                        are their names";
            return view.get("client")?.refuse_at("id", what, "remove it");
        }
    }
    Some(())
}

/// Checks that the texts of all devices stand for bytes; the first that does not is named.
pub(super) fn is_decodable(
    view: &View<'_>,
    octets: &Octets,
    variables: &Variables<'_>,
) -> Option<()> {
    for place in variables.places_of(octets) {
        if let Err(error) = variables.octets(octets, place) {
            let owner = variables.owner(octets.source_template(), place);
            let what = format!("the value{owner} cannot be read: {error}");
            return view.refuse(what, MEND);
        }
    }
    Some(())
}
