//! One worker: a connection to the endpoint, and one request at a time on it.

use std::sync::Arc;
use std::time::Duration;

use muster_protocol::http::{Client, ClientEvent, Request, Ticket, write_field};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::config::WebhookConfig;
use crate::account::Counts;
use crate::backlog::{Backlog, Stored};
use crate::message::Message;
use crate::shared::Shared;

/// Longest waits of a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For a connection, and from the first byte of a request to the last of its answer.
    answer: Duration,
    /// For the next message, before its connection is given back.
    idle: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // As rule engines have it: an endpoint that works answers in milliseconds.
            answer: Duration::from_secs(10),
            // Shorter than servers keep an idle connection, most of them a minute or more: no push meets their end.
            idle: Duration::from_secs(30),
        }
    }
}

/// Pause before a message is pushed again that the endpoint did not take for now.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Most bytes of an answer's body; nobody reads it.
const BODY_MAX: u32 = 64 * 1024;

/// Pushes what is queued for as long as the gateway runs. A message that finds no answer, or one that asks for
/// patience, is pushed again before all others.
pub(super) async fn push(
    shared: &Arc<Shared>,
    config: &WebhookConfig,
    backlog: &Backlog,
    bounds: Bounds,
) {
    let mut connection = None;
    let counts = shared.account.webhook();
    loop {
        let Some((mut stored, has_room)) = backlog.take() else {
            if timeout(bounds.idle, backlog.changed.notified())
                .await
                .is_err()
            {
                connection = None;
            }
            continue;
        };
        if has_room {
            shared.announce_room();
        }
        let Some(open) = take_or_connect(&mut connection, config, bounds.answer).await else {
            backlog.put_back(stored);
            sleep(AGAIN_AFTER).await;
            continue;
        };
        match open.write(config, &stored.message) {
            Ok(()) => {}
            Err(Unsendable::Message) => {
                // Another try would end alike.
                counts.discarded.more();
                continue;
            }
            Err(Unsendable::Connection) => {
                connection = None;
                backlog.put_back(stored);
                continue;
            }
        }
        note_sent(counts, &stored);
        let answered = timeout(bounds.answer, open.post()).await;
        let status = answered.ok().flatten();
        if status.is_none() || open.is_ended() {
            connection = None;
        }
        match status {
            Some(200..=299) => counts.delivered_acknowledged.more(),
            None | Some(408 | 429 | 500..) => {
                counts.returned.more();
                stored.returned = stored.returned.saturating_add(1);
                backlog.put_back(stored);
                sleep(AGAIN_AFTER).await;
            }
            // Another try would end alike.
            Some(_) => counts.discarded.more(),
        }
    }
}

fn note_sent(counts: &Counts, stored: &Stored) {
    if stored.returned > 0 {
        counts.redelivered.more();
    } else {
        counts.delivered.more();
    }
}

async fn take_or_connect<'a>(
    connection: &'a mut Option<Connection>,
    config: &WebhookConfig,
    within: Duration,
) -> Option<&'a mut Connection> {
    if connection.is_none() {
        let connected = timeout(within, TcpStream::connect(config.address)).await;
        let stream = connected.ok()?.ok()?;
        // Without it small requests only travel later.
        let _ = stream.set_nodelay(true);
        *connection = Some(Connection::new(stream));
    }
    connection.as_mut()
}

/// Reasons for which no request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsendable {
    /// The message has a field that HTTP does not allow.
    Message,
    /// The connection takes no further request.
    Connection,
}

