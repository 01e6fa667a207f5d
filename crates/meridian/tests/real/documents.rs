//! The documents are true as far as a program can tell: what they link to exists, and so do the
//! files and the items they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the repository contains, as far as documents speak of it.
#[derive(Default)]
struct Known {
    /// Files and folders, relative to the root.
    paths: Vec<PathBuf>,
    /// Items, variants and fields: whose they are (a type's, a file's, a folder's), and what they
    /// are called.
    items: BTreeSet<(String, String)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files and folders below, but for what git ignores and hides.
fn walk(folder: &Path, relative: &Path, known: &mut Known, documents: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let entry = entry.expect("a readable entry");
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        let (path, below) = (entry.path(), relative.join(&name));
        if path.is_dir() {
            walk(&path, &below, known, documents);
        } else if path.extension().is_some_and(|e| e == "rs") {
            // A file that an editor has taken away meanwhile is none.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            known.items.extend(items(&below, &text));
        } else if path.extension().is_some_and(|e| e == "md") {
            documents.push(below.clone());
        }
        known.paths.push(below);
    }
}

/// What a file defines, as items of the type around it, and of the file and each folder above it.
fn items(file: &Path, text: &str) -> Vec<(String, String)> {
    let above = file.iter().filter_map(|part| part.to_str()).map(|part| part.trim_end_matches(".rs").to_string());
    let above: Vec<String> = above.collect();
    let (mut of_type, mut found) = (None, Vec::new());
    for line in text.lines() {
        if !line.is_empty() && !line.starts_with([' ', '}', '/', '#']) {
            of_type = type_of(line);
        }
        let Some(name) = defined(line) else { continue };
        found.extend(above.iter().chain(&of_type).map(|owner| (owner.clone(), name.clone())));
    }
    found
}

/// The type that what is indented below such a line belongs to.
fn type_of(line: &str) -> Option<String> {
    // Without generics.
    let mut depth = 0;
    let bare: String = line
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '<');
            let is_outside = depth == 0;
            depth -= i32::from(*c == '>');
            is_outside
        })
        .collect();
    let words: Vec<&str> = bare.split_whitespace().collect();
    let begins = words.iter().position(|word| ["impl", "trait", "enum", "struct"].contains(word))?;
    let of_trait = words.iter().position(|word| *word == "for");
    let name = words[of_trait.unwrap_or(begins) + 1..].iter().find(|word| **word != "dyn")?;
    Some(name.rsplit("::").next()?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// The item, variant or field that a line of Rust defines; also what is not one, which only makes
/// the test more lenient.
fn defined(line: &str) -> Option<String> {
    const BEFORE: &[&str] = &[
        "pub",
        "pub(crate)",
        "pub(super)",
        "async",
        "const",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "static",
        "mod",
        "use",
        "macro_rules!",
    ];
    let word = line.split_whitespace().find(|w| !BEFORE.contains(w))?;
    let name: String = word.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// What is between single backticks, outside of fenced blocks.
fn code_spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// The targets of relative links.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|t| t.split('#').next().unwrap_or_default()).filter(|t| !t.is_empty() && !t.contains("://")).collect()
}

fn is_path(span: &str) -> bool {
    let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let is_file = [".rs", ".md", ".toml"].iter().any(|e| span.ends_with(e) && span.len() > e.len());
    is_plain && !span.starts_with('/') && (is_file || (span.ends_with('/') && span.len() > 1))
}

/// `Type::function` and its like: names joined by `::`, perhaps with arguments.
fn item(span: &str) -> Option<(&str, &str)> {
    let bare = span.split(['(', '<']).next().unwrap_or_default();
    let is_name = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_foreign = ["std::", "tokio::"].iter().any(|p| bare.starts_with(p));
    let (path, name) = bare.rsplit_once("::")?;
    let owner = path.rsplit("::").next()?;
    (bare.split("::").all(is_name) && !is_foreign).then_some((owner, name))
}

/// What a document says that is not so, one line each.
fn untrue(document: &Path, text: &str, known: &Known) -> Vec<String> {
    let folder = document.parent().unwrap_or(Path::new(""));
    let is_there = |path: &Path| known.paths.iter().any(|p| p.ends_with(path));
    let mut found = Vec::new();
    for link in links(text) {
        if !root().join(folder).join(link).exists() {
            found.push(format!("{}: links to {link}", document.display()));
        }
    }
    for span in code_spans(text) {
        let is_missing = match item(span) {
            Some((owner, name)) => !known.items.contains(&(owner.into(), name.into())),
            None => is_path(span) && !is_there(Path::new(span.trim_start_matches("../"))),
        };
        if is_missing {
            found.push(format!("{}: names `{span}`", document.display()));
        }
    }
    found
}

#[test]
fn documents_name_only_what_exists() {
    let (mut known, mut documents) = (Known::default(), Vec::new());
    walk(&root(), Path::new(""), &mut known, &mut documents);
    assert!(documents.contains(&PathBuf::from("ARCHITECTURE.md")) && documents.len() >= 7, "{documents:?}");
    let mut found = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(root().join(&document)).expect("a document");
        found.extend(untrue(&document, &text, &known));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn an_untrue_document_is_found() {
    let file = Path::new("crates/node/src/txn.rs");
    let text =
        "pub struct Txn {\n    at: u64,\n}\nimpl<T> Transaction for Txn {\n    async fn commit(&self) {}\n}\npub fn other() {}\n";
    let known = Known { paths: vec![file.into()], items: items(file, text).into_iter().collect() };
    let found = |text: &str| untrue(Path::new("A.md"), text, &known).len();
    assert_eq!(found("`Txn::commit`, in `node/src/txn.rs` and `txn.rs`, calls `std::mem::take`. [Licence](LICENSE#top)"), 0);
    assert_eq!(found("`Txn::abort` is gone"), 1);
    assert_eq!(found("`Txn::at`, `node::Txn`, `txn::other`, `node::txn::other`"), 0);
    assert_eq!(found("`Txn::other` and `Gone::commit` are nobody's"), 2);
    assert_eq!(found("see `node/src/gone.rs`, or `gone/`"), 2);
    assert_eq!(found("[here](docs/nowhere.md)"), 1);
    assert_eq!(found("```\n`Txn::abort`\n```"), 0);
}
