//! Queries of many devices behind one link that speaks CoAP, and the commands that come for each of them.

use std::collections::BTreeMap;

use muster_model::{Answering, Command, Micros, Outcome, Presence, Query, QueryOutcome, ShedCause};
use muster_protocol::coap::Code;

use crate::commanding::{Bringing, Commands, askers_path};
use crate::world::{Peer, Told, World};

const DEVICES: u32 = 3;
/// Queries of each device: one a second.
const QUERIES: u32 = 10;

/// Three devices behind a gateway ask once a second; answers come after a time.
fn world(after: Micros, is_named: bool, commands: &str, query: &str) -> World {
    let text = format!(
        "name: t\nplatform: {{ dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: {{ commands: {{ \
         {commands}, mode: two-way }} }} }}\nfleet: [ {{ name: f, count: {DEVICES}, tenant: t1, gateway: {{ \
         devices: {DEVICES} }}, streams: [ {{ kind: command-query, every: 1s, ttd: 3s, payload: {{ size: 64 \
         }}, {query} }}, {{ kind: command, timeout: 100s }} ] }} ]\nphases: {{ warm-up: 0s, measure: \
         {QUERIES}s, settle: {{ at-most: 300s }} }}\n"
    );
    let peer = Peer::Commands(Commands {
        after,
        brings: Bringing::ToAsker {
            device: 0,
            is_named,
        },
        to_replies: Code::CHANGED,
        loses: 0,
    });
    World::new(peer, &text)
}

fn run(world: &mut World) -> Told {
    world.run_until(Micros::from_secs(300));
    world.end()
}

/// By device: how many commands of this run came to it, and how many of its replies were taken.
fn received(told: &Told) -> BTreeMap<u32, (u32, u32)> {
    let mut by_device: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for command in &told.commands {
        match command {
            Command::Receipt(receipt) => {
                let is_its = receipt.id.is_some_and(|id| id.device == receipt.device);
                by_device.entry(receipt.device.0).or_default().0 += u32::from(is_its);
            }
            Command::Answer(answer) => {
                let is_taken = answer.outcome == Answering::Answered;
                by_device.entry(answer.id.device.0).or_default().1 += u32::from(is_taken);
            }
            Command::Issue(_) | Command::Met(_) | Command::Query(_) | Command::Reply(_) => {}
        }
    }
    by_device
}

#[test]
fn each_device_behind_a_gateway_gets_the_command_for_its_query_and_replies_where_that_said() {
    for is_named in [true, false] {
        let mut world = world(Micros::from_millis(500), is_named, "to: waiting", "");
        let told = run(&mut world);
        let queries = told.queries();
        assert_eq!(queries.len(), (DEVICES * QUERIES) as usize);
        let is_received = |it: &Query| it.outcome == QueryOutcome::Received;
        assert!(queries.iter().all(is_received), "{queries:?}");
        let each = (0..DEVICES).map(|device| (device, (QUERIES, QUERIES)));
        assert_eq!(received(&told), each.collect(), "named: {is_named}");
        let mut went: Vec<_> = world.commanding.replies.iter().map(|it| &it.path).collect();
        went.sort_unstable();
        let paths = (0..DEVICES)
            .flat_map(|device| (0..QUERIES).map(move |seq| askers_path(device, seq, is_named)));
        let mut paths: Vec<_> = paths.collect();
        paths.sort_unstable();
        assert!(went.into_iter().eq(&paths));
        let (one, other) = (Code::POST, Code::PUT);
        let method = if is_named { other } else { one };
        let mut replies = world.commanding.replies.iter();
        assert!(replies.all(|it| it.method == method));
    }
}

/// Law: a device's bounds do not shrink by other devices of its link.
#[test]
fn a_device_behind_a_gateway_has_one_query_under_way_whatever_the_others_do() {
    for query in ["", "loop: closed"] {
        let mut world = world(Micros::from_millis(1_500), true, "to: waiting", query);
        let told = run(&mut world);
        let mut open: BTreeMap<u32, Micros> = BTreeMap::new();
        let mut queries = told.queries();
        queries.sort_by_key(|query| query.taken);
        for query in &queries {
            let until = open.insert(query.id.device.0, query.ended);
            let is_free = until.is_none_or(|until| until <= query.taken);
            assert!(is_free, "{query:?} while another was open until {until:?}");
        }
        if !query.is_empty() {
            continue;
        }
        for attempt in &told.attempts {
            let is_shed = attempt.outcome == Outcome::Shed(ShedCause::Busy);
            assert_eq!(is_shed, attempt.id.seq % 2 == 1, "{attempt:?}");
        }
        let half = QUERIES / 2;
        let each = (0..DEVICES).map(|device| (device, (half, half)));
        assert_eq!(received(&told), each.collect());
    }
}

#[test]
fn a_device_behind_a_gateway_is_waiting_while_its_own_query_is_under_way() {
    let mut world = world(Micros::from_millis(300), true, "rate: 24/s, to: online", "");
    let told = run(&mut world);
    let queries = told.queries();
    let met = told.met();
    assert_eq!(met.len(), 24 * QUERIES as usize);
    for device in 0..DEVICES {
        let mut stood = [0, 0];
        for met in met.iter().filter(|met| met.id.device.0 == device) {
            let mut own = queries.iter().filter(|it| it.id.device.0 == device);
            // In the very moment of a beginning or an end it may be either.
            if own
                .clone()
                .any(|it| met.due == it.taken || met.due == it.ended)
            {
                continue;
            }
            let is_waiting = own.any(|it| it.taken < met.due && met.due < it.ended);
            let expected = match is_waiting {
                true => Presence::Waiting,
                false => Presence::Online,
            };
            assert_eq!(met.presence, expected, "{met:?}");
            stood[usize::from(is_waiting)] += 1;
        }
        assert!(stood.iter().all(|count| *count > 0), "{stood:?}");
    }
}
