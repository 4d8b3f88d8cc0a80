//! A webhook before clients that push as rule engines do: real sockets, a real consumer on its thread.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use muster_backend::{WebhookBounds, WebhookEnds, webhooks_loop};
use muster_conduct::{Diagnostic, Handover};
use muster_model::Micros;
use muster_plan::Plan;
use muster_transport::{ServerSpec, ServerTls, Servers, throwaway};

use crate::free_port::free_port;
use crate::rig::{PATIENCE, Rig, parsed, refusal, sent};

/// A plan with a webhook at an address, with further keys of the backend.
fn plan(listen: &str, webhook: &str, backend: &str) -> Plan {
    parsed(&format!(
        "name: hook
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ webhook: {{ listen: '{listen}'{webhook} }}{backend} }}
fleet: [ {{ name: meters, count: 10, streams: [ {{ name: r, rate: 10/s, payload: {{ template: '{{\"id\":\"${{stamp}}\"}}' }} }} ] }} ]
phases: {{ measure: 60s }}
"
    ))
}

/// The payload of a message of the plan.
fn payload(plan: &Plan, seq: u32) -> Vec<u8> {
    sent(plan, seq).scratch.payload
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

/// Address of a plan's webhook.
fn address(plan: &Plan) -> SocketAddr {
    let endpoint = &plan.backends[0].endpoint;
    SocketAddr::new(endpoint.host.parse().unwrap(), endpoint.port)
}

/// A webhook that is up, and whose run has begun.
fn up(plan: &Plan) -> Rig {
    start(plan, Servers::default(), WebhookBounds::default()).begun()
}

fn start(plan: &Plan, servers: Servers, bounds: WebhookBounds) -> Rig {
    let layers = vec![servers];
    let ends = WebhookEnds { layers, bounds };
    Rig::start(plan, address(plan), |spec, mailbox| {
        webhooks_loop(spec, &ends, None, mailbox)
    })
}

/// Finishes, and returns the account and the words of all reports.
fn finish(rig: Rig) -> (Box<Handover>, Vec<String>) {
    let (handover, diagnostics) = rig.finish();
    let words = diagnostics.iter().map(|it| {
        if let Diagnostic::PushRefused(refusal) = it {
            return refusal.to_string();
        }
        if let Diagnostic::NoPushAccepted(text)
        | Diagnostic::PushAbsent(text)
        | Diagnostic::PushConfirmation(text) = it
        {
            return text.clone();
        }
        refusal(std::slice::from_ref(it)).unwrap_or_else(|| format!("{it:?}"))
    });
    let words = words.collect();
    (handover, words)
}

/// A free address for a webhook.
fn free() -> String {
    format!("http://127.0.0.1:{}", free_port())
}

#[test]
fn each_request_is_a_copy_whatever_way_it_comes() {
    let plan = plan(&format!("{}/hook", free()), "", "");
    let rig = up(&plan);
    let mut client = Client::to(address(&plan));
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
    let (handover, diagnostics) = finish(rig);
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
        let rig = up(&plan);
        let all: Vec<_> = (0..5)
            .map(|seq| String::from_utf8(payload(&plan, seq)).unwrap())
            .collect();
        let body = format!("[ {} ]", all.join(",\n"));
        let mut client = Client::to(address(&plan));
        assert_eq!(client.write(&post("/", "", body.as_bytes())).status(), 200);
        let account = finish(rig).0.account;
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
        let rig = up(&plan);
        let mut client = Client::to(address(&plan));
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
        let (handover, diagnostics) = finish(rig);
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
    let mut rig = up(&plan);
    let mut client = Client::to(address(&plan));
    // The pause begins in the turn that starts the run, or soon after.
    rig.until(|rig| rig.clock.now() > Micros::ZERO);
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
    let (_, diagnostics) = finish(rig);
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
    let rig = up(&plan);
    for (request, status) in [
        (&b"GET /hook HTTP/1.1\r\nHost: h\r\n\r\n"[..], 405),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 404),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", 415),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", 400),
    ] {
        let mut client = Client::to(address(&plan));
        assert_eq!(client.write(request).status(), status);
    }
    let (handover, diagnostics) = finish(rig);
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
    let rig = up(&plan);
    let url = "https://iot.eu-central-1.amazonaws.com/confirmdestination/Abc";
    let body = format!("{{\"messageType\":\"DestinationConfirmation\",\"enableUrl\":\"{url}\"}}");
    let header = "x-amz-rules-engine-message-type: DestinationConfirmation\r\n";
    let mut client = Client::to(address(&plan));
    (0..3).for_each(|_| {
        let status = client.write(&post("/", header, body.as_bytes())).status();
        assert_eq!(status, 200);
    });
    let (handover, diagnostics) = finish(rig);
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
    let mut rig = start(&plan, Servers::default(), WebhookBounds::default());
    rig.until(|rig| !rig.diagnostics.is_empty());
    let (_, diagnostics) = finish(rig);
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
    let plan = plan(&free(), "", "");
    let servers = Servers::new(&spec).unwrap();
    let rig = start(&plan, servers, WebhookBounds::default()).until_up();
    let mut client = Client::to(address(&plan));
    client.write(&post("/", "", b"in plain"));
    assert!(client.0.read(&mut [0]).is_ok(), "an alert, or the end");
    drop(client);
    let (_, diagnostics) = finish(rig);
    assert!(
        diagnostics
            .concat()
            .contains("1 connection was ended: the platform does not agree to TLS"),
        "{diagnostics:?}"
    );
}

