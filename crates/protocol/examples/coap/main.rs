//! CoAP over a blocking UDP socket, both ends, for tests against other implementations:
//!
//! - `cargo run -p muster-protocol --example coap -- serve` prints its port and serves until it is
//!   ended;
//! - `... -- ask get coap://127.0.0.1:5683/time [non] [body=FILE] [out=FILE] [block=64]
//!   [early] [lose=1,2]` prints what became of the request, in one line;
//! - `... -- ping 127.0.0.1:5683` asks for a sign of life.
//!
//! `lose` drops our own datagrams with these numbers, the first being 1.

mod ask;
mod serve;
mod wire;

use std::error::Error;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", ref options @ ..] => serve::serve(options),
        ["ask", method, uri, ref options @ ..] => ask::ask(method, uri, options),
        ["ping", peer, ref options @ ..] => ask::ping(peer, options),
        _ => Err("usage: coap serve | ask METHOD URI [OPTION...] | ping HOST:PORT".into()),
    }
}

/// The value of `name=value` among options.
fn value<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    let mut options = options.iter();
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}
