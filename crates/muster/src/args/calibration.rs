//! Options of those who need the generator's own ceiling.

use clap::Args;

use crate::calibration::link_speed;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CalibrationArgs {
    /// Measure the generator's ceiling again instead of reading it from the cache in $XDG_CACHE_HOME/muster.
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Speed of the network interface towards the target in bits per second, such as 10G; by default as the
    /// system has it, in /sys/class/net.
    #[arg(long, value_name = "SPEED", value_parser = link_speed)]
    pub(crate) link_speed: Option<u64>,
}

impl CalibrationArgs {
    /// The first of these options that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let link_speed = self.link_speed.map(|_| "--link-speed");
        self.no_cache.then_some("--no-cache").or(link_speed)
    }
}
