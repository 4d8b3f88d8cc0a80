//! `/proc/net/route`: through which device packets leave.

use std::net::Ipv4Addr;

/// The device through which packets to a directly reachable IPv4 address leave, by the text of
/// `/proc/net/route` (a line a route: device, destination, gateway, flags, three counts, mask; the
/// addresses as hexadecimal words in the byte order of the host). None if a router is in between.
pub fn device_towards(routes: &str, address: Ipv4Addr) -> Option<&str> {
    let best = best(routes, address)?;
    (best.gateway == 0).then_some(best.device)
}

/// The device through which packets to an IPv4 address leave, also towards a router, by the same text.
pub fn interface_towards(routes: &str, address: Ipv4Addr) -> Option<&str> {
    Some(best(routes, address)?.device)
}

/// The route with the longest mask that fits.
fn best(routes: &str, address: Ipv4Addr) -> Option<Route<'_>> {
    let wanted = u32::from_ne_bytes(address.octets());
    let known = routes.lines().skip(1).filter_map(Route::of);
    let fitting = known.filter(|route| wanted & route.mask == route.destination);
    fitting.max_by_key(|route| route.mask.count_ones())
}

struct Route<'a> {
    device: &'a str,
    destination: u32,
    gateway: u32,
    mask: u32,
}

impl<'a> Route<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let word = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        Some(Self {
            device: fields.first()?,
            destination: word(1)?,
            gateway: word(2)?,
            mask: word(7)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_longest_route_without_a_router_names_the_device() {
        for (address, device) in [
            ([172, 17, 0, 2], Some("docker0")),
            ([192, 0, 2, 77], Some("eth0")),
            ([198, 51, 100, 1], None),
        ] {
            let address = Ipv4Addr::from(address);
            assert_eq!(device_towards(ROUTES, address), device);
            let through = device.or(Some("eth0"));
            assert_eq!(interface_towards(ROUTES, address), through);
        }
        assert_eq!(device_towards("", Ipv4Addr::LOCALHOST), None);
        assert_eq!(
            device_towards("Iface\nnonsense\n", Ipv4Addr::LOCALHOST),
            None
        );
    }
}
