//! Ends of connections, sessions and links, with their remedies.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "errors of the library and of the system that are not named here have their own words"
)]

use std::fmt::Display;
use std::io;

use fe2o3_amqp::connection::{ConnectionStopReason, Error as ConnectionError, OpenError};
use fe2o3_amqp::link::{
    DetachError, LinkStateError, ReceiverAttachError, RecvError, SendError, SenderAttachError,
    SessionStopReason,
};
use fe2o3_amqp::session::BeginError;
use fe2o3_amqp::transport::Error as Transport;
use fe2o3_amqp::types::definitions::{Error, ErrorCondition};
use fe2o3_amqp::types::primitives::Symbol;
use muster_conduct::Remedy;

use crate::loss::{Loss, of_stream};

/// Keys of a login.
pub(super) const LOGIN_KEYS: &str =
    "platform.backend.user, platform.backend.password and platform.backend.sasl";
/// The failure to open a connection.
pub(super) fn of_open(error: OpenError) -> Loss {
    match error {
        OpenError::Io(error) => of_stream(&error, "OPEN"),
        OpenError::RemoteClosedWithError(error) => of_error("OPEN was refused", &error, None),
        OpenError::ProtocolHeaderMismatch(bytes) => Loss::other_protocol(format!(
            "it answered in bytes of another protocol ({bytes:?})"
        )),
        other => Loss::silent(other),
    }
}

/// The failure to begin a session.
pub(super) fn of_begin(error: BeginError) -> Loss {
    match error {
        BeginError::RemoteEndedWithError(error) => of_error("BEGIN was refused", &error, None),
        BeginError::ConnectionStopped(reason) => of_connection_stop(&reason),
        other => Loss::silent(other),
    }
}

/// The failure to attach a receiver.
pub(super) fn of_receiver(error: ReceiverAttachError, address: &str) -> Loss {
    match error {
        ReceiverAttachError::RemoteClosedWithError(error) => refused(&error, address),
        ReceiverAttachError::SessionStopped(reason) => of_session_stop(&reason, address),
        other => refused_without_a_word(&other, address),
    }
}

/// The failure to attach the sender of commands.
pub(super) fn of_sender(error: SenderAttachError, address: &str) -> Loss {
    match error {
        SenderAttachError::RemoteClosedWithError(error) => refused(&error, address),
        SenderAttachError::SessionStopped(reason) => of_session_stop(&reason, address),
        other => refused_without_a_word(&other, address),
    }
}

/// The end of a receiver.
pub(super) fn of_recv(error: RecvError, address: &str) -> Loss {
    match error {
        RecvError::LinkStateError(state) => of_link(state, address),
        other => Loss::silent(format!("the receiver of `{address}` failed: {other}")),
    }
}

/// The end of the sender of commands.
pub(super) fn of_detach(error: DetachError, address: &str) -> Loss {
    of_link(error.into(), address)
}

/// The failure to send a command.
pub(super) fn of_send(error: SendError, address: &str) -> Loss {
    match error {
        SendError::Detached(error) => of_detach(error, address),
        SendError::LinkStateError(state) => of_link(state, address),
        other => Loss::silent(format!("a command was not sent: {other}")),
    }
}

/// The end of a link.
pub(super) fn of_link(state: LinkStateError, address: &str) -> Loss {
    match state {
        LinkStateError::RemoteDetachedWithError(error)
        | LinkStateError::RemoteClosedWithError(error) => detached(&error, address),
        LinkStateError::RemoteDetached | LinkStateError::RemoteClosed => {
            let what = format!("the peer detached `{address}` without an error");
            Loss::of_address(what, address)
        }
        LinkStateError::SessionStopped(reason) => of_session_stop(&reason, address),
        LinkStateError::IllegalState | LinkStateError::ExpectImmediateDetach => {
            Loss::silent(format!("the link of `{address}` is over")).of_connection()
        }
    }
}

fn of_session_stop(reason: &SessionStopReason, address: &str) -> Loss {
    match reason {
        SessionStopReason::RemoteEndedWithError(error) => refused(error, address),
        SessionStopReason::ConnectionStopped(reason) => of_connection_stop(reason),
        SessionStopReason::Ended
        | SessionStopReason::EndedWithError(_)
        | SessionStopReason::RemoteEnded => Loss::silent("the session ended").of_connection(),
    }
}

fn of_connection_stop(reason: &ConnectionStopReason) -> Loss {
    match reason {
        ConnectionStopReason::RemoteClosedWithError(error) => {
            of_error("the peer closed the connection", error, None)
        }
        ConnectionStopReason::RemoteClosed => Loss::silent("the peer closed the connection"),
        ConnectionStopReason::Closed | ConnectionStopReason::ClosedWithError(_) => {
            Loss::silent("the connection ended").of_connection()
        }
    }
}

