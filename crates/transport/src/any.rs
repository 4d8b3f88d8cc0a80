//! One of the layers, where there are few links and their kinds differ.

use muster_protocol::layer::{Fed, Layer, Plain, Stack, Standing};
use muster_protocol::websocket::WebSocket;

/// One of the layers that a scheme asks for, found out for each call. Device links are many, and have
/// theirs in their type instead.
#[derive(Debug)]
pub enum Any<T> {
    /// None.
    Plain(Plain),
    /// WebSocket.
    WebSocket(WebSocket),
    /// TLS.
    Tls(T),
    /// WebSocket over TLS.
    Both(Stack<WebSocket, T>),
}

impl<T> Default for Any<T> {
    fn default() -> Self {
        Self::Plain(Plain)
    }
}

impl<T> Any<T> {
    /// The TLS part, where there is one.
    pub fn tls(&self) -> Option<&T> {
        match self {
            Self::Plain(_) | Self::WebSocket(_) => None,
            Self::Tls(tls) => Some(tls),
            Self::Both(stack) => Some(&stack.lower),
        }
    }
}

/// The same call, whichever it is.
macro_rules! each {
    ($any:expr, $layer:ident => $call:expr) => {
        match $any {
            Any::Plain($layer) => $call,
            Any::WebSocket($layer) => $call,
            Any::Tls($layer) => $call,
            Any::Both($layer) => $call,
        }
    };
}

impl<T: Layer> Layer for Any<T> {
    type Border = u32;

    fn open(&mut self, wire: &mut Vec<u8>) {
        each!(self, layer => layer.open(wire));
    }

    #[inline]
    fn feed(&mut self, bytes: &mut [u8], held: usize, wire: &mut Vec<u8>) -> Fed {
        each!(self, layer => layer.feed(bytes, held, wire))
    }

    #[inline]
    fn standing(&self) -> Standing {
        each!(self, layer => layer.standing())
    }

    #[inline]
    fn wrap(&mut self, wire: &mut Vec<u8>, from: usize) {
        each!(self, layer => layer.wrap(wire, from));
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        each!(self, layer => layer.close(wire));
    }

    fn detail(&self) -> Option<&str> {
        each!(self, layer => layer.detail())
    }
}
