//! The targets of `fuzz/fuzz_targets` as plain tests: each takes the inputs that are kept in `fuzz/seeds`, and
//! some thousands that are made by chance, of these and of nothing, the same ones each time.

// The targets take their macro from a crate of this name.
extern crate self as libfuzzer_sys;

use std::path::Path;

/// Inputs that are made by chance, of each target.
const MADE: usize = 20_000;
/// A longer script of calls finds no more.
const LONGEST: usize = 256;

macro_rules! targets {
    ($($name:ident: $file:literal,)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(
        #[allow(
            clippy::duplicate_mod,
            clippy::needless_pass_by_value,
            clippy::wildcard_enum_match_arm,
            dead_code,
            unreachable_pub,
            unused_attributes,
            reason = "a target is linted in its own crate; here some of its items are unused, and two targets include one file"
        )]
        #[path = $file]
        mod $name;

        #[test]
        fn $name() {
            takes_every_input(stringify!($name), $name::target);
        }
        )*
    };
}

targets! {
    acknowledgements: "../../../fuzz/fuzz_targets/acknowledgements.rs",
    client_session: "../../../fuzz/fuzz_targets/client_session.rs",
    coap_blocks: "../../../fuzz/fuzz_targets/coap_blocks.rs",
    coap_client: "../../../fuzz/fuzz_targets/coap_client.rs",
    coap_decode: "../../../fuzz/fuzz_targets/coap_decode.rs",
    coap_server: "../../../fuzz/fuzz_targets/coap_server.rs",
    commands: "../../../fuzz/fuzz_targets/commands.rs",
    decode_roundtrip: "../../../fuzz/fuzz_targets/decode_roundtrip.rs",
    dtls_client: "../../../fuzz/fuzz_targets/dtls_client.rs",
    dtls_server: "../../../fuzz/fuzz_targets/dtls_server.rs",
    hono: "../../../fuzz/fuzz_targets/hono.rs",
    hono_mqtt: "../../../fuzz/fuzz_targets/hono_mqtt.rs",
    http_client: "../../../fuzz/fuzz_targets/http_client.rs",
    http_server: "../../../fuzz/fuzz_targets/http_server.rs",
    reader: "../../../fuzz/fuzz_targets/reader.rs",
    server_session: "../../../fuzz/fuzz_targets/server_session.rs",
    thingsboard: "../../../fuzz/fuzz_targets/thingsboard.rs",
    websocket_client: "../../../fuzz/fuzz_targets/websocket_client.rs",
    websocket_server: "../../../fuzz/fuzz_targets/websocket_server.rs",
}

#[test]
fn no_target_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).expect("the targets are there");
    let files = files.map(|file| file.expect("an entry").path());
    let is_target = |file: &Path| {
        let text = std::fs::read_to_string(file).expect("it can be read");
        text.contains("\nfuzz_target!(")
    };
    let targets = files.filter(|file| is_target(file));
    let mut names: Vec<_> = targets
        .filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(names, NAMES);
}

fn takes_every_input(name: &str, target: impl Fn(&[u8])) {
    let kept = kept(&name.replace('_', "-"));
    kept.iter().for_each(|input| target(input));
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MADE {
        target(&chance.input(&kept));
    }
}

/// The inputs that are kept for a target, one a line in hexadecimal, or one a file.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut inputs = Vec::new();
    if let Ok(folder) = std::fs::read_dir(seeds.join(name)) {
        let files = folder.map(|file| file.expect("an entry").path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        inputs.extend(
            files
                .iter()
                .map(|file| std::fs::read(file).expect("it can be read")),
        );
    }
    let lines = std::fs::read_to_string(seeds.join(format!("{name}.hex"))).unwrap_or_default();
    inputs.extend(lines.lines().map(bytes_of));
    inputs
}

fn bytes_of(line: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal");
    (0..line.len()).step_by(2).map(byte).collect()
}

/// Numbers that are the same in each run (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }

    fn bytes(&mut self, longest: usize) -> Vec<u8> {
        let length = self.below(longest + 1);
        (0..length).map(|_| self.byte()).collect()
    }

    /// One that is kept, altered here and there, or else any bytes.
    fn input(&mut self, kept: &[Vec<u8>]) -> Vec<u8> {
        if kept.is_empty() || self.below(4) == 0 {
            return self.bytes(LONGEST);
        }
        let mut input = kept[self.below(kept.len())].clone();
        for _ in 0..=self.below(4) {
            self.alter(&mut input, kept);
        }
        input.truncate(LONGEST);
        input
    }

    fn alter(&mut self, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(5) {
            0 => input.truncate(at),
            1 => input.insert(at, self.byte()),
            2 => _ = input.get_mut(at).map(|byte| *byte ^= 1 << (at % 8)),
            3 => _ = input.get_mut(at).map(|byte| *byte = !*byte),
            _ => {
                let other = &kept[self.below(kept.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
}

/// A function where `libfuzzer-sys` makes a program.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:expr) => {
        pub(crate) fn target($data: &[u8]) {
            $body
        }
    };
}
