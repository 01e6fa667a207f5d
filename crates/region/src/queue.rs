//! Wait queues for hot rows.
//!
//! `UPDATE`, `DELETE` and `SELECT … FOR UPDATE` take an entry for the key *before* they read it, so
//! that transactions on a hot row line up, first in first out, instead of failing each other's
//! certification. **Advice only**: an entry protects nothing. Losing the queues in a crash,
//! granting an entry to two owners, or not asking at all loses speed and never correctness;
//! certification alone decides. That is why nothing here is logged, and why a full table simply
//! grants.
//!
//! An owner (a session of a gateway) waits for one key at a time. So the wait-for graph has at most
//! one cycle through a new waiter per edge, and it is looked for when a transaction starts to wait:
//! the youngest owner in the cycle aborts (40P01). Cycles over several primaries are not seen here;
//! [`Queues::ahead_of`] is what their members look for them with.
//!
//! Messages of a session may overtake each other: the release of one transaction may come after its
//! successor's first request, and a request after the release of its own transaction. So an owner
//! is one transaction of a session, and one that has been released is refused when it asks again
//! ([`Enqueued::Over`]).

use meridian_base::{Key, NodeId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Keys held at one primary. Above it entries are granted without being recorded: it is advice.
pub const HELD_MAX: usize = 100_000;
/// Released owners that are remembered; above it all are forgotten, which only means that a request
/// that comes very late may leave an entry behind until the primary changes or the gateway ends.
const OVER_MAX: usize = 65_536;

/// Whom an entry is leased to: a transaction of a session. It vanishes with the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    pub gateway: NodeId,
    pub session: SessionId,
    /// When the transaction began. No two of a gateway began at the same time.
    pub began: Timestamp,
    /// When the first attempt at the same work began: of a cycle the youngest aborts, and who is
    /// tried again stays as old as it was.
    pub since: Timestamp,
}

impl Owner {
    /// Orders all owners; the largest is the youngest.
    pub fn age(&self) -> (Timestamp, Owner) {
        (self.since, *self)
    }
}

/// What an entry excludes (PostgreSQL manual, 13.3.2): each mode excludes what the weaker ones do,
/// and more.
///
/// | | `KeyShared` | `Shared` | `KeyKept` | `Exclusive` |
/// | --- | --- | --- | --- | --- |
/// | `KeyShared` | | | | × |
/// | `Shared` | | | × | × |
/// | `KeyKept` | | × | × | × |
/// | `Exclusive` | × | × | × | × |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// `FOR KEY SHARE`.
    KeyShared,
    /// `FOR SHARE`, escrow deltas.
    Shared,
    /// `FOR NO KEY UPDATE`, an `UPDATE` that leaves the row's keys as they are.
    KeyKept,
    /// `FOR UPDATE`, `DELETE`, any other `UPDATE`.
    Exclusive,
}

impl Mode {
    fn conflicts(self, other: Mode) -> bool {
        self as u8 + other as u8 >= Mode::Exclusive as u8
    }
}

/// What to do if the key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfBusy {
    /// Queue up, at most until this (`lock_timeout`; `Timestamp::MAX` for none).
    Wait { until: Timestamp },
    /// `NOWAIT` and `SKIP LOCKED`: answer [`Enqueued::Busy`] at once. Which of the two it is, is
    /// the caller's matter.
    Refuse,
}

/// A place in a queue. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// The answer to [`Queues::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The key is the owner's, now or already.
    Granted,
    /// An [`Ended`] with this place will follow.
    Wait(Place),
    /// Another transaction has it and the caller did not want to wait.
    Busy,
    /// Waiting would close a cycle and this owner is the youngest in it: 40P01.
    Deadlock,
    /// The transaction has been released already: nobody waits for the answer.
    Over,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Granted,
    /// Another owner's wait closed a cycle and this one is the youngest in it: 40P01.
    Deadlock,
    /// `lock_timeout`: 55P03.
    TimedOut,
    /// Its transaction is over, or asks for something else now.
    Over,
}

/// A wait that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub place: Place,
    pub owner: Owner,
    pub how: Ending,
}

