//! The automaton of an expression, and the colors of characters: those that no set of the
//! expression tells apart have one color.

use crate::ast::{Assertion, Ast, Id, Node, UNBOUNDED};
use crate::ctype::{self, Class};
use crate::error::Error;
use crate::limits;
use crate::set::{CharSet, LAST};
use crate::tree::{Op, Part, TreeNode};
use std::collections::HashMap;

pub type State = u32;
pub type Color = u16;

#[derive(Clone, Copy, Debug)]
pub enum Inst {
    /// Where an automaton of its own ends.
    Stop,
    Split(State, State),
    Set(u32, State),
    Assert(Assertion, State),
    Look(u32, State),
}

/// Runs from `begin` to `stop`; what follows `stop` is not its own.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub begin: State,
    pub stop: State,
}

#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub span: Span,
    pub ahead: bool,
    pub negative: bool,
}

#[derive(Debug, Default)]
pub struct Nfa {
    pub insts: Vec<Inst>,
    pub looks: Vec<Look>,
    /// Of every part of the tree.
    pub spans: Vec<Span>,
    pub colors: Colors,
}

struct Builder<'a> {
    ast: &'a Ast,
    tree: &'a [TreeNode],
    nfa: Nfa,
    /// The automaton of each lookaround's node.
    looks: HashMap<Id, u32>,
    calls: u32,
    depth: u32,
}

/// Nested calls that the compiler makes at most: by parentheses, and by groups that refer to
/// groups.
const CALLS_DEEP: u32 = 4 * limits::NESTING;

pub fn build(ast: &Ast, tree: &[TreeNode], root: Part) -> Result<Nfa, Error> {
    let mut b = Builder { ast, tree, nfa: Nfa::default(), looks: HashMap::new(), calls: 0, depth: 0 };
    b.nfa.spans = vec![Span { begin: 0, stop: 0 }; tree.len()];
    let stop = b.add(Inst::Stop)?;
    b.part(root, stop)?;
    let uses_words = b.nfa.insts.iter().any(|i| {
        use Assertion::{NoWordBoundary, WordBegin, WordBoundary, WordEnd};
        matches!(i, Inst::Assert(WordBegin | WordEnd | WordBoundary | NoWordBoundary, _))
    });
    b.nfa.colors = Colors::of(&ast.sets, uses_words)?;
    Ok(b.nfa)
}

impl Builder<'_> {
    fn add(&mut self, inst: Inst) -> Result<State, Error> {
        if self.nfa.insts.len() >= limits::STATES {
            return Err(Error::TooComplex);
        }
        self.nfa.insts.push(inst);
        Ok(self.nfa.insts.len() as State - 1)
    }

    /// Emits a part of the tree in front of `next`, and answers where it begins.
    fn part(&mut self, part: Part, next: State) -> Result<State, Error> {
        // Sequences are as long as the pattern: no recursion along them.
        let mut lefts = Vec::new();
        let mut at = part;
        while let Op::Cat(left, right) = self.tree[at].op {
            lefts.push((at, left));
            at = right;
        }
        let mut begin = self.part_but_sequence(at, next)?;
        for (cat, left) in lefts.into_iter().rev() {
            begin = self.part(left, begin)?;
            self.nfa.spans[cat] = Span { begin, stop: next };
        }
        Ok(begin)
    }

    fn part_but_sequence(&mut self, part: Part, next: State) -> Result<State, Error> {
        self.depth += 1;
        if self.depth > CALLS_DEEP {
            return Err(Error::TooComplex);
        }
        let tree = self.tree;
        let begin = match &tree[part].op {
            Op::Leaf(id) => self.node(*id, next, false)?,
            Op::Cat(..) => self.part(part, next)?,
            Op::Alt(parts) => {
                let mut begin = None;
                for &p in parts.iter().rev() {
                    let branch = self.part(p, next)?;
                    begin = Some(match begin {
                        Some(others) => self.add(Inst::Split(branch, others))?,
                        None => branch,
                    });
                }
                begin.expect("an alternation has branches")
            }
            Op::Iter { part, whole, .. } => {
                let stop = self.add(Inst::Stop)?;
                self.part(*part, stop)?;
                self.node(*whole, next, false)?
            }
            Op::Capture(part, _) => self.part(*part, next)?,
            Op::Backref { whole, .. } => self.node(*whole, next, false)?,
        };
        self.depth -= 1;
        self.nfa.spans[part] = Span { begin, stop: next };
        Ok(begin)
    }

    /// Emits a node in front of `next`. A group that is referred to matches without the constraints
    /// in it.
    fn node(&mut self, id: Id, next: State, unconstrained: bool) -> Result<State, Error> {
        self.calls += 1;
        self.depth += 1;
        if self.depth > CALLS_DEEP || self.calls as usize > 8 * limits::STATES {
            return Err(Error::TooComplex);
        }
        let ast = self.ast;
        let begin = match ast.node(id) {
            Node::Empty => next,
            Node::Set(set) => self.add(Inst::Set(*set, next))?,
            Node::Cat(items) => {
                let mut begin = next;
                for &item in items.iter().rev() {
                    begin = self.node(item, begin, unconstrained)?;
                }
                begin
            }
            Node::Alt(branches) => {
                let mut begin = None;
                for &branch in branches.iter().rev() {
                    let branch = self.node(branch, next, unconstrained)?;
                    begin = Some(match begin {
                        Some(others) => self.add(Inst::Split(branch, others))?,
                        None => branch,
                    });
                }
                begin.expect("an alternation has branches")
            }
            Node::Group(node, _) => self.node(*node, next, unconstrained)?,
            Node::Repeat { node, min, max, .. } => self.repeat(*node, (*min, *max), next, unconstrained)?,
            Node::Backref(group) => {
                let content = ast.groups[*group as usize - 1].expect("the parser saw its end");
                self.node(content, next, true)?
            }
            Node::Assert(_) | Node::Look { .. } if unconstrained => next,
            Node::Assert(assertion) => self.add(Inst::Assert(*assertion, next))?,
            Node::Look { node, ahead, negative } => {
                let look = match self.looks.get(&id) {
                    Some(&look) => look,
                    None => {
                        let stop = self.add(Inst::Stop)?;
                        let begin = self.node(*node, stop, false)?;
                        let look = self.nfa.looks.len() as u32;
                        self.nfa.looks.push(Look { span: Span { begin, stop }, ahead: *ahead, negative: *negative });
                        self.looks.insert(id, look);
                        look
                    }
                };
                self.add(Inst::Look(look, next))?
            }
        };
        self.depth -= 1;
        Ok(begin)
    }

    fn repeat(&mut self, node: Id, (min, max): (u16, u16), next: State, unconstrained: bool) -> Result<State, Error> {
        let mut begin = next;
        let mut copies = min;
        if max == UNBOUNDED {
            let again = self.add(Inst::Split(next, next))?;
            let body = self.node(node, again, unconstrained)?;
            self.nfa.insts[again as usize] = Inst::Split(body, next);
            // One of the copies that must be is the loop's body itself.
            begin = if min > 0 { body } else { again };
            copies = min.saturating_sub(1);
        } else {
            for _ in min..max {
                let body = self.node(node, begin, unconstrained)?;
                begin = self.add(Inst::Split(body, next))?;
            }
        }
        for _ in 0..copies {
            let before = begin;
            begin = self.node(node, begin, unconstrained)?;
            if begin == before {
                // It matches nothing but the empty string.
                break;
            }
        }
        Ok(begin)
    }
}

