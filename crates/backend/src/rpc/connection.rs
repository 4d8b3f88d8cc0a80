//! One connection to the REST API, with one request at a time.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;

use futures_util::FutureExt;
use muster_model::Micros;
use muster_net::Clock;
use muster_protocol::http::{Client, ClientEvent, Request, Ticket};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::loss::{Loss, of_connect, of_stream, of_tls};

/// Longest body of an answer: a reply of a device, or a failure.
const BODY_MAX: u32 = 1 << 20;
/// Bytes of one read.
const READ: usize = 4_096;
/// The thing that a lost connection was waiting for.
const AWAITED: &str = "the answer";

/// The way to the REST API.
pub(super) struct Way {
    pub(super) address: SocketAddr,
    /// The host, as requests name it.
    pub(super) host: String,
    /// None without TLS.
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The hint at TLS where a peer hangs up at once.
    pub(super) hint: String,
    pub(super) clock: Clock,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Instant at which it was read.
    pub(super) seen: Micros,
}

pub(super) struct Connection {
    stream: Box<dyn Stream>,
    client: Client,
    input: Vec<u8>,
}

/// A stream with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> Stream for S {}

impl Answer {
    pub(super) const fn is_yes(&self) -> bool {
        self.status / 100 == 2
    }
}

impl Way {
    pub(super) async fn open(&self) -> Result<Connection, Loss> {
        let socket = TcpStream::connect(self.address).await;
        let socket = socket.map_err(|error| of_connect(&error))?;
        // A request is one write, and its answer is waited for.
        let _ = socket.set_nodelay(true);
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(socket),
            Some((connector, name)) => {
                let secured = connector.connect(name.clone(), socket).await;
                Box::new(secured.map_err(|error| self.hinted(of_tls(&error)))?)
            }
        };
        Ok(Connection {
            stream,
            client: Client::new(1, BODY_MAX),
            input: Vec::new(),
        })
    }

    /// Makes a request on a connection and reads its answer.
    pub(super) async fn exchange(
        &self,
        connection: &mut Connection,
        request: &Request<'_>,
    ) -> Result<Answer, Loss> {
        connection
            .send(request)
            .await
            .map_err(|error| of_stream(&error, AWAITED))?;
        loop {
            if let Some(mut answer) = connection.answer()? {
                answer.seen = self.clock.now();
                return Ok(answer);
            }
            let read = connection.read().await;
            if read.map_err(|error| of_stream(&error, AWAITED))? == 0 {
                let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(self.hinted(of_stream(&closed, AWAITED)));
            }
        }
    }

    fn hinted(&self, loss: Loss) -> Loss {
        loss.with(&self.hint)
    }
}

impl Connection {
    /// Returns true if the server has not closed it, and it takes another request.
    pub(super) fn is_alive(&mut self) -> bool {
        let mut byte = [0];
        let is_silent = self.stream.read(&mut byte).now_or_never().is_none();
        is_silent && !self.client.is_closing()
    }

    async fn send(&mut self, request: &Request<'_>) -> io::Result<()> {
        let mut out = Vec::new();
        let written = self.client.submit(Ticket(0), request, &mut out);
        written.map_err(io::Error::other)?;
        self.stream.write_all(&out).await?;
        self.stream.flush().await
    }

    async fn read(&mut self) -> io::Result<usize> {
        let had = self.input.len();
        self.input.resize(had + READ, 0);
        let read = self.stream.read(&mut self.input[had..]).await;
        self.input
            .truncate(had + read.as_ref().copied().unwrap_or(0));
        read
    }

    /// The answer, if all of it has come.
    fn answer(&mut self) -> Result<Option<Answer>, Loss> {
        let mut input = &self.input[..];
        let answer = match self.client.poll(&mut input) {
            None => Ok(None),
            Some(ClientEvent::Answered { response, .. }) => Ok(Some(Answer {
                status: response.status,
                body: response.body.into_owned(),
                seen: Micros::ZERO,
            })),
            Some(ClientEvent::Unasked(response)) => Err(Loss::silent(format!(
                "it answered {} before it was asked",
                response.status
            ))),
            Some(ClientEvent::Malformed(malformed)) => Err(Loss::other_protocol(format!(
                "it answered in bytes of another protocol ({malformed})"
            ))),
        };
        let used = self.input.len() - input.len();
        self.input.drain(..used);
        answer
    }
}
