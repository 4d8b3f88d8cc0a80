//! The dependencies as cargo resolved them, checked against the table of rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::rooms::{FORBIDDEN_CRATES, Room};
use crate::Violation;

const RULE_LAYER: &str = "layer";
const RULE_PURE: &str = "purity";
const RULE_ROOMS: &str = "rooms";

/// Packages and their normal dependencies, by cargo's package id.
#[derive(Debug, Default)]
pub struct Graph {
    /// Every package of the resolved tree.
    pub packages: BTreeMap<String, Package>,
}

/// One package.
#[derive(Debug, Default)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// True if it is a member of the workspace.
    pub member: bool,
    /// Ids of what it needs to run; what only its tests or its build script need is left out.
    pub needs: Vec<String>,
}

impl Graph {
    /// Asks cargo for the graph of the workspace in `root`.
    ///
    /// # Errors
    /// If cargo cannot be run or prints something else than its metadata.
    pub fn of_workspace(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1"])
            .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
            .current_dir(root)
            .output()
            .context("running `cargo metadata`")?;
        if !output.status.success() {
            bail!(
                "`cargo metadata` failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Self::parse(&serde_json::from_slice(&output.stdout).context("cargo printed no JSON")?)
    }

    /// Reads the output of `cargo metadata --format-version 1`.
    ///
    /// # Errors
    /// If a part of it is missing.
    pub fn parse(metadata: &Value) -> Result<Self> {
        let mut graph = Self::default();
        for package in list(metadata, "packages")? {
            let (id, name) = (text(package, "id")?, text(package, "name")?);
            graph.packages.insert(
                id,
                Package {
                    name,
                    ..Package::default()
                },
            );
        }
        for id in list(metadata, "workspace_members")?
            .iter()
            .filter_map(Value::as_str)
        {
            graph.packages.entry(id.to_owned()).or_default().member = true;
        }
        for node in list(&metadata["resolve"], "nodes")? {
            let needs: Result<Vec<String>> = list(node, "deps")?
                .iter()
                .filter(|dependency| is_normal(dependency))
                .map(|dependency| text(dependency, "pkg"))
                .collect();
            graph.packages.entry(text(node, "id")?).or_default().needs = needs?;
        }
        Ok(graph)
    }

    fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|package| package.member)
    }

    /// Everything a package needs, directly or through others, by name, with one way to it.
    fn reach(&self, package: &Package) -> BTreeMap<String, Vec<String>> {
        let mut ways = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut open: Vec<(&String, Vec<String>)> =
            package.needs.iter().map(|id| (id, Vec::new())).collect();
        while let Some((id, mut way)) = open.pop() {
            let Some(next) = self.packages.get(id).filter(|_| seen.insert(id)) else {
                continue;
            };
            way.push(next.name.clone());
            open.extend(next.needs.iter().map(|id| (id, way.clone())));
            ways.insert(next.name.clone(), way);
        }
        ways
    }
}

/// Checks members against rooms: each has one, depends only on smaller layers, and a pure one
/// reaches no forbidden crate.
pub fn check_graph(graph: &Graph, rooms: &[Room]) -> Vec<Violation> {
    let by_package: BTreeMap<String, &Room> =
        rooms.iter().map(|room| (room.package(), room)).collect();
    let mut found = without_package(graph, &by_package);
    for package in graph.members() {
        match by_package.get(&package.name) {
            None => found.push(Violation::new(
                "xtask/src/layers/rooms.rs",
                0,
                RULE_ROOMS,
                format!(
                    "package `{}` has no room: give it a layer in ROOMS",
                    package.name
                ),
            )),
            Some(room) => {
                found.extend(check_layer(graph, package, room, &by_package));
                found.extend(check_reach(graph, package, room));
            }
        }
    }
    found
}

fn without_package(graph: &Graph, rooms: &BTreeMap<String, &Room>) -> Vec<Violation> {
    let members: BTreeSet<&String> = graph.members().map(|package| &package.name).collect();
    let empty = rooms
        .iter()
        .filter(|(package, _)| !members.contains(package));
    empty
        .map(|(package, _)| {
            let what = format!("ROOMS names `{package}`, which does not exist: take it out");
            Violation::new("xtask/src/layers/rooms.rs", 0, RULE_ROOMS, what)
        })
        .collect()
}

fn check_layer(
    graph: &Graph,
    package: &Package,
    room: &Room,
    rooms: &BTreeMap<String, &Room>,
) -> Vec<Violation> {
    let needed = package.needs.iter().filter_map(|id| graph.packages.get(id));
    needed
        .filter_map(|needed| rooms.get(&needed.name))
        .filter_map(|below| objection(room, below))
        .map(|what| Violation::new(&manifest(room), 0, RULE_LAYER, what))
        .collect()
}

