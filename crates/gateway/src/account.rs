//! The gateway's own account of its work, on raw payload bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use muster_transport::PeerIdentity;
use serde::{Deserialize, Serialize};

use crate::lock::locked;

/// The gateway's account of itself.
///
/// Messages are named by the FNV-1a hash (64 bits) of their payload as it came, so that anyone
/// can recount without knowing how Muster marks its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GatewayAccount {
    /// Plain counts by name, in the order of the source.
    #[serde(flatten)]
    pub counts: GatewayCounts,
    /// Subscriptions there are now.
    pub subscriptions: u64,
    /// For each misbehaviour that happened, the payload hashes of the uplinks it befell, sorted;
    /// two uplinks with the same payload stand twice. Of commands it is the hash of topic and payload.
    /// Written as 16 hexadecimal digits: many readers of JSON round numbers of 64 bits.
    #[serde(with = "hexadecimal")]
    pub misbehaved: BTreeMap<String, Vec<u64>>,
    /// Refused connections by the CONNACK code of MQTT 5.
    pub refused: BTreeMap<u8, u64>,
    /// TLS and WebSocket handshakes that failed, and connections over them that had to end, by
    /// cause.
    pub handshakes_failed: BTreeMap<String, u64>,
    /// The clients that showed a certificate, by its subject.
    pub subjects: BTreeMap<String, Subject>,
}

mod hexadecimal {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    type Named<T> = BTreeMap<String, Vec<T>>;

    pub(super) fn serialize<S: Serializer>(named: &Named<u64>, to: S) -> Result<S::Ok, S::Error> {
        let text = |hash: &u64| format!("{hash:016x}");
        let texts = |hashes: &Vec<u64>| hashes.iter().map(text).collect::<Vec<String>>();
        to.collect_map(named.iter().map(|(name, hashes)| (name, texts(hashes))))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Named<u64>, D::Error> {
        let hash = |text: &String| u64::from_str_radix(text, 16).map_err(D::Error::custom);
        let texts = Named::<String>::deserialize(from)?.into_iter();
        let read = texts
            .map(|(name, texts)| Ok((name, texts.iter().map(hash).collect::<Result<_, _>>()?)));
        read.collect()
    }
}

/// Actions of a client that showed a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Subject {
    /// Connections that were admitted.
    pub connected: u64,
    /// Of these, connections that resumed a TLS session: the certificate is that of the session.
    pub resumed: u64,
    /// Names that the client gave itself, at most [`Subject::CLIENT_IDS_MAX`] of them.
    pub client_ids: BTreeSet<String>,
}

impl Subject {
    /// Most names that are noted of one subject: one is what there should be.
    pub const CLIENT_IDS_MAX: usize = 8;
    /// Most subjects in the account: one for each of the devices that one process of a gateway can
    /// have, several times over.
    const MAX: usize = 100_000;

    pub(crate) fn note(&mut self, is_resumed: bool, client_id: &str) {
        self.connected += 1;
        self.resumed += u64::from(is_resumed);
        if self.client_ids.len() < Self::CLIENT_IDS_MAX {
            self.client_ids.insert(client_id.to_owned());
        }
    }

    fn merge(&mut self, other: &Self) {
        self.connected += other.connected;
        self.resumed += other.resumed;
        self.client_ids.extend(other.client_ids.iter().cloned());
    }
}

impl GatewayAccount {
    /// Adds the account of another gateway process of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.subscriptions += other.subscriptions;
        for (name, hashes) in &other.misbehaved {
            let mine = self.misbehaved.entry(name.clone()).or_default();
            mine.extend_from_slice(hashes);
            mine.sort_unstable();
        }
        for (code, count) in &other.refused {
            *self.refused.entry(*code).or_default() += count;
        }
        for (cause, count) in &other.handshakes_failed {
            *self.handshakes_failed.entry(cause.clone()).or_default() += count;
        }
        for (subject, its) in &other.subjects {
            self.subjects.entry(subject.clone()).or_default().merge(its);
        }
    }

    /// Number of uplinks that a misbehaviour befell, by its name in the scenario.
    pub fn befell(&self, misbehaviour: &str) -> u64 {
        self.misbehaved
            .get(misbehaviour)
            .map_or(0, |hashes| hashes.len() as u64)
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Plain counts since the start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub struct GatewayCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl GatewayCounts {
            fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }

        /// The counts of one thread, written by it and read by any.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: Count,)*
        }

        impl Counts {
            pub(crate) fn read(&self) -> GatewayCounts {
                GatewayCounts { $($name: self.$name.get(),)* }
            }
        }
    };
}

