//! Devices of ThingsBoard for a plan.

use muster_model::DeviceId;
use muster_plan::{Credential, FleetPlan, Plan, Secret};
use muster_platform::board_rest::PROVISIONING_TOKEN;

use crate::ProvisionError;
use crate::links::{FleetNames, Link, gateways};

/// A device that is wanted.
pub(super) struct Record {
    /// Its place among all.
    pub(super) place: u64,
    /// Its place in the plan; none of a gateway, which has no messages by itself.
    pub(super) device: Option<DeviceId>,
    pub(super) name: String,
    /// Its access token; none if it never connects by itself.
    pub(super) token: Option<Secret>,
    pub(super) is_gateway: bool,
}

/// Checks that each fleet logs in by tokens.
///
/// # Errors
/// [`ProvisionError::NoToken`] for the first that does not.
pub(super) fn check(plan: &Plan) -> Result<(), ProvisionError> {
    let has_none = |fleet: &&FleetPlan| !matches!(fleet.credential, Credential::Token { .. });
    match plan.fleets.iter().find(has_none) {
        Some(fleet) => Err(ProvisionError::NoToken {
            fleet: fleet.name.clone(),
        }),
        None => Ok(()),
    }
}

pub(super) fn count(plan: &Plan) -> u64 {
    let of = |fleet: &FleetPlan| u64::from(fleet.devices) + u64::from(gateways(fleet));
    fleets(plan).map(of).sum()
}

/// All of them, each made when it is asked for: the gateways of a fleet before its devices.
pub(super) fn records(plan: &Plan) -> impl Iterator<Item = Record> + Send + '_ {
    let all = fleets(plan).flat_map(|fleet| {
        let (of_gateways, of_devices) =
            (FleetNames::new(plan, fleet), FleetNames::new(plan, fleet));
        let gateways = (0..gateways(fleet)).map(move |place| gateway(&of_gateways, place));
        let devices = (0..fleet.devices).map(move |place| device(&of_devices, place));
        gateways.chain(devices)
    });
    (0..)
        .zip(all)
        .map(|(place, record)| Record { place, ..record })
}

/// The devices whose messages are read back, with their names.
pub(super) fn read_back(plan: &Plan) -> impl Iterator<Item = (DeviceId, String)> + Send + '_ {
    let sample = plan.management.reads_back;
    records(plan)
        .filter_map(|record| Some((record.device?, record.name)))
        .filter(move |(device, _)| sample.is_some_and(|sample| sample.holds(*device)))
}

/// The fleets whose devices are to be there; others ask the platform to make them.
fn fleets(plan: &Plan) -> impl Iterator<Item = &FleetPlan> {
    plan.fleets.iter().filter(|fleet| match &fleet.credential {
        Credential::Token { token } => token.expose().source() != PROVISIONING_TOKEN,
        Credential::None
        | Credential::Password { .. }
        | Credential::Certificate { .. }
        | Credential::Psk { .. } => true,
    })
}

fn gateway(names: &FleetNames<'_>, place: u32) -> Record {
    let link = names.link(place);
    Record {
        place: 0,
        device: None,
        token: token(names, &link),
        name: link.name,
        is_gateway: true,
    }
}

/// A device behind a gateway has no token: the gateway speaks for it.
fn device(names: &FleetNames<'_>, place: u32) -> Record {
    let device = names.device(place);
    let is_link = device.is_link();
    Record {
        place: 0,
        device: Some(DeviceId(names.fleet().first_device.0 + place)),
        token: is_link.then(|| token(names, &device.link)).flatten(),
        name: device.name,
        is_gateway: is_link && names.fleet().is_gateway,
    }
}

fn token(names: &FleetNames<'_>, link: &Link) -> Option<Secret> {
    let Credential::Token { token } = &names.fleet().credential else {
        return None;
    };
    let (first, mut text) = (link.first, String::new());
    let directory = names.directory();
    directory.render_text(token.expose(), first, &link.name, &mut text);
    Some(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn all(fleets: &str) -> Vec<String> {
        let text = format!(
            "name: t\nplatform: {{ kind: thingsboard, devices: [ 'mqtt://127.0.0.1' ] }}\n\
             fleet: [ {fleets} ]\n"
        );
        let source = Source {
            name: "t.yaml",
            text: &text,
        };
        let plan = parse(source, &Overrides::new(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        check(&plan).expect("all have tokens");
        let all = records(&plan).map(|record| {
            let token = record.token.map(|token| token.expose().clone());
            let gateway = if record.is_gateway { " gateway" } else { "" };
            format!(
                "{} {} {}{gateway}",
                record.place,
                record.name,
                token.unwrap_or_default()
            )
        });
        let all: Vec<_> = all.collect();
        assert_eq!(all.len() as u64, count(&plan));
        all
    }

    #[test]
    fn names_and_tokens_are_those_of_both_generations() {
        let now = all("{ count: 2, first: 7, id: 'DW${index:08}', streams: [] }");
        assert_eq!(now, ["0 DW00000007 DW00000007", "1 DW00000008 DW00000008"]);
        let of_2019 = all("{ count: 1, id: 'Device ${index:020}', \
             credential: { kind: token, secret: '${index:020}' }, streams: [] }");
        assert_eq!(
            of_2019,
            ["0 Device 00000000000000000000 00000000000000000000"]
        );
    }

    #[test]
    fn a_gateway_has_the_token_and_its_devices_have_none() {
        let all = all("{ count: 3, id: 'DW${index:08}', gateway: { devices: 2 }, streams: [] }");
        let wanted = [
            "0 GW00000000 GW00000000 gateway",
            "1 GW00000001 GW00000001 gateway",
            "2 DW00000000 ",
            "3 DW00000001 ",
            "4 DW00000002 ",
        ];
        assert_eq!(all, wanted);
    }
}
