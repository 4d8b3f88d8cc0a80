//! Registration of the devices with the platform.

mod database;
mod login;

use muster_model::DeviceSample;
use muster_plan::{
    BoardProvision, ManagementUses, PasswordHash, PemFile, PlatformKind, PlatformPlan,
    ProvisionMode, ProvisionPlan, RegistryApi, WebAddress,
};
use muster_platform::{Dialect, ManagementApi};

use self::database::database;
use self::login::login;
use super::read_back;
use super::secret::secret;
use super::transport;
use crate::view::View;
use crate::web;

/// Problem of a management API without an address, and what to do about it.
const NO_URL: (&str, &str) = (
    "`provision` has no `url`",
    "add `url: ...`, the address of the platform's management API, or write `mode: none`",
);
const NO_PROVISION: &str = "`mode: none`, or no `provision` at all";
/// Keys of a platform's registry. The first is the address of its management API.
const OF_PLATFORMS: [&str; 10] = [
    "url",
    "token",
    "user",
    "password",
    "tls",
    "gateway",
    "api",
    "mongodb",
    "password-hash",
    "bcrypt-cost",
];
/// Misbehaviour of the store of the embedded gateway.
const OF_STORE: [&str; 5] = [
    "lose-stored",
    "stall-store",
    "device-limit",
    "message-limit",
    "rest-rate",
];
/// Number of those that its database has no use for.
const OF_API: usize = 7;
const SLOWEST: f64 = 1.0 / 60.0;

/// Reads `provision`. The outer option: whether it could be read; the inner one: whether there is
/// a registry.
pub(super) fn provision(root: &View<'_>, platform: &PlatformPlan) -> Option<Option<ProvisionPlan>> {
    let provision = registration(root, platform)?;
    has_store(&root.get("platform")?, platform, provision.as_ref())?;
    Some(provision)
}

fn registration(root: &View<'_>, platform: &PlatformPlan) -> Option<Option<ProvisionPlan>> {
    let Some(view) = root.get("provision") else {
        return Some(None);
    };
    let mode = match view.text_of("mode") {
        "verify" => ProvisionMode::Verify,
        "none" => ProvisionMode::None,
        "on-refusal" => ProvisionMode::OnRefusal,
        _ => ProvisionMode::Auto,
    };
    let dialect = platform.dialect();
    if dialect.management.is_none() {
        let why = format!("{dialect} has no registry of devices");
        return nobody(&view, mode, (&why, NO_PROVISION));
    }
    if mode == ProvisionMode::OnRefusal {
        can_wait_for_refusals(&view, dialect)?;
    }
    let is_embedded = matches!(platform.kind, PlatformKind::Gateway { .. });
    if is_embedded && dialect.server.rest.is_none() {
        let why = "the embedded gateway takes every device";
        return nobody(&view, mode, (why, NO_PROVISION));
    }
    if is_embedded {
        return embedded(&view, mode);
    }
    if let Some(uri) = view.get("mongodb") {
        let why = ("the registry's database is written to", "keep one of both");
        has_none(&view, &OF_PLATFORMS[..OF_API], why)?;
        let mongodb = Some(secret(&uri)?);
        let rest = rest(&view, mode, "")?;
        return Some(Some(ProvisionPlan { mongodb, ..rest }));
    }
    let api = match view.get("url") {
        Some(url) => url.accept(web::read(url.text()))?,
        None => {
            has_none(&view, &OF_PLATFORMS[1..], NO_URL)?;
            return without_api(&view, mode);
        }
    };
    let gateway = gateway(&view, dialect)?;
    let registry = registry(&view);
    let credential = login(&view, &api)?;
    if dialect.management == Some(ManagementApi::ThingsBoard) && credential.is_none() {
        let what = "`provision` has no login, and ThingsBoard lets nobody in without one";
        let help = "add `user: ...` and `password: ...` of a tenant's administrator";
        return view.refuse(what, help);
    }
    let (ca, insecure) = trust(&view, &api, platform)?;
    let rest = rest(&view, mode, &gateway)?;
    Some(Some(ProvisionPlan {
        api: Some(api),
        registry,
        credential,
        ca,
        insecure,
        ..rest
    }))
}