counts! {
    /// Uplinks received: PUBLISH packets without DUP.
    received,
    /// PUBLISH packets with DUP: sent before, as their sender says.
    received_again,
    /// Positive answers written, second answers not counted: PUBACK and PUBREC, or where the
    /// application acknowledges its acknowledgements.
    accepted,
    /// PUBACK and PUBREC written for uplinks that the application acknowledges.
    transport_acknowledged,
    /// Messages of acknowledgements by the application.
    acknowledgements,
    /// Uplinks that the application, or the platform, cannot read.
    unreadable,
    /// Uplinks on topics that the platform does not know.
    unknown_topics,
    /// Devices that a gateway's link said are there; these messages are no uplinks.
    announced,
    /// Devices that it said are gone.
    announced_gone,
    /// Positive answers that said "no matching subscribers" (0x10).
    no_subscriber,
    /// Uplinks that went on after their service time, to whoever subscribed or to the rule engine;
    /// one for each device that they have data of.
    processed,
    /// Negative answers written.
    rejected,
    /// Uplinks that were not answered although they might have been (at QoS 0 only where the
    /// application acknowledges), by the behaviour asked for. Those whose answer was still to come when
    /// the gateway stopped are among them.
    unanswered,
    /// Answers that came too late for their link: it was gone.
    unanswerable,
    /// Uplinks whose server had no room: neither answered nor delivered.
    capacity_dropped,
    /// Uplinks whose server had no room: answered no.
    capacity_rejected,
    /// Uplinks for whose entry to the server's queue the link had to wait.
    capacity_blocked,
    /// Copies of messages written to subscribers, the first time.
    delivered,
    /// Copies that the subscriber acknowledged (PUBACK, PUBREC).
    delivered_acknowledged,
    /// Copies written again after a session was resumed.
    redelivered,
    /// Copies at QoS 0 dropped because the subscriber's queue was full or it was away.
    overflowed,
    /// Copies at QoS 1 and 2 dropped because the queue of an absent session was full.
    offline_overflowed,
    /// Copies that the subscriber cannot take (packet size).
    undeliverable,
    /// Copies that were void before they could be sent (message expiry).
    expired,
    /// Copies that went down with a session that ended.
    discarded,
    /// Messages that were not retained because the store was full.
    retained_overflowed,
    /// Wills published.
    wills,
    /// Times a publisher was not read because a subscriber's queue was full.
    held_back,
    /// Connections that were admitted (CONNACK 0).
    connected,
    /// Of those, sessions that were resumed.
    resumed,
    /// Connections ended because the same client id came again.
    taken_over,
    /// Authentications beyond name and password that succeeded, further ones among them.
    authenticated,
    /// Links closed on purpose (`close-links`, and refusals that MQTT 3.1.1 cannot say).
    closed_links,
    /// Connections ended because their bytes were not of their protocol, and messages of CoAP that were none.
    malformed,
    /// Connections ended because nothing came within one and a half keep-alives.
    keep_alive_expired,
    /// Times the whole gateway stood still.
    stalled,
    /// Commands received: PUBLISH packets on topics of commands.
    commands,
    /// Copies of them due to subscribers.
    commands_routed,
    /// Replies to commands received, with DUP too: of one that a closed link swallowed no other comes.
    replies,
    /// Peers over CoAP: addresses that sent a datagram, counted again after they were forgotten.
    peers,
    /// Datagrams of further addresses, when there were as many peers as may be.
    peers_refused,
    /// Connections over HTTP.
    http_connections,
    /// Connections over HTTP ended because a handshake, or the rest of a request, did not come in time.
    requests_timed_out,
    /// Requests that are no uplinks and no replies: refused by their path, method, options, body or
    /// credentials.
    refused_requests,
    /// Requests over CoAP that were forgotten before their time, for want of memory: a copy of one would
    /// be taken for another request.
    requests_forgotten,
    /// Bodies over CoAP that were given up between two of their blocks, for want of memory: the next block
    /// of one is refused with 4.08.
    bodies_given_up,
    /// Copies of requests over CoAP that met silence, since what the first was answered with was no longer
    /// kept.
    unrepeatable,
    /// Acknowledgements, resets and responses over CoAP that nobody waited for.
    stray,
    /// Answers over CoAP in a separate message.
    separate,
    /// Of these, the ones that were acknowledged.
    separate_acknowledged,
    /// Of these, the ones that were reset, or never acknowledged.
    separate_refused,
    /// Copies of them after the first.
    retransmitted,
    /// Separate answers without further copies, for want of memory; their acknowledgements are
    /// stray.
    separate_given_up,
    /// Requests that waited for a command.
    queries,
    /// Of these requests, the ones that got no command in time.
    queries_without_command,
    /// Of these requests, the ones whose peer was gone before the answer.
    queries_abandoned,
    /// Commands put into the answers to them.
    commands_handed,
    /// Commands that no device waited for, that no answer can carry, or whose answer could not be said.
    commands_undelivered,
    /// Datagrams that the kernel dropped, since the receive buffer was full.
    datagrams_dropped,
    /// Errors that datagrams to devices brought (ICMP).
    unreachable,
    /// Datagrams to devices that found no room, or were refused by the kernel.
    unsent,
    /// DTLS: answers to a first ClientHello, which ask it to come again with a cookie.
    dtls_cookies,
    /// DTLS handshakes that were completed.
    dtls_handshakes,
    /// Of these, the ones that resumed an earlier session.
    dtls_resumed,
    /// Of these, the ones that agreed upon connection ids.
    dtls_connection_ids,
    /// Times that a peer of DTLS was found to have moved to another address.
    dtls_moved,
    /// Sessions of DTLS that their peers closed.
    dtls_closed,
    /// Flights of a handshake that were said again.
    dtls_resent,
    /// Records that no session takes: not authentic, come again, of nobody.
    dtls_discarded,
    /// Uplinks that were refused because no receiver over AMQP had credit, or none accepted them.
    unavailable,
    /// Deliveries over AMQP that were not accepted: released, modified, rejected, or without a disposition.
    returned,
    /// Messages that are in the store; one for each device that they have data of.
    stored,
    /// Messages that the store did not take: of unknown devices, without room, unreadable, or not to be stored by
    /// the root rule chain.
    store_discarded,
    /// TLS handshakes that were completed.
    tls_handshakes,
    /// Of those, the ones that resumed a session.
    tls_resumed,
}

