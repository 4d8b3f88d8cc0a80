//! Any payload, topic and property: reading a message's id does not panic, and only an intact
//! stamp of this run is ever taken for a message without a check.

#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use muster_load::{Names, PayloadSpec, Template};
use muster_model::{DeviceId, Integrity, Micros, RunId, StreamId};
use muster_platform::{Carrier, Directory, DirectorySpec, Reader, ReaderStream, Uplink};

const TEXT: &str = r#"{"ts":${due_ms},"h":{"id":"${stamp}"}}"#;

thread_local! {
    static READERS: RefCell<Vec<(Carrier, Reader)>> = RefCell::new(readers());
}

fuzz_target!(|data: &[u8]| {
    let Some((first, payload)) = data.split_first() else {
        return;
    };
    READERS.with_borrow_mut(|readers| {
        let at = usize::from(*first) % readers.len();
        let (carrier, reader) = &mut readers[at];
        let text = String::from_utf8_lossy(payload);
        let topic = if first & 0x40 == 0 {
            "muster/m-7/t"
        } else {
            &text
        };
        let mut due = |_: &_| Some(Micros(1));
        let copy = reader.read(topic, payload, Some(&text), &mut due);
        if copy.integrity == Integrity::Unchecked {
            assert!(copy.id.is_none() || *carrier == Carrier::Order);
        }
    });
});

fn readers() -> Vec<(Carrier, Reader)> {
    let text = || PayloadSpec::Template(TEXT.to_owned());
    let forms = [
        (PayloadSpec::Size(100), Carrier::Payload),
        (text(), Carrier::Payload),
        (text(), Carrier::Field("/h/id".to_owned())),
        (
            PayloadSpec::Template("${hex:2}${stamp}".to_owned()),
            Carrier::Payload,
        ),
        (PayloadSpec::Size(4), Carrier::Property),
        (PayloadSpec::Size(4), Carrier::Order),
    ];
    let made = |(spec, carrier): (PayloadSpec, Carrier)| (carrier.clone(), reader(&spec, carrier));
    forms.into_iter().map(made).collect()
}

fn reader(spec: &PayloadSpec, carrier: Carrier) -> Reader {
    let names = Names::formula("m-${index}").expect("a name");
    let directory = Directory::new(DirectorySpec {
        seed: 1,
        wall_ms_at_t0: 0,
        first_device: DeviceId(0),
        devices: 16,
        first_index: 0,
        names,
        tenant: String::new(),
        table: None,
    });
    let topic = Template::parse("muster/${id}/t").expect("a topic");
    let uplink = Uplink::new(topic, spec, carrier, false).expect("a payload");
    let stream = ReaderStream {
        id: StreamId(0),
        directory: Arc::new(directory),
        uplink: Arc::new(uplink),
    };
    Reader::new(RunId(1), vec![stream])
}
