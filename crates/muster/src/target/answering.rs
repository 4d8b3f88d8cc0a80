//! Addresses of a name that answer, and addresses of this machine that links may come from.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use muster_plan::{Endpoint, Plan};

use super::{DeviceAddress, address, bare, found, now, patience};

/// The addresses to which a plan's devices connect, each with their protocol.
pub(crate) fn device_addresses(plan: &Plan) -> Result<Vec<DeviceAddress>> {
    let endpoints = plan.platform.endpoints.iter();
    let all: Result<Vec<_>> = endpoints.map(|it| addresses_of(plan, it)).collect();
    Ok(all?.concat())
}

/// The addresses of one endpoint to which a plan's devices connect.
pub(crate) fn addresses_of(plan: &Plan, endpoint: &Endpoint) -> Result<Vec<DeviceAddress>> {
    let within = patience(plan);
    let addresses =
        match plan.platform.uses_all_addresses && !endpoint.scheme.protocol().is_in_datagrams {
            true => all_that_answer(&found(endpoint)?, within),
            false => vec![address(endpoint, within)?],
        };
    let protocol = endpoint.scheme.protocol();
    Ok(addresses.into_iter().map(|at| (protocol, at)).collect())
}

/// The addresses that a plan's endpoints spell out, which nobody needs to look up.
pub(crate) fn literal_addresses(plan: &Plan) -> Vec<DeviceAddress> {
    let endpoints = plan.platform.endpoints.iter();
    let literal = endpoints.filter_map(|endpoint| {
        let address: IpAddr = endpoint.host_name().parse().ok()?;
        let address = SocketAddr::new(address, endpoint.port);
        Some((endpoint.scheme.protocol(), address))
    });
    literal.collect()
}

/// Tries one address after the other; each may take an equal part of the time that is left.
pub(super) fn first_to_answer(addresses: &[SocketAddr], within: Duration) -> Option<SocketAddr> {
    let begun = now();
    let answers = |(tried, address): &(usize, &SocketAddr)| {
        let left = within.saturating_sub(begun.elapsed());
        let part = left / (addresses.len() - tried) as u32;
        TcpStream::connect_timeout(address, part).is_ok()
    };
    let mut tries = addresses.iter().enumerate();
    tries.find(answers).map(|(_, address)| *address)
}

/// The addresses that take a connection, of the family of the first one that does: `::1` and
/// `127.0.0.1` are one machine. All of them if none does, so that the run reports the reason.
fn all_that_answer(found: &[SocketAddr], within: Duration) -> Vec<SocketAddr> {
    let begun = now();
    let answers = |(tried, address): &(usize, &SocketAddr)| {
        let left = within.saturating_sub(begun.elapsed());
        let part = left / (found.len() - tried) as u32;
        TcpStream::connect_timeout(address, part).is_ok()
    };
    let answering = found.iter().enumerate().filter(answers);
    let mut answering: Vec<SocketAddr> = answering.map(|(_, address)| *address).collect();
    match answering.first().copied() {
        Some(first) => answering.retain(|address| address.is_ipv4() == first.is_ipv4()),
        None => answering = found.to_vec(),
    }
    answering
}

/// Refuses source addresses that are none of this machine's, or of another family than a target.
pub(crate) fn check_sources(plan: &Plan, targets: &[DeviceAddress]) -> Result<()> {
    for fleet in plan.fleets.iter().filter(|of| !of.connect.from.is_empty()) {
        let key = format!("fleet.{}.connect.from", fleet.name);
        let mut sources = Vec::new();
        for source in &fleet.connect.from {
            let address: IpAddr = source
                .parse()
                .with_context(|| format!("read {source} of `{key}` as an address"))?;
            sources.push(address);
            if let Err(error) = UdpSocket::bind((address, 0)) {
                bail!(
                    "use {source} of `{key}`: {}; take an address of this machine (`ip address`), or \
                     give it this one (`ip address add {source} dev ...`)",
                    bare(&error)
                );
            }
        }
        let fits = |target: &SocketAddr| {
            sources
                .iter()
                .any(|source| source.is_ipv4() == target.is_ipv4())
        };
        let protocol = fleet.client.protocol();
        let targets = targets.iter().filter(|(of, _)| *of == protocol);
        let mut targets = targets.map(|(_, target)| target);
        if let Some(target) = targets.find(|target| !fits(target)) {
            let family = if target.is_ipv4() { "IPv4" } else { "IPv6" };
            bail!(
                "reach {target} from `{key}`: none of its addresses is one of {family}; add one, or \
                 remove the key"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_first_address_that_answers_is_taken_whatever_its_place() {
        let open = TcpListener::bind("127.0.0.1:0").expect("a port");
        let closed = TcpListener::bind("127.0.0.1:0").expect("another port");
        let address = |listener: &TcpListener| listener.local_addr().expect("its address");
        let addresses = [address(&closed), address(&open)];
        drop(closed);
        let within = Duration::from_secs(10);
        assert_eq!(first_to_answer(&addresses, within), Some(addresses[1]));
        assert_eq!(first_to_answer(&addresses[..1], within), None);
        assert_eq!(first_to_answer(&addresses, Duration::ZERO), None);
    }

    #[test]
    fn links_are_spread_over_all_addresses_that_answer() {
        let open = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"];
        let open = open.map(|at| TcpListener::bind(at).expect("a port"));
        let address = |listener: &TcpListener| listener.local_addr().expect("its address");
        let addresses = open.each_ref().map(address);
        let [first, closed, third] = open;
        drop(closed);
        let within = Duration::from_secs(10);
        let answering = all_that_answer(&addresses, within);
        assert_eq!(answering, [addresses[0], addresses[2]]);
        drop((first, third));
        assert_eq!(all_that_answer(&addresses, within), addresses, "none does");
    }
}
