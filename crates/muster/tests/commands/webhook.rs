//! A platform that pushes to a webhook: what comes there closes the ledger of a run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_model::Micros;
use muster_protocol::mqtt::{
    Client, ClientEvent, ClientLimits, Connect, Filter, Input, Qos, Subscribe, Version,
};

use crate::free_port::free_port;
use crate::program::{Gateway, folder_with, json, muster};

/// Far longer than a run takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rule engine of a platform: subscribes to what devices publish, and pushes it. It loses the first three
/// messages, pushes the fourth twice, and the fifth with a wrong secret first.
struct Rules {
    broker: TcpStream,
    client: Client,
    unread: Vec<u8>,
    out: Vec<u8>,
    hook: String,
    pushed: u32,
    connection: Option<TcpStream>,
}

impl Rules {
    /// Subscribes at a broker and works on a thread until the broker ends.
    fn start(broker: &str, hook: &str) -> JoinHandle<()> {
        let broker = TcpStream::connect(broker.trim_start_matches("mqtt://")).expect("a broker");
        broker.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut rules = Self {
            broker,
            client: Client::new(Version::V5, &ClientLimits::default()),
            unread: Vec::new(),
            out: Vec::new(),
            hook: hook.to_owned(),
            pushed: 0,
            connection: None,
        };
        let connect = Connect::new("rules");
        let (client, out) = (&mut rules.client, &mut rules.out);
        client
            .connect(Micros::ZERO, &connect, out)
            .expect("CONNECT");
        while !rules.turn() {}
        std::thread::spawn(move || {
            while !rules.is_over() {
                rules.turn();
            }
        })
    }

    fn is_over(&mut self) -> bool {
        self.broker.peek(&mut [0]).map_or(true, |count| count == 0)
    }

    /// Handles what came. Returns true once it is subscribed.
    fn turn(&mut self) -> bool {
        self.flush();
        let mut buffer = [0; 65_536];
        let count = self.broker.read(&mut buffer).expect("the broker answers");
        self.unread.extend_from_slice(&buffer[..count]);
        let unread = std::mem::take(&mut self.unread);
        let (mut input, mut is_subscribed, mut bodies) = (Input::new(&unread), false, Vec::new());
        while let Some(event) = self.client.poll(Micros::ZERO, &mut input, &mut self.out) {
            if let ClientEvent::Connected(_) = event {
                let filters = [Filter::new("muster/#", Qos::AtLeastOnce)];
                let subscribe = Subscribe {
                    id: 0,
                    filters: &filters,
                    subscription_id: None,
                    user_properties: &[],
                };
                let (client, out) = (&mut self.client, &mut self.out);
                client
                    .subscribe(Micros::ZERO, &subscribe, out)
                    .expect("SUBSCRIBE");
            } else if let ClientEvent::Subscribed { .. } = event {
                is_subscribed = true;
            } else if let ClientEvent::Message(message) = event {
                bodies.push((message.topic.as_str().to_owned(), message.payload.to_vec()));
            }
        }
        self.unread = input.rest().to_vec();
        self.flush();
        for (topic, body) in bodies {
            self.push(&topic, &body);
        }
        is_subscribed
    }

    fn flush(&mut self) {
        self.broker.write_all(&self.out).expect("the broker reads");
        self.out.clear();
    }

    fn push(&mut self, topic: &str, body: &[u8]) {
        self.pushed += 1;
        match self.pushed {
            1..=3 => {}
            4 => (0..2).for_each(|_| assert_eq!(self.post(topic, "s3cret", body), 200)),
            5 => {
                assert_eq!(self.post(topic, "other", body), 401);
                assert_eq!(self.post(topic, "s3cret", body), 200);
            }
            _ => assert_eq!(self.post(topic, "s3cret", body), 200),
        }
    }

    /// Pushes a message over the one connection; the status of the answer.
    fn post(&mut self, topic: &str, secret: &str, body: &[u8]) -> u16 {
        let connection = self.connection.get_or_insert_with(|| {
            let connection = TcpStream::connect(&self.hook).expect("the webhook listens");
            connection
                .set_read_timeout(Some(PATIENCE))
                .expect("a time-out");
            connection
        });
        let head = format!(
            "POST /hook/{topic} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {secret}\r\nContent-Length: {}\r\n\r\n",
            self.hook,
            body.len()
        );
        let request = [head.as_bytes(), body].concat();
        connection.write_all(&request).expect("the webhook reads");
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            connection
                .read_exact(&mut byte)
                .expect("the webhook answers");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let status = head.split(' ').nth(1).expect("a status");
        status.parse().expect("a number")
    }
}

fn scenario(broker: &str, hook: &str) -> String {
    format!(
        "name: pushed\nplatform:\n  kind: mqtt\n  devices: [ \"{broker}\" ]\n  \
         backend: {{ webhook: {{ listen: \"http://{hook}/hook\", secret: s3cret }} }}\n\
         fleet: [ {{ count: 10, streams: [ {{ rate: 100/s }} ] }} ]\n\
         phases: {{ warm-up: 0s, measure: 2s, settle: {{ at-most: 30s, quiet: 1s }} }}\n\
         slo: {{ loss: 3, duplicates: 1 }}\n"
    )
}

#[test]
fn arrivals_at_a_webhook_close_the_ledger_to_the_unit() {
    let gateway = Gateway::start::<&str>(&[]);
    let hook = format!("127.0.0.1:{}", free_port());
    let rules = Rules::start(&gateway.url, &hook);
    let folder = folder_with(&scenario(&gateway.url, &hook));
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_ne!(said.code, 2, "{said:?}");
    let result = json(&folder.path().join("out/result.json"));
    let uplink = &result["ledger"]["uplink"];
    let of = |key: &str| uplink[key].as_u64().unwrap_or(u64::MAX);
    assert_eq!((of("scheduled"), of("accepted")), (200, 200), "{uplink}");
    assert_eq!(
        (of("consumed"), of("arrived"), of("lost")),
        (198, 197, 3),
        "{uplink}"
    );
    assert_eq!(
        (of("duplicates"), of("corrupted"), of("residue")),
        (1, 0, 0),
        "{uplink}"
    );
    let events = result["events"].as_array().expect("a list");
    let refused = events.iter().filter(|it| it["kind"] == "push-refused");
    let refused: Vec<_> = refused.map(|it| it["detail"].to_string()).collect();
    assert_eq!(refused.len(), 1, "{events:?}");
    assert!(
        refused[0].contains("1 request was answered with 401"),
        "{refused:?}"
    );
    assert!(
        !result.to_string().contains("s3cret"),
        "no secret in a result"
    );
    gateway.stop();
    rules
        .join()
        .expect("each push was answered as it should be");
}

#[test]
fn a_port_that_is_taken_ends_check_and_run_with_its_name() {
    let gateway = Gateway::start::<&str>(&[]);
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hook = other.local_addr().expect("its address").to_string();
    let folder = folder_with(&scenario(&gateway.url, &hook));
    let wanted = format!("cannot listen on {hook}: another program listens there");
    let said = muster(folder.path(), &["check", "scenario.yaml"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.unbroken().contains(&wanted), "{said:?}");
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "out"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.unbroken().contains(&wanted), "{said:?}");
    drop(other);
    let said = muster(folder.path(), &["check", "scenario.yaml"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.unbroken().contains("free to listen on"), "{said:?}");
}
