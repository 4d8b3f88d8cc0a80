//! The program under test, and the gateway that it meets.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Output of the program, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Its output, as if no line had been broken.
    pub(crate) fn unbroken(&self) -> String {
        let words: Vec<&str> = self.out.split_whitespace().collect();
        words.join(" ")
    }
}

/// The program with arguments, to be run in a folder.
pub(crate) fn program<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    // Ceilings are measured once for all tests.
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", cache)
        .args(arguments)
        .stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn muster<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> Said {
    let output = program(folder, arguments)
        .output()
        .expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Said {
        code: output.status.code().expect("it was not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A folder with a scenario of this text in it, as `scenario.yaml`.
pub(crate) fn folder_with(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scenario.yaml"), scenario).expect("the scenario is written");
    folder
}

/// Sends a process a signal.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the process is there");
}

/// A gateway that stands alone.
pub(crate) struct Gateway {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Gateway {
    /// Starts one on a free port.
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: &[A]) -> Self {
        let mut child = program(Path::new("."), &["gateway", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the gateway starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output is piped"));
        let url = url_of(&mut out);
        Self { child, out, url }
    }

    /// The address that its next line names.
    pub(crate) fn next_url(&mut self) -> String {
        url_of(&mut self.out)
    }

    /// Stops it; its account of itself.
    pub(crate) fn stop(mut self) -> Value {
        signal(&self.child, Signal::TERM);
        let mut account = String::new();
        self.out
            .read_to_string(&mut account)
            .expect("it ends with its account");
        serde_json::from_str(&account).expect("the account is JSON")
    }
}

fn url_of(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("it says where it listens");
    let url = line.split_whitespace().find(|word| word.contains("://"));
    url.expect("an address").trim_end_matches(';').to_owned()
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file as JSON.
pub(crate) fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("it was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The warnings of a result but for those on the health of the generator: they are of a busy machine.
pub(crate) fn warnings(result: &Value) -> Vec<&Value> {
    let all = result["verdict"]["warnings"].as_array().expect("a list");
    let is_of_health = |kind: &Value| ["cpu", "cpu-wait", "steal"].iter().any(|of| kind == of);
    all.iter().filter(|it| !is_of_health(&it["kind"])).collect()
}

/// No file of a result holds the secret.
pub(crate) fn assert_shown_nowhere(secret: &str, folder: &Path) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("a result") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let mut windows = bytes.windows(secret.len());
        let shown = windows.any(|part| part == secret.as_bytes());
        assert!(!shown, "{} shows it", path.display());
        files += 1;
    }
    assert!(files > 1, "{files} files");
}
