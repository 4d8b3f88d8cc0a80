//! Calls over HTTP.

use std::sync::Arc;
use std::time::Duration;

use muster_model::TlsFailure;
use muster_transport::{TransportError, crypto_provider, tls_failure_of, trusted};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, http};

use super::{Call, Failure, Receiver};

/// Longest time of one call: a server that takes longer does not keep up with a value a second.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of an answer that are read: enough for an explanation.
const ANSWER_MAX: u64 = 16 << 10;
/// Characters of an answer that a message shows.
const SHOWN_MAX: usize = 200;

/// A server over HTTP.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Result<Agent, String>,
    receiver: Receiver,
}

impl Client {
    pub(crate) fn new(receiver: Receiver) -> Self {
        let agent = agent(&receiver).map_err(|error| error.to_string());
        Self { agent, receiver }
    }

    fn call(&self, body: &[u8]) -> Result<(u16, String), String> {
        let Receiver {
            url,
            media_type,
            credential,
            headers,
            ..
        } = &self.receiver;
        let agent = self.agent.as_ref().map_err(String::clone)?;
        let mut request = agent.post(url).content_type(*media_type);
        if let Some(credential) = credential {
            request = request.header("authorization", credential.header());
        }
        for (name, value) in headers {
            request = request.header(name, value.header());
        }
        let answer = request.send(body).map_err(|error| unsent(&error))?;
        read(answer).map_err(|error| error.to_string())
    }

    /// A text without our secrets, which a server may repeat.
    fn masked(&self, text: String) -> String {
        let headers = self.receiver.headers.iter().map(|(_, value)| value);
        let credentials = self.receiver.credential.iter().chain(headers);
        credentials.fold(text, |text, credential| credential.mask(text))
    }

    fn refused(&self, status: u16, text: &str) -> Failure {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = self.masked(words).chars().take(SHOWN_MAX).collect();
        let explained = if words.is_empty() {
            String::new()
        } else {
            format!(" (`{words}`)")
        };
        let known = self.receiver.remedies.iter().find(|(of, _)| *of == status);
        let remedy = match (known, status) {
            (Some((_, remedy)), _) => *remedy,
            (None, 300..=399) => "name the address that it redirects to",
            (None, 500..=599) => "look into its log",
            (None, _) => "look into its documentation of this answer",
        };
        Failure {
            why: format!("it answered {status}{explained}; {remedy}"),
            // Whatever else is wrong may be put right while the run goes on.
            is_of_body: [400, 413, 422].contains(&status),
        }
    }
}

impl Call for Client {
    fn post(&self, body: &[u8]) -> Result<(), Failure> {
        match self.call(body) {
            Ok((200..=299, _)) => Ok(()),
            Ok((status, text)) => Err(self.refused(status, &text)),
            Err(why) => Err(Failure {
                why: self.masked(why),
                is_of_body: false,
            }),
        }
    }
}

/// Words for a request without an answer, with the remedy.
fn unsent(error: &ureq::Error) -> String {
    let of_tls = if let ureq::Error::Io(error) = error {
        tls_failure_of(error)
    } else {
        None
    };
    let Some((failure, words)) = of_tls else {
        return format!("{error}; start it, or name the address where it listens");
    };
    words + remedy(failure)
}

/// The remedy as the end of a sentence; empty where the words for the failure have one, or none is known.
const fn remedy(failure: TlsFailure) -> &'static str {
    match failure {
        TlsFailure::UnknownIssuer => {
            "; add its CA to those of this machine, or name the CA's file in SSL_CERT_FILE"
        }
        TlsFailure::WrongName => "; name the host that its certificate is for",
        TlsFailure::Expired => "; renew the certificate",
        TlsFailure::NotYetValid => "; compare the clocks of both machines",
        TlsFailure::Malformed => "; does this port speak TLS? If not, write http://",
        TlsFailure::BadCertificate
        | TlsFailure::NothingInCommon
        | TlsFailure::Alert(_)
        | TlsFailure::OwnCredential => "",
    }
}

fn read(mut answer: http::Response<Body>) -> Result<(u16, String), ureq::Error> {
    let status = answer.status().as_u16();
    let bytes = answer
        .body_mut()
        .with_config()
        .limit(ANSWER_MAX)
        .read_to_vec();
    // A longer answer explains nothing better.
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok((status, text.unwrap_or_default()))
}

/// Links of devices know no proxy either, and a redirection would carry our secrets elsewhere.
fn agent(receiver: &Receiver) -> Result<Agent, TransportError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .max_idle_connections(1)
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")));
    let config = match receiver.url.starts_with("https:") {
        true => config.tls_config(tls()?),
        false => config,
    };
    Ok(config.build().new_agent())
}

/// The one stack of cryptography, with the authorities of this machine.
fn tls() -> Result<TlsConfig, TransportError> {
    let roots = trusted(None)?;
    let roots = roots
        .iter()
        .map(|root| Certificate::from_der(root).to_owned());
    Ok(TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(crypto_provider())
        .root_certs(RootCerts::Specific(Arc::new(roots.collect())))
        .build())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    use super::*;
    use crate::push::Credential;

    /// Answers once with these lines; its address, and the request that it read.
    fn server(answer: &'static str) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/write", listener.local_addr().expect("it"));
        let answering = spawn(move || {
            let (mut client, _) = listener.accept().expect("somebody asks");
            let mut request = Vec::new();
            while !request.ends_with(b"the end") {
                let mut some = [0; 4096];
                let read = client.read(&mut some).expect("a request");
                assert!(read > 0, "it ended early");
                request.extend_from_slice(&some[..read]);
            }
            client.write_all(answer.as_bytes()).expect("it waits");
            String::from_utf8(request).expect("text")
        });
        (url, answering)
    }

    fn client(url: String) -> Client {
        Client::new(Receiver {
            name: "it",
            shown: url.clone(),
            url,
            media_type: "text/plain",
            credential: Some(Credential::new(
                "Token hunter2".to_owned(),
                vec!["hunter2".to_owned()],
            )),
            headers: Vec::new(),
            remedies: &[(404, "create it")],
        })
    }

    #[test]
    fn a_certificate_that_names_its_remedy_gets_no_second_one() {
        assert_eq!(remedy(TlsFailure::BadCertificate), "");
        assert!(remedy(TlsFailure::WrongName).contains("the host that its certificate is for"));
    }

    #[test]
    fn a_body_goes_out_with_its_credential() {
        let (url, answering) = server("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client(url).post(b"the end"), Ok(()));
        let request = answering
            .join()
            .expect("it has answered")
            .to_ascii_lowercase();
        assert!(request.starts_with("post /write http/1.1\r\n"), "{request}");
        assert!(
            request.contains("\r\nauthorization: token hunter2\r\n"),
            "{request}"
        );
    }

    #[test]
    fn a_refusal_names_the_remedy_and_no_secret() {
        let (url, answering) =
            server("HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\n\r\nno hunter2  is here");
        let failure = client(url).post(b"the end").expect_err("it said no");
        answering.join().expect("it has answered");
        assert_eq!(failure.why, "it answered 404 (`no *** is here`); create it");
        assert!(!failure.is_of_body);
    }

    #[test]
    fn a_body_that_is_wrong_is_told_from_a_server_that_is_away() {
        let (url, answering) = server("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let client = client(url);
        assert!(client.post(b"the end").expect_err("it said no").is_of_body);
        answering.join().expect("it has answered");
        let away = client.post(b"the end").expect_err("nobody is there");
        assert!(!away.is_of_body);
        let remedy = "start it, or name the address where it listens";
        assert!(away.why.ends_with(remedy), "{}", away.why);
    }
}
