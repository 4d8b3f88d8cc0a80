//! A broker of the library's own acceptor: sends what the test says, and reports what it hears.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver as Heard, Sender as Hears, channel};
use std::sync::{Arc, LazyLock, Mutex};

use fe2o3_amqp::acceptor::sasl_acceptor::SaslServerFrame;
use fe2o3_amqp::acceptor::{
    ConnectionAcceptor, LinkAcceptor, LinkEndpoint, ListenerSessionHandle, SaslAcceptor,
    SaslAnonymousMechanism, SaslPlainMechanism, SessionAcceptor,
};
use fe2o3_amqp::types::definitions::{AmqpError, Error};
use fe2o3_amqp::types::messaging::{Body, Message, Outcome};
use fe2o3_amqp::types::primitives::{Array, Symbol, Value};
use fe2o3_amqp::types::sasl::{SaslCode, SaslInit, SaslOutcome, SaslResponse};
use fe2o3_amqp::{Receiver, Sender};
use muster_transport::{Pem, Throwaway, crypto_provider, throwaway};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::select;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::rig::PATIENCE;

pub(crate) type Content = Message<Body<Value>>;

/// An order of the test to the link of an address.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    Send(Box<Content>),
    Detach(AmqpError, &'static str),
}

/// Events at the peer.
#[derive(Debug)]
pub(crate) enum Said {
    /// A consumer receives from this address.
    Attached(String),
    /// A delivery was settled.
    Settled(Outcome),
    /// A command came.
    Command(Box<Content>),
}

/// Outcome of every command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Settle {
    Accept,
    Release,
    Reject,
    /// Acceptance of the first by [`Peer::accept_first`] once there is no credit left, and no outcome for the others.
    AcceptFirst,
    /// Acceptance of those that are sent to this address, and no outcome for the others.
    AcceptAt(&'static str),
}

/// Credit that the library grants to senders.
pub(crate) const CREDIT: usize = 200;

/// The login that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes {
    Anybody,
    Password(&'static str),
    /// Peers that show a certificate in the handshake of TLS.
    Certificate,
}

/// The peer on its thread.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    heard: Heard<Said>,
    hangs_up: watch::Sender<u32>,
}

struct Shared {
    links: Mutex<HashMap<String, UnboundedSender<Do>>>,
    /// The first order to an address, carried out once it is attached.
    first: Mutex<HashMap<String, Do>>,
    settle: Settle,
    /// The order to accept the first command.
    accepts_first: Notify,
    hears: Hears<Said>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        Self::taking(Takes::Anybody, Settle::Accept)
    }

    pub(crate) fn taking(takes: Takes, settle: Settle) -> Self {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (hears, heard) = channel();
        let shared = Arc::new(Shared {
            links: Mutex::default(),
            first: Mutex::default(),
            settle,
            accepts_first: Notify::new(),
            hears,
        });
        let (hangs_up, hang_up) = watch::channel(0);
        let of = Arc::clone(&shared);
        // It ends with the process of the test.
        std::thread::spawn(move || runtime.block_on(serve(listener, takes, of, hang_up)));
        Self {
            address,
            shared,
            heard,
            hangs_up,
        }
    }

    /// The next thing that it hears.
    pub(crate) fn hear(&self) -> Said {
        self.heard
            .recv_timeout(PATIENCE)
            .expect("the peer hears something")
    }

    /// Hears until these addresses are attached.
    pub(crate) fn attached(&self, addresses: &[&str]) {
        let mut missing: Vec<&str> = addresses.to_vec();
        while !missing.is_empty() {
            if let Said::Attached(address) = self.hear() {
                missing.retain(|it| *it != address);
            }
        }
    }

    /// Hears until that many deliveries were settled. Returns how many were accepted.
    pub(crate) fn settled(&self, count: usize) -> usize {
        let (mut settled, mut accepted) = (0, 0);
        while settled < count {
            if let Said::Settled(outcome) = self.hear() {
                settled += 1;
                accepted += usize::from(matches!(outcome, Outcome::Accepted(_)));
            }
        }
        accepted
    }

    /// Hears until a command comes.
    pub(crate) fn command(&self) -> Content {
        loop {
            if let Said::Command(command) = self.hear() {
                return *command;
            }
        }
    }

    pub(crate) fn order(&self, address: &str, order: Do) {
        let links = self.shared.links.lock().unwrap();
        links[address].send(order).unwrap();
    }

    pub(crate) fn send(&self, address: &str, content: Content) {
        self.order(address, Do::Send(Box::new(content)));
    }

    /// Refuses an address as soon as it is attached.
    pub(crate) fn refuse(&self, address: &str, error: AmqpError, said: &'static str) {
        let mut first = self.shared.first.lock().unwrap();
        first.insert(address.to_owned(), Do::Detach(error, said));
    }

    /// Accepts the first command, where it settles so.
    pub(crate) fn accept_first(&self) {
        self.shared.accepts_first.notify_one();
    }

    /// Closes every connection that it has.
    pub(crate) fn hang_up(&self) {
        self.hangs_up.send_modify(|count| *count += 1);
    }
}

async fn serve(
    listener: TcpListener,
    takes: Takes,
    shared: Arc<Shared>,
    hang_up: watch::Receiver<u32>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(connection(
            stream,
            takes,
            Arc::clone(&shared),
            hang_up.clone(),
        ));
    }
}

