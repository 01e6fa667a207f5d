//! The list of the rooms of `node` in `ARCHITECTURE.md` names every file of each, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The line above the list.
const HEAD: &str = "What is where:";

/// Files and folders of a room, but for `mod.rs`.
fn files(room: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(room).expect("a room is a folder").map(|entry| entry.expect("an entry"));
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a name");
        if entry.path().is_dir() { format!("{name}/") } else { name }
    };
    entries.map(name).filter(|name| name != "mod.rs").collect()
}

/// The list's items: a room, and what is between backticks in its text.
fn rooms(document: &str) -> Vec<(String, BTreeSet<String>)> {
    let list = document.lines().skip_while(|line| *line != HEAD).skip(2);
    let list = list.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let items = list.split("- `").skip(1).filter_map(|item| item.split_once('`'));
    items.map(|(room, text)| (room.to_string(), text.split('`').skip(1).step_by(2).map(str::to_string).collect())).collect()
}

/// What the list of a room lacks. A folder's files may be named instead, and a file beside its
/// folder of the same name stands for both.
fn unnamed(files: &BTreeSet<String>, named: &BTreeSet<String>) -> Vec<String> {
    let is_named = |file: &&String| {
        let folder = file.strip_suffix('/');
        let in_folder = |name: &String| folder.is_some_and(|folder| name.starts_with(&format!("{folder}/")));
        let beside = folder.is_some_and(|folder| files.contains(&format!("{folder}.rs")));
        named.contains(*file) || named.iter().any(in_folder) || beside
    };
    files.iter().filter(|file| !is_named(file)).cloned().collect()
}

/// The names of all files below a folder.
fn below(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("an entry")) {
        match entry.path().is_dir() {
            true => names.extend(below(&entry.path())),
            false => drop(names.insert(entry.file_name().into_string().expect("a name"))),
        }
    }
    names
}

/// Files that the list of a room names, and that are not there.
fn misplaced(files: &BTreeSet<String>, named: &BTreeSet<String>) -> Vec<String> {
    let of_file = |name: &&String| name.ends_with(".rs") && !files.contains(name.rsplit('/').next().unwrap_or(name));
    named.iter().filter(of_file).cloned().collect()
}

#[test]
fn a_file_of_another_room_is_found() {
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(misplaced(&set(&["a.rs", "b.rs"]), &set(&["a.rs", "x/b.rs", "c.rs", "d/", "f"])), ["c.rs"]);
}

#[test]
fn every_file_of_a_node_is_in_the_list() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the document");
    let listed = rooms(&document);
    let source = root.join("crates/node/src");
    let mut problems = Vec::new();
    for entry in files(&source).iter().filter_map(|entry| entry.strip_suffix('/')) {
        match listed.iter().find(|(room, _)| room == entry) {
            Some((room, named)) => {
                problems.extend(unnamed(&files(&source.join(room)), named).iter().map(|file| format!("{room}: {file}")));
                let elsewhere = misplaced(&below(&source.join(room)), named);
                problems.extend(elsewhere.iter().map(|file| format!("{room} has no {file}")));
            }
            None => problems.push(format!("the room {entry}")),
        }
    }
    assert!(problems.is_empty(), "ARCHITECTURE.md does not say what is in\n{}", problems.join("\n"));
}

#[test]
fn a_file_that_is_not_named_is_found() {
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    let listed = rooms("What is where:\n\n- `a`: `b.rs` is b;\n  `c/` is c.\n- `d`: d.\n\nThe end `e.rs`.\n");
    assert_eq!(listed, [("a".to_string(), set(&["b.rs", "c/"])), ("d".to_string(), set(&[]))]);
    assert_eq!(unnamed(&set(&["b.rs", "b/", "c/", "f.rs"]), &listed[0].1), ["f.rs"]);
    assert_eq!(unnamed(&set(&["rpc/"]), &set(&["rpc/serving.rs"])), [] as [&str; 0]);
}