/// Checks that misbehaviour of the embedded gateway's store has a store: it keeps devices and what they send only if
/// the run creates the devices.
fn has_store(
    view: &View<'_>,
    platform: &PlatformPlan,
    provision: Option<&ProvisionPlan>,
) -> Option<()> {
    let creates = provision.is_some_and(|it| it.mode == ProvisionMode::Auto);
    if creates || !matches!(platform.kind, PlatformKind::Gateway { .. }) {
        return Some(());
    }
    let Some(behaviour) = view.get("behaviour") else {
        return Some(());
    };
    let mut stray = OF_STORE
        .iter()
        .filter_map(|key| Some((key, behaviour.get(key)?)));
    let Some((key, stray)) = stray.next() else {
        return Some(());
    };
    let what = format!(
        "`{key}` has no meaning here: the gateway stores nothing unless the run creates its devices"
    );
    stray.refuse(what, "add `provision: { mode: auto }`, or remove it")
}

/// Returns the uses of the management API after the run has begun.
pub(super) fn uses(
    provision: Option<&ProvisionPlan>,
    reads_back: Option<DeviceSample>,
) -> ManagementUses {
    ManagementUses {
        registers_refused: provision.is_some_and(|it| it.mode == ProvisionMode::OnRefusal),
        reads_back,
    }
}

/// Checks that single devices can be registered while a run goes on: with Hono's management API.
fn can_wait_for_refusals(view: &View<'_>, dialect: Dialect) -> Option<()> {
    let is_hono = dialect.management == Some(ManagementApi::HonoRegistry);
    if is_hono && view.get("mongodb").is_none() {
        return Some(());
    }
    let what = "devices are registered on refusal by the management API of Hono alone";
    view.refuse_at("mode", what, "use `mode: auto`")
}

/// Reads the gateway that the devices belong to there, with platforms whose devices do.
fn gateway(view: &View<'_>, dialect: Dialect) -> Option<String> {
    if dialect.management != Some(ManagementApi::SapEdge) {
        return Some(String::new());
    }
    let Some(gateway) = view.get("gateway") else {
        let what = "`provision` does not say which gateway the devices belong to";
        return view.refuse(what, "add `gateway: ...`, its alternate id there");
    };
    Some(gateway.text().to_owned())
}

/// Reads the version of the management API, with platforms that have had several.
fn registry(view: &View<'_>) -> RegistryApi {
    match view.text_of("api") {
        "pre-1.0" => RegistryApi::Legacy,
        _ => RegistryApi::V1,
    }
}

/// Reads the hash of passwords, with platforms that are sent hashes.
fn password_hash(view: &View<'_>, mode: ProvisionMode) -> Option<PasswordHash> {
    if view.text_of("password-hash") != "bcrypt" {
        let help = "add `password-hash: bcrypt`, or remove it";
        has_none(view, &["bcrypt-cost"], ("the hash is sha-512", help))?;
        return Some(PasswordHash::Sha512);
    }
    let cost = view.optional("bcrypt-cost", |_| view.whole("bcrypt-cost"))?;
    let cost = cost.unwrap_or(PasswordHash::BCRYPT_COST);
    if let (ProvisionMode::OnRefusal, Some(hash)) = (mode, view.get("password-hash")) {
        let what = "with `mode: on-refusal`, bcrypt hashes during the run, on the CPUs that send";
        hash.warn(what, "`mode: auto` hashes before the run; or use `sha-512`");
    }
    Some(PasswordHash::Bcrypt { cost })
}

/// Reads the settings of ThingsBoard.
fn board(view: &View<'_>, mode: ProvisionMode) -> Option<BoardProvision> {
    let count = view.optional("count", |_| view.truth("count"))?;
    let count = count.unwrap_or(false);
    let read_back = read_back::is_wanted(view)?;
    let database = database(view)?;
    let calls = read_back && database.is_none();
    let asked = [("count", count), ("read-back", calls)];
    let idle = asked.into_iter().find(|(_, is_asked)| *is_asked);
    if let (Some((key, _)), ProvisionMode::None) = (idle, mode) {
        let what =
            format!("`{key}` has no meaning here: with `mode: none` the platform is not called");
        return view.refuse_at(key, what, &format!("`mode: verify`, or remove `{key}`"));
    }
    Some(BoardProvision {
        profile: view.get("profile").map(|profile| profile.text().to_owned()),
        customers: view
            .optional("customers", |_| view.whole("customers"))?
            .unwrap_or(0),
        bulk: view.optional("bulk", |_| view.whole("bulk"))?,
        count,
        read_back,
        database,
    })
}

