//! The language of scenarios as one table: every key, what it takes, its default, whose it is,
//! and whether it is built.
//!
//! The check of a file, the defaults, the JSON schema and the list of keys that are *not yet*
//! built all read this table, so they cannot disagree.

/// The keys of a map, one row each: the name, what it takes, its meaning, and what follows from it.
macro_rules! object {
    ($vis:vis $name:ident: $($row:expr,)+) => {
        $vis static $name: $crate::language::Object = $crate::language::Object { keys: &[$($row),+] };
    };
}

/// A choice of words that are all built.
macro_rules! words {
    ($($name:literal),+) => {
        $crate::language::Kind::Word(&[$($crate::language::word($name)),+])
    };
}

mod behaviour;
mod fleet;
mod judging;
mod platform;
mod scale;
mod stream;

pub(crate) use platform::BACKEND;
pub(crate) use stream::STREAM;

use muster_plan::{BackendKind, Scheme, SchemeSpec};
use muster_platform::{Dialect, Protocol};

use Scalar::{Text, Whole};

#[derive(Debug)]
pub(crate) struct Object {
    /// The keys, in the order they are shown.
    pub(crate) keys: &'static [Key],
}

impl Object {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) kind: Kind,
    /// Its default, as it would be written.
    pub(crate) default: Option<&'static str>,
    pub(crate) required: bool,
    /// The mistake and its remedy where its value, a time, rate or size, is 0; none where it may be.
    pub(crate) zero: Option<(&'static str, &'static str)>,
    /// The settings that it belongs to: without one of them it has no meaning.
    pub(crate) owners: &'static [Owner],
    pub(crate) status: Status,
}

/// Status of a key or a word: built, not yet, or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Built,
    /// Not yet; the text says what it belongs to.
    NotYet(&'static str),
    /// Known, and refused: what the user wants instead.
    Refused {
        why: &'static str,
        help: &'static str,
    },
}

/// The setting that a key belongs to.
#[derive(Debug)]
pub(crate) enum Owner {
    /// Devices of a protocol that fulfils this condition.
    Devices(fn(Protocol) -> bool),
    /// A backend of a kind that fulfils this condition.
    Backend(fn(BackendKind) -> bool),
    /// One of these words under the nearest `kind`.
    Kind(&'static [&'static str]),
    /// A dialect that fulfils this condition.
    Dialect(fn(Dialect) -> bool),
    Gateway,
    Deployed,
}

const MQTT: Owner = Owner::Devices(|it| it == Protocol::Mqtt);
const COAP: Owner = Owner::Devices(|it| it == Protocol::Coap);
const HTTP: Owner = Owner::Devices(|it| it == Protocol::Http);
/// Devices whose messages are requests.
const ASKING: Owner = Owner::Devices(|it| it.asks);
/// Devices whose links are streams of bytes.
const STREAMED: Owner = Owner::Devices(|it| !it.is_in_datagrams);
/// Devices that choose how surely a message arrives by a level.
const LEVELLED: Owner = Owner::Devices(|it| it.has_levels);

