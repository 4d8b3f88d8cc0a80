//! A business application over AMQP 1.0 with the library's client, on a thread of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use fe2o3_amqp::connection::{ConnectionHandle, OpenError};
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::definitions::Error;
use fe2o3_amqp::types::messaging::{Body, Data, Message, MessageId, Modified, Outcome, Properties};
use fe2o3_amqp::types::primitives::{SimpleValue, Value};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// An open connection with one session.
pub(crate) struct Application {
    runtime: Runtime,
    /// Kept open.
    _connection: ConnectionHandle<()>,
    session: Arc<Mutex<SessionHandle<()>>>,
}

/// A thread that drives the library's tasks.
#[derive(Clone)]
struct Runtime {
    handle: Handle,
    _stop: Arc<oneshot::Sender<()>>,
}

/// A receiver that takes one message after the other.
pub(crate) struct Consumer {
    runtime: Runtime,
    link: Arc<Mutex<Receiver>>,
}

/// A delivery as it came.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) info: DeliveryInfo,
    pub(crate) message: Message<Body<Value>>,
}

/// A disposition.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settling {
    Accepted,
    Released,
    Rejected,
    Modified,
}

impl Runtime {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || runtime.block_on(stopped));
        Self {
            handle,
            _stop: Arc::new(stop),
        }
    }

    /// The result of a task, within the time that anything may take.
    fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let (done, result) = sync_channel(1);
        self.handle.spawn(async move { done.send(task.await) });
        match result.recv_timeout(PATIENCE) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => panic!("it takes for ever"),
            Err(RecvTimeoutError::Disconnected) => panic!("the task panicked"),
        }
    }
}

impl Application {
    pub(crate) fn new(at: SocketAddr) -> Self {
        Self::open(at, SaslProfile::Anonymous).expect("it is admitted")
    }

    pub(crate) fn open(at: SocketAddr, sasl: SaslProfile) -> Result<Self, OpenError> {
        let runtime = Runtime::new();
        let opened: Result<_, OpenError> = runtime.run(async move {
            let stream = TcpStream::connect(at).await?;
            // Without it small frames only travel later.
            stream.set_nodelay(true)?;
            let connection = Connection::builder()
                .container_id("application")
                .hostname("127.0.0.1")
                .sasl_profile(sasl);
            let mut connection = connection.open_with_stream(stream).await?;
            let session = Session::begin(&mut connection).await.expect("a session");
            Ok((connection, session))
        });
        let (connection, session) = opened?;
        Ok(Self {
            runtime,
            _connection: connection,
            session: Arc::new(Mutex::new(session)),
        })
    }

    /// A receiver with that credit, which is not renewed.
    pub(crate) fn receiver(&self, address: &str, credit: u32) -> Consumer {
        let (session, address) = (Arc::clone(&self.session), address.to_owned());
        let link = self.runtime.run(async move {
            let mut session = session.lock().await;
            let builder = Receiver::builder()
                .name(format!("receiver of {address}"))
                .source(address)
                .credit_mode(CreditMode::Manual);
            builder.attach(&mut session).await.expect("it is attached")
        });
        let consumer = Consumer {
            runtime: self.runtime.clone(),
            link: Arc::new(Mutex::new(link)),
        };
        consumer.grant(credit);
        self.wait_until_read();
        consumer
    }

    /// Waits until the gateway has read all that was sent.
    pub(crate) fn wait_until_read(&self) {
        let session = Arc::clone(&self.session);
        self.runtime.run(async move {
            echo(&mut *session.lock().await).await;
        });
    }

    /// The reason for which an address is refused to a receiver; none if it is not.
    pub(crate) fn refusal(&self, address: &str) -> Option<String> {
        let (session, address) = (Arc::clone(&self.session), address.to_owned());
        self.runtime.run(async move {
            let mut session = session.lock().await;
            match Receiver::attach(&mut session, "refused", address).await {
                Ok(mut link) => Some(format!("{:?}", link.recv::<Body<Value>>().await.err())),
                Err(error) => Some(format!("{error:?}")),
            }
        })
    }

    /// Sends a command: its outcome.
    pub(crate) fn command(&self, tenant: &str, properties: Properties, body: &[u8]) -> Outcome {
        self.issue(tenant, properties, body).outcome()
    }

    /// Sends a command, which the gateway has read then.
    pub(crate) fn issue(&self, tenant: &str, properties: Properties, body: &[u8]) -> Issued {
        let mut all = self.issue_all(tenant, vec![(properties, body.to_vec())]);
        all.pop().expect("one for each command")
    }

