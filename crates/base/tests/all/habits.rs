//! What files of certain crates leave to others.
//!
//! * Planted bugs are named in the files that declare the rules, in tests, and in the simulator.
//! * A node opens files, and starts programs, through its runtime.
//! * `node` asks a transaction engine about transactions through `region::Primary`.
//! * A module's file is where its name says, and a crate has one name: what would hide an import
//!   from `rooms.rs` is not used.
//! * No crate passes on names of another.

use crate::source::{code, is_name, root, sources, starts_name, tokens, without_tests};
use std::collections::BTreeSet;
use std::fs;

/// Which of these files name planted bugs, or break a rule.
fn planters(files: &[(String, String)]) -> Vec<String> {
    let plants = |text: &str| {
        // The root of a crate passes the names on.
        let code =
            without_tests(&code(text)).lines().filter(|line| !line.trim().starts_with("pub use")).collect::<Vec<_>>().join("\n");
        tokens(&code).contains(&"PlantedBug") || code.contains("Rules::without(")
    };
    // At the root of a crate, or of what has its own rules in it.
    let declares = |path: &str| path == "rules.rs" || path == "majority/rules.rs";
    files.iter().filter(|(path, text)| !declares(path) && plants(text)).map(|(path, _)| path.clone()).collect()
}

#[test]
fn only_rules_and_tests_name_planted_bugs() {
    let crates = fs::read_dir(root().join("crates")).expect("the crates are there");
    let names = crates.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut seen = 0;
    for name in names.filter(|name| name != "sim") {
        let files = sources(&name);
        seen += files.iter().filter(|(path, text)| path.ends_with("rules.rs") && code(text).contains("rules! {")).count();
        assert_eq!(planters(&files), Vec::<String>::new(), "{name}");
    }
    assert!(seen >= 5, "the rules of {seen} crates are seen");
    let file = |path: &str, text: &str| (path.to_string(), text.to_string());
    let wrong = [
        file("rules.rs", "enum PlantedBug {}"),
        file("lib.rs", "pub use rules::{PlantedBug, Rules};"),
        file("a.rs", "// PlantedBug\n#[cfg(test)]\nmod tests { use PlantedBug; }"),
        file("b.rs", "if has(PlantedBug::X) {}"),
        file("c.rs", "let rules = Rules::without(bug);"),
    ];
    assert_eq!(planters(&wrong), ["b.rs", "c.rs"]);
}

/// What opens files, looks at them, or starts programs.
const OPENS: [&str; 8] = ["fs", "OpenOptions", "fjall", "read_dir", "canonicalize", "memmap2", "Mmap", "Command"];

/// What does so as a function of a path or a file.
const LOOKS: [&str; 11] = [
    "exists",
    "metadata",
    "is_file",
    "is_dir",
    "is_symlink",
    "try_exists",
    "symlink_metadata",
    "read_link",
    "sync_all",
    "sync_data",
    "set_len",
];

/// What does so as a function of the system.
const OF_THE_SYSTEM: [&str; 8] = ["open", "openat", "creat", "fsync", "fdatasync", "mmap", "unlink", "rename"];

/// Which of these files open files by themselves, or hold a thread up.
fn that_open_files(files: &[(String, String)]) -> Vec<String> {
    let opens = |text: &str| {
        let code = without_tests(&code(text));
        let tokens = tokens(&code);
        let looks = |four: &[&str]| {
            let is_call = matches!(four, [".", _, "(", ")"] | ["Path" | "PathBuf" | "File", "::", _, "(" | ")" | ","]);
            is_call && LOOKS.iter().any(|word| four[1] == *word || four[2] == *word)
        };
        let asks = |three: &[&str]| matches!(three, ["libc", "::", of] if OF_THE_SYSTEM.contains(of));
        OPENS.iter().any(|word| tokens.contains(word))
            || tokens.windows(4).any(looks)
            || tokens.windows(3).any(|three| asks(three) || three == ["thread", "::", "sleep"])
    };
    // `testing.rs` is a module of tests.
    files.iter().filter(|(path, text)| path != "testing.rs" && opens(text)).map(|(path, _)| path.clone()).collect()
}

