//! Writes the page of a result: `cargo run -p muster-report --example page RESULT.json PAGE.html`.

use std::process::ExitCode;

use muster_report::{Report, html};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return ExitCode::from(2);
    };
    let page = std::fs::read_to_string(from)
        .map_err(|error| error.to_string())
        .and_then(|json| Report::from_json(&json).map_err(|error| error.to_string()))
        .map(|report| html(&report));
    match page.and_then(|page| std::fs::write(to, page).map_err(|error| error.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
