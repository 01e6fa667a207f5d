//! Linearizability of registers, by search.
//!
//! Keys are independent, so each is judged alone. An order of a key's operations is looked for that
//! agrees with real time and in which every read sees the write before it: Wing and Gong's search,
//! with Lowe's memory of the configurations (set of operations done, value) that led nowhere. An
//! operation without a known outcome may take effect at any time after its start, or never.

use super::anomaly::{Anomaly, Kind};
use crate::{Op, Outcome, Record};
use std::collections::{BTreeMap, BTreeSet};

/// Configurations tried per key before the search is given up as [`Kind::Undecided`].
const CONFIGURATIONS_MAX: usize = 2_000_000;

/// Judges all registers of a history.
pub fn check(records: &[Record]) -> Vec<Anomaly> {
    let mut by_key: BTreeMap<i64, Vec<Operation>> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        for op in &record.ops {
            if let Some((key, effect)) = Effect::of(op, record.outcome) {
                let returned = match record.outcome {
                    Outcome::Committed => record.completed.unwrap_or(u64::MAX),
                    _ => u64::MAX,
                };
                let optional = record.outcome == Outcome::Unknown;
                by_key.entry(key).or_default().push(Operation {
                    record: index,
                    invoked: record.invoked,
                    returned,
                    optional,
                    effect,
                });
            }
        }
    }
    by_key.into_iter().filter_map(|(key, operations)| check_key(key, operations)).collect()
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    record: usize,
    invoked: u64,
    returned: u64,
    /// It may never have happened.
    optional: bool,
    effect: Effect,
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    Read(Option<i64>),
    Write(i64),
    /// Compare-and-set that swapped, that did not, and of which that is unknown.
    Swapped(i64, i64),
    NotSwapped(i64),
    MaybeSwapped(i64, i64),
}

impl Effect {
    /// The effect of an operation on its key; `None` if it has none or tells nothing.
    fn of(op: &Op, outcome: Outcome) -> Option<(i64, Effect)> {
        match (op, outcome) {
            (_, Outcome::Aborted) | (Op::Read { .. }, Outcome::Unknown) => None,
            (Op::Read { key, value }, _) => Some((*key, Effect::Read(*value))),
            (Op::Write { key, value }, _) => Some((*key, Effect::Write(*value))),
            (Op::CompareAndSet { key, expected, new, .. }, Outcome::Unknown) => {
                Some((*key, Effect::MaybeSwapped(*expected, *new)))
            }
            (Op::CompareAndSet { key, expected, new, swapped: true }, _) => Some((*key, Effect::Swapped(*expected, *new))),
            (Op::CompareAndSet { key, expected, .. }, _) => Some((*key, Effect::NotSwapped(*expected))),
            _ => None,
        }
    }

    /// The value afterwards, if the operation may happen at this value.
    fn apply(self, value: Option<i64>) -> Option<Option<i64>> {
        match self {
            Effect::Read(seen) => (seen == value).then_some(value),
            Effect::Write(new) => Some(Some(new)),
            Effect::Swapped(expected, new) => (value == Some(expected)).then_some(Some(new)),
            Effect::NotSwapped(expected) => (value != Some(expected)).then_some(value),
            Effect::MaybeSwapped(expected, new) => Some(if value == Some(expected) { Some(new) } else { value }),
        }
    }
    /// The value that must have been there for this to happen as it did.
    fn needs(self) -> Option<i64> {
        match self {
            Effect::Read(value) => value,
            Effect::Swapped(expected, _) | Effect::MaybeSwapped(expected, _) => Some(expected),
            Effect::Write(_) | Effect::NotSwapped(_) => None,
        }
    }
    fn changes_nothing(self) -> bool {
        matches!(self, Effect::Read(_) | Effect::NotSwapped(_))
    }
}

/// What has been done: the required operations below `first` and those in `more`, and the optional
/// ones in `used`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Done {
    first: usize,
    more: BTreeSet<usize>,
    used: BTreeSet<usize>,
}

impl Done {
    fn contains(&self, required: usize) -> bool {
        required < self.first || self.more.contains(&required)
    }
    fn with(&self, required: usize) -> Done {
        let mut done = self.clone();
        done.more.insert(required);
        while done.more.remove(&done.first) {
            done.first += 1;
        }
        done
    }
    fn with_optional(&self, optional: usize) -> Done {
        let mut done = self.clone();
        done.used.insert(optional);
        done
    }
}

