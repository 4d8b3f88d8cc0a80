//! The variables of one program: read from a file or from this process, checked by name, and read by value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use muster_scenario::{Reader, nearest};

use super::variables::{Form, Meaning, Test, Variable, is_foreign};

/// Name of the place of variables that no file has.
const PROCESS: &str = "the environment";
/// Faults that an error lists; a file that holds something else has as many as lines.
const LISTED_MAX: usize = 100;

/// The variables of one program of a test.
#[derive(Debug)]
pub(super) struct Pod<Of: 'static> {
    test: &'static Test<Of>,
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

/// Variables that cannot be read, of all pods.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, place: &str, why: &str) {
        self.0.push(format!("{place}: {why}"));
    }

    /// Fails with every fault at once, each with its place and its remedy.
    pub(super) fn check(self) -> Result<()> {
        match &self.0[..] {
            [] => Ok(()),
            [only] => bail!("read {only}"),
            all => {
                let shown = all[..all.len().min(LISTED_MAX)].join("\n  ");
                let more = match all.len().saturating_sub(LISTED_MAX) {
                    0 => String::new(),
                    more => format!("\n  and {more} more"),
                };
                bail!("read {} variables:\n  {shown}{more}", all.len())
            }
        }
    }
}

impl<Of: PartialEq> Pod<Of> {
    /// Reads a file with a variable a line, as `env` prints them and container engines take them. An unknown
    /// name is a fault unless a shell or a cluster sets it.
    pub(super) fn from_file(
        test: &'static Test<Of>,
        path: &Path,
        faults: &mut Faults,
    ) -> Result<Self> {
        let source = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("read the variables in {source}"))?;
        Ok(Self::from_lines(test, source, &text, faults))
    }

    pub(super) fn from_lines(
        test: &'static Test<Of>,
        source: String,
        text: &str,
        faults: &mut Faults,
    ) -> Self {
        let values = BTreeMap::new();
        let mut pod = Self {
            test,
            source,
            values,
        };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{}:{number}", pod.source);
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else {
                // Of a secret in several lines the others have no name.
                faults.add(&place, "the line has no `=`; write it as NAME=value");
                continue;
            };
            let (name, value) = (name.trim_end(), bare(value.trim()));
            if let Some(known) = test.variable(name) {
                let text = value.to_owned();
                let line = Some(number);
                let before = pod.values.insert(known.name, Value { text, line });
                if before.is_some() {
                    let why = format!("{name} stands twice; keep one of them");
                    faults.add(&place, &why);
                }
            } else if !is_foreign(name, value) {
                faults.add(&place, &unknown(test, name));
            }
        }
        pod.check(faults);
        pod
    }

    /// Reads the environment of this process, in which other names than those of the test are usual, and a
    /// variable that is no text is none of the test's.
    pub(super) fn from_process(
        test: &'static Test<Of>,
        variables: impl Iterator<Item = (OsString, OsString)>,
        faults: &mut Faults,
    ) -> Self {
        let mut pod = Self {
            test,
            source: PROCESS.to_owned(),
            values: BTreeMap::new(),
        };
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        for (name, text) in texts {
            if let Some(known) = test.variable(&name) {
                pod.values.insert(known.name, Value { text, line: None });
            } else if test.has_prefix(&name) && !is_foreign(&name, &text) {
                faults.add(PROCESS, &unknown(test, &name));
            }
        }
        pod.check(faults);
        pod
    }

    /// Checks the form of every value.
    fn check(&self, faults: &mut Faults) {
        for variable in self.known() {
            let text = self.text(variable.name).unwrap_or_default();
            if let Some(why) = variable.form.fault(text) {
                let shown = masked(text);
                let why = format!("{}, `{shown}`, {why}", variable.name);
                faults.add(&self.place(variable.name), &why);
            }
        }
    }

    /// Its file, or this process.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns true if it has a variable that only this one reads.
    pub(super) fn has_role(&self, of: Of) -> bool {
        self.first_of(of).is_some()
    }

    /// The first variable that only one program, or one generation, reads.
    pub(super) fn first_of(&self, of: Of) -> Option<&'static str> {
        let of = Some(of);
        let mut own = self.known().filter(|it| it.of == of);
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
    fn known(&self) -> impl Iterator<Item = &'static Variable<Of>> {
        let all = self.test.variables.iter();
        all.filter(|variable| self.text(variable.name).is_some())
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

    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        let text = self.text(name)?;
        Some(text.eq_ignore_ascii_case("true"))
    }

    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    /// The word of the variable's form that it has.
    pub(super) fn word(&self, name: &str) -> Option<&'static str> {
        let text = self.text(name)?;
        let Form::Word(words) = self.test.variable(name)?.form else {
            return None;
        };
        let mut all = words.iter().copied();
        all.find(|word| word.eq_ignore_ascii_case(text))
    }

    /// An error of a variable for another reason than its name or its value alone.
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

