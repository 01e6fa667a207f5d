//! Strict serializability from list-append histories.
//!
//! A list read by a committed transaction shows all appends to its key so far, in order. So the
//! longest list read of a key is its version order, every other list of it must be a prefix, and
//! from versions follow the dependencies: who overwrote whom (write-write), who read whose append
//! (write-read), who read a version that somebody then extended (read-write). A range read that
//! found no row for a key read the key's empty list *by predicate*; what inserted the row later is
//! a phantom to it. Together with real time (one transaction was over before the other began), a
//! strictly serializable history has no cycle among these.
//!
//! What is known of a transaction without a known outcome: if anybody saw one of its appends, it
//! committed, at some time after its start; else it is left out. Reads of transactions that did not
//! commit promise nothing and are ignored.
//!
//! An acknowledged append that no list shows must have come after every list that was read of its
//! key; if a read of the key began after the acknowledgement, that contradiction is reported as a
//! lost write, and as the cycle that it is.
//!
//! A key may be deleted, once in its life and for ever: who deletes it tells which list it removed,
//! so that list is the key's last version. A key that is read as empty may then be not written yet
//! or deleted already. Which of the two follows from real time where that is told, and where it is
//! not, the read says nothing.
//!
//! A transaction that read a moment of the past ([`Op::Past`]) has its place among the others, as
//! any snapshot has. That place is one in the order of timestamps. This order is that of real time
//! only for transactions that are connected, by what they read and wrote themselves or through
//! others like them; so real time says nothing about what such a transaction missed. What it saw
//! has happened for whoever begins after it.

use super::anomaly::{Anomaly, Kind};
use super::cycles::{self, Edge};
use super::graph::{Graph, Node};
use super::promise::Promise;
use crate::{Op, Outcome, Record};
use std::collections::{BTreeMap, BTreeSet};

/// Judges a history; an empty answer means that the promise was kept as far as the history can
/// tell.
pub fn check(records: &[Record], promise: &Promise) -> Vec<Anomaly> {
    let mut checker = Checker::new(records, promise);
    checker.order_versions();
    checker.find_deaths();
    checker.check_reads();
    checker.check_lost();
    checker.check_cycles();
    checker.anomalies
}

/// What one committed transaction read of one key before its own appends to it.
#[derive(Clone, Debug)]
struct ExternalRead<'h> {
    record: usize,
    key: i64,
    list: &'h [i64],
    /// Whether a predicate failed to find the row.
    absent_in_range: bool,
}

/// The end of a key.
#[derive(Clone, Copy, Debug)]
struct Death<'h> {
    record: usize,
    /// What was there until then.
    list: &'h [i64],
}

/// When an empty read of a key that was deleted took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptiness {
    BeforeTheFirst,
    AfterTheDeath,
    /// Real time does not tell.
    Either,
}

struct Checker<'h> {
    records: &'h [Record],
    promise: &'h Promise,
    /// Who appended a value to a key, with the place among that transaction's appends to the key.
    writers: BTreeMap<(i64, i64), (usize, usize)>,
    /// How many appends a transaction made to a key.
    appends: BTreeMap<(usize, i64), usize>,
    /// Keys that anybody appended to: what a range read that lacks them failed to find.
    keys: BTreeSet<i64>,
    reads: Vec<ExternalRead<'h>>,
    /// The longest list that was seen of each key.
    versions: BTreeMap<i64, &'h [i64]>,
    /// Every delete of a key by a transaction that committed or may have.
    deletes: BTreeMap<i64, Vec<Death<'h>>>,
    /// Of these, the one that took place.
    deaths: BTreeMap<i64, Death<'h>>,
    anomalies: Vec<Anomaly>,
}

