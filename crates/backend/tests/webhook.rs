//! A webhook before clients that push as rule engines do: real sockets, a real consumer on its thread.

#![expect(
    clippy::unwrap_used,
    reason = "what the helpers take for granted is the test's own doing"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersSpec, webhooks_loop};
use muster_conduct::{
    Diagnostic, Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink,
};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::UplinkScratch;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_transport::{ServerSpec, ServerTls, Servers, throwaway};

const RUN: RunId = RunId(7);
/// Far longer than a test takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A plan with a webhook at an address, with further keys of the backend.
fn plan(listen: &str, webhook: &str, backend: &str) -> Plan {
    let text = format!(
        "name: hook
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ webhook: {{ listen: '{listen}'{webhook} }}{backend} }}
fleet: [ {{ name: meters, count: 10, streams: [ {{ name: r, rate: 10/s, payload: {{ template: '{{\"id\":\"${{stamp}}\"}}' }} }} ] }} ]
phases: {{ measure: 60s }}
"
    );
    let name = "hook.yaml";
    let source = Source { name, text: &text };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The payload of a message of the plan.
fn payload(plan: &Plan, seq: u32) -> Vec<u8> {
    let (fleet, stream) = plan.stream(StreamId(0)).unwrap();
    let (directory, uplink) = (directory(plan, fleet, 0), uplink(stream).unwrap());
    let mut scratch = UplinkScratch::default();
    let id = MessageId {
        run: RUN,
        device: DeviceId(seq % 10),
        stream: StreamId(0),
        seq: seq / 10,
    };
    uplink.render(&directory, &id, Micros::ZERO, &mut scratch);
    scratch.payload.clone()
}

/// A request that pushes a body.
fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: h\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// A connection to a webhook.
struct Client(TcpStream);

