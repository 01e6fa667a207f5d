//! Simulated time: cores, what happens next, and what a piece of work costs.
//!
//! A piece of work is *measured*, each time: its CPU time on this machine, and what its operations
//! on shared memory would take on a device. What it is charged is the average of what its kind has
//! cost lately, so a machine that is busy with something else changes nothing but the averages a
//! little. It takes effect when its time is over.

use crate::memory::Operations;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// What an average keeps of the past.
const KEEPS: f64 = 0.98;
/// Longer than this many times the average: the machine did something else meanwhile.
const OUTLIER: f64 = 8.0;
const OUTLIER_MIN: f64 = 5_000.0;

/// Nanoseconds, on average.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    cpu: f64,
    memory: f64,
}

/// What kinds of work cost.
#[derive(Debug, Default)]
pub struct Meter {
    costs: BTreeMap<&'static str, Cost>,
    /// CPU time of all work so far, without outliers, in nanoseconds.
    pub cpu: f64,
    /// By kind: how often, CPU time, and what was done to memory.
    pub kinds: BTreeMap<&'static str, (u64, f64, Operations)>,
}

impl Meter {
    /// Measures a piece of work, which tells how long it waited for memory besides.
    pub fn measure<T>(&mut self, kind: &'static str, work: impl FnOnce() -> (T, f64)) -> T {
        self.measure_with(kind, || {
            let (result, memory) = work();
            (result, memory, Operations::default())
        })
    }

    /// The same with what was done to memory.
    pub fn measure_with<T>(&mut self, kind: &'static str, work: impl FnOnce() -> (T, f64, Operations)) -> T {
        // The bench measures the machine it runs on.
        #[allow(clippy::disallowed_methods)]
        let begin = std::time::Instant::now();
        let (result, memory, operations) = work();
        self.add(kind, begin.elapsed().as_nanos() as f64, memory, operations);
        result
    }

    /// A piece of work took so many nanoseconds of CPU, and of waiting for memory.
    pub fn add(&mut self, kind: &'static str, mut cpu: f64, memory: f64, operations: Operations) {
        let cost = self.costs.entry(kind).or_insert(Cost { cpu, memory });
        if cpu > (cost.cpu * OUTLIER).max(OUTLIER_MIN) {
            cpu = cost.cpu.min(cpu);
        }
        cost.cpu = cost.cpu * KEEPS + cpu * (1.0 - KEEPS);
        cost.memory = cost.memory * KEEPS + memory * (1.0 - KEEPS);
        self.cpu += cpu;
        let sum = self.kinds.entry(kind).or_default();
        *sum = (sum.0 + 1, sum.1 + cpu, sum.2.and(operations));
    }

    /// What such a piece of work takes.
    pub fn expected(&self, kind: &'static str) -> Duration {
        let cost = self.costs.get(kind).copied().unwrap_or_default();
        Duration::from_nanos((cost.cpu + cost.memory) as u64)
    }

    /// Forgets the sums; the averages stay.
    pub fn begin(&mut self) {
        self.cpu = 0.0;
        self.kinds.clear();
    }
}

/// What happens, in the order of time. Nanoseconds.
#[derive(Debug)]
pub struct Agenda<E> {
    now: u64,
    next: u64,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, E>,
    /// Until when each core is busy.
    cores: Vec<u64>,
}

impl<E> Agenda<E> {
    /// Nothing, for this many cores.
    pub fn new(cores: usize) -> Agenda<E> {
        Agenda { now: 0, next: 0, heap: BinaryHeap::new(), events: BTreeMap::new(), cores: vec![0; cores] }
    }
    /// The time of what happened last.
    pub fn now(&self) -> u64 {
        self.now
    }
    /// Something happens after a while.
    pub fn after(&mut self, while_: Duration, event: E) {
        self.at(self.now + while_.as_nanos() as u64, event);
    }
    /// A core begins something as soon as it can, which takes effect when it is done.
    pub fn on(&mut self, core: usize, takes: Duration, event: E) {
        let end = self.cores[core].max(self.now) + takes.as_nanos() as u64;
        self.cores[core] = end;
        self.at(end, event);
    }
    /// A core is busy a little longer.
    pub fn delays(&mut self, core: usize, by: Duration) {
        self.cores[core] = self.cores[core].max(self.now) + by.as_nanos() as u64;
    }
    fn at(&mut self, at: u64, event: E) {
        self.next += 1;
        self.heap.push(Reverse((at, self.next)));
        self.events.insert(self.next, event);
    }
    /// What happens next.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse((at, number)) = self.heap.pop()?;
        self.now = at;
        self.events.remove(&number)
    }
}
