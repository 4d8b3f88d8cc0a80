//! Comparison of the gateway's account with what was seen from outside.

use muster_gateway::GatewayAccount;
use muster_model::Micros;

/// The uplinks of these hashes, in any order, are those that the account says a misbehaviour befell,
/// and so many.
pub(crate) fn befell(
    account: &GatewayAccount,
    misbehaviour: &str,
    count: usize,
    hashes: impl Iterator<Item = u64>,
) {
    let mut hashes: Vec<u64> = hashes.collect();
    hashes.sort_unstable();
    let empty = Vec::new();
    let said = account.misbehaved.get(misbehaviour).unwrap_or(&empty);
    assert_eq!(said.len(), count, "{misbehaviour}: {:?}", account.counts);
    assert_eq!(&hashes, said, "{misbehaviour}");
}

/// Checks that each uplink in the account's list was delayed by at least half of `by`. The gateway
/// reads its clock once for all that it finds, which may be well before a message came. Most of the
/// others were not delayed, however busy the machine.
pub(crate) fn delayed(
    account: &GatewayAccount,
    misbehaviour: &str,
    (count, by): (usize, Micros),
    delays: impl Iterator<Item = (u64, Micros)>,
) {
    let said = &account.misbehaved[misbehaviour];
    assert_eq!(said.len(), count, "{misbehaviour}: {:?}", account.counts);
    let (named, others): (Vec<_>, Vec<_>) =
        delays.partition(|(hash, _)| said.binary_search(hash).is_ok());
    assert_eq!(named.len(), count, "{misbehaviour}");
    let least = Micros(by.0 / 2);
    for (hash, delay) in named {
        assert!(delay >= least, "{misbehaviour}: {hash} after {delay:?}");
    }
    let slow = others.iter().filter(|(_, delay)| *delay >= by).count();
    assert!(slow <= others.len() / 2, "{misbehaviour}: {slow} others");
}
