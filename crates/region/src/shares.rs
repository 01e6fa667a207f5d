//! What a primary knows of escrow shares (`docs/design/escrow.md`, E4 to E7, folds; Samya, §3):
//! what each one holds, and what transactions that are not applied yet take of it.
//!
//! A delta is blind. The primary makes of it, in the one order in which it certifies and logs,
//! either the whole next version of the share ([`Change::Add`] in a transaction of this group), or
//! a late key of the transaction's own (in one over several groups, whose timestamp comes later).
//! It passes if the *free tokens* cover it: what is applied, less whatever is on its way and takes.
//! What is on its way and gives counts when it is applied (counterexamples 84 to 86).
//!
//! An offer that is out in a round of `majority` is not free (E17): from the certification of its
//! write on, and until the write that ends it is applied. What a decision takes comes out of it.
//!
//! What a statement has [reserved](crate::reserved) for its transaction is free for that one alone.
//!
//! Only shares in use are held. What is not held is read from the store, once nothing in flight
//! writes it; so forgetting one is always right.

use crate::reserved::Reserved;
use crate::rules::Rules;
use crate::versions::Versions;
use bytes::Bytes;
use meridian_base::escrow::{self, Demand, Free, Late, Offer, Share};
use meridian_base::limits::SHARES_HELD_MAX;
use meridian_base::record::{Committed, Prepared};
use meridian_base::{Change, ColumnMask, Key, KeyRange, Mutation, Timestamp, TxnId, Write};
use meridian_escrow::majority;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// See the module's essay.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    rules: Rules,
    held: BTreeMap<Key, Held>,
    /// What transactions that are in flight or prepared add.
    pending: BTreeMap<TxnId, Vec<(Key, Late)>>,
    /// What these take of each share.
    taken: BTreeMap<Key, Taken>,
    /// What statements hold for their transactions.
    reserved: Reserved,
    /// Held shares with many late keys.
    ripe: BTreeSet<Key>,
    /// Rows that were found with an offer out, or with a round and no share.
    open: BTreeSet<Key>,
    /// Rows with a round and no share, from [`Shares::load`] until they are deleted: whether the
    /// round has an offer.
    alone: BTreeMap<Key, bool>,
    /// Held shares with a demand.
    busy: BTreeSet<Key>,
    /// Where [`Shares::take_ripe`] goes on.
    folded_last: Key,
    /// [`FOLD_FROM`].
    fold_from: usize,
}

/// A share with so many late keys is to be folded.
const FOLD_FROM: usize = 8;
const FOLDS_AT_ONCE: usize = 32;

/// And so many keys at once.
const FOLDED_MAX: usize = 1_024;

/// A late key that goes.
fn gone(share: &Key, id: TxnId) -> Write {
    without(escrow::late_key(share, id))
}

fn without(key: Key) -> Write {
    Write { key, value: None, columns: ColumnMask::ALL }
}

/// The value of [`escrow::open_key`], which says everything by being there.
const IS_OPEN: &[u8] = &[1];

/// Everything that a site has of a row: its share, late keys and round.
pub(crate) fn of_site(share: &Key) -> KeyRange {
    KeyRange::new(share.clone(), escrow::round_key(share).successor())
}

/// What is applied of a row's rounds.
pub(crate) fn stored_round<V: Versions>(versions: &V, share: &Key) -> Option<majority::Round> {
    let alone = KeyRange::new(escrow::round_key(share), of_site(share).end);
    versions.newest_values(&alone).pop().and_then(|(_, value)| majority::Round::decode(&value))
}

/// One share.
#[derive(Clone, Debug)]
struct Held {
    applied: Share,
    /// The same with what is certified after it.
    newest: Share,
    /// Applied late keys. Some may be of another incarnation.
    late: BTreeMap<TxnId, Late>,
    /// Those of them that are not in `applied` yet, as one.
    sum: Late,
    /// What the site stores of the row's rounds, applied or certified.
    round: Option<Box<majority::Round>>,
    /// Tokens that an offer holds, applied or certified.
    offered: Free,
    /// Of deltas that were certified, since it was last asked for.
    demand: Demand,
    /// The tokens that are forecast to be needed.
    wanted: Free,
}

