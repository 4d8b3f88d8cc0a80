//! `muster gateway`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use muster_gateway::{
    ChildError, Gateway, GatewayAccount, GatewayConfig, GatewayDtls, GatewayTls, KnownDevice,
    ListenAddresses, MANAGEMENT_PATH, ManagementConfig, SlowReader, WebhookConfig,
    run_until_stopped,
};
use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use muster_plan::{PlatformKind, Scheme};
use muster_platform::{Dialect, Protocol, Rest};
use muster_scenario::{NoFiles, Overrides, Source, parse};

use crate::args::GatewayArgs;
use crate::{outcome, registered, signals, users};

/// The option that says how to misbehave.
const BEHAVIOUR: &str = "--behaviour";

/// The interval at which the gateway looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The interval at which a slow reader reads.
const SLOW_READS: Micros = Micros::from_millis(10);

/// Runs the reference gateway alone; its account is printed at the end.
pub(crate) fn gateway(args: &GatewayArgs) -> Result<u8> {
    if args.embedded {
        return embedded();
    }
    let config = GatewayConfig {
        websocket: args.websocket,
        tls: tls(args)?,
        listen: addresses(args)?,
        coaps: coaps(args)?,
        https: args.https.and_then(|_| tls(args).transpose()).transpose()?,
        amqps: args.amqps.and_then(|_| tls(args).transpose()).transpose()?,
        max_payload: max_payload(args)?,
        devices: registered(args)?,
        threads: args.threads.unwrap_or_else(cores),
        shares_port: args.shared_port,
        dialect: args.dialect,
        behaviour: behaviour(args)?,
        seed: args.seed,
        expected_uplinks: args.expect,
        users: args.users.as_deref().map_or(Ok(Vec::new()), users::read)?,
        authentication: args
            .authentication
            .as_deref()
            .map(users::read_demand)
            .transpose()?,
        management: management(args)?,
        webhook: webhook(args)?,
        receive_maximum: args.receive_maximum,
        slow_reader: args.read_slowly.map(|bytes| SlowReader {
            bytes,
            every: SLOW_READS,
        }),
        ..GatewayConfig::default()
    };
    let scheme = config.scheme();
    let webhook = config.webhook.as_ref().map(WebhookConfig::layout);
    let gateway = Gateway::start(config).context("start the gateway")?;
    outcome::say(&format!(
        "gateway listens on {scheme}://{}; Ctrl-C ends it",
        gateway.addr()
    ));
    print_addresses(args.dialect, gateway.addresses());
    if let Some(target) = webhook {
        outcome::say(&format!("messages are pushed to {target}"));
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("listen for signals")?;
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_EVERY);
    }
    print(&gateway.stop())
}

/// Prints the addresses besides that for MQTT, one in each line.
fn print_addresses(dialect: Dialect, at: &ListenAddresses) {
    for scheme in Scheme::ALL {
        let who = match scheme.spec().devices {
            Some(protocol) if protocol.is_applications => continue,
            Some(_) => "devices",
            None => "applications",
        };
        if let Some(address) = at.get(scheme.name()) {
            outcome::say(&format!("{who} at {}://{address}", scheme.name()));
        }
    }
    if let Some(address) = at.get("management") {
        let path = if dialect.server.rest == Some(Rest::Devices) {
            MANAGEMENT_PATH
        } else {
            "/api"
        };
        outcome::say(&format!("management API at http://{address}{path}"));
    }
}

/// The addresses that options name, besides that of the management API.
fn addresses(args: &GatewayArgs) -> Result<ListenAddresses> {
    let mut addresses = ListenAddresses::new(args.listen);
    for (scheme, address) in [
        (Scheme::Coap, args.coap),
        (Scheme::Coaps, args.coaps),
        (Scheme::Http, args.http),
        (Scheme::Https, args.https),
        (Scheme::Amqp, args.amqp),
        (Scheme::Amqps, args.amqps),
    ] {
        let devices = scheme.spec().devices.filter(|_| address.is_some());
        if let Some(protocol) = devices.filter(|it| !args.dialect.speaks(*it)) {
            bail!(
                "listen at --{}: devices of {} do not speak {}; use --dialect {}",
                scheme.name(),
                args.dialect,
                protocol.name,
                dialects(|dialect| dialect.speaks(protocol))
            );
        }
        addresses = addresses.with(scheme.name(), address);
    }
    Ok(addresses)
}

