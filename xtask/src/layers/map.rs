//! The map in the docs lists exactly the crates that exist, with their layer and purity.

use std::collections::BTreeMap;

use super::rooms::Room;
use crate::Violation;

const RULE: &str = "map";

/// Checks the table of `docs/architecture.md`: rows `| layer | [name](folder) | pure | ... |`,
/// the layer of a tool written `-`.
pub fn check_map(path: &str, text: &str, rooms: &[Room]) -> Vec<Violation> {
    let rows: BTreeMap<String, Row> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| row(index + 1, line))
        .collect();
    let mut found = Vec::new();
    for room in rooms {
        match rows.get(room.name) {
            None => found.push(Violation::new(
                path,
                0,
                RULE,
                format!("`{}` is not on the map: add its row", room.name),
            )),
            Some(row) => found.extend(row.compare(path, room)),
        }
    }
    for (name, row) in &rows {
        if rooms.iter().all(|room| room.name != name) {
            let what = format!("`{name}` is on the map but does not exist: take its row out");
            found.push(Violation::new(path, row.line, RULE, what));
        }
    }
    found
}

struct Row {
    line: usize,
    layer: Option<u8>,
    pure: bool,
}

impl Row {
    fn compare(&self, path: &str, room: &Room) -> Option<Violation> {
        let stated = (self.layer, self.pure);
        (stated != (room.layer, room.pure)).then(|| {
            let what = format!(
                "`{}` has layer {:?}, pure {}; the map says {:?}, {}",
                room.name, room.layer, room.pure, self.layer, self.pure
            );
            Violation::new(path, self.line, RULE, what)
        })
    }
}

/// A row of the table of crates: its first cell is a layer or `-`, its second a name in code.
fn row(line: usize, text: &str) -> Option<(String, Row)> {
    let mut cells = text.strip_prefix('|')?.split('|').map(str::trim);
    let layer = match cells.next()? {
        "-" => None,
        number => Some(number.parse().ok()?),
    };
    let name = cells.next()?.split('`').nth(1)?.to_owned();
    let pure = cells.next()? == "yes";
    Some((name, Row { line, layer, pure }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMS: [Room; 2] = [
        Room {
            name: "model",
            layer: Some(0),
            pure: true,
        },
        Room {
            name: "xtask",
            layer: None,
            pure: false,
        },
    ];

    fn check(text: &str) -> Vec<String> {
        check_map("map.md", text, &ROOMS)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn an_exact_map_is_accepted() {
        let text = "| layer | crate | pure | holds |\n|---|---|---|---|\n\
                    | 0 | [`model`](../crates/model) | yes | ids |\n| - | `xtask` | no | rules |\n";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn a_missing_crate_is_named() {
        let found = check("| 0 | `model` | yes | ids |\n");
        assert_eq!(
            found,
            ["map.md: [map] `xtask` is not on the map: add its row"]
        );
    }

    #[test]
    fn a_crate_that_does_not_exist_is_named() {
        let found = check("| 0 | `model` | yes |\n| - | `xtask` | no |\n| 4 | `ghost` | yes |\n");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("map.md:3: [map] `ghost`"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_wrong_layer_or_purity_is_named() {
        assert_eq!(
            check("| 1 | `model` | yes |\n| - | `xtask` | no |\n").len(),
            1
        );
        assert_eq!(
            check("| 0 | `model` | no |\n| - | `xtask` | no |\n").len(),
            1
        );
    }
}
