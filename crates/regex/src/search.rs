//! One text, searched: where matches are, and how they are divided among the groups.
//!
//! Where a match begins is found by an automaton that may begin anywhere, where it ends by one that
//! begins there. Then, from the top of the tree down (`tree`), each part is given its piece:
//! automata say which pieces are possible. Without back references every piece that is given out is
//! right at once, so there is no way back, and the work is polynomial. With them, a part may turn
//! out not to match the piece it was given, and the next one is tried: that takes as long as it
//! takes, or until the check ends it.

use crate::Program;
use crate::ast::UNBOUNDED;
use crate::ctype;
use crate::dfa::{AT_START, Before, DEAD, Dfa, MATCHED, Scratch, UNKNOWN, before_of};
use crate::error::Interrupted;
use crate::limits;
use crate::tree::{Op, Part};
use std::cell::RefMut;

type Result<T> = std::result::Result<T, Interrupted>;

/// Called every some thousand steps; an error ends the search.
pub type Check<'c> = &'c mut dyn FnMut() -> Result<()>;

/// From a byte up to another; both are boundaries of characters.
pub type Span = (usize, usize);

/// What is kept between searches: automata as far as they have been built.
#[derive(Debug, Default)]
pub struct Cache {
    /// Of the parts of the tree; of the search; of the lookarounds.
    automata: Vec<Option<Box<Dfa>>>,
    bytes: usize,
    scratch: Vec<Scratch>,
    /// A match can begin at the text's beginning only.
    anchored: Option<bool>,
}

/// A bit for each byte of a text.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bytes: usize) -> Bits {
        Bits(vec![0; bytes / 64 + 1])
    }
    fn set(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }
    fn get(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 != 0
    }
}

/// What is known of a lookaround: where it was asked, where it matched.
struct Answers {
    asked: Bits,
    matched: Bits,
    /// Every position has been asked.
    complete: bool,
}

/// A search through one text.
pub struct Search<'r, 't, 'c> {
    program: &'r Program,
    cache: RefMut<'r, Cache>,
    text: &'t str,
    check: Check<'c>,
    steps_left: u32,
    answers: Vec<Option<Answers>>,
    captures: Vec<Option<Span>>,
}

impl<'r, 't, 'c> Search<'r, 't, 'c> {
    pub(crate) fn new(program: &'r Program, cache: RefMut<'r, Cache>, text: &'t str, check: Check<'c>) -> Self {
        let mut s = Search {
            program,
            cache,
            text,
            check,
            steps_left: limits::STEPS_PER_CHECK,
            answers: Vec::new(),
            captures: Vec::new(),
        };
        if s.cache.automata.is_empty() {
            let count = program.tree.len() + 1 + program.nfa.looks.len();
            s.cache.automata.resize_with(count, || None);
        }
        s
    }

    /// Does it match anywhere from `start` on? What precedes `start` counts for `^`, `\m` and
    /// lookbehind.
    pub fn is_match(&mut self, start: usize) -> Result<bool> {
        if self.program.tree[self.program.root].refers() {
            return Ok(self.find_referring(start)?.is_some());
        }
        if self.program.prefix_is_all {
            return Ok(self.text[start..].contains(&self.program.prefix));
        }
        if self.anchored() {
            return Ok(start == 0 && self.shortest(self.program.root, 0, 0, self.text.len())?.is_some());
        }
        let Some(start) = self.skip_to_prefix(start) else { return Ok(false) };
        Ok(self.first_end(start)?.is_some())
    }

    /// The leftmost match from `start` on, as long or as short as the expression prefers.
    pub fn find_at(&mut self, start: usize) -> Result<Option<Span>> {
        if self.program.tree[self.program.root].refers() {
            return self.find_referring(start);
        }
        if self.program.prefix_is_all {
            let prefix = &self.program.prefix;
            return Ok(self.text[start..].find(prefix).map(|i| (start + i, start + i + prefix.len())));
        }
        let end = self.text.len();
        if self.anchored() {
            return if start == 0 { self.match_at(0, end) } else { Ok(None) };
        }
        let Some(start) = self.skip_to_prefix(start) else { return Ok(None) };
        let Some((first_end, from)) = self.first_end(start)? else { return Ok(None) };
        let mut begin = from;
        loop {
            if let Some(found) = self.match_at(begin, end)? {
                return Ok(Some(found));
            }
            assert!(begin < first_end, "what ends at {first_end} begins before it");
            begin = self.next_char(begin);
        }
    }

