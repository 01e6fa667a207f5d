//! The documents are true as far as a program can tell: what they link to exists, and so do the
//! files and the items they name. So are the pages of `docs/design` that comments cite, with the
//! headings and rules in them.

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
    /// Words of the code and of `.ci`; those with a dash have a low line instead.
    words: BTreeSet<String>,
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
            known.words.extend(words(&text));
        } else if path.extension().is_some_and(|e| e == "md") {
            documents.push(below.clone());
        } else if below.starts_with(".ci") {
            known.words.extend(words(&std::fs::read_to_string(&path).unwrap_or_default()));
        }
        known.paths.push(below);
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').map(|word| word.trim_matches('-').replace('-', "_"))
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

/// Lines of fenced blocks, without remarks.
fn fenced_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            lines.push(line.split(" # ").next().unwrap_or_default().trim());
        }
    }
    lines
}

/// What of a command line is the program's own: a subcommand and its arguments.
fn own_command(line: &str) -> Option<&str> {
    let starts = ["meridian ", "cargo run --release -- ", "./target/release/meridian ", "target/release/meridian "];
    starts.into_iter().find_map(|start| line.strip_prefix(start))
}

/// The targets of relative links: the file, nothing for the document itself, and the heading.
fn links(text: &str) -> Vec<(&str, Option<&str>)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let relative = targets.filter(|target| !target.is_empty() && !target.contains("://"));
    relative.map(|target| target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)))).collect()
}

/// What links call the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// The options that a span names, of programs that are here.
fn options(span: &str) -> Vec<&str> {
    const OTHERS: &[&str] = &["cargo", "psql", "git", "rustc", "pgbench", "pg_dump", "go-tpc", "sysbench", "apt-get", "initdb"];
    let first = span.split_whitespace().next().unwrap_or_default();
    if OTHERS.contains(&first.rsplit('/').next().unwrap_or_default()) {
        // Of `cargo run -- demo --regions`, what is behind the dashes.
        return span.split_once(" -- ").map_or(Vec::new(), |(_, rest)| options(rest));
    }
    let is_option = |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let words = span.split_whitespace().map(|word| word.trim_start_matches('['));
    let names = words.filter_map(|word| word.strip_prefix("--")?.split(['=', ']', ',']).next());
    names.filter(is_option).collect()
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
    for (link, heading) in links(text) {
        let target = root().join(folder).join(link);
        if !target.exists() {
            found.push(format!("{}: links to {link}", document.display()));
        }
        let of = if link.is_empty() { text.to_string() } else { std::fs::read_to_string(target).unwrap_or_default() };
        if let Some(heading) = heading.filter(|heading| !anchors(&of).contains(*heading)) {
            found.push(format!("{}: links to {link}#{heading}", document.display()));
        }
    }
    for command in fenced_lines(text).into_iter().chain(code_spans(text)).filter_map(own_command) {
        let name = command.split_whitespace().next().unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.starts_with('-');
        if is_name && !known.words.contains(&name.replace('-', "_")) {
            found.push(format!("{}: names the command {name}", document.display()));
        }
        for option in options(command).into_iter().filter(|option| !known.words.contains(&option.replace('-', "_"))) {
            found.push(format!("{}: names --{option} of {name}", document.display()));
        }
    }
    for span in code_spans(text) {
        for option in options(span).into_iter().filter(|option| !known.words.contains(&option.replace('-', "_"))) {
            found.push(format!("{}: names --{option}", document.display()));
        }
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

/// What the pages of `docs/design` have for comments to cite.
#[derive(Default)]
struct Citable {
    /// Page, heading.
    headings: BTreeSet<(String, String)>,
    /// `E9`: bold, or in the first cell of a table's row, where `C2 to C4` is three.
    rules: BTreeSet<String>,
}

impl Citable {
    fn add(&mut self, page: &str, text: &str) {
        for line in text.lines() {
            if line.starts_with('#') {
                let heading = line.trim_start_matches('#').trim().replace('`', "");
                self.headings.insert((page.to_string(), heading));
            }
            let cell = line.strip_prefix('|').and_then(|row| row.split('|').next()).unwrap_or_default();
            for of in line.split("**").skip(1).step_by(2).chain([cell]) {
                let rules = rules(of);
                self.rules.extend(rules.iter().cloned());
                for (first, last) in rules.iter().zip(rules.iter().skip(1)) {
                    if of.contains(&format!("{first} to {last}")) {
                        let number = |rule: &str| rule[1..].parse::<u32>().unwrap_or_default();
                        self.rules.extend((number(first)..number(last)).map(|n| format!("{}{n}", &first[..1])));
                    }
                }
            }
        }
    }

    /// What a comment cites and no page has.
    fn missing(&self, comment: &str) -> Vec<String> {
        let rules = rules(comment).into_iter().filter(|rule| !self.rules.contains(rule));
        let mut missing: Vec<String> = rules.map(|rule| format!("rule {rule}")).collect();
        // A page may be followed by headings, as in «Rules», «Steps» and «A host».
        for rest in comment.split("docs/design/").skip(1) {
            let Some((name, rest)) = rest.split_once(".md").filter(|(name, _)| !name.contains([' ', '`'])) else { continue };
            let (page, mut rest) = (format!("{name}.md"), rest.strip_prefix('`').unwrap_or(rest));
            if !self.headings.iter().any(|(of, _)| *of == page) {
                missing.push(format!("page {page}"));
            }
            while let Some((heading, behind)) =
                [", «", " and «", " («"].iter().find_map(|before| rest.strip_prefix(before)).and_then(|rest| rest.split_once('»'))
            {
                if !self.headings.contains(&(page.clone(), heading.replace('`', ""))) {
                    missing.push(format!("{page}, «{heading}»"));
                }
                rest = behind;
            }
        }
        missing
    }
}

/// The ids of rules in a text: a letter that rules have, and a number.
fn rules(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_rule = |word: &&str| {
        let number = word.strip_prefix(['C', 'E', 'P']).unwrap_or_default();
        (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    };
    words.filter(is_rule).map(str::to_string).collect()
}

/// The comments of a file: the first line's number, and the text.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        match line.trim_start().strip_prefix("//") {
            Some(comment) => {
                if !is_open {
                    found.push((number, String::new()));
                }
                let (_, so_far) = found.last_mut().expect("the comment is open");
                *so_far += comment.trim_start_matches(['/', '!']).trim();
                so_far.push(' ');
                is_open = true;
            }
            None => is_open = false,
        }
    }
    found
}

