//! Any datagrams from a client: the server end of DTLS keeps the laws of `dtls_ends`.
//!
//! The input is a script: an operation byte, then its operands.

#![no_main]

mod dtls_ends;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| dtls_ends::run(data, false));
