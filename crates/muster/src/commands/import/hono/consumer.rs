//! The pod of the business application as a backend.

use super::super::environment::bracketed;
use super::Pod;
use super::producer::tenant;

/// Names of environment variables that a scenario refers to.
pub(super) const USER: &str = "HONO_USER";
pub(super) const PASSWORD: &str = "HONO_PASSWORD";

/// The business application.
#[derive(Debug)]
pub(super) struct Consumer<'a>(pub(super) &'a Pod);

impl<'a> Consumer<'a> {
    pub(super) fn tenant(&self) -> &'a str {
        tenant(self.0)
    }

    /// The error of a consumer whose tenant no device has.
    pub(super) fn of_other_tenant(&self, tenants: &[&str]) -> anyhow::Error {
        let why = format!(
            "the consumer is of tenant {}, and the devices are of {}; give all the same HONO_TENANT",
            self.tenant(),
            tenants.join(" and ")
        );
        self.0.refuse("HONO_TENANT", &why)
    }

    /// The file of the certificates that it trusts.
    pub(super) fn trusted(&self) -> Option<&'a str> {
        self.0.text("HONO_TRUSTED_CERTS")
    }

    pub(super) fn is_tls(&self) -> bool {
        !self.0.truth("DISABLE_TLS").unwrap_or(false)
    }

    /// The backend, as the value of its key. Over TLS its settings are written out, since those of the devices
    /// are not its own.
    pub(super) fn backend(&self) -> String {
        let pod = self.0;
        let host = bracketed(pod.text("MESSAGING_SERVICE_HOST").unwrap_or("localhost"));
        let port = pod.whole("MESSAGING_SERVICE_PORT_AMQP");
        let port = port.unwrap_or(5_671);
        let is_tls = self.is_tls();
        let scheme = if is_tls { "amqps" } else { "amqp" };
        let mut text = format!("{{ url: \"{scheme}://{host}:{port}\"");
        for (name, key) in [(USER, "user"), (PASSWORD, "password")] {
            if pod.text(name).is_some() {
                text += &format!(", {key}: \"${{env:{name}}}\"");
            }
        }
        if let Some(credit) = pod.whole("HONO_INITIAL_CREDITS") {
            text += &format!(", credit: {credit}");
        }
        match self.trusted().filter(|_| is_tls) {
            Some(file) => text += &format!(", tls: {{ ca: \"{file}\" }}"),
            None if is_tls => text += ", tls: { insecure: false }",
            None => {}
        }
        text + " }"
    }
}
