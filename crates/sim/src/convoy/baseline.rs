//! S-DUR's six servers and their clients.
//!
//! A client sends what it wants to its partition's first server, which executes it (§3.1, footnote
//! 1): rows at home are read there, rows of the other partition at the replica in this region. Then
//! it is broadcast in each partition that it touches.

use super::Config;
use super::load::{Load, Measured, Request};
use super::network::{Log, Machine, Micros, Network, PARTITIONS, REPLICAS};
use super::sdur::{Effect, Order, Server, Slice, Transaction};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a partition orders.
#[derive(Clone)]
enum Entry {
    Transaction(Rc<Transaction>),
    Outcome { number: u64, commit: bool },
}

enum Event {
    /// A client of this partition wants something.
    Arrival(usize),
    /// Its server has it.
    Execute(Request),
    /// A replica near the client reads for it.
    Read {
        at: Machine,
        request: Request,
    },
    /// Everything is read: the snapshot of the other partition, if there was a row of it.
    Commit {
        request: Request,
        elsewhere: Option<u64>,
    },
    /// A partition's first server is to order an entry.
    Append {
        partition: usize,
        entry: Entry,
    },
    Deliver {
        at: Machine,
        entry: Entry,
    },
    Vote {
        at: Machine,
        number: u64,
        from: usize,
        commit: bool,
    },
    /// The client has the answer.
    Answer {
        number: u64,
        commit: bool,
    },
}

struct Cluster {
    network: Network<Event>,
    load: Load,
    logs: [Log; PARTITIONS],
    servers: BTreeMap<Machine, Server>,
    /// Global transactions are held back at home for the delay to the other partition.
    holds_back: bool,
    /// Whose answer is missing.
    open: BTreeMap<u64, Request>,
}

/// Runs the experiment.
pub(super) fn run(order: Order, holds_back: bool, config: &Config) -> Measured {
    let machines = (0..PARTITIONS).flat_map(|partition| (0..REPLICAS).map(move |replica| Machine { partition, replica }));
    let mut cluster = Cluster {
        network: Network::new(config.placement, config.seed),
        load: Load::new(config),
        logs: Default::default(),
        servers: machines.map(|machine| (machine, Server::new(machine.partition, order))).collect(),
        holds_back,
        open: BTreeMap::new(),
    };
    (0..PARTITIONS).for_each(|home| cluster.network.at(0, Event::Arrival(home)));
    let end = cluster.load.end();
    while cluster.network.now() < end {
        let Some(event) = cluster.network.next() else { break };
        cluster.happen(event);
    }
    cluster.load.measured()
}

impl Cluster {
    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(home) => self.arrive(home),
            Event::Execute(request) => self.execute(request),
            Event::Read { at, request } => {
                let elsewhere = Some(self.servers[&at].snapshot());
                self.network.send(at, Machine::first(request.home), Event::Commit { request, elsewhere });
            }
            Event::Commit { request, elsewhere } => self.commit(&request, elsewhere),
            Event::Append { partition, entry } => {
                let delivered = self.logs[partition].append(partition, &mut self.network);
                for (replica, at) in delivered.into_iter().enumerate() {
                    let event = Event::Deliver { at: Machine { partition, replica }, entry: entry.clone() };
                    self.network.at(at, event);
                }
            }
            Event::Deliver { at, entry } => self.act(at, |server, out| match &entry {
                Entry::Transaction(transaction) => server.deliver(transaction, out),
                Entry::Outcome { number, commit } => server.deliver_outcome(*number, *commit, out),
            }),
            Event::Vote { at, number, from, commit } => self.act(at, |server, out| server.vote(number, from, commit, out)),
            Event::Answer { number, commit } => {
                if let Some(request) = self.open.remove(&number) {
                    self.load.answered(&request, commit, self.network.now());
                }
            }
        }
    }

    fn arrive(&mut self, home: usize) {
        let now = self.network.now();
        let request = self.load.request(home, now);
        self.open.insert(request.number, request);
        self.network.send_to_client(Event::Execute(request));
        let next: Micros = now + self.load.pause();
        self.network.at(next, Event::Arrival(home));
    }

    fn execute(&mut self, request: Request) {
        let other = request.partitions().find(|p| *p != request.home);
        match other {
            None => self.commit(&request, None),
            Some(other) => {
                let at = self.network.replica_near(request.home, other);
                self.network.send(Machine::first(request.home), at, Event::Read { at, request });
            }
        }
    }

    /// Algorithm 2, line 10; Algorithm 4.
    fn commit(&mut self, request: &Request, elsewhere: Option<u64>) {
        let home = Machine::first(request.home);
        let here = self.servers[&home].snapshot();
        let slice = |partition: usize| {
            let rows: Vec<u32> = request.rows_in(partition).collect();
            let snapshot = if partition == request.home { here } else { elsewhere.unwrap_or_default() };
            (partition, Slice { reads: rows.clone(), writes: rows, snapshot })
        };
        let transaction = Rc::new(Transaction { number: request.number, slices: request.partitions().map(slice).collect() });
        let farthest = request.partitions().map(|p| self.network.usual_delay(home, Machine::first(p))).max();
        for partition in request.partitions() {
            let append = Event::Append { partition, entry: Entry::Transaction(transaction.clone()) };
            match partition == request.home && self.holds_back {
                true => self.network.at(self.network.now() + farthest.unwrap_or(0), append),
                false => self.network.send(home, Machine::first(partition), append),
            }
        }
    }

    /// A server does something; what follows from it.
    fn act(&mut self, at: Machine, what: impl FnOnce(&mut Server, &mut Vec<Effect>)) {
        let mut out = Vec::new();
        what(self.servers.get_mut(&at).expect("a server on every machine"), &mut out);
        for effect in out {
            match effect {
                Effect::Vote { transaction, commit } => {
                    for partition in transaction.slices.keys().filter(|p| **p != at.partition) {
                        for replica in 0..REPLICAS {
                            let to = Machine { partition: *partition, replica };
                            let vote = Event::Vote { at: to, number: transaction.number, from: at.partition, commit };
                            self.network.send(at, to, vote);
                        }
                    }
                }
                Effect::Completed { transaction, commit } => {
                    let number = transaction.number;
                    let is_its_server = self.open.get(&number).is_some_and(|r| Machine::first(r.home) == at);
                    if is_its_server {
                        self.network.send_to_client(Event::Answer { number, commit });
                    }
                }
                // All servers would say the same; one is enough.
                Effect::Broadcast { number, commit } if at.replica == 0 => {
                    let append = Event::Append { partition: at.partition, entry: Entry::Outcome { number, commit } };
                    self.network.send(at, at, append);
                }
                Effect::Broadcast { .. } => {}
            }
        }
    }
}
