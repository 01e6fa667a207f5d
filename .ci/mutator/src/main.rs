//! Builds every mutant of a set of files into one program.
//!
//! A mutation tool that compiles the program once for each mutant needs half a minute for each.
//! Here all mutants are in the program and sleep: `a < b` becomes `meridian_base::mutants::lt(17,
//! &(a), &(b))`, which answers `a <= b` in a process with `MERIDIAN_MUTANT=17`, and `a < b` in
//! every other one. So a mutant costs one run of the tests, and the same binaries serve the
//! simulator.
//!
//! ```text
//! meridian-mutator TREE LIST FILE…     rewrites the files below TREE, which is a copy, and writes a line for each mutant to LIST
//! ```
//!
//! A line has, separated by tabs: number, file, line, function, and what is changed. What is
//! changed:
//!
//! | code | mutants |
//! | --- | --- |
//! | `a < b`, `<=`, `>`, `>=` | with or without equality |
//! | a condition, or an operand of `&&` and `\|\|` | always true; always false |
//! | `x.max(y)`, `x.min(y)` | `x`; `y` |
//! | `statement;` (assignment, call) | left out |
//! | a function without result | returns at once |
//! | a function that gives `bool`, `Option` or `Vec` | gives `true`, `false`; `None`; nothing |
//!
//! Tests, macros, constants and `const fn` stay as they are. So does what has no part in a rule:
//! conditions that ask for a broken rule (they are never true outside of the simulator's own
//! check), statements that count for a person, and functions that only show, log or check
//! (`LEFT_OUT`). So does what `.ci/mutator/skip` names: a file and, after a tab, a change that
//! would not compile, or `fn` and the name of a function that only counts.

use proc_macro2::Span;
use std::fmt::Write;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ImplItemFn, ItemFn, ReturnType, Signature, Stmt, Type};

/// Appended to `crates/base/src/lib.rs`.
const RUNTIME: &str = r#"
/// Mutants that sleep until `MERIDIAN_MUTANT` names one: written by `.ci/mutants` into a copy.
#[doc(hidden)]
#[allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::disallowed_types)]
pub mod mutants {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static AWAKE: OnceLock<u32> = OnceLock::new();
    static REACHED: [AtomicBool; 16_384] = [const { AtomicBool::new(false) }; 16_384];
    fn number() -> u32 {
        *AWAKE.get_or_init(|| std::env::var("MERIDIAN_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX))
    }
    /// Whether a mutant is awake. Remembers that its place was reached, in the file
    /// `MERIDIAN_MUTANTS_REACHED`.
    pub fn is(n: u32) -> bool {
        let reached = &REACHED[n as usize];
        if !reached.load(Ordering::Relaxed) && !reached.swap(true, Ordering::Relaxed) {
            static FILE: OnceLock<Option<String>> = OnceLock::new();
            if let Some(path) = FILE.get_or_init(|| std::env::var("MERIDIAN_MUTANTS_REACHED").ok()) {
                let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
                let _ = file.and_then(|mut f| f.write_all(format!("{n}\n").as_bytes()));
            }
        }
        number() == n
    }
    /// `n`: false; `n + 1`: true.
    pub fn cond(n: u32, value: bool) -> bool {
        if is(n) { false } else if is(n + 1) { true } else { value }
    }
    pub fn lt<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool { if is(n) { a <= b } else { a < b } }
    pub fn le<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool { if is(n) { a < b } else { a <= b } }
    pub fn gt<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool { if is(n) { a >= b } else { a > b } }
    pub fn ge<T: PartialOrd + ?Sized>(n: u32, a: &T, b: &T) -> bool { if is(n) { a > b } else { a >= b } }
    /// `n`: without the argument; `n + 1`: without the receiver.
    pub trait Bounded: Ord + Sized {
        fn mutant_max(self, n: u32, other: Self) -> Self { if is(n) { self } else if is(n + 1) { other } else { Ord::max(self, other) } }
        fn mutant_min(self, n: u32, other: Self) -> Self { if is(n) { self } else if is(n + 1) { other } else { Ord::min(self, other) } }
    }
    impl<T: Ord> Bounded for T {}
}
"#;

/// Functions whose mutants say nothing about the protocol.
const LEFT_OUT: [&str; 13] =
    ["fmt", "len", "is_empty", "log_name", "describe", "next", "drop", "status", "metrics", "id", "count", "invariant", "hash"];

/// Statements that begin so only count.
const COUNTING: [&str; 3] = ["self.metrics.", "self.shared.metrics.", "self.count("];

/// Whether a condition asks whether the laboratory has broken a rule.
fn asks_for_bug(text: &str) -> bool {
    ["PlantedBug::", "rules."].iter().any(|sign| text.contains(sign))
}

struct Edit {
    at: usize,
    /// Bytes that it replaces.
    length: usize,
    /// Among edits at one place: what opens outer things comes first, what closes inner things
    /// comes first.
    rank: i64,
    text: String,
}

struct Mutator<'a> {
    path: &'a str,
    source: &'a str,
    /// Byte offsets of the lines.
    lines: Vec<usize>,
    edits: Vec<Edit>,
    list: String,
    number: u32,
    depth: i64,
    function: Vec<String>,
    uses_bounds: bool,
    /// `meridian_base`, or `crate` in that crate.
    base: &'static str,
    /// Changes that would not compile.
    skip: &'a [(&'a str, &'a str)],
}

fn is_test(attributes: &[Attribute]) -> bool {
    let text = |a: &Attribute| match &a.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    };
    attributes.iter().any(|a| a.path().is_ident("test") || (a.path().is_ident("cfg") && text(a).contains("test")))
}

