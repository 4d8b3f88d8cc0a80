//! Connections of applications over AMQP 1.0, with their sessions and links.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use fe2o3_amqp::acceptor::{
    ConnectionAcceptor, LinkAcceptor, LinkEndpoint, ListenerConnectionHandle,
    ListenerSessionHandle, SessionAcceptor,
};
use fe2o3_amqp::connection::OpenError;
use fe2o3_amqp::types::definitions::{AmqpError, Error, Role};
use fe2o3_amqp::types::performatives::Attach;
use muster_net::Clock;
use muster_protocol::mqtt::reason;
use muster_transport::PeerIdentity;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::address::Address;
use super::exchange::Exchange;
use super::sasl::Gate;
use super::sending;
use super::serving::{Attached, Place, serve};
use crate::shared::Shared;

/// Most connections of applications, over all listeners: a few consumers a process, and many processes.
const CONNECTIONS_MAX: usize = 1_000;
/// Most links that one session has at a time: consumers have a handful.
const LINKS_MAX: usize = 1_000;
/// Links that may wait to be served by their address.
const ATTACHED_MAX: usize = 16;
/// Longest time until a connection is open, with the handshake of TLS.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// Milliseconds without a frame after which either side gives the other up.
const IDLE_MS: u32 = 20_000;
/// Pause after a failure to accept, which is one of resources.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
const CONTAINER: &str = "muster-gateway";

/// The parts that all connections share.
#[derive(Debug, Clone)]
pub(crate) struct Applications {
    pub(super) shared: Arc<Shared>,
    pub(super) exchange: Arc<Exchange>,
    pub(super) clock: Clock,
    /// A permit for each connection, of whatever listener.
    connections: Arc<Semaphore>,
    open_within: Duration,
}

/// Serves applications for as long as the gateway runs.
pub(super) async fn listen(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    applications: Applications,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        // Only then, so that a listener without connections keeps no permit from the other.
        let Ok(permit) = Arc::clone(&applications.connections).acquire_owned().await else {
            return;
        };
        let (applications, tls) = (applications.clone(), tls.clone());
        tokio::spawn(async move {
            applications.serve(stream, tls).await;
            drop(permit);
        });
    }
}

impl Applications {
    pub(crate) fn new(shared: Arc<Shared>, exchange: Arc<Exchange>, clock: Clock) -> Self {
        Self {
            shared,
            exchange,
            clock,
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            open_within: OPEN_WITHIN,
        }
    }

    async fn serve(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Without it small frames only travel later.
        let _ = stream.set_nodelay(true);
        let Some(mut connection) = self.open(stream, tls).await else {
            return;
        };
        let sessions = SessionAcceptor::new();
        while let Ok(session) = sessions.accept(&mut connection).await {
            tokio::spawn(self.clone().serve_session(session));
        }
        // How it ended is the application's to know.
        let _ = connection.on_close().await;
    }

    async fn open(
        &self,
        stream: TcpStream,
        tls: Option<TlsAcceptor>,
    ) -> Option<ListenerConnectionHandle> {
        let until = Instant::now() + self.open_within;
        let Some(tls) = tls else {
            return self.admit(stream, None, until).await;
        };
        let account = &self.shared.account;
        match timeout_at(until, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                account.amqp().tls_handshakes.more();
                let client = PeerIdentity::new(stream.get_ref().1);
                self.admit(stream, client, until).await
            }
            Ok(Err(error)) => {
                account.handshake_failed(&error.to_string());
                None
            }
            Err(_) => {
                account.handshake_failed(&format!("it took more than {:?}", self.open_within));
                None
            }
        }
    }

    /// Lets an application in that has the right credentials; `client` is who its certificate says.
    async fn admit<S>(
        &self,
        stream: S,
        client: Option<PeerIdentity>,
        until: Instant,
    ) -> Option<ListenerConnectionHandle>
    where
        S: AsyncRead + AsyncWrite + Debug + Send + Unpin + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let acceptor = ConnectionAcceptor::builder()
            .container_id(CONTAINER)
            .idle_time_out(IDLE_MS)
            .sasl_acceptor(Gate { shared, client })
            .build();
        match timeout_at(until, acceptor.accept(stream)).await {
            Ok(Ok(connection)) => return Some(connection),
            Ok(Err(OpenError::SaslError { .. })) => {
                self.shared.account.refused(reason::BAD_USER_OR_PASSWORD);
            }
            Ok(Err(_)) | Err(_) => {}
        }
        None
    }

    async fn serve_session(self, mut session: ListenerSessionHandle) {
        let acceptor = LinkAcceptor::new();
        let links = Arc::new(Semaphore::new(LINKS_MAX));
        while let Some(attach) = session.next_incoming_attach().await {
            let permit = Arc::clone(&links).try_acquire_owned();
            let wanted = match permit {
                Ok(permit) => self.wanted(&attach).map(|wanted| (wanted, permit)),
                Err(_) => Err(too_many_links()),
            };
            if let Ok((Wanted::Messages(address), _)) = &wanted {
                // Once the receiver knows that it is attached, devices are not refused for want of one.
                address.add_receiver();
            }
            let link = acceptor.accept_incoming_attach(attach, &mut session).await;
            self.start(link.ok(), wanted);
        }
        let _ = session.on_end().await;
    }

    /// Starts the service of a link, which keeps its permit until it ends; none if the attach failed.
    fn start(
        &self,
        link: Option<LinkEndpoint>,
        wanted: Result<(Wanted, OwnedSemaphorePermit), Error>,
    ) {
        match (link, wanted) {
            (Some(LinkEndpoint::Sender(link)), Ok((Wanted::Messages(address), permit))) => {
                self.attach(&address, Attached { link, permit });
            }
            (Some(LinkEndpoint::Receiver(link)), Ok((Wanted::Target(address), permit))) => {
                let applications = self.clone();
                tokio::spawn(async move {
                    sending::take(applications, link, address).await;
                    drop(permit);
                });
            }
            (None, Ok((Wanted::Messages(address), _))) => address.remove_receiver(),
            (Some(link), Err(error)) => {
                tokio::spawn(refuse(link, error));
            }
            (_, Ok(_)) | (None, Err(_)) => {}
        }
    }

    /// Returns the purpose of a link; the error says why it is refused.
    fn wanted(&self, attach: &Attach) -> Result<Wanted, Error> {
        let server = self.exchange.server();
        let unknown = |address: &str| {
            let why = format!("there is no address `{address}` here");
            Error::new(AmqpError::NotFound, why, None)
        };
        if attach.role == Role::Sender {
            let target = attach.target.as_deref();
            let address = target.and_then(sending::address_of).unwrap_or_default();
            if !(server.is_target)(&address) {
                return Err(unknown(&address));
            }
            return Ok(Wanted::Target(address));
        }
        let source = attach.source.as_deref();
        let name = source.and_then(|source| source.address.as_deref());
        let name = name.unwrap_or_default();
        if !(server.is_source)(name) {
            return Err(unknown(name));
        }
        let address = self.exchange.open(name).ok_or_else(|| {
            let why = "there are too many addresses already".to_owned();
            Error::new(AmqpError::ResourceLimitExceeded, why, None)
        });
        address.map(Wanted::Messages)
    }

    /// Passes a link on to the task that serves its address, which the first one starts.
    fn attach(&self, address: &Arc<Address>, link: Attached) {
        let attached = address.attached.get_or_init(|| {
            let (attached, links) = mpsc::channel(ATTACHED_MAX);
            let place = Place {
                address: Arc::clone(address),
                shared: Arc::clone(&self.shared),
                clock: self.clock,
                unsettled: Arc::new(AtomicUsize::new(0)),
            };
            tokio::spawn(serve(place, links));
            attached
        });
        let attached = attached.clone();
        tokio::spawn(async move {
            // The task ends with the gateway alone.
            let _ = attached.send(link).await;
        });
    }
}

