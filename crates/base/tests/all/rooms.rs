//! Which module may know which, inside of the crates `node`, `server` and `sql`.
//!
//! * The files and directories that stand side by side in one directory import each other in no
//!   circle. `mod.rs` and the files beside it are one: a directory's children may use what it
//!   declares, and it uses them.
//! * The rooms of `node` (what stands side by side in `crates/node/src`) use each other as the
//!   table in `ARCHITECTURE.md` says, in which each room names rooms above it only.
//! * The folders of `sql` use those above them in their table there. Inside of a folder, files
//!   import each other in no circle, but for those that a second table there lists and explains.
//!
//! Imports are read from the text: every path outside of comments, strings and what is compiled for
//! tests only. A name that a module imports (`use`, with or without `pub`, `as` or `*`) stands for
//! what it imports, in the module and in paths of others that lead through it.

use crate::source::{code, is_name, root, sources, starts_name, tokens, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The row above the rooms of `node` in `ARCHITECTURE.md`.
const TABLE: &str = "| room of `node` | may use |";

/// The row above the folders of `sql` there.
const FOLDERS: &str = "| folder of `sql` | contents |";

/// The row above the circles of files in folders of `sql` there.
const TURNS: &str = "| folder of `sql` | files that use each other in turns |";

/// A module as the names that lead to it from the crate's root.
type Module = Vec<String>;

/// What names mean in a module.
#[derive(Default)]
struct Scope {
    /// What it declares itself.
    declared: BTreeSet<String>,
    /// What it imports: the name that it gives it, and the path from the crate's root.
    imported: BTreeMap<String, BTreeSet<Module>>,
    /// The same of imports inside of functions, which other modules do not see.
    local: BTreeMap<String, BTreeSet<Module>>,
    /// Of what it imports all names.
    globs: BTreeSet<Module>,
}

/// The modules of a crate, and what each of their files uses.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Module>,
    /// Of the modules, and of those inside of their files.
    scopes: BTreeMap<Module, Scope>,
    /// User, used.
    uses: BTreeSet<(Module, Module)>,
    /// Users of what another module only passes on from below the crate's root: such a path does
    /// not tell whom it uses.
    hidden: BTreeSet<(Module, String)>,
}

impl Crate {
    /// From files, by their paths below `src`, and their texts.
    fn new(files: &[(String, String)]) -> Crate {
        let modules: BTreeSet<Module> = files.iter().flat_map(|(path, _)| prefixes(&module_of(path))).collect();
        let mut of_crate = Crate { modules, ..Crate::default() };
        let mut mentioned = Vec::new();
        let codes: Vec<(Module, String)> =
            files.iter().map(|(path, text)| (module_of(path), without_tests(&code(text)) + &quoted_paths(text))).collect();
        let macros = macros(&codes);
        for (user, code) in codes {
            let mut paths = names_and_paths(&code, &user, &mut of_crate.scopes);
            let of_others = macros_used(&code).into_iter().filter_map(|name| macros.get(&name));
            // A file's own macro comes before another's of that name.
            paths.extend(of_others.filter(|modules| !modules.contains(&user)).flatten().cloned());
            mentioned.push((user, paths));
        }
        for (user, paths) in mentioned {
            for path in paths {
                of_crate.add(&user, &path, &mut BTreeSet::new());
            }
        }
        of_crate
    }

    /// Adds what a path, from the crate's root, uses: the module that it names, and what the names
    /// in it stand for there.
    fn add(&mut self, user: &Module, path: &[String], seen: &mut BTreeSet<Module>) {
        if !seen.insert(path.to_vec()) {
            return;
        }
        let used = prefixes(path).into_iter().rev().find(|prefix| self.modules.contains(prefix)).unwrap_or_default();
        // The root declares modules, and passes on what is in them.
        if used.is_empty() && !user.is_empty() && !path.is_empty() {
            self.hidden.insert((user.clone(), path.join("::")));
        }
        for further in self.meanings(path, Some(user)) {
            self.add(user, &further, seen);
        }
        if used != *user {
            self.uses.insert((user.clone(), used));
        }
    }

