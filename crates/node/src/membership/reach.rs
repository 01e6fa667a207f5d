//! Who can be reached, and how.
//!
//! Every ping says whom its sender hears *both ways*: who has answered it a moment ago. From that
//! each node knows
//!
//! * a *detour* to a node that it does not reach while a third one does. Everything but pings and
//!   questions about clocks then goes through that one
//!   ([`Request::Relay`](crate::transport::wire::Request::Relay)): one hop, and the receiver
//!   handles it as if it had come from its sender. So a link that is cut between two regions costs
//!   a longer way and no availability. Votes and outcomes take it too, or what is prepared would
//!   stay in doubt for as long as the link is cut; and the groups' logs, or the copies at its far
//!   end, of the catalog for one, would stay behind for as long.
//! * that a group is *lost*: for longer than any ping takes, too few of its voters have been heard,
//!   by anybody that this node hears, to elect a primary. Nobody can say when that ends, so a
//!   statement that needs the group fails at once, before anything of it is sent. Who holds no
//!   replica does not know the voters, and hears it from those that do. While a quorum is heard and
//!   nobody leads, an election is probably under way, and statements wait for it.

use crate::membership::peers::LOST_AFTER;
use crate::membership::shared::Shared;
use crate::transport::wire::Silence;
use meridian_base::{Error, GroupId, Result, Timestamp};
use meridian_sql::catalog::{CatalogChange, Descriptor, Homes};
use std::sync::Arc;
use std::time::Duration;

/// How often detours are looked for.
const DETOUR_INTERVAL: Duration = Duration::from_millis(200);

/// Keeps the ways to others up to date.
pub(crate) async fn detour_loop(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(DETOUR_INTERVAL).await;
        for node in shared.catalog.nodes() {
            if node.id != shared.me() {
                shared.rpc.set_detour(node.id, shared.peers.detour(node.id));
            }
        }
    }
}

impl Shared {
    /// Of which voters of a group nothing is heard.
    fn quorum_silence(&self, group: GroupId) -> Silence {
        let voters = self.groups.replica(group).map(|r| r.raft().members().voters).unwrap_or_default();
        if !voters.is_empty() {
            let quorum = voters.len() / 2 + 1;
            return self.peers.silence_of(&voters, quorum);
        }
        // Who holds no replica believes those who do. One of them that has not lost the group is
        // enough.
        let said: Vec<Option<Silence>> = {
            let peers = self.peers.all.read();
            let holders = peers.values().filter(|p| p.heard.elapsed() < LOST_AFTER && p.holds.contains(&group));
            holders.map(|p| p.lost.get(&group).copied()).collect()
        };
        if let Some(least) = said.into_iter().min_by_key(|said| said.map_or(0, |s| s.micros)) {
            return least.unwrap_or(Silence { micros: 0, silent: 0, of: 0 });
        }
        // Nobody that is heard does. It may be where it began or where it belongs.
        let descriptor = self.catalog.group(group);
        let home = descriptor.as_ref().map(|g| g.home.clone());
        let at_home = self.catalog.nodes().into_iter().filter(|n| Some(&n.region) == home.as_ref()).map(|n| n.id);
        let nodes = at_home.chain(descriptor.into_iter().flat_map(|g| g.initial_voters)).collect();
        self.peers.silence_of(&nodes, 1)
    }

    /// The groups whose replica here tells that they are lost.
    pub(crate) fn lost_groups(&self) -> Vec<(GroupId, Silence)> {
        let followers = self.groups.all().into_iter().filter(|r| !r.is_serving() && !r.raft().members().voters.is_empty());
        let silences = followers.map(|r| (r.id, self.quorum_silence(r.id)));
        silences.filter(|(_, silence)| silence.micros >= LOST_AFTER.as_micros() as u64).collect()
    }

    /// An error if a group is lost. For statements that nothing has been sent of.
    pub(crate) fn check_reach(&self, group: GroupId) -> Result<()> {
        if self.groups.local_primary(group).is_some() {
            return Ok(());
        }
        let Silence { micros, silent, of } = self.quorum_silence(group);
        let silence = Duration::from_micros(micros);
        if silence < LOST_AFTER {
            return Ok(());
        }
        let what = match self.catalog.group(group) {
            _ if group == GroupId::CATALOG => "the catalog".to_string(),
            Some(g) => format!("what is homed in region \"{}\"", g.home),
            None => format!("group {group}"),
        };
        // Settled: the session would only ask again. 57P03 rather than 40001, whose retries come at
        // once and without end, and rather than class 08, which says that this connection is
        // broken.
        Err(Error::sql("57P03", format!("{what} cannot be reached"))
            .detail(format!(
                "{silent} of the {of} nodes that it needs (group {group}) have not been heard of for {} s; nothing was changed.",
                silence.as_secs()
            ))
            .hint(self.what_is_left(group)))
    }

    /// Waits until the copy of the catalog here may be planned with, for a bounded time.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        let outcome = self.freshness.catch_up().await;
        outcome.map_err(|e| if e.is_unavailable() { self.check_reach(GroupId::CATALOG).err().unwrap_or(e) } else { e })
    }

    /// What can be read of a group that is lost.
    fn what_is_left(&self, group: GroupId) -> String {
        let now = Timestamp::from_micros(self.runtime.physical_micros());
        let here = self.groups.replica(group).filter(|_| group != GroupId::CATALOG).map(|replica| replica.settled());
        // A replica that was just started has yet to hear what is settled.
        match here.filter(|settled| *settled > Timestamp::MIN).map(|settled| now.since(settled)) {
            Some(age) => format!(
                "Try again later. Its past can be read here: AS OF SYSTEM TIME '-{0}s' or older, or with_max_staleness('{0}s').",
                age.as_secs() + 1
            ),
            None => "Try again later, or connect to a node that reaches more of them.".to_string(),
        }
    }

    /// An error if a change makes a table whose home is lost: it would wait for that until the
    /// schema lease there has run out, and have no rows for longer.
    pub(crate) fn check_homes_reach(&self, change: &CatalogChange) -> Result<()> {
        let known = self.catalog.newest();
        for descriptor in &change.put {
            if let Descriptor::Table(table) = descriptor
                && !known.descriptors.contains_key(&table.id)
                && let Homes::One(group) = table.homes
            {
                self.check_reach(group)?;
            }
        }
        Ok(())
    }
}
