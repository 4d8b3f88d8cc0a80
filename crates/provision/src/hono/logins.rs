//! Checks that the credentials of devices are distinct.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use muster_plan::Plan;

use super::records::{Record, records};
use crate::ProvisionError;

/// A tenant has one device alone for each kind of login and each name that goes with it.
///
/// # Errors
/// [`ProvisionError::SameLogin`] with the first two devices that have one login between them,
/// [`ProvisionError::Identity`].
pub(crate) fn distinct(plan: &Plan) -> Result<(), ProvisionError> {
    // By hashes: the texts of all devices of a large plan are tens of megabytes.
    let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
    for record in records(plan) {
        let record = record?;
        let Some(login) = login(&record) else {
            continue;
        };
        let device = hash(&record.key());
        if *owners.entry(hash(&login)).or_insert(device) != device {
            is_alone(&record, plan)?;
        }
    }
    Ok(())
}

/// Returns the login that no other device may have.
fn login(record: &Record) -> Option<(&str, &str, &str)> {
    let login = record.login.as_ref()?;
    Some((&record.tenant, login.kind.word(), &login.auth_id))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Looks for the other one in full: two hashes may be equal by chance.
fn is_alone(record: &Record, plan: &Plan) -> Result<(), ProvisionError> {
    for other in records(plan) {
        let other = other?;
        if login(&other) == login(record) && other.device != record.device {
            let auth_id = record.login.as_ref().map(|login| login.auth_id.clone());
            return Err(ProvisionError::SameLogin {
                tenant: record.tenant.clone(),
                auth_id: auth_id.unwrap_or_default(),
                one: other.device,
                other: record.device.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn told(fleets: &[&str]) -> Result<(), String> {
        let fleets = fleets
            .iter()
            .enumerate()
            .map(|(at, fleet)| format!("  - {{ name: f{at}, {fleet}, streams: [] }}\n"));
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'coaps://127.0.0.1' ] }}\nfleet:\n{}",
            fleets.collect::<String>()
        );
        let source = Source {
            name: "t.yaml",
            text: &text,
        };
        let plan = parse(source, &Overrides::new(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        distinct(&plan).map_err(|error| error.to_string())
    }

    const OWN: &str = "count: 3, id: 'd-${index}', tenant: t1, \
        credential: { kind: psk, user: '${id}@${tenant}', secret: s }";

    #[test]
    fn devices_of_one_login_are_refused_with_their_names() {
        let same = OWN.replace("${id}@", "same@");
        let told_of = told(&[&same]).expect_err("three devices are one");
        assert!(
            told_of.starts_with(
                "distinguish the devices `d-0` and `d-1` of tenant `t1`: both log in as `same`"
            ),
            "{told_of}"
        );
        assert!(told_of.contains("user: \"${id}@${tenant}\""), "{told_of}");
        let later = OWN
            .replace("d-${index}", "e-${index}")
            .replace("${id}@", "d-2@");
        let later = later.replace("count: 3", "count: 1");
        let across = told(&[OWN, &later]).expect_err("two fleets share one");
        assert!(
            across.starts_with("distinguish the devices `d-2` and `e-0`"),
            "{across}"
        );
    }

    #[test]
    fn what_the_registry_tells_apart_is_distinct() {
        assert_eq!(told(&[OWN]), Ok(()));
        let elsewhere = OWN
            .replace("d-${index}", "e-${index}")
            .replace("${id}@", "d-${index}@")
            .replace("tenant: t1", "tenant: t2");
        assert_eq!(told(&[OWN, &elsewhere]), Ok(()), "tenants are apart");
    }
}
