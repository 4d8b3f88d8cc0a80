//! The endpoint that messages are pushed to.

use std::fmt;
use std::net::SocketAddr;

use muster_model::percent::Part;
use serde::{Deserialize, Serialize};

/// The endpoint that messages are pushed to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WebhookConfig {
    /// Its address.
    pub address: SocketAddr,
    /// Host and port as requests name them.
    pub host: String,
    /// Its path without a slash at the end; the topic follows it unless a header has that.
    pub path: String,
    /// Name of the header that has the topic.
    pub topic_header: Option<String>,
    /// Name and value of the header that proves who sends, which is a secret.
    pub proof: Option<(String, String)>,
}

/// Prints no proof.
impl fmt::Debug for WebhookConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookConfig")
            .field("address", &self.address)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Reasons for which an address is none of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Another scheme than `http`.
    #[error(
        "`{0}` does not begin with `http://`: give an address such as http://127.0.0.1:8088/muster"
    )]
    Scheme(String),
    /// A host that cannot be looked up.
    #[error("look up `{host}`: {why}")]
    Host {
        /// The host and its port.
        host: String,
        /// The system's reason.
        why: String,
    },
}

impl WebhookConfig {
    /// Reads `http://host:port/path`; without a port it is 80.
    ///
    /// # Errors
    /// [`WebhookError`] if it is no such address, or its host has none.
    pub fn parse(url: &str) -> Result<Self, WebhookError> {
        use std::net::ToSocketAddrs;
        let rest = url.strip_prefix("http://");
        let rest = rest.ok_or_else(|| WebhookError::Scheme(url.to_owned()))?;
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| {
            !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())
        });
        let of = if has_port {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let failed = |why: String| WebhookError::Host {
            host: host.to_owned(),
            why,
        };
        let mut found = of
            .to_socket_addrs()
            .map_err(|error| failed(error.to_string()))?;
        let address = found
            .next()
            .ok_or_else(|| failed("it has no address".to_owned()))?;
        Ok(Self {
            address,
            host: host.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
            topic_header: None,
            proof: None,
        })
    }

    /// The same with a bearer token (RFC 6750).
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        let proof = Some(("authorization".to_owned(), format!("Bearer {token}")));
        Self { proof, ..self }
    }

    /// Returns the address of a request, in which `<topic>` stands for the topic where the path has it.
    pub fn layout(&self) -> String {
        let topic = match self.topic_header {
            Some(_) => "",
            None => "/<topic>",
        };
        format!("http://{}{}{topic}", self.host, self.path)
    }

    /// Puts the target of a request about a topic into `out`, which is emptied first.
    pub(super) fn write_target(&self, topic: &str, out: &mut String) {
        out.clear();
        out.push_str(&self.path);
        if self.topic_header.is_none() {
            out.push('/');
            Part::Path.encode(topic, out);
        } else if self.path.is_empty() {
            out.push('/');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_host_port_and_path() {
        let cases = [
            (
                "http://127.0.0.1:8088/muster/",
                "127.0.0.1:8088",
                "127.0.0.1:8088",
                "/muster",
            ),
            ("http://127.0.0.1", "127.0.0.1:80", "127.0.0.1", ""),
            ("http://[::1]:9/a/b", "[::1]:9", "[::1]:9", "/a/b"),
        ];
        for (url, address, host, path) in cases {
            let config = WebhookConfig::parse(url).expect("it is an address");
            assert_eq!(config.address.to_string(), address, "{url}");
            assert_eq!((config.host.as_str(), config.path.as_str()), (host, path));
        }
        let https = WebhookConfig::parse("https://127.0.0.1").unwrap_err();
        assert!(https.to_string().contains("`https://127.0.0.1`"), "{https}");
        assert!(WebhookConfig::parse("http://:x:/").is_err());
    }

    #[test]
    fn a_topic_stands_behind_the_path_unless_a_header_has_it() {
        let config = WebhookConfig::parse("http://127.0.0.1/muster").expect("it is an address");
        let mut target = "left over".to_owned();
        config.write_target("t/d 1/\u{e4}?#%", &mut target);
        assert_eq!(target, "/muster/t/d%201/%C3%A4%3F%23%25");
        let header = WebhookConfig {
            topic_header: Some("x-topic".to_owned()),
            ..config
        };
        header.write_target("t", &mut target);
        assert_eq!(target, "/muster");
        let bare = WebhookConfig {
            path: String::new(),
            ..header
        };
        bare.write_target("t", &mut target);
        assert_eq!(target, "/");
    }

    #[test]
    fn no_proof_is_printed() {
        let config = WebhookConfig::parse("http://127.0.0.1").expect("it is an address");
        assert!(!format!("{:?}", config.with_token("hush")).contains("hush"));
    }
}
