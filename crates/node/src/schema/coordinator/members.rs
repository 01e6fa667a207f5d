//! Nodes and join tokens in the catalog: who is let in, under which id, and how a node stands.

use super::{Coordinator, LEAVES_WITHIN, TOKEN_KEPT_SECS, TOKENS_MAX, decommissioned, entry, stored_token};
use crate::catalog::rows::{
    Meta, NodeRow, join_token_key, join_token_range, meta_key, newest_readable, node_key, read_row, rotation_key, row, scan_all,
    token_key,
};
use crate::membership::certificates::now;
use crate::membership::joining::NEW;
use crate::transport::wire::{KeepRotation, NodeRecord, Redemption, Standing};
use meridian_base::version::refused_version;
use meridian_base::{ColumnMask, Error, NodeId, Result, Timestamp, Write};
use meridian_pki::join::{Refusal, StoredToken};
use meridian_pki::rotation::StoredRotation;
use tokio::time::Instant;

impl Coordinator {
    /// Gives a new node its identity, or takes note where a node is.
    ///
    /// An identity goes with a directory, and never with an address: whoever has an empty directory
    /// has forgotten what the node that was there before had promised. A new node is known by its
    /// token.
    pub(super) async fn register(&mut self, mut row_of: NodeRow, token: u128) -> Result<NodeId> {
        let record = &mut row_of.record;
        let mut meta = self.meta.clone();
        let mut writes = Vec::new();
        let is_known = self.shared.catalog.nodes().iter().any(|n| n.id == record.id);
        if record.id == NodeId(0) {
            match self.given(token)? {
                // It asks again, since the answer was lost.
                Some(id) => record.id = id,
                None => {
                    record.id = NodeId(meta.next_node);
                    meta.next_node += 1;
                    writes.push(row(token_key(token), &record.id)?);
                }
            }
        } else if token == NEW && !is_known {
            // The operator has given it a certificate, and so an id.
            meta.next_node = meta.next_node.max(record.id.0.saturating_add(1));
            return self.take_in(row_of, meta, writes, true).await;
        }
        let is_new = !writes.is_empty();
        self.take_in(row_of, meta, writes, is_new).await
    }

    /// Writes down where a node is.
    async fn take_in(&mut self, row_of: NodeRow, meta: Meta, mut writes: Vec<Write>, is_new: bool) -> Result<NodeId> {
        let NodeRow { mut record, versions } = row_of;
        let nodes = self.shared.catalog.nodes();
        let known = nodes.iter().find(|n| n.id == record.id);
        record.standing = match known.map(|n| n.standing) {
            Some(Standing::Decommissioned) => return Err(decommissioned(record.id)),
            // A node that is started again takes part.
            Some(Standing::Active | Standing::Draining | Standing::Lost) => Standing::Active,
            Some(Standing::Decommissioning) => Standing::Decommissioning,
            None if !is_new => {
                return Err(Error::fatal(format!("node {} is not known in this cluster", record.id))
                    .hint("Start it with an empty data directory to add it as a new node."));
            }
            None => Standing::Active,
        };
        if !versions.contain(meta.cluster_version) {
            return Err(refused_version(versions, meta.cluster_version));
        }
        if known != Some(&record) || self.shared.catalog.versions_of(record.id) != versions {
            writes.push(row(node_key(record.id), &NodeRow { record: record.clone(), versions })?);
        }
        let has_lost = |n: &&NodeRecord| {
            n.addr == record.addr && n.id != record.id && !matches!(n.standing, Standing::Decommissioned | Standing::Lost)
        };
        // One that has moved says so itself.
        let has_moved = |n: &NodeRecord| n.id == self.shared.me() || self.shared.rpc.has_left(n.id, &record.addr);
        for other in nodes.iter().filter(has_lost).filter(|n| !has_moved(n)) {
            tracing::warn!(
                "node {} is at {} now, which was the address of node {}: that one's directory counts as lost, and its replicas move",
                record.id,
                record.addr,
                other.id
            );
            writes.push(self.node_row(NodeRecord { standing: Standing::Lost, ..other.clone() })?);
        }
        if !writes.is_empty() {
            self.write_nodes(meta, writes).await?;
        }
        Ok(record.id)
    }

    /// Keeps a token. What has ended long ago is forgotten.
    pub(super) async fn keep_token(&mut self, token: StoredToken) -> Result<()> {
        let (mut writes, now) = (vec![row(join_token_key(token.id), &token)?], now(&self.shared.runtime));
        let mut kept = 0;
        for (key, bytes) in scan_all(&self.replica.store, &join_token_range(), newest_readable(&self.replica.store))? {
            let old: StoredToken = read_row(&bytes)?;
            match old.expires.plus(TOKEN_KEPT_SECS) < now {
                true => writes.push(Write { key, value: None, columns: ColumnMask::ALL }),
                false => kept += 1,
            }
        }
        if kept >= TOKENS_MAX {
            return Err(Error::sql("53400", format!("there are {kept} join tokens, and may be no more")));
        }
        self.write_nodes(self.meta.clone(), writes).await
    }

