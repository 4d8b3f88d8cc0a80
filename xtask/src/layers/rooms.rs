//! The one table of the crates: their layers, their purity, and what purity forbids.

/// One crate's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The folder below `crates/`, or `bench` or `xtask`.
    pub name: &'static str,
    /// Its layer: it may depend only on smaller ones; none for a tool, on which no crate may
    /// depend.
    pub layer: Option<u8>,
    /// No sockets, files, clock, threads, or randomness that was not passed in.
    pub pure: bool,
}

impl Room {
    /// The crate's folder, relative to the workspace.
    pub fn folder(&self) -> String {
        match self.name {
            "bench" | "xtask" => self.name.to_owned(),
            name => format!("crates/{name}"),
        }
    }

    /// The name of its package.
    pub fn package(&self) -> String {
        match self.name {
            "xtask" | "muster" => self.name.to_owned(),
            name => format!("muster-{name}"),
        }
    }
}

const fn pure(name: &'static str, layer: u8) -> Room {
    Room {
        name,
        layer: Some(layer),
        pure: true,
    }
}

const fn with_io(name: &'static str, layer: u8) -> Room {
    Room {
        name,
        layer: Some(layer),
        pure: false,
    }
}

/// Every crate of the workspace, in the order of the straight line.
pub const ROOMS: [Room; 29] = [
    pure("model", 0),
    pure("load", 1),
    pure("protocol", 1),
    pure("measure", 1),
    pure("platform", 2),
    pure("judge", 2),
    pure("plan", 3),
    pure("report", 3),
    pure("scale", 3),
    pure("device", 4),
    pure("scenario", 4),
    pure("conduct", 5),
    pure("result", 6),
    with_io("net", 5),
    with_io("transport", 5),
    with_io("fleet", 6),
    with_io("backend", 6),
    with_io("provision", 6),
    with_io("monitor", 6),
    with_io("gateway", 6),
    with_io("actuator", 6),
    with_io("agent", 7),
    with_io("cluster", 8),
    with_io("dashboard", 8),
    with_io("metrics", 8),
    with_io("muster", 9),
    Room {
        name: "sim",
        layer: None,
        pure: true,
    },
    Room {
        name: "bench",
        layer: None,
        pure: false,
    },
    Room {
        name: "xtask",
        layer: None,
        pure: false,
    },
];

/// Crates that bring sockets, files, clocks, threads or randomness: none of them may be anywhere
/// in a pure crate's tree of normal dependencies.
pub const FORBIDDEN_CRATES: [&str; 13] = [
    "tokio",
    "mio",
    "socket2",
    "rustix",
    "nix",
    "async-std",
    "smol",
    "rdkafka",
    "hyper",
    "rand",
    "getrandom",
    "signal-hook",
    "crossterm",
];

/// Paths that a pure crate's own source may not name outside its tests, each with what to do
/// instead.
pub const FORBIDDEN_PATHS: [(&[&str], &str); 26] = [
    (&["Instant", "now"], "take the instant as an argument"),
    (&["time", "Instant"], "use `Micros`"),
    (&["SystemTime"], "take the wall clock at T0 as an argument"),
    (&["tokio"], "write a state machine and let `net` drive it"),
    (&["std", "net"], "keep addresses as text or numbers"),
    (&["core", "net"], "keep addresses as text or numbers"),
    (&["std", "fs"], "take a reader as an argument"),
    (
        &["std", "io"],
        "append to a `String` or `Vec<u8>` of the caller's",
    ),
    (&["std", "thread"], "leave threads to `agent`"),
    (&["Mutex"], "leave what threads share to `agent`"),
    (&["RwLock"], "leave what threads share to `agent`"),
    (&["Condvar"], "leave what threads share to `agent`"),
    (&["sync", "Barrier"], "leave what threads share to `agent`"),
    (&["sync", "atomic"], "leave what threads share to `agent`"),
    (&["mpsc"], "leave channels to `net`"),
    (&["std", "process"], "leave processes to `cluster`"),
    (&["std", "env"], "take the variables as an argument"),
    (&["std", "os"], "leave system calls to `net`"),
    (
        &["thread_rng"],
        "derive the value from the seed and the message id",
    ),
    (
        &["rand"],
        "derive the value from the seed and the message id",
    ),
    (
        &["getrandom"],
        "derive the value from the seed and the message id",
    ),
    (&["println"], "return the text"),
    (&["print"], "return the text"),
    (&["eprintln"], "return an error"),
    (&["eprint"], "return an error"),
    (&["dbg"], "return the value"),
];