async fn connection(
    stream: TcpStream,
    takes: Takes,
    shared: Arc<Shared>,
    mut hang_up: watch::Receiver<u32>,
) {
    hang_up.mark_unchanged();
    let opened = match takes {
        Takes::Anybody => {
            let acceptor = ConnectionAcceptor::builder()
                .container_id("peer")
                .sasl_acceptor(SaslAnonymousMechanism::new())
                .build();
            acceptor.accept(stream).await
        }
        Takes::Certificate => {
            let Ok(stream) = tls().accept(stream).await else {
                return;
            };
            let acceptor = ConnectionAcceptor::builder()
                .container_id("peer")
                .sasl_acceptor(External)
                .build();
            acceptor.accept(stream).await
        }
        Takes::Password(password) => {
            let acceptor = ConnectionAcceptor::builder()
                .container_id("peer")
                .sasl_acceptor(SaslPlainMechanism::new("app", password))
                .build();
            acceptor.accept(stream).await
        }
    };
    // A refused login is the test's own doing.
    let Ok(mut connection) = opened else { return };
    let sessions = SessionAcceptor::new();
    loop {
        select! {
            session = sessions.accept(&mut connection) => match session {
                Ok(session) => {
                    tokio::spawn(links(session, Arc::clone(&shared)));
                }
                Err(_) => return,
            },
            _ = hang_up.changed() => {
                let _ = connection.close().await;
                return;
            }
        }
    }
}

/// Logs in every peer; TLS has checked its certificate.
#[derive(Debug, Clone)]
struct External;

impl SaslAcceptor for External {
    fn mechanisms(&self) -> Array<Symbol> {
        Array::from(vec![Symbol::from("EXTERNAL")])
    }

    fn on_init(&mut self, init: SaslInit) -> SaslServerFrame {
        assert_eq!(init.mechanism.as_str(), "EXTERNAL");
        assert_eq!(
            init.initial_response.map(|it| it.into_vec()),
            Some(Vec::new())
        );
        SaslServerFrame::Outcome(SaslOutcome {
            code: SaslCode::Ok,
            additional_data: None,
        })
    }

    fn on_response(&mut self, _: SaslResponse) -> SaslServerFrame {
        unreachable!("nothing was asked")
    }
}

/// The server's end of TLS, with a certificate of [`IDENTITY`], which asks for the client's.
fn tls() -> TlsAcceptor {
    let identity = &*IDENTITY;
    let provider = crypto_provider();
    let certificates = |pem: &Pem| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(pem.text())
            .map(Result::unwrap)
            .collect()
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&identity.ca));
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let key = PrivateKeyDer::from_pem_slice(identity.key.text()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(certificates(&identity.cert), key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Certificate, key and authority of both ends.
pub(crate) static IDENTITY: LazyLock<Throwaway> =
    LazyLock::new(|| throwaway(&["127.0.0.1".to_owned()]).unwrap());

async fn links(mut session: ListenerSessionHandle, shared: Arc<Shared>) {
    let acceptor = LinkAcceptor::new();
    while let Ok(link) = acceptor.accept(&mut session).await {
        match link {
            LinkEndpoint::Sender(sender) => {
                tokio::spawn(send(sender, Arc::clone(&shared)));
            }
            LinkEndpoint::Receiver(receiver) => {
                tokio::spawn(take(receiver, Arc::clone(&shared)));
            }
        }
    }
    let _ = session.on_end().await;
}

/// Sends to a consumer.
async fn send(sender: Sender, shared: Arc<Shared>) {
    let source = sender.source().as_ref().and_then(|it| it.address.clone());
    let address = source.unwrap_or_default();
    let (orders, order) = unbounded_channel();
    shared
        .links
        .lock()
        .unwrap()
        .insert(address.clone(), orders.clone());
    if let Some(first) = shared.first.lock().unwrap().remove(&address) {
        let _ = orders.send(first);
    }
    let _ = shared.hears.send(Said::Attached(address.clone()));
    obey(sender, order, &shared).await;
}

async fn obey(mut sender: Sender, mut orders: UnboundedReceiver<Do>, shared: &Shared) {
    loop {
        select! {
            Some(order) = orders.recv() => match order {
                Do::Send(content) => {
                    let Ok(outcome) = sender.send(*content).await else { return };
                    let _ = shared.hears.send(Said::Settled(outcome));
                }
                Do::Detach(error, said) => {
                    let _ = sender.close_with_error(error_of(error, said)).await;
                    return;
                }
            },
            _ = sender.on_detach() => {
                let _ = sender.close().await;
                return;
            }
        }
    }
}

fn error_of(error: AmqpError, said: &str) -> Error {
    Error::new(error, said.to_owned(), None)
}

/// Takes commands.
async fn take(mut receiver: Receiver, shared: Arc<Shared>) {
    let target = receiver.target().as_ref().and_then(|it| it.address.clone());
    let mut deliveries = Vec::new();
    while let Ok(delivery) = receiver.recv::<Body<Value>>().await {
        let settled = match shared.settle {
            Settle::Accept => receiver.accept(&delivery).await,
            Settle::AcceptAt(address) if target.as_deref() == Some(address) => {
                receiver.accept(&delivery).await
            }
            Settle::AcceptAt(_) => {
                deliveries.push(delivery);
                continue;
            }
            Settle::AcceptFirst => {
                deliveries.push(delivery);
                if deliveries.len() == CREDIT {
                    shared.accepts_first.notified().await;
                    receiver.accept(&deliveries[0]).await.unwrap();
                }
                continue;
            }
            Settle::Release => receiver.release(&delivery).await,
            Settle::Reject => {
                let error = error_of(AmqpError::InvalidField, "no such command");
                receiver.reject(&delivery, error).await
            }
        };
        settled.unwrap();
        let content = Box::new(delivery.into_message());
        let _ = shared.hears.send(Said::Command(content));
    }
}
