//! Strict serializability from list-append histories.
//!
//! A list read by a committed transaction shows all appends to its key so far, in order. So the longest list read of a key is
//! its version order, every other list of it must be a prefix, and from versions follow the dependencies: who overwrote whom
//! (write-write), who read whose append (write-read), who read a version that somebody then extended (read-write). A range
//! read that found no row for a key read the key's empty list *by predicate*; what inserted the row later is a phantom to it.
//! Together with real time (one transaction was over before the other began), a strictly serializable history has no cycle
//! among these.
//!
//! What is known of a transaction without a known outcome: if anybody saw one of its appends, it committed, at some time
//! after its start; else it is left out. Reads of transactions that did not commit promise nothing and are ignored.
//!
//! An acknowledged append that no list shows must have come after every list that was read of its key; if a read of the
//! key began after the acknowledgement, that contradiction is reported as a lost write, and as the cycle that it is.

use super::anomaly::{Anomaly, Kind};
use super::cycles::{self, Edge};
use super::graph::{Graph, Node};
use meridian_workload::{Op, Outcome, Record};
use std::collections::{BTreeMap, BTreeSet};

/// Judges a history; an empty answer means strictly serializable as far as the history can tell.
pub fn check(records: &[Record]) -> Vec<Anomaly> {
    let mut checker = Checker::new(records);
    checker.order_versions();
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

struct Checker<'h> {
    records: &'h [Record],
    /// Who appended a value to a key, with the place among that transaction's appends to the key.
    writers: BTreeMap<(i64, i64), (usize, usize)>,
    /// How many appends a transaction made to a key.
    appends: BTreeMap<(usize, i64), usize>,
    /// Keys that anybody appended to: what a range read that lacks them failed to find.
    keys: BTreeSet<i64>,
    reads: Vec<ExternalRead<'h>>,
    /// The longest list that was seen of each key.
    versions: BTreeMap<i64, &'h [i64]>,
    anomalies: Vec<Anomaly>,
}

impl<'h> Checker<'h> {
    fn new(records: &'h [Record]) -> Checker<'h> {
        let mut checker = Checker {
            records,
            writers: BTreeMap::new(),
            appends: BTreeMap::new(),
            keys: BTreeSet::new(),
            reads: Vec::new(),
            versions: BTreeMap::new(),
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
            }
        }
        for (index, record) in records.iter().enumerate() {
            if record.outcome == Outcome::Committed {
                checker.collect_reads(index, record);
            }
        }
        checker
    }

    /// Takes a committed transaction's reads apart: what it saw of others, and whether it agrees with itself.
    fn collect_reads(&mut self, index: usize, record: &'h Record) {
        // Per key: what was read of others (if anything was yet), and own appends so far.
        let mut seen: BTreeMap<i64, &'h [i64]> = BTreeMap::new();
        let mut own: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for op in &record.ops {
            match op {
                Op::Append { key, value } => own.entry(*key).or_default().push(*value),
                Op::ReadList { key, values } => self.collect_read(index, *key, values, false, &mut seen, &own),
                Op::ReadRange { from, to, lists } => {
                    for (key, list) in lists {
                        self.collect_read(index, *key, list, false, &mut seen, &own);
                    }
                    let missing: Vec<i64> = self.keys.range(*from..*to).filter(|key| !lists.contains_key(key)).copied().collect();
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
        // Own appends are part of the key's history too: nobody else may be known to have read them.
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
            if self.appends.contains_key(&(read.record, read.key))
                && let Some(other) = updated.insert((read.key, read.list.len()), read.record)
            {
                let what = format!(
                    "records {other} and {} both read {:?} of {} and both appended to it",
                    read.record, read.list, read.key
                );
                self.report(Kind::LostUpdate, vec![other, read.record], what);
            }
        }
    }

    /// Acknowledged appends that a later read does not show.
    fn check_lost(&mut self) {
        for ((key, value), writer) in self.unseen() {
            let Some(completed) = self.records[writer].completed else { continue };
            let late = |read: &&ExternalRead| read.key == key && self.records[read.record].invoked > completed;
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
        let shown = |key: i64, value: i64| self.versions.get(&key).is_some_and(|list| list.contains(&value));
        self.writers
            .iter()
            .filter(|((key, value), (writer, _))| self.records[*writer].outcome == Outcome::Committed && !shown(*key, *value))
            .map(|(append, (writer, _))| (*append, *writer))
            .collect()
    }

    fn check_cycles(&mut self) {
        let mut graph = Graph::new(self.records.len());
        self.add_dependencies(&mut graph);
        self.add_real_time(&mut graph);
        for cycle in cycles::find(&graph) {
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

    fn add_dependencies(&self, graph: &mut Graph<Edge>) {
        let writer = |key: i64, value: i64| self.writers.get(&(key, value)).map(|(record, _)| *record);
        let unseen = self.unseen();
        for (key, list) in &self.versions {
            let writers: Vec<usize> = list.iter().filter_map(|value| writer(*key, *value)).collect();
            for pair in writers.windows(2) {
                graph.add_edge(pair[0], pair[1], Edge::WriteWrite);
            }
            for ((_, value), late) in unseen.iter().filter(|((k, _), _)| k == key) {
                debug_assert!(!list.contains(value));
                if let Some(last) = writers.last() {
                    graph.add_edge(*last, *late, Edge::WriteWrite);
                }
            }
        }
        for read in &self.reads {
            if let Some(wrote) = read.list.last().and_then(|value| writer(read.key, *value)) {
                graph.add_edge(wrote, read.record, Edge::WriteRead);
            }
            let anti = if read.absent_in_range { Edge::ReadWritePredicate } else { Edge::ReadWrite };
            let versions = self.versions.get(&read.key).copied().unwrap_or_default();
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

    /// Real time as a chain: a node per completion, in order. A transaction leads into the node of its own completion, and the
    /// last completion before a transaction began leads into that transaction; so the order of all pairs costs few edges.
    fn add_real_time(&self, graph: &mut Graph<Edge>) {
        let takes_part = |record: &Record| record.outcome != Outcome::Aborted;
        let mut completions: Vec<(u64, usize)> = self
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| takes_part(record))
            .filter_map(|(index, record)| record.completed.map(|time| (time, index)))
            .collect();
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

#[cfg(test)]
mod tests;
