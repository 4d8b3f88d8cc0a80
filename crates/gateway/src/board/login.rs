//! Logins: the tokens of sessions, and the user who has them.
//!
//! Tokens are JWT (RFC 7519), signed by a key that the store holds, so that they outlive a restart of the
//! gateway. A session that was ended is in the store too.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA512, Key, sign, verify};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use muster_platform::board_rest::{
    Authority, EntityId, EntityType, ErrorCode, Login, Tokens, User,
};
use redb::ReadableTable;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::{LOGOUTS, SECRETS, Store, Tables};

/// The administrator of the tenant of a gateway with dialect ThingsBoard, as of a new ThingsBoard.
pub const TENANT_USER: &str = "tenant@thingsboard.org";
/// The password where the gateway has no token.
const PASSWORD: &str = "tenant";
/// Seconds for which the tokens of a login are valid.
const TOKEN_LASTS_S: u64 = 9_000;
const REFRESH_LASTS_S: u64 = 604_800;
const KEY: &str = "jwt";
const KEY_BYTES: usize = 64;

/// The user who may log in, and the key of tokens.
pub(super) struct Logins {
    password: String,
    key: Key,
}

/// Claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claims {
    sub: String,
    /// Its rights: [`ACCESS`] or [`REFRESH`].
    scopes: Vec<String>,
    session_id: String,
    tenant_id: String,
    iat: u64,
    exp: u64,
}

const ACCESS: &str = "TENANT_ADMIN";
const REFRESH: &str = "REFRESH_TOKEN";

/// A session that a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session(String);

impl Logins {
    /// The user with that password; the key is that of the store, which gets one if it has none.
    pub(super) fn new(password: Option<&str>, store: &Store) -> Answer<Self> {
        let key = store.write(|tables| {
            let mut secrets = tables.open_table(SECRETS)?;
            if let Some(key) = secrets.get(KEY)? {
                return Ok(key.value().to_vec());
            }
            let key = random::<KEY_BYTES>()?;
            secrets.insert(KEY, key.as_slice())?;
            Ok(key.to_vec())
        })?;
        Ok(Self {
            password: password.unwrap_or(PASSWORD).to_owned(),
            key: Key::new(HMAC_SHA512, &key),
        })
    }

    /// Begins a session.
    ///
    /// # Errors
    /// 401 if nobody has that name and password.
    pub(super) fn login(&self, login: &Login, now_ms: i64) -> Answer<Tokens> {
        if login.username != TENANT_USER || login.password != self.password {
            let what = "Invalid username or password";
            return Err(Refusal::unauthorized(ErrorCode::AUTHENTICATION, what));
        }
        let session: String = random::<16>()?
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(self.tokens(&session, now_ms))
    }

    /// Goes on with the session of a refresh token.
    ///
    /// # Errors
    /// 401 if it is none, or its session has ended.
    pub(super) fn refresh(&self, store: &Store, token: &str, now_ms: i64) -> Answer<Tokens> {
        let Session(session) = self.session(store, (token, REFRESH), now_ms)?;
        Ok(self.tokens(&session, now_ms))
    }

    /// Returns the session of a token of calls.
    ///
    /// # Errors
    /// 401 if it is none, or its session has ended.
    pub(super) fn check(&self, store: &Store, token: &str, now_ms: i64) -> Answer<Session> {
        self.session(store, (token, ACCESS), now_ms)
    }

    fn session(&self, store: &Store, (token, scope): (&str, &str), now_ms: i64) -> Answer<Session> {
        let claims = self.claims(token).filter(|claims| claims.scopes == [scope]);
        let claims = claims.ok_or_else(|| {
            Refusal::unauthorized(ErrorCode::AUTHENTICATION, "Authentication failed")
        })?;
        let tables = store.read()?;
        let has_ended = tables
            .table(LOGOUTS)?
            .get(claims.session_id.as_str())?
            .is_some();
        if has_ended || claims.exp <= seconds(now_ms) {
            let what = "Token has expired";
            return Err(Refusal::unauthorized(ErrorCode::TOKEN_EXPIRED, what));
        }
        Ok(Session(claims.session_id))
    }

    /// Ends a session. Sessions whose tokens have expired are forgotten meanwhile.
    pub(super) fn logout(store: &Store, session: &Session, now_ms: i64) -> Answer<()> {
        let now = seconds(now_ms);
        store.write(|tables| {
            let mut logouts = tables.open_table(LOGOUTS)?;
            logouts.retain(|_, until| until > now)?;
            logouts.insert(session.0.as_str(), now + REFRESH_LASTS_S)?;
            Ok(())
        })
    }

    fn tokens(&self, session: &str, now_ms: i64) -> Tokens {
        let token = |scope: &str, lasts: u64| {
            let now = seconds(now_ms);
            self.token(&Claims {
                sub: TENANT_USER.to_owned(),
                scopes: vec![scope.to_owned()],
                session_id: session.to_owned(),
                tenant_id: Serial::TENANT.uuid(),
                iat: now,
                exp: now + lasts,
            })
        };
        Tokens {
            token: token(ACCESS, TOKEN_LASTS_S),
            refresh_token: token(REFRESH, REFRESH_LASTS_S),
        }
    }

    fn token(&self, claims: &Claims) -> String {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            part(json!({ "alg": "HS512" })),
            part(json!(claims))
        );
        let signature = URL_SAFE_NO_PAD.encode(sign(&self.key, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Claims of a token; none if its signature is not ours.
    fn claims(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        verify(&self.key, signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

/// Prints neither password nor key.
impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

/// The one user.
pub(super) fn user() -> User {
    User {
        id: EntityId::new(EntityType::User, &Serial::new(0).uuid()),
        tenant_id: super::tenant_id(),
        email: TENANT_USER.to_owned(),
        authority: Authority::TenantAdmin,
    }
}

fn seconds(ms: i64) -> u64 {
    u64::try_from(ms / 1_000).unwrap_or(0)
}

fn random<const N: usize>() -> Answer<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Refusal::new(500, ErrorCode::GENERAL, "the system gives no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(answer: Answer<T>) -> Option<(u16, u16)> {
        let failure = answer.err()?.0;
        Some((failure.status, failure.error_code?.0))
    }

    #[test]
    fn a_session_lasts_until_its_time_is_over_or_it_is_ended() {
        let store = Store::open(None).expect("a store");
        let logins = Logins::new(Some("secret"), &store).expect("logins");
        let login = |password: &str| {
            let login = Login {
                username: TENANT_USER.to_owned(),
                password: password.to_owned(),
            };
            logins.login(&login, 1_000_000)
        };
        assert_eq!(code(login("other")), Some((401, 10)));
        let Ok(tokens) = login("secret") else {
            panic!("it is right");
        };
        let check = |token: &str, now_ms| logins.check(&store, token, now_ms);
        let session = check(&tokens.token, 1_000_000).expect("a session");
        assert_eq!(
            code(check(&tokens.refresh_token, 1_000_000)),
            Some((401, 10))
        );
        assert_eq!(
            code(check(&format!("{}x", tokens.token), 1_000_000)),
            Some((401, 10))
        );
        let later = 1_000_000 + 9_000_000;
        assert_eq!(code(check(&tokens.token, later)), Some((401, 11)));
        let refreshed = logins.refresh(&store, &tokens.refresh_token, later);
        let Ok(refreshed) = refreshed else {
            panic!("it is valid");
        };
        assert_eq!(check(&refreshed.token, later), Ok(session.clone()));
        Logins::logout(&store, &session, later).expect("it ends");
        assert_eq!(code(check(&refreshed.token, later)), Some((401, 11)));
    }
}
