//! Devices over HTTP on sockets: several addresses, and a connection a request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use muster_conduct::{Diagnostic, Order};
use muster_device::Http;
use muster_fleet::{RenewedTargets, Streams, stream_driver};
use muster_measure::{Account, TargetCounts};
use muster_plan::{ClientPlan, Endpoint, HttpSettings, Plan, Scheme};
use muster_platform::Protocol;
use muster_protocol::http::{Reply, Server, ServerEvent};
use muster_protocol::layer::Plain;

use crate::rig::{Shard, plan};

/// Devices, half of them at each of two addresses.
const DEVICES: u64 = 4;

fn devices(settings: &HttpSettings) -> Plan {
    let mut plan = plan(&format!(
        "name: http\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ] }}\nfleet:\n  \
         - {{ name: a, tenant: t, count: {DEVICES}, connect: {{ rate: 100000/s }}, reconnect: {{ min: 60s, max: 60s }}, \
         streams: [ {{ name: r, rate: 80/s, timeout: 10s, payload: {{ size: 64 }} }} ] }}\n\
         phases: {{ warm-up: 0s, measure: 60s }}\n"
    ));
    for endpoint in &mut plan.platform.endpoints {
        *endpoint = Endpoint {
            scheme: Scheme::Http,
            ..endpoint.clone()
        };
    }
    for fleet in &mut plan.fleets {
        fleet.client = ClientPlan::Http(settings.clone());
    }
    plan
}

/// A server that answers each request with a status, in as many threads as there are connections.
fn serve(status: u16) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || answer_all(socket, status));
        }
    });
    address
}

fn answer_all(mut socket: TcpStream, status: u16) {
    let (mut server, mut held, mut bytes) = (Server::new(1 << 20), Vec::new(), [0; 4_096]);
    while let Ok(length @ 1..) = socket.read(&mut bytes) {
        held.extend_from_slice(&bytes[..length]);
        let (mut input, mut out) = (&held[..], Vec::new());
        while let Some(event) = server.poll(&mut input, &mut out) {
            let ServerEvent::Request(request) = event else {
                panic!("no request: {event:?}");
            };
            let reply = Reply {
                is_last: request.is_last,
                ..Reply::new(status)
            };
            reply.write(&mut out);
        }
        held = input.to_vec();
        if socket.write_all(&out).is_err() || server.is_over() {
            return;
        }
    }
}

/// Runs devices on these addresses until so many messages have ended: the account of the shard, and what it
/// reported.
fn run(
    settings: &HttpSettings,
    addresses: &[SocketAddr],
    ended: u64,
) -> (Account, Vec<Diagnostic>) {
    run_renewing(settings, (addresses, &[]), ended)
}

/// The same, where other addresses take the place of these once a half of the messages have ended.
fn run_renewing(
    settings: &HttpSettings,
    (first, then): (&[SocketAddr], &[SocketAddr]),
    ended: u64,
) -> (Account, Vec<Diagnostic>) {
    let targets = |addresses: &[SocketAddr]| -> Vec<_> {
        let addresses = addresses.iter();
        addresses
            .map(|address| (Protocol::Http, *address))
            .collect()
    };
    let driver = stream_driver::<Http, _>(|_| Streams(Plain), None);
    let renewed = (!then.is_empty()).then(Arc::<RenewedTargets>::default);
    let at = (targets(first), renewed.clone());
    let shard = Shard::start_renewing(devices(settings), at, vec![driver]);
    shard.order(Order::Connect);
    let mut diagnostics = Vec::new();
    shard.wait_for(|dispatch| {
        diagnostics.extend(dispatch.diagnostics.iter().cloned());
        let progress = &dispatch.progress;
        (progress.links_wanted == DEVICES && progress.links_untried == 0).then_some(())
    });
    let origin = shard.clock.now();
    shard.order(Order::Start { origin });
    let mut sum = 0;
    shard.wait_for(|dispatch| {
        let uplinks = dispatch.windows.uplinks.values();
        let states = uplinks.flat_map(|of| of.outcomes.states);
        sum += states.sum::<u64>();
        if let Some(renewed) = renewed.as_ref().filter(|_| sum >= ended / 2) {
            renewed.set(targets(then));
        }
        (sum >= ended).then_some(())
    });
    let at = shard.clock.now();
    shard.order(Order::EndDue { at });
    shard.order(Order::Finish);
    let account = shard.wait_for(|dispatch| {
        diagnostics.extend(dispatch.diagnostics.iter().cloned());
        Some(dispatch.handover.as_ref()?.account.clone())
    });
    (account, diagnostics)
}

#[test]
fn an_instance_that_refuses_shows_among_the_others() {
    let [good, bad] = [serve(202), serve(503)];
    let (account, diagnostics) = run(&HttpSettings::new(), &[good, bad], 40);
    let of = |address: SocketAddr| account.links.targets[&address.to_string()];
    assert_eq!(account.links.targets.len(), 2);
    let clean = TargetCounts {
        connected: DEVICES / 2,
        accepted: of(good).accepted,
        ..TargetCounts::default()
    };
    assert_eq!(of(good), clean);
    assert!(of(good).accepted > 10, "{:?}", of(good));
    assert_eq!((of(bad).accepted, of(bad).connected), (0, DEVICES / 2));
    assert!(of(bad).rejected > 10, "{:?}", of(bad));
    assert_eq!(diagnostics, []);
}

#[test]
fn an_instance_that_is_dead_is_named_once() {
    let good = serve(202);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let dead = closed.local_addr().expect("its address");
    drop(closed);
    let (account, diagnostics) = run(&HttpSettings::new(), &[good, dead], 10);
    let of = |address: SocketAddr| account.links.targets[&address.to_string()];
    assert_eq!((of(dead).failed, of(dead).accepted), (DEVICES / 2, 0));
    assert!(of(good).accepted > 0);
    let [Diagnostic::Unreachable(text)] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    let start = format!("a device did not connect to {dead}, one of several addresses: refused;");
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn a_link_that_connects_again_goes_where_its_name_leads_then() {
    let settings = HttpSettings {
        closes: true,
        ..HttpSettings::new()
    };
    let [before, after] = [serve(202), serve(202)];
    let (account, _) = run_renewing(&settings, (&[before], &[after]), 100);
    let of = |address: SocketAddr| account.links.targets[&address.to_string()];
    assert!(of(before).accepted >= 50, "{:?}", of(before));
    assert!(of(after).accepted > 10, "{:?}", of(after));
    assert_eq!(
        of(before).connected + of(after).connected,
        account.links.connected.count
    );
    assert_eq!(of(after).rejected + of(after).broken, 0);
    // A connect that is under way when the run ends has failed by that end.
    assert!(of(after).failed <= DEVICES, "{:?}", of(after));
}

#[test]
fn one_address_is_not_told_apart() {
    let good = serve(202);
    let (account, _) = run(&HttpSettings::new(), &[good, good], 10);
    assert!(account.links.targets.is_empty());
}

#[test]
fn a_connection_a_request_closes_the_account_of_links() {
    let settings = HttpSettings {
        closes: true,
        ..HttpSettings::new()
    };
    let (account, _) = run(&settings, &[serve(202)], 100);
    let links = &account.links;
    assert!(links.connected.count > 100, "{links:?}");
    assert_eq!(links.opened, links.connected.count + links.failed.count);
    assert_eq!(
        links.connected.count,
        links.disconnected.count + links.open_at_end
    );
}
