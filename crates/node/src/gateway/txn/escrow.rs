//! A gateway's part in escrow columns: what a site has to give, and rounds of redistribution
//! (`docs/design/escrow.md`, E6 to E8, E14 to E16; Samya, §3.4: Avantan[*] is a transaction over
//! several groups).

use super::{CALL_TIMEOUT, Txn};
use crate::gateway::Gateway;
use crate::local::metrics::Counter;
use crate::membership::ask::Ask;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Request, Response};
use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{StreamExt, TryStreamExt};
use meridian_base::escrow::{self, Free, Late, Offer, Share};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Change, ColumnMask, DescriptorId, GroupId, Key, Mutation, Result, SessionId, Timestamp, TxnId};
use meridian_escrow::{Site, allocate};
use meridian_sql::catalog::escrow::EscrowProtocol;
use meridian_sql::env::{Brought, Transaction, TxnOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a site's primary is looked for by a round, which goes on among the sites that answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// A round is led again when what was offered was gone when it was taken.
const ATTEMPTS: u32 = 3;
/// Rounds that one statement leads side by side.
const ROUNDS_AT_ONCE: usize = 256;
/// How long tokens that have been moved are waited for at the site: its primary hears of the
/// outcome when this gateway does.
const ARRIVAL: Duration = Duration::from_millis(500);
const ARRIVAL_POLL: Duration = Duration::from_millis(2);

/// What a site has to give.
struct Look<'a> {
    group: GroupId,
    share: &'a Key,
}

