//! Rust sources as tokens: enough of the language to see what a file names.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of a crate by their paths below `src`, without what is compiled for tests only.
pub(crate) fn sources(name: &str) -> Vec<(String, String)> {
    fn walk(directory: &Path, below: &str, files: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(directory).expect("the sources are there") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_string();
            if name == "tests" || name == "tests.rs" {
                // Compiled for tests only, as their parents say.
                continue;
            }
            if path.is_dir() {
                walk(&path, &format!("{below}{name}/"), files);
            } else if name.ends_with(".rs") {
                files.push((format!("{below}{name}"), fs::read_to_string(&path).expect("a text")));
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("crates").join(name).join("src"), "", &mut files);
    files
}

/// The text with blanks for comments and for what is in quotes.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => find(&chars, at, "\n"),
            ('/', Some('*')) => comment_end(&chars, at),
            // `r#name` is the name; of `br"` and `cr"` the first letter stays.
            ('r', Some('#')) if begins_word(&chars, at) && is_name(chars.get(at + 2)) => at + 2,
            ('r', Some('"' | '#')) if begins_word(&chars, at) => raw_string_end(&chars, at),
            ('"', _) => quoted_end(&chars, at),
            // A lifetime has no second quote there.
            ('\'', Some('\\')) => quoted_end(&chars, at),
            ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            let end = end.min(chars.len());
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

pub(crate) fn is_name(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

/// Whether a word begins here, but for the letter that bytes and C's texts have before an `r`.
fn begins_word(chars: &[char], at: usize) -> bool {
    let before = match at.checked_sub(1) {
        Some(before) if matches!(chars[before], 'b' | 'c') => before.checked_sub(1),
        before => before,
    };
    !is_name(before.map(|before| &chars[before]))
}

/// Where a comment ends that begins here, with those inside of it.
fn comment_end(chars: &[char], from: usize) -> usize {
    let (mut at, mut depth) = (from + 2, 1);
    while at < chars.len() && depth > 0 {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

/// Where the next such text ends.
fn find(chars: &[char], from: usize, what: &str) -> usize {
    let what: Vec<char> = what.chars().collect();
    let found = (from..chars.len()).find(|at| chars[*at..].starts_with(&what));
    found.map_or(chars.len(), |at| at + what.len())
}

/// Where what is quoted by the character at this place ends.
fn quoted_end(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != chars[from] {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Where a raw string ends that begins here; this place, if none does.
fn raw_string_end(chars: &[char], from: usize) -> usize {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    match chars.get(from + 1 + hashes) {
        Some('"') => find(chars, from + 2 + hashes, &format!("\"{}", "#".repeat(hashes))),
        _ => from,
    }
}

/// Code without what is compiled for tests only.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = ["#[cfg(test)]", "#[cfg(all(test,"].iter().filter_map(|mark| rest.find(mark)).min() {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[marked_end(rest)..];
    }
    kept + rest
}

/// Where an item, statement, field, variant, arm or parameter ends that begins with attributes.
fn marked_end(code: &str) -> usize {
    let mut rest = code;
    while rest.starts_with("#[") {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            depth == 0 && c == ']'
        });
        rest = rest[end.map_or(rest.len(), |end| end + 1)..].trim_start();
    }
    if let Some(visible) = rest.strip_prefix("pub") {
        let scope = visible.strip_prefix('(').and_then(|inner| Some(inner.split_once(')')?.1));
        rest = scope.unwrap_or(visible).trim_start();
    }
    let first = &rest[..rest.find(|c| !is_name(Some(&c))).unwrap_or(rest.len())];
    let then = rest[first.len()..].trim_start();
    let is_function = ["fn ", "unsafe ", "async ", "extern "].iter().any(|word| then.starts_with(word));
    let ends_with_block = match first {
        "const" => is_function,
        "" => rest.starts_with('{'),
        _ => [
            "fn",
            "struct",
            "enum",
            "union",
            "mod",
            "impl",
            "trait",
            "async",
            "unsafe",
            "extern",
            "macro_rules",
            "if",
            "for",
            "while",
            "loop",
            "match",
        ]
        .contains(&first),
    };
    let is_part = !ends_with_block && !["const", "let", "static", "type", "use"].contains(&first);
    // What is between `<` and `>` in a type.
    let is_typed = is_part && then.starts_with(':') && !then.starts_with("::");
    let begin = code.len() - rest.len();
    let (mut depth, mut angles, mut is_block) = (0, 0, ends_with_block);
    for (at, c) in rest.char_indices() {
        let before = &rest[..at];
        match c {
            '(' | '[' | '{' => {
                let opens_block = c == '{' && ["=>", "!"].iter().any(|end| before.trim_end().ends_with(end));
                is_block |= depth == 0 && is_part && opens_block;
                depth += 1;
            }
            // The end of what it is a part of.
            ')' | ']' | '}' if depth == 0 => return begin + at,
            ')' | ']' | '}' => depth -= 1,
            '<' if is_typed => angles += 1,
            '>' if is_typed && !before.ends_with(['-', '=']) => angles -= 1,
            _ => {}
        }
        let is_end = match c {
            '}' => is_block && !rest[at + 1..].trim_start().starts_with("else"),
            ',' => is_part && angles == 0,
            _ => c == ';',
        };
        if depth == 0 && is_end {
            return begin + at + 1;
        }
    }
    code.len()
}

pub(crate) fn starts_name(token: &str) -> bool {
    is_name(token.chars().next().as_ref())
}

/// Names, `::`, and other characters one by one.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            _ if is_name(Some(&first)) => rest.find(|c| !is_name(Some(&c))).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    tokens
}