/// The store, certificates, a pod's memory and the program itself have files that are not the
/// node's log, and say so. In `server` two files do: the runtime, and what is beside it.
#[test]
fn the_files_of_a_node_are_opened_through_its_runtime() {
    for name in ["base", "commit", "escrow", "forecast", "host", "node", "placement", "raft", "region", "sql", "workload"] {
        assert_eq!(that_open_files(&sources(name)), Vec::<String>::new(), "{name}");
    }
    let mut of_server = that_open_files(&sources("server"));
    of_server.sort();
    assert_eq!(of_server, ["files.rs", "machine.rs"]);
    let file = |path: &str, text: &str| (path.to_string(), text.to_string());
    let wrong = [
        file("a.rs", "fn f() { std::fs::write(a, b) }"),
        file("b.rs", "use tokio::fs::{read, write};"),
        file("c.rs", "// std::fs\n#[cfg(test)]\nmod tests { use std::fs; }"),
        file("d.rs", "use std::{io, fs};"),
        file("e.rs", "fn f(exists: bool, metadata: &Metadata) { exists }"),
        file("f.rs", "fn f(path: &Path) -> bool { path.exists() }"),
        file("g.rs", "fn f() { std::thread::sleep(x) }"),
        file("h.rs", "let x = fjall::Config::new(y);"),
        file("i.rs", "fn f(path: &Path) -> bool { path . is_file ( ) }"),
        file("j.rs", "fn f(paths: I) { paths.any(Path::exists) }"),
        file("k.rs", "fn f(path: &Path) -> bool { Path::is_dir(path) }"),
        file("l.rs", "fn f() { unsafe { libc::open(x, 0) } }"),
        file("m.rs", "use std::process::Command;"),
        file("n.rs", "fn f(file: &File) { file.sync_data() }"),
        file("o.rs", "let map = unsafe { Mmap::map(&file) };"),
        file("p.rs", "fn f(is_file: bool) { libc::getrlimit(x); query.exists(y) }"),
    ];
    let found = ["a.rs", "b.rs", "d.rs", "f.rs", "g.rs", "h.rs", "i.rs", "j.rs", "k.rs", "l.rs", "m.rs", "n.rs", "o.rs"];
    assert_eq!(that_open_files(&wrong), found);
}

/// Which of these files pass on names of another crate of ours, by which a third would use it
/// without saying so.
fn passers(files: &[(String, String)]) -> Vec<String> {
    let passes = |text: &str| {
        let code = without_tests(&code(text));
        let tokens = tokens(&code);
        let is_ours = |word: &str| word.starts_with("meridian_");
        let statements: Vec<&[&str]> = tokens.split(|word| *word == ";").collect();
        // What the file itself imports: `use meridian_x::y;`.
        let imports =
            statements.iter().filter_map(|words| words.iter().rposition(|word| *word == "use").map(|at| &words[at + 1..]));
        let imported: BTreeSet<&str> = imports
            .filter(|path| path.iter().any(|word| is_ours(word)))
            .flatten()
            .copied()
            .filter(|word| starts_name(word))
            .collect();
        statements.iter().any(|words| {
            let visible = words.windows(2).position(|two| two[0] == "pub" && matches!(two[1], "use" | "type" | "extern"));
            // `pub(crate)` is no other crate's.
            let Some(then) = visible.map(|at| &words[at + 1..]) else { return false };
            let of_an_import = || then[0] == "use" && then.get(1).is_some_and(|first| imported.contains(first));
            then.iter().any(|word| is_ours(word)) || of_an_import()
        })
    };
    files.iter().filter(|(_, text)| passes(text)).map(|(path, _)| path.clone()).collect()
}

#[test]
fn a_crate_passes_on_no_names_of_another() {
    let crates = fs::read_dir(root().join("crates")).expect("the crates are there");
    for name in crates.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")) {
        assert_eq!(passers(&sources(&name)), Vec::<String>::new(), "{name}");
    }
    let file = |path: &str, text: &str| (path.to_string(), text.to_string());
    let wrong = [
        file("a.rs", "pub use meridian_base as base;"),
        file("b.rs", "pub use {crate::x, meridian_sql::env};"),
        file("c.rs", "pub(crate) use meridian_base::Error; use meridian_sql::session; pub use crate::x;"),
        file("d.rs", "pub use meridian_store::Backend;"),
        file("e.rs", "use meridian_base::key;\npub use key::KeyRange;"),
        file("f.rs", "fn f() {}\npub type Key = meridian_base::Key;"),
        file("g.rs", "pub extern crate meridian_base;"),
        file("h.rs", "use meridian_base::Key; pub type Keys = Vec<Key>; pub use crate::key::x; pub use rows::Row;"),
    ];
    assert_eq!(passers(&wrong), ["a.rs", "b.rs", "d.rs", "e.rs", "f.rs", "g.rs"]);
}