impl Ask for Look<'_> {
    /// With a moment that is not before anything that the site has acknowledged.
    type Answer = (Option<Offer>, Timestamp);
    const TIMEOUT: Duration = CALL_TIMEOUT;
    const IS_DROPPED: bool = true;
    fn request(&self) -> Request {
        Request::Share { group: self.group, key: self.share.clone() }
    }
    fn answer(response: Response) -> Option<Self::Answer> {
        if let Response::Share { offer, now } = response { Some((offer, now)) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Self::Answer> {
        Ok((replica.share(self.share).await?, replica.hybrid_now()))
    }
}

impl Txn {
    pub(in crate::gateway) async fn ask_site(&self, group: GroupId, share: &Key) -> Result<Option<Offer>> {
        self.gateway.shared.call_primary(group, PATIENCE, &Look { group, share }).await.map(|(offer, _)| offer)
    }

    /// What all sites have of a row at one moment of this statement, with the transaction's own
    /// writes: it waits for no writer and keeps none away, and certifies nothing. `None` in a
    /// block, which may go on after it has seen that.
    pub(super) async fn sites_now(&self, sites: &[GroupId], share: &Key) -> Result<Option<Vec<Vec<(Key, Bytes)>>>> {
        if self.options.is_block {
            return Ok(None);
        }
        let look = |group: GroupId| async move {
            self.gateway.shared.call_primary(group, PATIENCE, &Look { group, share }).await.map(|(_, now)| now)
        };
        let nows = join_all(sites.iter().map(|site| look(*site))).await;
        let at = nows.into_iter().collect::<Result<Vec<Timestamp>>>()?.into_iter().max().unwrap_or(self.began);
        let ranges = [escrow::range(share)];
        let found = join_all(sites.iter().map(|site| self.ranges_of(*site, &ranges, at))).await;
        let found = found.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Some(sites.iter().zip(found).map(|(site, found)| self.overlaid(*site, &ranges, found)).collect()))
    }

    /// What a site offers to this transaction, whose own changes are counted, and which enters the
    /// share's queue there: a transaction that is about to write the whole number comes before or
    /// after it. Nothing certifies what this says: certification looks again. In a block, which may
    /// be long, the primary holds what `late` takes, if it is there.
    pub(super) async fn offer_of(&mut self, group: GroupId, share: &Key, late: &Late) -> Result<Option<Offer>> {
        let at = self.part(group)?;
        match self.parts[at].writes.get(share).map(|w| &w.change) {
            Some(Change::Delete) => return Ok(None),
            Some(Change::Put(own)) => {
                return Ok(Share::decode(own).map(|own| Offer {
                    incarnation: own.incarnation,
                    free: own.free(),
                    wanted: Free::default(),
                }));
            }
            Some(Change::Add(_) | Change::Shift(_) | Change::Renew { .. }) | None => {}
        }
        let own = self.parts[at].added(share);
        let all = own.plus(late);
        let reserve = self.may_hold_tokens().then_some(all);
        let offer = self.enter_share(at, share, reserve).await?;
        if offer.is_some_and(|offer| reserve.is_some() && offer.free.allow(&all)) {
            let (down, up) = all.takes();
            let held = Free { down: down.max(0), up: up.max(0) };
            self.parts[at].reserved.insert(share.clone(), held);
        }
        Ok(offer.map(|offer| Offer { free: offer.free.after(&own), ..offer }))
    }

    /// Moves tokens to the first site until it allows this change. A transaction of its own moves
    /// them: this one holds nothing of it.
    pub(super) async fn bring_tokens(&self, sites: &[GroupId], share: &Key, late: &Late) -> Result<Brought> {
        let Some(first) = sites.first().copied() else { return Ok(Brought::No) };
        let own = |site: &GroupId| self.parts.iter().find(|p| p.group == *site);
        // A row that the transaction has written itself gets no tokens from outside; and a round
        // would change what the transaction has read of the number.
        if sites.iter().filter_map(own).any(|part| part.own(share).is_some() || part.has_read(&escrow::range(share))) {
            return Ok(Brought::No);
        }
        let added = own(&first).map_or_else(Free::default, |part| part.taken(share));
        // With what the transaction has taken already, and is not held for it.
        let (taken, more) = ((added.down, added.up), late.takes());
        let wanted = |taken: i128, more: i128| if more > 0 { more + taken.max(0) } else { 0 };
        let wanted = Free { down: wanted(taken.0, more.0), up: wanted(taken.1, more.1) };
        let turn = self.gateway.rounds.enter(share, wanted).await;
        // Another round has brought them.
        if self.covers(first, share, added, late).await? {
            turn.end(true);
            return Ok(Brought::Yes);
        }
        if turn.rests() {
            drop(turn);
            return Ok(without_round(&join_all(sites.iter().map(|site| self.ask_site(*site, share))).await, late));
        }
        let brought = self.lead_round(sites, share, (wanted, turn.wanted()), true).await;
        let mut is_there = false;
        let deadline = Instant::now() + ARRIVAL;
        while let Ok(Brought::Yes) = brought {
            is_there = self.covers(first, share, added, late).await?;
            if is_there || Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(ARRIVAL_POLL).await;
        }
        turn.end(is_there);
        match brought {
            Ok(Brought::Yes) if !is_there => Ok(Brought::No),
            // The statement finds another way, or says what it lacks.
            Err(e) if e.is_retry() => Ok(Brought::No),
            Err(e) if e.is_unavailable() => Ok(Brought::TooFewAnswer),
            brought => brought,
        }
    }

    /// Whether a site has tokens for another change, beside those that the transaction has taken.
    async fn covers(&self, site: GroupId, share: &Key, taken: Free, late: &Late) -> Result<bool> {
        let left = |free: Free| Free { down: free.down - taken.down, up: free.up - taken.up };
        Ok(self.ask_site(site, share).await?.is_some_and(|offer| left(offer.free).allow(late)))
    }

    /// Rounds for several numbers of one column: all of them together, and those that this did not
    /// help side by side. The statement that adds to the numbers finds out what the rounds brought.
    pub(super) async fn bring_tokens_each(&self, sites: &[GroupId], changes: Vec<(Key, Late)>) -> Result<()> {
        let protocol = changes.first().and_then(|(share, _)| self.gateway.shared.escrow_column(share)).map(|of| of.protocol());
        let changes = match protocol {
            Some(EscrowProtocol::Any) => self.bring_together(sites, changes).await?,
            _ => changes,
        };
        let round = |(share, late): (Key, Late)| -> BoxFuture<'_, Result<()>> {
            Box::pin(async move {
                match self.bring_tokens(sites, &share, &late).await {
                    Err(e) if !e.is_unavailable() && !e.is_retry() => Err(e),
                    _ => Ok(()),
                }
            })
        };
        let rounds: Vec<BoxFuture<'_, Result<()>>> = changes.into_iter().map(round).collect();
        futures::stream::iter(rounds).buffer_unordered(ROUNDS_AT_ONCE).try_collect().await
    }

    /// What sites offer of several numbers is moved by one transaction (E16 of each of them). What
    /// is left is for rounds of its own.
    async fn bring_together(&self, sites: &[GroupId], changes: Vec<(Key, Late)>) -> Result<Vec<(Key, Late)>> {
        let Some(first) = sites.first().copied() else { return Ok(changes) };
        let is_touched =
            |share: &Key| self.parts.iter().any(|part| part.writes.contains_key(share) || part.has_read(&escrow::range(share)));
        let (mut left, mut fresh): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(share, _)| is_touched(share));
        // In one order, so that no two of them wait for each other.
        fresh.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut turns = Vec::with_capacity(fresh.len());
        for (share, late) in &fresh {
            let (down, up) = late.takes();
            turns.push(self.gateway.rounds.enter(share, Free { down: down.max(0), up: up.max(0) }).await);
        }
        let asked = fresh.iter().map(|(share, _)| join_all(sites.iter().map(|site| self.ask_site(*site, share))));
        let offers: Vec<Vec<Result<Option<Offer>>>> = join_all(asked).await;
        let mut mover = self.sibling();
        let mut moved = Vec::new();
        for (((share, late), turn), offers) in fresh.into_iter().zip(turns).zip(&offers) {
            // Another round has brought them.
            if matches!(offers.first(), Some(Ok(Some(offer))) if offer.free.allow(&late)) {
                turn.end(true);
                continue;
            }
            match (!turn.rests()).then(|| moves(sites, offers, turn.wanted(), true)).flatten() {
                Some(moves) => {
                    mover.buffer_moves(&share, moves)?;
                    moved.push((share, late, turn));
                }
                None => left.push((share, late)),
            }
        }
        let Some((last, late)) = moved.last().map(|(share, late, _)| (share.clone(), *late)) else { return Ok(left) };
        match Box::pin(mover.commit_everywhere()).await {
            Ok(_) => {}
            // Each by itself finds out which of them it was.
            Err(e) if e.is_retry() || e.is_unavailable() => {
                left.extend(moved.into_iter().map(|(share, late, _)| (share, late)));
                return Ok(left);
            }
            Err(e) => return Err(e),
        }
        self.gateway.shared.groups.common.metrics.add_many(Counter::EscrowRounds, moved.len() as u64);
        let deadline = Instant::now() + ARRIVAL;
        while !self.covers(first, &last, Free::default(), &late).await? && Instant::now() < deadline {
            tokio::time::sleep(ARRIVAL_POLL).await;
        }
        moved.into_iter().for_each(|(.., turn)| turn.end(true));
        Ok(left)
    }

    /// Moves tokens to the first site, which is forecast to want these. Whether any were moved. A
    /// row that has a round, or rests, is left alone.
    pub(in crate::gateway) async fn bring_ahead(&self, sites: &[GroupId], share: &Key, wanted: Free) -> Result<bool> {
        let Some(turn) = self.gateway.rounds.try_enter(share).filter(|turn| !turn.rests_ahead()) else { return Ok(false) };
        let brought = self.lead_round(sites, share, (wanted, wanted), false).await;
        let has_brought = matches!(brought, Ok(Brought::Yes));
        turn.end_ahead(has_brought);
        brought.map(|_| has_brought)
    }

    /// Asks all sites, divides what they offer, and moves it. `wanted`: by this statement, and by
    /// all that wait here. `is_waiting`: a part of what is wanted is of no use.
    async fn lead_round(&self, sites: &[GroupId], share: &Key, wanted: (Free, Free), is_waiting: bool) -> Result<Brought> {
        let protocol = self.gateway.shared.escrow_column(share).map_or(EscrowProtocol::Any, |column| column.protocol());
        let led = match protocol {
            EscrowProtocol::Majority => self.lead_majority(sites, share, wanted.0, is_waiting).await,
            EscrowProtocol::Any => self.try_round(sites, share, wanted, is_waiting).await,
        };
        tracing::debug!("a round for {wanted:?} of {share:?}: {led:?}");
        let counter = if matches!(led, Ok(Brought::Yes)) { Counter::EscrowRounds } else { Counter::EscrowRoundsFruitless };
        // Those ahead of need are counted by who leads them.
        if is_waiting || counter == Counter::EscrowRoundsFruitless {
            self.gateway.shared.groups.common.metrics.add(counter);
        }
        led
    }

    async fn try_round(&self, sites: &[GroupId], share: &Key, (own, all): (Free, Free), is_waiting: bool) -> Result<Brought> {
        let mut last = Ok(Brought::No);
        for _ in 0..ATTEMPTS {
            let offers = join_all(sites.iter().map(|site| self.ask_site(*site, share))).await;
            let moved = |wanted| moves(sites, &offers, wanted, is_waiting);
            let Some(moves) = moved(all).or_else(|| moved(own)) else {
                return Ok(if offers.iter().all(Result::is_ok) { Brought::TooFew } else { Brought::TooFewAnswer });
            };
            match self.sibling().move_tokens(share, moves).await {
                Ok(()) => return Ok(Brought::Yes),
                // A site had spent what it offered (E16), or a reader holds the number.
                Err(e) if e.is_retry() => {
                    self.gateway.shared.groups.common.metrics.add(Counter::EscrowRoundsRepeated);
                    last = Err(e);
                }
                Err(e) => return Err(e),
            }
        }
        last
    }

    /// A transaction that the node itself runs, over these tables.
    pub(in crate::gateway) fn of_node(gateway: Arc<Gateway>, tables: &[DescriptorId]) -> Txn {
        let catalog = gateway.shared.catalog.at(|| gateway.shared.runtime.physical_micros());
        let options = TxnOptions {
            session: SessionId::default(),
            read_only: false,
            schema: catalog.seen,
            schema_committed_at: catalog.seen_at,
            lock_timeout: None,
            deadlock_timeout: None,
            attempt: 0,
            as_of: None,
            is_held_back: true,
            is_block: false,
        };
        let mut txn = Txn::new(gateway, options);
        txn.uses(tables);
        txn
    }

    /// A transaction of its own, planned as this one is.
    fn sibling(&self) -> Txn {
        let options = TxnOptions { read_only: false, as_of: None, is_block: false, attempt: 0, ..self.options.clone() };
        let mut sibling = Txn::new(self.gateway.clone(), options);
        sibling.schema = self.schema.clone();
        sibling
    }

    async fn move_tokens(mut self, share: &Key, moves: Vec<(GroupId, Late)>) -> Result<()> {
        self.buffer_moves(share, moves)?;
        Box::pin(self.commit_everywhere()).await.map(|_| ())
    }

    fn buffer_moves(&mut self, share: &Key, moves: Vec<(GroupId, Late)>) -> Result<()> {
        moves.into_iter().try_for_each(|(site, late)| {
            self.buffer(site, Mutation { key: share.clone(), change: Change::Shift(Box::new(late)), columns: ColumnMask::ALL })
        })
    }
}

