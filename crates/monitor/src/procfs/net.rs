//! The ephemeral port range.

/// Parses `/proc/sys/net/ipv4/ip_local_port_range`: first and last port, both usable.
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_range_has_two_ends() {
        assert_eq!(port_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(port_range("32768"), None);
    }
}
