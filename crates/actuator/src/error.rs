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
        /// The program with its arguments.
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
        /// The program with its arguments.
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
    /// The user ended the wait.
    #[error("wait for the instances: interrupted")]
    Interrupted,
    /// The API server of Kubernetes refused.
    #[error(
        "scale {workload}: the API server refuses it: {message} ({reason}); check the name and the rights of this user"
    )]
    Refused {
        /// The path of the workload.
        workload: String,
        /// The reason as the server states it.
        reason: String,
        /// Its words.
        message: String,
    },
    /// Nothing says where the API server of Kubernetes is.
    #[error(
        "find the API server of Kubernetes: {why}; name a file with `scale.actuator.kubeconfig`"
    )]
    Unconfigured {
        /// The reason.
        why: String,
    },
    /// This program lacks the means.
    #[error(
        "scale a workload of Kubernetes: this program was built without the feature `kubernetes`"
    )]
    NotBuilt,
}