/// The queues of a primary, one per key that a transaction holds.
#[derive(Debug, Default)]
pub struct Queues {
    lines: BTreeMap<Key, Line>,
    owners: BTreeMap<Owner, OwnerState>,
    places: BTreeMap<Place, Owner>,
    expiries: BTreeSet<(Timestamp, Place)>,
    places_issued: u64,
    held: usize,
    /// Released not long ago.
    over: BTreeSet<Owner>,
}

/// Invariant: two holders never conflict; every waiter conflicts with a holder or with a waiter
/// before it.
#[derive(Debug, Default)]
struct Line {
    holders: Vec<(Owner, Mode)>,
    waiting: VecDeque<Waiter>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    place: Place,
    owner: Owner,
    mode: Mode,
}

#[derive(Debug)]
struct OwnerState {
    holds: BTreeSet<Key>,
    waits: Option<(Key, Place, Timestamp)>,
}

impl Line {
    /// Whether nobody who holds the key stands in the way.
    fn free_for(&self, owner: Owner, mode: Mode) -> bool {
        self.holders.iter().all(|(o, m)| *o == owner || !m.conflicts(mode))
    }
    fn mode_of(&self, owner: Owner) -> Option<Mode> {
        self.holders.iter().find(|(o, _)| *o == owner).map(|(_, m)| *m)
    }
    fn hold(&mut self, owner: Owner, mode: Mode) -> bool {
        match self.holders.iter_mut().find(|(o, _)| *o == owner) {
            Some((_, held)) => {
                *held = mode.max(*held);
                false
            }
            None => {
                self.holders.push((owner, mode));
                true
            }
        }
    }
    /// The first waiter that neither a holder nor a waiter before it stands in the way of.
    fn next(&self) -> Option<usize> {
        let is_next = |(at, me): &(usize, &Waiter)| {
            self.free_for(me.owner, me.mode) && !self.waiting.iter().take(*at).any(|w| w.mode.conflicts(me.mode))
        };
        // No transaction passes one that wants the key alone.
        let last = self.waiting.iter().position(|w| w.mode == Mode::Exclusive).map_or(self.waiting.len(), |at| at + 1);
        self.waiting.iter().take(last).enumerate().find(is_next).map(|(at, _)| at)
    }
    /// Whom a waiter waits for: holders and earlier waiters that conflict with it.
    fn blockers(&self, place: Place) -> Vec<Owner> {
        let Some(at) = self.waiting.iter().position(|w| w.place == place) else { return Vec::new() };
        let me = self.waiting[at];
        let holders = self.holders.iter().filter(|(o, m)| *o != me.owner && m.conflicts(me.mode)).map(|(o, _)| *o);
        let earlier = self.waiting.iter().take(at).filter(|w| w.mode.conflicts(me.mode)).map(|w| w.owner);
        holders.chain(earlier).collect()
    }
}

impl Queues {
    /// Takes the key for the owner, or queues up for it. Of a cycle the youngest aborts. Asking
    /// again for what one has, or for less, is granted; turning an entry into a stronger one waits
    /// at the head. A wait that the owner had elsewhere is cancelled. The waits of others that a
    /// deadlock ended are added to `ended`.
    pub fn acquire(&mut self, owner: Owner, key: &Key, mode: Mode, if_busy: IfBusy, ended: &mut Vec<Ended>) -> Enqueued {
        if self.over.contains(&owner) {
            return Enqueued::Over;
        }
        self.abandon_wait(owner, ended);
        let line = self.lines.get(key);
        let held = line.and_then(|line| line.mode_of(owner));
        if held.is_some_and(|held| held >= mode) {
            return Enqueued::Granted;
        }
        let passes = |line: &Line| held.is_some() || !line.waiting.iter().any(|w| w.mode.conflicts(mode));
        let free = line.is_none_or(|line| line.free_for(owner, mode) && passes(line));
        if free {
            if self.held < HELD_MAX {
                self.state(owner);
                self.hold(owner, key, mode);
            }
            return Enqueued::Granted;
        }
        let IfBusy::Wait { until } = if_busy else { return Enqueued::Busy };
        let place = self.enqueue(owner, key, mode, until, held.is_some());
        while let Some(youngest) = self.youngest_in_cycle(owner) {
            if youngest == owner {
                self.stop_waiting(owner, ended);
                return Enqueued::Deadlock;
            }
            let (_, place, _) = self.owners[&youngest].waits.clone().expect("everybody in a cycle waits");
            self.stop_waiting(youngest, ended);
            ended.push(Ended { place, owner: youngest, how: Ending::Deadlock });
        }
        // The transaction in the way may have been the one that was aborted.
        if let Some(mine) = ended.iter().position(|e| e.place == place) {
            ended.remove(mine);
            return Enqueued::Granted;
        }
        Enqueued::Wait(place)
    }

