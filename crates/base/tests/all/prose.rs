//! Comments and documents fit into 100 columns.
//!
//! Tables, drawings, listings and addresses have the width that they need.

use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;

/// The text of a comment, or of a line of a document.
fn prose(line: &str, is_code: bool) -> Option<&str> {
    match is_code {
        false => Some(line),
        true => Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim_start()),
    }
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
        let is_free = is_listing || prose.starts_with('|') || prose.contains("──") || prose.contains("http");
        if !is_free && line.chars().count() > COLUMNS {
            found.push(number + 1);
        }
    }
    found
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
    let code = format!(
        "//! {long}\nlet {long};\n    /// | {long} |\n    // {long}\n/// ```\n/// {long}\n/// ```\n/// see http://{long}"
    );
    assert_eq!(wide(&code, true), [1, 4]);
}