/// Which color each character has, and which colors are in each set.
#[derive(Debug, Default)]
pub struct Colors {
    pub ascii: Vec<Color>,
    /// Where a color begins that holds until the next one.
    pieces: Vec<(u32, Color)>,
    pub count: usize,
    /// A row of bits for each set.
    members: Vec<u64>,
    row: usize,
    pub newline: Color,
    /// Whether a color's characters are part of words; of use only where word constraints are.
    pub is_word: Vec<bool>,
}

impl Colors {
    fn of(sets: &[CharSet], uses_words: bool) -> Result<Colors, Error> {
        let words = if uses_words { ctype::class(Class::Word) } else { CharSet::default() };
        let newline = CharSet::one(u32::from('\n'));
        let all = || sets.iter().chain([&newline, &words]);
        let mut cuts = vec![0];
        for set in all() {
            for &(from, to) in set.ranges() {
                cuts.push(from);
                if to < LAST {
                    cuts.push(to + 1);
                }
            }
            if cuts.len() > limits::SET_PIECES / 8 {
                return Err(Error::TooComplex);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.len().saturating_mul(sets.len()) > limits::SET_PIECES {
            return Err(Error::TooComplex);
        }
        // Each set splits the colors that it has a part of.
        let mut colors = vec![0u32; cuts.len()];
        let mut count = 1u32;
        for set in all() {
            let (mut inside, mut outside) = (HashMap::new(), HashMap::new());
            let mut next = 0;
            let mut ranges = set.ranges().iter().peekable();
            for (i, &from) in cuts.iter().enumerate() {
                while ranges.next_if(|r| r.1 < from).is_some() {}
                let is_in = ranges.peek().is_some_and(|r| r.0 <= from);
                let known = if is_in { &mut inside } else { &mut outside };
                colors[i] = *known.entry(colors[i]).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
            count = next;
        }
        let count = count as usize;
        if count >= usize::from(Color::MAX) {
            return Err(Error::TooComplex);
        }
        let row = count.div_ceil(64);
        let mut members = vec![0u64; row * sets.len()];
        for (n, set) in sets.iter().enumerate() {
            let mut ranges = set.ranges().iter().peekable();
            for (i, &from) in cuts.iter().enumerate() {
                while ranges.next_if(|r| r.1 < from).is_some() {}
                if ranges.peek().is_some_and(|r| r.0 <= from) {
                    members[n * row + colors[i] as usize / 64] |= 1 << (colors[i] % 64);
                }
            }
        }
        let pieces: Vec<(u32, Color)> = cuts.into_iter().zip(colors).map(|(from, c)| (from, c as Color)).collect();
        let mut out = Colors { pieces, count, members, row, ..Colors::default() };
        out.ascii = (0..128).map(|c| out.look_up(c)).collect();
        out.newline = out.look_up(u32::from('\n'));
        out.is_word = vec![false; count];
        for &(from, to) in words.ranges() {
            let first = out.pieces.partition_point(|p| p.0 < from);
            for p in out.pieces[first..].iter().take_while(|p| p.0 <= to) {
                out.is_word[usize::from(p.1)] = true;
            }
        }
        Ok(out)
    }

    pub fn look_up(&self, c: u32) -> Color {
        self.pieces[self.pieces.partition_point(|p| p.0 <= c) - 1].1
    }

    pub fn contains(&self, set: u32, color: Color) -> bool {
        let bits = self.members[set as usize * self.row + usize::from(color) / 64];
        bits >> (color % 64) & 1 != 0
    }
}