fn has_let(e: &Expr) -> bool {
    struct Find(bool);
    impl<'ast> Visit<'ast> for Find {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
        fn visit_block(&mut self, _: &'ast syn::Block) {}
    }
    let mut find = Find(false);
    find.visit_expr(e);
    find.0
}

impl Mutator<'_> {
    fn offset(&self, at: proc_macro2::LineColumn) -> usize {
        let line = &self.source[self.lines[at.line - 1]..];
        self.lines[at.line - 1] + line.char_indices().nth(at.column).map_or(line.len(), |(i, _)| i)
    }
    fn range(&self, span: Span) -> (usize, usize) {
        (self.offset(span.start()), self.offset(span.end()))
    }
    fn text(&self, span: Span) -> String {
        let (from, to) = self.range(span);
        self.source[from..to].split_whitespace().collect::<Vec<_>>().join(" ")
    }
    /// A new mutant's number.
    fn note(&mut self, span: Span, what: &str) -> u32 {
        let n = self.number;
        self.number += 1;
        let function = self.function.last().cloned().unwrap_or_default();
        let _ = writeln!(self.list, "{n}\t{}\t{}\t{function}\t{what}", self.path, span.start().line);
        n
    }
    fn open(&mut self, at: usize, text: String) {
        self.edits.push(Edit { at, length: 0, rank: self.depth, text });
    }
    fn close(&mut self, at: usize, text: &str) {
        self.edits.push(Edit { at, length: 0, rank: -1_000_000 - self.depth, text: text.into() });
    }

    fn function(&mut self, signature: &Signature, attributes: &[Attribute], block: &syn::Block, descend: impl FnOnce(&mut Self)) {
        let name = signature.ident.to_string();
        if is_test(attributes)
            || signature.constness.is_some()
            || LEFT_OUT.contains(&name.as_str())
            || name.starts_with("invariant_")
            || self.skip.contains(&(self.path, format!("fn {name}").as_str()))
        {
            return;
        }
        self.function.push(name.clone());
        let base = self.base;
        let answers: &[&str] = match &signature.output {
            ReturnType::Default => &[""],
            ReturnType::Type(_, ty) => match &**ty {
                Type::Path(p) => match p.path.segments.last().map(|s| s.ident.to_string()).as_deref() {
                    Some("bool") => &["true", "false"],
                    Some("Option") => &["None"],
                    Some("Vec") => &["Vec::new()"],
                    _ => &[],
                },
                _ => &[],
            },
        };
        if !block.stmts.is_empty() {
            let mut text = String::new();
            for answer in answers {
                let n = self.note(signature.span(), &format!("return {answer}").trim_end().to_string());
                let _ = write!(text, " if {base}::mutants::is({n}) {{ return {answer}; }} ");
            }
            let (from, _) = self.range(block.brace_token.span.open());
            self.open(from + 1, text);
        }
        self.depth += 1;
        descend(self);
        self.depth -= 1;
        self.function.pop();
    }

    /// An operand of a condition.
    fn condition(&mut self, e: &Expr) {
        match e {
            Expr::Binary(b) if matches!(b.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&b.left);
                self.condition(&b.right);
            }
            Expr::Paren(p) => self.condition(&p.expr),
            Expr::Let(_) => {}
            Expr::Lit(_) => {}
            e if has_let(e) => {}
            e => {
                let text = self.text(e.span());
                if asks_for_bug(&text) {
                    return;
                }
                let n = self.note(e.span(), &format!("false instead of {text}"));
                self.note(e.span(), &format!("true instead of {text}"));
                let (from, to) = self.range(e.span());
                self.open(from, format!("{}::mutants::cond({n}, ", self.base));
                self.close(to, ")");
            }
        }
    }
}