fn rest(view: &View<'_>, mode: ProvisionMode, gateway: &str) -> Option<ProvisionPlan> {
    let (rate, timeout) = (view.rate("rate")?, view.time("timeout")?);
    if rate.get() < SLOWEST {
        let what = "fewer than one call a minute: nobody could wait for the last one";
        return view.refuse_at("rate", what, "at least 1/min");
    }
    Some(ProvisionPlan {
        mode,
        remove: view.truth("remove")?,
        api: None,
        registry: RegistryApi::V1,
        mongodb: None,
        credential: None,
        ca: None,
        insecure: false,
        gateway: gateway.to_owned(),
        password_hash: password_hash(view, mode)?,
        board: board(view, mode)?,
        rate,
        pending: view.whole("pending")?,
        timeout,
    })
}

fn has_none(view: &View<'_>, keys: &[&str], (why, help): (&str, &str)) -> Option<()> {
    let mut stray = keys.iter().filter_map(|key| Some((key, view.get(key)?)));
    let Some((key, stray)) = stray.next() else {
        return Some(());
    };
    stray.refuse(format!("`{key}` has no meaning here: {why}"), help)
}

/// Provisions nothing, and reports that where something was asked for.
fn nobody(
    view: &View<'_>,
    mode: ProvisionMode,
    (why, help): (&str, &str),
) -> Option<Option<ProvisionPlan>> {
    let what = format!("nothing is provisioned: {why}");
    match mode {
        ProvisionMode::None => {}
        ProvisionMode::Auto => view.warn(what, help),
        ProvisionMode::Verify => {
            let what = format!("nothing can be verified: {why}");
            return view.refuse_at("mode", what, help);
        }
        ProvisionMode::OnRefusal => {
            let what = format!("no refused device can be registered: {why}");
            return view.refuse_at("mode", what, help);
        }
    }
    Some(None)
}

/// Without a management API a run can still read back from a database.
fn without_api(view: &View<'_>, mode: ProvisionMode) -> Option<Option<ProvisionPlan>> {
    if !read_back::is_wanted(view)? {
        return nobody(view, mode, NO_URL);
    }
    if view.get("read-back")?.get("from").is_none() {
        let what = "`read-back` has nothing to read: `provision` has no `url`";
        let help = "add `url: ...`, or `read-back: { from: \"postgresql://...\" }`";
        return view.refuse_at("read-back", what, help);
    }
    if mode != ProvisionMode::None {
        return view.refuse(NO_URL.0, NO_URL.1);
    }
    rest(view, mode, "").map(Some)
}

/// The embedded gateway's management API is the run's own, and begins empty.
fn embedded(view: &View<'_>, mode: ProvisionMode) -> Option<Option<ProvisionPlan>> {
    if mode == ProvisionMode::Verify {
        let what = "the embedded gateway begins without devices: there is nothing to verify";
        return view.refuse_at("mode", what, "`mode: auto`");
    }
    rest(view, mode, view.text_of("gateway")).map(Some)
}

fn trust(
    view: &View<'_>,
    api: &WebAddress,
    platform: &PlatformPlan,
) -> Option<(Option<PemFile>, bool)> {
    let Some(tls) = view.get("tls") else {
        return Some((platform.tls.ca.clone(), platform.tls.insecure));
    };
    if !api.is_tls {
        let what = "`tls` has no meaning here: `url` is not `https`";
        return tls.refuse(what, "an `https` address, or remove it");
    }
    let insecure = transport::insecure(&tls, "`ca` says whom to trust")?;
    Some((transport::certificates(&tls, "ca")?, insecure))
}