const SHORT: Micros = Micros::from_millis(50);

/// Law: bytes that bring no request to its end give it no more time.
#[test]
fn a_request_that_trickles_in_is_answered_with_408_and_its_connection_is_closed() {
    let plan = plan(&free(), "", "");
    let bounds = WebhookBounds {
        request: SHORT,
        ..WebhookBounds::default()
    };
    let rig = start(&plan, Servers::default(), bounds).begun();
    let mut client = Client::to(address(&plan));
    client.write(&post("/", "", &payload(&plan, 0)));
    assert_eq!(client.status(), 200);
    let length = 1_000_000;
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    client.write(head.as_bytes());
    client.0.set_nonblocking(true).unwrap();
    let (mut answer, mut written) = ([0; 12], 0);
    while client.0.peek(&mut answer).is_err() {
        // All but the last byte, so that the request has no end. The webhook may have closed it just now.
        if written < length - 1 {
            written += client.0.write(b"x").unwrap_or(0);
        }
        std::thread::yield_now();
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    client.0.set_nonblocking(false).unwrap();
    assert_eq!(client.status(), 408);
    assert!(client.is_closed());
    let (handover, diagnostics) = finish(rig);
    assert_eq!(handover.account.backends[0].consumed, 1);
    let [said] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    assert!(
        said.ends_with(
            "1 request was answered with 408: its last byte did not come in time (of 50 ms)"
        ),
        "{said}"
    );
}

#[test]
fn a_connection_without_a_request_is_closed_in_order_and_nobody_is_blamed() {
    let plan = plan(&free(), "", "");
    let bounds = WebhookBounds {
        idle: SHORT,
        ..WebhookBounds::default()
    };
    let rig = start(&plan, Servers::default(), bounds).until_up();
    let mut client = Client::to(address(&plan));
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    assert_eq!(finish(rig).1, [""; 0]);
}

#[test]
fn a_platform_that_does_not_read_its_answers_is_cut_off_and_named() {
    let plan = plan(&free(), "", "");
    let bounds = WebhookBounds {
        answer: SHORT,
        ..WebhookBounds::default()
    };
    let mut rig = start(&plan, Servers::default(), bounds).begun();
    let client = Client::to(address(&plan));
    // More answers than any buffer between the two holds.
    let requests = post("/", "", b"{}").repeat(10_000);
    let mut writer = client.0.try_clone().unwrap();
    let writer = std::thread::spawn(move || while writer.write_all(&requests).is_ok() {});
    rig.until(|rig| rig.said("does not read the answers to its pushes"));
    writer.join().unwrap();
    finish(rig);
}

#[test]
fn a_handshake_that_does_not_come_to_its_end_is_cut_off() {
    let made = throwaway(&["127.0.0.1".to_owned()]).unwrap();
    let spec = ServerSpec {
        tls: Some(ServerTls::new(made.cert, made.key)),
        ..ServerSpec::default()
    };
    let plan = plan(&free(), "", "");
    let bounds = WebhookBounds {
        request: SHORT,
        ..WebhookBounds::default()
    };
    let rig = start(&plan, Servers::new(&spec).unwrap(), bounds).until_up();
    let mut client = Client::to(address(&plan));
    assert!(client.is_closed());
    let (_, diagnostics) = finish(rig);
    assert!(
        diagnostics.concat().contains("it took more than 50 ms"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_webhook_that_refuses_every_push_says_so_at_the_end() {
    let plan = plan(&free(), ", secret: s3cret", "");
    let rig = up(&plan);
    let mut client = Client::to(address(&plan));
    for seq in 0..3 {
        client.write(&post("/", "", &payload(&plan, seq)));
        assert_eq!(client.status(), 401);
    }
    let (_, diagnostics) = finish(rig);
    let [_, none, all] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    assert!(
        none.ends_with("no push was accepted; see the other events `push-refused` for the causes"),
        "{none}"
    );
    assert!(
        all.contains("3 requests were answered with 401 in all"),
        "{all}"
    );
}

#[test]
fn a_webhook_that_nobody_pushes_to_says_so_and_names_the_remedy() {
    let plan = plan(&free(), "", "");
    let (_, diagnostics) = finish(up(&plan));
    let [said] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    assert!(
        said.contains("no push has come: does the platform's rule name this address"),
        "{said}"
    );
}

#[test]
fn a_webhook_to_which_nothing_was_due_yet_says_nothing() {
    let text = "name: hook
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ], backend: { webhook: { listen: 'LISTEN' } } }
fleet: [ { name: meters, count: 1, streams: [ { name: r, rate: 1/20h, shape: { poisson: true } } ] } ]
phases: { measure: 200h }
";
    let plan = parsed(&text.replace("LISTEN", &free()));
    assert_eq!(finish(up(&plan)).1, [""; 0]);
}
