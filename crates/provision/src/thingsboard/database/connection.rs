//! Connections to a PostgreSQL server, whose calls are waited for by the calling thread.

use std::sync::Arc;
use std::time::Duration;

use muster_model::Micros;
use muster_plan::DatabasePlan;
use muster_transport::{Pem, TlsSpec, TransportError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::failures::Failure;
use crate::ProvisionError;

/// The longest time-out that the server takes, in milliseconds.
const TIMEOUT_MAX_MS: u128 = i32::MAX as u128;
/// Rows of one fetch.
const ROWS: i32 = 10_000;
/// The message that asks for TLS: its length, and its code in place of a version.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// A stream to the server.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The server of a database.
pub(super) struct Server {
    database: DatabasePlan,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    timeout: Duration,
}

/// A query with its parameters.
pub(super) struct Query<'a> {
    pub(super) sql: &'a str,
    pub(super) parameters: &'a [&'a (dyn ToSql + Sync)],
}

/// One connection, which only reads.
pub(super) struct Connection {
    client: Client,
    calls: Calls,
}

/// Waits for the answers of one connection.
struct Calls {
    runtime: Runtime,
    timeout: Duration,
    database: String,
}

impl Server {
    /// # Errors
    /// [`TransportError`] if the trusted certificates cannot be used, or the host has no name for one.
    pub(super) fn new(database: &DatabasePlan, timeout: Micros) -> Result<Self, TransportError> {
        let tls = database.tls.as_ref().map(|check| {
            let ca = check.ca.as_ref();
            let spec = TlsSpec {
                ca: ca.map(|file| Pem::new(&file.name, file.text.clone())),
                insecure: check.insecure,
                ..TlsSpec::default()
            };
            let name = ServerName::try_from(database.host.clone())
                .map_err(|_| TransportError::Name(database.host.clone()))?;
            let config = Arc::new(spec.client_config()?);
            Ok::<_, TransportError>((TlsConnector::from(config), name))
        });
        Ok(Self {
            database: database.clone(),
            tls: tls.transpose()?,
            timeout: Duration::from_micros(timeout.get()),
        })
    }

    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ProvisionError`] by the reason.
    pub(super) fn connect(&self) -> Result<Connection, ProvisionError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let calls = Calls {
            runtime: runtime.map_err(ProvisionError::Thread)?,
            timeout: self.timeout,
            database: self.database.to_string(),
        };
        let client = calls.wait("connect", self.open())?;
        Ok(Connection { client, calls })
    }

    async fn open(&self) -> Result<Client, Failure> {
        let database = &self.database;
        let mut config = Config::new();
        config
            .user(&database.user)
            .dbname(&database.name)
            .application_name("muster");
        if let Some(password) = &database.password {
            config.password(password.expose());
        }
        let stream = self.stream().await?;
        let (client, connection) = config.connect_raw(stream, NoTls).await?;
        // Its error is that of the call that waits.
        drop(tokio::spawn(connection));
        let timeout_ms = self.timeout.as_millis().min(TIMEOUT_MAX_MS);
        let settings =
            format!("SET default_transaction_read_only = on; SET statement_timeout = {timeout_ms}");
        client.batch_execute(&settings).await?;
        Ok(client)
    }

    async fn stream(&self) -> Result<Box<dyn Stream>, Failure> {
        let address = (self.database.host.as_str(), self.database.port);
        let mut socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Box::new(socket));
        };
        socket.write_all(&TLS_REQUEST).await?;
        if socket.read_u8().await? != b'S' {
            return Err(Failure::NoTls);
        }
        let stream = connector.connect(name.clone(), socket).await;
        Ok(Box::new(stream.map_err(Failure::Tls)?))
    }
}

impl Connection {
    /// Reads the rows of a query in parts. `turn` is waited for before each part.
    ///
    /// # Errors
    /// [`ProvisionError`] by the reason; that of `turn`.
    pub(super) fn rows(
        &mut self,
        query: &Query<'_>,
        turn: impl Fn() -> Result<(), ProvisionError>,
        mut found: impl FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), ProvisionError> {
        let calls = &self.calls;
        turn()?;
        let transaction = calls.wait("read", async { Ok(self.client.transaction().await?) })?;
        let bind = async { Ok(transaction.bind(query.sql, query.parameters).await?) };
        let portal = calls.wait("read", bind)?;
        loop {
            let fetch = async { Ok(transaction.query_portal(&portal, ROWS).await?) };
            let rows = calls.wait("read", fetch)?;
            for row in &rows {
                found(row).map_err(|error| calls.failed("read", error.into()))?;
            }
            if rows.len() < ROWS as usize {
                break;
            }
            turn()?;
        }
        calls.wait("read", async { Ok(transaction.commit().await?) })
    }
}

impl Calls {
    /// Waits for an answer, no longer than the time-out.
    fn wait<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, ProvisionError> {
        let answer = self
            .runtime
            .block_on(async { tokio::time::timeout(self.timeout, call).await });
        answer
            .unwrap_or(Err(Failure::Late))
            .map_err(|failure| self.failed(what, failure))
    }

    fn failed(&self, what: &str, failure: Failure) -> ProvisionError {
        failure.of(format!("{what} {}", self.database), self.timeout)
    }
}
