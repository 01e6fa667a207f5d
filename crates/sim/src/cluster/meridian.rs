//! A Meridian node as simulated software.

use super::software::{Software, Started};
use super::topology::NodeSpec;
use crate::sql_wire::{Answer, Gateway, SQL_PORT, SqlSession};
use crate::world::{Host, SimRuntime};
use futures::future::LocalBoxFuture;
use meridian_base::parts::LargeFrom;
use meridian_base::runtime::Runtime;
use meridian_base::version::Versions;
use meridian_base::{Error, GroupId, Result, SessionId, limits};
use meridian_commit as commit;
use meridian_node::DEAD_AFTER_DEFAULT;
use meridian_node::wire::{Request, Standing};
use meridian_node::{Echoes, FOUNDING_PAUSE, Node, NodeConfig, Place, Timing};
use meridian_raft::LogOptions;
use meridian_region::Rules;
use meridian_sql::session::Attention;
use meridian_sql::session::{ClientSession, SessionOptions, Shared, StatementResult};
use meridian_store::{Backend, MemoryDisk, Options as StoreOptions};
use meridian_workload::{Rows, Told, Value};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The port of messages between nodes.
pub const NODE_PORT: u16 = 7000;

/// Tables of a run are small and change little.
const ATTENTION: Attention = Attention { nap: Duration::from_secs(3), changes_min: 30 };

/// What a program of the version before understands.
const OLDER_PROGRAM: Versions = Versions { oldest: Versions::OWN.oldest, newest: Versions::OWN.oldest };

/// How often an operator looks.
const OPERATOR_POLL: Duration = Duration::from_millis(500);

/// What a run wants its nodes to be like.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub rules: Rules,
    pub ballot_rules: commit::Rules,
    pub max_offset: Duration,
    pub timing: Timing,
    pub gc_ttl: Duration,
    pub gc_interval: Duration,
    pub protected_for_max: Duration,
    /// Which transactions are large ones.
    pub large_from: LargeFrom,
    /// The share of messages (of those that may be) that arrive again, later.
    pub repeated_share: f64,
    /// A node that is silent for so long loses its replicas.
    pub dead_after: Duration,
    /// Nodes that start with a program of the version before the next time, and with this one after
    /// that.
    pub older_programs: Arc<Mutex<BTreeSet<String>>>,
    /// Sessions compare privileges when they prepare a statement, and never again: a planted bug.
    pub checks_at_prepare_only: bool,
}

impl Default for Tuning {
    /// As nodes are by default, without bugs.
    fn default() -> Tuning {
        Tuning {
            rules: Rules::ALL,
            ballot_rules: commit::Rules::ALL,
            max_offset: limits::MAX_OFFSET_DEFAULT,
            timing: Timing::default(),
            gc_ttl: limits::GC_TTL_DEFAULT,
            gc_interval: Duration::from_secs(60),
            protected_for_max: limits::PROTECTED_FOR_MAX,
            large_from: LargeFrom::default(),
            repeated_share: 0.0,
            dead_after: DEAD_AFTER_DEFAULT,
            older_programs: Arc::default(),
            checks_at_prepare_only: false,
        }
    }
}

/// Meridian.
pub struct Meridian {
    tuning: Tuning,
    /// The stores' memory, per machine: it outlives processes.
    disks: Mutex<BTreeMap<String, MemoryDisk>>,
    /// What disks that lie are going to be.
    remembered: Mutex<BTreeMap<String, MemoryDisk>>,
    /// The processes that came up last, per machine.
    nodes: Arc<Mutex<BTreeMap<String, Weak<MeridianGateway>>>>,
    /// Nodes that run a program of the version before.
    upgraded_next: Mutex<BTreeSet<String>>,
}

impl Meridian {
    /// Nodes that are all tuned alike.
    pub fn new(tuning: Tuning) -> Meridian {
        let (disks, remembered, nodes, upgraded_next) = Default::default();
        Meridian { tuning, disks, remembered, nodes, upgraded_next }
    }
    fn disk(&self, machine: &str) -> MemoryDisk {
        self.disks.lock().entry(machine.to_string()).or_default().clone()
    }
    fn config(&self, spec: &NodeSpec) -> NodeConfig {
        let place = Place { region: spec.region.clone(), zone: spec.zone.clone() };
        let addr = |port: u16| format!("{}:{port}", spec.name);
        let store = Backend::Memory(self.disk(&spec.name));
        let mut config = NodeConfig::new(place, &addr(NODE_PORT), &addr(SQL_PORT), store);
        config.join = spec.founders.iter().map(|name| format!("{name}:{NODE_PORT}")).collect();
        config.founding_pause = FOUNDING_PAUSE;
        config.max_offset = self.tuning.max_offset;
        config.timing = self.tuning.timing;
        config.gc_ttl = self.tuning.gc_ttl;
        config.gc_interval = self.tuning.gc_interval;
        config.protected_for_max = self.tuning.protected_for_max;
        config.large_from = self.tuning.large_from;
        config.dead_after = self.tuning.dead_after;
        config.rules = self.tuning.rules;
        config.ballot_rules = self.tuning.ballot_rules;
        // Small segments and little memory, so that a short run sees many of them come and go.
        config.log_options = LogOptions { segment_bytes: 256 << 10, prepare_bytes: 32 << 10, ..LogOptions::default() };
        config.room.reserve_bytes = 64 << 10;
        config.store_options = StoreOptions { dirty_bytes_max: 256 << 10, ..StoreOptions::default() };
        config
    }
}

