//! Rounds of `majority` between nodes: their messages, what a site's primary needs to know of a row
//! before it leads one, and the tokens that a statement waits for (`docs/design/majority.md`).

use super::delivery::CALL_TIMEOUT;
use super::txn::Txn;
use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::rounds::RowSites;
use crate::transport::rounds::{Lead, ROWS_MAX, RoundMessages};
use crate::transport::wire::{Request, Response};
use meridian_base::escrow::{self, Free};
use meridian_base::{Error, GroupId, Key, Result, SchemaUse};
use meridian_sql::catalog::EscrowColumn;
use meridian_sql::catalog::escrow::EscrowProtocol;
use meridian_sql::env::Brought;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a message looks for a primary that takes it.
const DELIVERY_PATIENCE: Duration = Duration::from_millis(300);
/// How long a statement waits for its rounds.
pub(crate) const LEAD_PATIENCE: Duration = Duration::from_millis(1_500);
/// How long the site's primary is looked for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a node looks for sites that it leads since, and measures the way to others.
const TICK: Duration = Duration::from_secs(1);

struct Delivery {
    group: GroupId,
    messages: RoundMessages,
}

impl Ask for Delivery {
    type Answer = ();
    const TIMEOUT: Duration = CALL_TIMEOUT;
    const IS_DROPPED: bool = true;
    fn request(&self) -> Request {
        Request::Rounds { group: self.group, messages: self.messages.clone() }
    }
    fn answer(_: Response) -> Option<()> {
        Some(())
    }
    async fn here(&self, shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<()> {
        shared.hear_rounds(replica, self.messages.clone()).await;
        Ok(())
    }
}

/// Hands messages to a site's primary, wherever that is.
pub(crate) async fn deliver(shared: Arc<Shared>, group: GroupId, messages: RoundMessages) {
    if shared.catalog.has_deleted(group) {
        return;
    }
    if let Err(e) = shared.call_primary(group, DELIVERY_PATIENCE, &Delivery { group, messages }).await {
        tracing::debug!("messages about rounds for group {group} are lost: {e}");
    }
}

struct Leading<'a> {
    group: GroupId,
    lead: &'a Lead,
}

impl Ask for Leading<'_> {
    type Answer = bool;
    const TIMEOUT: Duration = CALL_TIMEOUT;
    const IS_DROPPED: bool = true;
    fn request(&self) -> Request {
        Request::Lead { group: self.group, lead: self.lead.clone(), patience: LEAD_PATIENCE }
    }
    fn answer(response: Response) -> Option<bool> {
        if let Response::Led(has_brought) = response { Some(has_brought) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, replica: &Arc<Replica>) -> Result<bool> {
        shared.lead_rounds(replica, self.lead, LEAD_PATIENCE).await
    }
}

impl Shared {
    /// The column that a share is of, as this node plans with it.
    pub(crate) fn escrow_column(&self, share: &Key) -> Option<EscrowColumn> {
        self.escrow_column_used(share).map(|(column, _)| column)
    }

    /// The same with the catalog that says so.
    fn escrow_column_used(&self, share: &Key) -> Option<(EscrowColumn, SchemaUse)> {
        let catalog = self.catalog.at(|| self.runtime.physical_micros());
        let (table, column) = escrow::index_of(share).and_then(|index| catalog.escrow_of(index))?;
        Some((column, SchemaUse { version: catalog.seen, descriptors: vec![table], ..SchemaUse::default() }))
    }

    /// Messages of another site, or of this one to itself. What speaks of a row that is in no
    /// round, or of a site that the row does not have, is dropped.
    pub(crate) async fn hear_rounds(&self, replica: &Replica, mut messages: RoundMessages) {
        let catalog = self.catalog.at(|| self.runtime.physical_micros());
        let sites_of = |index: u32| -> BTreeSet<GroupId> {
            let column = catalog.escrow_of(index).map(|(_, column)| column).filter(EscrowColumn::keeps_sites);
            column.into_iter().flat_map(|column| column.sites).collect()
        };
        let from = messages.from;
        let mut known: BTreeMap<u32, BTreeSet<GroupId>> = BTreeMap::new();
        messages.rows.truncate(ROWS_MAX);
        messages.rows.retain(|(share, message)| {
            let Some(index) = escrow::index_of(share) else { return false };
            let sites = known.entry(index).or_insert_with(|| sites_of(index));
            sites.contains(&from) && message.is_of(sites)
        });
        replica.hear_rounds(messages).await;
    }

