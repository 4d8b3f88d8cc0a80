//! The performance test of the SAP Edge Gateway Service.

use std::fmt::Write;

use crate::args::SapArgs;

/// Periods of bursts in milliseconds, those nearest to that test's tenth of a second first. Each is a
/// whole part of a second, so that the number of messages is exact.
const PERIODS_MS: [u32; 7] = [100, 125, 50, 40, 200, 25, 20];

/// The scenario that does what the flags say.
pub(crate) fn scenario(args: &SapArgs) -> String {
    let SapArgs {
        host,
        port,
        devices,
        rate,
        samples,
        time,
        multiprocess,
        out: _,
    } = args;
    let mut text = format!(
        "# From the performance test of the SAP Edge Gateway Service, called with\n\
         # -b {host} -p {port} -d {devices} -r {rate} -s {samples} -t {time} -m {multiprocess}\n"
    );
    if *multiprocess > 1 {
        text += &format!("# Its worker processes: muster run --workers {multiprocess}\n");
    }
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.clone()
    };
    let _ = write!(
        text,
        "name: sap-{devices}x{rate}\n\
         platform:\n  kind: sap-edge\n  devices: [ \"mqtt://{host}:{port}\" ]\n\
         fleet:\n  - name: devices\n    count: {devices}\n    \
         id: \"PerfTest_${{index}}\"    # or PerfTest_mb_${{index}}, if that is what the devices there are called\n    \
         streams:\n      - name: measures\n        {}\n        \
         count: {}    # of each device\n        \
         payload: {{ sap-measures: {{ samples: {samples} }} }}\n\
         phases: {{ warm-up: 0s, measure: {time}s }}\n\
         slo: {{ failure-ratio: 0, connected: 100% }}\n",
        pace(*rate, *devices),
        u64::from(*rate) * u64::from(*time),
    );
    text
}

/// Above ten a second that test sends what is due each tenth of a second at once. A rate that has
/// no burst of whole messages is sent message by message, as that test does up to ten a second.
fn pace(rate: u32, devices: u32) -> String {
    let whole = |period: &&u32| (u64::from(rate) * u64::from(**period)).is_multiple_of(1_000);
    let period = PERIODS_MS.iter().find(whole).filter(|_| rate > 10);
    match period {
        Some(period) => {
            let n = u64::from(rate) * u64::from(*period) / 1_000;
            format!(
                "shape: {{ burst: {{ n: {n}, every: {period}ms }} }}    # {rate}/s of each device"
            )
        }
        None => {
            let all = u64::from(rate) * u64::from(devices);
            format!("rate: {all}/s    # of all devices")
        }
    }
}
