//! Admission of applications over AMQP 1.0: SASL PLAIN (RFC 4616) and ANONYMOUS (RFC 4505).

use std::sync::Arc;

use fe2o3_amqp::acceptor::SaslAcceptor;
use fe2o3_amqp::acceptor::sasl_acceptor::SaslServerFrame;
use fe2o3_amqp::types::primitives::{Array, Symbol};
use fe2o3_amqp::types::sasl::{SaslCode, SaslInit, SaslOutcome, SaslResponse};

use crate::config::Role;
use crate::shared::Shared;

const PLAIN: &str = "PLAIN";
const ANONYMOUS: &str = "ANONYMOUS";

/// The check of an application's credentials.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) shared: Arc<Shared>,
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
            PLAIN => {
                let response = init.initial_response.as_ref();
                response.is_some_and(|response| self.admits_plain(response.as_ref()))
            }
            _ => false,
        }
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
