//! Deterministic automata that are built while they run.
//!
//! A state is the set of automaton states that are possible before a character, from which one can
//! only go on by a character or by a constraint that depends on what comes next. A transition
//! therefore answers two things: which state is next, and whether the text *before* the character
//! was a match. What precedes a state is part of it only where a constraint needs it. The end of
//! the text is one more color. Lookarounds depend on more than one character: transitions that meet
//! them are worked out again each time.

use crate::ast::Assertion;
use crate::error::Interrupted;
use crate::limits;
use crate::nfa::{Color, Inst, Nfa, Span, State};
use std::collections::HashMap;

/// What precedes: the beginning, a newline, a character of a word. At most one of them.
pub type Before = u8;
pub const NOTHING_SPECIAL: Before = 0;
pub const AT_START: Before = 1;
pub const NEWLINE: Before = 2;
pub const WORD: Before = 3;

/// A transition: the next state, and this bit if there was a match.
pub const MATCHED: u32 = 1 << 31;
pub const UNKNOWN: u32 = u32::MAX;
/// The state from which nothing can match any more.
pub const DEAD: u32 = 0;

/// A set of automaton states, what matters of what precedes, and whether every match it can become
/// begins here.
type Key = (Before, bool, Box<[State]>);

#[derive(Debug, Default)]
pub struct Dfa {
    span: Option<Span>,
    /// A match may begin anywhere: the beginning is added again at every step.
    floats: bool,
    stride: usize,
    pub transitions: Vec<u32>,
    states: Vec<StateInfo>,
    known: HashMap<Key, u32>,
    starts: [Option<u32>; 4],
    pub bytes: usize,
}

#[derive(Debug)]
struct StateInfo {
    kernel: Box<[State]>,
    before: Before,
    /// Constraints are to be looked at.
    constrained: bool,
    looks: bool,
    /// Every match that it can become begins here.
    fresh: bool,
}

/// Working memory, for all automata of an expression.
#[derive(Debug, Default)]
pub struct Scratch {
    stack: Vec<State>,
    seen: Vec<u32>,
    round: u32,
    kernel: Vec<State>,
    opened: Vec<State>,
}

impl Scratch {
    /// Forgets what was seen.
    fn begin(&mut self, states: usize) {
        if self.seen.len() < states || self.round == u32::MAX {
            self.seen = vec![0; states];
            self.round = 0;
        }
        self.round += 1;
    }
    fn is_new(&mut self, s: State) -> bool {
        std::mem::replace(&mut self.seen[s as usize], self.round) != self.round
    }
}

/// What a step needs to ask of the search: does this lookaround hold here?
pub type AskLook<'a> = &'a mut dyn FnMut(u32) -> Result<bool, Interrupted>;

pub fn before_of(nfa: &Nfa, color: Color) -> Before {
    if color == nfa.colors.newline {
        NEWLINE
    } else if nfa.colors.is_word[usize::from(color)] {
        WORD
    } else {
        NOTHING_SPECIAL
    }
}

impl Dfa {
    pub fn is_new(&self) -> bool {
        self.span.is_none()
    }

    pub fn open(&mut self, nfa: &Nfa, span: Span, floats: bool) {
        self.span = Some(span);
        self.floats = floats;
        self.stride = nfa.colors.count + 1;
        self.forget();
    }

