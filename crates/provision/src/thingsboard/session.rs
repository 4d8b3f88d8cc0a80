//! A session with ThingsBoard's REST API: tokens that are renewed in time, and a pace that its limits allow.

use std::sync::{Mutex, MutexGuard, PoisonError};

use muster_model::Micros;
use muster_net::Clock;
use muster_plan::{ApiCredential, ProvisionPlan, Secret, WebAddress};
use muster_platform::board_rest::{
    self, Authority, Call, LOGIN, Login, NoQuery, REFRESH, Refresh, Tokens, USER, User,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failures::{is_expired, refused};
use crate::rest::{Answer, NOT_FOUND, Rest, TypedCall};
use crate::{ProvisionError, Watch};

/// The answer to a call that exceeds a rate (RFC 6585 section 4).
const TOO_MANY: u16 = 429;
/// The answer to a call without a valid token (RFC 9110 section 15.5.2).
const UNAUTHORIZED: u16 = 401;
/// Longest time for which a call is repeated that the platform refuses for its rate: limits count in windows of
/// a minute at the most, unless somebody has set others.
const LIMITED_MAX: Micros = Micros(150_000_000);

/// Parameters of the path, query and body of a call.
pub(super) struct Asked<'a, const N: usize, Q, B> {
    pub(super) path: [&'a str; N],
    pub(super) query: Q,
    pub(super) body: B,
}

#[derive(Debug)]
pub(super) struct Session {
    rest: Rest,
    credential: Option<ApiCredential>,
    clock: Clock,
    held: Mutex<Option<board_rest::Session>>,
}

impl<'a, const N: usize> Asked<'a, N, NoQuery, ()> {
    /// A call without query and body.
    pub(super) const fn at(path: [&'a str; N]) -> Self {
        Self {
            path,
            query: NoQuery {},
            body: (),
        }
    }
}

impl<Q> Asked<'static, 0, Q, ()> {
    /// A call with a query alone.
    pub(super) const fn query(query: Q) -> Self {
        Self {
            path: [],
            query,
            body: (),
        }
    }
}

impl<B> Asked<'static, 0, NoQuery, B> {
    /// A call with a body alone.
    pub(super) const fn body(body: B) -> Self {
        Self {
            path: [],
            query: NoQuery {},
            body,
        }
    }
}

impl Session {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(super) fn new(plan: &ProvisionPlan, api: &WebAddress) -> Result<Self, ProvisionError> {
        Ok(Self {
            rest: Rest::of_sessions(plan, api)?,
            credential: plan.credential.clone(),
            clock: Clock::start(),
            held: Mutex::new(None),
        })
    }

    pub(super) fn base(&self) -> &str {
        self.rest.base()
    }

    /// Makes a call and reads its answer.
    ///
    /// # Errors
    /// As [`Session::answer`], and if the platform refuses.
    pub(super) fn call<const N: usize, Q: Serialize, B: Serialize, A: DeserializeOwned>(
        &self,
        call: &Call<N, Q, B, A>,
        asked: &Asked<'_, N, Q, B>,
        watch: &dyn Watch,
    ) -> Result<A, ProvisionError> {
        read(&self.answer(call, asked, watch)?)
    }

