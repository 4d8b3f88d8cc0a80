//! A reference gateway that is to be told of devices, and who tells it.

use std::io::Write;
use std::path::Path;

use muster_gateway::{Dialect, Gateway, GatewayConfig, ManagementConfig};
use muster_plan::Plan;
use muster_provision::{
    JOURNAL, Journal, ProvisionError, Provisioner, Summary, Watch, provisioner,
};
use muster_scenario::{Overrides, Reader, Source, parse};
use std::sync::Arc;

pub(crate) const TOKEN: &str = "correct-horse";

/// Waits for the end.
pub(crate) struct Patient;

impl Watch for Patient {
    fn progress(&self, done: u64, of: u64) {
        assert!(done <= of, "{done} of {of}");
    }

    fn is_over(&self) -> bool {
        false
    }
}

pub(crate) struct World {
    gateway: Option<Arc<Gateway>>,
    pub(crate) url: String,
    devices: u32,
    keys: String,
    folder: tempfile::TempDir,
}

/// One file: the certificate that is trusted.
struct Files(Vec<u8>);

impl Reader for Files {
    fn file(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(self.0.clone())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

impl World {
    /// A gateway, and a scenario of so many devices.
    pub(crate) fn start(devices: u32) -> Self {
        let management = ManagementConfig {
            token: Some(TOKEN.to_owned()),
            gateway: "edge-1".to_owned(),
            ..ManagementConfig::default()
        };
        let gateway = Gateway::start(GatewayConfig {
            dialect: Dialect::SapEdge,
            management: Some(management),
            ..GatewayConfig::default()
        });
        let gateway = gateway.unwrap();
        let url = format!("http://{}", gateway.addresses().get("management").unwrap());
        Self {
            gateway: Some(Arc::new(gateway)),
            devices,
            ..Self::at(&url)
        }
    }

    /// Uses the server at that address.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            gateway: None,
            url: url.to_owned(),
            devices: 1,
            keys: "rate: 100000/s".to_owned(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same gateway, told by somebody else, of so many devices.
    pub(crate) fn with(&self, devices: u32) -> Self {
        Self {
            gateway: self.gateway.clone(),
            devices,
            ..Self::at(&self.url)
        }
    }

    /// Other keys under `provision`.
    pub(crate) fn keys(self, keys: &str) -> Self {
        let keys = keys.to_owned();
        Self { keys, ..self }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn plan(&self, ca: &[u8]) -> Plan {
        let has = |key: &str| self.keys.contains(key);
        let token = if has("token") {
            ""
        } else {
            ", token: correct-horse"
        };
        let gateway = if has("gateway") {
            ""
        } else {
            ", gateway: edge-1"
        };
        let text = format!(
            "name: t\nplatform: {{ kind: sap-edge, devices: [ 'mqtt://127.0.0.1' ] }}\n\
             provision: {{ url: '{}', {}{token}{gateway} }}\n\
             fleet: [ {{ count: {}, streams: [] }} ]\n",
            self.url, self.keys, self.devices
        );
        let source = Source {
            name: "t.yaml",
            text: &text,
        };
        parse(source, &Overrides::new(), &Files(ca.to_vec())).unwrap()
    }

    fn provisioner(&self) -> Box<dyn Provisioner> {
        provisioner(&self.plan(&[])).unwrap().unwrap()
    }

    fn journal(&self, provisioner: &dyn Provisioner) -> Journal {
        Journal::open(self.folder(), provisioner.target()).unwrap()
    }

    pub(crate) fn create(&self) -> Result<Summary, ProvisionError> {
        self.create_watched(&Patient)
    }

    pub(crate) fn create_watched(&self, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let provisioner = self.provisioner();
        let journal = self.journal(&*provisioner);
        provisioner.create(&self.plan(&[]), &journal, watch)
    }

    pub(crate) fn verify(&self) -> Result<Summary, ProvisionError> {
        self.provisioner().verify(&self.plan(&[]), &Patient)
    }

    pub(crate) fn remove(&self) -> Result<Summary, ProvisionError> {
        let provisioner = self.provisioner();
        let journal = self.journal(&*provisioner);
        provisioner.remove(&journal, &Patient)
    }

    /// Puts a line at the end of the record, as a killed process may leave it.
    pub(crate) fn append(&self, line: &str) {
        let path = self.folder().join(JOURNAL);
        drop(self.journal(&*self.provisioner()));
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        let is_whole = line.ends_with('}');
        write!(file, "{line}{}", if is_whole { "\n" } else { "" }).unwrap();
    }

    /// Returns the number of things of a kind in the gateway.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.list(kind).len()
    }

    fn list(&self, kind: &str) -> Vec<serde_json::Value> {
        let url = format!("{}/api/v1/{kind}?top=1000", self.url);
        let request = ureq::get(url).header("authorization", format!("Bearer {TOKEN}"));
        let text = request.call().unwrap().body_mut().read_to_string();
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    /// Creates a device as Muster would, without a record.
    pub(crate) fn post_device(&self, name: &str) {
        let sensor_type = self.list("sensorTypes")[0]["id"].clone();
        self.post(name, name, &sensor_type);
    }

    /// Gives a device another content.
    pub(crate) fn rename(&self, name: &str) {
        let devices = self.list("devices");
        let device = devices.iter().find(|it| it["alternateId"] == name).unwrap();
        let id = device["id"].as_str().unwrap();
        let url = format!("{}/api/v1/devices/{id}", self.url);
        let request = ureq::delete(url).header("authorization", format!("Bearer {TOKEN}"));
        request.call().unwrap();
        self.post(name, "other", &device["sensors"][0]["sensorTypeId"]);
    }

    fn post(&self, alternate_id: &str, name: &str, sensor_type: &serde_json::Value) {
        let body = format!(
            r#"{{"alternateId":"{alternate_id}","name":"{name}","gatewayId":"1","sensors":[{{"alternateId":"PerfTest","name":"PerfTest","sensorTypeId":{sensor_type}}}]}}"#
        );
        let url = format!("{}/api/v1/devices", self.url);
        let request = ureq::post(url).header("authorization", format!("Bearer {TOKEN}"));
        request.send(body.as_str()).unwrap();
    }
}