    pub fn forget(&mut self) {
        self.transitions.clear();
        self.states.clear();
        self.known.clear();
        self.starts = [None; 4];
        self.bytes = 0;
        if self.span.is_some() {
            self.transitions.resize(self.stride, DEAD);
            let dead =
                StateInfo { kernel: Box::new([]), before: NOTHING_SPECIAL, constrained: false, looks: false, fresh: false };
            self.states.push(dead);
        }
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The color that stands for the end of the text.
    pub fn end(&self) -> usize {
        self.stride - 1
    }

    pub fn is_fresh(&self, state: u32) -> bool {
        self.states[state as usize].fresh
    }

    /// How much work a step from this state is.
    pub fn weight(&self, state: u32) -> u32 {
        self.states[state as usize].kernel.len() as u32
    }

    pub fn known_start(&self, before: Before) -> Option<u32> {
        self.starts[usize::from(before)]
    }

    pub fn start(&mut self, nfa: &Nfa, scratch: &mut Scratch, before: Before) -> u32 {
        if let Some(start) = self.starts[usize::from(before)] {
            return start;
        }
        scratch.begin(nfa.insts.len());
        scratch.kernel.clear();
        let begin = self.span.expect("it was opened").begin;
        self.close(nfa, scratch, begin, before);
        let start = self.intern(nfa, scratch, before, self.floats);
        self.starts[usize::from(before)] = Some(start);
        start
    }

    /// Adds what can be reached from `from` by what precedes alone.
    fn close(&self, nfa: &Nfa, scratch: &mut Scratch, from: State, before: Before) {
        let stop = self.span.expect("it was opened").stop;
        scratch.stack.push(from);
        while let Some(s) = scratch.stack.pop() {
            if !scratch.is_new(s) {
                continue;
            }
            if s == stop {
                scratch.kernel.push(s);
                continue;
            }
            match nfa.insts[s as usize] {
                Inst::Split(a, b) => {
                    scratch.stack.push(b);
                    scratch.stack.push(a);
                }
                Inst::Assert(assertion, next) => {
                    let never = match assertion {
                        Assertion::Begin if before == AT_START => {
                            scratch.stack.push(next);
                            continue;
                        }
                        Assertion::LineBegin if matches!(before, AT_START | NEWLINE) => {
                            scratch.stack.push(next);
                            continue;
                        }
                        Assertion::Begin | Assertion::LineBegin => true,
                        Assertion::WordBegin => before == WORD,
                        Assertion::WordEnd => before != WORD,
                        Assertion::End | Assertion::LineEnd | Assertion::WordBoundary | Assertion::NoWordBoundary => false,
                    };
                    if !never {
                        scratch.kernel.push(s);
                    }
                }
                Inst::Set(..) | Inst::Look(..) => scratch.kernel.push(s),
                Inst::Stop => unreachable!("an automaton ends at its own stop"),
            }
        }
    }

    fn intern(&mut self, nfa: &Nfa, scratch: &mut Scratch, before: Before, fresh: bool) -> u32 {
        scratch.kernel.sort_unstable();
        let kernel = &scratch.kernel[..];
        if kernel.is_empty() && !self.floats {
            return DEAD;
        }
        let looks = kernel.iter().any(|&s| matches!(nfa.insts[s as usize], Inst::Look(..)));
        let constrained = looks || kernel.iter().any(|&s| matches!(nfa.insts[s as usize], Inst::Assert(..)));
        let before = if constrained { before } else { NOTHING_SPECIAL };
        let key = (before, fresh, Box::from(kernel));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let state = self.states.len() as u32;
        self.states.push(StateInfo { kernel: key.2.clone(), before, constrained, looks, fresh });
        self.bytes += self.stride * 4 + kernel.len() * 8 + 128;
        self.transitions.resize(self.transitions.len() + self.stride, UNKNOWN);
        self.known.insert(key, state);
        state
    }

    /// Works out a transition.
    pub fn step(
        &mut self,
        nfa: &Nfa,
        scratch: &mut Scratch,
        state: u32,
        color: usize,
        ask: AskLook<'_>,
    ) -> Result<u32, Interrupted> {
        let Span { begin, stop } = self.span.expect("it was opened");
        let is_end = color == self.end();
        let info = &self.states[state as usize];
        let (is_constrained, asks) = (info.constrained, info.looks);
        let mut cachable = !asks;
        scratch.opened.clear();
        scratch.opened.extend_from_slice(&info.kernel);
        if is_constrained {
            let before = info.before;
            // What comes next, in the same terms.
            let after = if is_end { AT_START } else { before_of(nfa, color as Color) };
            scratch.begin(nfa.insts.len());
            let mut todo = std::mem::take(&mut scratch.opened);
            let mut done = Vec::with_capacity(todo.len());
            while let Some(s) = todo.pop() {
                if !scratch.is_new(s) {
                    continue;
                }
                if s == stop {
                    done.push(s);
                    continue;
                }
                match nfa.insts[s as usize] {
                    Inst::Split(a, b) => todo.extend([b, a]),
                    Inst::Assert(assertion, next) => {
                        if holds(assertion, before, after) {
                            todo.push(next);
                        }
                    }
                    Inst::Look(look, next) => {
                        cachable = false;
                        if ask(look)? {
                            todo.push(next);
                        }
                    }
                    Inst::Set(..) => done.push(s),
                    Inst::Stop => unreachable!("an automaton ends at its own stop"),
                }
            }
            scratch.opened = done;
        }
        let matched = if scratch.opened.contains(&stop) { MATCHED } else { 0 };
        let mut next = DEAD;
        let mut flushed = false;
        if !is_end {
            let after = before_of(nfa, color as Color);
            scratch.begin(nfa.insts.len());
            scratch.kernel.clear();
            for i in 0..scratch.opened.len() {
                let s = scratch.opened[i];
                if s != stop
                    && let Inst::Set(set, target) = nfa.insts[s as usize]
                    && nfa.colors.contains(set, color as Color)
                {
                    self.close(nfa, scratch, target, after);
                }
            }
            let moved = !scratch.kernel.is_empty();
            if self.floats {
                self.close(nfa, scratch, begin, after);
            }
            if self.bytes > limits::CACHE_BYTES / 2 && self.states.len() > 16 {
                self.forget();
                flushed = true;
            }
            next = self.intern(nfa, scratch, after, self.floats && !moved);
        }
        let transition = next | matched;
        if cachable && !flushed {
            self.transitions[state as usize * self.stride + color] = transition;
        }
        Ok(transition)
    }
}

/// Between what precedes and what comes next, where `AT_START` of what comes next is the end.
fn holds(assertion: Assertion, before: Before, after: Before) -> bool {
    match assertion {
        Assertion::Begin => before == AT_START,
        Assertion::LineBegin => matches!(before, AT_START | NEWLINE),
        Assertion::End => after == AT_START,
        Assertion::LineEnd => matches!(after, AT_START | NEWLINE),
        Assertion::WordBegin => before != WORD && after == WORD,
        Assertion::WordEnd => before == WORD && after != WORD,
        Assertion::WordBoundary => (before == WORD) != (after == WORD),
        Assertion::NoWordBoundary => (before == WORD) == (after == WORD),
    }
}
