//! `/proc/<pid>/net/dev`: what went over the network of a process.

/// Bytes over all network devices but the loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkBytes {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

/// Place of the sent bytes among the counters of a device; the received ones are the first.
const SENT: usize = 8;

/// Parses `/proc/<pid>/net/dev`: two lines of headings, then `device: counters` for each device.
pub fn network_bytes(text: &str) -> NetworkBytes {
    let mut all = NetworkBytes::default();
    for line in text.lines() {
        let Some((device, counters)) = line.split_once(':') else {
            continue;
        };
        if device.trim() == "lo" {
            continue;
        }
        let mut counters = counters.split_ascii_whitespace().map(str::parse::<u64>);
        if let (Some(Ok(received)), Some(Ok(sent))) = (counters.next(), counters.nth(SENT - 1)) {
            all.received += received;
            all.sent += sent;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_devices_but_the_loopback_are_summed() {
        let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 5000 10 0 0 0 0 0 0 5000 10 0 0 0 0 0 0
  eth0: 1234 10 0 0 0 0 0 0 77 10 0 0 0 0 0 0
  eth1:1 10 0 0 0 0 0 0 2 10 0 0 0 0 0 0
";
        let bytes = NetworkBytes {
            received: 1_235,
            sent: 79,
        };
        assert_eq!(network_bytes(text), bytes);
    }
}
