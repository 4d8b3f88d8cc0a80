//! Credentials in a request (RFC 9110 section 11).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A name and a password as a client shows them.
#[derive(PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) password: Vec<u8>,
}

/// Prints no password.
impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}

/// The user in a field `Authorization`: name and password of Basic (RFC 7617), or a token of Bearer (RFC 6750),
/// which is a name without a password. None for another scheme, and for what is not of its scheme.
pub(super) fn user_of(field: &[u8]) -> Option<Shown> {
    let field = std::str::from_utf8(field).ok()?;
    let (scheme, shown) = field.split_once(' ')?;
    let shown = shown.trim_start_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Shown {
            name: shown.to_owned(),
            password: Vec::new(),
        });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut name = STANDARD.decode(shown).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon + 1);
    name.pop();
    Some(Shown {
        name: String::from_utf8(name).ok()?,
        password,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(field: &str) -> Option<(String, String)> {
        let Shown { name, password } = user_of(field.as_bytes())?;
        Some((name, String::from_utf8_lossy(&password).into_owned()))
    }

    #[test]
    fn a_name_ends_at_the_first_colon_and_a_token_is_a_name() {
        let pair = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        // The first one is that of RFC 7617 section 2.
        for (field, expected) in [
            (
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
                pair("Aladdin", "open sesame"),
            ),
            ("basic  czFAdDE6YTpi", pair("s1@t1", "a:b")),
            ("Basic czFAdDE6", pair("s1@t1", "")),
            ("Bearer abc.def", pair("abc.def", "")),
            ("Basic czFAdDE=", None),
            ("Basic ???", None),
            ("Digest czFAdDE6", None),
            ("Basic", None),
            ("", None),
        ] {
            assert_eq!(shown(field), expected, "{field}");
        }
        let secret = user_of(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!format!("{secret:?}").contains("sesame"));
    }
}
