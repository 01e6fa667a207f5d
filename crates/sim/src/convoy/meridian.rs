//! This database's protocol over the experiment's network: two primaries ([`super::primary`]), a
//! replica of each beside the other's clients, and gateways.
//!
//! A client sends what it wants to its partition's primary, which is its gateway: rows at home are
//! read there, a row of the other partition at the replica in this region, up to what that one
//! knows to be closed. A transaction over both is ended by votes. Left out are wait queues, which
//! order who wants the same row, and retries: hardly any two transactions want one row.

use super::Config;
use super::load::{Load, Measured, Request};
use super::network::{Log, Machine, Micros, Network, PARTITIONS};
use super::primary::{Applied, Execution, Out, Primary, group_of, partition_of, read_entry, write};
use meridian_base::record::Payload;
use meridian_base::{BallotMessage, CommitRequest, GroupId, Peer, Prepare, SchemaUse, Timestamp, TxnId};
use meridian_commit::{Coordination, Verdict};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// How often a primary looks at its timers.
const TICK: Micros = 1_000;

enum Event {
    /// A client of this partition wants something.
    Arrival(usize),
    /// Its gateway has it.
    Execute(Request),
    /// A replica near the client reads for it.
    Read {
        at: Machine,
        request: Request,
    },
    /// What it answered.
    Answered {
        request: Request,
        elsewhere: (Timestamp, Timestamp),
    },
    /// To a partition's primary, or to the gateway there.
    Message {
        to: Peer,
        message: BallotMessage,
        sent_at: Timestamp,
    },
    Durable {
        partition: usize,
        payload: Rc<Payload>,
    },
    /// A partition's replica beside the other's clients hears of a payload that is durable.
    Applied {
        partition: usize,
        payload: Rc<Payload>,
    },
    Tick,
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
    primaries: [Primary; PARTITIONS],
    replicas: [Applied; PARTITIONS],
    ballots: BTreeMap<TxnId, (Coordination, u64)>,
    /// Whose answer is missing.
    open: BTreeMap<u64, Request>,
}