fn check_key(key: i64, operations: Vec<Operation>) -> Option<Anomaly> {
    let (mut optional, mut required): (Vec<Operation>, Vec<Operation>) = operations.into_iter().partition(|o| o.optional);
    required.sort_by_key(|o| (o.invoked, o.returned));
    optional.sort_by_key(|o| o.invoked);
    let observed: BTreeSet<i64> = required.iter().chain(&optional).filter_map(|o| o.effect.needs()).collect();
    let mut search = Search { required: &required, optional: &optional, observed, dead: BTreeSet::new(), furthest: 0 };
    let kind = match search.run() {
        Found::Order => return None,
        Found::Nothing => Kind::NotLinearizable,
        Found::TooMany => Kind::Undecided,
    };
    let around = &required[search.furthest.saturating_sub(4)..(search.furthest + 4).min(required.len())];
    let shown: Vec<String> =
        around.iter().map(|o| format!("record {} [{}, {}] {:?}", o.record, o.invoked, o.returned, o.effect)).collect();
    Some(Anomaly {
        kind,
        records: around.iter().map(|o| o.record).collect(),
        description: format!("no order of the operations on register {key} explains them; near {}", shown.join("; ")),
    })
}

enum Found {
    Order,
    Nothing,
    TooMany,
}

type Configuration = (Done, Option<i64>);

struct Search<'o> {
    /// Sorted by start.
    required: &'o [Operation],
    /// Sorted by start.
    optional: &'o [Operation],
    /// Values that somebody needs to have been there.
    observed: BTreeSet<i64>,
    dead: BTreeSet<Configuration>,
    /// The furthest that all operations were explained up to: where an explanation is missing.
    furthest: usize,
}

