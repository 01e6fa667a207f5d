//! PostgreSQL's regular expressions (manual, 9.7.3), with PostgreSQL's meaning.
//!
//! A match is the leftmost one; of those, the longest or the shortest, as the expression prefers;
//! its groups capture what the rules of 9.7.3.5 give them. Libraries in the manner of Perl take the
//! first alternative that works instead: `foo|foobar` finds `foo` in `foobar`, where PostgreSQL
//! finds `foobar`. Everything that the manual describes is here: the advanced syntax with its
//! escapes, classes, collating elements, lookaround and back references, the two POSIX syntaxes,
//! directors, embedded options.
//!
//! On the way from a pattern to a match:
//! - `parse` reads a pattern into an `ast`;
//! - `tree` says which of its parts decide how a match is divided among the groups, and what they
//!   prefer;
//! - `nfa` makes one automaton of it, in which each of those parts has its own beginning and end;
//! - `dfa` makes deterministic automata of those, state by state as a text needs them, in bounded
//!   memory;
//! - `search` runs them over a text.
//!
//! Cost: without back references a search takes polynomial time, mostly linear in the text. With
//! them it may take exponential time, as in PostgreSQL: the check that every search is given is
//! asked every few thousand steps and can end it. What a pattern may cost has bounds (`limits`),
//! beyond which it is refused as too complex.
//!
//! Differences from PostgreSQL 15, all of them in what is refused: more than 250 nested
//! parentheses, and more than 100,000 states of the automaton, are too complex here; PostgreSQL's
//! own bounds are elsewhere, so that some expressions are too complex for only one of the two.
//! Where PostgreSQL does not do what its manual says, this crate does as PostgreSQL: the flag `e`
//! of a function reads basic expressions, and an expression with back references is not tried at
//! the very end of a text after attempts that failed.
//!
//! Characters are those of UTF-8, their classes and cases those of the locale C.UTF-8
//! (`ctype.txt`). This crate knows nothing about SQL.

mod ast;
mod ctype;
mod dfa;
mod error;
mod limits;
mod nfa;
mod parse;
mod search;
mod set;
mod tree;

pub use error::{Error, Interrupted};
pub use parse::{Flags, Syntax};
pub use search::{Check, Search, Span};

use ast::{Ast, Id, Node};
use search::Cache;
use std::cell::RefCell;

/// What is known of an expression before any text.
#[derive(Debug)]
struct Program {
    tree: Vec<tree::TreeNode>,
    root: tree::Part,
    nfa: nfa::Nfa,
    groups: usize,
    ignore_case: bool,
    /// Every match begins with it.
    prefix: String,
    /// Every match *is* it, and nothing is captured.
    prefix_is_all: bool,
}

/// A compiled expression. It keeps what searches find out about it, so it serves one thread.
#[derive(Debug)]
pub struct Regex {
    program: Program,
    cache: RefCell<Cache>,
}

impl Regex {
    pub fn new(pattern: &str, flags: Flags) -> Result<Regex, Error> {
        let (mut ast, root, flags) = parse::parse(pattern, flags)?;
        let groups = ast.groups.len();
        let (prefix, prefix_is_all) = prefix(&ast, root);
        let (tree, root) = tree::build(&mut ast, root)?;
        if tree[root].refers() && tree[root].depth > limits::PARTS_DEEP {
            return Err(Error::TooComplex);
        }
        let nfa = nfa::build(&ast, &tree, root)?;
        let program = Program { tree, root, nfa, groups, ignore_case: flags.ignore_case, prefix, prefix_is_all };
        Ok(Regex { program, cache: RefCell::default() })
    }

    /// How many capturing groups there are.
    pub fn groups(&self) -> usize {
        self.program.groups
    }

    /// Begins to search a text. The check must not use this expression.
    pub fn search<'r, 't, 'c>(&'r self, text: &'t str, check: Check<'c>) -> Search<'r, 't, 'c> {
        Search::new(&self.program, self.cache.borrow_mut(), text, check)
    }
}

/// The characters that every match begins with, and whether that is all of it.
fn prefix(ast: &Ast, root: Id) -> (String, bool) {
    let items = match ast.node(root) {
        Node::Cat(items) => &items[..],
        _ => &[root],
    };
    let mut prefix = String::new();
    for &item in items {
        let (item, repeats) = match *ast.node(item) {
            Node::Repeat { node, min, .. } if min > 0 => (node, true),
            _ => (item, false),
        };
        let single = match ast.node(item) {
            Node::Set(set) => ast.sets[*set as usize].single().and_then(char::from_u32),
            _ => None,
        };
        let Some(c) = single else { return (prefix, false) };
        prefix.push(c);
        if repeats {
            return (prefix, false);
        }
    }
    let is_all = !prefix.is_empty();
    (prefix, is_all)
}

#[cfg(test)]
mod tests;