    /// What a path leads to by what the last module on it imports; in functions of the user's, too.
    fn meanings(&self, path: &[String], user: Option<&Module>) -> Vec<Module> {
        let Some(module) = prefixes(path).into_iter().rev().find(|prefix| self.scopes.contains_key(prefix)) else {
            return Vec::new();
        };
        let Some((name, rest)) = path[module.len()..].split_first() else { return Vec::new() };
        let scope = &self.scopes[&module];
        let local = scope.local.get(name).filter(|_| user.is_some_and(|user| module.starts_with(user)));
        let imported = scope.imported.get(name).into_iter().chain(local).flatten();
        // Another crate's name may be that of something in it.
        let is_other = |of: &&Module| !of.starts_with(&path[..=module.len()]);
        let mut found: Vec<Module> = imported.filter(is_other).map(|of| [of.as_slice(), rest].concat()).collect();
        if found.is_empty() && !scope.declared.contains(name) {
            let by_all_names = self.globbed(&module, &mut BTreeSet::new()).into_iter().filter(|of| self.has(of, name));
            found.extend(by_all_names.map(|of| [of.as_slice(), std::slice::from_ref(name), rest].concat()));
        }
        found
    }

    /// The modules of which a module imports all names, by way of others, too.
    fn globbed(&self, module: &Module, seen: &mut BTreeSet<Module>) -> BTreeSet<Module> {
        for glob in self.scopes.get(module).into_iter().flat_map(|scope| &scope.globs) {
            for of in self.modules_of(glob, &mut BTreeSet::new()) {
                if seen.insert(of.clone()) {
                    self.globbed(&of, seen);
                }
            }
        }
        seen.clone()
    }

    /// The modules that a path leads to; none, where it leads to a type.
    fn modules_of(&self, path: &Module, seen: &mut BTreeSet<Module>) -> Vec<Module> {
        if self.scopes.contains_key(path) || !seen.insert(path.clone()) {
            return vec![path.clone()];
        }
        let further = self.meanings(path, None);
        further.iter().flat_map(|path| self.modules_of(path, seen)).collect()
    }

    fn has(&self, module: &Module, name: &String) -> bool {
        let scope = self.scopes.get(module);
        scope.is_some_and(|scope| scope.declared.contains(name) || scope.imported.contains_key(name))
    }

    /// The children of a directory, and which of them each uses.
    fn siblings(&self, directory: &Module) -> BTreeMap<String, BTreeSet<String>> {
        let child = |module: &Module| module.strip_prefix(directory.as_slice())?.first().cloned();
        let mut graph: BTreeMap<String, BTreeSet<String>> =
            self.modules.iter().filter_map(child).map(|name| (name, BTreeSet::new())).collect();
        for (user, used) in &self.uses {
            if let (Some(user), Some(used)) = (child(user), child(used))
                && user != used
            {
                graph.entry(user).or_default().insert(used);
            }
        }
        graph
    }

    /// A line for each directory whose children import each other in a circle, with one of them.
    fn circles(&self) -> Vec<String> {
        let directories: BTreeSet<Module> = self.modules.iter().filter_map(|m| Some(m.split_last()?.1.to_vec())).collect();
        let line = |directory: &Module| {
            let circle = circle(&self.siblings(directory))?;
            Some(format!("in {:?}: {}", directory.join("::"), circle.join(" -> ")))
        };
        directories.iter().filter_map(line).collect()
    }
}

/// Files of one directory that use each other in turns: the directory, and their names.
type Turns = BTreeSet<(String, BTreeSet<String>)>;

