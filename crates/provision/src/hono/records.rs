//! Records of the registry for a plan.

use std::collections::BTreeSet;

use muster_model::LinkId;
use muster_plan::{Credential, FleetPlan, Plan};
use muster_platform::Identity;

use crate::ProvisionError;
use crate::links::{FleetNames, Link, gateways};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) tenant: String,
    pub(super) device: String,
    /// The gateway that may act for it.
    pub(super) via: Option<String>,
    /// Its credentials; none if it never connects.
    pub(super) login: Option<Login>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) kind: LoginKind,
    pub(super) auth_id: String,
    /// Never printed.
    pub(super) secret: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginKind {
    Psk,
    Password,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.kind.word();
        write!(f, "{kind} of {}", self.auth_id)
    }
}

impl LoginKind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Psk => "psk",
            Self::Password => "hashed-password",
        }
    }
}

impl Record {
    /// Its name among all tenants; neither id has a slash.
    pub(super) fn key(&self) -> String {
        key(&self.tenant, &self.device)
    }
}

pub(super) fn key(tenant: &str, device: &str) -> String {
    format!("{tenant}/{device}")
}

pub(super) fn tenants(plan: &Plan) -> BTreeSet<String> {
    let tenants = plan.fleets.iter().map(|fleet| fleet.tenant.clone());
    tenants.collect()
}

pub(super) fn count(plan: &Plan) -> u64 {
    let of = |fleet: &FleetPlan| u64::from(fleet.devices) + u64::from(gateways(fleet));
    plan.fleets.iter().map(of).sum()
}

/// All of them, each made when it is asked for: the gateways of a fleet before its devices.
pub(super) fn records(
    plan: &Plan,
) -> impl Iterator<Item = Result<Record, ProvisionError>> + Send + '_ {
    plan.fleets.iter().flat_map(|fleet| {
        let (of_gateways, of_devices) = (
            LinkRenderer::new(plan, fleet),
            LinkRenderer::new(plan, fleet),
        );
        let gateways = (0..gateways(fleet)).map(move |link| of_gateways.gateway(link));
        let devices = (0..fleet.devices).map(move |place| of_devices.device(place));
        gateways.chain(devices)
    })
}

/// Records of one link: the gateway, if it is one, before its devices.
pub(super) fn records_of(
    plan: &Plan,
    link: LinkId,
) -> impl Iterator<Item = Result<Record, ProvisionError>> + '_ {
    let has = move |fleet: &&FleetPlan| {
        let first = fleet.first_link.0;
        (first..first + fleet.links).contains(&link.0)
    };
    plan.fleets.iter().filter(has).flat_map(move |fleet| {
        let of_link = LinkRenderer::new(plan, fleet);
        let place = link.0 - fleet.first_link.0;
        let gateway = (gateways(fleet) > 0).then(|| of_link.gateway(place));
        let first = place * fleet.devices_per_link;
        let devices = first..(first + fleet.devices_per_link).min(fleet.devices);
        gateway
            .into_iter()
            .chain(devices.map(move |device| of_link.device(device)))
    })
}

/// Renders the records of a fleet.
struct LinkRenderer<'a>(FleetNames<'a>);

impl<'a> LinkRenderer<'a> {
    fn new(plan: &Plan, fleet: &'a FleetPlan) -> Self {
        Self(FleetNames::new(plan, fleet))
    }

    fn gateway(&self, link: u32) -> Result<Record, ProvisionError> {
        let link = self.0.link(link);
        Ok(Record {
            tenant: self.tenant(),
            login: self.login(&link)?,
            device: link.name,
            via: None,
        })
    }

    fn device(&self, place: u32) -> Result<Record, ProvisionError> {
        let device = self.0.device(place);
        let is_link = device.is_link();
        let login = if is_link {
            self.login(&device.link)?
        } else {
            None
        };
        Ok(Record {
            tenant: self.tenant(),
            login,
            via: (!is_link).then_some(device.link.name),
            device: device.name,
        })
    }

    fn tenant(&self) -> String {
        self.0.fleet().tenant.clone()
    }

    fn login(&self, link: &Link) -> Result<Option<Login>, ProvisionError> {
        let (name, first, directory) = (&link.name, link.first, self.0.directory());
        let (kind, identity, secret) = match &self.0.fleet().credential {
            Credential::Psk { identity, secret } => {
                let mut bytes = Vec::new();
                directory.render_octets(identity, first, name, &mut bytes);
                // Hono's identities are text; one that is none is refused below.
                let identity = String::from_utf8_lossy(&bytes).into_owned();
                (LoginKind::Psk, identity, secret)
            }
            Credential::Password { user, secret } => {
                let mut identity = String::new();
                directory.render_text(user, first, name, &mut identity);
                (LoginKind::Password, identity, secret)
            }
            Credential::None | Credential::Token { .. } | Credential::Certificate { .. } => {
                return Ok(None);
            }
        };
        let tenant = self.0.fleet().tenant.as_str();
        let parsed = Identity::parse(&identity).filter(|parsed| parsed.tenant == tenant);
        let Some(parsed) = parsed else {
            return Err(ProvisionError::Identity {
                identity,
                tenant: tenant.to_owned(),
            });
        };
        let auth_id = parsed.auth_id.to_owned();
        let mut bytes = Vec::new();
        let secret = secret.expose();
        directory.render_octets(secret, first, name, &mut bytes);
        Ok(Some(Login {
            kind,
            auth_id,
            secret: bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn all(fleet: &str) -> Vec<Record> {
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'coaps://127.0.0.1' ] }}\n\
             fleet: [ {{ {fleet}, streams: [] }} ]\n"
        );
        let source = Source {
            name: "t.yaml",
            text: &text,
        };
        let plan = parse(source, &Overrides::new(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let all: Result<Vec<_>, _> = records(&plan).collect();
        let all = all.expect("identities are right");
        assert_eq!(all.len() as u64, count(&plan));
        all
    }

    #[test]
    fn a_device_has_the_key_of_its_link() {
        let all = all("count: 3, first: 5, id: 'ns:d-${index}', tenant: t1, \
             credential: { kind: psk, user: '${id}@${tenant}', secret: 'key-${index}' }");
        assert_eq!(all[2].key(), "t1/ns:d-7");
        let login = all[2].login.as_ref().expect("it has a key");
        assert_eq!(
            (login.kind, login.auth_id.as_str()),
            (LoginKind::Psk, "ns:d-7")
        );
        assert_eq!(login.secret, b"key-7");
        assert_eq!(format!("{login:?}"), "psk of ns:d-7");
    }
}
