//! Backends that issue commands by calls of the platform's REST API.

use muster_plan::{BackendPlan, Endpoint, Northbound, PlatformPlan, RpcNorthbound, Secret};

use super::addresses::check_port;
use super::secret::{secret, secret_bytes};
use super::target::tls_of;
use crate::endpoint;
use crate::view::View;

/// Keys of a backend that have no meaning where it only makes calls.
const STRAY: [&str; 4] = ["url", "webhook", "shared", "pause"];
/// The REST API of the embedded gateway, whose port it chooses.
const EMBEDDED: &str = "http://127.0.0.1:0";

/// Reads a backend with `rpc`. Address and login that it does not name are those of `provision`.
pub(super) fn rpc(
    root: &View<'_>,
    of_platform: Option<&PlatformPlan>,
    backend: &View<'_>,
) -> Option<BackendPlan> {
    let view = backend.get("rpc")?;
    is_alone(backend)?;
    let is_embedded = root.get("platform")?.text_of("kind") == "gateway";
    let timeout = view.time("timeout")?;
    if timeout < RpcNorthbound::TIMEOUT_MIN {
        let what = "ThingsBoard waits for a device for 5 s at least";
        return view.refuse_at("timeout", what, "at least 5s");
    }
    let rpc = RpcNorthbound {
        pending: view.whole("pending")?,
        timeout,
        is_old: view.text_of("api") == "plugins",
    };
    let provision = root.get("provision");
    let (endpoint, user, password) = if is_embedded {
        knows_devices(provision.as_ref(), &view)?;
        (view.accept(endpoint::read(EMBEDDED))?, None, None)
    } else {
        let (user, password) = login(backend, provision.as_ref(), &view)?;
        (
            address(&view, provision.as_ref())?,
            Some(user),
            Some(password),
        )
    };
    let tls = tls_of(backend, of_platform, Some(&endpoint))?;
    Some(BackendPlan {
        name: backend.text_of("name").to_owned(),
        endpoint,
        tls,
        northbound: Northbound::Rpc(rpc),
        user,
        password,
        consumers: 1,
        shared: None,
        pause: Vec::new(),
        issues_commands: true,
    })
}

fn is_alone(backend: &View<'_>) -> Option<()> {
    for key in STRAY {
        if let Some(stray) = backend.get(key) {
            let what = format!("`{key}` has no meaning with `rpc`, which consumes nothing");
            return stray.refuse(what, "remove it, or give it to a backend without `rpc`");
        }
    }
    let Some(commands) = backend.get("commands") else {
        let help = "add `commands: { rate: 50/s, mode: two-way }`, or remove it";
        return backend.refuse(
            "a backend with `rpc` issues commands, and this one none",
            help,
        );
    };
    if commands.text_of("to") == "waiting" {
        let what = "a backend with `rpc` sees no queries that it could answer";
        return commands.refuse_at("to", what, "use `to: online`");
    }
    Some(())
}

/// Checks that the embedded gateway has ids of the devices, which it keeps only if the run creates them.
fn knows_devices(provision: Option<&View<'_>>, view: &View<'_>) -> Option<()> {
    if provision.is_some_and(|it| it.text_of("mode") == "auto") {
        return Some(());
    }
    let what = "the embedded gateway knows no device by an id unless the run creates its devices";
    view.refuse(what, "add `provision: { mode: auto }`")
}

fn address(view: &View<'_>, provision: Option<&View<'_>>) -> Option<Endpoint> {
    let url = view.get("url").or_else(|| provision?.get("url"));
    let Some(url) = url else {
        let help = "add `rpc: { url: \"http://thingsboard:8080\" }`, or `provision.url`";
        return view.refuse("the address of ThingsBoard's REST API is not known", help);
    };
    let endpoint = url.accept(endpoint::read(url.text()))?;
    check_port(&url, &endpoint);
    Some(endpoint)
}

/// The login of the backend, else that of `provision`, which is for its own address alone.
fn login(
    backend: &View<'_>,
    provision: Option<&View<'_>>,
    view: &View<'_>,
) -> Option<(Secret, Secret<Vec<u8>>)> {
    let of = match backend.get("user").or_else(|| backend.get("password")) {
        Some(_) => Some(backend),
        None => provision.filter(|it| {
            view.get("url")
                .is_none_or(|url| it.text_of("url") == url.text())
        }),
    };
    let user = of.and_then(|of| of.get("user"));
    let password = of.and_then(|of| of.get("password"));
    let (Some(user), Some(password)) = (user, password) else {
        let what = "ThingsBoard takes no calls without a login";
        let help = "add `user` and `password` of a tenant's administrator to the backend, or to `provision`, whose \
                    login is only for its own `url`";
        return view.refuse(what, help);
    };
    Some((secret(&user)?, secret_bytes(&password)?))
}
