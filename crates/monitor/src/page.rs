//! A page of counters, read over HTTP.

use std::time::Duration;

use thiserror::Error;
use ureq::Agent;

/// Longest time for reading a page.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a page that are read at the most; a longer one is an error.
const PAGE_MAX: u64 = 8 << 20;

/// Error of reading a page.
#[derive(Debug, Error)]
#[error("read {url}: {why} (is it the page that Prometheus would read?)")]
pub struct PageError {
    url: String,
    why: String,
}

/// A page that is read now and then, by whoever has time to wait for it.
#[derive(Debug)]
pub struct CounterPage {
    agent: Agent,
    url: String,
}

impl CounterPage {
    /// The page at an `http` address; nothing is asked yet.
    pub fn new(url: &str) -> Self {
        // Links of devices know no proxy either. A connection would idle for the whole load.
        let config = Agent::config_builder()
            .http_status_as_error(true)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .proxy(None)
            .max_idle_connections(0)
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")));
        Self {
            agent: config.build().new_agent(),
            url: url.to_owned(),
        }
    }

    /// Its text as it is now; waits for at most 10 seconds and takes at most 8 MiB.
    ///
    /// # Errors
    /// [`PageError`] if nobody answers in time, with anything but success, or with more.
    pub fn read(&self) -> Result<String, PageError> {
        let answer = self.agent.get(&self.url).call();
        let text = answer.and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(PAGE_MAX);
            body.lossy_utf8(true).read_to_string()
        });
        text.map_err(|error| PageError {
            url: self.url.clone(),
            why: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    use super::*;

    /// Answers once, with these bytes; where it can be asked.
    fn server(answer: Vec<u8>) -> (String, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/prometheus", listener.local_addr().expect("it"));
        let answering = spawn(move || {
            let (mut client, _) = listener.accept().expect("somebody asks");
            let _ = client.read(&mut [0; 4096]);
            // Who has heard enough hangs up.
            let _ = client.write_all(&answer);
        });
        (url, answering)
    }

    fn read(answer: Vec<u8>) -> Result<String, PageError> {
        let (url, answering) = server(answer);
        let text = CounterPage::new(&url).read();
        answering.join().expect("it has answered");
        text
    }

    #[test]
    fn a_page_is_its_body() {
        let text = read(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nup 1\n".to_vec());
        assert_eq!(text.expect("a page"), "up 1\n");
    }

    #[test]
    fn what_is_no_success_is_told_with_the_address() {
        let error = read(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec());
        let told = error.expect_err("no page").to_string();
        assert!(
            told.contains("/prometheus: ") && told.contains("404"),
            "{told}"
        );
    }

    #[test]
    fn a_page_without_end_is_an_error() {
        let mut answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        answer.resize(answer.len() + PAGE_MAX as usize + 1, b'\n');
        assert!(read(answer).is_err());
    }
}
