//! Addresses of AMQP 1.0 that a backend's consumers receive from, and how they log in.

use std::collections::BTreeSet;

use muster_plan::{AmqpAddress, AmqpLogin, AmqpNorthbound, Endpoint, FleetPlan};
use muster_platform::{Amqp, Dialect, TENANT};

use crate::view::View;

/// Bytes of the longest address, as brokers take it.
const ADDRESS_MAX: usize = 255;
/// Most addresses of a backend: each is a link of one session, which Artemis bounds to 65,536.
const ADDRESSES_MAX: usize = 1_000;

/// Reads what the consumers of a backend at this address receive.
pub(super) fn amqp(
    view: &View<'_>,
    endpoint: &Endpoint,
    dialect: Dialect,
    fleets: &[FleetPlan],
) -> Option<AmqpNorthbound> {
    let known = dialect.application.amqp.as_ref();
    if let Some(commands) = view.get("commands").filter(|_| known.is_none()) {
        let what = format!("no command reaches a device of {dialect} by way of AMQP");
        return commands.refuse(what, "remove `commands`, or use `platform.kind: hono`");
    }
    Some(AmqpNorthbound {
        addresses: addresses(view, dialect, fleets)?,
        credit: view.whole("credit")?,
        login: login(view, endpoint)?,
    })
}

/// The mechanism that the scenario names, or that what it has to show asks for.
fn login(view: &View<'_>, endpoint: &Endpoint) -> Option<AmqpLogin> {
    let has_certificate = view.get("tls").is_some_and(|tls| tls.get("cert").is_some());
    if let (Some(user), None) = (view.get("user"), view.get("password")) {
        return user.refuse("a user name without a password", "add `password`");
    }
    if let Some(bytes) = view.get("password").filter(View::is_map) {
        let help = "write it as text";
        return bytes.refuse("a password of AMQP is text (RFC 4616), and not bytes", help);
    }
    let Some(named) = view.get("sasl") else {
        return Some(match view.get("user") {
            Some(_) => AmqpLogin::Plain,
            None if has_certificate => AmqpLogin::External,
            None => AmqpLogin::Anonymous,
        });
    };
    let mut all = AmqpLogin::ALL.into_iter();
    let login = all.find(|login| login.mechanism().eq_ignore_ascii_case(named.text()));
    let Some(login) = login else {
        let what = format!("`{}` is no mechanism of AMQP here", named.text());
        return named.refuse(what, "plain, external or anonymous");
    };
    match login {
        AmqpLogin::Plain if view.get("user").is_none() => {
            named.refuse("there is no password to send", "add `user` and `password`")
        }
        AmqpLogin::External if !endpoint.scheme.is_tls() || !has_certificate => {
            let help = "use amqps://, and add `tls: { cert: ..., key: ... }`";
            named.refuse("there is no certificate that says who logs in", help)
        }
        AmqpLogin::External | AmqpLogin::Anonymous if view.get("user").is_some() => {
            let what = format!("`sasl: {}` sends no user name", named.text());
            named.refuse(what, "remove `user` and `password`, or `sasl`")
        }
        AmqpLogin::Plain | AmqpLogin::External | AmqpLogin::Anonymous => Some(login),
    }
}

/// The addresses that the platform defines, for each tenant; else those that the scenario names.
fn addresses(view: &View<'_>, dialect: Dialect, fleets: &[FleetPlan]) -> Option<Vec<AmqpAddress>> {
    let named = view.get("addresses");
    if let Some(amqp) = &dialect.application.amqp {
        if let Some(named) = named {
            let what = format!("the addresses of {dialect} follow from the tenants");
            return named.refuse(what, "remove `addresses`");
        }
        return Some(of_dialect(amqp, fleets));
    }
    let Some(named) = named else {
        let help = "add `addresses: [ readings ]`: queues or topics of the broker";
        return view.refuse("the backend does not say what it receives from", help);
    };
    let items = view.list("addresses");
    if items.is_empty() || items.len() > ADDRESSES_MAX {
        let what = format!("{} addresses are named", items.len());
        return named.refuse(what, "1 to 1000, such as `addresses: [ readings ]`");
    }
    let address = |(at, view): (usize, &View<'_>)| {
        let name = view.text();
        if items[..at].iter().any(|before| before.text() == name) {
            let help = "keep it once: several receivers of one address compete; see `consumers`";
            return view.refuse(format!("`{name}` is named twice"), help);
        }
        if name.len() > ADDRESS_MAX {
            return view.refuse("this address is too long", "at most 255 bytes");
        }
        let surface = String::new();
        let name = name.to_owned();
        Some(AmqpAddress { name, surface })
    };
    items.iter().enumerate().map(address).collect()
}

fn of_dialect(amqp: &Amqp, fleets: &[FleetPlan]) -> Vec<AmqpAddress> {
    let tenants: BTreeSet<&str> = fleets.iter().map(|fleet| fleet.tenant.as_str()).collect();
    let of = |tenant: &&str| {
        let tenant = (*tenant).to_owned();
        let names = amqp.messages.iter();
        names.map(move |name| {
            let name = name.replace(TENANT, &tenant);
            let surface = format!("{name}/");
            AmqpAddress { name, surface }
        })
    };
    tenants.iter().flat_map(of).collect()
}
