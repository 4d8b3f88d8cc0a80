//! Any datagram: the decoder does not panic, and what it reads has one form: written again it is
//! the same bytes. Everything that can be asked of options can be answered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_protocol::coap::{Message, OptionNumber};

fuzz_target!(|data: &[u8]| {
    let message = match Message::decode(data) {
        Ok(message) => message,
        Err(malformed) => {
            assert!(malformed.reset().is_none() || data.len() >= 4);
            return;
        }
    };
    let mut again = Vec::new();
    message.encode(&mut again);
    assert_eq!(again, data);
    let options = message.options;
    let mut last = OptionNumber(0);
    for option in options.iter() {
        assert!(last <= option.number);
        last = option.number;
        assert!(
            options
                .all(option.number)
                .any(|value| value == option.value)
        );
        let value = options.uint(option.number);
        match options.block(option.number) {
            Ok(block) => assert!(block.is_none_or(|block| value == Some(block.value()))),
            Err(_) => assert!(value.is_some()),
        }
    }
    if let Some(number) = options.unacceptable() {
        assert!(number.is_critical());
    }
    assert!(message.payload.len() <= data.len());
});