/// The latest that a copy of a message arrives after the message was sent.
const REPEATED_WITHIN_MS: u64 = 4_000;

/// Repeats a share of the messages that the protocols promise to bear twice.
fn echoes(host: Arc<Host>, share: f64) -> Option<Echoes> {
    let repeat = move |request: &Request| {
        let may_repeat = matches!(
            request,
            Request::Grant { .. }
                | Request::Ballot { .. }
                | Request::Commit { .. }
                | Request::Bring { .. }
                | Request::CommitBrought { .. }
                | Request::Release { .. }
                | Request::Check { .. }
                | Request::Closed(_)
        );
        if !may_repeat || (host.random() % 1_000) as f64 >= share * 1_000.0 {
            return None;
        }
        host.world.coverage.hit("message repeated");
        Some(Duration::from_millis(host.random() % REPEATED_WITHIN_MS))
    };
    (share > 0.0).then(|| Arc::new(repeat) as Echoes)
}

impl Software for Meridian {
    type Gateway = MeridianGateway;

    fn start(&self, runtime: SimRuntime, spec: NodeSpec) -> LocalBoxFuture<'static, Result<Started<MeridianGateway>>> {
        let (mut config, nodes) = (self.config(&spec), self.nodes.clone());
        let checks_at_prepare_only = self.tuning.checks_at_prepare_only;
        config.echoes = echoes(runtime.host().clone(), self.tuning.repeated_share);
        if self.tuning.older_programs.lock().remove(&spec.name) {
            config.versions = OLDER_PROGRAM;
            self.upgraded_next.lock().insert(spec.name.clone());
        } else if self.upgraded_next.lock().remove(&spec.name) {
            runtime.host().world.coverage.hit("program upgraded");
        }
        Box::pin(async move {
            let node = Node::start(Arc::new(runtime), config).await?;
            let mut failure = node.failure();
            let failed = async move {
                loop {
                    if let Some(error) = failure.borrow_and_update().clone() {
                        return error;
                    }
                    if failure.changed().await.is_err() {
                        return Error::internal("the node went away");
                    }
                }
            };
            let shared = Shared::new();
            if checks_at_prepare_only {
                shared.plant_checks_at_prepare_only();
            }
            node.run_jobs(&shared, ATTENTION);
            let gateway = Arc::new(MeridianGateway { node, shared, next_session: AtomicU64::new(1) });
            nodes.lock().insert(spec.name, Arc::downgrade(&gateway));
            Ok(Started { gateway, failure: Box::pin(failed) })
        })
    }

    fn lose_power(&self, spec: &NodeSpec, keep: u64) {
        let disk = self.disk(&spec.name);
        let kept = keep % (disk.volatile_writes() as u64 + 1);
        disk.crash(kept as usize);
    }

    fn process_died(&self, spec: &NodeSpec) {
        let disk = self.disk(&spec.name);
        disk.crash(disk.volatile_writes());
    }

    fn set_full(&self, spec: &NodeSpec, full: bool) {
        match full {
            true => self.disk(&spec.name).fail_writes_after(0),
            false => self.disk(&spec.name).heal(),
        }
    }

    fn rot(&self, spec: &NodeSpec) {
        self.disk(&spec.name).fail_rows();
    }

    fn replace_disk(&self, spec: &NodeSpec) {
        self.disks.lock().remove(&spec.name);
    }

    fn remember_disk(&self, spec: &NodeSpec) {
        let image = self.disk(&spec.name).durable_copy();
        self.remembered.lock().insert(spec.name.clone(), image);
    }

    fn recall_disk(&self, spec: &NodeSpec) {
        if let Some(image) = self.remembered.lock().remove(&spec.name) {
            self.disks.lock().insert(spec.name.clone(), image);
        }
    }

    fn retire(&self, operator: SimRuntime, spec: NodeSpec, others: Vec<NodeSpec>) -> LocalBoxFuture<'static, ()> {
        let node = format!("{}:{NODE_PORT}", spec.name);
        let operator: Arc<dyn Runtime> = Arc::new(operator);
        Box::pin(async move {
            for other in others.iter().cycle() {
                let asked = format!("{}:{NODE_PORT}", other.name);
                // Who does not answer, or cannot do it now, is asked again.
                if let Ok(true) = towards_retirement(&operator, &asked, &node).await {
                    return;
                }
                tokio::time::sleep(OPERATOR_POLL).await;
            }
        })
    }

    /// Of rows: a node that leads only the catalog is left alone.
    fn is_primary(&self, spec: &NodeSpec) -> bool {
        let gateway = self.nodes.lock().get(&spec.name).and_then(Weak::upgrade);
        gateway.is_some_and(|gateway| gateway.node.leads().iter().any(|(group, _)| *group != GroupId::CATALOG))
    }

    /// A group has one voter until it has found others.
    fn is_spared(&self, spec: &NodeSpec) -> bool {
        let gateway = self.nodes.lock().get(&spec.name).and_then(Weak::upgrade);
        gateway.is_some_and(|gateway| gateway.node.voters_beside().iter().all(|others| *others >= 2))
    }
}

