//! The peer of a consumer, and the way to it: socket, TLS, login, connection, session and links.

use std::cell::Cell;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use muster_model::Micros;
use muster_net::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::refusal;
use super::sasl::{Login, log_in};
use crate::loss::{Loss, of_connect, of_tls};

/// Milliseconds without a frame after which either side gives the other up.
const IDLE_MS: u32 = 20_000;
/// Transfers of a session under way: above any credit that is useful, and far below the protocol's bound.
const WINDOW: u32 = 1 << 20;

/// Inputs of a consumer's connections.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    /// Its name, as OPEN and the login have it.
    pub(super) host: String,
    /// The consumer's own name.
    pub(super) container: String,
    /// None without TLS.
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The hint at TLS where a peer hangs up at once.
    pub(super) hint: String,
    pub(super) login: Login,
    /// Addresses to receive from; those of replies are the last.
    pub(super) sources: Vec<String>,
    /// Addresses of commands, one for each tenant.
    pub(super) commands: Vec<String>,
    pub(super) credit: u32,
    pub(super) clock: Clock,
    /// Instant in microseconds since which the library's thread has worked without a pause.
    pub(super) awake: AtomicU64,
}

/// An open connection with a session.
pub(super) struct Opened {
    pub(super) connection: ConnectionHandle<()>,
    pub(super) session: SessionHandle<()>,
}

/// A stream with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> Stream for S {}

impl Target {
    /// Notes that the library's thread wakes up.
    pub(super) fn wakes(&self) {
        self.awake.store(self.clock.now().get(), Ordering::Relaxed);
    }

    /// Instant since which the library's thread has worked without a pause.
    pub(super) fn awake_since(&self) -> Micros {
        Micros(self.awake.load(Ordering::Relaxed))
    }

    /// Connects and logs in. `awaited` names the answer that is still to come.
    pub(super) async fn open(&self, awaited: &Cell<&'static str>) -> Result<Opened, Loss> {
        awaited.set("the TCP connection");
        let socket = TcpStream::connect(self.address).await;
        let socket = socket.map_err(|error| of_connect(&error))?;
        // Dispositions and flows are small, and each is waited for.
        let _ = socket.set_nodelay(true);
        awaited.set("the TLS handshake");
        let mut stream = self.secure(socket).await?;
        awaited.set("the answer of SASL");
        let logged_in = log_in(&mut stream, &self.login, &self.host).await;
        logged_in.map_err(|loss| self.hinted(loss))?;
        awaited.set("OPEN");
        let opened = Connection::builder()
            .container_id(self.container.as_str())
            .hostname(self.host.as_str())
            .idle_time_out(IDLE_MS)
            .open_with_stream(stream)
            .await;
        let mut connection = opened.map_err(refusal::of_open)?;
        awaited.set("BEGIN");
        let begun = Session::builder().incoming_window(WINDOW);
        let session = begun.begin(&mut connection).await;
        let session = session.map_err(refusal::of_begin)?;
        Ok(Opened {
            connection,
            session,
        })
    }

    async fn secure(&self, socket: TcpStream) -> Result<Box<dyn Stream>, Loss> {
        let Some((connector, name)) = &self.tls else {
            return Ok(Box::new(socket));
        };
        match connector.connect(name.clone(), socket).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(self.hinted(of_tls(&error))),
        }
    }

    /// Adds the hint at TLS if the peer hung up before its first byte, or spoke no TLS: it may speak TLS, or none.
    fn hinted(&self, loss: Loss) -> Loss {
        match loss.is_mute {
            true => loss.with(&self.hint),
            false => loss,
        }
    }

    /// Attaches the receiver of a source, without credit.
    pub(super) async fn receiver(
        &self,
        session: &mut SessionHandle<()>,
        source: usize,
    ) -> Result<Receiver, Loss> {
        let address = &self.sources[source];
        let attached = Receiver::builder()
            .name(format!("{}-{address}", self.container))
            .source(address.as_str())
            .credit_mode(CreditMode::Manual)
            .verify_incoming_source(false)
            .attach(session)
            .await;
        attached.map_err(|error| refusal::of_receiver(error, address))
    }

    /// Attaches the sender of commands of one tenant.
    pub(super) async fn sender(
        &self,
        session: &mut SessionHandle<()>,
        address: &str,
    ) -> Result<Sender, Loss> {
        let attached = Sender::builder()
            .name(format!("{}-{address}", self.container))
            .target(address)
            .verify_incoming_target(false)
            .attach(session)
            .await;
        attached.map_err(|error| refusal::of_sender(error, address))
    }
}
