//! Messages that the gateway pushes to an HTTP endpoint.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use muster_gateway::{Gateway, GatewayConfig, WebhookConfig};
use muster_protocol::http::{Reply, Server, ServerEvent};
use muster_protocol::mqtt::{Publish, Qos, Version};

use crate::device::{Device, PATIENCE as DEVICE_PATIENCE};
use crate::peer::Peer;

const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it came.
#[derive(Debug, PartialEq, Eq)]
struct Pushed {
    target: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

/// An endpoint that answers with these statuses in turn, and then with 200.
fn endpoint(statuses: &'static [u16]) -> (SocketAddr, Receiver<Pushed>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("it is bound");
    let (pushed, requests) = sync_channel(1_000);
    let turn = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (pushed, turn) = (pushed.clone(), Arc::clone(&turn));
            let status = move || {
                let turn = turn.fetch_add(1, Ordering::SeqCst);
                statuses.get(turn).copied().unwrap_or(200)
            };
            thread::spawn(move || serve(stream, &pushed, status));
        }
    });
    (at, requests)
}

fn serve(mut stream: TcpStream, pushed: &SyncSender<Pushed>, status: impl Fn() -> u16) {
    let (mut server, mut input, mut out) = (Server::new(10_000), Vec::new(), Vec::new());
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        input.extend_from_slice(&buffer[..read]);
        let mut rest = &input[..];
        while let Some(ServerEvent::Request(request)) = server.poll(&mut rest, &mut out) {
            let proof = request.head.field("authorization");
            let request = Pushed {
                target: request.target().to_owned(),
                authorization: proof.map(|it| String::from_utf8_lossy(it).into_owned()),
                body: request.body.to_vec(),
            };
            Reply::new(status()).write(&mut out);
            // Nobody reads it where a test has ended.
            let _ = pushed.send(request);
        }
        let used = input.len() - rest.len();
        input.drain(..used);
        if stream.write_all(&out).is_err() {
            return;
        }
        out.clear();
    }
}

/// A gateway that pushes there, and a device.
fn rig(at: SocketAddr) -> (Gateway, Peer) {
    let webhook = WebhookConfig::parse(&format!("http://{at}/muster")).expect("an address");
    let gateway = Gateway::start(GatewayConfig {
        webhook: Some(webhook.with_token("t-1")),
        ..GatewayConfig::default()
    });
    let gateway = gateway.expect("a gateway");
    let device = Peer::new(gateway.addr(), Version::V5, "device");
    (gateway, device)
}

fn until(gateway: &Gateway, acknowledged: u64) {
    let give_up = Device::now() + DEVICE_PATIENCE;
    while gateway.account().counts.delivered_acknowledged < acknowledged {
        assert!(Device::now() < give_up, "{:?}", gateway.account().counts);
        thread::yield_now();
    }
}

#[test]
fn each_message_is_pushed_with_its_topic_and_the_proof() {
    let (at, requests) = endpoint(&[]);
    let (gateway, mut device) = rig(at);
    for (topic, body) in [("m/d-1/t", b"1"), ("m/d 2/t", b"2")] {
        device.publish(topic, body, Qos::AtLeastOnce);
        let pushed = requests.recv_timeout(PATIENCE).expect("a request");
        let expected = Pushed {
            target: format!("/muster/{}", topic.replace(' ', "%20")),
            authorization: Some("Bearer t-1".to_owned()),
            body: body.to_vec(),
        };
        assert_eq!(pushed, expected);
    }
    until(&gateway, 2);
    let counts = gateway.stop().counts;
    assert_eq!((counts.delivered, counts.delivered_acknowledged), (2, 2));
}

#[test]
fn what_the_endpoint_does_not_take_for_now_comes_again_before_all_others() {
    let (at, requests) = endpoint(&[503, 429, 400]);
    let (gateway, mut device) = rig(at);
    for body in [b"1", b"2", b"3"] {
        device.publish("m/t", body, Qos::AtLeastOnce);
    }
    let bodies = (0..5).map(|_| requests.recv_timeout(PATIENCE).expect("a request").body);
    assert!(bodies.eq([b"1", b"1", b"1", b"2", b"3"].map(|body| body.to_vec())));
    until(&gateway, 2);
    let counts = gateway.stop().counts;
    assert_eq!((counts.delivered, counts.redelivered), (3, 2));
    assert_eq!((counts.returned, counts.discarded), (2, 1));
    assert_eq!(counts.delivered_acknowledged, 2);
}

#[test]
fn a_message_that_http_cannot_hold_is_discarded() {
    let (at, requests) = endpoint(&[]);
    let (gateway, mut device) = rig(at);
    device.send(&Publish {
        qos: Qos::AtLeastOnce,
        content_type: Some("text/plain\u{1}"),
        ..Publish::new("m/t", b"1")
    });
    device.publish("m/t", b"2", Qos::AtLeastOnce);
    assert_eq!(
        requests.recv_timeout(PATIENCE).expect("a request").body,
        b"2"
    );
    until(&gateway, 1);
    let counts = gateway.stop().counts;
    assert_eq!((counts.delivered, counts.delivered_acknowledged), (1, 1));
    assert_eq!((counts.discarded, counts.returned), (1, 0));
}