/// Returns why a crate may not depend on another, if so.
fn objection(room: &Room, below: &Room) -> Option<String> {
    let (name, needed) = (room.name, below.name);
    if room.pure && !below.pure {
        return Some(format!(
            "`{name}` is pure and depends on `{needed}`, which is not"
        ));
    }
    match (room.layer, below.layer) {
        (_, None) => Some(format!(
            "`{name}` depends on the tool `{needed}`: nothing may"
        )),
        (Some(layer), Some(lower)) if lower >= layer => Some(format!(
            "`{name}` (layer {layer}) depends on `{needed}` (layer {lower}): only smaller layers \
             are allowed; move the shared part down"
        )),
        (Some(_) | None, Some(_)) => None,
    }
}

fn check_reach(graph: &Graph, package: &Package, room: &Room) -> Vec<Violation> {
    if !room.pure {
        return Vec::new();
    }
    let reached = graph.reach(package);
    let forbidden = FORBIDDEN_CRATES
        .iter()
        .filter_map(|name| reached.get(*name));
    forbidden
        .map(|way| {
            let what = format!("`{}` is pure but reaches {}", room.name, way.join(" -> "));
            Violation::new(&manifest(room), 0, RULE_PURE, what)
        })
        .collect()
}

fn manifest(room: &Room) -> String {
    format!("{}/Cargo.toml", room.folder())
}

/// A dependency may have several kinds at once; `null` is the normal one.
fn is_normal(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("cargo's metadata has no list `{key}`"))
}

fn text(value: &Value, key: &str) -> Result<String> {
    let text = value[key]
        .as_str()
        .with_context(|| format!("cargo's metadata has no `{key}`"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOW: Room = Room {
        name: "low",
        layer: Some(1),
        pure: true,
    };
    const BESIDE: Room = Room {
        name: "beside",
        layer: Some(1),
        pure: true,
    };
    const HIGH: Room = Room {
        name: "high",
        layer: Some(5),
        pure: false,
    };
    const TOOL: Room = Room {
        name: "tool",
        layer: None,
        pure: true,
    };
    const ROOMS: [Room; 4] = [LOW, BESIDE, HIGH, TOOL];

    /// A workspace of the four rooms and the outside crates `tokio` and `hidden`, which needs
    /// `tokio`; each edge has a kind.
    fn graph(edges: &[(&str, &str, Option<&str>)]) -> Graph {
        let members = ["muster-low", "muster-beside", "muster-high", "muster-tool"];
        let all = [&members[..], &["tokio", "hidden"]].concat();
        let edges = [edges, &[("hidden", "tokio", None)]].concat();
        let node = |name: &str| {
            let deps: Vec<Value> = edges
                .iter()
                .filter(|(from, _, _)| *from == name)
                .map(|(_, to, kind)| json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] }))
                .collect();
            json!({ "id": name, "deps": deps })
        };
        let metadata = json!({
            "packages": all.iter().map(|n| json!({ "id": n, "name": n })).collect::<Vec<_>>(),
            "workspace_members": members,
            "resolve": { "nodes": all.iter().map(|name| node(name)).collect::<Vec<_>>() },
        });
        Graph::parse(&metadata).expect("it has every part")
    }

    fn rules(edges: &[(&str, &str, Option<&str>)]) -> Vec<&'static str> {
        check_graph(&graph(edges), &ROOMS)
            .iter()
            .map(|violation| violation.rule)
            .collect()
    }

    #[test]
    fn a_smaller_layer_is_allowed() {
        assert!(rules(&[("muster-high", "muster-low", None)]).is_empty());
        assert!(rules(&[("muster-tool", "muster-low", None)]).is_empty());
    }

    #[test]
    fn the_same_layer_is_refused() {
        assert_eq!(
            rules(&[("muster-low", "muster-beside", None)]),
            [RULE_LAYER]
        );
    }

    #[test]
    fn a_greater_layer_is_refused() {
        assert_eq!(rules(&[("muster-low", "muster-high", None)]), [RULE_LAYER]);
    }

    #[test]
    fn a_tool_is_refused_even_from_above() {
        assert_eq!(rules(&[("muster-high", "muster-tool", None)]), [RULE_LAYER]);
    }

    #[test]
    fn a_pure_tool_may_not_depend_on_io() {
        assert_eq!(rules(&[("muster-tool", "muster-high", None)]), [RULE_LAYER]);
    }

    #[test]
    fn what_only_tests_need_is_free() {
        assert!(rules(&[("muster-low", "muster-high", Some("dev"))]).is_empty());
        assert!(rules(&[("muster-low", "tokio", Some("dev"))]).is_empty());
    }

    #[test]
    fn a_pure_crate_may_not_reach_io_through_others() {
        let found = check_graph(&graph(&[("muster-low", "hidden", None)]), &ROOMS);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "`low` is pure but reaches hidden -> tokio");
        assert!(rules(&[("muster-high", "hidden", None)]).is_empty());
    }

    #[test]
    fn a_package_without_a_room_is_named() {
        let found = check_graph(&graph(&[]), &[LOW, BESIDE, HIGH]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].what.contains("`muster-tool` has no room"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_room_without_a_package_is_named() {
        let ghost = Room {
            name: "ghost",
            layer: Some(2),
            pure: true,
        };
        let found = check_graph(&graph(&[]), &[LOW, BESIDE, HIGH, TOOL, ghost]);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("`muster-ghost`"), "{}", found[0]);
    }
}