impl<'h> Checker<'h> {
    fn new(records: &'h [Record], promise: &'h Promise) -> Checker<'h> {
        let mut checker = Checker {
            records,
            promise,
            writers: BTreeMap::new(),
            appends: BTreeMap::new(),
            keys: BTreeSet::new(),
            reads: Vec::new(),
            versions: BTreeMap::new(),
            deletes: BTreeMap::new(),
            deaths: BTreeMap::new(),
            anomalies: Vec::new(),
        };
        for (index, record) in records.iter().enumerate() {
            for op in &record.ops {
                if let Op::Append { key, value } = op {
                    let place = checker.appends.entry((index, *key)).or_default();
                    let before = checker.writers.insert((*key, *value), (index, *place));
                    assert!(before.is_none(), "the history appends {value} to {key} twice, which no checker can tell apart");
                    *place += 1;
                    checker.keys.insert(*key);
                }
                if let Op::Delete { key, values } = op
                    && record.outcome != Outcome::Aborted
                {
                    checker.deletes.entry(*key).or_default().push(Death { record: index, list: values });
                }
            }
        }
        for (index, record) in records.iter().enumerate() {
            if record.outcome == Outcome::Committed {
                checker.collect_reads(index, record);
            }
        }
        checker
    }

    /// Takes a committed transaction's reads apart: what it saw of others, and whether it agrees
    /// with itself.
    fn collect_reads(&mut self, index: usize, record: &'h Record) {
        // Per key: what was read of others (if anything was yet), and own appends so far.
        let mut seen: BTreeMap<i64, &'h [i64]> = BTreeMap::new();
        let mut own: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        let mut gone: BTreeSet<i64> = BTreeSet::new();
        for op in &record.ops {
            match op {
                Op::Append { key, value } => own.entry(*key).or_default().push(*value),
                Op::ReadList { key, values } if gone.contains(key) && values.is_empty() => {}
                Op::ReadList { key, values } if gone.contains(key) => {
                    self.report(Kind::Internal, vec![index], format!("record {index} deleted {key} and then read {values:?}"))
                }
                Op::ReadList { key, values } => self.collect_read(index, *key, values, false, &mut seen, &own),
                Op::Delete { key, values } => {
                    self.collect_read(index, *key, values, false, &mut seen, &own);
                    gone.insert(*key);
                }
                Op::ReadRange { from, to, lists } => {
                    for (key, list) in lists {
                        if !gone.contains(key) {
                            self.collect_read(index, *key, list, false, &mut seen, &own);
                        } else if !list.is_empty() {
                            let what = format!("record {index} deleted {key} and then read {list:?}");
                            self.report(Kind::Internal, vec![index], what);
                        }
                    }
                    let is_missing = |key: &&i64| !lists.contains_key(key) && !gone.contains(key);
                    let missing: Vec<i64> = self.keys.range(*from..*to).filter(is_missing).copied().collect();
                    for key in missing {
                        self.collect_read(index, key, &[], true, &mut seen, &own);
                    }
                }
                _ => {}
            }
        }
    }

    fn collect_read(
        &mut self,
        record: usize,
        key: i64,
        list: &'h [i64],
        absent_in_range: bool,
        seen: &mut BTreeMap<i64, &'h [i64]>,
        own: &BTreeMap<i64, Vec<i64>>,
    ) {
        let own = own.get(&key).map(Vec::as_slice).unwrap_or_default();
        let Some(external) = list.strip_suffix(own) else {
            let what = format!("record {record} appended {own:?} to {key} and then read {list:?}");
            return self.report(Kind::Internal, vec![record], what);
        };
        match seen.get(&key) {
            Some(before) if *before != external => {
                let what = format!("record {record} read {before:?} of {key} and then {external:?}");
                self.report(Kind::Internal, vec![record], what);
            }
            Some(_) => {}
            None => {
                seen.insert(key, external);
                self.reads.push(ExternalRead { record, key, list: external, absent_in_range });
            }
        }
        // Own appends are part of the key's history too: nobody else may be known to have read
        // them.
        self.note_version(record, key, list);
    }

    /// Keeps the longest list of a key, and reports two that cannot belong to one history.
    fn note_version(&mut self, record: usize, key: i64, list: &'h [i64]) {
        let longest = self.versions.entry(key).or_default();
        let (short, long) = if list.len() <= longest.len() { (list, *longest) } else { (*longest, list) };
        *longest = long;
        if !long.starts_with(short) {
            let what = format!("key {key} was read as {short:?} and as {long:?}");
            self.report(Kind::IncompatibleOrder, vec![record], what);
        }
    }

    /// Values in the version orders that are there twice, or that nobody wrote.
    fn order_versions(&mut self) {
        for (key, list) in self.versions.clone() {
            let mut once = BTreeSet::new();
            for value in list {
                if !once.insert(value) {
                    self.report(Kind::Duplicate, vec![], format!("{value} is in the list of {key} twice: {list:?}"));
                }
                if !self.writers.contains_key(&(key, *value)) {
                    self.report(Kind::Garbage, vec![], format!("nobody appended {value} to {key}: {list:?}"));
                }
            }
        }
    }

    /// Which delete of each key took place. A transaction whose outcome nobody was told committed
    /// if the key was seen to be gone.
    fn find_deaths(&mut self) {
        for (key, deletes) in self.deletes.clone() {
            let (committed, maybe): (Vec<Death>, Vec<Death>) =
                deletes.iter().partition(|death| self.records[death.record].outcome == Outcome::Committed);
            let death = match (&committed[..], &maybe[..]) {
                ([first, others @ ..], _) => {
                    for other in others {
                        let what = format!("records {} and {} both deleted {key}", first.record, other.record);
                        self.report(Kind::LostUpdate, vec![first.record, other.record], what);
                    }
                    *first
                }
                ([], [only]) if self.was_seen_gone(key) => *only,
                // One of several, or none.
                _ => continue,
            };
            let longest = self.versions.get(&key).copied().unwrap_or_default();
            if !death.list.starts_with(longest) {
                let what = format!("key {key} was read as {longest:?}, but record {} deleted {:?}", death.record, death.list);
                self.report(Kind::IncompatibleOrder, vec![death.record], what);
            } else {
                self.versions.insert(key, death.list);
            }
            self.deaths.insert(key, death);
        }
    }

    /// Whether a key was read as empty although an append to it had been acknowledged before.
    fn was_seen_gone(&self, key: i64) -> bool {
        if self.promise.leaves_key_open(key) {
            return false;
        }
        let is_empty = |read: &&ExternalRead| read.key == key && read.list.is_empty() && !self.is_past(read.record);
        self.reads.iter().filter(is_empty).any(|read| self.has_begun_before(key, read.record))
    }

    /// Whether an append to a key had been acknowledged when a transaction began.
    fn has_begun_before(&self, key: i64, record: usize) -> bool {
        let of_key = self.writers.range((key, i64::MIN)..=(key, i64::MAX));
        let mut acknowledged = of_key.map(|(_, (writer, _))| &self.records[*writer]).filter(|w| w.outcome == Outcome::Committed);
        acknowledged.any(|writer| writer.completed.is_some_and(|completed| completed < self.records[record].invoked))
    }

    fn is_past(&self, record: usize) -> bool {
        is_past(&self.records[record])
    }

    /// An empty read of a key that somebody deleted, or may have.
    fn emptiness(&self, read: &ExternalRead, death: &Death) -> Emptiness {
        let (reader, deleter) = (&self.records[read.record], &self.records[death.record]);
        if death.list.is_empty() || self.is_past(read.record) || self.promise.leaves_key_open(read.key) {
            return Emptiness::Either;
        }
        let is_early = reader.completed.is_some_and(|completed| completed < deleter.invoked);
        let is_late = self.has_begun_before(read.key, read.record);
        match (is_early, is_late) {
            // It missed what was there before and after it: a stale read.
            (true, _) => Emptiness::BeforeTheFirst,
            (false, true) => Emptiness::AfterTheDeath,
            (false, false) => Emptiness::Either,
        }
    }

    /// Aborted reads, intermediate reads, and two updates of one version.
    fn check_reads(&mut self) {
        let mut updated: BTreeMap<(i64, usize), usize> = BTreeMap::new();
        for read in self.reads.clone() {
            for value in read.list {
                let Some((writer, _)) = self.writers.get(&(read.key, *value)) else { continue };
                if self.records[*writer].outcome == Outcome::Aborted {
                    let what = format!("record {} read {value} of {}, which record {writer} aborted", read.record, read.key);
                    self.report(Kind::G1a, vec![read.record, *writer], what);
                }
            }
            if let Some((writer, place)) = read.list.last().and_then(|v| self.writers.get(&(read.key, *v))).copied()
                && place + 1 < self.appends[&(writer, read.key)]
            {
                let what = format!("record {} read {} between two appends of record {writer}", read.record, read.key);
                self.report(Kind::G1b, vec![read.record, writer], what);
            }
            let deletes = self.deletes.get(&read.key).is_some_and(|all| all.iter().any(|death| death.record == read.record));
            if (self.appends.contains_key(&(read.record, read.key)) || deletes)
                && let Some(other) = updated.insert((read.key, read.list.len()), read.record)
            {
                let what =
                    format!("records {other} and {} both read {:?} of {} and both changed it", read.record, read.list, read.key);
                self.report(Kind::LostUpdate, vec![other, read.record], what);
            }
        }
    }

    /// Acknowledged appends and deletes that a later read does not show.
    fn check_lost(&mut self) {
        for (key, death) in self.deaths.clone() {
            let Some(completed) = self.records[death.record].completed else { continue };
            let of_key = self.reads.iter().filter(|read| read.key == key && !self.is_past(read.record));
            // Where order is left open a read may be stale: lost is what is missing at the end.
            let candidates: Vec<&ExternalRead> = match self.promise.leaves_key_open(key) {
                false => of_key.collect(),
                true => of_key.max_by_key(|read| self.records[read.record].invoked).into_iter().collect(),
            };
            let is_late = |read: &&&ExternalRead| !read.list.is_empty() && self.records[read.record].invoked > completed;
            if let Some(read) = candidates.iter().find(is_late) {
                let what = format!(
                    "record {} deleted {key}, but record {}, which began later, read {:?}",
                    death.record, read.record, read.list
                );
                let records = vec![death.record, read.record];
                self.report(Kind::LostWrite, records, what);
            }
        }
        for ((key, value), writer) in self.unseen() {
            let Some(completed) = self.records[writer].completed else { continue };
            let late = |read: &&ExternalRead| {
                read.key == key && self.records[read.record].invoked > completed && !self.is_past(read.record)
            };
            if let Some(read) = self.reads.iter().find(late) {
                let what = format!(
                    "record {writer} appended {value} to {key}, but record {}, which began later, read {:?}",
                    read.record, read.list
                );
                let records = vec![writer, read.record];
                self.report(Kind::LostWrite, records, what);
            }
        }
    }

    /// Acknowledged appends that no list shows.
    fn unseen(&self) -> Vec<((i64, i64), usize)> {
        // What a delete removed that may have taken place was there.
        let removed = |key: i64, value: i64| {
            self.deletes.get(&key).is_some_and(|deletes| deletes.iter().any(|death| death.list.contains(&value)))
        };
        let shown =
            |key: i64, value: i64| self.versions.get(&key).is_some_and(|list| list.contains(&value)) || removed(key, value);
        self.writers
            .iter()
            .filter(|((key, value), (writer, _))| self.records[*writer].outcome == Outcome::Committed && !shown(*key, *value))
            .map(|(append, (writer, _))| (*append, *writer))
            .collect()
    }

    fn check_cycles(&mut self) {
        // Whatever the clocks show, there is an order.
        let mut graph = Graph::new(self.records.len());
        self.add_dependencies(&mut graph, |_| true, |_| true);
        let mut found = cycles::find(&graph);
        if found.is_empty() {
            let mut graph = Graph::new(self.records.len());
            self.add_dependencies(&mut graph, |key| !self.promise.leaves_key_open(key), |record| !self.is_past(record));
            self.add_real_time(&mut graph);
            found = cycles::find(&graph);
        }
        for cycle in found {
            let is_record = |node: &Node| *node < self.records.len();
            let records: Vec<usize> = cycle.steps.iter().map(|(from, ..)| *from).filter(is_record).collect();
            let mut what = String::new();
            for (from, edge, to) in &cycle.steps {
                if is_record(from) {
                    what += &format!("{from} ");
                }
                // Time is a chain of nodes of its own; the reader is told only where it is left.
                if *edge != Edge::RealTime {
                    what += &format!("-{edge:?}-> ");
                } else if is_record(to) {
                    what += "-RealTime-> ";
                }
            }
            what += &format!("{}", cycle.steps[0].0);
            self.report(cycle.kind, records, what);
        }
    }

    /// What follows from the versions of the keys that count, and from the reads of the
    /// transactions that do.
    fn add_dependencies(&self, graph: &mut Graph<Edge>, counts: impl Fn(i64) -> bool, reads: impl Fn(usize) -> bool) {
        let writer = |key: i64, value: i64| self.writers.get(&(key, value)).map(|(record, _)| *record);
        let unseen = self.unseen();
        for (key, list) in self.versions.iter().filter(|(key, _)| counts(**key)) {
            let writers: Vec<usize> = list.iter().filter_map(|value| writer(*key, *value)).collect();
            for pair in writers.windows(2) {
                graph.add_edge(pair[0], pair[1], Edge::WriteWrite);
            }
            for ((_, value), late) in unseen.iter().filter(|((k, _), _)| k == key) {
                debug_assert!(!list.contains(value));
                if let Some(last) = writers.last() {
                    graph.add_edge(*last, *late, Edge::WriteWrite);
                }
                // What was appended to a row was appended while there was one.
                if let Some(death) = self.deaths.get(key) {
                    graph.add_edge(*late, death.record, Edge::WriteWrite);
                }
            }
            if let (Some(death), Some(last)) = (self.deaths.get(key), writers.last()) {
                graph.add_edge(*last, death.record, Edge::WriteWrite);
            }
        }
        for read in self.reads.iter().filter(|read| counts(read.key) && reads(read.record)) {
            if let Some(wrote) = read.list.last().and_then(|value| writer(read.key, *value)) {
                graph.add_edge(wrote, read.record, Edge::WriteRead);
            }
            let anti = if read.absent_in_range { Edge::ReadWritePredicate } else { Edge::ReadWrite };
            let versions = self.versions.get(&read.key).copied().unwrap_or_default();
            let death = self.deaths.get(&read.key);
            if read.list.is_empty() && self.deletes.contains_key(&read.key) && death.is_none_or(|d| d.record != read.record) {
                match death.map_or(Emptiness::Either, |death| self.emptiness(read, death)) {
                    // As of any key whose first list is not read yet.
                    Emptiness::BeforeTheFirst => {}
                    Emptiness::AfterTheDeath => {
                        graph.add_edge(death.expect("it told").record, read.record, Edge::WriteRead);
                        continue;
                    }
                    Emptiness::Either => continue,
                }
            } else if let Some(death) = death
                && read.list.len() == death.list.len()
            {
                graph.add_edge(read.record, death.record, anti);
            }
            match versions.get(read.list.len()) {
                Some(next) => {
                    if let Some(overwrote) = writer(read.key, *next) {
                        graph.add_edge(read.record, overwrote, anti);
                    }
                }
                None => {
                    for (_, late) in unseen.iter().filter(|((key, _), _)| *key == read.key) {
                        graph.add_edge(read.record, *late, anti);
                    }
                }
            }
        }
    }

    /// Real time as a chain: a node per completion, in order. A transaction leads into the node of
    /// its own completion, and the last completion before a transaction began leads into that
    /// transaction; so the order of all pairs costs few edges. Whose place in real time is left
    /// open has none in it. Who read the past has none either, but what it saw was complete by
    /// then.
    fn add_real_time(&self, graph: &mut Graph<Edge>) {
        let takes_part =
            |record: &Record| record.outcome != Outcome::Aborted && !is_past(record) && !self.promise.leaves_open(record);
        let mut completions: Vec<(u64, usize)> = self
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| takes_part(record))
            .filter_map(|(index, record)| record.completed.map(|time| (time, index)))
            .collect();
        for read in self.reads.iter().filter(|read| self.is_past(read.record)) {
            let wrote = read.list.last().and_then(|value| self.writers.get(&(read.key, *value))).map(|(record, _)| *record);
            if let (Some(wrote), Some(time)) = (wrote, self.records[read.record].completed)
                && takes_part(&self.records[wrote])
            {
                completions.push((time, wrote));
            }
        }
        completions.sort_unstable();
        let mut chain: Vec<Node> = Vec::with_capacity(completions.len());
        for (_, index) in &completions {
            let node = graph.add_node();
            graph.add_edge(*index, node, Edge::RealTime);
            if let Some(before) = chain.last() {
                graph.add_edge(*before, node, Edge::RealTime);
            }
            chain.push(node);
        }
        for (index, record) in self.records.iter().enumerate().filter(|(_, r)| takes_part(r)) {
            let before = completions.partition_point(|(time, _)| *time < record.invoked);
            if before > 0 {
                graph.add_edge(chain[before - 1], index, Edge::RealTime);
            }
        }
    }

    fn report(&mut self, kind: Kind, records: Vec<usize>, description: String) {
        self.anomalies.push(Anomaly { kind, records, description });
    }
}

/// Whether a transaction read a moment of the past.
fn is_past(record: &Record) -> bool {
    record.ops.first() == Some(&Op::Past)
}

#[cfg(test)]
mod promises;
#[cfg(test)]
mod tests;
