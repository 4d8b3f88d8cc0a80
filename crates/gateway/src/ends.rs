//! The table of the protocols that the gateway serves.

use crate::config::GatewayConfig;
use crate::end::{Ends, Factory};
use crate::start_error::StartError;
use crate::{coap, http, mqtt};

type Prepare = fn(&GatewayConfig) -> Result<Factory, StartError>;

/// All ends, in the order of [`muster_platform::Protocol`].
const ENDS: [Prepare; 3] = [mqtt::prepare, coap::prepare, http::prepare];

/// Gives a function that makes the ends of a thread.
///
/// # Errors
/// [`StartError`] if what a protocol needs cannot be used.
pub(crate) fn prepare(
    config: &GatewayConfig,
) -> Result<impl Fn(&GatewayConfig) -> Ends + use<>, StartError> {
    let factories = ENDS.iter().map(|prepare| prepare(config));
    let factories = factories.collect::<Result<Vec<Factory>, StartError>>()?;
    Ok(move |config: &GatewayConfig| Ends::new(factories.iter().map(|make| make(config))))
}
