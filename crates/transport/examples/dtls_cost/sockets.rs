//! Handshakes over sockets: a server on one, and a client that opens one for each handshake.

use std::collections::HashMap;
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use muster_protocol::dtls::{Dtls, Suite};
use muster_transport::AwsLc;

use super::means::Means;
use super::{cpu, say};

/// Handshakes that are under way at once.
const PENDING: usize = 100;
/// Far longer than an answer takes on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

/// Says where it listens, and serves until its standard input ends.
pub(super) fn serve(suite: Suite) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    say(&socket.local_addr()?.to_string());
    std::thread::spawn(move || answer(&socket, suite));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// Performs `count` handshakes with a server and returns their processor time as a line of JSON.
pub(super) fn shake(
    server: SocketAddr,
    suite: Suite,
    has_id: bool,
    handshakes: usize,
) -> Result<(), Box<dyn Error>> {
    let mut means = Means::new(suite);
    means.settings.resumption = false;
    let (storms, began) = (handshakes / PENDING, cpu());
    for _ in 0..storms {
        storm(&mut means, server, has_id)?;
    }
    let (handshakes, spent) = (storms * PENDING, (cpu() - began).as_secs_f64());
    say(&format!(
        "{{\"handshakes\":{handshakes},\"cpu_s\":{spent}}}"
    ));
    Ok(())
}

/// Some handshakes at once, each on its own socket.
fn storm(ours: &mut Means, server: SocketAddr, has_id: bool) -> std::io::Result<()> {
    let id = has_id.then_some(&b""[..]);
    let mut links = Vec::with_capacity(PENDING);
    for _ in 0..PENDING {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let dtls = ours.client(None, id);
        send(ours, &socket)?;
        links.push((socket, dtls));
    }
    let mut buffer = [0; 2_048];
    while links.iter().any(|(_, dtls)| !dtls.is_open()) {
        for (socket, dtls) in links.iter_mut().filter(|(_, dtls)| !dtls.is_open()) {
            let length = socket.recv(&mut buffer)?;
            ours.receive(dtls, &mut buffer[..length]);
            send(ours, socket)?;
        }
    }
    Ok(())
}

fn send(means: &mut Means, socket: &UdpSocket) -> std::io::Result<()> {
    for datagram in means.out.iter() {
        socket.send(datagram)?;
    }
    means.out.clear();
    Ok(())
}

/// Answers whoever comes.
fn answer(socket: &UdpSocket, suite: Suite) -> std::io::Result<()> {
    let mut means = Means::new(suite);
    let mut sessions: HashMap<SocketAddr, Dtls<AwsLc>> = HashMap::new();
    let mut buffer = [0; 2_048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        let datagram = &mut buffer[..length];
        let peer = from.to_string();
        // A port may be another client's by now.
        if let Some(dtls) = means.welcome(datagram, peer.as_bytes()) {
            sessions.insert(from, dtls);
        }
        if let Some(dtls) = sessions.get_mut(&from) {
            means.receive(dtls, datagram);
        }
        for datagram in means.out.iter() {
            // Whoever has gone meanwhile hears nothing.
            let _ = socket.send_to(datagram, from);
        }
        means.out.clear();
    }
}
