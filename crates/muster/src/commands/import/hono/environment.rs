//! The variables of one pod: read from a file or from this process, checked by name, and read by value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use muster_scenario::nearest;

use super::variables::{
    Meaning, Role, VARIABLES, Variable, has_prefix, is_foreign, relatives, variable,
};

/// Name of the place of variables that no file has.
const PROCESS: &str = "the environment";

/// The variables of one pod.
#[derive(Debug)]
pub(super) struct Pod {
    /// The file, or this process.
    source: String,
    values: BTreeMap<&'static str, Value>,
}

#[derive(Debug)]
struct Value {
    text: String,
    /// None in this process's environment.
    line: Option<usize>,
}

impl Pod {
    /// Reads a file with a variable a line, as `env` prints them and container engines take them. An unknown
    /// name is an error unless a shell or a cluster sets it.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        let source = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("read the variables in {source}"))?;
        Self::from_lines(source, &text)
    }

    pub(super) fn from_lines(source: String, text: &str) -> Result<Self> {
        let values = BTreeMap::new();
        let mut pod = Self { source, values };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{}:{number}", pod.source);
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else {
                // Of a secret in several lines the others have no name.
                bail!("read {place}: the line has no `=`; write it as NAME=value");
            };
            let (name, value) = (name.trim_end(), bare(value.trim()));
            if let Some(known) = variable(name) {
                let text = value.to_owned();
                let line = Some(number);
                if pod
                    .values
                    .insert(known.name, Value { text, line })
                    .is_some()
                {
                    bail!("read {place}: {name} stands twice; keep one of them");
                }
            } else if !is_foreign(name, value) {
                return Err(unknown(&place, name));
            }
        }
        Ok(pod)
    }

    /// Reads the environment of this process, in which other names than those of the test are usual, and a
    /// variable that is no text is none of the test's.
    pub(super) fn from_process(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self> {
        let mut pod = Self {
            source: PROCESS.to_owned(),
            values: BTreeMap::new(),
        };
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        for (name, text) in texts {
            if let Some(known) = variable(&name) {
                pod.values.insert(known.name, Value { text, line: None });
            } else if has_prefix(&name) && !is_foreign(&name, &text) {
                return Err(unknown(PROCESS, &name));
            }
        }
        Ok(pod)
    }

    /// Its file, or this process.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The programs whose variables it has.
    pub(super) fn has_role(&self, role: Role) -> bool {
        self.first_of(role).is_some()
    }

    /// The first variable that only one program reads.
    pub(super) fn first_of(&self, role: Role) -> Option<&'static str> {
        let mut own = self.known().filter(|it| it.role == Some(role));
        own.next().map(|variable| variable.name)
    }

    /// Names without a meaning here, with the reason of each.
    pub(super) fn idle(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.known().filter_map(|variable| match variable.meaning {
            Meaning::Idle(why) => Some((variable.name, why)),
            Meaning::Mapped => None,
        })
    }

    /// The variables that it has a value for, in the order of the table.
    fn known(&self) -> impl Iterator<Item = &'static Variable> {
        VARIABLES
            .iter()
            .filter(|variable| self.text(variable.name).is_some())
    }

    /// The text of a variable; one that is empty counts as absent.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        (!value.text.is_empty()).then_some(value.text.as_str())
    }

    /// The first of these that it has.
    pub(super) fn any_of(&self, names: &[&'static str]) -> Option<&'static str> {
        let mut names = names.iter().copied();
        names.find(|name| self.text(name).is_some())
    }

    pub(super) fn truth(&self, name: &str) -> Result<Option<bool>> {
        let read = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong(name, "is neither `true` nor `false`; write one of them")),
        };
        self.text(name).map(read).transpose()
    }

    pub(super) fn whole(&self, name: &str, within: RangeInclusive<i64>) -> Result<Option<i64>> {
        let (least, most) = (within.start(), within.end());
        let read = |text: &str| {
            let number = text.parse().ok().filter(|number| within.contains(number));
            number.ok_or_else(|| {
                let why =
                    format!("is no whole number from {least} to {most}; write one without a unit");
                self.wrong(name, &why)
            })
        };
        self.text(name).map(read).transpose()
    }

    /// One of these words.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>> {
        let read = |text: &str| {
            let mut all = words.iter().copied();
            let word = all.find(|word| word.eq_ignore_ascii_case(text));
            word.ok_or_else(|| self.wrong(name, &format!("is none of {}", words.join(", "))))
        };
        self.text(name).map(read).transpose()
    }

    /// A text of these characters, which needs no escapes in a scenario.
    pub(super) fn plain(&self, name: &str, further: &str) -> Result<Option<&str>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || further.contains(c);
        match self.text(name) {
            Some(text) if !text.chars().all(is_plain) => {
                let why = format!("may have letters, digits and {further} only");
                Err(self.wrong(name, &why))
            }
            text => Ok(text),
        }
    }

    /// An error of a variable's value: its place, its name, the value and the remedy. What stands before an `@`
    /// may be a password.
    pub(super) fn wrong(&self, name: &str, why: &str) -> anyhow::Error {
        let value = self.text(name).unwrap_or_default();
        let masked = value
            .rsplit_once('@')
            .map(|(_, after)| format!("***@{after}"));
        let value = masked.as_deref().unwrap_or(value);
        anyhow!("read {}: {name}, `{value}`, {why}", self.place(name))
    }

    /// An error of a variable for another reason than its value alone.
    pub(super) fn refuse(&self, name: &str, why: &str) -> anyhow::Error {
        anyhow!("read {}: {why}", self.place(name))
    }

    fn place(&self, name: &str) -> String {
        let line = self.values.get(name).and_then(|value| value.line);
        line.map_or_else(
            || self.source.clone(),
            |line| format!("{}:{line}", self.source),
        )
    }
}