    /// Gives up one key; the next in the queue gets it.
    pub fn release(&mut self, owner: Owner, key: &Key, ended: &mut Vec<Ended>) {
        if self.owners.get_mut(&owner).is_some_and(|state| state.holds.remove(key)) {
            self.unhold(owner, key, ended);
            self.forget_idle(owner);
        }
    }

    /// The transaction is over: gives up everything it holds and waits for.
    pub fn release_all(&mut self, owner: Owner, ended: &mut Vec<Ended>) {
        if self.over.len() >= OVER_MAX {
            self.over.clear();
        }
        self.over.insert(owner);
        self.give_up_all(owner, ended);
    }

    fn give_up_all(&mut self, owner: Owner, ended: &mut Vec<Ended>) {
        self.abandon_wait(owner, ended);
        let Some(state) = self.owners.remove(&owner) else { return };
        for key in state.holds {
            self.unhold(owner, &key, ended);
        }
    }

    /// The gateway is gone, and all its sessions.
    pub fn gateway_lost(&mut self, gateway: NodeId, ended: &mut Vec<Ended>) {
        let first = Owner { gateway, session: SessionId(0), began: Timestamp::MIN, since: Timestamp::MIN };
        let last = Owner { gateway, session: SessionId(u64::MAX), began: Timestamp::MAX, since: Timestamp::MAX };
        let gone: Vec<Owner> = self.owners.range(first..=last).map(|(owner, _)| *owner).collect();
        for owner in gone {
            self.give_up_all(owner, ended);
        }
        self.over.retain(|owner| owner.gateway != gateway);
        // A key that one of its sessions released may have gone to the next of them, for a moment.
        ended.iter_mut().filter(|e| e.owner.gateway == gateway).for_each(|e| e.how = Ending::Over);
    }

    /// Stops waiting: statement cancelled. What the owner holds stays.
    pub fn cancel(&mut self, place: Place, ended: &mut Vec<Ended>) {
        if let Some(owner) = self.places.get(&place).copied() {
            self.stop_waiting(owner, ended);
        }
    }

    /// Ends the waits whose time is up.
    pub fn expire(&mut self, now: Timestamp, ended: &mut Vec<Ended>) {
        while let Some((until, place)) = self.expiries.first().copied().filter(|(until, _)| *until <= now) {
            let owner = self.places[&place];
            assert!(until <= now, "the first to expire was looked at");
            self.stop_waiting(owner, ended);
            ended.push(Ended { place, owner, how: Ending::TimedOut });
        }
    }

    /// When [`Queues::expire`] has something to do.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(until, _)| *until)
    }

    /// Everybody that the owner waits for, directly or through others that wait here.
    pub fn ahead_of(&self, owner: Owner) -> Vec<Owner> {
        let mut seen = BTreeSet::from([owner]);
        let mut found = Vec::new();
        let mut todo = self.blockers(owner);
        while let Some(next) = todo.pop() {
            if seen.insert(next) {
                todo.extend(self.blockers(next));
                found.push(next);
            }
        }
        found
    }

    /// Whether a transaction is about to write the key, and has kept other writers away.
    pub fn is_held_exclusively(&self, key: &Key) -> bool {
        self.lines.get(key).is_some_and(|line| line.holders.iter().any(|(_, mode)| *mode >= Mode::KeyKept))
    }

    /// What is held, and when the transaction that holds it began.
    pub fn held(&self) -> impl Iterator<Item = (&Key, Timestamp)> {
        self.owners.iter().flat_map(|(owner, state)| state.holds.iter().map(|key| (key, owner.began)))
    }

    /// What holds between two calls.
    pub fn invariant_lines(&self) {
        let held: usize = self.lines.values().map(|line| line.holders.len()).sum();
        assert_eq!(held, self.held);
        assert_eq!(self.owners.values().filter(|s| s.waits.is_some()).count(), self.places.len());
        for (key, line) in &self.lines {
            for (i, (a, mode)) in line.holders.iter().enumerate() {
                assert!(line.holders[..i].iter().all(|(b, m)| a != b && !m.conflicts(*mode)), "two holders conflict");
                assert!(self.owners[a].holds.contains(key), "a holder knows what it holds");
            }
            assert_eq!(line.next(), None, "a waiter could go on");
            assert!(!line.holders.is_empty(), "whoever is first holds the key");
        }
    }

    /// How many entries are held, for metrics.
    pub fn held_len(&self) -> usize {
        self.held
    }
    /// How many owners wait, for metrics.
    pub fn waiting_len(&self) -> usize {
        self.places.len()
    }
}

