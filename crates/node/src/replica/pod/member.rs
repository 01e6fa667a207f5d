//! Which slots a host of a pod holds, and how they change hands.
//!
//! ```text
//!            the word says: given          wanted by another            nothing of it in flight
//!   Foreign ───────────────────▶ Mine ───────────────────▶ Leaving ───────────────────────────▶ Foreign
//!            to this host, and what        HOLD_MIN has passed,         the word says: given to
//!            came before is applied        no step waits for it         the other
//! ```
//!
//! Who gives a slot away stores the new owner as [`Hold::Leaving`]; the new owner makes that
//! [`Hold::Owned`]. If it is gone by then, L does (both by comparison, so one of them).
//!
//! The word in shared memory says who owns a slot. Only its owner gives it away, so what is here is
//! true for as long as the host lives, and a host looks at its own table alone when it certifies.
//!
//! A row lock keeps its slot: until the transaction ends that held it, or waited for it, when the
//! other host asked, and for at most [`LOCKED_MAX`], or [`LOCKED_BRIEFLY_MAX`]. Locks are advice,
//! so nothing depends on it but how many transactions fail.
//!
//! A step that needs several slots keeps the first ones, in the order of their numbers, until it
//! has all: a member that waits, waits for a slot above all that it keeps, so members never wait in
//! a circle.

use crate::replica::pod::slots::{SlotSet, of_key};
use meridian_base::Timestamp;
use meridian_pod::{Damaged, Hold, SLOTS, Segment, SharedMemory, Slot};
use meridian_region::{Engine, GroupState, Queues};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A slot stays for at least this long, so that hosts that want the same do some work between two
/// changes.
const HOLD_MIN: Duration = Duration::from_millis(5);
/// A step that waits for others keeps what it has for at most this long.
const KEEP_MAX: Duration = Duration::from_millis(500);
/// A slot with row locks that is wanted elsewhere stays for at most this long. Who wants it waits
/// longer than that.
const LOCKED_MAX: Duration = Duration::from_secs(1);
/// The same while steps here wait for slots of others: perhaps those are kept by locks of
/// transactions that wait for this one.
const LOCKED_BRIEFLY_MAX: Duration = Duration::from_millis(10);
/// Of more locks than this nobody asks where they are.
const LOCKS_SEEN_MAX: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Foreign,
    Mine {
        since: Instant,
        /// When it was seen that another host wants it, by this process and by the pod's clock.
        wanted: Option<(Instant, Timestamp)>,
    },
    /// What was certified at or below this is not applied yet.
    Leaving {
        through: Timestamp,
    },
}

/// A step that waits.
#[derive(Debug)]
struct Waiting {
    needs: SlotSet,
    since: Instant,
}

/// See the module's essay.
pub(crate) struct Member {
    pub segment: Segment<SharedMemory>,
    /// This host's number.
    pub host: u8,
    places: Vec<Place>,
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// Slots given away so far.
    pub given: u64,
}

impl Member {
    pub fn new(segment: Segment<SharedMemory>, host: u8) -> Member {
        let places = vec![Place::Foreign; SLOTS.into()];
        Member { segment, host, places, waiting: BTreeMap::new(), next: 0, given: 0 }
    }

    fn begin(&mut self, slot: Slot) {
        *self.place(slot) = Place::Mine { since: Instant::now(), wanted: None };
    }

    fn place(&mut self, slot: Slot) -> &mut Place {
        &mut self.places[usize::from(slot.0)]
    }

    /// Whether the memory is gone. What was read of it before may be made up.
    pub fn is_lost(&self) -> bool {
        self.segment.memory().is_lost()
    }

    pub fn has(&self, slot: Slot) -> bool {
        matches!(self.places[usize::from(slot.0)], Place::Mine { .. })
    }

    /// Whether this host may certify and read what lies in these slots.
    pub fn has_all(&self, slots: &SlotSet) -> bool {
        slots.iter().all(|slot| self.has(slot))
    }

    /// How many slots it has.
    pub fn len(&self) -> usize {
        Slot::all().filter(|slot| self.has(*slot)).count()
    }

