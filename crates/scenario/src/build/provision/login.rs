//! Authorisation of the calls of a management API. What is wrong with it is never shown: it may be
//! half of a secret.

use muster_plan::{ApiCredential, Secret, WebAddress, is_loopback};

use super::has_none;
use crate::build::secret::secret;
use crate::view::View;

/// The outer option: whether it can be used; the inner one: whether there is one.
pub(super) fn login(view: &View<'_>, api: &WebAddress) -> Option<Option<ApiCredential>> {
    if let Some(stands) = view.get("token") {
        let help = "keep `token`, or `user` and `password`";
        let why = ("`token` authorises the calls", help);
        has_none(view, &["user", "password"], why)?;
        return token(&stands, api).map(Some);
    }
    match (view.get("user"), view.get("password")) {
        (None, None) => Some(None),
        (Some(user), Some(password)) => basic(&user, &password, api).map(Some),
        (Some(user), None) => user.refuse("a user name without a password", "add `password`"),
        (None, Some(password)) => password.refuse("a password without a user name", "add `user`"),
    }
}

fn token(stands: &View<'_>, api: &WebAddress) -> Option<ApiCredential> {
    let token = secret(stands)?;
    let text = token.expose();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let what = "this is no bearer token: it is empty, or holds a blank, a line break or a \
                    letter outside ASCII";
        return stands.refuse(what, "the token alone, on one line (RFC 6750 section 2.1)");
    }
    warn_of_clear_text(stands, "token", api);
    Some(ApiCredential::Bearer(token))
}

fn basic(user: &View<'_>, password: &View<'_>, api: &WebAddress) -> Option<ApiCredential> {
    let name = plain(user, "user name")?;
    if name.expose().contains(':') {
        let what = "this user name holds a colon, behind which HTTP Basic has the password";
        let help = "a user name without `:` (RFC 7617 section 2)";
        return user.refuse(what, help);
    }
    let word = plain(password, "password")?;
    warn_of_clear_text(password, "password", api);
    Some(ApiCredential::Basic {
        user: name,
        password: word,
    })
}

/// A text that HTTP Basic can carry.
fn plain(stands: &View<'_>, what: &str) -> Option<Secret> {
    let text = secret(stands)?;
    if text.expose().is_empty() || text.expose().contains(char::is_control) {
        let wrong = format!(
            "this is no {what} for HTTP Basic: it is empty, or holds a line break or another control character"
        );
        let help = format!("the {what} alone, on one line (RFC 7617 section 2)");
        return stands.refuse(wrong, &help);
    }
    Some(text)
}

fn warn_of_clear_text(stands: &View<'_>, what: &str, api: &WebAddress) {
    if !api.is_tls && !is_loopback(&api.host) {
        let what = format!("the {what} crosses the network for everybody to read");
        stands.warn(what, "an `https` address as `url`");
    }
}