impl Search<'_> {
    fn run(&mut self) -> Found {
        let start = Done { first: 0, more: BTreeSet::new(), used: BTreeSet::new() };
        let mut stack = vec![(start, None)];
        while let Some((done, value)) = stack.pop() {
            self.furthest = self.furthest.max(done.first);
            if done.first == self.required.len() {
                return Found::Order;
            }
            if !self.dead.insert((done.clone(), value)) {
                continue;
            }
            if self.dead.len() > CONFIGURATIONS_MAX {
                return Found::TooMany;
            }
            self.push_next(&done, value, &mut stack);
        }
        Found::Nothing
    }

    /// Pushes what may come next: operations that began before any that is not done returned.
    fn push_next(&self, done: &Done, value: Option<i64>, stack: &mut Vec<Configuration>) {
        let mut first_return = u64::MAX;
        let mut open = Vec::new();
        for index in (done.first..self.required.len()).filter(|i| !done.contains(*i)) {
            let operation = &self.required[index];
            // Sorted by start: no later one may come before what has returned by now.
            if operation.invoked > first_return {
                break;
            }
            first_return = first_return.min(operation.returned);
            if operation.effect.changes_nothing() && operation.effect.apply(value).is_some() {
                // It fits here and changes nothing, so no order is lost by taking it at once.
                return stack.push((done.with(index), value));
            }
            open.push(index);
        }
        self.push_optional(done, value, &open, first_return, stack);
        // The stack's top is tried first: what returned early before what returned late.
        open.sort_by_key(|index| std::cmp::Reverse(self.required[*index].returned));
        for index in open {
            if let Some(after) = self.required[index].effect.apply(value) {
                stack.push((done.with(index), after));
            }
        }
    }

    /// Optional operations that may come next. One whose value somebody needs is tried like any
    /// other. One whose value nobody needs can only explain why a compare-and-set did *not* swap,
    /// so it is tried right before one of those, and any one of them does: otherwise their subsets
    /// would drown the search.
    fn push_optional(&self, done: &Done, value: Option<i64>, open: &[usize], until: u64, stack: &mut Vec<Configuration>) {
        let available = (0..self.optional.len())
            .filter(|index| !done.used.contains(index))
            .take_while(|index| self.optional[*index].invoked <= until);
        let mut distraction = None;
        for index in available {
            let Some(after) = self.optional[index].effect.apply(value) else { continue };
            match after {
                _ if after == value => {}
                Some(new) if self.observed.contains(&new) => stack.push((done.with_optional(index), after)),
                _ => distraction = distraction.or(Some((index, after))),
            }
        }
        if let Some((optional, after)) = distraction {
            for index in open {
                let effect = self.required[*index].effect;
                if matches!(effect, Effect::NotSwapped(_)) && effect.apply(after).is_some() {
                    stack.push((done.with_optional(optional).with(*index), after));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::generate;
    use proptest::prelude::*;

    fn at(invoked: u64, completed: u64, op: Op) -> Record {
        Record { client: 0, invoked, completed: Some(completed), outcome: Outcome::Committed, ops: vec![op] }
    }
    fn unknown(invoked: u64, op: Op) -> Record {
        Record { client: 0, invoked, completed: None, outcome: Outcome::Unknown, ops: vec![op] }
    }
    fn write(value: i64) -> Op {
        Op::Write { key: 1, value }
    }
    fn read(value: Option<i64>) -> Op {
        Op::Read { key: 1, value }
    }
    fn swap(expected: i64, new: i64, swapped: bool) -> Op {
        Op::CompareAndSet { key: 1, expected, new, swapped }
    }
    fn is_linearizable(history: &[Record]) -> bool {
        let anomalies = check(history);
        assert!(anomalies.iter().all(|a| a.kind == Kind::NotLinearizable));
        anomalies.is_empty()
    }

    #[test]
    fn a_read_sees_the_write_before_it_or_one_that_overlaps() {
        assert!(is_linearizable(&[at(0, 10, write(1)), at(20, 30, read(Some(1)))]));
        assert!(is_linearizable(&[at(0, 30, write(1)), at(10, 20, read(None)), at(12, 22, read(Some(1)))]));
    }

    #[test]
    fn a_stale_read_is_found() {
        assert!(!is_linearizable(&[at(0, 10, write(1)), at(20, 30, write(2)), at(40, 50, read(Some(1)))]));
        assert!(!is_linearizable(&[at(0, 10, write(1)), at(20, 30, read(None))]));
    }

    #[test]
    fn reads_that_go_back_in_time_are_found() {
        let history = [at(0, 100, write(1)), at(10, 20, read(Some(1))), at(30, 40, read(None))];
        assert!(!is_linearizable(&history));
    }

    #[test]
    fn a_value_from_nowhere_is_found() {
        assert!(!is_linearizable(&[at(0, 10, read(Some(7)))]));
    }

    #[test]
    fn two_swaps_of_one_value_are_found() {
        let history = [at(0, 10, write(1)), at(20, 30, swap(1, 2, true)), at(20, 30, swap(1, 3, true))];
        assert!(!is_linearizable(&history));
        let history = [at(0, 10, write(1)), at(20, 30, swap(1, 2, true)), at(20, 30, swap(1, 3, false))];
        assert!(is_linearizable(&history));
    }

    #[test]
    fn a_swap_that_should_have_happened_is_found() {
        assert!(!is_linearizable(&[at(0, 10, write(1)), at(20, 30, swap(1, 2, false))]));
    }

    #[test]
    fn a_lost_write_is_found() {
        let history = [at(0, 10, write(1)), at(20, 30, write(2)), at(40, 50, read(Some(2))), at(60, 70, read(Some(1)))];
        assert!(!is_linearizable(&history));
    }

    #[test]
    fn an_unknown_write_may_happen_late_or_never_but_only_once() {
        let base = [at(0, 10, write(1)), unknown(5, write(2)), at(20, 30, read(Some(1)))];
        assert!(is_linearizable(&base));
        let late = [base.to_vec(), vec![at(40, 50, read(Some(2)))]].concat();
        assert!(is_linearizable(&late));
        let twice = [late, vec![at(60, 70, write(3)), at(80, 90, read(Some(2)))]].concat();
        assert!(!is_linearizable(&twice));
    }

    #[test]
    fn an_unknown_swap_explains_its_value() {
        let history = [at(0, 10, write(1)), unknown(15, swap(1, 2, false)), at(20, 30, read(Some(2)))];
        assert!(is_linearizable(&history));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_serial_execution_passes(seed in any::<u64>(), clients in 1u32..10, count in 1usize..300) {
            prop_assert_eq!(check(&generate::registers(seed, clients, count)), vec![]);
        }

        #[test]
        fn reading_a_value_long_overwritten_is_found(seed in any::<u64>()) {
            let mut history = generate::registers(seed, 3, 100);
            // Unknown writes could come back to life; without them an old value is gone for good.
            history.retain(|r| r.outcome == Outcome::Committed);
            let end = history.iter().filter_map(|r| r.completed).max().unwrap_or(0);
            history.push(at(end + 1, end + 2, write(1_000_000)));
            history.push(at(end + 3, end + 4, write(1_000_001)));
            history.push(at(end + 5, end + 6, read(Some(1_000_000))));
            prop_assert!(!check(&history).is_empty());
        }
    }
}
