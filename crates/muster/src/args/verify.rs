//! The command line of `muster verify`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Files that were exchanged, removed or added are faults, as are figures, rules and pages that do \
    not follow. Without --key the answer is at best `internally consistent`: whoever changed the windows \
    could have made a new certificate.\n\n\
    Exit codes: 0 every figure follows, 1 one does not or the certificate is missing, 2 usage error.\n\n\
    Example: muster verify results/first-20261121T101500Z --key pub.pem"
)]
pub(crate) struct VerifyArgs {
    /// The folder of a run, a search or a growth.
    pub(crate) folder: PathBuf,
    /// The public key of ed25519 in PEM that must have signed the certificate.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<PathBuf>,
}