/// Purpose of a link.
#[derive(Debug)]
enum Wanted {
    /// Receiving the messages of an address.
    Messages(Arc<Address>),
    /// Sending to an address.
    Target(String),
}

fn too_many_links() -> Error {
    let why = format!("a session may have {LINKS_MAX} links: use further sessions");
    Error::new(AmqpError::ResourceLimitExceeded, why, None)
}

/// Answers an attach with a detach that says why.
async fn refuse(link: LinkEndpoint, error: Error) {
    // The other side may be gone already.
    let _ = match link {
        LinkEndpoint::Sender(link) => link.close_with_error(error).await,
        LinkEndpoint::Receiver(link) => link.close_with_error(error).await,
    };
}

#[cfg(test)]
mod tests {
    use muster_platform::Dialect;
    use muster_transport::{ServerSpec, ServerTls, Servers, throwaway};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;
    use crate::config::GatewayConfig;

    /// Far longer than a test takes, so that only what hangs meets it.
    const PATIENCE: Duration = Duration::from_secs(60);
    /// The header of SASL, which each side sends first.
    const HEADER: &[u8; 8] = b"AMQP\x03\x01\x00\x00";

    fn applications() -> Applications {
        let shared = Arc::new(Shared::new(GatewayConfig::default()));
        let exchange = Arc::new(Exchange::new(Dialect::Hono));
        Applications::new(shared, exchange, Clock::start())
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let done = runtime.block_on(async { timeout(PATIENCE, test).await });
        done.expect("it hangs")
    }

    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("its address");
        let client = TcpStream::connect(at).await.expect("it listens");
        (client, listener.accept().await.expect("it connects").0)
    }

    #[test]
    fn a_handshake_that_does_not_come_to_its_end_is_counted() {
        let made = throwaway(&["127.0.0.1".to_owned()]).expect("a certificate");
        let servers = Servers::new(&ServerSpec {
            tls: Some(ServerTls::new(made.cert, made.key)),
            is_websocket: false,
        });
        let tls = servers.expect("servers").tls().map(TlsAcceptor::from);
        let applications = Applications {
            open_within: Duration::from_millis(20),
            ..applications()
        };
        let shared = Arc::clone(&applications.shared);
        run(async {
            let (_silent, server) = connection().await;
            applications.serve(server, tls).await;
        });
        let failed = shared.account.read().handshakes_failed;
        assert_eq!(failed, [("it took more than 20ms".to_owned(), 1)].into());
    }

    #[test]
    fn the_bound_on_connections_is_that_of_all_listeners() {
        let applications = Applications {
            connections: Arc::new(Semaphore::new(1)),
            ..applications()
        };
        run(async {
            let mut addresses = Vec::new();
            for _ in 0..2 {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                addresses.push(listener.local_addr().expect("its address"));
                tokio::spawn(listen(listener, None, applications.clone()));
            }
            let mut answer = [0; 8];
            let mut first = TcpStream::connect(addresses[0]).await.expect("a listener");
            first.write_all(HEADER).await.expect("it is sent");
            first.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(applications.connections.available_permits(), 0);
            let mut second = TcpStream::connect(addresses[1]).await.expect("a listener");
            second.write_all(HEADER).await.expect("it is sent");
            drop(first);
            second.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(&answer, HEADER);
            assert_eq!(applications.connections.available_permits(), 0);
        });
    }
}