/// A scenario, and what its references stand for.
pub(super) struct Imported {
    pub(super) text: String,
    /// The variables that it refers to.
    pub(super) variables: BTreeMap<&'static str, String>,
}

/// Files and variables of a scenario that is checked before it is on the machine that runs it.
impl Reader for Imported {
    fn file(&self, _path: &str) -> Result<Vec<u8>, String> {
        Ok(b"-----BEGIN CERTIFICATE-----".to_vec())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

/// Names by their reasons.
pub(super) fn by_reason(
    all: impl Iterator<Item = (&'static str, &'static str)>,
) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in all {
        let names = by_reason.entry(why).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    by_reason
}

/// A host with the brackets that an address needs around one of IPv6.
pub(super) fn bracketed(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// A value without the quotes that some tools put around it.
fn bare(value: &str) -> &str {
    let quotes = ['"', '\''].into_iter();
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    quotes.filter_map(inside).next().unwrap_or(value)
}

/// A value to be shown. The part in front of an `@` may be a password.
fn masked(value: &str) -> String {
    let masked = value.rsplit_once('@');
    masked.map_or_else(|| value.to_owned(), |(_, after)| format!("***@{after}"))
}

/// The fault of a name that no program of the test reads.
fn unknown<Of>(test: &Test<Of>, name: &str) -> String {
    let known = test.variables.iter().map(|variable| variable.name);
    let relatives = test.relatives(name);
    let help = match nearest(name, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None if relatives.is_empty() => format!("remove it if it is not of {}", test.name),
        None => format!("known are {}", relatives.join(", ")),
    };
    format!("{name} is no variable of {}; {help}", test.name)
}

#[cfg(test)]
mod tests {
    use super::super::hono::{Role, TEST};
    use super::*;

    fn pod(text: &str) -> Result<Pod<Role>, String> {
        let mut faults = Faults::default();
        let pod = Pod::from_lines(&TEST, "pod.env".to_owned(), text, &mut faults);
        let pod = faults.check().map(|()| pod);
        pod.map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_read_as_shells_and_containers_write_them() {
        let text = "# of the pod\n\nNUM_DEVICES=20\nexport HONO_TENANT='t1'\nHTTP_METHOD=\"POST\"\n\
                    EVENT_MS=\nPATH=/usr/bin\nKUBERNETES_PORT=tcp://1.2.3.4:443\n";
        let pod = pod(text).expect("variables");
        assert_eq!(pod.whole("NUM_DEVICES"), Some(20));
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
        let error = pod("NUM_DEVICES=many").unwrap_err();
        let most = u32::MAX;
        let wanted =
            format!("read pod.env:1: NUM_DEVICES, `many`, is no whole number from 1 to {most}");
        assert!(error.starts_with(&wanted), "{error}");
        let error = pod("DEVICE_REGISTRY_URL=http://me:hunter2@h").unwrap_err();
        assert!(
            error.contains("`***@h`") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn every_fault_is_listed_at_once() {
        let text = "NUM_DEVICES=many\nCOLOUR=red\nTLS_INSECURE=yes\nno equals sign\nEVENT_MS=1\nEVENT_MS=2";
        let error = pod(text).unwrap_err();
        let mut lines = error.lines();
        assert_eq!(lines.next(), Some("read 5 variables:"));
        let places = lines.map(|line| line.trim_start().split(": ").next());
        let mut places: Vec<_> = places.flatten().collect();
        places.sort_unstable();
        let wanted = [1, 2, 3, 4, 6].map(|line| format!("pod.env:{line}"));
        assert_eq!(places, wanted, "{error}");
        let error = pod(&"x\n".repeat(LISTED_MAX + 7)).unwrap_err();
        assert!(error.ends_with("and 7 more"), "{error}");
    }

    #[test]
    fn in_an_environment_only_what_looks_like_the_tests_own_is_a_slip() {
        let of = |name: &str| {
            let variables = [(name.into(), "1".into())];
            let mut faults = Faults::default();
            Pod::from_process(&TEST, variables.into_iter(), &mut faults);
            faults.check().map_err(|error| error.to_string())
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
        let pod = Pod::from_process(&TEST, variables.into_iter(), &mut Faults::default());
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