impl Queues {
    fn state(&mut self, owner: Owner) -> &mut OwnerState {
        self.owners.entry(owner).or_insert_with(|| OwnerState { holds: BTreeSet::new(), waits: None })
    }

    fn hold(&mut self, owner: Owner, key: &Key, mode: Mode) {
        if self.lines.entry(key.clone()).or_default().hold(owner, mode) {
            self.held += 1;
            self.owners.get_mut(&owner).expect("made before it holds").holds.insert(key.clone());
        }
    }

    fn unhold(&mut self, owner: Owner, key: &Key, ended: &mut Vec<Ended>) {
        let line = self.lines.get_mut(key).expect("held, so it has a line");
        line.holders.retain(|(o, _)| *o != owner);
        self.held -= 1;
        self.advance(key, ended);
    }

    fn enqueue(&mut self, owner: Owner, key: &Key, mode: Mode, until: Timestamp, at_head: bool) -> Place {
        self.places_issued += 1;
        let place = Place(self.places_issued);
        self.state(owner).waits = Some((key.clone(), place, until));
        self.places.insert(place, owner);
        if until < Timestamp::MAX {
            self.expiries.insert((until, place));
        }
        let line = self.lines.entry(key.clone()).or_default();
        let waiter = Waiter { place, owner, mode };
        match at_head {
            true => line.waiting.push_front(waiter),
            false => line.waiting.push_back(waiter),
        }
        place
    }

    /// The same, and those who wait are told.
    fn abandon_wait(&mut self, owner: Owner, ended: &mut Vec<Ended>) {
        let waits = self.owners.get(&owner).and_then(|state| state.waits.as_ref());
        if let Some((_, place, _)) = waits {
            ended.push(Ended { place: *place, owner, how: Ending::Over });
            self.stop_waiting(owner, ended);
        }
    }

    fn stop_waiting(&mut self, owner: Owner, ended: &mut Vec<Ended>) {
        let Some((key, place, until)) = self.owners.get_mut(&owner).and_then(|state| state.waits.take()) else { return };
        self.places.remove(&place);
        self.expiries.remove(&(until, place));
        if let Some(line) = self.lines.get_mut(&key) {
            line.waiting.retain(|w| w.place != place);
        }
        self.advance(&key, ended);
        self.forget_idle(owner);
    }

    /// Grants the key to the waiters that nobody stands in the way of any more.
    fn advance(&mut self, key: &Key, ended: &mut Vec<Ended>) {
        while let Some(line) = self.lines.get_mut(key) {
            let Some(next) = line.next().and_then(|at| line.waiting.remove(at)) else {
                if line.holders.is_empty() && line.waiting.is_empty() {
                    self.lines.remove(key);
                }
                return;
            };
            let state = self.owners.get_mut(&next.owner).expect("a waiter has a state");
            let (_, place, until) = state.waits.take().expect("a waiter waits");
            self.places.remove(&place);
            self.expiries.remove(&(until, place));
            self.hold(next.owner, key, next.mode);
            ended.push(Ended { place, owner: next.owner, how: Ending::Granted });
        }
    }

    fn forget_idle(&mut self, owner: Owner) {
        if self.owners.get(&owner).is_some_and(|s| s.holds.is_empty() && s.waits.is_none()) {
            self.owners.remove(&owner);
        }
    }

    fn blockers(&self, owner: Owner) -> Vec<Owner> {
        match self.owners.get(&owner).and_then(|state| state.waits.as_ref()) {
            Some((key, place, _)) => self.lines.get(key).map_or_else(Vec::new, |line| line.blockers(*place)),
            None => Vec::new(),
        }
    }

