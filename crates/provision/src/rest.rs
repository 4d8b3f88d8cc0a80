//! Calls of a management API over HTTP, with JSON.

use std::sync::Arc;
use std::time::Duration;

use muster_model::Micros;
use muster_model::percent::Part;
use muster_plan::{ProvisionPlan, Secret, WebAddress};
use muster_platform::board_rest::{AUTHORIZATION, Verb};
use muster_transport::{Pem, TransportError, crypto_provider, tls_failure_of, trusted};
use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::typestate::WithBody;
use ureq::{Agent, Body, http};

use crate::authorization::Authorization;
use crate::pacer::Pacer;
use crate::{Journal, ProvisionError, Watch};

/// Bytes of an answer that are read at the most: a page of a list.
const ANSWER_MAX: u64 = 8 << 20;
/// The answer to a thing whose name is taken (RFC 9110 section 15.5.10).
pub(crate) const CONFLICT: u16 = 409;
/// The answer to a thing that is not there (RFC 9110 section 15.5.5).
pub(crate) const NOT_FOUND: u16 = 404;
/// The answer to a thing that is no longer what its ETag stood for (RFC 9110 section 15.5.13).
pub(crate) const PRECONDITION_FAILED: u16 = 412;
/// Characters of an answer that an error shows.
const SHOWN_MAX: usize = 300;

#[derive(Debug)]
pub(crate) struct Rest {
    agent: Agent,
    base: String,
    authorization: Option<Authorization>,
    pacer: Pacer,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask<'a> {
    /// The things that a filter takes.
    List(&'a str),
    Create(&'a Value),
    Read,
    /// A thing in the place of what it was; if there is an ETag, only in the place of what that stands for.
    Replace {
        body: &'a Value,
        etag: Option<&'a str>,
    },
    Delete,
}

/// A call of an API that is described by types.
pub(crate) struct TypedCall<'a> {
    pub(crate) verb: Verb,
    /// Path below the API's address, with its slash.
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(String, String)],
    pub(crate) body: Option<&'a str>,
    /// The token of the session; none where nobody has logged in.
    pub(crate) token: Option<&'a Secret>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    /// The method and the address.
    pub(crate) call: String,
    pub(crate) status: u16,
    /// Instant at which the call was sent, on the clock of the calls' pace.
    pub(crate) sent: Micros,
    /// Mark of the thing's present content, for a conditional request (RFC 9110 section 8.8.3). A weak one
    /// serves none.
    pub(crate) etag: Option<String>,
    text: String,
}

/// The entry of a journal for a thing that is about to be created.
pub(crate) struct Begun<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) kind: &'static str,
    pub(crate) key: &'a str,
    /// Its id, or what it is known by; none where only the platform gives it one.
    pub(crate) id: Option<&'a str>,
}

