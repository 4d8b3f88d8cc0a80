//! The actuator of Kubernetes against a mock: a server of answers that were recorded from a real API server.
//!
//! `bash e2e/kubernetes/record.sh` records them anew; `recorded/version.json` has the version of the server.

#![cfg(feature = "kubernetes")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod served;
#[path = "../surroundings/surroundings.rs"]
mod surroundings;

use std::fs;
use std::path::Path;

use muster_actuator::{Actuator, ActuatorError, Wait, open};
use muster_model::Micros;
use muster_plan::{ActuatorPlan, KubernetesPlan, WorkloadKind};
use tempfile::TempDir;

use served::{Answer, Served, recorded};
use surroundings::{LONG, NEVER, site};

/// A limit that is to be reached.
const SHORT: Micros = Micros::from_millis(50);

fn plan(kind: WorkloadKind, folder: &Path, kubeconfig: &str) -> ActuatorPlan {
    let path = folder.join("kubeconfig");
    fs::write(&path, kubeconfig).unwrap();
    ActuatorPlan::Kubernetes(KubernetesPlan {
        kind,
        name: "gateway".to_owned(),
        namespace: Some("iot".to_owned()),
        kubeconfig: Some(path.display().to_string()),
        context: None,
    })
}

/// A server that gives these answers, and the folder of the actuator of one of its workloads.
struct World {
    folder: TempDir,
    served: Served,
    plan: ActuatorPlan,
}

impl World {
    fn new(kind: WorkloadKind, answers: &[Answer]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(answers);
        let plan = plan(kind, folder.path(), &served.kubeconfig());
        Self {
            folder,
            served,
            plan,
        }
    }

    fn deployment(answers: &[Answer]) -> Self {
        Self::new(WorkloadKind::Deployment, answers)
    }

    fn open(&self) -> Box<dyn Actuator> {
        open(&self.plan, site(self.folder.path())).unwrap()
    }

    fn has_record(&self) -> bool {
        self.folder.path().join("target.json").exists()
    }

