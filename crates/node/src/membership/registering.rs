//! A node tells the catalog's primary that it runs, and where; and operators say what they want of
//! a node.

use crate::catalog::rows::NodeRow;
use crate::membership::address_book;
use crate::membership::ask::Ask;
use crate::membership::founding::{JOIN_CALL, Notice};
use crate::membership::lost::refuse_member;
use crate::membership::peers::LIVENESS_TIMEOUT;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{NodeRecord, Request, Response, Standing};
use meridian_base::version::ClusterVersion;
use meridian_base::{Error, ErrorKind, GroupId, NodeId, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a node says where it is until that is written down, or when another node has its
/// address.
const ANNOUNCE_PAUSE: Duration = Duration::from_millis(500);

/// How long a change of a node's record looks for the catalog's primary before whoever asked is
/// told.
const REGISTER_PATIENCE: Duration = Duration::from_secs(1);

/// Looks who answers at the addresses in `--join`, until the catalog is known to be the newest: it
/// says where all nodes are. A directory of one cluster that is told to join another is a mistake
/// that the node says and ends with, instead of serving.
pub(crate) async fn meet_members(shared: Arc<Shared>, addrs: Vec<String>) {
    loop {
        for addr in &addrs {
            match shared.rpc.who_is_at(addr).await {
                Ok(node) => shared.rpc.find(node, addr).await,
                Err(e) if e.kind() == ErrorKind::Fatal => {
                    let hint = "If an older or newer program of this cluster still runs there, end it first. If that is another cluster, choose its --data-dir, or leave --join out.";
                    let e = Error::fatal(format!("the node at {addr} refuses this one")).detail(e.message()).hint(hint);
                    shared.fail(e);
                    return;
                }
                // One that is down says nothing, and need not.
                Err(_) => {}
            }
        }
        if shared.freshness.is_fresh() || addrs.is_empty() {
            return;
        }
        tokio::time::sleep(ANNOUNCE_PAUSE).await;
    }
}

/// Keeps members out whose programs are older than the cluster's version, and writes to logs what
/// all others understand.
pub(crate) async fn require_version(shared: Arc<Shared>) {
    let mut changed = shared.catalog.watch();
    loop {
        changed.borrow_and_update();
        let version = shared.catalog.cluster_version();
        shared.rpc.require(version);
        shared.groups.common.writes_parts.store(version >= ClusterVersion::ESCROW, Ordering::Release);
        if changed.changed().await.is_err() {
            return;
        }
    }
}

/// Tells the catalog's primary that this node runs, and where; again when the catalog says that
/// somebody else has its address.
///
/// A node that is started again is not drained any more, nor lost; one that is being decommissioned
/// stays what it is.
pub(crate) async fn announce(shared: Arc<Shared>, record: NodeRecord) {
    let mut changed = shared.catalog.watch();
    let mut notice = Notice::default();
    loop {
        let row = NodeRow { record: record.clone(), versions: shared.rpc.versions() };
        let told = match register(&shared, row, 0, false).await {
            Err(e) if e.is_unavailable() => announce_through(&shared, &record).await,
            told => told.map(|_| ()),
        };
        match told {
            Ok(()) => {}
            // Whoever says so knows better: this node has no part in the cluster, or cannot be
            // where it is.
            Err(e) if is_final(&e) => {
                shared.fail(e);
                return;
            }
            Err(e) => {
                // Some errors count the time.
                let what = e.to_string().replace(|c: char| c.is_ascii_digit(), "");
                notice.say_of(what, format!("node {} is not registered at {} yet: {e}", record.id, record.addr));
                tokio::time::sleep(ANNOUNCE_PAUSE).await;
                continue;
            }
        }
        let is_lost = |shared: &Shared| shared.catalog.nodes().iter().any(|n| n.id == record.id && n.standing == Standing::Lost);
        loop {
            changed.borrow_and_update();
            if is_lost(&shared) {
                break;
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
        tokio::time::sleep(LIVENESS_TIMEOUT).await;
    }
}

/// Tells it through any node whose address is known: this one may know nothing else, and nobody may
/// tell it the catalog any more.
async fn announce_through(shared: &Arc<Shared>, record: &NodeRecord) -> Result<()> {
    let mut known = shared.catalog.nodes();
    known.extend(address_book::load(&shared.runtime).await);
    let addrs: BTreeSet<String> = known.into_iter().map(|n| n.addr).filter(|addr| *addr != record.addr).collect();
    let mut last = Error::unavailable("no other node is known");
    for addr in addrs {
        let NodeRecord { id: node, addr: own, sql_addr, region, zone, standing: _ } = record.clone();
        let versions = shared.rpc.versions();
        let ask = Request::Join { node, token: 0, addr: own, sql_addr, region, zone, is_passed_on: false, versions };
        match shared.rpc.call_addr(&addr, ask, JOIN_CALL).await {
            // In a secure cluster nobody says it in this node's name: the answer is who is there.
            Ok(Response::Joined(joined)) if shared.certificates.is_some() => {
                joined.nodes.iter().filter(|n| n.id != shared.me()).for_each(|n| shared.rpc.learn(n));
            }
            Ok(Response::Joined(_)) => return Ok(()),
            Ok(_) => {}
            Err(e) if is_final(&e) => return Err(e),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Whether a member was told something that will not change. A stranger at another member's address
/// has nothing to say.
fn is_final(e: &Error) -> bool {
    e.kind() == ErrorKind::Fatal && e.sqlstate() != "08004"
}

/// Registers a node with the catalog's primary, wherever that is.
pub(crate) async fn register(shared: &Arc<Shared>, row: NodeRow, token: u128, is_passed_on: bool) -> Result<NodeId> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Registration { row, token, is_passed_on }).await
}

struct Registration {
    row: NodeRow,
    /// See [`Request::Join`].
    token: u128,
    is_passed_on: bool,
}

impl Ask for Registration {
    type Answer = NodeId;
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        let NodeRow { record: NodeRecord { id: node, addr, sql_addr, region, zone, standing: _ }, versions } = self.row.clone();
        Request::Join { node, token: self.token, addr, sql_addr, region, zone, is_passed_on: true, versions }
    }
    fn answer(response: Response) -> Option<NodeId> {
        if let Response::Joined(joined) = response { Some(joined.node) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<NodeId> {
        refuse_taken_address(shared, &self.row.record).await?;
        let (row, token) = (self.row.clone(), self.token);
        shared.steps.ask(|reply| crate::catalog::steps::Job::Register { row, token, reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}

/// An address that a node of the cluster has and answers at is nobody else's: whoever says that it
/// is there listens in another network, or on its own machine only. A node that does not answer at
/// its address any more has lost it.
pub(crate) async fn refuse_taken_address(shared: &Arc<Shared>, record: &NodeRecord) -> Result<()> {
    for other in shared.catalog.nodes().into_iter().filter(|n| n.id != record.id && n.addr == record.addr) {
        let has_it = !matches!(other.standing, Standing::Decommissioned | Standing::Lost);
        let answers_there = match other.id == shared.me() {
            true => shared.peers.addr == other.addr,
            false => shared.rpc.is_at(other.id, &other.addr).await,
        };
        if has_it && answers_there {
            return Err(Error::fatal(format!("the address {} is that of node {}, which answers there", other.addr, other.id))
                .hint("Start this node with an address in --advertise that the others reach it at."));
        }
    }
    Ok(())
}

/// Writes down what the operator wants of a node, wherever the catalog's primary is.
pub(crate) async fn stand(shared: &Arc<Shared>, node: NodeId, standing: Standing, is_passed_on: bool) -> Result<()> {
    shared.call_primary(GroupId::CATALOG, REGISTER_PATIENCE, &Stand { node, standing, is_passed_on }).await
}

struct Stand {
    node: NodeId,
    standing: Standing,
    is_passed_on: bool,
}

impl Ask for Stand {
    type Answer = ();
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::Stand { node: self.node, standing: self.standing, is_passed_on: true }
    }
    fn answer(response: Response) -> Option<()> {
        if let Response::Done = response { Some(()) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<()> {
        let (node, standing) = (self.node, self.standing);
        if standing == Standing::Decommissioned {
            refuse_member(shared, node).await?;
        }
        shared.steps.ask(|reply| crate::catalog::steps::Job::Stand { node, standing, reply }).await
    }
    fn may_travel(&self) -> bool {
        !self.is_passed_on
    }
}
