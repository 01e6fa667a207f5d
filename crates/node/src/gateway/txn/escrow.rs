//! A gateway's questions about escrow shares (design: escrow, E6 to E8).

use super::{CALL_TIMEOUT, Txn};
use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Request, Response};
use meridian_base::escrow::{Free, Share};
use meridian_base::{Change, GroupId, Key, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long a site's primary is looked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How far a row's number may go by deltas of this site.
struct Look<'a> {
    group: GroupId,
    share: &'a Key,
}

impl Ask for Look<'_> {
    type Answer = Option<Free>;
    const TIMEOUT: Duration = CALL_TIMEOUT;
    const IS_DROPPED: bool = true;
    fn request(&self) -> Request {
        Request::Share { group: self.group, key: self.share.clone() }
    }
    fn answer(response: Response) -> Option<Option<Free>> {
        if let Response::Share(free) = response { Some(free) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Option<Free>> {
        replica.share(self.share).await
    }
}

impl Txn {
    /// The tokens that are free for this transaction, whose own changes are counted. Nothing is
    /// held, and nothing certifies what this says: certification looks again.
    pub(super) async fn free_tokens(&mut self, group: GroupId, share: &Key) -> Result<Option<Free>> {
        let at = self.part(group)?;
        match self.parts[at].writes.get(share).map(|w| &w.change) {
            Some(Change::Delete) => return Ok(None),
            Some(Change::Put(own)) => {
                return Ok(Share::decode(own).map(|own| own.free()));
            }
            Some(Change::Add(_)) | None => {}
        }
        let own = self.parts[at].added(share);
        let free = self.gateway.shared.call_primary(group, PATIENCE, &Look { group, share }).await?;
        Ok(free.map(|free| Free { down: free.down + own, up: free.up - own }))
    }
}