    /// Makes a node of a process that has shown a token, and marks the token as used, in one step.
    pub(super) async fn redeem(&mut self, redemption: Redemption) -> Result<std::result::Result<NodeId, Refusal>> {
        let Redemption { token, key, mut record, versions } = redemption;
        let rules = self.shared.certificates.as_ref().map_or(Default::default(), |c| c.keys.rules);
        let Some(mut stored) = stored_token(&self.replica, token)? else { return Ok(Err(Refusal::Unknown(token))) };
        let mut meta = self.meta.clone();
        record.id = match stored.redeem(&key, NodeId(meta.next_node), now(&self.shared.runtime), rules) {
            Ok(node) => node,
            Err(why) => return Ok(Err(why)),
        };
        let is_new = record.id.0 == meta.next_node;
        let mut writes = Vec::new();
        if is_new {
            meta.next_node += 1;
            writes.push(row(join_token_key(token), &stored)?);
        }
        self.take_in(NodeRow { record, versions }, meta, writes, is_new).await.map(Ok)
    }

    /// Writes down how far a rotation of the authority is, unless it is elsewhere by now.
    pub(super) async fn keep_rotation(&mut self, keep: KeepRotation) -> Result<()> {
        let row_of = self.replica.store.newest(rotation_key().as_bytes())?.and_then(|row| row.value);
        let before = row_of.map(|bytes| read_row::<StoredRotation>(&bytes)).transpose()?;
        if before.as_ref() == Some(&keep.next) {
            return Ok(());
        }
        if before.as_ref().map(|b| b.phase) != keep.expected || !keep.next.may_follow(before.as_ref()) {
            return Err(Error::unavailable("the rotation of the authority is in another phase"));
        }
        let writes = vec![row(rotation_key(), &keep.next)?];
        self.write_nodes(self.meta.clone(), writes).await
    }

    /// The identity that was given for a token.
    fn given(&self, token: u128) -> Result<Option<NodeId>> {
        if token == 0 {
            return Err(Error::fatal("a new node did not say who it is"));
        }
        let row = self.replica.store.newest(token_key(token).as_bytes())?;
        row.and_then(|row| row.value).map(|bytes| read_row::<NodeId>(&bytes)).transpose()
    }

    async fn write_nodes(&mut self, meta: Meta, mut writes: Vec<Write>) -> Result<()> {
        writes.push(row(meta_key(), &meta)?);
        let read_at = self.read_at()?;
        self.write(writes, vec![entry(meta_key(), read_at)], Timestamp::MIN).await?;
        self.members_changed = Instant::now();
        self.meta = meta;
        Ok(())
    }

    /// A node may change its mind until it is no member any more.
    pub(super) async fn stand(&mut self, node: NodeId, standing: Standing) -> Result<()> {
        let nodes = self.shared.catalog.nodes();
        let Some(mut record) = nodes.iter().find(|n| n.id == node).cloned() else {
            return Err(Error::sql("42704", format!("there is no node {node}")).hint("`meridian node status` lists them."));
        };
        if record.standing == standing {
            return Ok(());
        }
        let stays = |n: &NodeRecord| n.id != node && matches!(n.standing, Standing::Active | Standing::Draining);
        match (record.standing, standing) {
            (Standing::Decommissioned, _) => {
                return Err(Error::sql("55000", format!("node {node} was decommissioned"))
                    .hint("To add it again, start it with an empty data directory."));
            }
            (_, Standing::Lost) => return Err(Error::sql("55000", "a node is lost when another one has its address")),
            // It is on its way out already, and goes by itself when nothing counts on it.
            (Standing::Lost, Standing::Decommissioning) => return Ok(()),
            (Standing::Lost, Standing::Draining | Standing::Active) => {
                return Err(Error::sql("55000", format!("another node has the address of node {node}"))
                    .hint("A lost node takes part again when it is started with its data directory."));
            }
            (_, Standing::Decommissioning) if !nodes.iter().any(stays) => {
                return Err(Error::sql("55000", format!("node {node} cannot be decommissioned: no other node would stay"))
                    .hint("Add a node first, which takes over what this one holds."));
            }
            (Standing::Decommissioning, Standing::Draining) => {
                return Err(Error::sql("55000", format!("node {node} is being decommissioned already")));
            }
            (before, Standing::Decommissioned) if !matches!(before, Standing::Decommissioning | Standing::Lost) => {
                return Err(Error::sql("55000", format!("node {node} has not been decommissioned")));
            }
            _ => record.standing = standing,
        }
        let writes = vec![self.node_row(record)?];
        self.write_nodes(self.meta.clone(), writes).await
    }

    /// Another record of a known node.
    fn node_row(&self, record: NodeRecord) -> Result<Write> {
        let versions = self.shared.catalog.versions_of(record.id);
        row(node_key(record.id), &NodeRow { record, versions })
    }

    /// Raises the cluster version as soon as every member understands the next one: what is new in
    /// it may be written from then on, and programs that do not understand it are refused.
    pub(super) async fn raise_version(&mut self) -> Result<()> {
        // A node that has just left hears that first.
        if self.members_changed.elapsed() < LEAVES_WITHIN {
            return Ok(());
        }
        let Some(next) = self.shared.catalog.next_cluster_version() else { return Ok(()) };
        self.write_nodes(Meta { cluster_version: next, ..self.meta.clone() }, Vec::new()).await
    }
}
