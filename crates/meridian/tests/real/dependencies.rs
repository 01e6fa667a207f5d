//! Which crate may know which: the table of the architecture, held against `cargo metadata`.
//!
//! An edge that is missing there is a decision: add it to `ARCHITECTURE.md`, and with its reason to
//! `docs/design/differences.md`. The same goes for a third-party dependency and its line
//! in `docs/dependencies.md`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The row above the crates in `ARCHITECTURE.md`.
const TABLE: &str = "| crate | may use |";

/// Crate → what it may use.
type MayUse = BTreeMap<String, BTreeSet<String>>;

/// The table of a document.
fn may_use(document: &str) -> MayUse {
    let names = |cell: &str| -> Vec<String> {
        cell.split(',').map(|name| name.trim().trim_matches('`').to_string()).filter(|name| name != "–").collect()
    };
    let rows = document.lines().skip_while(|line| *line != TABLE).skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|');
        let (crates, used) = (names(cells.next().unwrap_or_default()), names(cells.next().unwrap_or_default()));
        crates.into_iter().map(|name| (name, used.iter().cloned().collect())).collect::<Vec<_>>()
    };
    rows.flat_map(row).collect()
}

/// What only tests may use: a protocol's model runs the real engine, not an imitation of it.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    ("commit", &["region"]),
    // A simulated pod's clients write down what they see, as all clients do.
    ("host", &["workload"]),
    // What holds on to formats.
    ("base", &["fixtures"]),
    ("raft", &["fixtures"]),
    ("region", &["fixtures"]),
    ("store", &["fixtures"]),
    ("escrow", &["fixtures"]),
    ("pki", &["fixtures"]),
    ("sql", &["fixtures"]),
    ("node", &["fixtures"]),
    // Nodes and messages that are not as they should be.
    ("meridian", &["region", "store"]),
];

/// Protocols: no async, threads, clocks or sockets. Of others' code they get bytes, formats and
/// nothing that acts.
const PURE: &[&str] = &["region", "commit", "escrow", "placement", "regex"];
const PURE_MAY_USE: &[&str] = &["bytes", "postcard", "serde"];

/// A dependency of one of our crates, as a manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    /// `to` is a crate of this workspace.
    is_ours: bool,
    /// For tests, examples and benches only.
    is_dev: bool,
    /// Lets the rules of the protocols be broken (`base/src/rules.rs`).
    has_lab: bool,
}

/// `meridian-node` → `node`; the binary's crate is just `meridian`.
fn short(name: &str) -> &str {
    name.strip_prefix("meridian-").unwrap_or(name)
}

fn edges(metadata: &Value) -> Vec<Edge> {
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let mut edges = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().expect("a package lists its dependencies") {
            edges.push(Edge {
                from: short(package["name"].as_str().expect("a name")).to_string(),
                to: short(dependency["name"].as_str().expect("a name")).to_string(),
                is_ours: dependency["path"].is_string(),
                is_dev: dependency["kind"] == "dev",
                has_lab: dependency["features"].as_array().is_some_and(|features| features.iter().any(|f| f == "lab")),
            });
        }
    }
    edges
}

/// What is wrong with these edges, one line each. Dev-dependencies between our crates obey the same
/// table, but for `TESTS_MAY_USE`.
fn violations(may_use: &MayUse, edges: &[Edge]) -> Vec<String> {
    let for_tests =
        |e: &Edge| e.is_dev && TESTS_MAY_USE.iter().any(|(from, may)| *from == e.from && may.contains(&e.to.as_str()));
    let wrong = |e: &&Edge| match (e.is_ours, may_use.get(&e.from)) {
        (_, None) => true,
        (true, Some(may)) => !may.contains(&e.to) && !for_tests(e),
        (false, Some(_)) => PURE.contains(&e.from.as_str()) && !e.is_dev && !PURE_MAY_USE.contains(&e.to.as_str()),
    };
    edges.iter().filter(wrong).map(|e| format!("{} must not use {}", e.from, e.to)).collect()
}

/// What the table allows, and no crate does.
fn unused(may_use: &MayUse, edges: &[Edge]) -> Vec<String> {
    let all = may_use.iter().flat_map(|(from, may)| may.iter().map(move |to| (from, to)));
    let is_used = |from: &str, to: &str| edges.iter().any(|e| e.is_ours && !e.is_dev && e.from == from && e.to == to);
    all.filter(|(from, to)| !is_used(from, to)).map(|(from, to)| format!("{from} does not use {to}")).collect()
}