/// What a statement may hope for that leads no round now: another site may have got tokens
/// meanwhile.
fn without_round(offers: &[Result<Option<Offer>>], late: &Late) -> Brought {
    let free = || offers.iter().flatten().flatten().map(|offer| offer.free);
    if free().any(|free| free.allow(late)) {
        return Brought::No;
    }
    if offers.iter().all(Result::is_ok) {
        return Brought::TooFew;
    }
    let all = free().fold(Free::default(), |all, free| Free { down: all.down + free.down.max(0), up: all.up + free.up.max(0) });
    if all.allow(late) { Brought::No } else { Brought::TooFewAnswer }
}

/// How the grants of the sites change, so that the first one gets what it wants of each pool; the
/// others what they are forecast to want, if there is so much. `None`: no tokens are to move. The
/// sites have too few, or the first one did not answer, or it has what it wants.
fn moves(sites: &[GroupId], offers: &[Result<Option<Offer>>], wanted: Free, is_waiting: bool) -> Option<Vec<(GroupId, Late)>> {
    let known = |offer: &Result<Option<Offer>>| offer.as_ref().ok().copied().flatten();
    // All shares of a row have one incarnation, but for the moment in which it is set.
    let incarnation: TxnId = offers.iter().filter_map(known).map(|o| o.incarnation).max()?;
    let answered: Vec<(GroupId, Offer)> = sites
        .iter()
        .zip(offers)
        .filter(|(_, offer)| offer.is_ok())
        .map(|(site, offer)| {
            let of_now = known(offer).filter(|o| o.incarnation == incarnation);
            (*site, of_now.unwrap_or(Offer { incarnation, free: Free::default(), wanted: Free::default() }))
        })
        .collect();
    if answered.first().map(|(site, _)| site) != sites.first() {
        return None;
    }
    let pool = |of: fn(&Free) -> i128| {
        let site = |(at, (_, offer)): (usize, &(GroupId, Offer))| Site {
            offered: of(&offer.free).max(0),
            wanted: if at == 0 { of(&wanted) } else { of(&offer.wanted).max(0) },
            is_waiting: at == 0 && is_waiting,
        };
        divided(&answered.iter().enumerate().map(site).collect::<Vec<_>>())
    };
    let (down, up) = (pool(|free| free.down)?, pool(|free| free.up)?);
    let changes = answered.iter().zip(down.into_iter().zip(up));
    let moves: Vec<(GroupId, Late)> = changes
        .map(|((site, _), (down, up))| (*site, Late::grant(incarnation, down, up)))
        .filter(|(_, l)| l.has_grants())
        .collect();
    (!moves.is_empty()).then_some(moves)
}