/// The protocols of requests that devices of a dialect speak.
fn of_requests(dialect: Dialect) -> impl Iterator<Item = Protocol> {
    let protocols = Protocol::ALL.into_iter().filter(|protocol| protocol.asks);
    protocols.filter(move |protocol| dialect.speaks(*protocol))
}

/// True if devices of a dialect send requests.
fn asks(dialect: Dialect) -> bool {
    of_requests(dialect).next().is_some()
}

/// The names of the dialects that fit, as a choice.
fn dialects(fits: impl Fn(Dialect) -> bool) -> String {
    let fitting = Dialect::ALL.into_iter().filter(|dialect| fits(*dialect));
    let names: Vec<&str> = fitting.map(|dialect| dialect.name).collect();
    names.join(" or ")
}

/// The address for CoAP over DTLS, and its keys.
fn coaps(args: &GatewayArgs) -> Result<Option<GatewayDtls>> {
    if args.coaps.is_none() {
        return Ok(None);
    }
    let secret = args.psk.as_deref().map(one_line).transpose()?;
    if secret.as_deref() == Some("") {
        bail!("read --psk: the file is empty; write the key into it");
    }
    let certificate = tls(args)?;
    if secret.is_none() && args.users.is_none() && certificate.is_none() {
        bail!("listen at --coaps: nobody has a key; give --users, --psk or --cert");
    }
    Ok(Some(GatewayDtls {
        connection_id: !args.no_connection_id,
        secret,
        certificate,
    }))
}

/// The devices that are registered; without the option each is.
fn registered(args: &GatewayArgs) -> Result<Option<Vec<KnownDevice>>> {
    let Some(path) = &args.devices else {
        return Ok(None);
    };
    if !asks(args.dialect) {
        bail!(
            "read --devices: devices of {} send no requests; use --dialect {}",
            args.dialect,
            dialects(asks)
        );
    }
    registered::read(path).map(Some)
}

/// The longest payload of a request; without the option it is the dialect's own.
fn max_payload(args: &GatewayArgs) -> Result<Option<u32>> {
    if let Some(bytes) = args.max_payload
        && !asks(args.dialect)
    {
        bail!(
            "limit --max-payload to {bytes} bytes: devices of {} send no requests; use --dialect {}",
            args.dialect,
            dialects(asks)
        );
    }
    Ok(args.max_payload)
}

/// The management API; none without `--rest`.
fn management(args: &GatewayArgs) -> Result<Option<ManagementConfig>> {
    let Some(listen) = args.rest else {
        return Ok(None);
    };
    if args.dialect.server.rest.is_none() {
        bail!(
            "serve --rest: {} has no management API; use --dialect {}",
            args.dialect,
            dialects(|dialect| dialect.server.rest.is_some())
        );
    }
    let token = args.rest_token.as_deref().map(one_line).transpose()?;
    if token.as_deref() == Some("") {
        bail!("read --rest-token: the file is empty; write the token into it");
    }
    if args.store.is_some() && args.dialect.server.rest != Some(Rest::Stored) {
        bail!(
            "keep a --store: the gateway of {} has none; use --dialect {}",
            args.dialect,
            dialects(|dialect| dialect.server.rest == Some(Rest::Stored))
        );
    }
    Ok(Some(ManagementConfig {
        listen,
        token,
        gateway: args.rest_gateway.clone(),
        only_provisioned: args.only_provisioned,
        store: args.store.clone(),
    }))
}

/// The endpoint that messages are pushed to; none without the option.
fn webhook(args: &GatewayArgs) -> Result<Option<WebhookConfig>> {
    let Some(url) = &args.webhook else {
        return Ok(None);
    };
    let endpoint = WebhookConfig::parse(url).context("push to --webhook")?;
    let token = args.webhook_token.as_deref().map(one_line).transpose()?;
    Ok(Some(match token.as_deref() {
        Some("") => bail!("read --webhook-token: the file is empty; write the token into it"),
        Some(token) => endpoint.with_token(token),
        None => endpoint,
    }))
}

