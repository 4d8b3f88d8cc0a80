//! Diagnostics of receive buffers, on sockets of UDP.

use std::net::UdpSocket;

use muster_conduct::Diagnostic;
use muster_model::Outcome;
use muster_net::limits;

use super::narrow::Rig;
use super::*;

const NON: &str = "streams: [ { rate: 100/s, confirmable: false, payload: { size: 64 } } ]";
/// Far more than any receive buffer that nobody asked for holds.
const BURST: u64 = 5_000;
const NOTHING: [u64; 0] = [];

/// Devices over UDP, and the peer whom they talk to.
fn rig(fleet: &str) -> (Rig<Datagrams>, UdpSocket) {
    let peer = UdpSocket::bind("127.0.0.1:0").expect("a port");
    peer.set_nonblocking(true).expect("a socket");
    let target = peer.local_addr().expect("its address");
    (Rig::over(Datagrams, target, fleet, 16), peer)
}

fn came(rig: &mut Rig<Datagrams>) -> u64 {
    rig.shard.parts().1.counts().datagrams_in
}

/// Numbers of drops that the next dispatch reports.
fn dropped(rig: &mut Rig<Datagrams>) -> Vec<u64> {
    let (shards, io) = rig.shard.parts();
    let now = io.now();
    let dispatch = shards.drivers[0].dispatch(io, now);
    let diagnostics = rig.diagnostics().into_iter().chain(dispatch.diagnostics);
    let drops = diagnostics.filter_map(|diagnostic| {
        if let Diagnostic::ReceiveDrop(count) = diagnostic {
            Some(count)
        } else {
            None
        }
    });
    drops.collect()
}

/// The kernel drops at once what finds no room, and nobody reads while the burst comes.
#[test]
fn what_a_receive_buffer_had_no_room_for_is_told_to_the_datagram_and_once() {
    for sockets in ["", "sockets: shared, "] {
        let (mut rig, peer) = rig(&format!("{sockets}{NON}"));
        let (mut device, mut room) = (None, [0; 2_048]);
        rig.until(|_| {
            device = peer.recv_from(&mut room).ok().map(|(_, from)| from);
            device.is_some()
        });
        let device = device.expect("it spoke");
        assert_eq!(dropped(&mut rig), NOTHING, "{sockets}");
        for _ in 0..BURST {
            peer.send_to(&[0xff; 512], device).expect("it is sent");
        }
        let mut before = 0;
        rig.until(|rig| std::mem::replace(&mut before, came(rig)) == came(rig) && before > 0);
        assert!(before < BURST, "{sockets}");
        // Of drops the next datagram tells.
        peer.send_to(&[0xff], device).expect("it is sent");
        rig.until(|rig| came(rig) > before);
        assert_eq!(dropped(&mut rig), [BURST - before], "{sockets}");
        assert_eq!(dropped(&mut rig), NOTHING, "{sockets}");
    }
}

/// More than any system grants.
const TOO_MUCH: usize = 1 << 30;

#[test]
fn a_shared_socket_that_is_granted_less_than_it_asks_for_is_told_with_both_numbers() {
    let most = limits::receive_buffer_max().expect("Linux") as usize;
    for links in [1, 2_000] {
        let (mut rig, _peer) = rig(&format!("count: {links}, sockets: shared, {NON}"));
        let wanted = muster_plan::shared_receive_buffer(links);
        let (shards, io) = rig.shard.parts();
        let key = shards.drivers[0].sockets.shared[0].key.expect("it stands");
        assert_eq!(io.receive_buffer(key), Some(wanted.min(most)), "{links}");
        assert_eq!(tells_less(&mut rig, (wanted, most)), most < wanted);
        let (shards, io) = rig.shard.parts();
        shards.drivers[0].reports.ask_for_buffer(io, key, TOO_MUCH);
        assert!(tells_less(&mut rig, (TOO_MUCH, most)));
    }
}

fn tells_less(rig: &mut Rig<Datagrams>, (wanted, most): (usize, usize)) -> bool {
    let numbers = format!("of {wanted} bytes and was granted {most}: raise `net.core.rmem_max`");
    let diagnostics = rig.diagnostics().into_iter();
    let mut granted = diagnostics.filter(|it| matches!(it, Diagnostic::ReceiveBuffer(_)));
    granted.any(|it| matches!(it, Diagnostic::ReceiveBuffer(text) if text.contains(&numbers)))
}

const CON: &str =
    "streams: [ { every: 30s, phase: together, timeout: 20ms, payload: { size: 64 } } ]";
/// More datagrams than one turn reads of a socket.
const FIRST: usize = 150;

/// The acknowledgement of a CoAP request, with 2.04 (RFC 7252 section 4.2).
fn acknowledged(request: &[u8]) -> Vec<u8> {
    let token = usize::from(request[0] & 0x0f);
    let mut answer = request[..4 + token].to_vec();
    answer[0] = 0x60 | request[0] & 0x0f;
    answer[1] = 0x44;
    answer
}

/// An answer that lies in the socket when its time is over, behind more than one turn reads, counts.
#[test]
fn what_has_come_is_read_before_time_outs_are_decided() {
    for sockets in ["", "sockets: shared, "] {
        let (mut rig, peer) = rig(&format!("{sockets}{CON}"));
        let (mut request, mut room) = (None, [0; 2_048]);
        rig.until(|_| {
            request = peer.recv_from(&mut room).ok();
            request.is_some()
        });
        let (length, device) = request.expect("it spoke");
        for _ in 0..FIRST {
            peer.send_to(&[0xff], device).expect("it is sent");
        }
        let answer = acknowledged(&room[..length]);
        peer.send_to(&answer, device).expect("it is sent");
        let clock = *rig.shard.parts().1.clock();
        let over = clock.now() + Micros::from_millis(40);
        while clock.now() < over {}
        let ended = rig.first_end();
        assert_eq!(ended.outcome, Outcome::Accepted, "{sockets}");
        assert!(
            ended.ended - ended.due > Micros::from_millis(20),
            "{sockets}"
        );
    }
}
