//! A gateway in another process, for scripts: the configuration as one line of JSON on
//! standard input, then `account` or `stop`; answers on standard output, one line each.

use std::io::{stdin, stdout};

fn main() -> Result<(), muster_gateway::ChildError> {
    muster_gateway::run_until_stopped(stdin().lock(), stdout().lock())
}
