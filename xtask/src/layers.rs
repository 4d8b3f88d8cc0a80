//! Layers and purity: who may depend on whom, and what a pure crate may not touch.

mod graph;
mod map;
mod purity;
mod rooms;

use std::path::Path;

use anyhow::{Context, Result};

pub use graph::{Graph, Package, check_graph};
pub use map::check_map;
pub use purity::check_purity;
pub use rooms::{FORBIDDEN_CRATES, FORBIDDEN_PATHS, ROOMS, Room};

use crate::{Violation, tidy};

/// Path of the map of the crates.
const MAP: &str = "docs/architecture.md";

/// Checks the whole workspace.
///
/// # Errors
/// If cargo cannot list the dependencies, or a file cannot be read or parsed.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = check_graph(&Graph::of_workspace(root)?, &ROOMS);
    for room in ROOMS.iter().filter(|room| room.pure) {
        for (path, text) in tidy::production_files(root, &root.join(room.folder()))? {
            found.extend(check_purity(&path, &text)?);
        }
    }
    let map = std::fs::read_to_string(root.join(MAP)).with_context(|| format!("reading {MAP}"))?;
    found.extend(check_map(MAP, &map, &ROOMS));
    found.sort();
    Ok(found)
}