    /// Makes a call for an entity that need not be there.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub(super) fn find<const N: usize, Q: Serialize, B: Serialize, A: DeserializeOwned>(
        &self,
        call: &Call<N, Q, B, A>,
        asked: &Asked<'_, N, Q, B>,
        watch: &dyn Watch,
    ) -> Result<Option<A>, ProvisionError> {
        let answer = self.answer(call, asked, watch)?;
        match read(&answer) {
            Err(ProvisionError::Refused {
                status: NOT_FOUND, ..
            }) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Makes a call, whatever its answer. A call that the platform refuses for its rate is repeated at a lower
    /// pace, and one whose token has expired with a new one.
    ///
    /// # Errors
    /// [`ProvisionError::Silent`], [`ProvisionError::Interrupted`], and if there is no login.
    pub(super) fn answer<const N: usize, Q: Serialize, B: Serialize, A>(
        &self,
        call: &Call<N, Q, B, A>,
        asked: &Asked<'_, N, Q, B>,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        let token = self.token(watch)?;
        let answer = self.exchange(call, asked, token.as_ref(), watch)?;
        let is_renewable = matches!(self.credential, Some(ApiCredential::Basic { .. }));
        if !is_renewable || !is_expired(&answer) {
            return Ok(answer);
        }
        self.forget(token.as_ref());
        let token = self.token(watch)?;
        self.exchange(call, asked, token.as_ref(), watch)
    }

    /// Checks that the user may manage devices; the user.
    ///
    /// # Errors
    /// [`ProvisionError::Rights`] if it is no tenant's administrator, and as [`Session::call`].
    pub(super) fn user(&self, watch: &dyn Watch) -> Result<User, ProvisionError> {
        let user = self.call(&USER, &Asked::at([]), watch)?;
        if user.authority == Authority::TenantAdmin {
            return Ok(user);
        }
        Err(ProvisionError::Rights {
            call: format!("GET {}{}", self.base(), USER.route()),
            user: user.email,
            authority: user.authority.name(),
        })
    }

    fn exchange<const N: usize, Q: Serialize, B: Serialize, A>(
        &self,
        call: &Call<N, Q, B, A>,
        asked: &Asked<'_, N, Q, B>,
        token: Option<&Secret>,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        let body = serde_json::to_value(&asked.body).unwrap_or_default();
        let body = (!body.is_null()).then(|| body.to_string());
        let request = TypedCall {
            verb: call.verb(),
            path: &call.path(asked.path),
            query: &pairs(&asked.query),
            body: body.as_deref(),
            token,
        };
        let mut limited_at = None;
        loop {
            let answer = self.rest.typed(&request, watch)?;
            let now = self.clock.now();
            let since = now.get() - limited_at.get_or_insert(now).get();
            if answer.status != TOO_MANY || since > LIMITED_MAX.get() {
                return Ok(answer);
            }
            if let Some(rate) = self.rest.pacer().slow_down(answer.sent) {
                watch.remark(&format!(
                    "{} answers 429, too many requests: it goes on with {rate:.1} calls a second; a lower \
                     `provision.rate` avoids this",
                    self.base()
                ));
            }
        }
    }

    /// Lets no call come before that time has passed.
    pub(super) fn rest(&self, time: Micros) {
        self.rest.pacer().rest(time);
    }

    /// The token of the next call; none where the scenario names no login.
    fn token(&self, watch: &dyn Watch) -> Result<Option<Secret>, ProvisionError> {
        let (user, password) = match &self.credential {
            None => return Ok(None),
            Some(ApiCredential::Bearer(token)) => return Ok(Some(token.clone())),
            Some(ApiCredential::Basic { user, password }) => (user, password),
        };
        let mut held = self.held();
        let now = self.clock.now();
        if let Some(held) = held.as_ref().filter(|held| held.is_fresh(now)) {
            return Ok(Some(secret(held)));
        }
        let renewed = match held.take() {
            Some(old) => self.renewed(old.into_refresh(), watch)?,
            None => None,
        };
        let tokens = match renewed {
            Some(tokens) => tokens,
            None => {
                let login = Asked::body(Login {
                    username: user.expose().clone(),
                    password: password.expose().clone(),
                });
                read_secret(&self.exchange(&LOGIN, &login, None, watch)?)?
            }
        };
        let held = held.insert(board_rest::Session::new(tokens, now));
        Ok(Some(secret(held)))
    }

    /// New tokens for a refresh token; none if that has expired too.
    fn renewed(
        &self,
        refresh: Refresh,
        watch: &dyn Watch,
    ) -> Result<Option<Tokens>, ProvisionError> {
        let refresh = Asked::body(refresh);
        let answer = self.exchange(&REFRESH, &refresh, None, watch)?;
        match answer.status {
            UNAUTHORIZED => Ok(None),
            _ => read_secret(&answer).map(Some),
        }
    }

    /// Drops a token that the platform no longer takes, unless another thread has renewed it.
    fn forget(&self, token: Option<&Secret>) {
        let mut held = self.held();
        if held.as_ref().map(secret).as_ref() == token {
            *held = None;
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<board_rest::Session>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret(held: &board_rest::Session) -> Secret {
    Secret::new(held.token().to_owned())
}

/// A query as pairs; members without a value are left out.
fn pairs(query: &impl Serialize) -> Vec<(String, String)> {
    let Ok(Value::Object(members)) = serde_json::to_value(query) else {
        return Vec::new();
    };
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let pair = |(name, value): (String, Value)| match &value {
        Value::String(text) => (name, text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            (name, value.to_string())
        }
    };
    members.map(pair).collect()
}

/// Reads an answer; an empty one is that without a body.
pub(super) fn read<A: DeserializeOwned>(answer: &Answer) -> Result<A, ProvisionError> {
    parsed(answer)?.map_err(|error: serde_json::Error| answer.unreadable(&error.to_string()))
}

/// Reads an answer that no error may show.
fn read_secret<A: DeserializeOwned>(answer: &Answer) -> Result<A, ProvisionError> {
    parsed(answer)?.map_err(|_: serde_json::Error| ProvisionError::Unreadable {
        call: answer.call.clone(),
        why: "it has no tokens".to_owned(),
    })
}

fn parsed<A: DeserializeOwned>(
    answer: &Answer,
) -> Result<Result<A, serde_json::Error>, ProvisionError> {
    if !answer.is_yes() {
        return Err(refused(answer));
    }
    let text = answer.text();
    Ok(serde_json::from_str(if text.is_empty() {
        "null"
    } else {
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_its_members_that_have_values() {
        let query = board_rest::PageQuery {
            page_size: 10,
            page: 0,
            text_search: Some("a b".to_owned()),
        };
        let pairs = pairs(&query);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [("pageSize", "10"), ("page", "0"), ("textSearch", "a b")]
        );
    }
}
