//! Admission of applications over AMQP 1.0: SASL PLAIN (RFC 4616), ANONYMOUS (RFC 4505), and EXTERNAL (RFC 4422
//! appendix A) by the certificate of TLS.

use std::sync::Arc;

use fe2o3_amqp::acceptor::SaslAcceptor;
use fe2o3_amqp::acceptor::sasl_acceptor::SaslServerFrame;
use fe2o3_amqp::types::primitives::{Array, Symbol};
use fe2o3_amqp::types::sasl::{SaslCode, SaslInit, SaslOutcome, SaslResponse};
use muster_transport::{PeerIdentity, common_name};

use crate::config::Role;
use crate::shared::Shared;

const PLAIN: &str = "PLAIN";
const ANONYMOUS: &str = "ANONYMOUS";
const EXTERNAL: &str = "EXTERNAL";

/// The check of an application's credentials.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) shared: Arc<Shared>,
    /// The client by its certificate; none if it showed none.
    pub(super) client: Option<PeerIdentity>,
}

impl Gate {
    /// True if nobody needs credentials.
    fn is_open(&self) -> bool {
        self.admits_user(None, None)
    }

    /// Checks credentials: if the gateway has a user for applications, only that one is admitted.
    fn admits_user(&self, user: Option<&str>, password: Option<&[u8]>) -> bool {
        let config = &self.shared.config;
        match config.role(user, password) {
            Some(Role::Northbound) => true,
            Some(Role::Device) => config.northbound.is_none(),
            None => false,
        }
    }

    fn admits(&self, init: &SaslInit) -> bool {
        match init.mechanism.0.as_str() {
            ANONYMOUS => self.is_open(),
            EXTERNAL => self.admits_certificate(),
            PLAIN => {
                let response = init.initial_response.as_ref();
                response.is_some_and(|response| self.admits_plain(response.as_ref()))
            }
            _ => false,
        }
    }

    /// Checks the common name of the certificate, whose authority TLS has checked: it is that of a user whom a
    /// password would admit. Where no user is named, each certificate is admitted.
    fn admits_certificate(&self) -> bool {
        let config = &self.shared.config;
        let users = match &config.northbound {
            Some(user) => std::slice::from_ref(user),
            None => &config.users[..],
        };
        let Some(client) = &self.client else {
            return false;
        };
        let name = common_name(&client.subject);
        users.is_empty() || users.iter().any(|user| name.as_ref() == Some(&user.name))
    }

    /// Checks authorization identity, name and password, with NUL between them.
    fn admits_plain(&self, response: &[u8]) -> bool {
        let mut parts = response.splitn(3, |byte| *byte == 0);
        let (Some(_), Some(user), Some(password)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let user = std::str::from_utf8(user);
        user.is_ok_and(|user| self.admits_user(Some(user), Some(password)))
    }
}

fn outcome(code: SaslCode) -> SaslServerFrame {
    SaslServerFrame::Outcome(SaslOutcome {
        code,
        additional_data: None,
    })
}

impl SaslAcceptor for Gate {
    fn mechanisms(&self) -> Array<Symbol> {
        let mut all = vec![Symbol::from(PLAIN)];
        if self.is_open() {
            all.push(Symbol::from(ANONYMOUS));
        }
        if self.client.is_some() {
            all.push(Symbol::from(EXTERNAL));
        }
        Array::from(all)
    }

    fn on_init(&mut self, init: SaslInit) -> SaslServerFrame {
        let is_admitted = self.admits(&init);
        outcome(if is_admitted {
            SaslCode::Ok
        } else {
            SaslCode::Auth
        })
    }

    /// No challenge was sent, so that there is nothing to respond to.
    fn on_response(&mut self, _: SaslResponse) -> SaslServerFrame {
        outcome(SaslCode::Sys)
    }
}

#[cfg(test)]
mod tests {
    use fe2o3_amqp::types::primitives::Binary;

    use super::*;
    use crate::config::{GatewayConfig, User};

    fn gate(config: GatewayConfig, subject: Option<&str>) -> Gate {
        let identity = |subject: &str| PeerIdentity {
            subject: subject.to_owned(),
            is_resumed: false,
        };
        Gate {
            shared: Arc::new(Shared::new(config)),
            client: subject.map(identity),
        }
    }

    fn is_admitted(mut gate: Gate) -> bool {
        let init = SaslInit {
            mechanism: Symbol::from(EXTERNAL),
            initial_response: Some(Binary::new()),
            hostname: None,
        };
        let SaslServerFrame::Outcome(outcome) = gate.on_init(init) else {
            panic!("nothing is asked");
        };
        outcome.code == SaslCode::Ok
    }

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            password: b"secret".to_vec(),
        }
    }

    #[test]
    fn a_certificate_logs_in_whoever_its_common_name_says() {
        let open = GatewayConfig::default;
        let north = || GatewayConfig {
            northbound: Some(user("app")),
            users: vec![user("meter")],
            ..open()
        };
        let users = || GatewayConfig {
            users: vec![user("app")],
            ..open()
        };
        assert!(is_admitted(gate(open(), Some("CN=anybody"))));
        assert!(!is_admitted(gate(open(), None)));
        assert!(is_admitted(gate(north(), Some("O=x,CN=app"))));
        assert!(!is_admitted(gate(north(), Some("CN=meter"))));
        assert!(is_admitted(gate(users(), Some("CN=app"))));
        assert!(!is_admitted(gate(users(), Some("O=app"))));
    }

    #[test]
    fn external_is_offered_to_those_alone_who_showed_a_certificate() {
        let offers = |gate: Gate| gate.mechanisms().0.contains(&Symbol::from(EXTERNAL));
        assert!(offers(gate(GatewayConfig::default(), Some("CN=app"))));
        assert!(!offers(gate(GatewayConfig::default(), None)));
    }
}