/// A count with one writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// One more. Only the owning thread writes, so a plain load and store is enough.
    pub(crate) fn more(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, by: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + by, Ordering::Relaxed);
    }

    /// Takes over what somebody else counts.
    pub(crate) fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The account as the gateway's threads write it.
#[derive(Debug)]
pub(crate) struct Book {
    /// One for each thread.
    counts: Vec<Counts>,
    amqp: Counts,
    webhook: Counts,
    store: Counts,
    refused: Mutex<BTreeMap<u8, u64>>,
    handshakes_failed: Mutex<BTreeMap<String, u64>>,
    subjects: Mutex<BTreeMap<String, Subject>>,
}

impl Book {
    pub(crate) fn new(threads: u16) -> Self {
        Self {
            counts: (0..threads).map(|_| Counts::default()).collect(),
            amqp: Counts::default(),
            webhook: Counts::default(),
            store: Counts::default(),
            refused: Mutex::default(),
            handshakes_failed: Mutex::default(),
            subjects: Mutex::default(),
        }
    }

    pub(crate) fn counts(&self, thread: u16) -> &Counts {
        &self.counts[usize::from(thread)]
    }

    /// The counts of the thread that speaks AMQP.
    pub(crate) const fn amqp(&self) -> &Counts {
        &self.amqp
    }

