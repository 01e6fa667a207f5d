//! Keeps the single-group table of `docs/design/transaction-states.md` equal to the code: every
//! state is entered, every event happens, and the cell is what the engine answered and where the
//! transaction is then. `UPDATE_GOLDEN=1 cargo test -p meridian-region` rewrites the table.

use crate::store::Store;
use meridian_base::record::{Committed, Lease, Payload, Record, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, GroupId, Key, LogPosition, NodeId, SchemaUse, Timestamp, TxnId, Write,
};
use meridian_region::{Certified, Engine, GroupState, Rules};
use std::path::Path;
use std::time::Duration;

const NOW: u64 = 100_000_000;
const STATES: [&str; 4] = ["Unknown", "In flight", "Committed", "Forgotten"];
const EVENTS: [&str; 5] = ["Commit", "durable and applied", "append lost", "failover, entry kept", "watermark"];

struct World {
    state: GroupState,
    store: Store,
    engine: Engine,
    clock: Clock,
    request: CommitRequest,
    at: Option<(Timestamp, Vec<Write>)>,
}

impl World {
    fn new() -> World {
        let state = GroupState::new(Rules::ALL);
        let engine = Engine::start(NodeId(1), GroupId(2), &state, Rules::ALL);
        let clock = Clock::new(Duration::from_millis(250));
        let id = TxnId { hlc: clock.tick(NOW), gateway: NodeId(9) };
        let write = Write { key: Key::new(b"k"), value: None, columns: ColumnMask::ALL };
        let schema = SchemaUse::default();
        let request = CommitRequest {
            id,
            reads: vec![],
            writes: vec![write.into()],
            min_commit: Timestamp::MIN,
            schema,
            global: Default::default(),
        };
        let mut world = World { state, store: Store::default(), engine, clock, request, at: None };
        world.serve();
        world
    }
    fn serve(&mut self) {
        self.engine.renew_lease(&self.state, &self.clock, NOW);
        let lease = Lease { primary: NodeId(1), ceiling: Timestamp::MAX.prev() };
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        self.apply(Timestamp::MIN, vec![Record::Lease(lease), Record::Schema(grant)]);
    }
    fn apply(&mut self, watermark: Timestamp, records: Vec<Record>) {
        let payload = Payload { watermark, records, ..Payload::default() };
        let index = self.state.applied().index + 1;
        self.state.apply(LogPosition { index, term: 1 }, &payload);
        self.engine.applied(&self.state, &payload, &mut Vec::new());
    }
    fn record(&self) -> Option<Record> {
        let id = self.request.id;
        let (at, writes) = self.at.clone()?;
        Some(Record::Batch(vec![Committed { id, at, writes }]))
    }
    fn place(&self) -> &'static str {
        let id = self.request.id;
        match self.state.outcome(id) {
            _ if self.engine.in_flight().any(|(other, _)| other == id) => "In flight",
            Some(_) => "Committed",
            None if id.hlc <= self.state.watermark() => "Forgotten",
            None => "Unknown",
        }
    }

    fn enter(state: &str) -> World {
        let mut world = World::new();
        let events: &[&str] = match state {
            "In flight" => &["Commit"],
            "Committed" => &["Commit", "durable and applied"],
            "Forgotten" => &["watermark"],
            _ => &[],
        };
        for event in events {
            world.happens(event).expect("it can happen");
        }
        assert_eq!(world.place(), state);
        world
    }

    /// What is answered; `None` if the event cannot happen here.
    fn happens(&mut self, event: &str) -> Option<&'static str> {
        match event {
            "Commit" => {
                let answer = self.engine.certify(&self.state, &self.store, &self.request, &self.clock, NOW);
                Some(match answer {
                    Certified::Append { at, writes } => {
                        self.at = Some((at, writes));
                        "certify, append at p"
                    }
                    Certified::Wait(_) => "wait for the first one",
                    Certified::Done(CommitOutcome::Committed(_)) => "the first answer: p",
                    Certified::Done(CommitOutcome::Forgotten) => "40003",
                    other => panic!("{other:?}"),
                })
            }
            "durable and applied" => {
                if self.place() != "In flight" {
                    return None;
                }
                let record = self.record().expect("it was certified");
                self.apply(Timestamp::MIN, vec![record]);
                Some("release, acknowledge")
            }
            "append lost" | "failover, entry kept" => {
                let was_in_flight = self.place() == "In flight";
                self.engine.lost();
                if was_in_flight && event == "failover, entry kept" {
                    // A term begins when everything of earlier terms is applied.
                    let record = self.record().expect("it was certified");
                    self.apply(Timestamp::MIN, vec![record]);
                }
                self.engine = Engine::start(NodeId(1), GroupId(2), &self.state, Rules::ALL);
                Some(if was_in_flight { "the gateway asks the next primary" } else { "nothing" })
            }
            "watermark" => {
                // The log's next record, ten minutes later.
                let f = self.engine.watermark(&self.state, &self.clock, NOW + 600_000_000);
                let held = f < self.request.id.hlc;
                self.apply(f, vec![]);
                Some(if held { "held below the id" } else { "nothing" })
            }
            other => panic!("no event {other}"),
        }
    }
}

fn table() -> String {
    let mut lines = vec![format!("| | {} |", EVENTS.join(" | ")), format!("|{}", " --- |".repeat(EVENTS.len() + 1))];
    for state in STATES {
        let cells = EVENTS.map(|event| {
            let mut world = World::enter(state);
            match world.happens(event) {
                Some(answer) => format!("{answer} → {}", world.place()),
                None => "–".into(),
            }
        });
        lines.push(format!("| **{state}** | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[test]
fn the_single_group_table_of_the_design_is_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/transaction-states.md");
    let text = std::fs::read_to_string(&path).expect("docs/design/transaction-states.md");
    let (begin, end) = ("<!-- single-group table, from the code -->\n\n", "\n\n<!-- end -->");
    let (before, rest) = text.split_once(begin).expect("the table's begin");
    let (written, after) = rest.split_once(end).expect("the table's end");
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, [before, begin, &table, end, after].concat()).expect("the table is rewritten");
    } else {
        assert_eq!(written, table, "the code or docs/design/transaction-states.md changed; UPDATE_GOLDEN=1 rewrites the table");
    }
}