/// Runs the experiment.
pub(super) fn run(config: &Config) -> Measured {
    let mut cluster = Cluster {
        network: Network::new(config.placement, config.seed),
        load: Load::new(config),
        logs: Default::default(),
        primaries: std::array::from_fn(Primary::new),
        replicas: std::array::from_fn(|_| Applied::new()),
        ballots: BTreeMap::new(),
        open: BTreeMap::new(),
    };
    (0..PARTITIONS).for_each(|home| cluster.network.at(0, Event::Arrival(home)));
    cluster.network.at(0, Event::Tick);
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
                let row = request.rows_in(at.partition).next().expect("a row there");
                let elsewhere = self.replicas[at.partition].read(row);
                self.network.send(at, Machine::first(request.home), Event::Answered { request, elsewhere });
            }
            Event::Answered { request, elsewhere } => self.act(request.home, |primary, out| {
                primary.execute(Execution::new(request, Some(elsewhere)), out);
            }),
            Event::Message { to: Peer::Gateway(node), message, sent_at } => {
                self.at_gateway(partition_of(Peer::Gateway(node)), message, sent_at);
            }
            Event::Message { to, message, sent_at } => {
                self.act(partition_of(to), |primary, out| primary.receive(message, sent_at, out));
            }
            Event::Durable { partition, payload } => self.durable(partition, payload),
            Event::Applied { partition, payload } => self.replicas[partition].apply(&payload),
            Event::Tick => {
                (0..PARTITIONS).for_each(|partition| self.act(partition, Primary::tick));
                self.network.at(self.network.now() + TICK, Event::Tick);
            }
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
        let next = now + self.load.pause();
        self.network.at(next, Event::Arrival(home));
    }

    fn execute(&mut self, request: Request) {
        match request.partitions().find(|p| *p != request.home) {
            None => self.act(request.home, |primary, out| primary.execute(Execution::new(request, None), out)),
            Some(other) => {
                let at = self.network.replica_near(request.home, other);
                self.network.send(Machine::first(request.home), at, Event::Read { at, request });
            }
        }
    }

    /// A primary does something; what follows from it.
    fn act(&mut self, partition: usize, what: impl FnOnce(&mut Primary, &mut Vec<Out>)) {
        let mut out = Vec::new();
        self.primaries[partition].set_time(self.network.now());
        what(&mut self.primaries[partition], &mut out);
        for wanted in out {
            match wanted {
                Out::Send { to, message } => self.send(partition, to, message),
                Out::Ballot(execution) => self.ballot(&execution),
                Out::Answer { number, commit } => self.network.send_to_client(Event::Answer { number, commit }),
            }
        }
        if let Some(payload) = self.primaries[partition].cut() {
            let durable = self.logs[partition].append(partition, &mut self.network)[0];
            self.network.at(durable, Event::Durable { partition, payload: Rc::new(payload) });
        }
    }

    fn send(&mut self, from: usize, to: Peer, message: BallotMessage) {
        let sent_at = self.primaries[from].clock_reads();
        let machine = Machine::first(partition_of(to));
        self.network.send(Machine::first(from), machine, Event::Message { to, message, sent_at });
    }

    fn durable(&mut self, partition: usize, payload: Rc<Payload>) {
        let replica = self.network.replica_near((partition + 1) % PARTITIONS, partition);
        let heard = Event::Applied { partition, payload: payload.clone() };
        self.network.send(Machine::first(partition), replica, heard);
        self.act(partition, |primary, out| primary.durable(&payload, out));
    }

    /// Asks both partitions at once; the one at home holds it back for as long as the other one's
    /// takes to arrive.
    fn ballot(&mut self, execution: &Execution) {
        let request = &execution.request;
        let (until, version) = execution.elsewhere.expect("a row of the other partition was read");
        let id = self.primaries[request.home].draw_id();
        let participants: Vec<GroupId> = request.partitions().map(group_of).collect();
        let prepare = |partition: usize| {
            let is_home = partition == request.home;
            let reads = match is_home {
                true => execution.entries.clone(),
                false => request.rows_in(partition).map(|row| read_entry(row, until)).collect(),
            };
            let writes = request.rows_in(partition).map(|row| write(row).into()).collect();
            let slice = CommitRequest {
                id,
                reads,
                writes,
                min_commit: version,
                schema: SchemaUse::default(),
                global: Default::default(),
            };
            let other = Machine::first((partition + 1) % PARTITIONS);
            let delay = self.network.usual_delay(Machine::first(partition), other);
            let hold = if is_home { Duration::from_micros(delay) } else { Duration::ZERO };
            (
                group_of(partition),
                Prepare { participants: participants.clone(), slice, hold, has_queued: true, is_late: true, is_last: false },
            )
        };
        let prepares: BTreeMap<GroupId, Prepare> = request.partitions().map(prepare).collect();
        let mut messages = Vec::new();
        let now = Timestamp::from_micros(self.network.now());
        let coordination = Coordination::start(prepares, now, &mut messages);
        self.ballots.insert(id, (coordination, request.number));
        for (to, message) in messages {
            self.send(request.home, Peer::Group(to), message);
        }
    }

    /// A vote has come to a gateway.
    fn at_gateway(&mut self, partition: usize, message: BallotMessage, sent_at: Timestamp) {
        self.primaries[partition].set_time(self.network.now());
        self.primaries[partition].observe(sent_at);
        let BallotMessage::Vote { id, from, vote } = message else { return };
        let Some((coordination, number)) = self.ballots.get_mut(&id) else { return };
        coordination.vote(from, vote);
        let number = *number;
        if let Some(verdict) = coordination.verdict() {
            self.ballots.remove(&id);
            let commit = matches!(verdict, Verdict::Committed(_));
            self.network.send_to_client(Event::Answer { number, commit });
        }
    }
}
