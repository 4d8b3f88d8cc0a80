//! Failures of an actuator.

use std::io;
use std::path::PathBuf;

/// Reasons for which a number of instances was not reached, or not read.
#[derive(Debug, thiserror::Error)]
pub enum ActuatorError {
    /// The record of the target's first state is unusable.
    #[error("keep the record of the target in {path}: {source}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A program did not start.
    #[error("start `{program}`: {source}; check its name and that it can be executed")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A command of the user failed.
    #[error("run `{program}`: it ended with {status}{said}")]
    Failed {
        /// The program, without its arguments: these may hold secrets.
        program: String,
        /// Its exit.
        status: String,
        /// Its last words, behind a colon; empty if there were none.
        said: String,
    },
    /// A command printed no number.
    #[error(
        "read the number of instances: `{program}` printed `{printed}`; print one whole number"
    )]
    NoNumber {
        /// The program, without its arguments: these may hold secrets.
        program: String,
        /// Its output.
        printed: String,
    },
    /// An instance ended although it is wanted.
    #[error("keep instance {index} running: it ended with {status}{said}")]
    Ended {
        /// Its number, from 0.
        index: usize,
        /// Its exit.
        status: String,
        /// Its last words, behind a colon; empty if there were none.
        said: String,
    },
    /// The target did not follow in time.
    #[error(
        "set {wanted} instances: {there} ready after {after}{why}; mend the target, or raise `scale.timeout`"
    )]
    DidNotFollow {
        /// The number of instances that was set.
        wanted: u32,
        /// Number of instances that are ready, in words.
        there: String,
        /// The time that was waited.
        after: String,
        /// The reason as the target states it, behind a colon; empty without one.
        why: String,
    },
    /// This program was built without the client of a cluster.
    #[error(
        "scale a workload of Kubernetes: this program was built without it; build it with `cargo build --release --features kubernetes`"
    )]
    NoKubernetes,
    /// The cluster is not to be reached.
    #[error(
        "reach the cluster: {why}; check `kubeconfig` and `context` of `scale.actuator`, or `KUBECONFIG`"
    )]
    Cluster {
        /// The reason, without secrets.
        why: String,
    },
    /// The API server of a cluster refused.
    #[error("scale {workload}: {why}; {remedy}")]
    Refused {
        /// The workload.
        workload: String,
        /// The reason in the server's words.
        why: String,
        /// Its remedy.
        remedy: &'static str,
    },
    /// The workload is not the one that was changed.
    #[error(
        "put back {workload}: it is another one than was changed; put that one back yourself, and remove {path}"
    )]
    Replaced {
        /// The workload.
        workload: String,
        /// The record.
        path: PathBuf,
    },
    /// The user ended the wait.
    #[error("wait for the instances: interrupted")]
    Interrupted,
    /// Another actuator changed the target.
    #[error(
        "put the target back by {path}: another actuator changed it; give `scale.actuator` as it was, or put the target back yourself and remove that file"
    )]
    Another {
        /// The record.
        path: PathBuf,
    },
    /// Somebody listens where an instance is to listen.
    #[error(
        "start instance {index}: {at} answers already; end whatever listens there, or name another port in `platform.devices`"
    )]
    Taken {
        /// Its number, from 0.
        index: usize,
        /// The address.
        at: String,
    },
    /// An instance that an earlier growth left does not end.
    #[error("end the instance that an earlier growth left: process {pid} is still there; end it")]
    Left {
        /// The process.
        pid: u32,
    },
}