    /// As `find_at`; afterwards `group` tells what each group captured.
    pub fn captures_at(&mut self, start: usize) -> Result<Option<Span>> {
        let found = self.find_at(start)?;
        let Some((begin, end)) = found else { return Ok(None) };
        let root = &self.program.tree[self.program.root];
        if !root.refers() {
            self.captures.clear();
            self.captures.resize(self.program.groups + 1, None);
            self.divide(self.program.root, begin, end)?;
        }
        Ok(found)
    }

    /// What a group captured in the last match of `captures_at`, groups being counted from 1.
    pub fn group(&self, n: usize) -> Option<Span> {
        self.captures.get(n).copied().flatten()
    }

    // --- steps

    fn tick(&mut self, steps: u32) -> Result<()> {
        if self.steps_left > steps {
            self.steps_left -= steps;
            return Ok(());
        }
        self.steps_left = limits::STEPS_PER_CHECK;
        (self.check)()
    }

    fn next_char(&self, at: usize) -> usize {
        at + self.text[at..].chars().next().map_or(1, char::len_utf8)
    }

    fn char_before(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(i, _)| i)
    }

    fn before(&self, at: usize) -> Before {
        match self.text[..at].chars().next_back() {
            None => AT_START,
            Some(c) => before_of(&self.program.nfa, self.program.nfa.colors.look_up(u32::from(c))),
        }
    }

    fn skip_to_prefix(&self, start: usize) -> Option<usize> {
        let prefix = &self.program.prefix;
        // On short texts the automaton is there before the search for the prefix has begun.
        if prefix.is_empty() || self.text.len() - start < 64 {
            return Some(start);
        }
        self.text[start..].find(prefix).map(|i| start + i)
    }

    fn anchored(&mut self) -> bool {
        if let Some(known) = self.cache.anchored {
            return known;
        }
        let root = self.program.root;
        let mut dfa = self.take(root);
        let mut scratch = self.cache.scratch.pop().unwrap_or_default();
        let anchored = (0..=3).all(|b| b == AT_START || dfa.start(&self.program.nfa, &mut scratch, b) == DEAD);
        self.cache.scratch.push(scratch);
        self.put(root, dfa);
        self.cache.anchored = Some(anchored);
        anchored
    }

    // --- automata

    fn searcher(&self) -> usize {
        self.program.tree.len()
    }

    fn take(&mut self, which: usize) -> Box<Dfa> {
        let mut dfa = self.cache.automata[which].take().unwrap_or_default();
        self.cache.bytes -= dfa.bytes;
        if dfa.is_new() {
            let (nfa, parts) = (&self.program.nfa, self.program.tree.len());
            if which < parts {
                dfa.open(nfa, nfa.spans[which], false);
            } else if which == parts {
                dfa.open(nfa, nfa.spans[self.program.root], true);
            } else {
                let look = nfa.looks[which - parts - 1];
                dfa.open(nfa, look.span, !look.ahead);
            }
        }
        dfa
    }

    fn put(&mut self, which: usize, dfa: Box<Dfa>) {
        self.cache.bytes += dfa.bytes;
        self.cache.automata[which] = Some(dfa);
        if self.cache.bytes > limits::CACHE_BYTES {
            self.cache.automata.iter_mut().for_each(|a| *a = None);
            self.cache.bytes = 0;
        }
    }

    /// Runs an automaton from `from`, up to `limit` at most. `found` is told every position where
    /// it matches, and ends it by `true`. With `COLD`, answers the last position before which no
    /// match can begin that ends at the position where it stopped.
    fn run<const COLD: bool>(
        &mut self,
        which: usize,
        from: usize,
        limit: usize,
        mut found: impl FnMut(usize) -> bool,
    ) -> Result<usize> {
        let before = self.before(from);
        let mut dfa = self.take(which);
        let mut scratch = None;
        let outcome = self.run_taken::<COLD>(&mut dfa, &mut scratch, before, from, limit, &mut found);
        self.cache.scratch.extend(scratch);
        self.put(which, dfa);
        outcome
    }

    fn run_taken<const COLD: bool>(
        &mut self,
        dfa: &mut Dfa,
        scratch: &mut Option<Scratch>,
        before: Before,
        from: usize,
        limit: usize,
        found: &mut impl FnMut(usize) -> bool,
    ) -> Result<usize> {
        let program = self.program;
        let (nfa, bytes) = (&program.nfa, self.text.as_bytes());
        let (stride, end) = (dfa.stride(), dfa.end());
        self.tick(1)?;
        let mut state = match dfa.known_start(before) {
            Some(state) => state,
            None => dfa.start(nfa, scratch.get_or_insert_with(|| self.cache.scratch.pop().unwrap_or_default()), before),
        };
        let (mut at, mut cold, mut checked) = (from, from, from);
        loop {
            if state == DEAD {
                return Ok(cold);
            }
            if COLD && dfa.is_fresh(state) {
                cold = at;
            }
            let (color, width) = match bytes.get(at) {
                None => (end, 0),
                Some(&b) if b < 0x80 => (usize::from(nfa.colors.ascii[usize::from(b)]), 1),
                Some(_) => {
                    let c = self.text[at..].chars().next().expect("a character");
                    (usize::from(nfa.colors.look_up(u32::from(c))), c.len_utf8())
                }
            };
            let mut transition = dfa.transitions[state as usize * stride + color];
            if transition == UNKNOWN {
                let mut own = match scratch.take() {
                    Some(scratch) => scratch,
                    None => self.cache.scratch.pop().unwrap_or_default(),
                };
                self.tick(dfa.weight(state))?;
                transition = dfa.step(nfa, &mut own, state, color, &mut |look| self.look(look as usize, at))?;
                *scratch = Some(own);
            }
            if transition & MATCHED != 0 && found(at) {
                return Ok(cold);
            }
            if at >= limit || width == 0 {
                return Ok(cold);
            }
            state = transition & !MATCHED;
            at += width;
            if at - checked >= limits::STEPS_PER_CHECK as usize {
                checked = at;
                (self.check)()?;
            }
        }
    }

    /// The first position, from `start` on, where any match ends, and a position before which it
    /// cannot begin.
    fn first_end(&mut self, start: usize) -> Result<Option<Span>> {
        let mut end = None;
        let cold = self.run::<true>(self.searcher(), start, self.text.len(), |at| {
            end = Some(at);
            true
        })?;
        Ok(end.map(|end| (end, cold)))
    }

    fn longest(&mut self, part: Part, from: usize, limit: usize) -> Result<Option<usize>> {
        let mut last = None;
        self.run::<false>(part, from, limit, |at| {
            last = Some(at);
            false
        })?;
        Ok(last)
    }

    fn shortest(&mut self, part: Part, from: usize, least: usize, limit: usize) -> Result<Option<usize>> {
        let mut first = None;
        self.run::<false>(part, from, limit, |at| {
            if at >= least {
                first = Some(at);
            }
            at >= least
        })?;
        Ok(first)
    }

    fn is_exact(&mut self, part: Part, from: usize, end: usize) -> Result<bool> {
        let mut matched = false;
        self.run::<false>(part, from, end, |at| {
            matched |= at == end;
            matched
        })?;
        Ok(matched)
    }

    /// All positions where it can end, the preferred one first.
    fn ends(&mut self, part: Part, from: usize, limit: usize) -> Result<Vec<usize>> {
        let mut ends = Vec::new();
        self.run::<false>(part, from, limit, |at| {
            ends.push(at);
            false
        })?;
        if !self.program.tree[part].prefers_short() {
            ends.reverse();
        }
        Ok(ends)
    }

    fn preferred_end(&mut self, part: Part, from: usize, limit: usize) -> Result<Option<usize>> {
        if self.program.tree[part].prefers_short() {
            self.shortest(part, from, from, limit)
        } else {
            self.longest(part, from, limit)
        }
    }

    fn match_at(&mut self, begin: usize, limit: usize) -> Result<Option<Span>> {
        Ok(self.preferred_end(self.program.root, begin, limit)?.map(|end| (begin, end)))
    }

    // --- lookaround

    fn look(&mut self, n: usize, at: usize) -> Result<bool> {
        let look = self.program.nfa.looks[n];
        let which = self.searcher() + 1 + n;
        let length = self.text.len();
        let remembers = length.saturating_mul(self.program.nfa.looks.len()) <= limits::REMEMBERED_LOOKS;
        if self.answers.is_empty() {
            self.answers.resize_with(self.program.nfa.looks.len(), || None);
        }
        if let Some(known) = &self.answers[n]
            && (known.complete || known.asked.get(at))
        {
            return Ok(known.matched.get(at) != look.negative);
        }
        let matched = if look.ahead {
            let mut matched = false;
            self.run::<false>(which, at, length, |_| {
                matched = true;
                true
            })?;
            matched
        } else if remembers {
            // One pass over the text tells all positions where something ends.
            let mut matched = Bits::new(length);
            self.run::<false>(which, 0, length, |at| {
                matched.set(at);
                false
            })?;
            let answer = matched.get(at);
            self.answers[n] = Some(Answers { asked: Bits(Vec::new()), matched, complete: true });
            return Ok(answer != look.negative);
        } else {
            let mut matched = false;
            self.run::<false>(which, 0, at, |end| {
                matched |= end == at;
                false
            })?;
            matched
        };
        if remembers {
            let known = self.answers[n].get_or_insert_with(|| Answers {
                asked: Bits::new(length),
                matched: Bits::new(length),
                complete: false,
            });
            known.asked.set(at);
            if matched {
                known.matched.set(at);
            }
        }
        Ok(matched != look.negative)
    }

    // --- division without back references

    /// Gives the groups inside a part their pieces of what the part matched.
    fn divide(&mut self, part: Part, begin: usize, end: usize) -> Result<()> {
        let program = self.program;
        let mut todo = vec![(part, begin, end)];
        while let Some((part, begin, end)) = todo.pop() {
            let node = &program.tree[part];
            if !node.captures() {
                continue;
            }
            match &node.op {
                Op::Leaf(_) | Op::Backref { .. } => {}
                Op::Capture(inside, group) => {
                    self.captures[*group as usize] = Some((begin, end));
                    todo.push((*inside, begin, end));
                }
                Op::Cat(left, right) => {
                    let middle = self.middle(*left, *right, begin, end)?;
                    todo.push((*right, middle, end));
                    todo.push((*left, begin, middle));
                }
                Op::Alt(parts) => {
                    for (i, &branch) in parts.iter().enumerate() {
                        if i + 1 == parts.len() || self.is_exact(branch, begin, end)? {
                            todo.push((branch, begin, end));
                            break;
                        }
                    }
                }
                Op::Iter { part: inside, max, .. } => {
                    if let Some(last) = self.last_repetition(*inside, *max, begin, end)? {
                        todo.push((*inside, last, end));
                    }
                }
            }
        }
        Ok(())
    }

    fn middle(&mut self, left: Part, right: Part, begin: usize, end: usize) -> Result<usize> {
        let first = self.preferred_end(left, begin, end)?.expect("the left part matches a beginning");
        if self.is_exact(right, first, end)? {
            return Ok(first);
        }
        for middle in self.ends(left, begin, end)? {
            if middle != first && self.is_exact(right, middle, end)? {
                return Ok(middle);
            }
        }
        unreachable!("a sequence matched what its parts do not")
    }

    /// Where the last repetition begins; `None` if there is none. As many repetitions as possible
    /// are as long as they like, but none is empty.
    fn last_repetition(&mut self, part: Part, max: u16, begin: usize, end: usize) -> Result<Option<usize>> {
        let is_short = self.program.tree[part].prefers_short();
        if begin == end {
            // Of the empty text, what prefers to be short takes no repetition, what prefers to be
            // long takes one.
            return Ok((!is_short && self.is_exact(part, begin, end)?).then_some(begin));
        }
        let most = if max == UNBOUNDED { usize::MAX } else { usize::from(max) };
        // What each would like best, as long as that works.
        let (mut at, mut count) = (begin, 1);
        loop {
            let least = self.next_char(at);
            let next = if is_short { self.shortest(part, at, least, end)? } else { self.longest(part, at, end)? };
            match next {
                Some(next) if next == end => return Ok(Some(at)),
                Some(next) if next > at && count < most => (at, count) = (next, count + 1),
                _ => break,
            }
        }
        // Otherwise, from the end on: how many repetitions does each position need?
        let mut needs = vec![u32::MAX; end - begin + 1];
        needs[end - begin] = 0;
        let mut at = end;
        while at > begin {
            at = self.char_before(at);
            let mut fewest = u32::MAX;
            self.run::<false>(part, at, end, |next| {
                if next > at {
                    fewest = fewest.min(needs[next - begin].saturating_add(1));
                }
                false
            })?;
            needs[at - begin] = fewest;
        }
        let (mut at, mut count) = (begin, 1);
        loop {
            let mut chosen = None;
            let room = most - count;
            self.run::<false>(part, at, end, |next| {
                let fits = next > at && needs[next - begin] != u32::MAX && needs[next - begin] as usize <= room;
                if fits {
                    chosen = Some(next);
                }
                fits && is_short
            })?;
            let next = chosen.expect("repetitions matched what is to be divided among them");
            if next == end {
                return Ok(Some(at));
            }
            (at, count) = (next, count + 1);
        }
    }

    // --- back references

    /// The leftmost match of an expression with back references. The automata tell where one may
    /// be; each is tried.
    fn find_referring(&mut self, start: usize) -> Result<Option<Span>> {
        let root = self.program.root;
        let is_short = self.program.tree[root].prefers_short();
        let length = self.text.len();
        let mut from = start;
        loop {
            let Some((first_end, cold)) = self.first_end(from)? else { return Ok(None) };
            let mut begin = cold;
            while begin <= first_end {
                let mut limit = if is_short { begin } else { length };
                loop {
                    let end = match is_short {
                        true => self.shortest(root, begin, limit, length)?,
                        false => self.longest(root, begin, limit)?,
                    };
                    let Some(end) = end else { break };
                    self.captures.clear();
                    self.captures.resize(self.program.groups + 1, None);
                    if self.verify(root, begin, end)? {
                        return Ok(Some((begin, end)));
                    }
                    if is_short {
                        if end == length {
                            break;
                        }
                        limit = self.next_char(end);
                    } else {
                        if end == begin {
                            break;
                        }
                        limit = self.char_before(end);
                    }
                }
                begin = self.next_char(begin);
            }
            // As PostgreSQL 15, which does not try the very end after attempts that failed.
            if begin >= length {
                return Ok(None);
            }
            from = begin;
        }
    }

    fn forget_groups(&mut self, part: Part) {
        let (from, to) = self.program.tree[part].groups;
        for group in from..to {
            self.captures[group as usize] = None;
        }
    }

    /// Does a part match this piece, references included? Then its groups are set; otherwise they
    /// are not.
    fn verify(&mut self, part: Part, begin: usize, end: usize) -> Result<bool> {
        if !self.program.tree[part].refers() {
            self.divide(part, begin, end)?;
            return Ok(true);
        }
        self.tick(1)?;
        let matched = self.verify_referring(part, begin, end)?;
        if !matched {
            self.forget_groups(part);
        }
        Ok(matched)
    }

    fn verify_referring(&mut self, part: Part, begin: usize, end: usize) -> Result<bool> {
        let program = self.program;
        let node = &program.tree[part];
        match &node.op {
            Op::Leaf(_) => Ok(true),
            Op::Capture(inside, group) => {
                let matched = self.verify(*inside, begin, end)?;
                if matched {
                    self.captures[*group as usize] = Some((begin, end));
                }
                Ok(matched)
            }
            Op::Alt(parts) => {
                for &branch in parts {
                    if self.is_exact(branch, begin, end)? && self.verify(branch, begin, end)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Op::Cat(left, right) => self.verify_sequence(*left, *right, begin, end),
            Op::Backref { group, min, max, .. } => Ok(self.verify_reference(*group as usize, *min, *max, begin, end)),
            Op::Iter { part, min, max, .. } => {
                let is_short = program.tree[*part].prefers_short();
                if is_short && *min == 0 && begin == end {
                    return Ok(true);
                }
                let matched = if is_short {
                    self.verify_short_repetitions(*part, *min, *max, begin, end)?
                } else {
                    self.verify_repetitions(*part, *min, *max, begin, end)?
                };
                if !matched && *min == 0 && begin == end {
                    self.forget_groups(*part);
                    return Ok(true);
                }
                Ok(matched)
            }
        }
    }

    fn verify_sequence(&mut self, left: Part, right: Part, begin: usize, end: usize) -> Result<bool> {
        let Some(first) = self.preferred_end(left, begin, end)? else { return Ok(false) };
        if self.verify_at(left, right, begin, first, end)? {
            return Ok(true);
        }
        for middle in self.ends(left, begin, end)? {
            if middle != first {
                self.forget_groups(left);
                self.forget_groups(right);
                if self.verify_at(left, right, begin, middle, end)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn verify_at(&mut self, left: Part, right: Part, begin: usize, middle: usize, end: usize) -> Result<bool> {
        Ok(self.is_exact(right, middle, end)? && self.verify(left, begin, middle)? && self.verify(right, middle, end)?)
    }

    fn verify_reference(&self, group: usize, min: u16, max: u16, begin: usize, end: usize) -> bool {
        let Some((from, to)) = self.captures[group] else { return false };
        if from == to {
            return begin == end;
        }
        if begin == end {
            return min == 0;
        }
        let (what, piece) = (&self.text[from..to], &self.text[begin..end]);
        let fits = |count: usize| count >= usize::from(min) && (max == UNBOUNDED || count <= usize::from(max));
        if self.program.ignore_case {
            let what: Vec<char> = what.chars().collect();
            let (mut count, mut same) = (0, true);
            for (c, &expected) in piece.chars().zip(what.iter().cycle()) {
                same &= c == expected || ctype::to_lower(u32::from(c)) == ctype::to_lower(u32::from(expected));
                count += 1;
            }
            return same && count % what.len() == 0 && fits(count / what.len());
        }
        piece.len() % what.len() == 0
            && fits(piece.len() / what.len())
            && piece.as_bytes().chunks(what.len()).all(|c| c == what.as_bytes())
    }

    /// Are there more than `count` characters?
    fn is_longer(&self, begin: usize, end: usize, count: usize) -> bool {
        self.text[begin..end].chars().take(count + 1).count() > count
    }

    /// Least and most repetitions that are worth trying: an empty one only where there would be too
    /// few without it.
    fn repetitions(&self, min: u16, max: u16, begin: usize, end: usize) -> (usize, usize) {
        let least = usize::from(min).max(1);
        let chars = self.text[begin..end].chars().count();
        let most = if max == UNBOUNDED { chars } else { chars.min(usize::from(max)) };
        (least, most.max(least))
    }

    /// Verifies the repetitions between these ends, those after the first `verified`; answers how
    /// many are right.
    fn verify_pieces(&mut self, part: Part, ends: &[usize], verified: usize) -> Result<usize> {
        for i in verified + 1..ends.len() {
            self.forget_groups(part);
            if !self.verify(part, ends[i - 1], ends[i])? {
                return Ok(i - 1);
            }
        }
        Ok(ends.len() - 1)
    }

    fn verify_repetitions(&mut self, part: Part, min: u16, max: u16, begin: usize, end: usize) -> Result<bool> {
        let (least, most) = self.repetitions(min, max, begin, end);
        // `ends[k]` is where the kth repetition ends, of which the first `verified` are right,
        // references included.
        let mut ends = vec![begin];
        let (mut k, mut limit, mut verified) = (1, end, 0);
        while k > 0 {
            ends.truncate(k);
            let previous = ends[k - 1];
            verified = verified.min(k - 1);
            match self.longest(part, previous, limit)? {
                None => k -= 1,
                Some(next) => {
                    ends.push(next);
                    if next == end {
                        if k >= least {
                            verified = self.verify_pieces(part, &ends, verified)?;
                            if verified == k {
                                return Ok(true);
                            }
                            k = verified + 1;
                        }
                    } else if k >= most {
                        k -= 1;
                    } else if next > previous || k < least && !self.is_longer(next, end, least - k) {
                        k += 1;
                        limit = end;
                        continue;
                    }
                }
            }
            // A shorter kth repetition, or one before it.
            while k > 0 {
                let previous = ends[k - 1];
                if ends[k] > previous {
                    limit = self.char_before(ends[k]);
                    if limit > previous || k < least && !self.is_longer(previous, end, least - k) {
                        break;
                    }
                }
                k -= 1;
            }
        }
        Ok(false)
    }

    fn verify_short_repetitions(&mut self, part: Part, min: u16, max: u16, begin: usize, end: usize) -> Result<bool> {
        let (least, most) = self.repetitions(min, max, begin, end);
        let mut ends = vec![begin];
        let (mut k, mut limit, mut verified) = (1, begin, 0);
        while k > 0 {
            ends.truncate(k);
            let previous = ends[k - 1];
            verified = verified.min(k - 1);
            if limit == previous && limit != end && (k >= least || self.is_longer(limit, end, least - k)) {
                limit = self.next_char(limit);
            }
            if k >= most {
                limit = end;
            }
            match self.shortest(part, previous, limit, end)? {
                None => k -= 1,
                Some(next) => {
                    ends.push(next);
                    if next == end {
                        if k >= least {
                            verified = self.verify_pieces(part, &ends, verified)?;
                            if verified == k {
                                return Ok(true);
                            }
                            k = verified + 1;
                        }
                    } else if k >= most {
                        k -= 1;
                    } else {
                        k += 1;
                        limit = next;
                        continue;
                    }
                }
            }
            // A longer kth repetition, or one before it.
            while k > 0 {
                if ends[k] < end {
                    limit = self.next_char(ends[k]);
                    break;
                }
                k -= 1;
            }
        }
        Ok(false)
    }
}
