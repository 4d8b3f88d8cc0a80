//! Laws of the codec.

#![expect(
    clippy::unwrap_used,
    reason = "what was read can be written; if not, the test has failed"
)]

use muster_protocol::mqtt::packet::{
    Acknowledge, Auth, Connack, Connect, Disconnect, Filter, Filters, Packet, Publish,
    RetainHandling, Suback, Subscribe, Texts, Unsubscribe, Will,
};
use muster_protocol::mqtt::{Input, Properties, Property, Qos, Version};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

// Packets borrow; generated values are leaked so that a strategy can hand one out whole.

fn text() -> impl Strategy<Value = &'static str> {
    "[ -~\u{80}-\u{2fff}]{0,12}".prop_map(|text| &*text.leak())
}

fn name() -> impl Strategy<Value = &'static str> {
    "[a-z$/ \u{e9}]{1,12}".prop_map(|text| &*text.leak())
}

fn data() -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..40).prop_map(|data| &*data.leak())
}

fn qos() -> impl Strategy<Value = Qos> {
    select(vec![Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce])
}

fn version() -> impl Strategy<Value = Version> {
    select(vec![Version::V311, Version::V5])
}

type Boxed<T> = BoxedStrategy<T>;

/// One value of the property with this number.
fn property(id: u8) -> Boxed<Property<'static>> {
    match id {
        1 => any::<bool>().prop_map(Property::PayloadFormat).boxed(),
        2 => any::<u32>().prop_map(Property::MessageExpiry).boxed(),
        3 => text().prop_map(Property::ContentType).boxed(),
        8 => name().prop_map(Property::ResponseTopic).boxed(),
        9 => data().prop_map(Property::CorrelationData).boxed(),
        11 => (1u32..268_435_456)
            .prop_map(Property::SubscriptionId)
            .boxed(),
        17 => any::<u32>().prop_map(Property::SessionExpiry).boxed(),
        18 => text().prop_map(Property::AssignedClientId).boxed(),
        19 => any::<u16>().prop_map(Property::ServerKeepAlive).boxed(),
        21 => text().prop_map(Property::AuthenticationMethod).boxed(),
        22 => data().prop_map(Property::AuthenticationData).boxed(),
        23 => any::<bool>()
            .prop_map(Property::RequestProblemInformation)
            .boxed(),
        24 => any::<u32>().prop_map(Property::WillDelay).boxed(),
        25 => any::<bool>()
            .prop_map(Property::RequestResponseInformation)
            .boxed(),
        26 => text().prop_map(Property::ResponseInformation).boxed(),
        28 => text().prop_map(Property::ServerReference).boxed(),
        31 => text().prop_map(Property::ReasonString).boxed(),
        33 => (1u16..).prop_map(Property::ReceiveMaximum).boxed(),
        34 => any::<u16>().prop_map(Property::TopicAliasMaximum).boxed(),
        35 => (1u16..).prop_map(Property::TopicAlias).boxed(),
        36 => select(vec![
            Property::MaximumQos(Qos::AtMostOnce),
            Property::MaximumQos(Qos::AtLeastOnce),
        ])
        .boxed(),
        37 => any::<bool>().prop_map(Property::RetainAvailable).boxed(),
        38 => (text(), text())
            .prop_map(|(name, value)| Property::User(name, value))
            .boxed(),
        39 => (1u32..).prop_map(Property::MaximumPacketSize).boxed(),
        40 => any::<bool>().prop_map(Property::WildcardAvailable).boxed(),
        41 => any::<bool>()
            .prop_map(Property::SubscriptionIdAvailable)
            .boxed(),
        42 => any::<bool>().prop_map(Property::SharedAvailable).boxed(),
        _ => unreachable!("only numbers of table 2-4 are asked for"),
    }
}

