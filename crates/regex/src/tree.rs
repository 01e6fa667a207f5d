//! How the text that an expression matched is divided among its parts.
//!
//! Where a match begins and ends needs no more than an automaton of the whole expression. What its
//! groups captured follows from the rules of the manual (9.7.3.5): every part of the expression
//! prefers the longest or the shortest match, parts further to the left decide first, and a part
//! takes what it prefers as long as the rest can still match what remains. This tree has a node for
//! each part that makes such a decision; a part without captures, whose own parts all prefer the
//! same, is one leaf.
//!
//! What a part prefers:
//! - an atom without a quantifier, or with `{m}`, what is inside it;
//! - one with another quantifier what the quantifier says, `?` at its end meaning the shortest;
//! - a sequence what its first part with a preference prefers;
//! - an alternation of two or more branches the longest.

use crate::ast::{Ast, Id, Node, UNBOUNDED};
use crate::error::Error;

/// A node of the tree.
pub type Part = usize;

#[derive(Clone, Debug)]
pub enum Op {
    /// Nobody needs to know more than that it matched.
    Leaf(Id),
    Cat(Part, Part),
    Alt(Vec<Part>),
    /// Repetitions whose last one captures; `whole` is the expression with its quantifier.
    Iter {
        part: Part,
        min: u16,
        max: u16,
        whole: Id,
    },
    Capture(Part, u32),
    /// A reference, with its quantifier; `whole` matches at least what it may match.
    Backref {
        group: u32,
        min: u16,
        max: u16,
        whole: Id,
    },
}

#[derive(Clone, Debug)]
pub struct TreeNode {
    pub op: Op,
    flags: u8,
    /// The groups inside are those from `groups.0` up to, not including, `groups.1`.
    pub groups: (u32, u32),
    /// How deep the tree is below.
    pub depth: u32,
}

const LONGER: u8 = 1;
const SHORTER: u8 = 2;
/// Parts inside prefer different things.
const MIXED: u8 = 4;
const CAPTURES: u8 = 8;
const REFERS: u8 = 16;
const DECIDES: u8 = MIXED | CAPTURES | REFERS;
const NO_GROUPS: (u32, u32) = (u32::MAX, 0);

impl TreeNode {
    pub fn prefers_short(&self) -> bool {
        self.flags & SHORTER != 0
    }
    pub fn captures(&self) -> bool {
        self.groups.0 < self.groups.1
    }
    pub fn refers(&self) -> bool {
        self.flags & REFERS != 0
    }
}

/// Both preferences in one part make a mixed one.
fn upwards(flags: u8) -> u8 {
    let both = flags & (LONGER | SHORTER) == LONGER | SHORTER;
    flags & DECIDES | if both { MIXED } else { 0 }
}

fn preference(flags: u8) -> u8 {
    flags & (LONGER | SHORTER)
}

/// Of two in a row: the first preference, and what either has inside.
fn combined(first: u8, second: u8) -> u8 {
    let preferred = if preference(first) != 0 { preference(first) } else { preference(second) };
    upwards(first | second) | preferred
}

/// Builds the tree of a pattern. The syntax tree gets the nodes of parts that the text does not
/// have, `x*` of `x+` for instance.
pub fn build(ast: &mut Ast, root: Id) -> Result<(Vec<TreeNode>, Part), Error> {
    let mut b = Builder { ast, nodes: Vec::new() };
    let root = b.part(root)?;
    Ok((b.nodes, root))
}

struct Builder<'a> {
    ast: &'a mut Ast,
    nodes: Vec<TreeNode>,
}

/// What stands before a part that decides, that part, and the flags of the two of it and what
/// follows.
struct Segment {
    before: Vec<Id>,
    before_flags: u8,
    part: Part,
    flags: u8,
}

