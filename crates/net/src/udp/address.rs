//! Socket addresses as the kernel has them: `sockaddr_in` and `sockaddr_in6` (ip(7), ipv6(7)).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of the longer one.
pub(super) const NAME_MAX: usize = size_of::<libc::sockaddr_in6>();
const V4_LEN: usize = size_of::<libc::sockaddr_in>();

/// Appends an address.
pub(super) fn put(address: SocketAddr, out: &mut Vec<u8>) {
    match address {
        SocketAddr::V4(address) => {
            out.extend_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            out.extend_from_slice(&address.port().to_be_bytes());
            out.extend_from_slice(&address.ip().octets());
            out.extend_from_slice(&[0; 8]);
        }
        SocketAddr::V6(address) => {
            out.extend_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            out.extend_from_slice(&address.port().to_be_bytes());
            out.extend_from_slice(&address.flowinfo().to_ne_bytes());
            out.extend_from_slice(&address.ip().octets());
            out.extend_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
}

/// Reads an address; none if it is no internet address.
pub(super) fn read(name: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = name.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET if name.len() >= V4_LEN => {
            let ip = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            Some(SocketAddrV4::new(ip, port).into())
        }
        libc::AF_INET6 => {
            let (flow, rest) = rest.split_first_chunk()?;
            let (ip, rest) = rest.split_first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*rest.first_chunk()?);
            let flow = u32::from_ne_bytes(*flow);
            Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reading inverts writing, and what is cut short is no address.
        #[test]
        fn an_address_reads_as_it_was_written(
            ip in any::<[u8; 16]>(), is_v6 in any::<bool>(), port in any::<u16>(),
            flow in any::<u32>(), scope in any::<u32>(), cut in 0..NAME_MAX,
        ) {
            let v4 = [ip[0], ip[1], ip[2], ip[3]];
            let address: SocketAddr = if is_v6 {
                SocketAddrV6::new(ip.into(), port, flow, scope).into()
            } else {
                SocketAddrV4::new(v4.into(), port).into()
            };
            let mut name = Vec::new();
            put(address, &mut name);
            prop_assert!(name.len() <= NAME_MAX);
            prop_assert_eq!(read(&name), Some(address));
            let cut = cut % name.len();
            prop_assert_eq!(read(&name[..cut]), None);
        }
    }
}