impl Crate {
    /// All of them: in each directory, the largest sets of files each of which leads to all others.
    fn turns(&self) -> Turns {
        let directories: BTreeSet<Module> = self.modules.iter().filter_map(|m| Some(m.split_last()?.1.to_vec())).collect();
        let of = |directory: &Module| {
            let graph = self.siblings(directory);
            let reached: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|name| (name, reached(&graph, name))).collect();
            let with = |name: &String| {
                let is_both_ways = |other: &&&String| reached[**other].contains(name);
                reached[name].iter().filter(is_both_ways).map(|other| other.to_string()).collect::<BTreeSet<String>>()
            };
            let sets: BTreeSet<BTreeSet<String>> = graph.keys().map(with).filter(|set| !set.is_empty()).collect();
            sets.into_iter().map(|set| (directory.join("/"), set)).collect::<Vec<_>>()
        };
        directories.iter().flat_map(of).collect()
    }
}

/// What a name leads to.
fn reached<'g>(graph: &'g BTreeMap<String, BTreeSet<String>>, from: &String) -> BTreeSet<&'g String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(graph.get(name).into_iter().flatten());
        }
    }
    reached
}

/// The circles that the table allows.
fn allowed_turns(document: &str) -> Turns {
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|');
        let (folders, files) = (names(cells.next().unwrap_or_default()), names(cells.next().unwrap_or_default()));
        folders.into_iter().map(move |folder| (folder.trim_end_matches('/').to_string(), files.iter().cloned().collect()))
    };
    rows(document, TURNS).flat_map(row).collect()
}