/// What each site gets of one pool, less what it offers, if the first one wants some of it. `None`:
/// it waits for more than all have.
fn divided(sites: &[Site]) -> Option<Vec<i128>> {
    let first = sites.first().filter(|first| first.wanted > 0);
    let Some(first) = first else { return Some(vec![0; sites.len()]) };
    if first.is_waiting && sites.iter().map(|s| s.offered).sum::<i128>() < first.wanted {
        return None;
    }
    let granted = allocate(sites);
    Some(granted.iter().zip(sites).map(|(granted, site)| granted - site.offered).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{Error, Timestamp};

    fn offer(hlc: u64, down: i128, up: i128) -> Result<Option<Offer>> {
        let incarnation = TxnId { hlc: Timestamp(hlc), ..TxnId::default() };
        Ok(Some(Offer { incarnation, free: Free { down, up }, wanted: Free::default() }))
    }
    fn moved(offers: &[Result<Option<Offer>>], delta: i128) -> Option<Vec<(u32, i128, i128)>> {
        let sites: Vec<GroupId> = (1..=offers.len() as u32).map(GroupId).collect();
        let wanted = Free { down: (-delta).max(0), up: delta.max(0) };
        let moves = moves(&sites, offers, wanted, true)?;
        Some(moves.into_iter().map(|(site, late)| (site.0, late.down, late.up)).collect())
    }

    #[test]
    fn the_first_site_gets_what_it_wants_and_the_rest_is_divided() {
        assert_eq!(moved(&[Ok(None), offer(1, 3, 99)], 3), Some(vec![(1, 0, 51), (2, 0, -51)]));
        assert_eq!(moved(&[offer(1, 0, 0), offer(1, 3, 99), offer(1, 4, 0)], -5), Some(vec![(1, 6, 0), (2, -2, 0), (3, -4, 0)]));
        let lost = || Err(Error::unavailable("gone"));
        assert_eq!(moved(&[offer(1, 0, 1), lost(), offer(1, 0, 9)], 4), Some(vec![(1, 0, 6), (3, 0, -6)]));
    }

    #[test]
    fn nothing_is_moved_that_is_not_there_or_belongs_to_another_number() {
        assert_eq!(moved(&[offer(1, 0, 1), offer(1, 0, 2)], 4), None);
        assert_eq!(moved(&[offer(2, 0, 1), offer(1, 0, 20)], 4), None, "shares from before the number was set");
        assert_eq!(moved(&[Ok(None), Ok(None)], 1), None);
        assert_eq!(moved(&[Err(Error::unavailable("gone")), offer(1, 9, 9)], 1), None, "who wants them cannot be reached");
    }
}