    /// See [`Replica::lead_rounds`].
    pub(crate) async fn lead_rounds(&self, replica: &Replica, lead: &Lead, patience: Duration) -> Result<bool> {
        let column = self.escrow_column_used(&lead.share).filter(|(column, _)| column.protocol() == EscrowProtocol::Majority);
        // A node that does not plan with the setting yet may not know the sites.
        let Some((column, schema)) = column else { return Err(Error::unavailable("the column's protocol is another one here")) };
        replica.lead_rounds(lead, &RowSites { sites: column.sites.iter().copied().collect(), schema }, patience).await
    }
}

/// The site begins a ballot for an offer that has been out for too long, whatever the column's
/// protocol is by now.
pub(crate) async fn begin(shared: Arc<Shared>, replica: Arc<Replica>, share: Key) {
    let Some((column, schema)) = shared.escrow_column_used(&share).filter(|(column, _)| column.keeps_sites()) else {
        let catalog = shared.catalog.at(|| shared.runtime.physical_micros());
        let index = escrow::index_of(&share).map(escrow::index_id);
        // Of a table that is gone. A copy of the catalog may also be behind.
        if index.is_none_or(|index| !catalog.reaches().contains(index)) {
            replica.forget_round(&share);
        }
        return;
    };
    let of_row = RowSites { sites: column.sites.iter().copied().collect(), schema };
    if let Err(e) = replica.begin_round(&share, None, &of_row).await {
        tracing::debug!("{}: no ballot begins: {e}", replica.id);
    }
}

/// Has the sites that this node leads find the rows whose rounds they have to end, until the node
/// ends.
pub(crate) async fn keep(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(TICK).await;
        let farthest = shared.peers.largest_round_trip().as_micros() as u64;
        shared.groups.common.farthest_micros.store(farthest, Ordering::Relaxed);
        let catalog = shared.catalog.at(|| shared.runtime.physical_micros());
        for table in catalog.tables_with_escrow() {
            for column in table.escrow.iter().filter(|column| column.keeps_sites()) {
                for site in &column.sites {
                    let Some(replica) = shared.groups.local_primary(*site) else { continue };
                    if let Err(e) = replica.find_open(column.index).await {
                        tracing::debug!("{site}: rows with an offer out are not known yet: {e}");
                    }
                }
            }
        }
    }
}

impl Txn {
    /// Has the first site lead rounds until it has these tokens.
    pub(in crate::gateway) async fn lead_majority(
        &self,
        sites: &[GroupId],
        share: &Key,
        wanted: Free,
        is_waiting: bool,
    ) -> Result<Brought> {
        let Some(group) = sites.first().copied() else { return Ok(Brought::No) };
        let incarnation = match self.ask_site(group, share).await? {
            Some(_) => None,
            None => {
                let others = sites[1..].iter().map(|site| self.ask_site(*site, share));
                let others = futures::future::join_all(others).await;
                let known = others.into_iter().filter_map(|offer| offer.ok().flatten()).map(|offer| offer.incarnation).max();
                // No site has the row.
                let Some(known) = known else { return Ok(Brought::No) };
                Some(known)
            }
        };
        let lead = Lead { share: share.clone(), wanted, is_waiting, incarnation };
        let led = self.gateway.shared.call_primary(group, PATIENCE, &Leading { group, lead: &lead }).await?;
        let reached = sites.iter().filter(|site| self.gateway.shared.check_reach(**site).is_ok()).count();
        Ok(match led {
            true => Brought::Yes,
            false if reached * 2 > sites.len() => Brought::No,
            false => Brought::TooFewAnswer,
        })
    }
}