/// What `region::Primary` does, as functions of an engine.
const OF_A_PRIMARY: [&str; 12] = [
    "fresh_snapshot",
    "read_only_snapshot",
    "check_read",
    "read_gate",
    "move_forward",
    "certify",
    "prepare",
    "decide",
    "read_round",
    "closed_target",
    "applied",
    "certify_part",
];

/// What else in `node` has a function of such a name.
const OTHERS: [&str; 9] = ["Primary", "primary", "self", "state", "store", "participant", "hook", "host", "replica"];

/// Calls of these functions past the interface: of anything but it and the others.
fn past_the_interface(files: &[(String, String)]) -> Vec<String> {
    let calls = |text: &str| {
        let code = without_tests(&code(text)).split_whitespace().collect::<String>();
        let mut found = Vec::new();
        for f in OF_A_PRIMARY {
            for of in [".", "::"] {
                let call = format!("{of}{f}(");
                let before = code.match_indices(&call).map(|(at, _)| code[..at].trim_end_matches("()"));
                let receivers = before.map(|before| before.rsplit(|c| !is_name(Some(&c))).next().unwrap_or_default());
                found.extend(receivers.filter(|receiver| !OTHERS.contains(receiver)).map(|receiver| format!("{receiver}{call}")));
            }
        }
        found
    };
    files.iter().flat_map(|(path, text)| calls(text).into_iter().map(move |call| format!("{path}: {call}"))).collect()
}

#[test]
fn a_node_asks_an_engine_about_transactions_through_its_interface() {
    assert_eq!(past_the_interface(&sources("node")), Vec::<String>::new());
    let wrong = "let x = term.engine.certify(request); engine.tick(); Engine::decide(&mut term.engine, outcome);
        let e = &mut term.engine; e.read_gate(x); term.primary().applied(y); self.engine()
            .prepare(z)";
    let found = ["a.rs: e.read_gate(", "a.rs: engine.certify(", "a.rs: engine.prepare(", "a.rs: Engine::decide("];
    let mut calls = past_the_interface(&[("a.rs".to_string(), wrong.to_string())]);
    calls.sort_by_key(|call| call.to_lowercase().replace("::", "~"));
    assert_eq!(calls, found);
}

/// What leads around the reading of imports.
const DETOURS: [&str; 3] = ["extern crate", "#[path", "include!("];

/// Which of these files have one.
fn detours(files: &[(String, String)]) -> Vec<String> {
    let line = |path: &str, text: &str| {
        let words = code(text).split_whitespace().collect::<Vec<_>>().join(" ").replace("# [", "#[").replace("[ ", "[");
        let mut used: Vec<&str> = DETOURS.into_iter().filter(|detour| words.contains(detour)).collect();
        let of_conditions = words.split("cfg_attr").skip(1).filter_map(|then| then.split_once(']'));
        if of_conditions.into_iter().any(|(attributes, _)| tokens(attributes).windows(2).any(|two| two == ["path", "="])) {
            used.push("cfg_attr(path)");
        }
        used.into_iter().map(|detour| format!("{path}: {detour}")).collect::<Vec<_>>()
    };
    files.iter().flat_map(|(path, text)| line(path, text)).collect()
}

#[test]
fn nothing_leads_around_the_reading_of_imports() {
    for name in ["node", "server", "sql"] {
        assert_eq!(detours(&sources(name)), Vec::<String>::new(), "{name}");
    }
    let file = |path: &str, text: &str| (path.to_string(), text.to_string());
    let wrong = [
        file("a.rs", "extern  crate self as me;"),
        file("b.rs", "# [ path = \"c.rs\" ] mod d;"),
        file("c.rs", "// #[path]\nconst TEXT: &str = include_str!(\"x\");"),
        file("d.rs", "include!(\"a.rs\");"),
        file("e.rs", "#[cfg_attr(unix, path = \"x.rs\")] mod y; #[cfg_attr(test, derive(Debug))] struct S;"),
    ];
    assert_eq!(detours(&wrong), ["a.rs: extern crate", "b.rs: #[path", "d.rs: include!(", "e.rs: cfg_attr(path)"]);
}
