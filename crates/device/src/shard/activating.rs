//! Devices that come and go while a run goes on: the links of the others are closed, and connect no more.

use muster_load::{ActiveOrder, active_devices};
use muster_model::Micros;

use super::Shard;
use crate::session::Session;
use crate::sink::Sink;

impl<P: Session, S: Sink> Shard<P, S> {
    /// The ramp of first connects begins.
    pub fn connect(&mut self, now: Micros) {
        self.connects.start(now);
        if let Some(share) = self.first_share {
            self.activate(share, now);
        }
    }

    /// From now on this share of each fleet's devices is wanted. Links that are not up connect by the ramp; those of
    /// other devices have a deadline now, which the driver asks for.
    pub fn activate(&mut self, share: f64, now: Micros) {
        for ramp in 0..self.connects.ramps() {
            let class = self.traffic.fleets().class_at(ramp);
            let devices = class.directory.devices();
            let order = ActiveOrder::new(class.directory.first_device(), devices);
            let active = active_devices(devices, share);
            let links = self.connects.links_of(ramp);
            let mut joining = 0;
            for link in links {
                let device = self.traffic.fleets().first_device_of(link);
                let is_wanted = order.is_active(device, active);
                if !self.links.want(link, is_wanted, now) {
                    continue;
                }
                if is_wanted && self.links.get(link).may_connect() {
                    self.connects.join(ramp, link, now, joining);
                    joining += 1;
                }
            }
            let links = &self.links;
            self.connects.keep(ramp, |link| links.get(link).is_wanted());
        }
    }
}