#[derive(Debug)]
pub(crate) enum Kind {
    /// A single value of this form.
    One(Scalar),
    /// `mqtt://host:port` with one of these schemes.
    Url(&'static Urls),
    Word(&'static [Word]),
    /// `{ p99: "<= 250ms" }`, or `any`.
    Percentiles,
    Object(&'static Object),
    /// A map with any keys, all values of one kind.
    Table(&'static Kind),
    List(&'static Kind),
    /// One of these, by its form: at most one single value, one list and one map.
    Either(&'static [Kind]),
}

/// Schemes of an address.
#[derive(Debug)]
pub(crate) struct Urls {
    /// The condition that those fulfil that are built.
    pub(crate) are_built: fn(&SchemeSpec) -> bool,
    /// Further words, which are not yet built or refused.
    pub(crate) others: &'static [Word],
}

impl Urls {
    pub(crate) fn words(&self) -> Vec<Word> {
        let schemes = Scheme::ALL.into_iter();
        let schemes = schemes.filter(|scheme| (self.are_built)(scheme.spec()));
        let words = schemes.map(|scheme| word(scheme.name()));
        words.chain(self.others.iter().copied()).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Scalar {
    /// Any text that is not empty.
    Text,
    /// Text with `${...}` variables, filled in per device or per message.
    Template,
    /// The same, or an empty text.
    ClientId,
    /// Text that may refer to `${env:NAME}` or `${file:path}` and is never shown.
    Secret,
    /// Text that may refer to `${env:NAME}` or `${file:path}`, and is no secret as it stands.
    Reference,
    /// A path, relative to the scenario.
    File,
    Bool,
    BoolOrAny,
    Whole(u64, u64),
    /// The code of a refusal: of MQTT 5 (section 2.4) `151` or `0x97`, of an application `503`.
    Code,
    Fraction,
    Factor,
    /// `500/s`, `3/min`, `10/h`.
    Rate,
    /// `250ms`, `30s`, `15m`, `1h`.
    Time,
    /// `85%`.
    Percent,
    /// `120`, `4KiB`.
    Size,
    /// `1.5`, `2GiB`: any number from 0 on, or a number of bytes.
    Quantity,
    /// `0`, `5`, `"<= 5"`, `"<= 0.1%"`: a count or a share at most; or `any`.
    CountAtMost,
    /// `0`, `0.1%`, `"<= 0.1%"`; or `any`.
    ShareAtMost,
    /// `99.9%`, `">= 99.9%"`; or `any`.
    ShareAtLeast,
    /// `"> 20% for 10s"`.
    Above,
    /// `"< 50% for 10s"`.
    Below,
    /// `"p99 > 500ms for 10s"`.
    PercentileAbove,
    /// `https://host:port/path`: an HTTP service.
    Web,
}

impl Scalar {
    pub(crate) const fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Template
                | Self::ClientId
                | Self::Secret
                | Self::Reference
                | Self::File
        )
    }
}

const U32: u64 = u32::MAX as u64;

const fn map(object: &'static Object) -> Kind {
    Kind::Object(object)
}

pub(crate) const fn one(scalar: Scalar) -> Kind {
    Kind::One(scalar)
}

impl Kind {
    /// Form of YAML that it is written in; none where several are.
    pub(crate) fn form(&self) -> Option<Form> {
        match self {
            Self::One(_) | Self::Url(_) | Self::Word(_) => Some(Form::Single),
            Self::List(_) => Some(Form::List),
            Self::Percentiles | Self::Object(_) | Self::Table(_) => Some(Form::Map),
            Self::Either(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Single,
    List,
    Map,
}

impl Form {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "a single value",
            Self::List => "a list",
            Self::Map => "a map of keys",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) status: Status,
}

pub(crate) const fn word(name: &'static str) -> Word {
    Word {
        name,
        status: Status::Built,
    }
}

pub(crate) const fn later(name: &'static str, with: &'static str) -> Word {
    Word {
        name,
        status: Status::NotYet(with),
    }
}

/// A word that is known, and stands for something else.
pub(crate) const fn refused_word(
    name: &'static str,
    why: &'static str,
    help: &'static str,
) -> Word {
    Word {
        name,
        status: Status::Refused { why, help },
    }
}

/// A key that may be left out and has no default.
pub(crate) const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key {
        name,
        doc,
        kind,
        default: None,
        required: false,
        zero: None,
        owners: &[],
        status: Status::Built,
    }
}

impl Key {
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    pub(crate) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// The same key, whose value is above 0: the mistake if it is not, and its remedy.
    pub(crate) const fn above_zero(self, what: &'static str, help: &'static str) -> Self {
        Self {
            zero: Some((what, help)),
            ..self
        }
    }

    /// The same key, which belongs to all of these.
    pub(crate) const fn of(self, owners: &'static [Owner]) -> Self {
        Self { owners, ..self }
    }
}

pub(crate) const fn refused(name: &'static str, why: &'static str, help: &'static str) -> Key {
    Key {
        status: Status::Refused { why, help },
        ..key(name, one(Text), why)
    }
}

/// Work that keys and words wait for, as it is named to the user.
pub(crate) mod work {
    pub(crate) const BACKENDS: &str = "backends other than MQTT";
}

// The whole file.
object! { pub(crate) SCENARIO:
    key("name", one(Text), "Names the run and its result folder").required(),
    key("seed", one(Whole(0, u64::MAX)), "Reproduces phases, payloads and jitter").or("1"),
    key("labels", Kind::Table(&one(Text)), "Copied into the result"),
    key("platform", map(&platform::PLATFORM),
        "The system under test; without it the embedded reference gateway").or("{}"),
    key("provision", map(&platform::PROVISION),
        "Creation of the devices at the platform before they connect, and removal after the run"),
    key("hooks", Kind::List(&map(&platform::HOOK)), "Commands before, while and after the run"),
    key("fleet", Kind::List(&map(&fleet::FLEET)), "The devices").required(),
    key("phases", map(&judging::PHASES), "Length of each phase").or("{}"),
    key("cold", map(&judging::COLD), "A first part that is kept apart"),
    key("monitor", Kind::List(&map(&platform::MONITOR)), "Parts of the target to watch while the run goes on"),
    key("slo", map(&judging::SLO), "Rules for a pass"),
    key("slo-sets", Kind::Table(&map(&judging::SLO)),
        "Named sets of rules, each with those of `slo` that it does not name: a run is judged by all, `muster capacity` answers for each"),
    key("soak", map(&judging::SOAK), "Demands by the trends of `monitor` that the target can bear the load for long"),
    key("validity", map(&judging::VALIDITY), "When the generator is to blame").or("{}"),
    key("stability", map(&judging::STABILITY), "When stability is evaluated").or("{}"),
    key("stop-if", map(&judging::STOP_IF), "Conditions that end the measured phase early"),
    key("scale", map(&scale::SCALE), "Instances of the target that `muster scale` adds"),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{example, join};
    use crate::{NoFiles, Overrides, Source, parse};

    /// A key or word of later work: its path, the value that uses it, and the work.
    struct Later {
        path: String,
        value: String,
        with: &'static str,
    }

    fn later_of(object: &'static Object, path: &str, found: &mut Vec<Later>) {
        for key in object.keys {
            let path = join(path, key.name);
            match key.status {
                Status::Built => later_in(&key.kind, &path, found),
                Status::Refused { .. } => {}
                Status::NotYet(with) => {
                    let value = value_of(&key.kind);
                    found.push(Later { path, value, with });
                }
            }
        }
    }

    fn later_in(kind: &'static Kind, path: &str, found: &mut Vec<Later>) {
        let mut add = |words: &[Word], value: &dyn Fn(&str) -> String| {
            for word in words {
                if let Status::NotYet(with) = word.status {
                    let (path, value) = (path.to_owned(), value(word.name));
                    found.push(Later { path, value, with });
                }
            }
        };
        match kind {
            Kind::Object(object) => later_of(object, path, found),
            Kind::List(inner) => later_in(inner, &format!("{path}[0]"), found),
            Kind::Either(kinds) => {
                // A list of backends has the keys of one backend.
                let kinds = kinds.iter().filter(|kind| kind.form() != Some(Form::List));
                kinds.for_each(|kind| later_in(kind, path, found));
            }
            Kind::Word(words) => add(words, &str::to_owned),
            Kind::Url(urls) => add(&urls.words(), &|scheme| format!("{scheme}://127.0.0.1")),
            Kind::One(_) | Kind::Percentiles | Kind::Table(_) => {}
        }
    }

    fn value_of(kind: &Kind) -> String {
        match kind {
            Kind::One(scalar) => example(*scalar).to_owned(),
            Kind::List(inner) => format!("[ {} ]", value_of(inner)),
            Kind::Object(_) | Kind::Table(_) => "{}".to_owned(),
            Kind::Url(urls) => format!("{}://127.0.0.1", urls.words()[0].name),
            Kind::Word(words) => words[0].name.to_owned(),
            Kind::Percentiles => "{ p99: 1s }".to_owned(),
            Kind::Either(kinds) => value_of(&kinds[0]),
        }
    }

    fn all_later() -> Vec<Later> {
        let mut found = Vec::new();
        later_of(&SCENARIO, "", &mut found);
        found
    }

    #[test]
    fn what_is_not_yet_built_is_this() {
        let lines = all_later().into_iter().map(|later| {
            format!(
                "{}: {}    # comes with {}",
                later.path, later.value, later.with
            )
        });
        let list = lines.collect::<Vec<_>>().join("\n");
        insta::with_settings!({ snapshot_path => "../../../golden", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("scenario-not-yet", list);
        });
    }

    #[test]
    fn what_is_not_yet_built_is_refused_as_such() {
        let text = "name: t\nfleet: [ { streams: [ { rate: 1/s } ] } ]\nplatform: { devices: [ x ] }\n\
                    monitor: [ { name: m } ]\n";
        for later in all_later() {
            let mut overrides = Overrides::new();
            overrides.set(&later.path, &later.value);
            let source = Source {
                name: "t.yaml",
                text,
            };
            let problems = parse(source, &overrides, &NoFiles).unwrap_err().to_string();
            let wanted = format!("is not yet built: it comes with {}", later.with);
            assert!(
                problems.contains(&wanted),
                "{}={}: {problems}",
                later.path,
                later.value
            );
        }
    }

    #[test]
    fn every_default_is_of_its_key() {
        fn walk(object: &'static Object, path: &str) {
            for key in object.keys {
                let path = join(path, key.name);
                if let Some(default) = key.default {
                    let wrong = crate::check::wrong_default(&key.kind, default);
                    assert_eq!(wrong, None, "{path}: {default}");
                }
                each_object(&key.kind, &path);
            }
        }
        fn each_object(kind: &'static Kind, path: &str) {
            match kind {
                Kind::Object(object) => walk(object, path),
                Kind::List(inner) => each_object(inner, path),
                Kind::Either(kinds) => kinds.iter().for_each(|kind| each_object(kind, path)),
                Kind::One(_)
                | Kind::Url(_)
                | Kind::Word(_)
                | Kind::Percentiles
                | Kind::Table(_) => {}
            }
        }
        walk(&SCENARIO, "");
    }
}