/// Some of the properties allowed in a place; none in MQTT 3.1.1.
fn properties(version: Version, allowed: &'static [u8]) -> Boxed<Properties<'static>> {
    if version == Version::V311 {
        return Just(Properties::NONE).boxed();
    }
    subsequence(allowed, 0..=allowed.len())
        .prop_flat_map(|ids| ids.into_iter().map(property).collect::<Vec<_>>())
        .prop_map(|list| Properties::new(list.leak()))
        .boxed()
}

fn will(version: Version) -> impl Strategy<Value = Will<'static>> {
    let properties = properties(version, &[1, 2, 3, 8, 9, 24, 38, 38]);
    (name(), data(), qos(), any::<bool>(), properties).prop_map(
        |(topic, payload, qos, retain, properties)| Will {
            topic,
            payload,
            qos,
            retain,
            properties,
        },
    )
}

fn connect(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let properties = properties(version, &[17, 21, 23, 25, 33, 34, 38, 38, 39]);
    let names = (text(), option::of(text()), option::of(data()));
    (
        names,
        any::<bool>(),
        any::<u16>(),
        option::of(will(version)),
        properties,
    )
        .prop_map(
            move |((client_id, user, password), clean_start, keep_alive, will, properties)| {
                let password = password.filter(|_| version == Version::V5 || user.is_some());
                Packet::Connect(Connect {
                    version,
                    client_id,
                    clean_start,
                    keep_alive,
                    will,
                    user,
                    password,
                    properties,
                })
            },
        )
}

fn connack(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let all = &[
        17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 38, 38, 39, 40, 41, 42,
    ];
    (any::<bool>(), any::<u8>(), properties(version, all)).prop_map(
        |(is_present, code, properties)| {
            let session_present = is_present && code == 0;
            Packet::Connack(Connack {
                session_present,
                code,
                properties,
            })
        },
    )
}

fn publish(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let properties = properties(version, &[1, 2, 3, 8, 9, 11, 11, 35, 38, 38]);
    let flags = (any::<bool>(), qos(), any::<bool>(), 1u16..);
    (flags, name(), properties, data()).prop_map(
        |((dup, qos, retain, id), topic, properties, payload)| {
            let packet_id = (qos != Qos::AtMostOnce).then_some(id);
            let dup = dup && packet_id.is_some();
            Packet::Publish(Publish {
                dup,
                qos,
                retain,
                topic,
                packet_id,
                properties,
                payload,
            })
        },
    )
}

fn acknowledge(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let kinds: [fn(Acknowledge<'static>) -> Packet<'static>; 4] = [
        Packet::Puback,
        Packet::Pubrec,
        Packet::Pubrel,
        Packet::Pubcomp,
    ];
    (
        select(kinds.to_vec()),
        1u16..,
        any::<u8>(),
        properties(version, &[31, 38, 38]),
    )
        .prop_map(move |(kind, packet_id, reason, properties)| {
            let reason = if version == Version::V5 { reason } else { 0 };
            kind(Acknowledge {
                packet_id,
                reason,
                properties,
            })
        })
}

fn filter(version: Version) -> impl Strategy<Value = Filter<'static>> {
    let handling = select(vec![
        RetainHandling::Send,
        RetainHandling::SendIfNew,
        RetainHandling::Keep,
    ]);
    (name(), qos(), any::<bool>(), any::<bool>(), handling).prop_map(
        move |(filter, qos, no_local, retain_as_published, retain_handling)| {
            if version == Version::V311 {
                return Filter::new(filter, qos);
            }
            Filter {
                filter,
                qos,
                no_local,
                retain_as_published,
                retain_handling,
            }
        },
    )
}

fn subscribe(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let properties = properties(version, &[11, 38, 38]);
    (1u16.., properties, vec(filter(version), 1..4)).prop_map(|(packet_id, properties, list)| {
        let filters = Filters::new(list.leak());
        Packet::Subscribe(Subscribe {
            packet_id,
            properties,
            filters,
        })
    })
}

fn unsubscribe(version: Version) -> impl Strategy<Value = Packet<'static>> {
    (1u16.., properties(version, &[38, 38]), vec(name(), 1..4)).prop_map(
        |(packet_id, properties, list)| {
            let filters = Texts::new(list.leak());
            Packet::Unsubscribe(Unsubscribe {
                packet_id,
                properties,
                filters,
            })
        },
    )
}