/// A connection that stands.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    client: Client,
    input: Vec<u8>,
    target: String,
    fields: Vec<u8>,
    out: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            client: Client::new(1, BODY_MAX),
            input: Vec::new(),
            target: String::new(),
            fields: Vec::new(),
            out: Vec::new(),
        }
    }

    /// True if the endpoint takes no further request here.
    const fn is_ended(&self) -> bool {
        self.client.is_closing()
    }

    /// Posts the request of the buffer: the status of the answer, or none if the connection came to its end.
    async fn post(&mut self) -> Option<u16> {
        self.stream.write_all(&self.out).await.ok()?;
        loop {
            let mut rest = &self.input[..];
            let event = self.client.poll(&mut rest);
            let status = match event {
                Some(ClientEvent::Answered { response, .. }) => Some(response.status),
                Some(ClientEvent::Unasked(_) | ClientEvent::Malformed(_)) => return None,
                None => None,
            };
            let used = self.input.len() - rest.len();
            self.input.drain(..used);
            if status.is_some() {
                return status;
            }
            if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                // A body that ends with its connection is whole now.
                return match self.client.end() {
                    Some(ClientEvent::Answered { response, .. }) => Some(response.status),
                    Some(ClientEvent::Unasked(_) | ClientEvent::Malformed(_)) | None => None,
                };
            }
        }
    }

    /// Writes the request about a message into the buffer.
    fn write(&mut self, config: &WebhookConfig, message: &Message) -> Result<(), Unsendable> {
        config.write_target(&message.topic, &mut self.target);
        self.fields.clear();
        let topic = config
            .topic_header
            .as_ref()
            .map(|name| (name.as_str(), &*message.topic));
        let proof = config
            .proof
            .as_ref()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let media_type = message.content_type().map(|it| ("content-type", it));
        for (name, value) in [topic, proof, media_type].into_iter().flatten() {
            let written = write_field(&mut self.fields, name, value.as_bytes());
            written.map_err(|_| Unsendable::Message)?;
        }
        for (name, value) in message.user_properties() {
            // A property that is no field of HTTP stays behind.
            let _ = write_field(&mut self.fields, name, value.as_bytes());
        }
        self.out.clear();
        let request = Request {
            fields: &self.fields,
            body: &message.payload,
            ..Request::new("POST", &self.target, &config.host)
        };
        let submitted = self.client.submit(Ticket(0), &request, &mut self.out);
        submitted.map_err(|_| Unsendable::Connection)
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;
    use muster_protocol::mqtt::Publish;
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;

    use super::*;
    use crate::config::GatewayConfig;

    const SHORT: Duration = Duration::from_millis(50);
    /// Far longer than a test takes, so that only what hangs meets it.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Pushes one message with these bounds to the endpoint of a listener, while the test does so.
    fn with_worker<T: Future<Output = ()>>(bounds: Bounds, test: impl FnOnce(TcpListener) -> T) {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let at = listener.local_addr().expect("its address");
            let config = WebhookConfig::parse(&format!("http://{at}")).expect("an address");
            let shared = Arc::new(Shared::new(GatewayConfig::default()));
            let backlog = Backlog::default();
            let message = Message::new(&Publish::new("t", b"body"), Micros::ZERO);
            let _ = backlog.store(Arc::new(message));
            tokio::select! {
                () = push(&shared, &config, &backlog, bounds) => {}
                done = timeout(PATIENCE, test(listener)) => done.expect("it hangs"),
            }
        });
    }

    /// The next connection, from which a push was read.
    async fn pushed(listener: &TcpListener) -> TcpStream {
        let (mut client, _) = listener.accept().await.expect("it connects");
        let mut read = Vec::new();
        while !read.ends_with(b"body") {
            let count = client.read_buf(&mut read).await.expect("a push");
            assert!(count > 0, "it has hung up");
        }
        client
    }

    /// Law: bytes that bring no answer to its end give it no more time.
    #[test]
    fn an_answer_that_trickles_in_holds_no_worker_and_its_message_is_pushed_again() {
        let bounds = Bounds {
            answer: SHORT,
            ..Bounds::default()
        };
        with_worker(bounds, async |listener| {
            let mut slow = pushed(&listener).await;
            let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
            let trickle = async {
                while slow.write_all(interim).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(trickle, pushed(&listener));
        });
    }

    #[test]
    fn a_connection_without_a_message_is_given_back() {
        let bounds = Bounds {
            idle: SHORT,
            ..Bounds::default()
        };
        with_worker(bounds, async |listener| {
            let mut client = pushed(&listener).await;
            let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
            client.write_all(answer).await.expect("it is sent");
            assert_eq!(client.read(&mut [0]).await.expect("an end"), 0);
        });
    }
}
