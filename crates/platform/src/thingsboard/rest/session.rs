//! Login, tokens and the user.

use std::fmt;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use muster_model::Micros;
use serde::{Deserialize, Serialize};

use super::EntityId;

/// Time before its end at which a token is renewed, or the tenth part of its life if that is shorter.
const MARGIN: Micros = Micros(60_000_000);

/// The header that carries the token, as `Bearer <token>`; `Authorization` works too.
pub const AUTHORIZATION: &str = "X-Authorization";

/// A user name and its password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The user name, an address of mail.
    pub username: String,
    /// Its password.
    pub password: String,
}

/// A token for the calls, and one that renews it. Both are JWT (RFC 7519).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// The token of calls; it expires after 9,000 s by default.
    pub token: String,
    /// The token that renews it; it expires after 604,800 s by default.
    pub refresh_token: String,
}

/// The token that renews the other one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refresh {
    /// The refresh token.
    pub refresh_token: String,
}

/// Tokens in use, until they are to be renewed.
pub struct Session {
    tokens: Tokens,
    /// None if the token does not say how long it lives.
    renew_at: Option<Micros>,
}

/// The instants in a token (RFC 7519 section 4.1), in seconds of the server's clock.
#[derive(Deserialize)]
struct Claims {
    iat: u64,
    exp: u64,
}

impl Session {
    /// The session of tokens that were issued at `now`.
    pub fn new(tokens: Tokens, now: Micros) -> Self {
        let renew_at = lifetime(&tokens.token).map(|life| {
            let margin = Micros(life.get() / 10).min(MARGIN);
            now + Micros(life.get() - margin.get())
        });
        Self { tokens, renew_at }
    }

    /// Returns the token of calls.
    pub fn token(&self) -> &str {
        &self.tokens.token
    }

    /// Returns true if its token need not be renewed before a call at `now`.
    pub fn is_fresh(&self, now: Micros) -> bool {
        self.renew_at.is_none_or(|at| now < at)
    }

    /// Ends it; the body of the call that renews it.
    pub fn into_refresh(self) -> Refresh {
        Refresh {
            refresh_token: self.tokens.refresh_token,
        }
    }
}

impl fmt::Debug for Session {
    /// Shows no token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut session = f.debug_struct("Session");
        session
            .field("renew_at", &self.renew_at)
            .finish_non_exhaustive()
    }
}

/// The time for which a token is valid, whatever the server's clock shows.
fn lifetime(token: &str) -> Option<Micros> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?);
    let claims: Claims = serde_json::from_slice(&claims.ok()?).ok()?;
    let life_s = claims.exp.checked_sub(claims.iat)?;
    Some(Micros(life_s.saturating_mul(1_000_000)))
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Its id.
    pub id: EntityId,
    /// Its tenant.
    pub tenant_id: EntityId,
    /// The user name.
    pub email: String,
    /// Its rights.
    pub authority: Authority,
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Authority {
    /// The administrator of all tenants, who has no devices.
    SysAdmin,
    /// The administrator of a tenant.
    TenantAdmin,
    /// A user of a customer, who may read.
    CustomerUser,
    /// Rights that no call here needs.
    #[serde(other)]
    Other,
}

impl Authority {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "system administrator",
            Self::TenantAdmin => "tenant administrator",
            Self::CustomerUser => "user of a customer",
            Self::Other => "user of another kind",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(token: String) -> Session {
        let refresh_token = "r".to_owned();
        Session::new(
            Tokens {
                token,
                refresh_token,
            },
            Micros(5),
        )
    }

    #[test]
    fn a_token_is_renewed_before_its_end() {
        let renew_at = |claims: &str| {
            let claims = BASE64_URL_SAFE_NO_PAD.encode(claims);
            session(format!("e30.{claims}.sig")).renew_at
        };
        let long = renew_at(r#"{"iat":1764000000,"exp":1764009000,"sub":"x"}"#);
        assert_eq!(long, Some(Micros(8_940_000_005)));
        assert_eq!(renew_at(r#"{"iat":10,"exp":20}"#), Some(Micros(9_000_005)));
        assert_eq!(renew_at(r#"{"iat":10}"#), None);
        assert_eq!(session("opaque".to_owned()).renew_at, None);
    }

    #[test]
    fn a_session_shows_no_token() {
        let shown = format!("{:?}", session("secret".to_owned()));
        assert_eq!(shown, "Session { renew_at: None, .. }");
    }
}
