//! The environment variables of a test that is configured by them: their names, their forms, and their use here.

use self::Form::Any;

/// One variable; `Of` is a program or a generation of the test.
#[derive(Debug)]
pub(super) struct Variable<Of> {
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
    pub(super) form: Form,
    /// The only one that reads it; none if several do.
    pub(super) of: Option<Of>,
}

impl<Of: Copy> Variable<Of> {
    /// A variable that becomes a part of the scenario.
    pub(super) const fn mapped(name: &'static str, of: Option<Of>, form: Form) -> Self {
        Self {
            name,
            meaning: Meaning::Mapped,
            form,
            of,
        }
    }

    /// A variable without a meaning here, for this reason.
    pub(super) const fn idle(name: &'static str, of: Option<Of>, why: &'static str) -> Self {
        Self {
            name,
            meaning: Meaning::Idle(why),
            form: Any,
            of,
        }
    }

    /// A variable that is refused, for this reason, unless it has this value.
    pub(super) const fn refused(
        name: &'static str,
        of: Option<Of>,
        unless: &'static str,
        why: &'static str,
    ) -> Self {
        Self {
            name,
            meaning: Meaning::Mapped,
            form: Form::Only(unless, why),
            of,
        }
    }
}

/// The use of a variable here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Becomes a part of the scenario.
    Mapped,
    /// Has no meaning here, for this reason.
    Idle(&'static str),
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` or `false`, in letters of any case.
    Truth,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// One of these words, in letters of any case.
    Word(&'static [&'static str]),
    /// Letters, digits and these characters, which need no escapes in a scenario.
    Plain(&'static str),
    /// Any text: a scenario refers to it.
    Any,
    /// This text alone, in letters of any case; another one needs what is not here, with the reason.
    Only(&'static str, &'static str),
}

impl Form {
    /// The fault of a text, with its remedy; none if the text has this form.
    pub(super) fn fault(self, text: &str) -> Option<String> {
        match self {
            Self::Truth => {
                let mut words = ["true", "false"].into_iter();
                let is_word = words.any(|word| word.eq_ignore_ascii_case(text));
                (!is_word).then(|| "is neither `true` nor `false`; write one of them".to_owned())
            }
            Self::Whole(least, most) => {
                let number: Option<i64> = text.parse().ok();
                let is_within = number.is_some_and(|number| (least..=most).contains(&number));
                (!is_within).then(|| {
                    format!("is no whole number from {least} to {most}; write one without a unit")
                })
            }
            Self::Word(words) => {
                let is_word = words.iter().any(|word| word.eq_ignore_ascii_case(text));
                (!is_word).then(|| format!("is none of {}", words.join(", ")))
            }
            Self::Plain(further) => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || further.contains(c);
                let is_fit = text.chars().all(is_plain);
                (!is_fit).then(|| format!("may have letters, digits and {further} only"))
            }
            Self::Only(only, why) => {
                (!only.eq_ignore_ascii_case(text)).then(|| format!("is not supported: {why}"))
            }
            Self::Any => None,
        }
    }
}

/// A test that is configured by environment variables.
#[derive(Debug)]
pub(super) struct Test<Of: 'static> {
    /// Its name.
    pub(super) name: &'static str,
    /// Its variables, in the order in which a scenario has what they say.
    pub(super) variables: &'static [Variable<Of>],
    /// Beginnings of names that are that test's alone, so that an unknown name is a slip.
    pub(super) prefixes: &'static [&'static str],
}

impl<Of> Test<Of> {
    /// The variable of a name.
    pub(super) fn variable(&self, name: &str) -> Option<&'static Variable<Of>> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// Returns true for a name that begins as those of the test do.
    pub(super) fn has_prefix(&self, name: &str) -> bool {
        self.prefix(name).is_some()
    }

    fn prefix(&self, name: &str) -> Option<&'static str> {
        let mut prefixes = self.prefixes.iter().copied();
        prefixes.find(|prefix| name.starts_with(prefix))
    }

    /// The names that begin as this one does, for a refusal without a better guess.
    pub(super) fn relatives(&self, name: &str) -> Vec<&'static str> {
        let prefix = self.prefix(name);
        let all = self.variables.iter().map(|variable| variable.name);
        all.filter(|known| prefix.is_some_and(|prefix| known.starts_with(prefix)))
            .collect()
    }
}

/// Names that a shell or a container has, whatever runs there.
const FOREIGN: [&str; 16] = [
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "LANG",
    "USER",
    "LOGNAME",
    "SHELL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "container",
];
/// Beginnings of such names.
const FOREIGN_PREFIXES: [&str; 5] = ["KUBERNETES_", "JAVA_", "JDK_", "LC_", "OPENSHIFT_"];

/// Returns true for a variable that a shell, a container or a cluster sets by itself.
pub(super) fn is_foreign(name: &str, value: &str) -> bool {
    let mut prefixes = FOREIGN_PREFIXES.iter();
    FOREIGN.contains(&name)
        || prefixes.any(|prefix| name.starts_with(prefix))
        || is_service_link(name, value)
}

/// Returns true for a variable that Kubernetes sets in each pod for a service.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_of_port = |rest: &str| {
        let mut parts = rest.split('_');
        parts.next().is_some_and(is_number) && matches!(parts.next(), Some("TCP" | "UDP"))
    };
    let ports = name.match_indices("_PORT_");
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_") && is_number(value)
        || name.ends_with("_PORT") && value.starts_with("tcp://")
        || ports
            .map(|(at, word)| &name[at + word.len()..])
            .any(is_of_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_sets_is_no_slip() {
        for (name, value) in [
            ("INFLUXDB_PORT", "tcp://172.30.1.2:8086"),
            ("INFLUXDB_PORT_8086_TCP_ADDR", "172.30.1.2"),
            ("INFLUXDB_SERVICE_PORT", "8086"),
            ("HONO_ADAPTER_HTTP_VERTX_SERVICE_PORT_HTTP", "8080"),
            ("KUBERNETES_PORT_443_TCP", "tcp://172.30.0.1:443"),
            ("HTTP_PROXY", "http://proxy"),
        ] {
            assert!(is_foreign(name, value), "{name}");
        }
        for name in ["HONO_HTTP_PORTS", "HONO_HTTP_PORT_X_TCP", "HTTP_METHODS"] {
            assert!(!is_foreign(name, "x"), "{name}");
        }
    }
}