/// One look at a node that is to be decommissioned, and what comes next; as `meridian node
/// decommission` does it. Whether it is.
async fn towards_retirement(operator: &Arc<dyn Runtime>, asked: &str, node: &str) -> Result<bool> {
    let way = meridian_node::Way::plain(operator.clone(), asked);
    let nodes = meridian_node::status_of(&way).await?;
    // Of the nodes that ever had the address, the last one.
    let status = nodes.into_iter().filter(|n| n.node.addr == node).max_by_key(|n| n.node.id);
    let status = status.ok_or_else(|| Error::unavailable("the node is not known yet"))?;
    let is_empty = status.holds.iter().all(|g| *g == GroupId::CATALOG);
    let next = match status.node.standing {
        Standing::Decommissioned => return Ok(true),
        Standing::Decommissioning if is_empty => Standing::Decommissioned,
        Standing::Decommissioning => return Ok(false),
        _ => Standing::Decommissioning,
    };
    meridian_node::stand_at(&way, status.node.id, next).await.map(|()| false)
}

/// A node's sessions.
pub struct MeridianGateway {
    node: Node,
    shared: Arc<Shared>,
    next_session: AtomicU64,
}

impl Gateway for MeridianGateway {
    type Session = MeridianSession;

    async fn shut_down(&self) {
        self.node.shutdown().await;
    }

    async fn open(&self, database: &str) -> Result<MeridianSession> {
        let options = SessionOptions {
            id: SessionId(self.next_session.fetch_add(1, Ordering::Relaxed)),
            user: "root".to_string(),
            database: database.to_string(),
            ..SessionOptions::default()
        };
        Ok(MeridianSession { session: self.node.sessions().open(options, self.shared.clone()).await? })
    }
}

/// One session.
pub struct MeridianSession {
    session: Box<dyn ClientSession>,
}

impl SqlSession for MeridianSession {
    async fn run(&mut self, sql: &str, params: &[Value]) -> Answer {
        let text = with_literals(sql, params);
        tracing::debug!("begins: {text}");
        let (results, ended) = self.session.query_told(&text).await;
        match &ended {
            Ok(()) => tracing::debug!("{:?}: {text}", results.iter().map(|r| &r.tag).collect::<Vec<_>>()),
            Err(e) => tracing::debug!("{e}: {text}"),
        }
        if let Err(e) = ended {
            let rows = results.iter().map(|r| r.rows.len() as u64).sum();
            let tags = results.iter().filter(|r| !r.tag.is_empty()).count() as u64;
            return Err((e, Told { rows, tags }));
        }
        let last = results.into_iter().next_back().unwrap_or_default();
        if sql == "COMMIT" && last.tag == "ROLLBACK" {
            let e = Error::sql("25P02", "the transaction had failed and was rolled back");
            return Err((e, Told::default()));
        }
        Ok(rows_of(last))
    }
}

/// Puts the parameters into the text, as a client of the simple protocol does.
fn with_literals(sql: &str, params: &[Value]) -> String {
    let mut text = sql.to_string();
    // From the last on, so that `$1` does not hit the beginning of `$10`.
    for (index, value) in params.iter().enumerate().rev() {
        text = text.replace(&format!("${}", index + 1), &value.literal());
    }
    text
}

fn rows_of(result: StatementResult) -> Rows {
    let value = |field: Option<String>| field.map_or(Value::Null, Value::Text);
    Rows {
        affected: result.tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0),
        rows: result.rows.into_iter().map(|row| row.into_iter().map(value).collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_literals() {
        let text = with_literals("SELECT $1, $2, $10", &(1..=10).map(|i| Value::Int(i * 11)).collect::<Vec<_>>());
        assert_eq!(text, "SELECT 11, 22, 110");
        assert_eq!(with_literals("SELECT $1", &["it's".into()]), "SELECT 'it''s'");
    }
}