impl Builder<'_> {
    fn add(&mut self, op: Op, flags: u8) -> Part {
        let (mut groups, mut depth) = (NO_GROUPS, 0);
        let mut below = |p: &Part| {
            let n = &self.nodes[*p];
            groups = (groups.0.min(n.groups.0), groups.1.max(n.groups.1));
            depth = depth.max(n.depth + 1);
        };
        match &op {
            Op::Leaf(_) | Op::Backref { .. } => {}
            Op::Cat(left, right) => [left, right].into_iter().for_each(&mut below),
            Op::Alt(parts) => parts.iter().for_each(&mut below),
            Op::Iter { part, .. } => below(part),
            Op::Capture(part, n) => {
                below(part);
                groups = (groups.0.min(*n), groups.1.max(*n + 1));
            }
        }
        self.nodes.push(TreeNode { op, flags, groups, depth });
        self.nodes.len() - 1
    }

    fn flags(&self, part: Part) -> u8 {
        self.nodes[part].flags
    }

    fn leaf(&mut self, items: &[Id], flags: u8) -> Result<Part, Error> {
        let id = self.ast.cat(items)?;
        Ok(self.add(Op::Leaf(id), flags))
    }

    fn part(&mut self, id: Id) -> Result<Part, Error> {
        match self.ast.node(id).clone() {
            Node::Cat(items) => self.sequence(&items),
            Node::Alt(branches) => {
                let (mut parts, mut flags) = (Vec::with_capacity(branches.len()), LONGER);
                for branch in branches {
                    let part = self.part(branch)?;
                    flags |= combined(flags, self.flags(part));
                    parts.push(part);
                }
                Ok(if flags & DECIDES == 0 { self.add(Op::Leaf(id), flags) } else { self.add(Op::Alt(parts), flags) })
            }
            _ => self.sequence(&[id]),
        }
    }

    fn sequence(&mut self, items: &[Id]) -> Result<Part, Error> {
        let (mut segments, mut before, mut flags) = (Vec::new(), Vec::new(), 0);
        for &item in items {
            let (inner, min, max, greedy) = match *self.ast.node(item) {
                Node::Repeat { node, min, max, greedy } => (node, min, max, greedy),
                _ => (item, 1, 1, None),
            };
            let says = greedy.map_or(0, |g| if g { LONGER } else { SHORTER });
            let atom = match *self.ast.node(inner) {
                Node::Group(content, number) => {
                    let content = self.part(content)?;
                    let flags = self.flags(content) | CAPTURES;
                    Some(self.add(Op::Capture(content, number), flags))
                }
                Node::Backref(group) => Some(self.add(Op::Backref { group, min, max, whole: item }, REFERS)),
                Node::Empty | Node::Set(_) | Node::Assert(_) | Node::Look { .. } => None,
                _ => Some(self.part(inner)?),
            };
            let atom_flags = atom.map_or(0, |a| self.flags(a));
            let all = flags | says | atom_flags;
            if upwards(all) & DECIDES == 0 {
                flags = all;
                before.push(item);
                continue;
            }
            let atom = match atom {
                Some(atom) => atom,
                None => self.leaf(&[inner], 0)?,
            };
            let part = self.quantified(atom, item, inner, (min, max), says)?;
            segments.push(Segment {
                before: std::mem::take(&mut before),
                before_flags: std::mem::take(&mut flags),
                part,
                flags: combined(says, atom_flags),
            });
        }
        let mut rest = match before.is_empty() && !segments.is_empty() {
            true => None,
            false => Some(self.leaf(&before, flags)?),
        };
        for s in segments.into_iter().rev() {
            let (tail, tail_flags) = match rest {
                Some(rest) => {
                    let flags = s.flags | combined(s.flags, self.flags(rest));
                    (self.add(Op::Cat(s.part, rest), flags), flags)
                }
                None => (s.part, self.flags(s.part)),
            };
            rest = Some(if s.before.is_empty() {
                tail
            } else {
                let leaf = self.leaf(&s.before, s.before_flags)?;
                self.add(Op::Cat(leaf, tail), s.before_flags | combined(s.before_flags, tail_flags))
            });
        }
        Ok(rest.expect("a sequence has a part"))
    }

    /// An atom that decides, with its quantifier.
    fn quantified(&mut self, atom: Part, item: Id, inner: Id, (min, max): (u16, u16), says: u8) -> Result<Part, Error> {
        let atom_flags = self.flags(atom);
        let flags = combined(says, atom_flags);
        if matches!(self.ast.node(inner), Node::Backref(_)) {
            self.nodes[atom].flags |= flags;
            return Ok(atom);
        }
        let wants = atom_flags & (LONGER | SHORTER | MIXED);
        if (min, max) == (1, 1) && (says == 0 || wants == 0 || wants == says) {
            return Ok(atom);
        }
        if atom_flags & (CAPTURES | REFERS) == 0 {
            return Ok(self.add(Op::Leaf(item), flags));
        }
        if min > 0 && atom_flags & REFERS == 0 {
            // `x{m,n}` is `x{m-1,n-1}x`: only the last repetition captures.
            let fewer = if max == UNBOUNDED { UNBOUNDED } else { max - 1 };
            let but_last = match fewer {
                0 => self.ast.add(Node::Empty)?,
                _ => self.ast.add(Node::Repeat { node: inner, min: min - 1, max: fewer, greedy: None })?,
            };
            let left = self.add(Op::Leaf(but_last), preference(flags));
            return Ok(self.add(Op::Cat(left, atom), flags));
        }
        Ok(self.add(Op::Iter { part: atom, min, max, whole: item }, flags))
    }
}
