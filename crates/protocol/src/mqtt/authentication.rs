//! Enhanced authentication (section 4.12), by the rules that both ends share.

use muster_model::Micros;

use super::outbound::check_size;
use super::packet::Auth;
use super::{Malformed, Properties, Property, Refused, reason};

/// The number of the property authentication method.
const METHOD: u8 = 21;

/// Method agreed on with the CONNECT, and the exchange in progress.
#[derive(Debug)]
pub(super) struct Authentication {
    method: Box<str>,
    is_under_way: bool,
    /// Instant at which the client began the last one.
    began: Micros,
}

/// One packet AUTH to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) reason: u8,
    pub(super) data: Option<&'a [u8]>,
    /// Bytes of the largest packet the other side takes.
    pub(super) maximum: u32,
}

impl Authentication {
    /// A CONNECT names the method and so begins an exchange, or names none. Memory is taken only
    /// for a method other than that of the connection before.
    pub(super) fn begin(known: &mut Option<Box<Self>>, method: Option<&str>, now: Micros) {
        match (known.as_deref_mut(), method) {
            (Some(known), Some(method)) if *known.method == *method => {
                known.is_under_way = true;
                known.began = now;
            }
            (Some(_) | None, method) => {
                *known = method.map(|method| {
                    Box::new(Self {
                        method: method.into(),
                        is_under_way: true,
                        began: now,
                    })
                });
            }
        }
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    pub(super) const fn began(&self) -> Micros {
        self.began
    }

    pub(super) const fn begin_again(&mut self, now: Micros) {
        self.began = now;
    }

    pub(super) const fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    pub(super) const fn finish(&mut self) {
        self.is_under_way = false;
    }

    /// Notes a step that the server took: more is wanted, or after CONNACK success.
    pub(super) fn by_server(&mut self, auth: &Auth<'_>, is_open: bool) -> Result<(), Malformed> {
        check_method(Some(self), auth.method())?;
        let is_last = is_open && auth.reason == reason::SUCCESS;
        let is_known = is_last || auth.reason == reason::CONTINUE_AUTHENTICATION;
        if !(is_known && self.is_under_way) {
            return Err(Malformed::Authentication(auth.reason));
        }
        self.is_under_way = !is_last;
        Ok(())
    }

    /// Notes a step that the client took: an answer, or after CONNACK a beginning.
    pub(super) fn by_client(&mut self, auth: &Auth<'_>, is_open: bool) -> Result<(), Malformed> {
        check_method(Some(self), auth.method())?;
        let begins = is_open && auth.reason == reason::REAUTHENTICATE;
        let answers = self.is_under_way && auth.reason == reason::CONTINUE_AUTHENTICATION;
        if !begins && !answers {
            return Err(Malformed::Authentication(auth.reason));
        }
        self.is_under_way = true;
        Ok(())
    }

    /// Appends a step, which ends the exchange with success and else keeps it under way.
    pub(super) fn put(&mut self, step: Step<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let method = Property::AuthenticationMethod(&self.method);
        let values = step
            .data
            .map(|data| [method, Property::AuthenticationData(data)]);
        let only = [method];
        let auth = Auth {
            reason: step.reason,
            properties: Properties::new(values.as_ref().map_or(&only[..], |both| &both[..])),
        };
        check_size(auth.remaining(), step.maximum)?;
        auth.write(out)?;
        self.is_under_way = step.reason != reason::SUCCESS;
        Ok(())
    }
}

/// Checks that a packet names the method of the CONNECT, or none if that had none (MQTT-4.12.0-5,
/// MQTT-4.12.0-6).
pub(super) fn check_method(
    agreed: Option<&Authentication>,
    method: Option<&str>,
) -> Result<(), Malformed> {
    if agreed.map(Authentication::method) == method {
        Ok(())
    } else {
        Err(Malformed::PropertyValue(METHOD))
    }
}
