//! Ends of connections that a library makes for us, with their remedies.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "errors of the system that are not named here have their own words"
)]

use std::fmt::Display;
use std::io;

use muster_conduct::{RefusalCause, RefusalKind, Remedy};
use muster_model::TlsFailure;
use muster_platform::Amqp;
use muster_transport::tls_failure_of;
use tokio_rustls::rustls;

/// Keys of TLS.
pub(crate) const TLS_KEYS: &str = "platform.backend.tls";

/// The cause for which a connection ended or did not come up.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    pub(crate) cause: RefusalCause,
    /// True if the peer will refuse the next try alike.
    pub(crate) is_final: bool,
    /// True if the connection has more to say of it.
    pub(crate) is_of_connection: bool,
    /// True if the peer hung up before its first byte, or spoke no TLS.
    pub(crate) is_mute: bool,
    /// The address that the peer does not have; none if that is not the cause.
    address: Option<String>,
}

impl Loss {
    /// A failure without a word of the peer.
    pub(crate) fn silent(what: impl Display) -> Self {
        Self::new(RefusalKind::Unreachable, what)
    }

    /// A refusal.
    pub(crate) fn refused(what: impl Display, remedy: Remedy) -> Self {
        let mut loss = Self::new(RefusalKind::Refused, what);
        loss.cause.remedy = remedy;
        loss
    }

    /// The refusal of an address.
    pub(crate) fn of_address(what: impl Display, address: &str) -> Self {
        let remedy = Remedy::See(
            format!("platform.backend.addresses: is `{address}` a queue or topic of the broker?")
                .into(),
        );
        Self {
            address: Some(address.to_owned()),
            ..Self::refused(what, remedy)
        }
    }

    /// The same loss, where the platform has the addresses of its tenants, if it says some.
    pub(crate) fn on_platform(mut self, amqp: Option<&Amqp>) -> Self {
        let address = self.address.as_deref();
        let tenant = amqp.and_then(|amqp| amqp.tenant_of(address?));
        if let Some(tenant) = tenant {
            self.cause.remedy = Remedy::Do(
                format!(
                    "does the platform know tenant `{tenant}`, and may this user receive from it?"
                )
                .into(),
            );
        }
        self
    }

    /// Bytes of another protocol.
    pub(crate) fn other_protocol(what: impl Display) -> Self {
        Self::new(RefusalKind::OtherProtocol, what)
    }

    /// A refusal of commands.
    pub(crate) fn of_commands(what: impl Display, remedy: Remedy) -> Self {
        let mut loss = Self::new(RefusalKind::Commands, what);
        loss.cause.remedy = remedy;
        loss
    }

    /// The same loss, which another try meets again.
    pub(crate) fn finally(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// The same loss; the connection knows more about it.
    pub(crate) fn of_connection(mut self) -> Self {
        self.is_of_connection = true;
        self
    }

    /// The same loss, from a peer that hung up before its first byte. One that was refused by TLS said so.
    pub(crate) fn mute(mut self) -> Self {
        self.is_mute = self.cause.kind == RefusalKind::Unreachable;
        self
    }

    /// The same loss with a hint at the end of its sentence.
    pub(crate) fn with(mut self, hint: &str) -> Self {
        self.cause.what.push_str(hint);
        self
    }

    fn new(kind: RefusalKind, what: impl Display) -> Self {
        Self {
            cause: RefusalCause::new(kind, what.to_string()),
            is_final: false,
            is_of_connection: false,
            is_mute: false,
            address: None,
        }
    }
}

/// The failure to connect a socket.
pub(crate) fn of_connect(error: &io::Error) -> Loss {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Loss::silent("the connection was refused; does anybody listen there?")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Loss::silent("it cannot be reached from here; check the route")
        }
        _ => Loss::silent(error),
    }
}

/// The end of a socket while an answer was awaited.
pub(crate) fn of_stream(error: &io::Error, awaited: &str) -> Loss {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Loss::silent(format!("the connection was closed before {awaited} came"))
        }
        io::ErrorKind::ConnectionReset => {
            Loss::silent(format!("the connection was reset before {awaited} came"))
        }
        _ if of_tls_itself(error).is_some() => of_tls(error),
        _ => Loss::silent(format!("{error} before {awaited} came")),
    }
}

/// The end of a handshake of TLS, as a peer reports it that refuses our certificate: over TLS 1.3 only after we took the
/// handshake for complete.
pub(crate) fn of_tls(error: &io::Error) -> Loss {
    let Some((failure, words)) = tls_failure_of(error) else {
        return Loss::silent(format!("the TLS handshake failed: {error}")).mute();
    };
    let what = format!("the TLS handshake failed: {words}");
    match failure == TlsFailure::Malformed {
        true => Loss {
            is_mute: true,
            ..Loss::other_protocol(what)
        },
        false => Loss::refused(what + &failure.remedy(TLS_KEYS), Remedy::see(TLS_KEYS)),
    }
}

/// The error of TLS within one of a stream.
fn of_tls_itself(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