impl Rest {
    /// The API at an address; `path` stands before every call where the address has none.
    ///
    /// # Errors
    /// [`TransportError`] if the trusted certificates cannot be used.
    pub(crate) fn new(
        plan: &ProvisionPlan,
        api: &WebAddress,
        path: &str,
    ) -> Result<Self, TransportError> {
        let path = if api.path.is_empty() { path } else { "" };
        let pending = usize::from(plan.pending);
        // Links of devices know no proxy either, and a redirection would carry our secrets elsewhere.
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_micros(plan.timeout.get())))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(pending)
            .max_idle_connections_per_host(pending)
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")));
        let config = if api.is_tls {
            config.tls_config(tls(plan)?)
        } else {
            config
        };
        Ok(Self {
            agent: config.build().new_agent(),
            base: format!("{api}{path}"),
            authorization: plan.credential.as_ref().map(Authorization::new),
            pacer: Pacer::new(plan.rate),
        })
    }

    /// The API at an address where calls carry the token of a session.
    ///
    /// # Errors
    /// [`TransportError`] if the trusted certificates cannot be used.
    pub(crate) fn of_sessions(
        plan: &ProvisionPlan,
        api: &WebAddress,
    ) -> Result<Self, TransportError> {
        Ok(Self {
            authorization: None,
            ..Self::new(plan, api, "")?
        })
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) const fn pacer(&self) -> &Pacer {
        &self.pacer
    }

    /// Makes a call once it is its turn.
    ///
    /// # Errors
    /// [`ProvisionError::Silent`] if there is no answer, [`ProvisionError::Interrupted`].
    pub(crate) fn call(
        &self,
        path: &str,
        ask: Ask<'_>,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        self.pacer.wait(watch)?;
        let sent = self.pacer.now();
        let url = format!("{}/{path}", self.base);
        let (method, answered) = match ask {
            Ask::List(filter) => {
                let request = self.agent.get(&url).query("filter", filter);
                ("GET", self.authorized(request).call())
            }
            Ask::Read => ("GET", self.authorized(self.agent.get(&url)).call()),
            Ask::Create(body) => ("POST", self.send(self.agent.post(&url), body)),
            Ask::Replace { body, etag } => {
                let request = self.agent.put(&url);
                let request = match etag {
                    Some(etag) => request.header("if-match", etag),
                    None => request,
                };
                ("PUT", self.send(request, body))
            }
            Ask::Delete => ("DELETE", self.authorized(self.agent.delete(&url)).call()),
        };
        self.answered(format!("{method} {url}"), sent, answered)
    }

    /// Makes a call of an API that is described by types, once it is its turn.
    ///
    /// # Errors
    /// As [`Rest::call`].
    pub(crate) fn typed(
        &self,
        call: &TypedCall<'_>,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        self.pacer.wait(watch)?;
        let sent = self.pacer.now();
        let url = format!("{}{}", self.base, call.path);
        let (method, answered) = match call.verb {
            Verb::Get => ("GET", call.headed(self.agent.get(&url)).call()),
            Verb::Delete => ("DELETE", call.headed(self.agent.delete(&url)).call()),
            Verb::Post => {
                let request = call.headed(self.agent.post(&url));
                let answered = match call.body {
                    Some(body) => request.content_type("application/json").send(body),
                    None => request.send_empty(),
                };
                ("POST", answered)
            }
        };
        self.answered(format!("{method} {url}"), sent, answered)
    }

    fn answered(
        &self,
        call: String,
        sent: Micros,
        answered: Result<http::Response<Body>, ureq::Error>,
    ) -> Result<Answer, ProvisionError> {
        match answered.and_then(|response| self.read(response)) {
            Ok(answer) => Ok(Answer {
                call,
                sent,
                ..answer
            }),
            Err(error) => Err(silent(call, &error)),
        }
    }

    /// Creates a thing. The journal has it as begun before the call, and as refused if it was not created.
    ///
    /// # Errors
    /// As [`Rest::call`], [`ProvisionError::Journal`].
    pub(crate) fn create(
        &self,
        path: &str,
        body: &Value,
        begun: &Begun<'_>,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        begun.record(|| self.call(path, Ask::Create(body), watch))
    }

    /// Deletes a thing; true if it existed.
    ///
    /// # Errors
    /// As [`Rest::call`], [`ProvisionError::Refused`].
    pub(crate) fn delete(&self, path: &str, watch: &dyn Watch) -> Result<bool, ProvisionError> {
        let answer = self.call(path, Ask::Delete, watch)?;
        match answer.status {
            NOT_FOUND => Ok(false),
            _ if answer.is_yes() => Ok(true),
            _ => Err(answer.refused()),
        }
    }

    fn send(
        &self,
        request: ureq::RequestBuilder<WithBody>,
        body: &Value,
    ) -> Result<http::Response<Body>, ureq::Error> {
        let request = request.content_type("application/json");
        let text = body.to_string();
        self.authorized(request).send(text.as_str())
    }

    fn authorized<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.authorization {
            Some(ours) => request.header("authorization", ours.header()),
            None => request,
        }
    }

    /// An answer to a call without a name; a platform that repeats our secrets has them masked.
    fn read(&self, mut response: http::Response<Body>) -> Result<Answer, ureq::Error> {
        let body = response.body_mut().with_config().limit(ANSWER_MAX);
        let bytes = body.read_to_vec()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(ours) = &self.authorization {
            text = ours.mask(text);
        }
        let etag = response.headers().get("etag");
        let etag = etag.and_then(|etag| etag.to_str().ok());
        let strong = etag.filter(|etag| !etag.starts_with("W/"));
        Ok(Answer {
            call: String::new(),
            status: response.status().as_u16(),
            sent: Micros::ZERO,
            etag: strong.map(str::to_owned),
            text,
        })
    }
}

impl Begun<'_> {
    /// Records a thing as begun before the call that creates it, and as refused if it was not created.
    ///
    /// # Errors
    /// As the call, [`ProvisionError::Journal`].
    pub(crate) fn record(
        &self,
        create: impl FnOnce() -> Result<Answer, ProvisionError>,
    ) -> Result<Answer, ProvisionError> {
        let (journal, kind, key) = (self.journal, self.kind, self.key);
        journal.creating(kind, key, self.id)?;
        let answer = create();
        let is_refused = match &answer {
            // After an error of the server itself it is not known what it did.
            Ok(answer) => !answer.is_yes() && answer.status < 500,
            Err(error) => matches!(error, ProvisionError::Interrupted),
        };
        if is_refused {
            journal.refused(kind, key)?;
        }
        answer
    }
}

