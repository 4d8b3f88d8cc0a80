//! Laws that hold between both ends, whatever the network does.

use muster_model::Micros;
use muster_protocol::coap::{
    BlockSize, ClientSettings, Code, Failure, ServerSettings, Transmission,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::world::{End, Job, Network, World, body};

fn networks(cut: u64) -> impl Strategy<Value = Network> {
    (0..400u64, 0..300u64, 0..=cut, 1..4_000_000u64).prop_map(|(lost, doubled, cut, delay)| {
        Network {
            lost,
            doubled,
            cut,
            delay: Micros(delay),
        }
    })
}

fn jobs(longest: usize) -> impl Strategy<Value = Vec<Job>> {
    let lengths = move || prop_oneof![0..40usize, 0..=longest];
    let job = (0..600_000_000u64, any::<bool>(), lengths(), lengths());
    vec(job, 1..12).prop_map(|jobs| {
        let job = |(due, is_confirmable, up, down)| Job {
            due: Micros(due),
            is_confirmable,
            lengths: (up, down),
        };
        jobs.into_iter().map(job).collect()
    })
}

fn sizes() -> impl Strategy<Value = BlockSize> {
    let bytes = select(vec![16usize, 32, 64, 256, 1_024]);
    bytes.prop_map(|bytes| BlockSize::within(bytes).expect("a size"))
}

/// Latest end of an exchange of one message each way (RFC 7252 section 4.8.2).
const LIFETIME: Micros = Micros::from_secs(247);

proptest! {
    /// RFC 7252 sections 4.2, 4.5 and 4.8.2. Over a network that loses, doubles, reorders and cuts datagrams, every request ends exactly
    /// once, as response, reset or time-out, within its lifetime; none is handed to the server's
    /// application twice; a response has the body that the server gave, unless it was cut; and then
    /// nothing is left.
    #[test]
    fn every_request_ends_once_and_is_handled_at_most_once(
        jobs in jobs(200),
        network in networks(100),
        seed: u64,
        nstart in 1..4u16,
    ) {
        let settings = ClientSettings { nstart, ..ClientSettings::default() };
        let mut world = World::new(jobs.clone(), network, seed, (settings, ServerSettings::default()));
        world.run();
        for (number, (job, seen)) in jobs.iter().zip(&world.seen).enumerate() {
            prop_assert_eq!(seen.ends.len(), 1, "request {}", number);
            let sent = seen.sent.expect("it was sent");
            prop_assert!(seen.ended <= sent + LIFETIME);
            match seen.ends[0] {
                End::Response(code) => {
                    let is_whole = seen.body == body(number, 1, job.lengths.1);
                    prop_assert!(code == Code::CHANGED && (is_whole || network.cut > 0));
                }
                End::Failed(Failure::Unacknowledged) => {
                    prop_assert!(job.is_confirmable);
                    let waited = seen.ended - sent;
                    prop_assert!(waited >= Micros::from_secs(62) && waited <= Micros::from_secs(93));
                }
                End::Failed(Failure::Unanswered) => {
                    let wanted = if job.is_confirmable { LIFETIME } else { Micros::from_secs(145) };
                    prop_assert_eq!(seen.ended - sent, wanted);
                }
                End::Failed(Failure::Reset | Failure::BadOption(_) | Failure::Block) => {
                    prop_assert!(network.cut > 0, "a whole message is never reset");
                }
                End::Failed(cause) => prop_assert!(false, "{}", cause),
            }
        }
        prop_assert!(world.asked.values().all(|times| *times == 1), "{:?}", world.asked);
        prop_assert_eq!((world.client.open_exchanges(), world.client.deadline()), (0, None));
        prop_assert!(world.server.is_idle(world.now + LIFETIME));
    }

    /// RFC 7959 sections 2.4, 2.5 and 2.7. Bodies of any length in blocks of any size reach the other end as they were, once, or the
    /// exchange fails by a rule; and a request is handed on at most once.
    #[test]
    fn bodies_in_blocks_arrive_whole_or_fail(
        jobs in jobs(3_000),
        network in networks(0),
        seed: u64,
        (up, down) in (sizes(), sizes()),
        asks_block_size: bool,
    ) {
        let client = ClientSettings { block_size: up, asks_block_size, ..ClientSettings::default() };
        let server = ServerSettings { block_size: down, ..ServerSettings::default() };
        let network = Network { lost: network.lost / 4, ..network };
        let mut world = World::new(jobs.clone(), network, seed, (client, server));
        world.run();
        for (number, (job, seen)) in jobs.iter().zip(&world.seen).enumerate() {
            prop_assert_eq!(seen.ends.len(), 1, "request {}", number);
            match seen.ends[0] {
                End::Response(code) => {
                    prop_assert_eq!(code, Code::CHANGED);
                    prop_assert!(seen.body == body(number, 1, job.lengths.1));
                }
                End::Failed(Failure::Unacknowledged | Failure::Unanswered) => {}
                End::Failed(cause) => prop_assert!(false, "{}", cause),
            }
        }
        prop_assert_eq!(world.wrong_bodies, 0);
        prop_assert!(world.asked.values().all(|times| *times == 1), "{:?}", world.asked);
        prop_assert_eq!(world.client.open_exchanges(), 0);
    }
}

/// A client remembers so many answers and no more: behind them the first block of a body that comes again
/// is no answer to the question for a later one.
#[test]
fn a_block_that_comes_again_when_it_is_forgotten_fails_nothing() {
    let job = |due, is_confirmable, lengths| Job {
        due: Micros(due),
        is_confirmable,
        lengths,
    };
    let jobs = vec![
        job(114_737_492, true, (17, 0)),
        job(397_701_613, false, (33, 1_313)),
        job(0, true, (97, 2_913)),
        job(77_806_134, true, (2_097, 0)),
        job(12_038_736, false, (0, 1_265)),
    ];
    let network = Network {
        lost: 65,
        doubled: 291,
        cut: 0,
        delay: Micros(42_054),
    };
    let client = ClientSettings {
        block_size: BlockSize::within(16).expect("a size"),
        ..ClientSettings::default()
    };
    let settings = (client, ServerSettings::default());
    let mut world = World::new(jobs, network, 14_428_034_610_586_370_637, settings);
    world.run();
    let seen = &world.seen[1];
    assert!(
        matches!(
            seen.ends[..],
            [End::Response(Code::CHANGED) | End::Failed(Failure::Unanswered)]
        ),
        "{:?}",
        seen.ends
    );
}

/// Over a network without faults every request is answered as it should be, at once, in blocks and
/// separately, and nothing is sent twice.
#[test]
fn without_faults_nothing_fails() {
    let network = Network {
        lost: 0,
        doubled: 0,
        cut: 0,
        delay: Micros(1_000),
    };
    let job = |number: u64| Job {
        due: Micros(number * 300_000_000),
        is_confirmable: true,
        lengths: (
            (number as usize * 97) % 2_500,
            (number as usize * 61) % 2_500,
        ),
    };
    let jobs: Vec<Job> = (0..200).map(job).collect();
    let settings = (ClientSettings::default(), ServerSettings::default());
    let mut world = World::new(jobs.clone(), network, 5, settings);
    world.run();
    let mut unanswered = 0;
    for (number, (job, seen)) in jobs.iter().zip(&world.seen).enumerate() {
        match seen.ends[..] {
            [End::Response(Code::CHANGED)] => assert_eq!(seen.body, body(number, 1, job.lengths.1)),
            // The server keeps silent to some.
            [End::Failed(Failure::Unacknowledged)] => unanswered += 1,
            ref ends => panic!("{number} {job:?} {ends:?}"),
        }
    }
    assert!((10..50).contains(&unanswered), "{unanswered}");
    let stray = (world.client.counts().stray, world.server.counts().stray);
    assert_eq!((stray, world.client.counts().malformed), ((0, 0), 0));
}

/// A network that swallows everything: every CON is given up after five copies, by the rule of
/// section 4.2, whatever the parameters are.
#[test]
fn over_a_dead_network_all_is_given_up_by_the_rule() {
    let network = Network {
        lost: 1_000,
        doubled: 0,
        cut: 0,
        delay: Micros(1),
    };
    let transmission = Transmission::of(Micros(100_000), 2.0, 6);
    let job = |number: u64| Job {
        due: Micros(number * 1_000),
        is_confirmable: true,
        lengths: (5, 5),
    };
    let settings = ClientSettings {
        transmission,
        nstart: 8,
        ..ClientSettings::default()
    };
    let mut world = World::new(
        (0..8).map(job).collect(),
        network,
        9,
        (settings, ServerSettings::default()),
    );
    world.run();
    for seen in &world.seen {
        assert_eq!(seen.ends, [End::Failed(Failure::Unacknowledged)]);
        let waited = (seen.ended - seen.sent.expect("it was sent")).get();
        assert!((12_700_000..=25_400_000).contains(&waited), "{waited}");
    }
    assert_eq!(world.client.counts().retransmitted, 8 * 6);
}