/// Tokens, of the two pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    by: u32,
    down: i128,
    up: i128,
}

impl Held {
    fn new(applied: Share, late: BTreeMap<TxnId, Late>, round: Option<majority::Round>) -> Held {
        let mut held = Held {
            applied,
            newest: applied,
            late,
            sum: Late::delta(applied.incarnation, 0),
            round: None,
            offered: Free::default(),
            demand: Demand::default(),
            wanted: Free::default(),
        };
        held.sum_up();
        if let Some(round) = round {
            held.apply_round(round);
        }
        held
    }

    /// A step in a round is applied, or read.
    fn apply_round(&mut self, round: majority::Round) {
        self.offered = self.offer_in(&round).unwrap_or_default();
        self.round = Some(Box::new(round));
    }

    /// A round of another incarnation holds nothing.
    fn offer_in(&self, round: &majority::Round) -> Option<Free> {
        round.offer.filter(|_| round.incarnation == self.newest.incarnation)
    }

    fn counts(&self, id: TxnId, late: &Late) -> bool {
        id > self.applied.floor && late.incarnation == self.applied.incarnation
    }

    fn sum_up(&mut self) {
        let none = Late::delta(self.applied.incarnation, 0);
        let counted = self.late.iter().filter(|(id, late)| self.counts(**id, late));
        self.sum = counted.fold(none, |sum, (_, late)| sum.plus(late));
    }

    /// A late key is applied.
    fn add_late(&mut self, id: TxnId, late: Late) {
        self.late.insert(id, late);
        if self.counts(id, &late) {
            self.sum = self.sum.plus(&late);
        }
    }

    /// A newer version of the share is applied.
    fn apply(&mut self, share: Share) {
        let has_taken_in = (share.floor, share.incarnation) != (self.applied.floor, self.applied.incarnation);
        self.applied = share;
        if has_taken_in {
            self.late.retain(|id, _| *id > share.floor);
            self.sum_up();
        }
    }

    /// Free tokens of what is applied.
    fn free(&self) -> Free {
        self.applied.plus(&self.sum).free()
    }
}

