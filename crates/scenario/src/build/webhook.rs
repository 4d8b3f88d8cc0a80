//! Webhooks: backends to which the platform pushes messages.

use muster_plan::{
    Endpoint, Scheme, Secret, TlsPlan, WebhookNorthbound, WebhookProof, is_loopback,
};

use super::secret::secret;
use super::transport;
use crate::endpoint;
use crate::view::View;

/// A webhook as a backend has it.
pub(super) struct Webhook {
    pub(super) endpoint: Endpoint,
    pub(super) tls: TlsPlan,
    pub(super) northbound: WebhookNorthbound,
    /// The secret; none where the backend's user and password are the proof, or nothing is.
    pub(super) secret: Option<Secret<Vec<u8>>>,
}

/// Keys of a backend that have no meaning where the platform connects.
const STRAY: [&str; 3] = ["url", "shared", "commands"];
/// Keys of TLS that have no meaning where we show a certificate and look at none.
const STRAY_TLS: [&str; 3] = ["ca", "insecure", "session-resumption"];

/// Reads `webhook` of a backend.
pub(super) fn webhook(platform: &View<'_>, backend: &View<'_>, view: &View<'_>) -> Option<Webhook> {
    is_alone(backend)?;
    let endpoint = view.read("listen", endpoint::read)?;
    if platform.text_of("kind") == "gateway" {
        is_pushed_to(platform, backend, &endpoint)?;
    }
    can_listen(view, &endpoint)?;
    let tls = tls(backend, view, &endpoint)?;
    let secret = view.optional("secret", secret)?;
    let northbound = WebhookNorthbound {
        proof: proof(backend, view)?,
        topic: header(view, "topic-header")?,
        batches: view.truth("batches")?,
    };
    if northbound.proof.is_none() && !is_loopback(&endpoint.host) {
        let what = format!("whoever reaches {endpoint} can add arrivals to this run");
        view.warn(
            what,
            "add `secret: \"${env:HOOK_SECRET}\"`, and the same to the platform's rule",
        );
    }
    Some(Webhook {
        endpoint,
        tls,
        northbound,
        secret: secret.map(|it| Secret::new(it.expose().clone().into_bytes())),
    })
}

fn is_alone(backend: &View<'_>) -> Option<()> {
    for key in STRAY {
        if let Some(stray) = backend.get(key) {
            let what =
                format!("`{key}` has no meaning with `webhook`, where the platform connects");
            return stray.refuse(what, "remove it, or `webhook`");
        }
    }
    if backend.whole("consumers") != Some(1_u16) {
        let what = "several consumers cannot listen on one address";
        return backend.refuse_at(
            "consumers",
            what,
            "remove it; a webhook takes many connections",
        );
    }
    Some(())
}

/// Checks that the embedded gateway can push there.
fn is_pushed_to(platform: &View<'_>, backend: &View<'_>, endpoint: &Endpoint) -> Option<()> {
    let hooks = platform.list("backend").into_iter();
    let what = if endpoint.scheme == Scheme::Https {
        "the embedded gateway pushes over `http` alone"
    } else if backend.get("user").is_some() {
        "the embedded gateway shows a secret, and no user name"
    } else if hooks.filter(|it| it.get("webhook").is_some()).count() > 1 {
        "the embedded gateway pushes to one webhook"
    } else {
        return Some(());
    };
    let help = "such as one `webhook: { listen: \"http://127.0.0.1:8088/muster\", secret: ... }`";
    backend.refuse(what, help)
}

/// Checks that an address is one of a machine, with a port that the platform can be given.
fn can_listen(view: &View<'_>, endpoint: &Endpoint) -> Option<()> {
    if endpoint.port == 0 {
        let help = "a port of this machine, such as http://0.0.0.0:8088/muster";
        return view.refuse_at("listen", "the platform must know the port", help);
    }
    Some(())
}

fn tls(backend: &View<'_>, view: &View<'_>, endpoint: &Endpoint) -> Option<TlsPlan> {
    let is_tls = endpoint.scheme == Scheme::Https;
    let Some(tls) = backend.get("tls") else {
        if is_tls {
            let what = "over https:// Muster shows a certificate, and there is none";
            return view.refuse_at(
                "listen",
                what,
                "add `tls: { cert: ..., key: ... }` to the backend",
            );
        }
        return Some(TlsPlan::default());
    };
    transport::is_used(&tls, [endpoint.scheme])?;
    if let Some(stray) = STRAY_TLS.into_iter().find_map(|key| tls.written(key)) {
        let what = "a webhook shows a certificate, and looks at none";
        return stray.refuse(what, "keep `cert` and `key` alone");
    }
    if tls.get("cert").is_none() {
        return tls.refuse(
            "a webhook over https:// has no certificate",
            "add `cert` and `key`",
        );
    }
    transport::tls(&tls)
}

fn proof(backend: &View<'_>, view: &View<'_>) -> Option<Option<WebhookProof>> {
    let header = header(view, "secret-header")?;
    match (view.get("secret"), backend.get("user")) {
        (Some(_), Some(user)) => user.refuse(
            "a request shows either a secret or a user name and a password",
            "keep `secret`, or `user` and `password`",
        ),
        (Some(_), None) => {
            let header = header.unwrap_or_else(|| WebhookNorthbound::HEADER.to_owned());
            Some(Some(WebhookProof::Secret(header)))
        }
        (None, _) if header.is_some() => view.refuse_at(
            "secret-header",
            "there is no secret for this header",
            "add `secret`",
        ),
        (None, Some(user)) if backend.get("password").is_none() => {
            user.refuse("a user name without a password", "add `password`")
        }
        (None, Some(_)) => Some(Some(WebhookProof::Basic)),
        (None, None) => Some(None),
    }
}

/// The name of a header, in lower case (RFC 9110 section 5.1).
fn header(view: &View<'_>, key: &str) -> Option<Option<String>> {
    view.optional(key, |name| {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.text().chars().all(is_token) {
            return Some(name.text().to_ascii_lowercase());
        }
        let what = format!("`{}` is no name of a header", name.text());
        name.refuse(what, "letters, digits and `-`, such as x-muster-secret")
    })
}
