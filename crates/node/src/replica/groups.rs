//! The groups: their replicas on this node, and where their primaries are.

use crate::catalog::CatalogCache;
use crate::local::lock::RwLock;
use crate::replica::Replica;
use crate::replica::common::Common;
use crate::replica::pods::PodHosts;
use crate::transport::rpc::Rpc;
use crate::transport::wire::PreparedTransaction;
use meridian_base::{Error, GroupId, NodeId, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct Groups {
    /// What the replicas here have in common.
    pub common: Arc<Common>,
    rpc: Arc<Rpc>,
    catalog: Arc<CatalogCache>,
    /// This node's.
    region: String,
    replicas: RwLock<BTreeMap<GroupId, Arc<Replica>>>,
    /// Serializes the making of replicas.
    pub making: tokio::sync::Mutex<()>,
    /// Who said that it serves a group, and its term.
    leaders: RwLock<BTreeMap<GroupId, (NodeId, u64)>>,
}

/// Where a group's primary is, as far as this node knows.
pub(crate) enum Route {
    Local(Arc<Replica>),
    Remote(NodeId),
}

impl Groups {
    pub(crate) fn new(common: Arc<Common>, rpc: Arc<Rpc>, catalog: Arc<CatalogCache>, region: String) -> Arc<Groups> {
        Arc::new(Groups {
            common,
            rpc,
            catalog,
            region,
            replicas: RwLock::default(),
            making: tokio::sync::Mutex::new(()),
            leaders: RwLock::default(),
        })
    }

    /// A replica runs here from now on.
    pub(crate) fn insert(&self, replica: Arc<Replica>) {
        self.replicas.write().insert(replica.id, replica);
    }

    pub(crate) fn remove(&self, group: GroupId) {
        self.replicas.write().remove(&group);
    }

    /// Lets go of all replicas: the node ends.
    pub(crate) fn clear(&self) {
        self.replicas.write().clear();
    }

    #[inline]
    pub(crate) fn replica(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.replicas.read().get(&group).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Replica>> {
        self.replicas.read().values().cloned().collect()
    }

    /// The number of other voters of each group in which this node votes, as far as this node
    /// knows. It is 0 while the group's members change, because the group may still need every old
    /// voter.
    pub fn voters_beside(&self) -> Vec<usize> {
        let me = self.common.life.me();
        let members = self.all().into_iter().map(|replica| replica.raft().members());
        let voting = members.filter(|members| members.voters.contains(&me));
        voting.map(|members| if members.are_settled() { members.voters.len() - 1 } else { 0 }).collect()
    }

    /// The groups this node serves as primary, with their terms.
    pub fn leads(&self) -> Vec<(GroupId, u64)> {
        self.all().iter().filter_map(|r| Some((r.id, r.serving_term()?))).collect()
    }

    /// The groups this node holds a replica of.
    pub(crate) fn holds(&self) -> Vec<GroupId> {
        self.replicas.read().keys().copied().collect()
    }

    /// Where to ask: this node, whoever is known to serve the group, whoever the log says leads;
    /// and if all that was wrong `attempt` times, the group's founders and this node's peers in
    /// turn.
    pub(crate) fn route(&self, group: GroupId, attempt: u32) -> Option<Route> {
        let replica = self.replica(group);
        if let Some(replica) = &replica
            && (replica.is_serving() || replica.leads_behind_promise())
        {
            return Some(Route::Local(replica.clone()));
        }
        let me = self.common.life.me();
        if let Some((node, _)) = self.leaders.read().get(&group)
            && *node != me
        {
            return Some(Route::Remote(*node));
        }
        if attempt.is_multiple_of(2)
            && let Some(leader) = replica.as_ref().and_then(|r| r.raft().role().leader)
            && leader != me
        {
            return Some(Route::Remote(leader));
        }
        let candidates: Vec<NodeId> = match replica {
            Some(r) => r.raft().members().voters.into_iter().collect(),
            None => self.catalog.group(group).map(|g| g.initial_voters).unwrap_or_default(),
        };
        let candidates: Vec<NodeId> = candidates.into_iter().filter(|n| *n != me).collect();
        (!candidates.is_empty()).then(|| Route::Remote(candidates[attempt as usize / 2 % candidates.len()]))
    }

    /// A node says it serves a group. The larger term wins.
    pub(crate) fn learn_leader(&self, group: GroupId, node: NodeId, term: u64) {
        if self.leaders.read().get(&group).is_some_and(|(n, t)| (*n == node && *t == term) || *t > term) {
            return;
        }
        self.leaders.write().insert(group, (node, term));
    }

    /// The replica on this node, if it is the group's primary and answers.
    #[inline]
    pub(crate) fn local_primary(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.replica(group).filter(|r| r.is_serving())
    }

    /// The replica on this node, if it answers plain reads and commits: the group's primary, or a
    /// host of the pod that the primary leads.
    #[inline]
    pub(crate) fn local_server(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.replica(group).filter(|r| r.serves())
    }

    /// Where to ask for plain reads and commits.
    pub(crate) fn route_plain(&self, group: GroupId, attempt: u32) -> Option<Route> {
        match self.local_server(group) {
            Some(replica) => Some(Route::Local(replica)),
            None => self.route(group, attempt),
        }
    }

    /// Whether this node holds a replica of the group.
    pub(crate) fn is_held_here(&self, group: GroupId) -> bool {
        self.replicas.read().contains_key(&group)
    }

    /// Whether the group's primary is in this region; before it is known, whether its home is.
    pub(crate) fn is_primary_near(&self, group: GroupId) -> bool {
        match self.route(group, 0) {
            Some(Route::Local(_)) => true,
            _ => match self.leaders.read().get(&group) {
                Some((node, _)) => *node == self.common.life.me() || self.rpc.is_near(*node),
                None => self.catalog.group(group).is_none_or(|g| g.home == self.region),
            },
        }
    }

    /// The route was wrong; look again.
    pub(crate) fn forget_route(&self, group: GroupId) {
        self.leaders.write().remove(&group);
    }

    /// A node answered that it is not the primary.
    pub(crate) fn not_primary_there(&self, group: GroupId, asked: NodeId, hint: Option<NodeId>) -> Error {
        self.forget_route(group);
        if let Some(hint) = hint
            && hint != asked
            && hint != self.common.life.me()
        {
            self.learn_leader(group, hint, 0);
        }
        Error::not_primary(group)
    }

    /// What is prepared at the groups that this node leads.
    pub(crate) fn transactions(&self) -> Vec<PreparedTransaction> {
        self.all().iter().flat_map(|r| r.transactions()).collect()
    }

    /// How much this node's replicas remember of transactions: prepared ones; votes and decisions
    /// that not every participant has acknowledged; commits that their clients may still ask for.
    pub(crate) fn remembered(&self) -> [usize; 3] {
        let each = self.all();
        each.iter().map(|r| r.remembered()).fold([0; 3], |sum, more| std::array::from_fn(|i| sum[i] + more[i]))
    }

    /// Of each group whose pod this node is in: the slots that it has, and how many hosts serve, if
    /// this one leads (otherwise 0).
    pub(crate) fn pods(&self) -> Vec<(GroupId, (usize, usize))> {
        self.all().iter().filter_map(|replica| Some((replica.id, replica.pod_figures()?))).collect()
    }

    /// The hosts of each of these pods.
    ///
    /// # Errors
    ///
    /// If a pod's memory is damaged.
    pub(crate) fn pod_hosts(&self) -> Result<Vec<PodHosts>> {
        self.all().into_iter().filter_map(|replica| replica.pod_hosts().transpose()).collect()
    }

    /// Whether this node, as the group's primary, counts another one as a member. A change that is
    /// under way counts.
    pub(crate) fn is_member(&self, group: GroupId, node: NodeId) -> Result<bool> {
        let replica = self.local_primary(group).ok_or_else(|| Error::not_primary(group))?;
        let members = replica.raft().members();
        match replica.raft().lease_valid() {
            true => Ok(!members.are_settled() || members.voters.contains(&node) || members.learners.contains(&node)),
            false => Err(Error::not_primary(group)),
        }
    }

    /// The group that was promised most, if this node's clock is so far behind that that it is no
    /// ordinary wait.
    pub(crate) fn clock_behind(&self) -> Option<(GroupId, Duration)> {
        let behind = self.all().into_iter().filter_map(|r| Some((r.id, r.behind_promise()?)));
        behind.max_by_key(|(group, by)| (*by, std::cmp::Reverse(*group)))
    }
}