impl Shares {
    /// With what the log has prepared (E6: a new primary takes pending effects from there).
    pub fn new<'a>(prepared: impl Iterator<Item = &'a Prepared>, rules: Rules) -> Shares {
        let mut shares = Shares {
            rules,
            held: BTreeMap::new(),
            pending: BTreeMap::new(),
            taken: BTreeMap::new(),
            reserved: Reserved::default(),
            ripe: BTreeSet::new(),
            open: BTreeSet::new(),
            alone: BTreeMap::new(),
            busy: BTreeSet::new(),
            folded_last: Key::MIN,
            fold_from: FOLD_FROM,
        };
        if !rules.counts_prepared_deltas() {
            return shares;
        }
        for prepared in prepared {
            for write in &prepared.writes {
                if let Some((share, id, late)) = write.value.as_ref().and_then(|value| Late::of(&write.key, value)) {
                    shares.take(id, share, late);
                }
            }
        }
        shares
    }

    /// The same with another number of late keys from which on a share is folded.
    pub fn folding_from(self, late_keys: usize) -> Shares {
        Shares { fold_from: late_keys, ..self }
    }

    /// Whether a share is held. What is not, is read by [`Shares::load`] when nothing in flight
    /// writes it.
    pub fn is_held(&self, share: &Key) -> bool {
        self.held.contains_key(share)
    }

    /// Before so many shares are looked at, which are to be held together.
    pub fn make_room(&mut self, shares: usize) {
        if self.held.len() + self.alone.len() + shares > SHARES_HELD_MAX {
            self.held.clear();
            self.ripe.clear();
            self.busy.clear();
            self.alone.clear();
        }
    }

    /// Reads a share from the store, if there is one. What is held already stays.
    pub fn load<V: Versions>(&mut self, versions: &V, share: &Key) {
        let alone = KeyRange::new(share.clone(), share.successor());
        let found = versions.newest_values(&alone).pop().and_then(|(_, value)| Share::decode(&value));
        self.alone.remove(share);
        if let Some(applied) = found {
            // Below the floor are tombstones only. The round lies behind the late keys.
            let above = KeyRange::new(escrow::late_key(share, applied.floor), of_site(share).end);
            let mut values = versions.newest_values(&above);
            let is_round = values.last().is_some_and(|(key, _)| *key == escrow::round_key(share));
            let round = if is_round { values.pop().and_then(|(_, value)| majority::Round::decode(&value)) } else { None };
            let round = round.filter(|_| self.rules.inherits_offers());
            let late = values.into_iter().filter_map(|(key, value)| Late::of(&key, &value));
            let late: BTreeMap<TxnId, Late> = late.map(|(_, id, one)| (id, one)).collect();
            if late.len() >= self.fold_from {
                self.ripe.insert(share.clone());
            }
            let held = Held::new(applied, late, round);
            if held.round.as_ref().is_some_and(|round| held.offer_in(round).is_some()) {
                self.open.insert(share.clone());
            }
            self.held.insert(share.clone(), held);
        } else if let Some(round) = stored_round(versions, share) {
            self.open.insert(share.clone());
            self.alone.insert(share.clone(), round.offer.is_some());
        }
    }

    /// The share is written in another way than by a delta, or may be.
    pub fn forget(&mut self, share: &Key) {
        self.held.remove(share);
        self.ripe.remove(share);
    }

    /// Whether there is a share (E7), held, that covers a change of the transaction (E6). If not,
    /// that may change.
    pub fn covers(&self, id: TxnId, share: &Key, change: &Change) -> bool {
        if let Change::Renew { is_there } = change {
            return self.may_renew(share, *is_there);
        }
        let Some(held) = self.held.get(share) else {
            // A share that is new is given tokens, and gives none.
            return matches!(change, Change::Shift(late) if Free::default().allow(late));
        };
        // At or below the floor a late key of it would count nowhere (counterexample 96).
        let is_above = id > held.newest.floor;
        let Some(free) = self.free_for(id, share).filter(|_| is_above) else { return false };
        match change {
            Change::Add(delta) => free.cover(*delta),
            // E15, E16.
            Change::Shift(late) => {
                let is_of_now = late.incarnation == held.newest.incarnation || !self.rules.compares_incarnations();
                is_of_now && (free.allow(late) || !self.rules.checks_givers())
            }
            Change::Delete | Change::Put(_) | Change::Renew { .. } => true,
        }
    }

    /// E20: no offer of the row is out here. One of an incarnation that is over holds nothing.
    fn may_renew(&self, share: &Key, is_there: bool) -> bool {
        let is_out = match self.held.get(share) {
            Some(held) => held.round.as_ref().is_some_and(|round| held.offer_in(round).is_some()),
            None if is_there => return false,
            None => self.alone.get(share) == Some(&true),
        };
        !is_out || !self.rules.renews_settled()
    }

    /// What a held share has to give; `None`: it is not held.
    pub fn offer(&self, share: &Key) -> Option<Offer> {
        let held = self.held.get(share)?;
        Some(Offer { incarnation: held.newest.incarnation, free: self.free(share)?, wanted: held.wanted })
    }

    /// What a held share has to give to a transaction, for which it holds from now on what `late`
    /// takes, if it is there; until `until` at most. `late`: all that the transaction adds to it.
    pub fn reserve(&mut self, id: TxnId, share: &Key, late: &Late, until: Timestamp) -> Option<Offer> {
        let free = self.free_for(id, share)?;
        if free.allow(late) {
            let (down, up) = late.takes();
            self.reserved.put(id, share, Free { down: down.max(0), up: up.max(0) }, until);
        }
        Some(Offer { free, ..self.offer(share)? })
    }

    /// The transaction has ended, or goes on without what is held for it.
    pub fn release_reserved(&mut self, id: TxnId) {
        self.reserved.remove(id);
    }

    /// What is held for too long is held no more.
    pub fn expire(&mut self, now: Timestamp) {
        self.reserved.expire(now);
    }

    /// The tokens of a held share that a transaction may take: those that are held for it are.
    fn free_for(&self, id: TxnId, share: &Key) -> Option<Free> {
        let (free, own) = (self.free(share)?, self.reserved.of(id, share));
        Some(Free { down: free.down + own.down, up: free.up + own.up })
    }

    /// A forecast of what a held share will need.
    pub fn expect(&mut self, share: &Key, wanted: Free) {
        if let Some(held) = self.held.get_mut(share) {
            held.wanted = wanted;
        }
    }

    /// What deltas of a held share needed since [`Shares::take_demands`], and its forecast.
    pub fn outlook(&self, share: &Key) -> (Free, Free) {
        self.held.get(share).map_or_else(Default::default, |held| (held.demand.tokens(), held.wanted))
    }

    /// What deltas needed of the held shares since this was last asked for, where they needed any.
    pub fn take_demands(&mut self) -> Vec<(Key, Demand)> {
        let busy = std::mem::take(&mut self.busy).into_iter();
        busy.filter_map(|share| Some((std::mem::take(&mut self.held.get_mut(&share)?.demand), share)).map(|(d, s)| (s, d)))
            .collect()
    }

    /// The tokens of a held share that nobody takes yet or has reserved, and that no offer holds;
    /// `None`: it is not held.
    pub fn free(&self, share: &Key) -> Option<Free> {
        let held = self.held.get(share)?;
        let free = self.not_taken(share, held);
        let offered = if self.rules.holds_offers() { held.offered } else { Free::default() };
        Some(Free { down: free.down - offered.down, up: free.up - offered.up })
    }

    /// The same, with what an offer holds.
    fn not_taken(&self, share: &Key, held: &Held) -> Free {
        let Free { mut down, mut up } = held.free();
        if let Some(taken) = self.taken.get(share).filter(|_| self.rules.counts_deltas_in_flight()) {
            (down, up) = (down - taken.down, up - taken.up);
        }
        let reserved = self.reserved.sum(share);
        (down, up) = (down - reserved.down, up - reserved.up);
        if !self.rules.credits_when_applied() {
            let pending = self.pending.values().flatten().filter(|(key, _)| key == share);
            (down, up) = pending.fold((down, up), |(down, up), (_, late)| {
                let (d, u) = late.takes();
                (down - d.min(0), up - u.min(0))
            });
        }
        Free { down, up }
    }

    /// What the log is to hold of a transaction whose changes have passed [`Shares::covers`] and
    /// that gets its timestamp now. `is_alone`: it is one of this group only.
    pub fn resolve(&mut self, id: TxnId, mutations: &[Mutation], is_alone: bool) -> Vec<Write> {
        let mut writes = Vec::with_capacity(mutations.len());
        for mutation in mutations {
            match &mutation.change {
                Change::Add(delta) if is_alone => writes.extend(self.add(id, mutation, *delta)),
                Change::Add(0) => {}
                Change::Add(delta) => {
                    let incarnation = self.held.get(&mutation.key).expect("a delta is covered by a share").newest.incarnation;
                    writes.push(self.add_late(id, mutation, Late::delta(incarnation, *delta)));
                }
                Change::Shift(late) => {
                    if !self.held.contains_key(&mutation.key) {
                        // Without one no reader would know which late keys count (counterexample
                        // 99).
                        let value = Some(Share::empty(late.incarnation).encode());
                        writes.push(Write { key: mutation.key.clone(), value, columns: ColumnMask::ALL });
                    }
                    writes.push(self.add_late(id, mutation, **late));
                }
                Change::Renew { .. } => writes.extend(self.renew(id, mutation)),
                Change::Delete | Change::Put(_) => {
                    writes.extend(mutation.resolved());
                    let held = self.held.remove(&mutation.key);
                    self.forget(&mutation.key);
                    self.reserved.end(&mutation.key);
                    // Late keys of a number that is over count nowhere.
                    writes.extend(held.iter().flat_map(|held| held.late.keys()).map(|id| gone(&mutation.key, *id)));
                    // A number that is set leaves the round: one of another number holds nothing. A
                    // row that is deleted leaves none: what a round keeps for other sites would
                    // give them shares again, once their tombstones are gone.
                    let of_held = held.and_then(|held| held.round).map(|round| round.offer.is_some());
                    let round = of_held.or(self.alone.remove(&mutation.key));
                    if let Some(is_open) = round.filter(|_| mutation.change == Change::Delete) {
                        writes.push(without(escrow::round_key(&mutation.key)));
                        writes.extend(is_open.then(|| without(escrow::open_key(&mutation.key))));
                    }
                }
            }
        }
        writes
    }

    /// The whole next version of the share (E4).
    fn add(&mut self, id: TxnId, mutation: &Mutation, delta: i128) -> Option<Write> {
        let held = self.held.get_mut(&mutation.key).expect("a delta is covered by a share");
        if delta == 0 {
            return None;
        }
        let late = Late::delta(held.newest.incarnation, delta);
        let before = if self.rules.shares_count_in_flight() { held.newest } else { held.applied };
        held.newest = before.plus(&late);
        let value = Some(held.newest.encode());
        self.take(id, mutation.key.clone(), late);
        Some(Write { key: mutation.key.clone(), value, columns: mutation.columns })
    }

    /// Writes the share with the transaction as its incarnation, and deletes its late keys and its
    /// round (E20). The transaction holds the range of the share, so no other one changes it.
    fn renew(&mut self, id: TxnId, mutation: &Mutation) -> Vec<Write> {
        let share = &mutation.key;
        let held = self.held.remove(share);
        self.forget(share);
        let empty = Share::empty(id);
        let is = held.as_ref().map_or(empty, |held| Share { incarnation: id, floor: empty.floor, ..held.newest.plus(&held.sum) });
        let mut writes = vec![Write { key: share.clone(), value: Some(is.encode()), columns: mutation.columns }];
        writes.extend(held.iter().flat_map(|held| held.late.keys()).map(|late| gone(share, *late)));
        let is_open = held.and_then(|held| held.round).map(|round| round.offer.is_some());
        if let Some(is_open) = is_open.or(self.alone.remove(share)) {
            writes.push(without(escrow::round_key(share)));
            writes.extend(is_open.then(|| without(escrow::open_key(share))));
        }
        writes
    }

    /// A key of the transaction's own (E5).
    fn add_late(&mut self, id: TxnId, mutation: &Mutation, late: Late) -> Write {
        self.take(id, mutation.key.clone(), late);
        Write { key: escrow::late_key(&mutation.key, id), value: Some(late.encode()), columns: ColumnMask::ALL }
    }

    fn take(&mut self, id: TxnId, share: Key, late: Late) {
        // Certification has taken it over.
        self.reserved.take(id, &share);
        if late.contribution != 0
            && let Some(held) = self.held.get_mut(&share)
        {
            if held.demand == Demand::default() {
                self.busy.insert(share.clone());
            }
            held.demand.add(late.contribution);
        }
        let (down, up) = late.takes();
        let taken = self.taken.entry(share.clone()).or_default();
        *taken = Taken { by: taken.by + 1, down: taken.down + down.max(0), up: taken.up + up.max(0) };
        self.pending.entry(id).or_default().push((share, late));
    }

    /// The transaction is on its way no more: what it adds to each share.
    fn release(&mut self, id: TxnId) -> Vec<(Key, Late)> {
        let added = self.pending.remove(&id).unwrap_or_default();
        for (share, late) in &added {
            let (down, up) = late.takes();
            let taken = self.taken.get_mut(share).expect("what is pending is taken");
            *taken = Taken { by: taken.by - 1, down: taken.down - down.max(0), up: taken.up - up.max(0) };
            if taken.by == 0 {
                self.taken.remove(share);
            }
        }
        added
    }

    /// A transaction of this group is applied.
    pub fn applied(&mut self, txn: &Committed) {
        for write in txn.writes.iter().filter(|w| escrow::is_key(w.key.as_bytes())) {
            if let Some((share, id, late)) = write.value.as_ref().and_then(|value| Late::of(&write.key, value)) {
                self.add_late_to(share, id, late);
                continue;
            }
            if let Some(round) = write.value.as_ref().and_then(|value| majority::Round::decode(value)) {
                if let Some(held) = self.held.get_mut(&escrow::share_of_round(&write.key)) {
                    held.apply_round(round);
                }
                continue;
            }
            let Some(held) = self.held.get_mut(&write.key) else { continue };
            match write.value.as_ref().and_then(|value| Share::decode(value)) {
                Some(share) => held.apply(share),
                None => self.forget(&write.key),
            }
        }
        self.release(txn.id);
    }

    /// A prepared transaction has ended, at a timestamp or not at all; it had these keys.
    pub fn decided<'a>(&mut self, id: TxnId, is_committed: bool, keys: impl Iterator<Item = &'a Key>) {
        for (share, late) in self.release(id) {
            if is_committed {
                self.add_late_to(share, id, late);
            }
        }
        if is_committed {
            keys.for_each(|key| self.forget(key));
        }
    }

    /// A late key is applied.
    fn add_late_to(&mut self, share: Key, id: TxnId, late: Late) {
        let Some(held) = self.held.get_mut(&share) else { return };
        held.add_late(id, late);
        if held.late.len() >= self.fold_from {
            self.ripe.insert(share);
        }
    }

    // --- rounds

    /// What a step of the site finds: the incarnation of its share, the tokens that nobody takes,
    /// those of its own offer included, and the round. `None`: the share is not held.
    pub fn in_round(&self, share: &Key) -> Option<(TxnId, Free, Option<&majority::Round>)> {
        let held = self.held.get(share)?;
        Some((held.newest.incarnation, self.not_taken(share, held), held.round.as_deref()))
    }

    /// The rows that were found with an offer out, or may have one, since this was last asked for.
    pub fn take_open(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.open)
    }

    /// Whether a step's grant is covered, by what its own offer holds and by what is free. It
    /// always is, unless a message was damaged.
    pub fn covers_grant(&self, share: &Key, grant: &Late) -> bool {
        match self.held.get(share) {
            Some(held) => held.newest.incarnation == grant.incarnation && self.not_taken(share, held).allow(grant),
            None => Free::default().allow(grant),
        }
    }

    /// What the log is to hold of a step, which gets its timestamp now. A grant is in the share's
    /// next version; the offer that it ends holds what it takes until that is applied. `before`:
    /// the round that is stored. The open key is there exactly while the stored round has an offer,
    /// of whatever incarnation.
    pub fn step(&mut self, share: &Key, before: Option<&majority::Round>, write: &majority::Write) -> Vec<Write> {
        let all = |key: Key, value: Bytes| Write { key, value: Some(value), columns: ColumnMask::ALL };
        let mut writes = vec![all(escrow::round_key(share), write.round.encode())];
        match (before.is_some_and(|round| round.offer.is_some()), write.round.offer.is_some()) {
            (false, true) => writes.push(all(escrow::open_key(share), Bytes::from_static(IS_OPEN))),
            (true, false) => writes.push(without(escrow::open_key(share))),
            _ => {}
        }
        let granted = write.granted.map(|granted| granted.grant);
        match (self.held.get_mut(share), granted) {
            (Some(held), granted) => {
                if let Some(offer) = held.offer_in(&write.round) {
                    held.offered = offer;
                }
                held.round = Some(Box::new(write.round.clone()));
                if let Some(grant) = granted {
                    held.newest = held.newest.plus(&grant);
                    writes.push(all(share.clone(), held.newest.encode()));
                }
            }
            (None, Some(grant)) => writes.push(all(share.clone(), Share::empty(grant.incarnation).plus(&grant).encode())),
            (None, None) => {}
        }
        writes
    }

    // --- folds

    /// Some of the shares that are to be folded; others the next time.
    pub fn take_ripe(&mut self) -> Vec<Key> {
        let after = (Excluded(self.folded_last.clone()), Unbounded);
        let mut some: Vec<Key> = self.ripe.range(after).take(FOLDS_AT_ONCE).cloned().collect();
        some.extend(self.ripe.range(..=self.folded_last.clone()).take(FOLDS_AT_ONCE - some.len()).cloned());
        if let Some(last) = some.last() {
            self.folded_last = last.clone();
        }
        some
    }

    /// The late keys of a held share that may be folded: those at or below `watermark`, below which
    /// no transaction begins any more, and below every one that is prepared here (counterexample
    /// 96).
    pub fn foldable(&self, share: &Key, watermark: Timestamp) -> Vec<TxnId> {
        let Some(held) = self.held.get(share) else { return Vec::new() };
        let touches = |(id, on): (&TxnId, &Vec<(Key, Late)>)| on.iter().any(|(key, _)| key == share).then_some(*id);
        let undecided = match self.rules.folds_decided_only() {
            false => None,
            true => self.pending.iter().find_map(touches),
        };
        let is_over = |id: &TxnId| id.hlc <= watermark && undecided.is_none_or(|first| *id < first);
        // What a fold in flight has is at or below the newest floor.
        let open = held.late.range((Excluded(held.newest.floor), Unbounded)).map(|(id, _)| *id);
        let over: Vec<TxnId> = open.take_while(is_over).take(FOLDED_MAX).collect();
        if over.len() < self.fold_from { Vec::new() } else { over }
    }

    /// Adds late keys to the share and deletes them: those of [`Shares::foldable`].
    pub fn fold(&mut self, share: &Key, folded: &[TxnId]) -> Vec<Write> {
        let held = self.held.get_mut(share).expect("what is folded is held");
        for id in folded {
            let late = &held.late[id];
            if *id > held.newest.floor && late.incarnation == held.newest.incarnation {
                held.newest = held.newest.plus(late);
            }
        }
        held.newest.floor = held.newest.floor.max(folded.last().copied().unwrap_or_default());
        if held.late.len() < folded.len() + self.fold_from {
            self.ripe.remove(share);
        }
        let new = Write { key: share.clone(), value: Some(held.newest.encode()), columns: ColumnMask::ALL };
        std::iter::once(new).chain(folded.iter().map(|id| gone(share, *id))).collect()
    }

    /// What holds between two events of a term.
    pub fn invariant(&self) {
        let mut taken: BTreeMap<Key, Taken> = BTreeMap::new();
        for (share, late) in self.pending.values().flatten() {
            let (down, up) = late.takes();
            let sum = taken.entry(share.clone()).or_default();
            *sum = Taken { by: sum.by + 1, down: sum.down + down.max(0), up: sum.up + up.max(0) };
        }
        assert_eq!(taken, self.taken, "what is taken is what is pending");
        self.reserved.invariant();
        for (share, held) in &self.held {
            let mut again = held.clone();
            again.sum_up();
            assert_eq!(again.sum, held.sum, "late keys add up");
            let (free, taken) = (held.free(), self.taken.get(share).copied().unwrap_or_default());
            let Free { down, up } = held.offered;
            let is_covered = free.down >= taken.down + down && free.up >= taken.up + up;
            assert!(is_covered, "E3: {share:?} has {held:?}, of which {taken:?} is taken");
        }
    }
}