    /// The counts of the thread that pushes to a webhook.
    pub(crate) const fn webhook(&self) -> &Counts {
        &self.webhook
    }

    /// The counts of the thread that stores messages.
    pub(crate) const fn store(&self) -> &Counts {
        &self.store
    }

    pub(crate) fn refused(&self, code: u8) {
        *locked(&self.refused).entry(code).or_default() += 1;
    }

    /// Notes a connection whose layers failed; the causes are few.
    pub(crate) fn handshake_failed(&self, cause: &str) {
        let mut failed = locked(&self.handshakes_failed);
        *failed.entry(cause.to_owned()).or_default() += 1;
    }

    pub(crate) fn certificate(&self, peer: PeerIdentity, client_id: &str) {
        let mut subjects = locked(&self.subjects);
        if subjects.len() < Subject::MAX || subjects.contains_key(&peer.subject) {
            let subject = subjects.entry(peer.subject).or_default();
            subject.note(peer.is_resumed, client_id);
        }
    }

    pub(crate) fn read_counts(&self) -> GatewayCounts {
        let mut sum = GatewayCounts::default();
        let others = [&self.amqp, &self.webhook, &self.store];
        let threads = self.counts.iter().chain(others);
        threads.for_each(|counts| sum.add(&counts.read()));
        sum
    }

    /// Without what the book does not hold: subscriptions and misbehaviour.
    pub(crate) fn read(&self) -> GatewayAccount {
        GatewayAccount {
            counts: self.read_counts(),
            refused: locked(&self.refused).clone(),
            handshakes_failed: locked(&self.handshakes_failed).clone(),
            subjects: locked(&self.subjects).clone(),
            ..GatewayAccount::default()
        }
    }
}

/// FNV-1a, 64 bits: ten lines in any language.
pub(crate) fn hash(payload: &[u8]) -> u64 {
    hash_of(payload.iter())
}

/// The hash that names a command: of its topic followed by its payload, since either may hold its id.
pub(crate) fn command_hash(topic: &str, payload: &[u8]) -> u64 {
    hash_of(topic.as_bytes().iter().chain(payload))
}

fn hash_of<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The hash that names a payload in [`GatewayAccount`]: FNV-1a, 64 bits.
pub fn payload_hash(payload: &[u8]) -> u64 {
    hash(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_text_and_read_back() {
        let misbehaved = BTreeMap::from([("drop".to_owned(), vec![u64::MAX - 1, 7])]);
        let account = GatewayAccount {
            misbehaved,
            ..GatewayAccount::default()
        };
        let json = serde_json::to_string(&account).unwrap();
        let wanted = r#""drop":["fffffffffffffffe","0000000000000007"]"#;
        assert!(json.contains(wanted), "{json}");
        assert_eq!(
            serde_json::from_str::<GatewayAccount>(&json).unwrap(),
            account
        );
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the FNV authors.
        assert_eq!(payload_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(payload_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(payload_hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn accounts_of_two_processes_add_up() {
        let mut one = GatewayAccount::default();
        one.counts.received = 3;
        one.misbehaved.insert("drop".to_owned(), vec![5, 9]);
        let mut other = one.clone();
        other.misbehaved.insert("drop".to_owned(), vec![7]);
        other.refused.insert(0x86, 2);
        one.merge(&other);
        assert_eq!((one.counts.received, one.befell("drop")), (6, 3));
        assert_eq!(one.misbehaved["drop"], [5, 7, 9]);
        assert_eq!(one.refused[&0x86], 2);
    }

    #[test]
    fn the_account_survives_json() {
        let mut account = GatewayAccount::default();
        account.misbehaved.insert("drop".to_owned(), vec![u64::MAX]);
        let text = serde_json::to_string(&account).expect("it is plain data");
        assert!(text.contains("\"received\":0"), "{text}");
        let back: GatewayAccount = serde_json::from_str(&text).expect("it was just written");
        assert_eq!(back, account);
    }
}