/// A value without the quotes that some tools put around it.
fn bare(value: &str) -> &str {
    let quotes = ['"', '\''].into_iter();
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    quotes.filter_map(inside).next().unwrap_or(value)
}

/// The error of a name that no program of the test reads.
fn unknown(place: &str, name: &str) -> anyhow::Error {
    let known = || VARIABLES.iter().map(|variable| variable.name);
    let relatives = relatives(name);
    let help = match nearest(name, known()) {
        Some(meant) => format!("did you mean {meant}?"),
        None if relatives.is_empty() => "remove it if it is not of hono-simulator".to_owned(),
        None => format!("known are {}", relatives.join(", ")),
    };
    anyhow!("read {place}: {name} is no variable of hono-simulator; {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(text: &str) -> Result<Pod, String> {
        Pod::from_lines("pod.env".to_owned(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_read_as_shells_and_containers_write_them() {
        let text = "# of the pod\n\nNUM_DEVICES=20\nexport HONO_TENANT='t1'\nHTTP_METHOD=\"POST\"\n\
                    EVENT_MS=\nPATH=/usr/bin\nKUBERNETES_PORT=tcp://1.2.3.4:443\n";
        let pod = pod(text).expect("variables");
        assert_eq!(pod.whole("NUM_DEVICES", 1..=30).unwrap(), Some(20));
        assert_eq!(pod.text("HONO_TENANT"), Some("t1"));
        assert_eq!(pod.text("HTTP_METHOD"), Some("POST"));
        assert_eq!(pod.text("EVENT_MS"), None);
        assert!(pod.has_role(Role::Http) && !pod.has_role(Role::Mqtt));
    }

    #[test]
    fn a_name_or_value_that_is_none_is_refused_at_its_line() {
        for (text, wanted) in [
            (
                "\nNUM_DEVICE=3",
                "pod.env:2: NUM_DEVICE is no variable of hono-simulator; did you mean NUM_DEVICES?",
            ),
            (
                "OKHTTP_TIMEOUT=1",
                "pod.env:1: OKHTTP_TIMEOUT is no variable of hono-simulator; known are OKHTTP_MINIMALISTIC",
            ),
            (
                "COLOUR=red",
                "pod.env:1: COLOUR is no variable of hono-simulator; remove it",
            ),
            (
                "NUM_DEVICES",
                "pod.env:1: the line has no `=`; write it as NAME=value",
            ),
            ("EVENT_MS=1\nEVENT_MS=2", "pod.env:2: EVENT_MS stands twice"),
        ] {
            let error = pod(text).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let pod = pod("NUM_DEVICES=many\nTLS_INSECURE=yes").expect("variables");
        let error = pod.whole("NUM_DEVICES", 1..=9).unwrap_err().to_string();
        assert!(
            error
                .starts_with("read pod.env:1: NUM_DEVICES, `many`, is no whole number from 1 to 9"),
            "{error}"
        );
        assert!(pod.truth("TLS_INSECURE").is_err());
        let pod = self::pod("DEVICE_REGISTRY_URL=http://me:hunter2@h").expect("variables");
        let error = pod
            .plain("DEVICE_REGISTRY_URL", ":/")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`***@h`") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn in_an_environment_only_what_looks_like_the_tests_own_is_a_slip() {
        let of = |name: &str| {
            let variables = [(name.into(), "1".into())];
            Pod::from_process(variables.into_iter()).map_err(|error| error.to_string())
        };
        assert!(of("EDITOR").is_ok() && of("HTTP_PROXY").is_ok());
        let error = of("HONO_HTTP_URLS").unwrap_err();
        assert!(error.ends_with("did you mean HONO_HTTP_URL?"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_no_text_is_skipped() {
        use std::os::unix::ffi::OsStringExt;
        let none = || OsString::from_vec(b"\xff".to_vec());
        let variables = [
            ("LS_COLORS".into(), none()),
            (none(), "1".into()),
            ("HONO_TENANT".into(), "t1".into()),
        ];
        let pod = Pod::from_process(variables.into_iter()).expect("variables");
        assert_eq!(pod.text("HONO_TENANT"), Some("t1"));
    }

    #[test]
    fn a_line_without_a_name_is_not_shown() {
        let error = pod("HONO_TENANT=t1\nhunter2").unwrap_err();
        assert!(
            error.contains("pod.env:2") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
