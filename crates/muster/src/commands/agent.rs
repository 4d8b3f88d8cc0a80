//! `muster agent`: a worker of a larger run.

use anyhow::Result;

use crate::outcome;

/// Serves over standard input and output until the work is done or the controller is gone.
pub(crate) fn agent() -> Result<u8> {
    let _ = muster_net::limits::raise_descriptors();
    // A pipe that breaks is the controller's end; there is nobody left to tell.
    let _ = muster_agent::serve(std::io::stdin(), std::io::stdout().lock());
    Ok(outcome::PASS)
}
