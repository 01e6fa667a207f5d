//! Every order of the steps of a few hosts: breadth first, each state once. The shortest run that
//! breaks a rule is told.

use meridian_pod::memory::Memory;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A system whose next step may be any of several.
pub trait System: Clone + Hash {
    /// Every next state, with what is done to get there. None: it has ended.
    fn next(&self) -> Vec<(String, Self)>;
    /// What is wrong in this state.
    fn wrong(&self) -> Option<String>;
    /// What is wrong with a state that has no next one.
    fn wrong_end(&self) -> Option<String> {
        None
    }
}

/// What an exploration found.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    /// States without a next one.
    pub ends: usize,
    /// What is wrong, and the steps to there.
    pub wrong: Option<(String, Vec<String>)>,
}

impl Found {
    /// # Panics
    ///
    /// If something was wrong, or if fewer states were seen than the test relies on.
    pub fn is_right(&self, states_min: usize) {
        if let Some((what, steps)) = &self.wrong {
            panic!("{what} after {} states:\n  {}", self.states, steps.join("\n  "));
        }
        if !cfg!(miri) {
            assert!(self.states >= states_min, "only {} states", self.states);
            assert!(self.ends > 0, "no run ends");
        }
    }
    /// # Panics
    ///
    /// If nothing was wrong.
    pub fn is_wrong(&self, what: &str) {
        let (found, _) = self.wrong.as_ref().unwrap_or_else(|| panic!("{} states, and nothing is wrong", self.states));
        assert!(found.contains(what), "it found {found:?} and not {what:?}");
    }
}

fn print_of(system: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    system.hash(&mut hasher);
    hasher.finish()
}

/// Whether two states are different ones.
pub fn differs<S: System>(a: &S, b: &S) -> bool {
    print_of(a) != print_of(b)
}

/// Under Miri a state takes a second. Miri looks at the code and not at the rules: it gets the
/// beginning of one run, of one scenario.
const MIRI_STATES: usize = 8;
pub const SCENARIOS_MAX: usize = if cfg!(miri) { 1 } else { usize::MAX };

/// Explores every state. Each is remembered by 64 bits of hash; how it was reached by its
/// predecessor's.
///
/// # Panics
///
/// If there are more than `max`: a test that is cut off shows nothing.
pub fn explore<S: System>(first: S, max: usize) -> Found {
    let root = print_of(&first);
    let mut from: HashMap<u64, (u64, u32)> = HashMap::from([(root, (root, 0))]);
    let mut queue = VecDeque::from([first.clone()]);
    let mut ends = 0;
    while let Some(system) = queue.pop_front() {
        let print = print_of(&system);
        let next = system.next();
        let at_end = || next.is_empty().then(|| system.wrong_end()).flatten();
        if let Some(what) = system.wrong().or_else(at_end) {
            let mut way = Vec::new();
            let mut at = print;
            while at != root {
                let (before, choice) = from[&at];
                way.push(choice);
                at = before;
            }
            let mut system = first;
            let mut steps = Vec::new();
            for choice in way.into_iter().rev() {
                let (step, next) = system.next().swap_remove(choice as usize);
                steps.push(step);
                system = next;
            }
            return Found { states: from.len(), ends, wrong: Some((what, steps)) };
        }
        ends += usize::from(next.is_empty());
        let chosen = cfg!(miri).then(|| print as usize % next.len().max(1));
        for (choice, (_, next)) in next.into_iter().enumerate().filter(|(i, _)| chosen.is_none_or(|chosen| chosen == *i)) {
            from.entry(print_of(&next)).or_insert_with(|| {
                queue.push_back(next);
                (print, choice as u32)
            });
        }
        assert!(from.len() <= max, "more than {max} states");
        if cfg!(miri) && from.len() >= MIRI_STATES {
            break;
        }
    }
    Found { states: from.len(), ends, wrong: None }
}

/// One random run, to its end. What was wrong, and the steps to there.
///
/// # Panics
///
/// If it does not end.
pub fn wander<S: System>(first: S, mut random: u64) -> Option<(String, Vec<String>)> {
    let (mut system, mut steps) = (first, Vec::new());
    for _ in 0..10_000 {
        let mut next = system.next();
        let at_end = || next.is_empty().then(|| system.wrong_end()).flatten();
        if let Some(what) = system.wrong().or_else(at_end) {
            return Some((what, steps));
        }
        if next.is_empty() {
            return None;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (step, after) = next.swap_remove((random >> 33) as usize % next.len());
        steps.push(step);
        system = after;
    }
    panic!("a run without an end: {}", steps[9_900..].join(", "));
}

/// Memory that is cheap to copy and to hash: what differs from zero. It counts operations, so that
/// a test can see that a step is one.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    words: RefCell<BTreeMap<u64, u64>>,
    operations: RefCell<u32>,
    len: u64,
}

impl Hash for Sparse {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.borrow().hash(state);
    }
}

impl Sparse {
    pub fn new(len: u64) -> Sparse {
        Sparse { len, ..Sparse::default() }
    }
    /// Operations on words since this was called last.
    pub fn operations(&self) -> u32 {
        self.operations.take()
    }
    fn get(&self, at: u64) -> u64 {
        assert!(at.is_multiple_of(8) && at < self.len, "no word at {at}");
        self.words.borrow().get(&at).copied().unwrap_or(0)
    }
    fn set(&self, at: u64, value: u64) {
        assert!(at.is_multiple_of(8) && at < self.len, "no word at {at}");
        match value {
            0 => self.words.borrow_mut().remove(&at),
            _ => self.words.borrow_mut().insert(at, value),
        };
    }
    fn count(&self) {
        *self.operations.borrow_mut() += 1;
    }
}

impl Memory for Sparse {
    fn len(&self) -> u64 {
        self.len
    }
    fn load(&self, at: u64) -> u64 {
        self.count();
        self.get(at)
    }
    fn store(&self, at: u64, value: u64) {
        self.count();
        self.set(at, value);
    }
    fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
        self.count();
        match self.get(at) {
            held if held == expected => {
                self.set(at, new);
                Ok(())
            }
            held => Err(held),
        }
    }
    fn fetch_max(&self, at: u64, value: u64) -> u64 {
        self.count();
        let held = self.get(at);
        self.set(at, held.max(value));
        held
    }
    fn fetch_add(&self, at: u64, value: u64) -> u64 {
        self.count();
        let held = self.get(at);
        self.set(at, held.wrapping_add(value));
        held
    }
    fn fetch_or(&self, at: u64, bits: u64) -> u64 {
        self.count();
        let held = self.get(at);
        self.set(at, held | bits);
        held
    }
    fn swap(&self, at: u64, value: u64) -> u64 {
        self.count();
        let held = self.get(at);
        self.set(at, value);
        held
    }
    fn read(&self, at: u64, into: &mut [u8]) {
        for (i, chunk) in into.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.get(at + 8 * i as u64).to_le_bytes()[..chunk.len()]);
        }
    }
    fn write(&self, at: u64, from: &[u8]) {
        for (i, chunk) in from.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.set(at + 8 * i as u64, u64::from_le_bytes(word));
        }
    }
    fn flush(&self, _at: u64, _len: u64) {}
    fn invalidate(&self, _at: u64, _len: u64) {}
}