    /// Sends commands on one link, all of which the gateway has read then.
    pub(crate) fn issue_all(
        &self,
        tenant: &str,
        commands: Vec<(Properties, Vec<u8>)>,
    ) -> Vec<Issued> {
        let session = Arc::clone(&self.session);
        let address = format!("command/{tenant}");
        self.runtime.run(async move {
            let mut session = session.lock().await;
            let link = Sender::attach(&mut session, "commands", address).await;
            let mut link = link.expect("it is attached");
            let (mut deliveries, mut all) = (Vec::new(), Vec::new());
            for (properties, body) in commands {
                let message = Message::builder().properties(properties).data(body).build();
                let delivery = link.send_batchable(message).await.expect("it is sent");
                let (settled, outcome) = sync_channel(1);
                deliveries.push(tokio::spawn(async move {
                    // Nobody waits for it where a test has failed.
                    let _ = settled.send(delivery.await.expect("it is settled"));
                }));
                all.push(Issued(outcome));
            }
            echo(&mut session).await;
            tokio::spawn(async move {
                for delivery in deliveries {
                    delivery.await.expect("it is settled");
                }
                link.close().await.expect("it is closed");
            });
            all
        })
    }
}

/// A command without an outcome.
pub(crate) struct Issued(std::sync::mpsc::Receiver<Outcome>);

impl Issued {
    pub(crate) fn outcome(self) -> Outcome {
        self.0.recv_timeout(PATIENCE).expect("it is settled")
    }
}

/// Waits until the gateway has read all that was sent: it answers frames of one session in order.
async fn echo(session: &mut SessionHandle<()>) {
    if let Ok(echo) = Receiver::attach(session, "echo", "no/such/address").await {
        // One that was refused is closed already.
        let _ = echo.close().await;
    }
}

impl Consumer {
    pub(crate) fn grant(&self, credit: u32) {
        let link = Arc::clone(&self.link);
        self.runtime.run(async move {
            let mut link = link.lock().await;
            link.set_credit(credit).await.expect("it is attached");
        });
    }

    /// The next message, which has no disposition yet.
    pub(crate) fn next(&self) -> Came {
        let link = Arc::clone(&self.link);
        let delivery = self.runtime.run(async move {
            let mut link = link.lock().await;
            link.recv::<Body<Value>>().await.expect("a message")
        });
        let (info, message) = delivery.into_parts();
        Came { info, message }
    }

    pub(crate) fn settle(&self, came: &Came, how: Settling) {
        let (link, info) = (Arc::clone(&self.link), came.info.clone());
        self.runtime.run(async move {
            let link = link.lock().await;
            let settled = match how {
                Settling::Accepted => link.accept(info).await,
                Settling::Released => link.release(info).await,
                Settling::Rejected => link.reject(info, None::<Error>).await,
                Settling::Modified => {
                    let modified = Modified {
                        delivery_failed: Some(true),
                        undeliverable_here: None,
                        message_annotations: None,
                    };
                    link.modify(info, modified).await
                }
            };
            settled.expect("it is settled");
        });
    }

    /// Takes a number of messages and accepts each.
    pub(crate) fn take(&self, count: usize) -> Vec<Came> {
        let link = Arc::clone(&self.link);
        self.runtime.run(async move {
            let (mut link, mut all) = (link.lock().await, Vec::new());
            while all.len() < count {
                let delivery = link.recv::<Body<Value>>().await.expect("a message");
                let (info, message) = delivery.into_parts();
                link.accept(info.clone()).await.expect("it is settled");
                all.push(Came { info, message });
            }
            all
        })
    }

    pub(crate) fn detach(self) {
        let link = Arc::into_inner(self.link).expect("nobody else has it");
        self.runtime.run(async move {
            link.into_inner().close().await.expect("it is closed");
        });
    }
}

impl Came {
    pub(crate) fn body(&self) -> Vec<u8> {
        let Body::Data(sections) = &self.message.body else {
            panic!("no data: {:?}", self.message.body);
        };
        let sections = sections.iter();
        sections.flat_map(|Data(bytes)| bytes.to_vec()).collect()
    }

    pub(crate) fn properties(&self) -> &Properties {
        self.message.properties.as_ref().expect("properties")
    }

    pub(crate) fn application_property(&self, name: &str) -> Option<SimpleValue> {
        let all = self.message.application_properties.as_ref()?;
        all.0.get(name).cloned()
    }
}

/// The properties of a command to a device of the tenant T1, which wants a reply.
pub(crate) fn to(device: &str) -> Properties {
    Properties::builder()
        .to(format!("command/T1/{device}"))
        .subject("set")
        .correlation_id(MessageId::String("7f3a".to_owned()))
        .reply_to("command_response/T1/r-1")
        .build()
}
