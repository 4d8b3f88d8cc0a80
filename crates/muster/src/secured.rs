//! Security of the links of a run, as its result describes it.

use std::collections::BTreeMap;

use muster_plan::{Credential, FleetPlan, Plan, ProvisionPlan, Scheme, TlsPlan};
use serde_json::json;

/// The check of certificates, if there were any, and each scheme of the devices that is secured.
pub(crate) fn described(plan: &Plan) -> Option<serde_json::Value> {
    let schemes = plan.platform.endpoints.iter().map(|it| it.scheme);
    let secured = schemes.filter(|scheme| scheme.is_tls() || scheme.is_dtls());
    let secured: BTreeMap<&str, Scheme> = secured.map(|scheme| (scheme.name(), scheme)).collect();
    // Who shares a key with the server looks at no certificate.
    let mut fleets = plan.fleets.iter();
    let looks = |fleet: &FleetPlan| {
        plan.scheme_of(fleet).is_dtls() && !matches!(fleet.credential, Credential::Psk { .. })
    };
    let is_shown = secured.values().any(|scheme| scheme.is_tls()) || fleets.any(looks);
    let backends = plan.backends.iter();
    let mut shown: Vec<&TlsPlan> = backends
        .filter(|backend| backend.endpoint.scheme.is_tls())
        .map(|backend| &backend.tls)
        .collect();
    shown.extend(is_shown.then_some(&plan.platform.tls));
    let provision = plan.provision.as_ref();
    let trusts_any_api = provision.is_some_and(ProvisionPlan::trusts_anybody);
    let is_any = !secured.is_empty() || trusts_any_api || !shown.is_empty();
    let resumes = |(name, scheme)| (name, plan.platform.tls.resumes(scheme));
    is_any.then(|| {
        json!({
            "insecure": trusts_any_api || shown.iter().any(|tls| tls.insecure),
            "session_resumption": secured.into_iter().map(resumes).collect::<BTreeMap<_, _>>(),
        })
    })
}