/// The end of a connection.
pub(super) fn of_close(outcome: Result<(), ConnectionError>) -> Loss {
    match outcome {
        Ok(()) | Err(ConnectionError::RemoteClosed) => {
            Loss::silent("the peer closed the connection")
        }
        Err(ConnectionError::RemoteClosedWithError(error)) => {
            of_error("the peer closed the connection", &error, None)
        }
        Err(ConnectionError::TransportError(Transport::Io(error))) => of_broken(&error),
        Err(ConnectionError::TransportError(Transport::IdleTimeoutElapsed)) => {
            Loss::silent("no frame came in time")
        }
        Err(error) => Loss::silent(format!("the connection ended: {error}")),
    }
}

/// The end of the socket of a connection that was up.
fn of_broken(error: &io::Error) -> Loss {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            Loss::silent("the peer closed the connection")
        }
        io::ErrorKind::ConnectionReset => Loss::silent("the peer reset the connection"),
        _ => Loss::silent(format!("the connection ended: {error}")),
    }
}

fn refused_without_a_word(error: &dyn Display, address: &str) -> Loss {
    let what = format!("`{address}` was not attached: {error}");
    Loss::of_address(what, address)
}

fn refused(error: &Error, address: &str) -> Loss {
    of_error(&format!("`{address}` was refused"), error, Some(address))
}

fn detached(error: &Error, address: &str) -> Loss {
    of_error(
        &format!("the peer detached `{address}`"),
        error,
        Some(address),
    )
}

/// The cause of an error of the peer: its condition, and its own words.
fn of_error(what: &str, error: &Error, address: Option<&str>) -> Loss {
    let condition = condition(&error.condition);
    let said = error.description.as_deref().filter(|said| !said.is_empty());
    let said = said.map_or(String::new(), |said| format!(", \"{said}\""));
    let what = format!("{what}: {condition}{said}");
    let remedy = match (condition.as_str(), address) {
        ("amqp:unauthorized-access", _) => {
            Remedy::See(format!("{LOGIN_KEYS}, and the rights of that user at the broker").into())
        }
        ("amqp:resource-limit-exceeded", _) => {
            Remedy::act("raise the limit of the broker, or use fewer consumers")
        }
        ("amqp:resource-locked", _) => Remedy::act("does another consumer have it for itself?"),
        (_, Some(address)) => return Loss::of_address(what, address),
        (_, None) => Remedy::see("platform.backend.url"),
    };
    let loss = Loss::refused(what, remedy);
    match condition.as_str() {
        "amqp:unauthorized-access" => loss.finally(),
        _ => loss,
    }
}

fn condition(condition: &ErrorCondition) -> String {
    let symbol = match condition {
        ErrorCondition::AmqpError(error) => Symbol::from(error),
        ErrorCondition::ConnectionError(error) => Symbol::from(error),
        ErrorCondition::SessionError(error) => Symbol::from(error),
        ErrorCondition::LinkError(error) => Symbol::from(error),
        ErrorCondition::Custom(symbol) => symbol.clone(),
    };
    symbol.into_inner()
}

#[cfg(test)]
mod tests {
    use fe2o3_amqp::types::definitions::AmqpError;
    use muster_platform::Dialect;

    use super::*;

    #[test]
    fn a_refused_address_is_named_with_the_word_of_the_peer_and_a_remedy() {
        let error = Error::new(AmqpError::NotFound, "no queue 'readings'".to_owned(), None);
        let loss = of_receiver(
            ReceiverAttachError::RemoteClosedWithError(error),
            "readings",
        );
        assert_eq!(
            loss.cause.to_string(),
            "`readings` was refused: amqp:not-found, \"no queue 'readings'\"; see \
             platform.backend.addresses: is `readings` a queue or topic of the broker?"
        );
        assert!(!loss.is_final, "somebody may create it");
    }

    #[test]
    fn an_address_of_a_platform_names_its_tenant_and_one_of_a_broker_does_not() {
        let why = |dialect: Dialect| {
            let error = Error::new(AmqpError::NotFound, None, None);
            let state = LinkStateError::RemoteClosedWithError(error);
            let loss = of_link(state, "telemetry/t1");
            let loss = loss.on_platform(dialect.application.amqp.as_ref());
            loss.cause.to_string()
        };
        assert!(why(Dialect::Hono).contains("tenant `t1`"));
        assert!(why(Dialect::Mqtt).contains("is `telemetry/t1` a queue or topic of the broker?"));
    }

    #[test]
    fn missing_rights_are_final_and_name_the_login() {
        let error = Error::new(AmqpError::UnauthorizedAccess, None, None);
        let loss = of_receiver(ReceiverAttachError::RemoteClosedWithError(error), "q");
        assert!(loss.is_final);
        assert!(loss.cause.to_string().contains("platform.backend.user"));
    }
}
