//! The page that Prometheus reads: `/metrics` over HTTP/1.1.
//!
//! One request at a time and a connection for each, so that memory and threads have a bound whoever asks.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_net::Clock;

use crate::prometheus;
use crate::snapshot::Snapshot;

/// Path of the page.
const PATH: &str = "/metrics";
/// Longest time that a client may take for its request and the answer together, so that it keeps neither others from
/// the page nor a run from its end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request: those of Prometheus have about 400.
const REQUEST_MAX: usize = 8 << 10;
/// The interval at which a wait for a scrape looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Media type of all but the page.
const TEXT: &str = "text/plain; charset=utf-8";

/// A thread that serves the page; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    /// A value for each time that somebody has read the final page.
    read: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    latest: Mutex<Arc<Snapshot>>,
    is_over: AtomicBool,
}

impl Server {
    /// Listens at an address; port 0 is a free port.
    pub(crate) fn open(listen: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (final_read, read) = sync_channel(1);
        let theirs = Arc::clone(&shared);
        let serve = move || theirs.serve(&listener, &final_read);
        let thread = thread::Builder::new()
            .name("metrics-http".to_owned())
            .spawn(serve)?;
        Ok(Self {
            addr,
            shared,
            read,
            thread: Some(thread),
        })
    }

    /// The address of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.addr)
    }

    /// Makes this the page.
    pub(crate) fn show(&self, snapshot: Arc<Snapshot>) {
        *self
            .shared
            .latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// Waits until somebody has read the final page, for at most this time, or until `is_unwanted`; returns
    /// whether it was read.
    pub(crate) fn wait(&self, most: Duration, is_unwanted: &dyn Fn() -> bool) -> bool {
        let mut waited = Duration::ZERO;
        while waited < most && !is_unwanted() {
            let turn = LOOK_EVERY.min(most - waited);
            match self.read.recv_timeout(turn) {
                Ok(()) => return true,
                Err(RecvTimeoutError::Timeout) => waited += turn,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        self.read.try_recv().is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Its accept returns with our own connection.
        let ip = match self.addr.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let woken = TcpStream::connect_timeout(&(ip, self.addr.port()).into(), PATIENCE);
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, listener: &TcpListener, final_read: &SyncSender<()>) {
        for client in listener.incoming() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            match client {
                // A client that goes away early has no page, and no one else is harmed.
                Ok(client) => {
                    if self.answer(&client).unwrap_or(false) {
                        let _ = final_read.try_send(());
                    }
                }
                // Without descriptors there is nothing to accept, and no reason to ask without pause.
                Err(_) => thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Answers one request; true if the client has taken the final page.
    fn answer(&self, client: &TcpStream) -> io::Result<bool> {
        let mut timed = Timed::new(client);
        let head = read_head(&mut timed)?;
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = Arc::clone(&latest);
        drop(latest);
        let (status, media_type, body) = answer_to(&head, &snapshot);
        let length = body.len();
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let is_head = head.starts_with("HEAD ");
        if !is_head {
            answer.push_str(&body);
        }
        timed.write_all(answer.as_bytes())?;
        client.shutdown(Shutdown::Write)?;
        see_off(&mut timed)?;
        Ok(snapshot.is_final && media_type == prometheus::MEDIA_TYPE && !is_head)
    }
}

/// Waits for the client to hang up: closing before that could destroy the page on its way. A client that keeps
/// its end open has had its time.
fn see_off(timed: &mut Timed<'_>) -> io::Result<()> {
    loop {
        match timed.read(&mut [0; 512]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_over(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A client whose time runs, however often it sends or reads something.
struct Timed<'a> {
    client: &'a TcpStream,
    clock: Clock,
}

impl<'a> Timed<'a> {
    /// A client that has [`PATIENCE`] from now on.
    fn new(client: &'a TcpStream) -> Self {
        let clock = Clock::start();
        Self { client, clock }
    }

    /// Reads what comes while the client has time.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.client.set_read_timeout(Some(self.left()?))?;
        self.client.read(room)
    }

    /// Writes all of it while the client has time.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.client.set_write_timeout(Some(self.left()?))?;
            match self.client.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// The rest of its time.
    fn left(&self) -> io::Result<Duration> {
        let passed = Duration::from_micros(self.clock.now().get());
        let left = PATIENCE.saturating_sub(passed);
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }
}

fn is_over(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

const OK: &str = "200 OK";

/// Reads up to the empty line that ends the head of a request.
fn read_head(timed: &mut Timed<'_>) -> io::Result<String> {
    let mut head = Vec::new();
    let mut some = [0; 1024];
    loop {
        let read = timed.read(&mut some)?;
        head.extend_from_slice(&some[..read]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&head).into_owned());
        }
        if read == 0 || head.len() > REQUEST_MAX {
            break;
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn answer_to(head: &str, snapshot: &Snapshot) -> (&'static str, &'static str, String) {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", PATH) => (OK, prometheus::MEDIA_TYPE, prometheus::page(snapshot)),
        ("GET" | "HEAD", "/") => (
            OK,
            TEXT,
            format!("The figures of this run are at {PATH}.\n"),
        ),
        ("GET" | "HEAD", _) => ("404 Not Found", TEXT, format!("Only {PATH} is here.\n")),
        _ => (
            "405 Method Not Allowed",
            TEXT,
            "Only GET and HEAD are served.\n".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Point;
    use crate::table;

    fn server() -> Server {
        Server::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a port")
    }

    fn snapshot(sent: u64, is_final: bool) -> Arc<Snapshot> {
        let points = vec![Point::count(&table::SENT, &["a", "b"], sent)];
        Arc::new(Snapshot {
            points,
            is_final,
            ..Snapshot::default()
        })
    }

    fn ask(server: &Server, request: &str) -> String {
        let mut client = TcpStream::connect(server.addr).expect("it listens");
        client.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn get(server: &Server, path: &str) -> String {
        ask(server, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"))
    }

    #[test]
    fn the_page_is_that_of_the_latest_snapshot() {
        let server = server();
        server.show(snapshot(1, false));
        server.show(snapshot(2, false));
        let answer = get(&server, "/metrics?name=x");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
            "{answer}"
        );
        assert!(
            answer.ends_with("muster_messages_sent_total{fleet=\"a\",stream=\"b\"} 2\n"),
            "{answer}"
        );
        let head = ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(get(&server, "/other").starts_with("HTTP/1.1 404 "));
        let post = ask(&server, "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
    }

    #[test]
    fn a_client_that_hangs_up_early_or_sends_too_much_harms_no_other() {
        let server = server();
        drop(TcpStream::connect(server.addr).expect("it listens"));
        let mut endless = TcpStream::connect(server.addr).expect("it listens");
        let _ = endless.write_all(&[b'x'; REQUEST_MAX + 1]);
        drop(endless);
        assert!(get(&server, "/metrics").starts_with("HTTP/1.1 200 OK"));
    }

    /// Law: what a client may take is a time, however often it sends something.
    #[test]
    fn a_client_that_goes_on_sending_has_no_more_time_than_others() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut slow =
            TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
        slow.write_all(b"G").expect("it is sent");
        let (client, _) = listener.accept().expect("it connects");
        assert_eq!(
            Timed::new(&client).read(&mut [0; 8]).expect("it was sent"),
            1
        );
        slow.write_all(b"E").expect("it is sent");
        let clock = Clock::at(0);
        let client = &client;
        let mut timed = Timed { client, clock };
        for ended in [timed.read(&mut [0; 8]).map(drop), timed.write_all(b"page")] {
            let error = ended.expect_err("its time is over");
            assert!(is_over(&error), "{error}");
        }
    }

    #[test]
    fn the_end_waits_for_a_scrape_of_the_final_values_alone() {
        let server = server();
        let long = Duration::from_secs(60);
        server.show(snapshot(1, false));
        get(&server, "/metrics");
        assert!(!server.wait(Duration::ZERO, &|| false));
        server.show(snapshot(1, true));
        assert!(!server.wait(long, &|| true), "nobody wants it");
        get(&server, "/");
        assert!(!server.wait(Duration::ZERO, &|| false));
        get(&server, "/metrics");
        assert!(server.wait(long, &|| false));
    }

    #[test]
    fn a_port_is_free_again_once_the_server_is_gone() {
        let first = server();
        let addr = first.addr;
        assert!(Server::open(addr).is_err());
        drop(first);
        assert_eq!(Server::open(addr).expect("it is free").addr, addr);
    }
}