fn suback(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let codes = vec(any::<u8>(), 1..5).prop_map(|codes| &*codes.leak());
    (
        any::<bool>(),
        1u16..,
        properties(version, &[31, 38, 38]),
        codes,
    )
        .prop_map(move |(is_un, packet_id, properties, codes)| {
            let codes = if is_un && version == Version::V311 {
                &[]
            } else {
                codes
            };
            let suback = Suback {
                packet_id,
                properties,
                codes,
            };
            if is_un {
                Packet::Unsuback(suback)
            } else {
                Packet::Suback(suback)
            }
        })
}

fn farewell(version: Version) -> impl Strategy<Value = Packet<'static>> {
    let leave = properties(version, &[17, 28, 31, 38, 38]);
    let auth = properties(version, &[21, 22, 31, 38, 38]);
    (any::<bool>(), any::<u8>(), leave, auth).prop_map(move |(is_auth, reason, leave, auth)| {
        match version {
            Version::V311 => Packet::Disconnect(Disconnect {
                reason: 0,
                properties: leave,
            }),
            Version::V5 if is_auth => Packet::Auth(Auth {
                reason,
                properties: auth,
            }),
            Version::V5 => Packet::Disconnect(Disconnect {
                reason,
                properties: leave,
            }),
        }
    })
}

fn packet(version: Version) -> impl Strategy<Value = (Version, Packet<'static>)> {
    let packet = prop_oneof![
        connect(version),
        connack(version),
        publish(version),
        publish(version),
        acknowledge(version),
        subscribe(version),
        unsubscribe(version),
        suback(version),
        farewell(version),
        select(vec![Packet::Pingreq, Packet::Pingresp]),
    ];
    packet.prop_map(move |packet| (version, packet))
}

fn any_packet() -> impl Strategy<Value = (Version, Packet<'static>)> {
    version().prop_flat_map(packet)
}

fn decode(version: Version, bytes: &[u8]) -> Option<Packet<'_>> {
    Packet::decode(version, &mut Input::new(bytes), u32::MAX)
        .ok()
        .flatten()
}

/// Checks that bytes that can be read can be written, and read as the same.
fn check_stable(version: Version, bytes: &[u8]) {
    let Some(packet) = decode(version, bytes) else {
        return;
    };
    let version = if let Packet::Connect(connect) = &packet {
        connect.version
    } else {
        version
    };
    let mut out = Vec::new();
    packet.encode(version, &mut out).unwrap();
    assert_eq!(decode(version, &out), Some(packet));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// decode(encode(x)) = x, and it takes all the bytes.
    #[test]
    fn a_packet_survives_the_wire((version, packet) in any_packet()) {
        let mut out = Vec::new();
        packet.encode(version, &mut out).unwrap();
        let mut input = Input::new(&out);
        let read = Packet::decode(version, &mut input, u32::MAX);
        prop_assert_eq!(read, Ok(Some(packet)));
        prop_assert_eq!(input.consumed(), out.len());
    }

    /// Of a packet without its last byte nothing is taken, and nothing is wrong with it yet.
    #[test]
    fn a_part_of_a_packet_is_left_alone((version, packet) in any_packet(), cut: u16) {
        let mut out = Vec::new();
        packet.encode(version, &mut out).unwrap();
        let cut = usize::from(cut) % out.len();
        let mut input = Input::new(&out[..cut]);
        prop_assert_eq!(Packet::decode(version, &mut input, u32::MAX), Ok(None));
        prop_assert_eq!(input.consumed(), 0);
    }

    /// No bytes make the decoder panic; what it reads it can write and read again.
    #[test]
    fn any_bytes_can_be_decoded(version in version(), bytes in vec(any::<u8>(), 0..64)) {
        check_stable(version, &bytes);
    }

    /// The same of packets with a few bytes changed, which come much further.
    #[test]
    fn changed_packets_can_be_decoded(
        (version, packet) in any_packet(), changes in vec(any::<(u16, u8)>(), 1..4)
    ) {
        let mut bytes = Vec::new();
        packet.encode(version, &mut bytes).unwrap();
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        check_stable(Version::V311, &bytes);
        check_stable(Version::V5, &bytes);
    }
}