#[test]
fn comments_cite_only_what_is_in_the_design_notes() {
    let (mut known, mut documents) = (Known::default(), Vec::new());
    walk(&root(), Path::new(""), &mut known, &mut documents);
    let mut citable = Citable::default();
    for page in documents.iter().filter(|document| document.starts_with("docs/design")) {
        let name = page.file_name().and_then(|name| name.to_str()).expect("a name");
        citable.add(name, &std::fs::read_to_string(root().join(page)).expect("a page"));
    }
    assert!(citable.rules.len() > 30, "the rules are found: {:?}", citable.rules);
    let (mut cited, mut found) = (0, Vec::new());
    for file in known.paths.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        for (line, comment) in comments(&std::fs::read_to_string(root().join(file)).unwrap_or_default()) {
            cited += rules(&comment).len();
            found.extend(citable.missing(&comment).iter().map(|missing| format!("{}:{line}: {missing}", file.display())));
        }
    }
    assert!(cited > 50, "citations are found: {cited}");
    assert!(found.is_empty(), "cited and not in docs/design:\n{}", found.join("\n"));
}

#[test]
fn a_citation_of_what_is_not_there_is_found() {
    let mut citable = Citable::default();
    citable.add("x.md", "# Of `x`\n- **E1** One. E5 is only mentioned.\n| C2 to C4, P7 | is E6 |\n## Two");
    assert_eq!(citable.rules.iter().map(String::as_str).collect::<Vec<_>>(), ["C2", "C3", "C4", "E1", "P7"]);
    let missing = |comment: &str| citable.missing(comment);
    assert_eq!(missing("(E1, C3; `docs/design/x.md`, «Two» and «Of x»), `docs/design/x.md`. SF1, E2E"), [] as [&str; 0]);
    assert_eq!(missing("E5, C1"), ["rule E5", "rule C1"]);
    assert_eq!(missing("`docs/design/x.md`, «Two» and «Three»"), ["x.md, «Three»"]);
    assert_eq!(missing("`docs/design/y.md`"), ["page y.md"]);
    assert_eq!(missing("(docs/design/y.md) and docs/design/x.md («Three»)"), ["page y.md", "x.md, «Three»"]);
    let text = "//! See `docs/design/x.md`,\n//! «Three».\nlet x = 1;\n    // E9\n";
    assert_eq!(comments(text).iter().map(|(line, text)| (*line, missing(text).len())).collect::<Vec<_>>(), [(1, 1), (4, 1)]);
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
    let known = Known {
        paths: vec![file.into()],
        items: items(file, text).into_iter().collect(),
        words: words("fn commit(dry_run: bool, \"log-file\")").collect(),
    };
    let found = |text: &str| untrue(Path::new("A.md"), text, &known).len();
    assert_eq!(found("`Txn::commit`, in `node/src/txn.rs` and `txn.rs`, calls `std::mem::take`. [Licence](LICENSE)"), 0);
    assert_eq!(found("`Txn::abort` is gone"), 1);
    assert_eq!(found("`Txn::at`, `node::Txn`, `txn::other`, `node::txn::other`"), 0);
    assert_eq!(found("`Txn::other` and `Gone::commit` are nobody's"), 2);
    assert_eq!(found("see `node/src/gone.rs`, or `gone/`"), 2);
    assert_eq!(found("[here](docs/nowhere.md)"), 1);
    assert_eq!(found("## The «first» `step`, here\n[a](#the-first-step-here) [b](#nowhere)"), 1);
    assert_eq!(found("[x](README.md#nowhere)"), 1);
    assert_eq!(found("`--dry-run`, `x [--log-file=F]`, `cargo x --lib`, `cargo run -- x --gone`, `--no-such F`"), 2);
    assert_eq!(found("```\n`Txn::abort`\n```"), 0);
    let sh = "```sh\ncargo run --release -- commit --dry-run # a remark --gone\nmeridian nosuch --nosuchflag --log-file=x\n```";
    assert_eq!(found(sh), 2);
    assert_eq!(found("```sh\nls --nosuchflag\n```"), 0);
}
