//! What a pattern says: nodes in an arena, so that neither building nor dropping them recurses.

use crate::error::Error;
use crate::limits;
use crate::set::CharSet;
use std::collections::HashMap;

/// A node.
pub type Id = u32;

/// Without an upper bound: `*`, `+`, `{2,}`.
pub const UNBOUNDED: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    /// `^` and `\A`: where the text begins.
    Begin,
    /// `^` where newlines matter: also after each of them.
    LineBegin,
    End,
    LineEnd,
    WordBegin,
    WordEnd,
    WordBoundary,
    NoWordBoundary,
}

#[derive(Clone, Debug)]
pub enum Node {
    Empty,
    /// One character of a set.
    Set(u32),
    Cat(Vec<Id>),
    Alt(Vec<Id>),
    /// A capturing group, counted from 1.
    Group(Id, u32),
    /// `greedy` is what the quantifier says itself: `{m}` says nothing.
    Repeat {
        node: Id,
        min: u16,
        max: u16,
        greedy: Option<bool>,
    },
    /// What a group matched, again.
    Backref(u32),
    Assert(Assertion),
    Look {
        node: Id,
        ahead: bool,
        negative: bool,
    },
}

/// The nodes, the sets they name, and where the groups are.
#[derive(Debug, Default)]
pub struct Ast {
    nodes: Vec<Node>,
    pub sets: Vec<CharSet>,
    known_sets: HashMap<CharSet, u32>,
    /// Content of each group, from group 1 on, while and after it was read; `None` until its
    /// parenthesis is closed.
    pub groups: Vec<Option<Id>>,
    pub has_backrefs: bool,
}

impl Ast {
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn add(&mut self, node: Node) -> Result<Id, Error> {
        if self.nodes.len() >= limits::NODES {
            return Err(Error::TooComplex);
        }
        self.nodes.push(node);
        Ok(self.nodes.len() as Id - 1)
    }

    pub fn add_set(&mut self, set: CharSet) -> Result<Id, Error> {
        let next = self.sets.len() as u32;
        let id = *self.known_sets.entry(set).or_insert_with_key(|s| {
            self.sets.push(s.clone());
            next
        });
        self.add(Node::Set(id))
    }

    /// Several nodes in a row as one.
    pub fn cat(&mut self, items: &[Id]) -> Result<Id, Error> {
        match items {
            [] => self.add(Node::Empty),
            [one] => Ok(*one),
            _ => self.add(Node::Cat(items.to_vec())),
        }
    }
}