impl Client {
    fn to(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn write(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.write_all(bytes).unwrap();
        self
    }

    /// The next head that comes: the webhook's answers have no body.
    fn answer(&mut self) -> String {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap()
    }

    fn status(&mut self) -> u16 {
        let answer = self.answer();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// True if the webhook has closed it.
    fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

/// One webhook on its thread.
struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    clock: Clock,
    thread: JoinHandle<()>,
    diagnostics: Vec<String>,
    copies: u64,
    at: SocketAddr,
}

impl Rig {
    /// A webhook that is up, and whose run has begun.
    fn up(plan: &Plan) -> Self {
        let mut rig = Self::start(plan, Servers::default());
        rig.until(|_, is_up| is_up);
        let origin = rig.clock.now();
        rig.order(Order::Start { origin });
        rig
    }

    fn start(plan: &Plan, servers: Servers) -> Self {
        let clock = Clock::start();
        let endpoint = &plan.backends[0].endpoint;
        let at = SocketAddr::new(endpoint.host.parse().unwrap(), endpoint.port);
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let spec = spec(plan, clock, at);
        let mut made = webhooks_loop(&spec, &[servers], None, mailbox).unwrap();
        let waker = made.parts().1.waker();
        let thread = std::thread::spawn(move || made.run().unwrap());
        let rig = Self {
            orders,
            dispatches,
            waker,
            clock,
            thread,
            diagnostics: Vec::new(),
            copies: 0,
            at,
        };
        rig.order(Order::Connect);
        rig
    }

    fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        self.waker.wake();
    }

    /// Takes news until it is so; the second argument is whether the webhook is up.
    fn until(&mut self, is_so: impl Fn(&Self, bool) -> bool) {
        loop {
            let (_, dispatch) = self.dispatches.recv_timeout(PATIENCE).expect("news");
            let is_up = dispatch.progress.consumers_up == 1;
            self.take(*dispatch);
            if is_so(self, is_up) {
                return;
            }
        }
    }

    fn take(&mut self, dispatch: Dispatch) -> Option<Box<Handover>> {
        self.copies += dispatch
            .windows
            .copies
            .values()
            .map(|it| it.consumed)
            .sum::<u64>();
        let texts = dispatch.diagnostics.iter().map(|it| {
            if let Diagnostic::PushRefused(text) | Diagnostic::PushConfirmation(text) = it {
                return text.clone();
            }
            if let Diagnostic::ConsumerRefused(refusal) = it {
                return refusal.to_string();
            }
            format!("{it:?}")
        });
        self.diagnostics.extend(texts);
        dispatch.handover
    }

    fn finish(mut self) -> (Box<Handover>, Vec<String>) {
        self.order(Order::Finish);
        let handover = loop {
            let (_, dispatch) = self
                .dispatches
                .recv_timeout(PATIENCE)
                .expect("the last news");
            if let Some(handover) = self.take(*dispatch) {
                break handover;
            }
        };
        self.thread.join().unwrap();
        (handover, self.diagnostics)
    }
}

fn spec(plan: &Plan, clock: Clock, target: SocketAddr) -> ConsumersSpec {
    let schedules = schedules(plan).unwrap();
    ConsumersSpec {
        recorder: recorder_plan(plan, RUN, &schedules),
        plan: Arc::new(plan.clone()),
        schedules,
        run: RUN,
        clock,
        consumers: vec![ConsumerPlan {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target,
        }],
        gateways: Vec::new(),
        lost_copy: None,
    }
}

/// A free address for a webhook.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn each_request_is_a_copy_whatever_way_it_comes() {
    let plan = plan(&format!("{}/hook", free()), "", "");
    let rig = Rig::up(&plan);
    let mut client = Client::to(rig.at);
    // One after the other on one connection.
    for seq in 0..10 {
        client.write(&post("/hook", "", &payload(&plan, seq)));
        assert_eq!(client.status(), 200);
    }
    // Several at once.
    let many: Vec<u8> = (10..60)
        .flat_map(|seq| post("/hook/t", "", &payload(&plan, seq)))
        .collect();
    client.write(&many);
    (0..50).for_each(|_| assert_eq!(client.status(), 200));
    // In chunks, byte by byte, by a client that waits until it may send the body.
    let body = payload(&plan, 60);
    client.write(b"POST /hook HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.status(), 100);
    let chunked = [
        format!("{:x}\r\n", body.len()).as_bytes(),
        &body,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    chunked.chunks(1).for_each(|byte| {
        client.write(byte);
    });
    assert_eq!(client.status(), 200);
    // A last one.
    client.write(&post("/hook", "Connection: close\r\n", &payload(&plan, 61)));
    assert_eq!(client.status(), 200);
    assert!(client.is_closed());
    let (handover, diagnostics) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!(
        (account.consumed, account.read.count, account.unstamped),
        (62, 62, 0)
    );
    assert_eq!(diagnostics, [""; 0]);
}

#[test]
fn an_array_is_a_batch_where_the_scenario_wants_it() {
    // As one message, the array has other bytes than any that was sent.
    for (keys, wanted) in [(", batches: true", (5, 5)), ("", (1, 0))] {
        let plan = plan(&free(), keys, "");
        let rig = Rig::up(&plan);
        let all: Vec<_> = (0..5)
            .map(|seq| String::from_utf8(payload(&plan, seq)).unwrap())
            .collect();
        let body = format!("[ {} ]", all.join(",\n"));
        let mut client = Client::to(rig.at);
        assert_eq!(client.write(&post("/", "", body.as_bytes())).status(), 200);
        let account = rig.finish().0.account;
        assert_eq!(
            (account.backends[0].consumed, account.backends[0].read.count),
            wanted,
            "{keys}"
        );
    }
}

#[test]
fn whoever_does_not_show_the_secret_is_refused_and_counted() {
    for (webhook, backend, header, challenge) in [
        (
            ", secret: s3cret",
            "",
            "Authorization: Bearer s3cret\r\n",
            "Bearer",
        ),
        (
            ", secret: s3cret, secret-header: X-Muster",
            "",
            "x-muster: s3cret\r\n",
            "Bearer",
        ),
        (
            "",
            ", user: me, password: pw",
            "Authorization: basic bWU6cHc=\r\n",
            "Basic",
        ),
    ] {
        let plan = plan(&free(), webhook, backend);
        let rig = Rig::up(&plan);
        let mut client = Client::to(rig.at);
        client.write(&post("/", header, &payload(&plan, 0)));
        assert_eq!(client.status(), 200, "{webhook}");
        let further = [
            "",
            "Authorization: Bearer s3cre\r\n",
            "X-Muster: s3cret2\r\n",
            "Authorization: Basic x\r\n",
        ];
        for header in further {
            client.write(&post("/", header, &payload(&plan, 1)));
            let answer = client.answer();
            assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
            assert!(
                answer.contains(&format!("WWW-Authenticate: {challenge} ")),
                "{answer}"
            );
        }
        let (handover, diagnostics) = rig.finish();
        assert_eq!(handover.account.backends[0].consumed, 1);
        let [first, last] = &diagnostics[..] else {
            panic!("{diagnostics:?}");
        };
        assert!(
            first.contains("1 request was answered with 401: it shows another secret"),
            "{first}"
        );
        assert!(
            last.contains("4 requests were answered with 401 in all"),
            "{last}"
        );
        assert!(!diagnostics.concat().contains("s3cret"), "{diagnostics:?}");
    }
}

#[test]
fn a_webhook_that_is_paused_says_for_how_long() {
    let plan = plan(&free(), "", ", pause: [ { at: 0s, for: 50s } ]");
    let mut rig = Rig::up(&plan);
    let mut client = Client::to(rig.at);
    // The pause begins in the turn that starts the run, or soon after.
    rig.until(|rig, _| rig.clock.now() > Micros::ZERO);
    loop {
        let answer = client.write(&post("/", "", &payload(&plan, 0))).answer();
        if answer.starts_with("HTTP/1.1 503 ") {
            let after = answer
                .split("Retry-After: ")
                .nth(1)
                .unwrap()
                .split("\r\n")
                .next()
                .unwrap();
            assert!(
                (1..=50).contains(&after.parse::<u32>().unwrap()),
                "{answer}"
            );
            break;
        }
    }
    let (_, diagnostics) = rig.finish();
    assert!(
        diagnostics
            .concat()
            .contains("1 request was answered with 503 in all: the backend is paused"),
        "{diagnostics:?}"
    );
}

#[test]
fn what_is_no_push_is_refused_with_its_status() {
    let plan = plan(&format!("{}/hook", free()), "", "");
    let rig = Rig::up(&plan);
    for (request, status) in [
        (&b"GET /hook HTTP/1.1\r\nHost: h\r\n\r\n"[..], 405),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", 415),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", 400),
    ] {
        let mut client = Client::to(rig.at);
        assert_eq!(client.write(request).status(), status);
    }
    let (handover, diagnostics) = rig.finish();
    assert_eq!(handover.account.backends[0].consumed, 0);
    let all = diagnostics.concat();
    for status in [400, 404, 405, 413, 415] {
        assert!(
            all.contains(&format!("answered with {status}")),
            "{diagnostics:?}"
        );
    }
}

#[test]
fn a_question_of_aws_iot_is_answered_and_its_address_is_named() {
    let plan = plan(&free(), ", secret: s", "");
    let rig = Rig::up(&plan);
    let url = "https://iot.eu-central-1.amazonaws.com/confirmdestination/Abc";
    let body = format!("{{\"messageType\":\"DestinationConfirmation\",\"enableUrl\":\"{url}\"}}");
    let header = "x-amz-rules-engine-message-type: DestinationConfirmation\r\n";
    let mut client = Client::to(rig.at);
    (0..3).for_each(|_| {
        let status = client.write(&post("/", header, body.as_bytes())).status();
        assert_eq!(status, 200);
    });
    let (handover, diagnostics) = rig.finish();
    assert_eq!(handover.account.backends[0].consumed, 0);
    let [said] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    assert!(
        said.ends_with(&format!("open {url} to confirm it")),
        "{said}"
    );
}

#[test]
fn a_port_that_is_taken_is_named_at_once() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap();
    let plan = plan(&format!("http://{at}"), "", "");
    let mut rig = Rig::start(&plan, Servers::default());
    rig.until(|rig, _| !rig.diagnostics.is_empty());
    let (_, diagnostics) = rig.finish();
    let said = &diagnostics[0];
    assert!(
        said.contains(&format!(
            "cannot listen on {at}: another program listens there"
        )),
        "{said}"
    );
    assert!(
        said.ends_with("see platform.backend.webhook.listen"),
        "{said}"
    );
}

#[test]
fn over_tls_a_client_that_does_not_trust_the_certificate_is_named() {
    let made = throwaway(&["127.0.0.1".to_owned()]).unwrap();
    let tls = Some(ServerTls::new(made.cert, made.key));
    let spec = ServerSpec {
        tls,
        ..ServerSpec::default()
    };
    let mut rig = Rig::start(&plan(&free(), "", ""), Servers::new(&spec).unwrap());
    rig.until(|_, is_up| is_up);
    let mut client = Client::to(rig.at);
    client.write(&post("/", "", b"in plain"));
    assert!(client.0.read(&mut [0]).is_ok(), "an alert, or the end");
    drop(client);
    let (_, diagnostics) = rig.finish();
    assert!(
        diagnostics
            .concat()
            .contains("1 connection was ended: the platform does not agree to TLS"),
        "{diagnostics:?}"
    );
}
