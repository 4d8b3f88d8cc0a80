//! A plan whose devices a registry is told of.

use muster_model::LinkId;
use muster_plan::Plan;
use muster_provision::{
    JOURNAL, Journal, ProvisionError, Provisioner, Summary, Watch, provisioner,
};
use std::io::Write as _;

use crate::page::plan_of;
use crate::server::Server;

/// Waits for the end.
struct Patient;

impl Watch for Patient {
    fn progress(&self, done: u64, of: u64) {
        assert!(done <= of, "{done} of {of}");
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// The fleet of most tests.
pub(crate) const PSK: &str = "id: 'ns:d-${index}', \
    credential: { kind: psk, user: 'auth-${index}@${tenant}', secret: 'key-${index}' }";

pub(crate) struct World {
    pub(crate) server: Server,
    keys: String,
    fleet: String,
    /// A key of the platform, or none.
    backend: String,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn start(devices: u32, keys: &str, fleet: &str) -> Self {
        Self::at(Server::start(), devices, keys, fleet)
    }

    /// The same registry, told by somebody else.
    pub(crate) fn at(server: Server, devices: u32, keys: &str, fleet: &str) -> Self {
        Self {
            server,
            keys: keys.to_owned(),
            fleet: format!("count: {devices}, tenant: t1, {fleet}"),
            backend: String::new(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same world with a business application at an address.
    pub(crate) fn with_backend(self, url: &str) -> Self {
        let backend = format!(", backend: '{url}'");
        Self { backend, ..self }
    }

    fn plan(&self) -> Plan {
        let Self {
            keys,
            fleet,
            backend,
            server,
            ..
        } = self;
        let scheme = match fleet.contains("kind: password") {
            true => "http",
            false => "coaps",
        };
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ '{scheme}://127.0.0.1' ]{backend} }}\n\
             provision: {{ url: '{}', rate: 100000/s{keys} }}\n\
             fleet: [ {{ {fleet}, streams: [] }} ]\n",
            server.url
        );
        plan_of(&text)
    }

    fn provisioner(&self) -> Box<dyn Provisioner> {
        provisioner(&self.plan()).unwrap().unwrap()
    }

    fn journal(&self) -> Journal {
        Journal::open(self.folder.path(), self.provisioner().target()).unwrap()
    }

    pub(crate) fn create(&self) -> Result<Summary, ProvisionError> {
        self.provisioner()
            .create(&self.plan(), &self.journal(), &Patient)
    }

    /// Registers the devices of one link, which was refused.
    pub(crate) fn register(&self, link: u32) -> Result<Summary, ProvisionError> {
        self.provisioner()
            .register(&self.plan(), LinkId(link), &self.journal(), &Patient)
    }

    pub(crate) fn verify(&self) -> Result<Summary, ProvisionError> {
        self.provisioner().verify(&self.plan(), &Patient)
    }

    pub(crate) fn remove(&self) -> Result<Summary, ProvisionError> {
        self.provisioner().remove(&self.journal(), &Patient)
    }

    pub(crate) fn greet(&self) -> Result<(), ProvisionError> {
        self.provisioner().greet(&Patient)
    }

    /// Puts a line at the end of the record, as a killed process leaves it.
    pub(crate) fn append(&self, line: &str) {
        drop(self.journal());
        let path = self.folder.path().join(JOURNAL);
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    pub(crate) fn record(&self) -> String {
        std::fs::read_to_string(self.folder.path().join(JOURNAL)).unwrap()
    }
}
