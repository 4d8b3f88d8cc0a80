//! The programs of a benchmark, built the way their users build them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Paths of the programs.
#[derive(Debug)]
pub(super) struct Programs {
    /// The binary under test.
    pub(super) muster: PathBuf,
    /// The cheapest peers over MQTT, CoAP and HTTP.
    pub(super) mqtt: Cheapest,
    pub(super) coap: Cheapest,
    pub(super) http: Cheapest,
    /// The workspace.
    pub(super) root: PathBuf,
    /// Folder of a run's output, overwritten by the next.
    folder: PathBuf,
}

/// Programs that show the kernel's limit over one protocol.
#[derive(Debug)]
pub(super) struct Cheapest {
    /// The bare loop in Rust, and its twin in C where there is one.
    pub(super) bare: PathBuf,
    pub(super) bare_in_c: Option<PathBuf>,
    /// The target.
    pub(super) sink: PathBuf,
}

/// Sources of the bare loops in C, and the names of what they become.
const IN_C: [&str; 2] = ["bare_loop", "bare_coap"];

impl Programs {
    /// Returns the paths of the workspace's programs after a build.
    pub(super) fn at(root: &Path) -> Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let (release, folder) = (target.join("release"), target.join("bench"));
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let [mqtt_in_c, coap_in_c] = IN_C;
        let cheapest = |bare: &str, in_c: Option<&str>, sink: &str| Cheapest {
            bare: release.join(bare),
            bare_in_c: in_c.map(|in_c| folder.join(in_c)),
            sink: release.join(sink),
        };
        Ok(Self {
            muster: release.join("muster"),
            mqtt: cheapest("bare-loop", Some(mqtt_in_c), "sink"),
            coap: cheapest("bare-coap", Some(coap_in_c), "coap-sink"),
            http: cheapest("bare-http", None, "sink"),
            root: root.to_owned(),
            folder,
        })
    }

    /// Builds them.
    pub(super) fn build(&self) -> Result<()> {
        let packages = ["-p", "muster", "-p", "muster-bench"];
        run(cargo(&self.root)
            .args(["build", "--release"])
            .args(packages))?;
        for name in IN_C {
            let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
            let source = self.root.join(format!("bench/{name}.c"));
            run(cc
                .args(["-O2", "-o"])
                .arg(self.folder.join(name))
                .arg(source))?;
        }
        Ok(())
    }

    /// An example of a crate, built.
    pub(super) fn example_of(&self, package: &str, name: &str) -> Result<PathBuf> {
        let what = ["-p", package, "--example", name];
        run(cargo(&self.root).args(["build", "--release"]).args(what))?;
        Ok(self.muster.with_file_name("examples").join(name))
    }

    /// Folder of a peer.
    pub(super) fn peer(&self, name: &str) -> PathBuf {
        self.folder.with_file_name("peers").join(name)
    }

    /// Folder in which a peer's script has built the peer.
    pub(super) fn scripted_peer(&self, name: &str) -> Result<PathBuf> {
        let folder = self.peer(name);
        let script = self.root.join(format!("e2e/peers/{name}/build.sh"));
        run(Command::new("bash").arg(script).arg(&folder))?;
        Ok(folder)
    }

    /// A peer in Rust, built apart from the workspace, whose dependencies it does not share.
    pub(super) fn rust_peer(&self, name: &str) -> Result<PathBuf> {
        let target = self.peer(name);
        let manifest = format!("e2e/peers/{name}/Cargo.toml");
        let how = [
            "build",
            "--release",
            "--locked",
            "--manifest-path",
            &manifest,
        ];
        run(cargo(&self.root).args(how).env("CARGO_TARGET_DIR", &target))?;
        Ok(target.join("release").join(format!("{name}-peer")))
    }

    /// Returns true if a program of the machine can be started.
    pub(super) fn has(name: &str) -> bool {
        let start = Command::new(name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        start.is_ok()
    }

    /// A path that runs may write to.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Installs a published tool at low priority, once, and gives its path.
    pub(super) fn published(&self, name: &str, version: &str) -> Result<PathBuf> {
        let place = self.folder.join("published");
        let program = place.join("bin").join(name);
        if !program.exists() {
            let mut nice = Command::new("nice");
            nice.args(["-n", "19"]).arg(cargo_program());
            nice.args(["install", name, "--version", version, "--locked", "--root"]);
            run(nice
                .arg(&place)
                .env("CARGO_TARGET_DIR", self.folder.join("build")))?;
        }
        Ok(program)
    }
}

/// Cargo, in the workspace.
pub(super) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(cargo_program());
    command.current_dir(root);
    command
}

fn cargo_program() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