/// What contradicts that table, a line each.
fn wrong_turns(of_crate: &Crate, allowed: &Turns) -> Vec<String> {
    let found = of_crate.turns();
    let line = |(folder, files): &(String, BTreeSet<String>)| {
        format!("{folder}/: {}", files.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    };
    let new = found.difference(allowed).map(|turns| format!("not in the table: {}", line(turns)));
    let gone = allowed.difference(&found).map(|turns| format!("no circle any more: {}", line(turns)));
    new.chain(gone).collect()
}

/// `replica/mod.rs` and `replica.rs` → `replica`; `lib.rs` → the root.
fn module_of(path: &str) -> Module {
    let mut names: Module = path.trim_end_matches(".rs").split('/').map(str::to_string).collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

/// A path's beginnings, the shortest first, the root and the whole included.
fn prefixes(path: &[String]) -> Vec<Module> {
    (0..=path.len()).map(|n| path[..n].to_vec()).collect()
}

/// A circle, if there is one: its first name once more at its end.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit<'a>(
        at: &'a String,
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<&'a String>,
        done: &mut BTreeSet<&'a String>,
    ) -> Option<Vec<String>> {
        if let Some(begin) = way.iter().position(|on_way| *on_way == at) {
            return Some(way[begin..].iter().copied().chain([at]).cloned().collect());
        }
        if !done.insert(at) {
            return None;
        }
        way.push(at);
        let found = graph.get(at).into_iter().flatten().find_map(|next| visit(next, graph, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|at| visit(at, graph, &mut Vec::new(), &mut done))
}

/// Whether the name at a place is one of what stands before it: a field, a method, or more of a
/// path. Behind `..` it begins an expression.
fn is_member(tokens: &[&str], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).map(|before| tokens[before]);
    before(1) == Some("::") || before(1) == Some(".") && before(2) != Some(".")
}

/// The paths that attributes of serde have in quotes, as code: `#[serde(with = "super::x")]`.
fn quoted_paths(text: &str) -> String {
    let attributes = text.split("#[serde(").skip(1).filter_map(|then| then.split_once(")]"));
    let quoted = attributes.flat_map(|(inside, _)| inside.split('"').skip(1).step_by(2));
    let is_path = |quoted: &&str| quoted.contains("::") && quoted.chars().all(|c| c == ':' || is_name(Some(&c)));
    quoted.filter(is_path).map(|path| format!("\nfn of_serde() {{ {path}() }}")).collect()
}

/// Which modules declare the macros of a crate. They are seen by all that comes after them, without
/// an import.
fn macros(codes: &[(Module, String)]) -> BTreeMap<String, BTreeSet<Module>> {
    let mut macros: BTreeMap<String, BTreeSet<Module>> = BTreeMap::new();
    for (module, code) in codes {
        let tokens = tokens(code);
        for three in tokens.windows(3).filter(|three| three[0] == "macro_rules" && three[1] == "!") {
            macros.entry(three[2].to_string()).or_default().insert(module.clone());
        }
    }
    macros
}

/// The macros that a file uses by their names alone.
fn macros_used(code: &str) -> BTreeSet<String> {
    let used = |two: &[&str]| two[1] == "!" && starts_name(two[0]) && two[0] != "macro_rules";
    tokens(code).windows(2).filter(|two| used(two)).map(|two| two[0].to_string()).collect()
}

/// All paths in a file's code, from the crate's root, and what names mean in its modules.
fn names_and_paths(code: &str, file: &Module, scopes: &mut BTreeMap<Module, Scope>) -> BTreeSet<Module> {
    const DECLARE: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod"];
    let tokens = tokens(code);
    let mut paths = BTreeSet::new();
    let has_globs = tokens.windows(2).any(|two| matches!(two, ["::" | "{" | ",", "*"]));
    let (mut at, mut depth) = (0, 0);
    // The modules around a place, and how deep in brackets what they declare is.
    let mut around = vec![(file.clone(), 0)];
    scopes.entry(file.clone()).or_default();
    while at < tokens.len() {
        let (module, inside) = around.last().expect("the file is around all");
        let inside = *inside;
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if depth < inside && around.len() > 1 {
                    around.pop();
                }
            }
            "use" => {
                let mut found = Vec::new();
                at = tree(&tokens, at + 1, module.clone(), &mut found);
                let scope = scopes.entry(module.clone()).or_default();
                for (path, name) in found {
                    paths.insert(path.clone());
                    match name.as_str() {
                        "*" => drop(scope.globs.insert(path)),
                        _ if depth == inside => drop(scope.imported.entry(name).or_default().insert(path)),
                        _ => drop(scope.local.entry(name).or_default().insert(path)),
                    }
                }
                continue;
            }
            word if DECLARE.contains(&word) && depth == inside => {
                let name = tokens.get(at + 1).map(|name| name.to_string()).unwrap_or_default();
                scopes.entry(module.clone()).or_default().declared.insert(name.clone());
                if word == "mod" && tokens.get(at + 2) == Some(&"{") {
                    around.push(([module.as_slice(), std::slice::from_ref(&name)].concat(), depth + 1));
                }
            }
            // A name by itself says something new where all names of a module are imported.
            word if starts_name(word) && !is_member(&tokens, at) && (has_globs || tokens.get(at + 1) == Some(&"::")) => {
                let mut found = Vec::new();
                tree(&tokens, at, module.clone(), &mut found);
                paths.extend(found.into_iter().map(|(path, _)| path));
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

/// Adds the paths of `a::b` or of `{a, b::{c, d}}` below a module. Returns the place behind it.
/// With each comes the name that it gets there, `*` for all names below it.
fn tree(tokens: &[&str], mut at: usize, mut path: Module, found: &mut Vec<(Module, String)>) -> usize {
    let begin = at;
    let mut new_name = None;
    loop {
        match tokens.get(at).copied() {
            Some("{") => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at = match tokens[at] {
                        name if matches!(name, "{" | "*") || starts_name(name) => tree(tokens, at, path.clone(), found),
                        _ => at + 1,
                    };
                }
                return at + 1;
            }
            Some("*") => new_name = Some("*".to_string()),
            Some("crate") if at == begin => path.clear(),
            Some("super") => drop(path.pop()),
            Some("self") => {}
            Some(name) if starts_name(name) => path.push(name.to_string()),
            _ => break,
        }
        at += 1;
        match tokens.get(at).copied() {
            Some("::") => at += 1,
            // The new name is no path.
            Some("as") => {
                new_name = tokens.get(at + 1).map(|name| name.to_string());
                at += 2;
                break;
            }
            _ => break,
        }
    }
    let name = new_name.or_else(|| path.last().cloned()).unwrap_or_default();
    found.push((path, name));
    at
}

/// The rooms of the table and what each may use, in its order.
fn table(document: &str) -> Vec<(String, BTreeSet<String>)> {
    let rows = rows(document, TABLE);
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|');
        let (rooms, used) = (names(cells.next().unwrap_or_default()), names(cells.next().unwrap_or_default()));
        rooms.into_iter().map(|room| (room, used.iter().cloned().collect())).collect::<Vec<_>>()
    };
    rows.flat_map(row).collect()
}