/// The files of TLS; without a certificate there is none.
fn tls(args: &GatewayArgs) -> Result<Option<GatewayTls>> {
    let Some(cert) = &args.cert else {
        return Ok(None);
    };
    let key = args.key.as_ref().unwrap_or(cert);
    let (cert_name, key_name) = (cert.display().to_string(), key.display().to_string());
    muster_transport::Own::read(&cert_name, &key_name).context("use --cert and --key")?;
    let client_ca = args.client_ca.as_deref().map(text).transpose()?;
    Ok(Some(GatewayTls {
        cert: text(cert)?,
        key: text(key)?,
        needs_client_cert: client_ca.is_some(),
        client_ca,
    }))
}

/// The text of a file without the end of its line. It may be a secret and is not shown.
fn one_line(path: &Path) -> Result<String> {
    let text = text(path)?;
    let line = text.trim_end_matches(['\n', '\r']);
    if line != line.trim() {
        bail!(
            "read {}: it begins or ends with a blank; remove it",
            path.display()
        );
    }
    if line.contains('\n') {
        bail!(
            "read {}: it has more than one line; keep one",
            path.display()
        );
    }
    Ok(line.to_owned())
}

fn text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let text = muster_load::text(&bytes).with_context(|| format!("read {}", path.display()))?;
    Ok(text.to_owned())
}

/// Serves one run: the configuration is the first line of standard input, whose end is the end.
fn embedded() -> Result<u8> {
    match run_until_stopped(io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => Ok(outcome::PASS),
        // The run was told, or has ended without listening: nobody else wants to know.
        Err(ChildError::Start(_) | ChildError::Pipe(_)) => Ok(outcome::USAGE),
        Err(error @ ChildError::Line(_)) => Err(error).context("serve as a gateway"),
    }
}

fn print(account: &GatewayAccount) -> Result<u8> {
    outcome::say(&serde_json::to_string_pretty(account)?);
    Ok(outcome::PASS)
}

/// The behaviour as the scenario's language has it, with its units, defaults and errors.
fn behaviour(args: &GatewayArgs) -> Result<Behaviour> {
    let mut protocols = Protocol::ALL.into_iter();
    let spoken = protocols.find(|protocol| args.dialect.speaks(*protocol));
    let scheme = spoken.unwrap_or(Protocol::Mqtt).word;
    // Misbehaviour of its store needs one.
    let provision = match (args.dialect, args.rest) {
        (Dialect::Thingsboard, Some(_)) => "provision: { mode: auto }\n",
        _ => "",
    };
    let scenario = format!(
        "name: gateway\nfleet: [ {{ count: 1, streams: [] }} ]\nplatform: {{ kind: gateway, dialect: {}, devices: [ \"{scheme}://127.0.0.1\" ] }}\n{provision}",
        args.dialect
    );
    let source = Source {
        name: "gateway",
        text: &scenario,
    };
    let mut overrides = Overrides::new();
    if let Some(text) = &args.behaviour {
        overrides.set_by(BEHAVIOUR, "platform.behaviour", &format!("{{ {text} }}"));
    }
    let plan = parse(source, &overrides, &NoFiles).map_err(|problems| anyhow!("{problems}"))?;
    match plan.platform.kind {
        PlatformKind::Gateway { behaviour, .. } => Ok(*behaviour),
        PlatformKind::Deployed { .. } => Ok(Behaviour::default()),
    }
}

fn cores() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u16::try_from(cores).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use muster_model::behaviour::ServiceTime;

    use super::*;
    use crate::args::{Arguments, Command};

    fn of(arguments: &[&str]) -> Behaviour {
        let words = ["muster", "gateway", "--dialect"].iter().chain(arguments);
        let Command::Gateway(args) = Arguments::parse_from(words).command else {
            panic!("another command")
        };
        behaviour(&args).expect("it is right")
    }

    /// A client that publishes before it has subscribed, as the published one does, is then acknowledged.
    #[test]
    fn the_gateway_of_sap_takes_the_published_time_for_a_message() {
        let published = Some(ServiceTime::Fixed(Micros::from_millis(2)));
        assert_eq!(of(&["sap-edge"]).service_time, published);
        let dropping = of(&["sap-edge", "--behaviour", "drop: 1"]);
        assert_eq!((dropping.service_time, dropping.drop), (published, 1));
        assert!(of(&["thingsboard"]).behaves());
    }

    #[test]
    fn a_store_that_is_served_can_misbehave() {
        let lose = ["--behaviour", "lose-stored: 53"];
        let served = ["thingsboard", "--rest", "127.0.0.1:0"];
        assert_eq!(of(&[&served[..], &lose].concat()).lose_stored, 53);
    }
}
