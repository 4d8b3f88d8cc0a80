//! Authorization of the calls of a management API: by a bearer token (RFC 6750), or by HTTP Basic
//! (RFC 7617).

use base64::prelude::{BASE64_STANDARD, Engine as _};
use muster_plan::{ApiCredential, Secret};

#[derive(Debug)]
pub(crate) struct Authorization {
    header: Secret,
    hidden: Vec<Secret>,
}

impl Authorization {
    pub(crate) fn new(credential: &ApiCredential) -> Self {
        match credential {
            ApiCredential::Bearer(token) => Self {
                header: Secret::new(format!("Bearer {}", token.expose())),
                hidden: vec![token.clone()],
            },
            ApiCredential::Basic { user, password } => {
                let both = format!("{}:{}", user.expose(), password.expose());
                let both = BASE64_STANDARD.encode(both);
                Self {
                    header: Secret::new(format!("Basic {both}")),
                    hidden: vec![Secret::new(both), escaped(password), password.clone()],
                }
            }
        }
    }

    pub(crate) fn header(&self) -> &str {
        self.header.expose()
    }

    /// An answer that repeats our secrets, without them.
    pub(crate) fn mask(&self, text: String) -> String {
        let hidden = self.hidden.iter();
        hidden.fold(text, |text, secret| text.replace(secret.expose(), "***"))
    }
}

fn escaped(secret: &Secret) -> Secret {
    let quoted = serde_json::Value::from(secret.expose().as_str()).to_string();
    let inside = quoted.trim_start_matches('"');
    Secret::new(inside.strip_suffix('"').unwrap_or(inside).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basic(user: &str, password: &str) -> Authorization {
        let [user, password] = [user, password].map(|text| Secret::new(text.to_owned()));
        Authorization::new(&ApiCredential::Basic { user, password })
    }

    /// The examples of RFC 7617 sections 2 and 2.1.
    #[test]
    fn the_header_of_basic_is_the_standards() {
        let aladdin = basic("Aladdin", "open sesame");
        assert_eq!(aladdin.header(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(
            basic("test", "123\u{a3}").header(),
            "Basic dGVzdDoxMjPCow=="
        );
        let colons = basic("me", "a:b:c");
        assert_eq!(colons.header(), "Basic bWU6YTpiOmM=");
    }

    #[test]
    fn neither_answers_nor_debugging_show_a_secret() {
        let basic = basic("Aladdin", "open \"sesame\"");
        let said = format!(
            "{} {:?} open \"sesame\" of Aladdin",
            basic.header(),
            "open \"sesame\""
        );
        assert_eq!(basic.mask(said), "Basic *** \"***\" *** of Aladdin");
        assert!(!format!("{basic:?}").contains("QWxh"));
        let token = ApiCredential::Bearer(Secret::new("t0ken".to_owned()));
        let bearer = Authorization::new(&token);
        assert_eq!(bearer.header(), "Bearer t0ken");
        assert_eq!(bearer.mask("no t0ken".to_owned()), "no ***");
    }
}
