//! TLS, and whether it goes with the addresses.

use muster_plan::{
    Credential, Endpoint, FleetPlan, PemFile, PlatformPlan, Scheme, Secret, TlsPlan, TlsVersions,
};
use muster_platform::Protocol;

use super::target;
use crate::check::connect;
use crate::endpoint;
use crate::view::View;

pub(super) fn tls(view: &View<'_>) -> Option<TlsPlan> {
    let insecure = insecure(view, "`ca` and `server-name` say whom to trust")?;
    Some(TlsPlan {
        ca: certificates(view, "ca")?,
        server_name: text(view, "server-name"),
        insecure,
        versions: match view.text_of("version") {
            "1.2" => TlsVersions::Only12,
            "1.3" => TlsVersions::Only13,
            _ => TlsVersions::Both,
        },
        alpn: text(view, "alpn"),
        resumption: view.truth("session-resumption"),
        own: own(view)?,
        client_ca: certificates(view, "client-ca")?,
    })
}

/// Reads whether any certificate is accepted, and warns if so.
pub(super) fn insecure(view: &View<'_>, help: &str) -> Option<bool> {
    let insecure = view.truth("insecure")?;
    if insecure {
        let what = "any certificate will do: the run cannot know whom it talks to";
        view.get("insecure")?.warn(what, help);
    }
    Some(insecure)
}

fn text(view: &View<'_>, key: &str) -> Option<String> {
    view.get(key).map(|view| view.text().to_owned())
}

pub(super) fn certificates(view: &View<'_>, key: &str) -> Option<Option<PemFile>> {
    view.optional(key, |view| pem(view, "CERTIFICATE", "certificate"))
}

fn own(view: &View<'_>) -> Option<Option<(PemFile, Secret<PemFile>)>> {
    let Some(cert) = view.get("cert") else {
        if let Some(stray) = view.get("key") {
            return stray.refuse("a key without its certificate", "add `cert`");
        }
        return Some(None);
    };
    let key = view.get("key").unwrap_or_else(|| cert.clone());
    let cert = pem(&cert, "CERTIFICATE", "certificate");
    let key = pem(&key, "PRIVATE KEY", "private key");
    Some(Some((cert?, Secret::new(key?))))
}

/// A file that holds at least one thing of this kind.
fn pem(view: &View<'_>, label: &str, what: &str) -> Option<PemFile> {
    let name = view.text();
    let text = view.file(name)?;
    let marker = format!("{label}-----");
    let holds = text
        .windows(marker.len())
        .any(|part| part == marker.as_bytes());
    if !holds {
        let what = format!("{name} holds no {what}");
        return view.refuse(what, "a file in PEM form (RFC 7468)");
    }
    let name = name.to_owned();
    Some(PemFile { name, text })
}