/// The names in a table's cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

/// The rows of the table with this head.
fn rows<'d>(document: &'d str, head: &'d str) -> impl Iterator<Item = &'d str> {
    document.lines().skip_while(move |line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'))
}

/// The folders of the table, each of which may use all above it.
fn folders(document: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut above = BTreeSet::new();
    let mut of_table = Vec::new();
    for row in rows(document, FOLDERS) {
        for name in names(row.trim_matches('|').split('|').next().unwrap_or_default()) {
            let name = name.trim_end_matches('/').trim_end_matches(".rs").to_string();
            of_table.push((name.clone(), above.clone()));
            above.insert(name);
        }
    }
    of_table
}

/// What contradicts the table, a line each.
fn violations(of_crate: &Crate, table: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut above: BTreeSet<&String> = BTreeSet::new();
    for (room, used) in table {
        wrong.extend(used.iter().filter(|u| !above.contains(u)).map(|u| format!("{room} names {u}, which is not above it")));
        above.insert(room);
    }
    let graph = of_crate.siblings(&Vec::new());
    wrong.extend(above.iter().filter(|room| !graph.contains_key(**room)).map(|room| format!("there is no {room}")));
    for (room, used) in &graph {
        match table.iter().find(|(name, _)| name == room) {
            None => wrong.push(format!("{room} is not in the table")),
            Some((_, may)) => wrong.extend(used.difference(may).map(|u| format!("{room} must not use {u}"))),
        }
    }
    let hidden = |(user, path): &(Module, String)| format!("{} uses crate::{path}: name its module", user.join("::"));
    wrong.extend(of_crate.hidden.iter().map(hidden));
    wrong
}

/// The modules of a crate.
fn read(name: &str) -> Crate {
    Crate::new(&sources(name))
}

fn planted(files: &[(&str, &str)]) -> Crate {
    Crate::new(&files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect::<Vec<_>>())
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    for name in ["node", "server"] {
        let of_crate = read(name);
        assert!(of_crate.uses.len() > 10, "the imports of {name} are seen: {:?}", of_crate.uses);
        assert_eq!(of_crate.circles(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_rooms_of_a_node_use_each_other_as_the_table_says() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let table = table(&document);
    assert!(table.len() > 5, "the table is found: {table:?}");
    assert_eq!(violations(&read("node"), &table), Vec::<String>::new());
}

#[test]
fn the_folders_of_sql_use_those_above_them() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let table = folders(&document);
    assert!(table.len() > 5, "the table is found: {table:?}");
    assert_eq!(violations(&read("sql"), &table), Vec::<String>::new());
    let planted = planted(&[("a.rs", "use crate::b::B;"), ("b/mod.rs", "")]);
    let of_two = folders(&format!("{FOLDERS}\n| --- | --- |\n| `a.rs` | x |\n| `b/` | `y` |\n"));
    assert_eq!(violations(&planted, &of_two), ["a must not use b"]);
}

#[test]
fn files_in_folders_of_sql_use_each_other_in_turns_where_the_table_says_so_only() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let allowed = allowed_turns(&document);
    assert!(!allowed.is_empty(), "the table is found");
    assert_eq!(wrong_turns(&read("sql"), &allowed), Vec::<String>::new());
}

#[test]
fn planted_turns_are_found() {
    let wrong = |row: &str, files: &[(&str, &str)]| {
        wrong_turns(&planted(files), &allowed_turns(&format!("{TURNS} why |\n| --- | --- | --- |\n{row}\n")))
    };
    let mut files = vec![
        ("a/mod.rs", "mod x; mod y; mod z;"),
        ("a/x.rs", "use super::y::Y;"),
        ("a/y.rs", "use crate::a::x::X; use super::z::Z;"),
        ("a/z.rs", ""),
        ("a/b/p.rs", "use super::q::Q;"),
        ("a/b/q.rs", ""),
    ];
    let row = "| `a/` | `y`, `x` | because of `z` |";
    assert_eq!(wrong(row, &files), Vec::<String>::new());
    assert_eq!(wrong("", &files), ["not in the table: a/: x, y"]);
    assert_eq!(wrong("| `a/` | `y`, `x`, `z` | |", &files), ["not in the table: a/: x, y", "no circle any more: a/: x, y, z"]);
    // One more file joins them, and two in a folder of the folder.
    files[3] = ("a/z.rs", "use super::x::X;");
    files[5] = ("a/b/q.rs", "use crate::a::b::p::P;");
    let found = ["not in the table: a/: x, y, z", "not in the table: a/b/: p, q", "no circle any more: a/: x, y"];
    assert_eq!(wrong(row, &files), found);
    // None is left.
    files.iter_mut().for_each(|file| file.1 = "");
    assert_eq!(wrong(row, &files), ["no circle any more: a/: x, y"]);
}

#[test]
fn a_planted_circle_is_found() {
    let circles = |files: &[(&str, &str)]| planted(files).circles();
    // Of two files, and of three by nested and relative paths.
    assert_eq!(circles(&[("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { crate::a::g() }")]), ["in \"\": a -> b -> a"]);
    let three = [("a.rs", "use crate::{x, b::{B, C}};"), ("b.rs", "use super::c::{self as d};"), ("c.rs", "use crate::a;")];
    assert_eq!(circles(&three), ["in \"\": a -> b -> c -> a"]);
    // Of two directories, by files that are in no circle themselves; and of files in one.
    let rooms = [("a/x.rs", "use crate::b::y::Y;"), ("a/z.rs", ""), ("b/y.rs", ""), ("b/w.rs", "use crate::a::z::Z;")];
    assert_eq!(circles(&rooms), ["in \"\": a -> b -> a"]);
    let inside = [("a/mod.rs", "mod x;"), ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use crate::a::x::X;")];
    assert_eq!(circles(&inside), ["in \"a\": x -> y -> x"]);
    // By names that a directory passes on, and by names of these.
    let mut passed = vec![
        ("a/mod.rs", "mod x; mod y; pub(crate) use x::X; pub use self::y::{Y, Z as W};"),
        ("a/x.rs", "use super::W;"),
        ("a/y.rs", "use super::X;"),
    ];
    assert_eq!(circles(&passed), ["in \"a\": x -> y -> x"]);
    passed[2] = ("a/y.rs", "use crate::b::Again;");
    passed.push(("b/mod.rs", "pub use super::a::X as Again;"));
    assert_eq!(circles(&passed), ["in \"\": a -> b -> a", "in \"a\": x -> y -> x"]);
    // Behind characters that look like the beginning of a string.
    let quotes =
        [("a.rs", "const Q: char = '\"'; use crate::b::B;"), ("b.rs", "fn f<'a>(x: &'a str) -> &'a str { crate::a::g(x) }")];
    assert_eq!(circles(&quotes), ["in \"\": a -> b -> a"]);
}

#[test]
fn a_planted_circle_by_other_names_is_found() {
    let of = |user: &str, parent: &str| {
        planted(&[("a/mod.rs", parent), ("a/x.rs", user), ("a/y.rs", "use super::x::X; pub struct Y;"), ("b.rs", "")]).circles()
    };
    let found = |user: &str, parent: &str| assert_eq!(of(user, parent), ["in \"a\": x -> y -> x"], "{user} {parent}");
    // By what the directory imports for itself, and by what it imports all of.
    found("fn f(y: super::Y) {}", "mod x; mod y; use y::Y;");
    found("use super::{Z, W};", "mod x; mod y; use self::y::Y as Z;");
    found("use super::Y;", "mod x; mod y; use y::*;\npub struct Z;");
    // By all names of the directory.
    found("use super::*; fn f(y: Y) {}", "mod x; mod y; use y::Y;");
    found("use super::*; fn f() { y::g() }", "mod x; mod y;");
    found("use crate::a::{self, *}; const Y: u8 = y::Y;", "mod x; mod y;");
    // By other names of modules, in an import, in a function, and inside of another module.
    found("use crate as k; fn f() { k::a::y::g() }", "mod x; mod y;");
    found("use super as s; fn f(y: s::y::Y) {}", "mod x; mod y;");
    found("fn f() { use crate::a; a::y::g() }", "mod x; mod y;");
    found("use self::super::y::Y;", "mod x; mod y;");
    found("use self as me; use super as s; fn f() { me::s::y::g() }", "mod x; mod y;");
    found("mod m { use super::super::y::Y; }", "mod x; mod y;");
    found("use {crate::b::B, super::y::Y};", "mod x; mod y;");
    found("use super::r#y::Y;", "mod x; mod r#y;");
    // Behind `..`, which is no field of anything.
    found("fn f() { for _ in 0..super::y::MAX {} }", "mod x; mod y;");
    found("fn f() { Z { a: 1, ..super::y::defaults() } }", "mod x; mod y;");
    // In an attribute's quotes.
    found("#[serde(with = \"super::y\")] struct Z;", "mod x; mod y;");
    // By a macro, which needs no import.
    let of_macro = |x: &str| {
        let y = "use super::x::X; macro_rules! m { () => {} }";
        planted(&[("a/mod.rs", "mod y; mod x;"), ("a/x.rs", x), ("a/y.rs", y)]).circles()
    };
    assert_eq!(of_macro("fn f() { m!() }"), ["in \"a\": x -> y -> x"]);
    assert_eq!(of_macro("macro_rules! m { () => {} } fn f() { m!() }"), Vec::<String>::new());
    // Names that mean something else there.
    let none = |user: &str, parent: &str| assert_eq!(of(user, parent), Vec::<String>::new(), "{user} {parent}");
    none("use super::*; fn f() { self.y.g() }", "mod x; mod y;");
    none("use super::Y;", "mod x; mod y; pub struct Y; fn f() { use y::Y; }");
    none("use super::Z;", "mod x; mod y; use y::*; pub struct Z;");
    none("mod m { use super::y::Y; } mod y { pub struct Y; }", "mod x; mod y;");
}

#[test]
fn what_is_compiled_for_tests_ends_where_it_does() {
    let circles = |a: &str| planted(&[("a.rs", a), ("b.rs", "use crate::a::A;")]).circles();
    let b = "crate::b::B";
    for marked in [
        &format!("struct S {{ #[cfg(test)] pub(crate) x: Map<u8, {b}>, y: u8 }}"),
        &format!("fn f() {{ #[cfg(test)] let x = if y {{ 1 }} else {{ {b} }}; }}"),
        &format!("fn f() {{ #[cfg(test)] if y {{ 1 }} else {{ {b} }} }}"),
        &format!("fn f() {{ #[cfg(test)] g(1, {b}); }}"),
        &format!("fn f(#[cfg(test)] x: &dyn Fn(u8) -> {b}) {{}}"),
        &format!("fn f() {{ match x {{ #[cfg(test)] A {{ y }} => {{ {b} }} _ => 1 }} }}"),
        &format!("#[cfg(test)]\n#[derive(Debug)]\nstruct S<A, B>(A, {b});"),
        &format!("#[cfg(all(test, unix))]\nconst X: B = A {{ x: 1 }}.by({b});"),
    ] {
        assert_eq!(circles(marked), Vec::<String>::new(), "{marked}");
    }
    for unmarked in [
        format!("struct S {{ #[cfg(test)] x: u8, y: {b} }}"),
        format!("struct S {{ #[cfg(test)] x: u8 }}\nuse {b};"),
        format!("enum S {{ #[cfg(test)] X {{ x: u8 }}, Y({b}) }}"),
        format!("fn f() {{ #[cfg(test)] if x {{ 1 }} {b}::g() }}"),
        format!("fn f() {{ #[cfg(test)] g(x) }}\nfn h() {{ {b} }}"),
        format!("fn f(#[cfg(test)] x: u8, y: {b}) {{}}"),
        format!("let s = S {{ #[cfg(test)] x: 1, y: {b} }};"),
        format!("match x {{ #[cfg(test)] A => {{ 1 }} _ => {b} }}"),
        format!("#[cfg(test)]\nfn f<A, B>(x: [A; 2]) -> B {{ 1 }}\nuse {b};"),
    ] {
        assert_eq!(circles(&unmarked), ["in \"\": a -> b -> a"], "{unmarked}");
    }
}

#[test]
fn what_is_no_import_makes_no_circle() {
    let none = |a: &str| {
        assert_eq!(planted(&[("a.rs", a), ("b.rs", "use crate::a::A;")]).circles(), Vec::<String>::new(), "{a}");
    };
    none("//! See [`crate::b`].\n/* crate::b::B */ const URL: &str = \"crate::b::B\"; const RAW: &str = r#\"\"crate::b::B\"#;");
    none("/* /* */ crate::b::B */ const BYTES: &[u8] = br#\"\"crate::b::B\"#;");
    none("#[cfg(test)]\nuse crate::b::B;\n#[cfg(test)]\nmod tests { fn f() { crate::b::g() } }");
    none("use other::b::B; use other::crate::b;");
    // A directory and its own files are one.
    let own = [("a/mod.rs", "mod x; use x::X; use crate::a::x::Y; pub struct A;"), ("a/x.rs", "use super::A; use crate::a::A;")];
    assert_eq!(planted(&own).circles(), Vec::<String>::new());
}

#[test]
fn a_planted_arrow_is_found() {
    let rooms = |document: &str, files: &[(&str, &str)]| violations(&planted(files), &table(document));
    let document = |rows: &str| format!("# Rooms\n\n{TABLE} files |\n| --- | --- | --- |\n{rows}\n\n| `z` | `a` |\n");
    let good = document("| `a` | – | x |\n| `b` | `a` | `y` |");
    assert_eq!(rooms(&good, &[("a.rs", ""), ("b/x.rs", "use crate::a::A;")]), Vec::<String>::new());
    assert_eq!(rooms(&good, &[("a.rs", "use crate::b::B;"), ("b.rs", "")]), ["a must not use b"]);
    assert_eq!(rooms(&good, &[("a.rs", ""), ("b.rs", ""), ("c.rs", "")]), ["c is not in the table"]);
    assert_eq!(rooms(&good, &[("a.rs", "")]), ["there is no b"]);
    // What the root passes on hides where it is.
    let through_root = [("lib.rs", "pub use b::B;"), ("a.rs", "use crate::B;"), ("b.rs", "")];
    assert_eq!(rooms(&good, &through_root), ["a must not use b", "a uses crate::B: name its module"]);
    let circle = document("| `a` | `b` | x |\n| `b` | `a` | `y` |");
    assert_eq!(rooms(&circle, &[("a.rs", ""), ("b.rs", "")]), ["a names b, which is not above it"]);
}