    /// The youngest owner of a cycle through `start`, if there is one. There was none before
    /// `start` began to wait.
    fn youngest_in_cycle(&self, start: Owner) -> Option<Owner> {
        let mut path: Vec<(Owner, Vec<Owner>)> = vec![(start, self.blockers(start))];
        let mut seen = BTreeSet::from([start]);
        while let Some((_, todo)) = path.last_mut() {
            match todo.pop() {
                Some(next) if next == start => {
                    return path.iter().map(|(owner, _)| *owner).max_by_key(Owner::age);
                }
                Some(next) => {
                    if seen.insert(next) {
                        path.push((next, self.blockers(next)));
                    }
                }
                None => {
                    path.pop();
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owner(n: u64) -> Owner {
        Owner { gateway: NodeId(1 + n as u32 % 2), session: SessionId(n), began: Timestamp(n), since: Timestamp(n) }
    }
    /// One of a session's transactions.
    fn of(n: u64, began: u64) -> Owner {
        Owner { began: Timestamp(began), since: Timestamp(began), ..owner(n) }
    }
    fn key(k: u8) -> Key {
        Key::new(&[k])
    }
    const FOREVER: IfBusy = IfBusy::Wait { until: Timestamp::MAX };

    struct Table {
        queues: Queues,
        ended: Vec<Ended>,
    }
    impl Table {
        fn new() -> Table {
            Table { queues: Queues::default(), ended: Vec::new() }
        }
        fn take(&mut self, n: u64, k: u8, mode: Mode) -> Enqueued {
            self.queues.acquire(owner(n), &key(k), mode, FOREVER, &mut self.ended)
        }
        fn ended(&mut self) -> Vec<(u64, Ending)> {
            std::mem::take(&mut self.ended).into_iter().map(|e| (e.owner.session.0, e.how)).collect()
        }
    }

    #[test]
    fn who_is_ahead_is_known_through_others() {
        let mut t = Table::new();
        t.take(1, 7, Mode::Exclusive);
        t.take(2, 8, Mode::Exclusive);
        t.take(2, 7, Mode::Exclusive);
        t.take(3, 7, Mode::Exclusive);
        t.take(4, 8, Mode::Exclusive);
        let ahead = |n| {
            let mut ahead: Vec<u64> = t.queues.ahead_of(owner(n)).iter().map(|o| o.session.0).collect();
            ahead.sort_unstable();
            ahead
        };
        assert_eq!((ahead(1), ahead(2), ahead(3), ahead(4)), (vec![], vec![1], vec![1, 2], vec![1, 2]));
        assert_eq!(ahead(9), vec![]);
    }

    #[test]
    fn a_hot_row_is_handed_on_first_in_first_out() {
        let mut t = Table::new();
        assert_eq!(t.take(1, 7, Mode::Exclusive), Enqueued::Granted);
        assert_eq!(t.take(2, 7, Mode::Exclusive), Enqueued::Wait(Place(1)));
        assert_eq!(t.take(3, 7, Mode::Exclusive), Enqueued::Wait(Place(2)));
        assert_eq!(t.take(1, 7, Mode::Exclusive), Enqueued::Granted, "it has it already");
        t.queues.release_all(owner(1), &mut t.ended);
        assert_eq!(t.ended(), [(2, Ending::Granted)]);
        t.queues.release_all(owner(2), &mut t.ended);
        assert_eq!(t.ended(), [(3, Ending::Granted)]);
    }

    #[test]
    fn messages_of_a_session_may_overtake_each_other() {
        let mut t = Table::new();
        let (first, second) = (of(1, 10), of(1, 20));
        let take = |t: &mut Table, owner| t.queues.acquire(owner, &key(7), Mode::Exclusive, FOREVER, &mut t.ended);
        assert_eq!(take(&mut t, first), Enqueued::Granted);
        assert_eq!(take(&mut t, second), Enqueued::Wait(Place(1)), "the first one's release is on its way");
        t.queues.release_all(first, &mut t.ended);
        assert_eq!(t.ended(), [(1, Ending::Granted)], "and ends the first one only");
        assert_eq!(take(&mut t, first), Enqueued::Over, "its last request was slower than its release");
        assert_eq!(take(&mut t, of(2, 30)), Enqueued::Wait(Place(2)));
        t.queues.release_all(of(2, 30), &mut t.ended);
        assert_eq!(t.ended(), [(2, Ending::Over)], "whoever waits is told");
    }

    #[test]
    fn shared_entries_do_not_overtake_an_exclusive_one() {
        let mut t = Table::new();
        assert_eq!(t.take(1, 7, Mode::Shared), Enqueued::Granted);
        assert_eq!(t.take(2, 7, Mode::Shared), Enqueued::Granted);
        assert_eq!(t.take(3, 7, Mode::Exclusive), Enqueued::Wait(Place(1)));
        assert_eq!(t.take(4, 7, Mode::Shared), Enqueued::Wait(Place(2)));
        t.queues.release(owner(1), &key(7), &mut t.ended);
        assert_eq!(t.ended(), []);
        t.queues.release(owner(2), &key(7), &mut t.ended);
        assert_eq!(t.ended(), [(3, Ending::Granted)]);
    }

    #[test]
    fn modes_conflict_as_in_postgresql() {
        let modes = [Mode::KeyShared, Mode::Shared, Mode::KeyKept, Mode::Exclusive];
        let conflicts = [[false, false, false, true], [false, false, true, true], [false, true, true, true], [true; 4]];
        for (i, held) in modes.into_iter().enumerate() {
            for (j, wanted) in modes.into_iter().enumerate() {
                let mut t = Table::new();
                t.take(1, 7, held);
                let expected = if conflicts[i][j] { Enqueued::Wait(Place(1)) } else { Enqueued::Granted };
                assert_eq!(t.take(2, 7, wanted), expected, "{held:?} is held, {wanted:?} wanted");
                assert_eq!(t.take(1, 7, wanted.min(held)), Enqueued::Granted, "it has as much already");
            }
        }
    }

    #[test]
    fn who_only_wants_the_key_kept_passes_those_who_keep_it() {
        let mut t = Table::new();
        t.take(1, 7, Mode::KeyKept);
        assert_eq!(t.take(2, 7, Mode::KeyKept), Enqueued::Wait(Place(1)));
        assert_eq!(t.take(3, 7, Mode::KeyShared), Enqueued::Granted);
        assert_eq!(t.take(4, 7, Mode::Exclusive), Enqueued::Wait(Place(2)));
        assert_eq!(t.take(5, 7, Mode::KeyShared), Enqueued::Wait(Place(3)), "not those who would delete it");
        t.queues.cancel(Place(2), &mut t.ended);
        assert_eq!(t.ended(), [(5, Ending::Granted)]);
        t.queues.release_all(owner(1), &mut t.ended);
        assert_eq!(t.ended(), [(2, Ending::Granted)]);
    }

    #[test]
    fn the_youngest_of_a_cycle_aborts_whoever_closes_it() {
        for young_closes in [true, false] {
            let mut t = Table::new();
            t.take(1, 1, Mode::Exclusive);
            t.take(2, 2, Mode::Exclusive);
            if young_closes {
                assert_eq!(t.take(1, 2, Mode::Exclusive), Enqueued::Wait(Place(1)));
                assert_eq!(t.take(2, 1, Mode::Exclusive), Enqueued::Deadlock);
                assert_eq!(t.ended(), []);
            } else {
                assert_eq!(t.take(2, 1, Mode::Exclusive), Enqueued::Wait(Place(1)));
                assert_eq!(t.take(1, 2, Mode::Exclusive), Enqueued::Wait(Place(2)));
                assert_eq!(t.ended(), [(2, Ending::Deadlock)]);
            }
            t.queues.release_all(owner(2), &mut t.ended);
            assert_eq!(t.ended(), [(1, Ending::Granted)]);
        }
    }

    #[test]
    fn two_readers_that_both_want_to_write_are_a_deadlock() {
        let mut t = Table::new();
        t.take(1, 1, Mode::Shared);
        t.take(2, 1, Mode::Shared);
        assert_eq!(t.take(1, 1, Mode::Exclusive), Enqueued::Wait(Place(1)));
        assert_eq!(t.take(2, 1, Mode::Exclusive), Enqueued::Deadlock);
        t.queues.release_all(owner(2), &mut t.ended);
        assert_eq!(t.ended(), [(1, Ending::Granted)]);
    }

    #[test]
    fn waits_end_by_time_and_by_the_loss_of_a_gateway() {
        let mut t = Table::new();
        t.take(1, 7, Mode::Exclusive);
        let until = Timestamp(50);
        let wait = IfBusy::Wait { until };
        let place = t.queues.acquire(owner(2), &key(7), Mode::Exclusive, wait, &mut t.ended);
        assert_eq!(place, Enqueued::Wait(Place(1)));
        t.take(4, 7, Mode::Shared);
        assert_eq!(t.queues.acquire(owner(6), &key(7), Mode::Shared, IfBusy::Refuse, &mut t.ended), Enqueued::Busy);
        assert_eq!(t.queues.next_expiry(), Some(until));
        t.queues.expire(Timestamp(49), &mut t.ended);
        assert_eq!(t.ended(), []);
        t.queues.expire(until, &mut t.ended);
        assert_eq!(t.ended(), [(2, Ending::TimedOut)]);
        t.queues.gateway_lost(owner(1).gateway, &mut t.ended);
        assert_eq!(t.ended(), [(4, Ending::Granted)]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire { who: u64, began: u64, key: u8, mode: Mode, until: Option<u64> },
        Release { who: u64, began: u64, key: u8 },
        ReleaseAll { who: u64, began: u64 },
        Expire { now: u64 },
        Cancel { who: u64, began: u64 },
    }
    fn step() -> impl Strategy<Value = Step> {
        let who = 0..6u64;
        let mode = prop::sample::select(vec![Mode::KeyShared, Mode::Shared, Mode::KeyKept, Mode::Exclusive]);
        prop_oneof![
            6 => (who.clone(), 0..3u64, 0..4u8, mode, prop::option::of(0..99u64))
                .prop_map(|(who, began, key, mode, until)| Step::Acquire { who, began, key, mode, until }),
            1 => (who.clone(), 0..3u64, 0..4u8).prop_map(|(who, began, key)| Step::Release { who, began, key }),
            1 => (who.clone(), 0..3u64).prop_map(|(who, began)| Step::ReleaseAll { who, began }),
            1 => (0..99u64).prop_map(|now| Step::Expire { now }),
            1 => (who, 0..3u64).prop_map(|(who, began)| Step::Cancel { who, began }),
        ]
    }

    proptest! {
        #[test]
        fn nothing_is_stuck_and_nobody_holds_against_another(steps in prop::collection::vec(step(), 1..80)) {
            let mut q = Queues::default();
            let mut out: BTreeSet<Place> = BTreeSet::new();
            for step in steps {
                let mut ended = Vec::new();
                match step {
                    Step::Acquire { who, began, key: k, mode, until } => {
                        let if_busy = IfBusy::Wait { until: until.map_or(Timestamp::MAX, Timestamp) };
                        let answer = q.acquire(of(who, began), &key(k), mode, if_busy, &mut ended);
                        if let Enqueued::Wait(place) = answer { out.insert(place); }
                    }
                    Step::Release { who, began, key: k } => q.release(of(who, began), &key(k), &mut ended),
                    Step::ReleaseAll { who, began } => q.release_all(of(who, began), &mut ended),
                    Step::Expire { now } => q.expire(Timestamp(now), &mut ended),
                    Step::Cancel { who, began } => {
                        let before = q.owners.get(&of(who, began)).and_then(|s| s.waits.as_ref()).map(|w| w.1);
                        if let Some(place) = before { q.cancel(place, &mut ended); out.remove(&place); }
                    }
                }
                for e in ended { prop_assert!(out.remove(&e.place), "a wait ended twice, or never began"); }
                prop_assert!(out.iter().eq(q.places.keys()), "a wait ended without an answer");
                q.invariant_lines();
                for owner in q.owners.keys() { prop_assert_eq!(q.youngest_in_cycle(*owner), None, "a cycle stays"); }
            }
            for owner in q.owners.keys().copied().collect::<Vec<_>>() { q.release_all(owner, &mut Vec::new()); }
            prop_assert!(q.lines.is_empty() && q.owners.is_empty() && q.expiries.is_empty());
        }
    }
}