/// Checks that all devices of a protocol connect in one way.
pub(super) fn one_scheme_a_protocol(views: &[View<'_>], endpoints: &[Endpoint]) -> Option<()> {
    for (endpoint, view) in endpoints.iter().zip(views) {
        let protocol = endpoint.scheme.protocol();
        let mut same = endpoints.iter().map(|it| it.scheme);
        let first = same.find(|scheme| scheme.protocol() == protocol)?;
        if endpoint.scheme != first {
            let (other, first) = (endpoint.scheme.name(), first.name());
            let what =
                format!("`{other}` and `{first}`: all addresses of one protocol have one scheme");
            return view.refuse(what, "one scheme for both, or a scenario for each");
        }
    }
    Some(())
}

/// Reads the scheme of a fleet's devices.
pub(super) fn scheme_of(platform: &View<'_>, fleet: &View<'_>) -> Option<Scheme> {
    let schemes = target::schemes(platform);
    let Some(named) = fleet.get("protocol") else {
        return Some(schemes.first().copied().unwrap_or(Scheme::Mqtt));
    };
    let protocol = Protocol::named(named.text());
    let is_named = |scheme: &Scheme| Some(scheme.protocol()) == protocol;
    let found = schemes.into_iter().find(is_named);
    if found.is_none() {
        let what = format!("`platform.devices` has no address of `{}`", named.text());
        named.wrong(what, "add one, or remove `protocol`");
    }
    found
}

/// Checks that some fleet speaks the protocol of each address.
pub(super) fn all_are_spoken(platform: &View<'_>, spoken: &[Protocol]) -> Option<()> {
    for item in target::urls(platform) {
        // An address that cannot be read is refused elsewhere.
        let scheme = endpoint::read(item.text()).ok().map(|it| it.scheme);
        if let Some(scheme) = scheme.filter(|it| !spoken.contains(&it.protocol())) {
            let name = scheme.protocol().word;
            let help = format!("give one `protocol: {name}`, or remove the address");
            return item.refuse(format!("no fleet speaks `{name}`"), &help);
        }
    }
    Some(())
}

/// Keys of TLS stand only where somebody speaks it.
pub(super) fn is_used(view: &View<'_>, schemes: impl IntoIterator<Item = Scheme>) -> Option<()> {
    if !schemes.into_iter().any(Scheme::is_secured) {
        let what = "`tls` has no meaning here: no address is of TLS or DTLS";
        return view.refuse(what, "another scheme for the addresses, or remove it");
    }
    Some(())
}

/// Over DTLS there is one version, and no ALPN.
pub(super) fn fits_datagrams(view: &View<'_>, schemes: &[Scheme]) -> Option<()> {
    let mut of_streams = ["version", "alpn"].into_iter();
    let stray = of_streams.find_map(|key| Some((key, view.written(key)?)));
    let is_dtls = schemes.iter().any(|scheme| scheme.is_dtls());
    let is_tls = schemes.iter().any(|scheme| scheme.is_tls());
    match stray.filter(|_| is_dtls && !is_tls) {
        None => Some(()),
        Some((key, stray)) => {
            let what = format!("`{key}` has no meaning over `{}`", Scheme::Coaps.name());
            stray.refuse(what, "remove it; devices speak DTLS 1.2")
        }
    }
}

/// Over DTLS a link that comes back opens its session in full unless the scenario says otherwise, which is
/// for whoever runs it to know: it is most of what such a link costs both ends.
pub(super) fn warn_of_full_handshakes(
    views: &[View<'_>],
    fleets: &[FleetPlan],
    platform: &PlatformPlan,
) {
    let is_dtls = platform
        .scheme_of(Protocol::Coap)
        .is_some_and(Scheme::is_dtls);
    if !is_dtls || platform.tls.resumption.is_some() {
        return;
    }
    let all = views.iter().zip(fleets);
    for (view, fleet) in all.filter(|(_, fleet)| fleet.client.coap().is_some()) {
        let ends = match (fleet.connect.lifetime, &fleet.offline) {
            (Some(_), _) => view.get("connect").and_then(|it| it.get("lifetime")),
            (None, Some(_)) => view.get("offline"),
            (None, None) => None,
        };
        if let Some(ends) = ends {
            let what = "links connect again, and over DTLS every reconnect is a full handshake";
            let help = "`tls: { session-resumption: true }` under `platform` resumes, where the server does; \
                        `false` says that it is meant so";
            ends.warn(what, help);
        }
    }
}

/// A certificate is shown over TLS and DTLS only.
pub(super) fn certificates_are_shown(
    views: &[View<'_>],
    fleets: &[FleetPlan],
    platform: &PlatformPlan,
) -> Option<()> {
    let certified = views.iter().zip(fleets).filter_map(|(view, fleet)| {
        let scheme = platform.scheme_of(fleet.client.protocol())?;
        matches!(fleet.credential, Credential::Certificate { .. }).then_some((view, scheme))
    });
    let mut plain = certified.filter(|(_, scheme)| !scheme.is_secured());
    let Some((view, scheme)) = plain.next() else {
        return Some(());
    };
    let what = format!("over `{}` no certificate is shown", scheme.name());
    let help = connect(|scheme| scheme.spec().devices.is_some() && scheme.is_secured());
    view.refuse_at("credential", what, &help)
}

/// Checks the credential of devices over DTLS. If the embedded gateway knows their authority, it asks for
/// certificates, and accepts only these and shared keys.
pub(super) fn gateway_knows(
    views: &[View<'_>],
    fleets: &[FleetPlan],
    platform: &PlatformPlan,
) -> Option<()> {
    for (view, fleet) in views.iter().zip(fleets) {
        let scheme = platform.scheme_of(fleet.client.protocol());
        if scheme.is_some_and(Scheme::is_dtls) {
            is_let_in(view, fleet, platform.tls.client_ca.is_some())?;
        }
    }
    Some(())
}

/// Checks the credential of a fleet; `asks` if the embedded gateway asks for certificates.
fn is_let_in(view: &View<'_>, fleet: &FleetPlan, asks: bool) -> Option<()> {
    let (what, help) = match (&fleet.credential, asks) {
        (Credential::Certificate { .. }, true) | (Credential::None, false) => return Some(()),
        (Credential::Psk { .. } | Credential::Password { .. } | Credential::Token { .. }, _) => {
            return Some(());
        }
        (Credential::Certificate { .. }, false) => (
            "the embedded gateway asks no device for its certificate",
            "add `platform.tls.client-ca`, the certificate of their authority",
        ),
        (Credential::None, true) => (
            "with `platform.tls.client-ca` the embedded gateway lets in no device that proves nothing",
            "`credential: { kind: certificate, cert: ... }` or `kind: psk`, or remove `client-ca`",
        ),
    };
    let credential = view.get("credential");
    credential.as_ref().unwrap_or(view).refuse(what, help)
}
