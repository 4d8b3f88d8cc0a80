//! Comparison of the gateway's account with what was seen from outside.

use std::collections::BTreeMap;

use muster_gateway::{GatewayAccount, payload_hash};
use muster_model::Micros;
use muster_model::behaviour::{Behaviour, Delayed};

use crate::peer::Got;

/// The instants at which copies of each uplink came, by its hash.
pub(crate) fn copies(arrived: &[Got]) -> BTreeMap<u64, Vec<Micros>> {
    let mut copies = BTreeMap::<u64, Vec<Micros>>::new();
    for Got { payload, at, .. } in arrived {
        copies.entry(payload_hash(payload)).or_default().push(*at);
    }
    copies
}

/// Misbehaviours that each befall some uplinks of one run; what is late is so by this time.
pub(crate) fn together(by: Micros) -> Behaviour {
    Behaviour {
        lose_after_accept: 7,
        drop: 3,
        ignore: 4,
        answer_late: Delayed { count: 5, by },
        answer_twice: 6,
        duplicate: 8,
        deliver_late: Delayed { count: 9, by },
        corrupt: 2,
        reject_but_deliver: Delayed::at_once(5),
        ..Behaviour::default()
    }
}

/// Checks that each of them befell as many as were asked for.
pub(crate) fn befell_together(account: &GatewayAccount) {
    for (name, count) in [
        ("lose-after-accept", 7),
        ("drop", 3),
        ("ignore", 4),
        ("answer-late", 5),
        ("answer-twice", 6),
        ("duplicate", 8),
        ("deliver-late", 9),
        ("corrupt", 2),
        ("reject-but-deliver", 5),
    ] {
        assert_eq!(account.befell(name), count, "{name}");
    }
}

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