impl TypedCall<'_> {
    /// A request with the query and the token of this call.
    fn headed<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        let query = self.query.iter();
        let query = query.map(|(name, value)| (name.as_str(), value.as_str()));
        let request = request.query_pairs(query);
        match self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {}", token.expose())),
            None => request,
        }
    }
}

impl Answer {
    pub(crate) const fn is_yes(&self) -> bool {
        self.status / 100 == 2
    }

    /// Parses its body.
    ///
    /// # Errors
    /// [`ProvisionError::Refused`] if it is no, [`ProvisionError::Unreadable`] if it is no JSON.
    pub(crate) fn json(&self) -> Result<Value, ProvisionError> {
        if !self.is_yes() {
            return Err(self.refused());
        }
        serde_json::from_str(&self.text).map_err(|error| self.unreadable(&error.to_string()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn refused(&self) -> ProvisionError {
        ProvisionError::Refused {
            call: self.call.clone(),
            status: self.status,
            said: self.said(),
            remedy: remedy(self.status),
        }
    }

    pub(crate) fn unreadable(&self, why: &str) -> ProvisionError {
        ProvisionError::Unreadable {
            call: self.call.clone(),
            why: format!("{why}, in {}", self.said()),
        }
    }

    fn said(&self) -> String {
        let words = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown: String = words.chars().take(SHOWN_MAX).collect();
        match words.chars().nth(SHOWN_MAX) {
            _ if words.is_empty() => "without a word".to_owned(),
            None => format!("`{shown}`"),
            Some(_) => format!("`{shown}...`"),
        }
    }
}

fn remedy(status: u16) -> &'static str {
    match status {
        401 => {
            "give a token that is valid now by `provision.token`, such as \"${file:token.txt}\", or, where \
             HTTP Basic is wanted, `provision.user` and `provision.password`"
        }
        403 => {
            "give a token by `provision.token`, or a `provision.user` with its `provision.password`, whose \
             owner may manage devices"
        }
        404 => "look whether `provision.url` is the base of the management API",
        409 => "look what is in its way there",
        PRECONDITION_FAILED => "others change the same thing at the same time: try again",
        429 => "lower `provision.rate`",
        300..=399 => "write the address it leads to as `provision.url`",
        500..=599 => {
            "look into the platform's own log; what was created until now is recorded, and \
                     the same can be tried again"
        }
        _ => "look into the platform's own documentation of this call",
    }
}

fn silent(call: String, error: &ureq::Error) -> ProvisionError {
    let of_tls = if let ureq::Error::Io(error) = error {
        tls_failure_of(error)
    } else {
        None
    };
    let is_certificate = of_tls
        .as_ref()
        .is_some_and(|(failure, _)| failure.is_of_certificate());
    let why = of_tls.map_or_else(|| error.to_string(), |(_, words)| words);
    let look = if is_certificate {
        "the management API is there (`provision.url`), and whom `tls.ca` trusts"
    } else {
        "the management API is there (`provision.url`)"
    };
    ProvisionError::Silent { call, why, look }
}

/// The one stack of cryptography, and whom we trust.
fn tls(plan: &ProvisionPlan) -> Result<TlsConfig, TransportError> {
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(crypto_provider());
    if plan.insecure {
        return Ok(config.disable_verification(true).build());
    }
    let ca = plan.ca.as_ref();
    let ca = ca.map(|file| Pem::new(&file.name, file.text.clone()));
    let roots = trusted(ca.as_ref())?;
    let roots = roots
        .iter()
        .map(|root| Certificate::from_der(root).to_owned());
    let roots = RootCerts::Specific(Arc::new(roots.collect()));
    Ok(config.root_certs(roots).build())
}

/// An id as one segment of a path. Of two dots alone the path would lose a segment (RFC 3986 section 5.2.4).
pub(crate) fn segment(id: &str) -> String {
    if let "." | ".." = id {
        return id.replace('.', "%2E");
    }
    let mut out = String::new();
    Part::Value.encode(id, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_segment_of_a_path_whatever_it_holds() {
        let segments = ["42", "a-b_c~", "../x", "..", "a/b?c#d", "\u{e9}"].map(segment);
        let wanted = [
            "42",
            "a-b_c~",
            "..%2Fx",
            "%2E%2E",
            "a%2Fb%3Fc%23d",
            "%C3%A9",
        ];
        assert_eq!(segments, wanted);
    }
}