/// Crates other than the simulator that can break a rule when nothing is tested.
fn breakers(edges: &[Edge]) -> Vec<String> {
    edges.iter().filter(|e| e.has_lab && !e.is_dev && e.from != "sim").map(|e| e.from.clone()).collect()
}

/// Third-party crates without a line in the table of dependencies.
fn undocumented(edges: &[Edge], table: &str) -> BTreeSet<String> {
    let has_row = |name: &str| table.lines().any(|l| l.starts_with(&format!("| `{name}`")));
    edges.iter().filter(|e| !e.is_ours && !has_row(&e.to)).map(|e| e.to.clone()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON")
}

#[test]
fn crates_know_only_what_the_table_allows() {
    let edges = edges(&metadata());
    assert!(edges.iter().any(|e| e.from == "node" && e.to == "raft" && e.is_ours), "the workspace's own edges are seen");
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let may_use = may_use(&document);
    assert_eq!(violations(&may_use, &edges), Vec::<String>::new());
    assert_eq!(unused(&may_use, &edges), Vec::<String>::new());
}

#[test]
fn only_the_simulator_and_tests_can_break_a_rule() {
    let edges = edges(&metadata());
    assert!(edges.iter().any(|e| e.from == "sim" && e.has_lab), "the feature is seen");
    assert_eq!(breakers(&edges), Vec::<String>::new());
    let wrong = Edge { from: "node".into(), to: "base".into(), is_ours: true, is_dev: false, has_lab: true };
    assert_eq!(breakers(&[wrong.clone(), Edge { is_dev: true, ..wrong }]), ["node"]);
}

#[test]
fn every_dependency_has_its_line() {
    let table = std::fs::read_to_string(root().join("docs/dependencies.md")).expect("docs/dependencies.md");
    let missing = undocumented(&edges(&metadata()), &table);
    assert!(missing.is_empty(), "no line in docs/dependencies.md: {missing:?}");
}

#[test]
fn a_wrong_edge_is_found() {
    let dependency = |name: &str, path: bool, kind: Value| match path {
        true => serde_json::json!({ "name": name, "kind": kind, "path": "somewhere" }),
        false => serde_json::json!({ "name": name, "kind": kind }),
    };
    let document = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let may_use = may_use(&document);
    let found = |from: &str, dependency: Value| {
        violations(&may_use, &edges(&serde_json::json!({ "packages": [{ "name": from, "dependencies": [dependency] }] })))
    };
    // A layer calls only downwards, in builds, build scripts and tests.
    for kind in [Value::Null, "build".into(), "dev".into()] {
        assert_eq!(found("meridian-store", dependency("meridian-sql", true, kind)), ["store must not use sql"]);
    }
    assert_eq!(found("meridian-sql", dependency("meridian-node", true, Value::Null)), ["sql must not use node"]);
    assert_eq!(found("meridian", dependency("meridian-store", true, Value::Null)), ["meridian must not use store"]);
    // Protocols never import one another, nor anything that acts; their tests may.
    assert_eq!(found("meridian-escrow", dependency("meridian-commit", true, Value::Null)), ["escrow must not use commit"]);
    assert_eq!(found("meridian-region", dependency("tokio", false, Value::Null)), ["region must not use tokio"]);
    assert!(found("meridian-region", dependency("proptest", false, "dev".into())).is_empty());
    assert_eq!(found("meridian-commit", dependency("meridian-region", true, Value::Null)), ["commit must not use region"]);
    assert!(found("meridian-commit", dependency("meridian-region", true, "dev".into())).is_empty());
    // A crate that the table does not know.
    assert_eq!(found("meridian-extras", dependency("bytes", false, Value::Null)), ["extras must not use bytes"]);
    assert!(found("meridian-node", dependency("meridian-raft", true, Value::Null)).is_empty());
    // One that is allowed for nothing.
    let one = BTreeMap::from([("a".to_string(), BTreeSet::from(["b".to_string()]))]);
    assert_eq!(unused(&one, &[]), ["a does not use b"]);
}

#[test]
fn a_dependency_without_a_line_is_found() {
    let edge = |to: &str| Edge { from: "node".into(), to: to.into(), is_ours: false, is_dev: false, has_lab: false };
    let table = "| crate | for |\n| --- | --- |\n| `bytes` | rows |\n";
    assert_eq!(undocumented(&[edge("bytes"), edge("left-pad")], table), BTreeSet::from(["left-pad".to_string()]));
}