    /// A step waits for slots. Gives its number.
    pub fn wait(&mut self, needs: SlotSet) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, Waiting { needs, since: Instant::now() });
        self.next
    }

    pub fn end_wait(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// The slots that steps keep.
    fn kept(&self) -> SlotSet {
        let mut kept = SlotSet::NONE;
        for waiting in self.waiting.values().filter(|waiting| waiting.since.elapsed() < KEEP_MAX) {
            waiting.needs.iter().take_while(|slot| self.has(*slot)).for_each(|slot| kept.insert(slot));
        }
        kept
    }

    /// L takes slots that are nobody's: all of a new segment, and those of hosts that are gone.
    pub fn take(&mut self, of: impl Fn(u8, Hold) -> bool) -> Result<usize, Damaged> {
        let mut taken = 0;
        for slot in Slot::all().filter(|slot| !self.has(*slot)).collect::<Vec<_>>() {
            let holder = self.segment.holder(slot)?;
            if of(holder.host, holder.hold) && self.segment.change_holder(slot, holder, Hold::Owned, self.host) {
                self.begin(slot);
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Looks at the words of all slots: takes what has come, asks for what is missing, gives away
    /// what others want. `now` is the pod's time. `is_reserved`: a transaction over several groups
    /// holds something there.
    pub fn exchange(
        &mut self,
        state: &GroupState,
        engine: &mut Engine,
        (queues, now): (&Queues, Timestamp),
        is_reserved: impl Fn(Slot) -> bool,
    ) -> Result<(), Damaged> {
        let mut locks = None;
        let locked_max = if self.waiting.is_empty() { LOCKED_MAX } else { LOCKED_BRIEFLY_MAX };
        let kept = self.kept();
        let mut wanted = SlotSet::NONE;
        self.waiting.values().for_each(|waiting| waiting.needs.iter().for_each(|slot| wanted.insert(slot)));
        let (me, applied) = (self.host, state.applied().index);
        let mut has_gained = false;
        for slot in Slot::all() {
            let holder = self.segment.holder(slot)?;
            match *self.place(slot) {
                Place::Foreign if holder.host == me && holder.hold == Hold::Leaving => {
                    // The word first: what its last owner had applied was stored before that.
                    if self.segment.given() <= applied && self.segment.change_holder(slot, holder, Hold::Owned, me) {
                        self.begin(slot);
                        has_gained = true;
                    }
                }
                Place::Foreign if wanted.contains(slot) && holder.hold == Hold::Owned && holder.wanted.is_none() => {
                    self.segment.want_slot(slot, holder, me);
                }
                Place::Foreign => {}
                Place::Mine { since, wanted } => {
                    if holder.wanted.is_none_or(|host| host == me) {
                        continue;
                    }
                    let (noticed, at) = wanted.unwrap_or((Instant::now(), now));
                    *self.place(slot) = Place::Mine { since, wanted: Some((noticed, at)) };
                    let is_locked = noticed.elapsed() < locked_max
                        && locks.get_or_insert_with(|| locks_of(queues)).get(&slot).is_some_and(|began| *began <= at);
                    if since.elapsed() >= HOLD_MIN && !is_locked && !kept.contains(slot) && !is_reserved(slot) {
                        *self.place(slot) = Place::Leaving { through: engine.last_in_flight().unwrap_or_default() };
                    }
                }
                Place::Leaving { through } => {
                    let Some(to) = holder.wanted else {
                        self.begin(slot);
                        continue;
                    };
                    if engine.is_applied_through(through) && !is_reserved(slot) {
                        self.segment.raise_given(applied);
                        if self.segment.change_holder(slot, holder, Hold::Leaving, to) {
                            *self.place(slot) = Place::Foreign;
                            self.given += 1;
                        }
                    }
                }
            }
        }
        if has_gained {
            engine.gained(state);
        }
        Ok(())
    }
}

/// Where row locks are, and when the first transaction began that has one there.
fn locks_of(queues: &Queues) -> BTreeMap<Slot, Timestamp> {
    let mut first = BTreeMap::new();
    if queues.held_len() > LOCKS_SEEN_MAX {
        return first;
    }
    for (key, began) in queues.held() {
        if let Some(slot) = of_key(key) {
            let earliest: &mut Timestamp = first.entry(slot).or_insert(began);
            *earliest = began.min(*earliest);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::pod::{SIZES, clock_of};
    use meridian_base::record::Payload;
    use meridian_base::{Clock, GroupId, Key, LogPosition, NodeId, SessionId};
    use meridian_pod::{Door, FileDoor, Layout, Purpose};
    use meridian_region::{IfBusy, Mode, Owner, Rules};
    use std::sync::Arc;

    const SLOT: Slot = Slot(5);

    /// A host as far as slots need one.
    struct Host {
        member: Member,
        state: GroupState,
        engine: Engine,
        queues: Queues,
        clock: Arc<Clock>,
    }

    impl Host {
        fn new(segment: &Segment<SharedMemory>, number: u8) -> Host {
            let (state, clock) = (GroupState::default(), clock_of(segment, Duration::ZERO));
            let mut engine = Engine::start(NodeId(number.into()), GroupId(7), &state, Rules::ALL);
            engine.lead_pod(&state, &clock);
            Host { member: Member::new(segment.clone(), number), state, engine, queues: Queues::default(), clock }
        }

        fn exchange(&mut self) {
            let Host { member, state, engine, queues, clock } = self;
            member.exchange(state, engine, (queues, clock.now(0)), |_| false).expect("memory is whole");
        }

        fn apply(&mut self, index: u64) {
            assert!(self.state.apply(LogPosition { index, term: 1 }, &Payload::default()));
        }
    }

    /// The first of two hosts has all slots.
    fn hosts(folder: &tempfile::TempDir) -> [Host; 2] {
        let layout = Layout::new(SIZES).expect("sizes that fit");
        let memory = FileDoor::new(folder.path().join("pod")).create(".g7.1", layout.len()).expect("room");
        let purpose = Purpose { generation: 1, group: GroupId(7), term: 1 };
        let segment = Segment::create(memory, SIZES, purpose).expect("a new segment");
        let mut hosts = [Host::new(&segment, 0), Host::new(&segment, 1)];
        hosts[0].member.take(|_, hold| hold == Hold::Free).expect("memory is whole");
        assert_eq!(hosts[0].member.len(), SLOTS.into());
        hosts
    }

    fn only(slot: Slot) -> SlotSet {
        let mut slots = SlotSet::NONE;
        slots.insert(slot);
        slots
    }

    /// A key in the slot.
    fn key_in(slot: Slot) -> Key {
        let keys = (0_u32..).map(|n| Key::new(&[[0, 0, 0, 9], n.to_be_bytes()].concat()));
        keys.into_iter().find(|key| of_key(key) == Some(slot)).expect("every slot has keys")
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_goes_to_who_asks_and_has_applied_as_much() {
        let folder = tempfile::tempdir().expect("a folder");
        let [mut first, mut second] = hosts(&folder);
        first.apply(3);
        second.member.wait(only(SLOT));
        second.exchange();
        first.exchange();
        assert!(first.member.has(SLOT), "a slot stays for a while");
        tokio::time::advance(HOLD_MIN).await;
        first.exchange();
        first.exchange();
        assert_eq!((first.member.has(SLOT), first.member.len()), (false, usize::from(SLOTS) - 1));
        second.exchange();
        assert!(!second.member.has(SLOT), "what its last owner had applied is not applied here");
        second.apply(3);
        second.exchange();
        assert!(second.member.has(SLOT) && !first.member.has(SLOT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_lock_keeps_its_slot_until_the_transaction_ends_or_for_a_second() {
        let folder = tempfile::tempdir().expect("a folder");
        let [mut first, mut second] = hosts(&folder);
        let began = first.clock.tick(1);
        let owner = Owner { gateway: NodeId(1), session: SessionId(1), began, since: began };
        let [locked, free] = [SLOT, Slot(6)];
        for slot in [locked, free] {
            second.member.wait(only(slot));
        }
        let mut ended = Vec::new();
        first.queues.acquire(owner, &key_in(locked), Mode::Exclusive, IfBusy::Refuse, &mut ended);
        second.exchange();
        let rounds = |host: &mut Host| (0..2).for_each(|_| host.exchange());
        tokio::time::advance(HOLD_MIN).await;
        rounds(&mut first);
        assert!(first.member.has(locked) && !first.member.has(free));
        first.queues.release_all(owner, &mut ended);
        // Who comes later than the other host's wish does not keep it.
        let began = first.clock.tick(1);
        let late = Owner { began, since: began, ..owner };
        first.queues.acquire(late, &key_in(locked), Mode::Exclusive, IfBusy::Refuse, &mut ended);
        rounds(&mut first);
        assert!(!first.member.has(locked));

        second.exchange();
        assert!(second.member.has(locked));
        first.member.wait(only(locked));
        let began = second.clock.tick(1);
        second.queues.acquire(Owner { began, ..owner }, &key_in(locked), Mode::KeyKept, IfBusy::Refuse, &mut ended);
        first.exchange();
        tokio::time::advance(HOLD_MIN).await;
        rounds(&mut second);
        assert!(second.member.has(locked));
        let number = second.member.wait(only(Slot(7)));
        rounds(&mut second);
        assert!(second.member.has(locked));
        tokio::time::advance(LOCKED_BRIEFLY_MAX).await;
        second.member.end_wait(number);
        rounds(&mut second);
        assert!(second.member.has(locked), "no step waits here");
        tokio::time::advance(LOCKED_MAX).await;
        rounds(&mut second);
        assert!(!second.member.has(locked), "a lock is advice, and may be held for long");
    }
}