    /// Asserts that the replicas were set to these numbers, each on the version that was read before.
    fn assert_set(&self, wanted: &[(u64, &str)]) {
        let wanted: Vec<(u64, String)> = wanted
            .iter()
            .map(|(replicas, read)| {
                let version = &recorded(read)["body"]["metadata"]["resourceVersion"];
                (*replicas, version.as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(self.served.set(), wanted);
    }
}

/// Sets four replicas while the server gives these answers.
fn four(answers: &[Answer]) -> World {
    let world = World::deployment(answers);
    world.open().set(4, &Wait::new(LONG, &NEVER)).unwrap();
    world
}

/// The error of setting a number while the server gives these answers.
fn refused(kind: WorkloadKind, at_most: Micros, answers: &[Answer]) -> String {
    let world = World::new(kind, answers);
    let error = world
        .open()
        .set(2, &Wait::new(at_most, &NEVER))
        .unwrap_err();
    let text = error.to_string();
    assert!(!text.contains("hunter2"), "{text}");
    text
}

#[test]
fn replicas_are_set_until_all_are_ready_and_put_back() {
    let world = World::deployment(&[
        Answer::Of("one"),
        Answer::Of("one"),
        Answer::Of("set-to-four"),
        Answer::Of("four-starting"),
        Answer::Of("four"),
        Answer::Of("four"),
        Answer::Of("four"),
        Answer::Of("set-to-one"),
        Answer::Of("one-again"),
    ]);
    let wait = Wait::new(LONG, &NEVER);
    let mut actuator = world.open();
    actuator.set(4, &wait).unwrap();
    assert!(world.has_record());
    assert_eq!(actuator.actual(&wait).unwrap(), 4);
    assert_eq!(actuator.addresses(4), None);
    actuator.restore(&wait).unwrap();
    assert!(!world.has_record());
    world.assert_set(&[(4, "one"), (1, "four")]);
}

#[test]
fn the_first_number_outlives_a_program_that_was_killed() {
    let world = World::deployment(&[
        Answer::Of("one"),
        Answer::Of("four"),
        Answer::Of("four"),
        Answer::Of("set-to-one"),
        Answer::Of("one-again"),
    ]);
    let wait = Wait::new(LONG, &NEVER);
    let mut killed = world.open();
    killed.set(4, &wait).unwrap();
    drop(killed);
    let mut next = world.open();
    next.restore(&wait).unwrap();
    world.assert_set(&[(1, "four")]);
}

#[test]
fn another_workload_of_the_same_name_is_left_alone() {
    let world = World::deployment(&[
        Answer::Of("one"),
        Answer::Of("four"),
        Answer::Of("crashing-before"),
    ]);
    let wait = Wait::new(LONG, &NEVER);
    let mut actuator = world.open();
    actuator.set(4, &wait).unwrap();
    let error = actuator.restore(&wait).unwrap_err();
    assert!(matches!(error, ActuatorError::Replaced { .. }), "{error}");
    assert!(world.has_record());
    world.assert_set(&[]);
}

#[test]
fn a_conflict_and_replicas_that_somebody_else_changed_are_survived() {
    let world = four(&[
        Answer::Of("one"),
        Answer::Of("one"),
        Answer::Of("conflict"),
        Answer::Of("one"),
        Answer::Of("set-to-four"),
        Answer::Of("four-starting"),
        Answer::Of("one-again"),
        Answer::Of("set-to-four"),
        Answer::Of("four"),
    ]);
    world.assert_set(&[(4, "one"), (4, "one"), (4, "one-again")]);
}

#[test]
fn a_server_that_is_away_for_a_while_is_survived() {
    let world = four(&[
        Answer::NoneTo("one"),
        Answer::Of("one"),
        Answer::Of("one"),
        Answer::NoneTo("set-to-four"),
        // A server that has just started knows no roles.
        Answer::Of("forbidden"),
        Answer::Of("one"),
        Answer::Of("set-to-four"),
        Answer::NoneTo("four"),
        Answer::Of("four"),
    ]);
    world.assert_set(&[(4, "one"), (4, "one")]);
}

#[test]
fn a_refusal_after_a_server_was_away_is_named_at_once() {
    let away = [Answer::Of("one"), Answer::NoneTo("one")];
    let missing = [Answer::To("one", "not-found")];
    let forbidden = [
        Answer::Of("one"),
        Answer::Of("set-to-four"),
        Answer::To("one", "forbidden"),
    ];
    for (answers, remedy) in [
        (&missing[..], "correct the names"),
        (&forbidden, "docs/scale.md"),
    ] {
        let answers = [&away[..], answers].concat();
        let text = refused(WorkloadKind::Deployment, LONG, &answers);
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn a_server_that_stays_away_is_named() {
    let away = refused(WorkloadKind::Deployment, SHORT, &[Answer::NoneTo("one")]);
    assert!(away.contains("reach the cluster"), "{away}");
    let gone = refused(
        WorkloadKind::Deployment,
        SHORT,
        &[Answer::Of("one"), Answer::NoneTo("one")],
    );
    assert!(gone.contains("unknown number"), "{gone}");
    assert!(gone.contains("the API server: "), "{gone}");
}

#[test]
fn a_refusal_is_named_at_once_with_what_to_do() {
    for (answer, why, remedy) in [
        ("unauthorized", "Unauthorized", "renew the credentials"),
        ("forbidden", "is forbidden: User", "docs/scale.md"),
        ("not-found", "not found", "correct the names"),
    ] {
        let answers = [Answer::To("one", answer)];
        let text = refused(WorkloadKind::Deployment, LONG, &answers);
        assert!(
            text.contains("deployment gateway in namespace iot"),
            "{text}"
        );
        assert!(text.contains(why) && text.contains(remedy), "{text}");
    }
    let answers = [Answer::Of("one"), Answer::Of("one"), Answer::Of("invalid")];
    let invalid = refused(WorkloadKind::Deployment, LONG, &answers);
    assert!(
        invalid.contains("must be greater than or equal to 0"),
        "{invalid}"
    );
}

#[test]
fn pods_that_cannot_be_created_or_are_never_ready_are_named() {
    let quota = [Answer::Of("quota-before"), Answer::Of("quota")];
    let crashing = [
        Answer::Of("crashing-before"),
        Answer::Of("crashing"),
        Answer::Of("crashing-pods"),
    ];
    let unseen = [
        Answer::Of("crashing-before"),
        Answer::Of("crashing"),
        Answer::To("crashing-pods", "forbidden-pods"),
    ];
    let stateful = [
        Answer::Of("stateful-before"),
        Answer::Of("stateful"),
        Answer::Of("stateful-pods"),
        Answer::Of("stateful-events"),
    ];
    for (kind, answers, words) in [
        (
            WorkloadKind::Deployment,
            &quota[..],
            &["1 are ready", "FailedCreate", "exceeded quota: few"][..],
        ),
        (
            WorkloadKind::Deployment,
            &crashing,
            &["pod gateway-", "container main: CrashLoopBackOff", "code 7"],
        ),
        (
            WorkloadKind::Deployment,
            &unseen,
            &["pods may not be listed"],
        ),
        (
            WorkloadKind::StatefulSet,
            &stateful,
            &["FailedCreate", "exceeded quota: few"],
        ),
    ] {
        let text = refused(kind, SHORT, answers);
        for word in words {
            assert!(text.contains(word), "{text}");
        }
    }
}

#[test]
fn pods_that_were_not_ready_before_are_not_waited_for_in_the_end() {
    let world = World::deployment(&[
        Answer::Of("crashing"),
        Answer::Of("crashing"),
        Answer::Of("crashing-pods"),
    ]);
    let mut actuator = world.open();
    assert!(actuator.set(2, &Wait::new(SHORT, &NEVER)).is_err());
    actuator.restore(&Wait::new(LONG, &NEVER)).unwrap();
}

#[test]
fn errors_of_a_configuration_show_no_secret() {
    let exec = "
      apiVersion: v1
      kind: Config
      current-context: c
      clusters: [ { name: k, cluster: { server: 'http://127.0.0.1:1' } } ]
      users: [ { name: u, user: { exec: { apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never,
        command: sh, args: [ -c, 'echo hunter2; exit 1' ] } } } ]
      contexts: [ { name: c, context: { cluster: k, user: u } } ]";
    let broken = "users: [ { name: u, user: { token: hunter2, token: } ]";
    for (text, why) in [(exec, "credentials"), (broken, "no valid YAML")] {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(WorkloadKind::Deployment, folder.path(), text);
        let wait = Wait::new(SHORT, &NEVER);
        let error = open(&plan, site(folder.path())).and_then(|mut it| it.set(1, &wait));
        let text = error.unwrap_err().to_string();
        assert!(text.contains(why) && !text.contains("hunter2"), "{text}");
    }
}
