//! Keys that have no meaning with the protocols, the dialect and the kinds of a scenario: each key of
//! the language names its owners.

use muster_plan::{BackendKind, Problem, Scheme};
use muster_platform::{Dialect, Protocol};

use super::join;
use crate::defaults::{address, backend_kind, default_protocol};
use crate::endpoint;
use crate::language::{BACKEND, Kind, Object, Owner};
use crate::source::Sources;
use crate::tree::{Node, Value};

/// Settings of a scenario that say which keys have a meaning.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The protocols of the devices, that of the first address first.
    devices: Vec<Protocol>,
    backend: BackendKind,
    dialect: Dialect,
    is_embedded: bool,
    kind: &'static str,
}

impl Given {
    pub(crate) fn new(root: &Node) -> Self {
        let of_platform = |key: &str| root.get("platform")?.get(key);
        let word = |key: &str| of_platform(key).and_then(Node::text);
        let kind = word("kind").filter(|kind| *kind != "gateway");
        let dialect = kind.or(word("dialect")).and_then(Dialect::named);
        let dialect = dialect.unwrap_or_default();
        let devices = match of_platform("devices").map(|node| (node, &node.value)) {
            Some((_, Value::List(items))) if !items.is_empty() => {
                items.iter().map(|item| protocol(address(item))).collect()
            }
            Some((node, _)) => vec![protocol(Some(node))],
            None => vec![default_protocol(dialect)],
        };
        Self {
            devices,
            backend: BackendKind::Mqtt,
            dialect,
            is_embedded: kind.is_none(),
            kind: "",
        }
    }

    /// The settings within a map of keys.
    pub(crate) fn within(mut self, object: &'static Object, node: &Node) -> Self {
        if std::ptr::eq(object, &BACKEND) {
            self.backend = backend_kind(node);
        }
        for key in object.keys {
            let text = node.get(key.name).and_then(Node::text).or(key.default);
            if key.name == "protocol" {
                let own = text.and_then(Protocol::named);
                self.devices = vec![own.unwrap_or(self.devices[0])];
            }
            if let ("kind", Kind::Word(words)) = (key.name, &key.kind) {
                let word = words.iter().find(|word| Some(word.name) == text);
                self.kind = word.map_or("", |word| word.name);
            }
        }
        self
    }

    /// Returns true if a key of this owner has a meaning.
    pub(crate) fn has(&self, owner: &Owner) -> bool {
        match owner {
            Owner::Devices(has) => self.devices.iter().any(|it| has(*it)),
            Owner::Backend(has) => has(self.backend),
            Owner::Kind(kinds) => kinds.contains(&self.kind),
            Owner::Dialect(has) => has(self.dialect),
            Owner::Gateway => self.is_embedded,
            Owner::Deployed => !self.is_embedded,
        }
    }

    /// The problem of the first key of a map that belongs elsewhere, with those that belong there too.
    pub(super) fn stray(
        &self,
        object: &'static Object,
        node: &Node,
        (sources, path): (&Sources, &str),
    ) -> Option<Problem> {
        let keys = node.entries().iter().filter_map(|entry| {
            let owners = object.key(&entry.key)?.owners;
            Some((entry, owners.iter().find(|owner| !self.has(owner))?))
        });
        let mut keys = keys.peekable();
        let (first, owner) = *keys.peek()?;
        let of = owner.name();
        let names: Vec<String> = keys
            .filter(|(_, owner)| owner.name() == of)
            .map(|(entry, _)| format!("`{}`", entry.key))
            .collect();
        let (are, it) = match names[..] {
            [_] => ("is a key", "it"),
            _ => ("are keys", "them"),
        };
        let here = match owner {
            Owner::Devices(_) => {
                let names: Vec<&str> = self.devices.iter().map(|it| it.name).collect();
                format!("these devices speak {}", names.join(" and "))
            }
            Owner::Backend(_) => format!("this backend speaks {}", self.backend.name),
            Owner::Kind(_) => format!("this is `kind: {}`", self.kind),
            Owner::Dialect(_) => format!("this platform is {}", self.dialect),
            Owner::Gateway => format!("this is `kind: {}`", self.dialect),
            Owner::Deployed => "this is `kind: gateway`".to_owned(),
        };
        let what = format!("{} {are} of {of}, and {here}", names.join(", "));
        let help = format!("remove {it}, or {}", owner.remedy());
        Some(sources.problem(first.node.place, &join(path, &first.key), &what, &help))
    }
}

/// The protocol of an address; MQTT where there is none.
fn protocol(url: Option<&Node>) -> Protocol {
    let scheme = url.and_then(Node::text).and_then(endpoint::scheme);
    scheme.map_or(Protocol::Mqtt, Scheme::protocol)
}

impl Owner {
    /// Its name, for the schema and for problems.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Devices(has) => {
                let all = Protocol::ALL.into_iter().filter(|protocol| has(*protocol));
                one_of(all.map(|protocol| protocol.name))
            }
            Self::Backend(has) => {
                let all = BackendKind::ALL.into_iter().filter(|kind| has(*kind));
                one_of(all.map(|kind| kind.name))
            }
            Self::Kind(kinds) => one_of(kinds.iter().map(|kind| format!("`kind: {kind}`"))),
            Self::Dialect(has) => {
                let all = Dialect::ALL.into_iter().filter(|dialect| has(*dialect));
                one_of(all.map(|dialect| dialect.name))
            }
            Self::Gateway => "`kind: gateway`".to_owned(),
            Self::Deployed => "platforms that run elsewhere".to_owned(),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Devices(has) => connect(|scheme| scheme.spec().devices.is_some_and(has)),
            Self::Backend(has) => connect(|scheme| scheme.spec().backend.is_some_and(has)),
            Self::Kind(_) | Self::Gateway => format!("use {}", self.name()),
            Self::Dialect(_) => format!("use a platform of {}", self.name()),
            Self::Deployed => "use another `platform.kind`".to_owned(),
        }
    }
}

/// The remedy for addresses of other schemes than those that are right.
pub(crate) fn connect(is_right: impl Fn(Scheme) -> bool) -> String {
    let schemes = Scheme::ALL.into_iter();
    let schemes = schemes.filter(|scheme| is_right(*scheme));
    let schemes = schemes.map(|scheme| format!("`{}`", scheme.name()));
    format!("connect with {}", one_of(schemes))
}

/// The names as a choice, in words.
fn one_of<T: std::fmt::Display>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}
