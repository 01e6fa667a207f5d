//! Comments and documents fit into 100 columns.
//!
//! Tables, drawings, listings and single words (addresses) have the width that they need.

use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;

/// The text of a comment, also of one behind code, or of a line of a document.
fn prose(line: &str, is_code: bool) -> Option<&str> {
    if !is_code {
        return Some(line);
    }
    let begins = match line.trim_start().starts_with("//") {
        true => line.find("//"),
        // A quote before it may open a text that it is in.
        false => line.find(" // ").filter(|at| !line[*at..].contains('"')).map(|at| at + 1),
    };
    Some(line[begins?..].trim_start_matches(['/', '!']).trim_start())
}

/// Whether it could be broken: a word may be as wide as it is.
fn is_breakable(line: &str, prose: &str) -> bool {
    let word = prose.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default();
    word < COLUMNS / 2 || line.chars().count() - word > COLUMNS
}

/// The numbers of lines that are too long.
fn wide(text: &str, is_code: bool) -> Vec<usize> {
    let mut is_listing = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(prose) = prose(line, is_code) else {
            is_listing = false;
            continue;
        };
        if prose.starts_with("```") {
            is_listing = !is_listing;
        }
        let is_free = is_listing || prose.starts_with('|') || prose.contains("──");
        if !is_free && line.chars().count() > COLUMNS && is_breakable(line, prose) {
            found.push(number + 1);
        }
    }
    found
}

/// The numbers of lines that begin with a comment of several lines.
fn blocks(text: &str, is_code: bool) -> Vec<usize> {
    let begins = |(_, line): &(usize, &str)| is_code && line.trim_start().starts_with("/*");
    (1..).zip(text.lines()).filter(begins).map(|(number, _)| number).collect()
}

fn walk(folder: &Path, found: &mut Vec<String>, seen: &mut usize) {
    for entry in fs::read_dir(folder).expect("the repository is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_hidden = name.starts_with('.') && name != ".ci";
        if is_hidden || name == "target" {
            continue;
        }
        let is_code = name.ends_with(".rs");
        if path.is_dir() {
            walk(&path, found, seen);
        } else if is_code || name.ends_with(".md") {
            *seen += 1;
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.extend(wide(&text, is_code).into_iter().map(|line| format!("{}:{line}", path.display())));
            found.extend(blocks(&text, is_code).into_iter().map(|line| format!("{}:{line}: /*", path.display())));
        }
    }
}

#[test]
fn comments_and_documents_fit_into_a_hundred_columns() {
    let (mut found, mut seen) = (Vec::new(), 0);
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    walk(&root, &mut found, &mut seen);
    assert!(seen > 500, "{seen} files are seen");
    assert!(found.is_empty(), "wider than {COLUMNS} columns:\n{}", found.join("\n"));
}

#[test]
fn a_wide_line_is_found() {
    let long = "x ".repeat(COLUMNS);
    let document = format!("{long}\n| {long} |\n```\n{long}\n```\nshort\n{long}");
    assert_eq!(wide(&document, false), [1, 7]);
    let address = format!("http://{}", "x".repeat(COLUMNS));
    let lines = [
        format!("//! {long}"),
        format!("let {long};"),
        format!("    /// | {long} |"),
        format!("    // {long}"),
        format!("/// ```\n/// {long}\n/// ```"),
        format!("/// see {address}"),
        format!("/// see http://x {long}"),
        format!("let x = 1; {} {long}", "//"),
        format!("let x = \"http://x {} {long}\";", "//"),
    ];
    let code = lines.join("\n");
    assert_eq!(wide(&code, true), [1, 4, 9, 10]);
    assert_eq!(blocks("let x = 1; /* y */\n  /* z\n*/", true), [2]);
}
