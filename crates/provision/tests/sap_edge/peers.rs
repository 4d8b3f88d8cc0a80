//! Peers that answer every call alike.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use muster_transport::{Throwaway, crypto_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Answers every call with a status line and a body.
pub(crate) fn answering(status: &'static str, body: &'static str) -> SocketAddr {
    serving(move |stream| answer(stream, status, body))
}

/// The same over TLS.
pub(crate) fn answering_tls(
    made: &Throwaway,
    status: &'static str,
    body: &'static str,
) -> SocketAddr {
    let certificates = CertificateDer::pem_slice_iter(made.cert.text());
    let key = PrivateKeyDer::from_pem_slice(made.key.text()).unwrap();
    let config = ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    let config = Arc::new(config);
    serving(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        answer(StreamOwned::new(connection, stream), status, body);
    })
}

fn serving(serve: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    address
}

/// One call, one answer; a client that goes away meanwhile is none of our business.
fn answer(stream: impl Read + Write, status: &str, body: &str) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut sent = vec![0; length];
    let _ = reader.read_exact(&mut sent);
    let stream = reader.get_mut();
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let _ = stream.flush();
}
