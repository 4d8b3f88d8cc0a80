//! Many devices over DTLS on one machine, against the reference gateway in another process.

use std::io::Write;

use anyhow::Result;

use super::gateway::{Gateway, credential};
use super::programs::Programs;
use super::run::figure;
use super::table::{begin, end, row};
use super::transports::result;

const DEVICES: u32 = 15_000;
/// Messages a second of all devices: four of each in the measured minute.
const RATE: u32 = 1_000;
const SECONDS: u32 = 60;
/// Time for the handshakes and the lifetime of the last exchanges.
const AROUND: u32 = 400;

/// With a socket each and with shared ones.
pub(super) fn over_dtls(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let columns = "sockets | connected | sent | accepted | arrived | lost | residue | \
                   response p99 | CPU of the generator | bytes a device";
    begin(out, "15,000 devices over DTLS, 1,000 messages/s", columns)?;
    for sockets in ["per-device", "shared"] {
        let gateway = Gateway::start(programs)?;
        let result = result(programs, &scenario(&gateway, sockets), SECONDS + AROUND)?;
        let count = |pointer| Ok::<_, anyhow::Error>(format!("{:.0}", figure(&result, pointer)?));
        let cells = [
            sockets.to_owned(),
            count("/links/up_at_start")?,
            count("/ledger/uplink/sent")?,
            count("/ledger/uplink/accepted")?,
            count("/ledger/uplink/arrived")?,
            count("/ledger/uplink/lost")?,
            count("/ledger/uplink/residue")?,
            format!(
                "{:.1} ms",
                figure(&result, "/latency/response/p99_us")? / 1e3
            ),
            format!("{:.1} s", figure(&result, "/generator/cpu_s")?),
            count("/generator/user_bytes_per_device")?,
        ];
        row(out, &cells)?;
    }
    end(
        out,
        "Pre-shared keys, CCM_8; shared sockets by connection ids. Bytes are what the run says itself.",
    )
}

fn scenario(gateway: &Gateway, sockets: &str) -> String {
    format!(
        r#"name: devices
platform: {platform}
fleet:
  - count: {DEVICES}
    tenant: t
    sockets: {sockets}
    {credential}
    connect: {{ rate: 2000/s, pending: 128, timeout: 60s }}
    streams: [ {{ rate: {RATE}/s, payload: {{ size: 100 }} }} ]
phases: {{ warm-up: 1s, measure: {SECONDS}s, settle: {{ at-most: 250s, quiet: 1s }} }}
slo: {{ loss: 0, failure-ratio: 0, connected: 100% }}
"#,
        platform = gateway.platform("coaps"),
        credential = credential("coaps"),
    )
}