impl<'ast> Visit<'ast> for Mutator<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, &item.attrs, &item.block, |m| visit::visit_item_fn(m, item));
    }
    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, &item.attrs, &item.block, |m| visit::visit_impl_item_fn(m, item));
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(e, Some(semicolon)) = stmt {
            let is_compound = matches!(e, Expr::Binary(_));
            // A name alone may be given its first value here.
            let is_name = matches!(e, Expr::Assign(a) if matches!(&*a.left, Expr::Path(_)));
            let what = format!("without {};", self.text(e.span()));
            let is_skipped = self.skip.contains(&(self.path, what.as_str()));
            let counts = COUNTING.iter().any(|start| what["without ".len()..].starts_with(start));
            if !is_name && !is_skipped && !counts && (is_compound || matches!(e, Expr::Assign(_) | Expr::MethodCall(_) | Expr::Call(_))) {
                let n = self.note(e.span(), &what);
                let (from, _) = self.range(e.span());
                let (_, to) = self.range(semicolon.span());
                self.open(from, format!("if !{}::mutants::is({n}) {{ ", self.base));
                self.close(to, " }");
            }
        }
        self.depth += 1;
        visit::visit_stmt(self, stmt);
        self.depth -= 1;
    }
    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        self.condition(&e.cond);
        self.depth += 1;
        visit::visit_expr_if(self, e);
        self.depth -= 1;
    }
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        self.depth += 1;
        visit::visit_arm(self, arm);
        self.depth -= 1;
    }
    fn visit_expr_return(&mut self, e: &'ast syn::ExprReturn) {
        if let Some(Expr::Binary(b)) = e.expr.as_deref()
            && matches!(b.op, BinOp::And(_) | BinOp::Or(_))
        {
            self.condition(e.expr.as_deref().expect("just looked at"));
        }
        visit::visit_expr_return(self, e);
    }
    fn visit_expr_binary(&mut self, b: &'ast syn::ExprBinary) {
        let (name, other) = match b.op {
            BinOp::Lt(_) => ("lt", "<="),
            BinOp::Le(_) => ("le", "<"),
            BinOp::Gt(_) => ("gt", ">="),
            BinOp::Ge(_) => ("ge", ">"),
            _ => {
                self.depth += 1;
                visit::visit_expr_binary(self, b);
                self.depth -= 1;
                return;
            }
        };
        let n = self.note(b.span(), &format!("{other} in {}", self.text(b.span())));
        let (from, to) = self.range(b.span());
        let (_, left_end) = self.range(b.left.span());
        let (right, _) = self.range(b.right.span());
        // Inside of what the condition has put around it.
        self.depth += 1;
        self.open(from, format!("{}::mutants::{name}({n}, &(", self.base));
        self.edits.push(Edit { at: left_end, length: right - left_end, rank: 0, text: "), &(".into() });
        self.close(to, "))");
        self.depth += 1;
        visit::visit_expr_binary(self, b);
        self.depth -= 2;
    }
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if (name == "max" || name == "min") && call.args.len() == 1 {
            let text = self.text(call.span());
            let n = self.note(call.method.span(), &format!("without the argument of .{name} in {text}"));
            self.note(call.method.span(), &format!("only the argument of .{name} in {text}"));
            let (from, to) = self.range(call.method.span());
            let (_, open) = self.range(call.paren_token.span.open());
            self.edits.push(Edit { at: from, length: to - from, rank: 0, text: format!("mutant_{name}") });
            self.edits.push(Edit { at: open, length: 0, rank: -2_000_000, text: format!("{n}, ") });
            self.uses_bounds = true;
        }
        self.depth += 1;
        visit::visit_expr_method_call(self, call);
        self.depth -= 1;
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [tree, list, files @ ..] = args.as_slice() else { panic!("meridian-mutator TREE LIST FILE…") };
    let tree = Path::new(tree);
    let skip = std::fs::read_to_string(tree.join(".ci/mutator/skip")).unwrap_or_default();
    let skip: Vec<(&str, &str)> = skip.lines().filter_map(|line| line.split_once('\t')).collect();
    let (mut number, mut lines) = (1, String::new());
    for path in files {
        let source = std::fs::read_to_string(tree.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        let file = syn::parse_file(&source).unwrap_or_else(|e| panic!("{path}: {e}"));
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(i, _)| i + 1)).collect();
        let base = if path.starts_with("crates/base/") { "crate" } else { "meridian_base" };
        let mut mutator = Mutator {
            path,
            source: &source,
            lines: starts,
            edits: Vec::new(),
            list: String::new(),
            number,
            depth: 0,
            function: Vec::new(),
            uses_bounds: false,
            base,
            skip: &skip,
        };
        mutator.visit_file(&file);
        let Mutator { mut edits, list, number: next, uses_bounds, .. } = mutator;
        (number, lines) = (next, lines + &list);
        edits.sort_by_key(|e| (e.at, e.length > 0, e.rank));
        let (mut out, mut done) = (String::new(), 0);
        for e in &edits {
            assert!(e.at >= done, "{path}: edits overlap at {}", &source[e.at..]);
            out.push_str(&source[done..e.at]);
            out.push_str(&e.text);
            done = e.at + e.length;
        }
        out.push_str(&source[done..]);
        if uses_bounds {
            let _ = writeln!(out, "#[allow(unused_imports)]\nuse {base}::mutants::Bounded as _;");
        }
        std::fs::write(tree.join(path), out).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let base = tree.join("crates/base/src/lib.rs");
    let text = std::fs::read_to_string(&base).expect("the base crate");
    if !text.contains("pub mod mutants {") {
        std::fs::write(&base, text + RUNTIME).expect("the base crate can be written");
    }
    std::fs::write(list, lines).expect("the list can be written");
    println!("{} mutants in {} files", number - 1, files.len());
}
