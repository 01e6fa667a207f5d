//! A transaction's commit over shared tuples, step by step (`docs/design/pod.md`).
//!
//! ```text
//!  step   lock the tuples it writes: list, look, take, pending body
//!  step   all are locked                                        → Certify
//!         caller: under its host's lock, look where the own keys are (P6), certify, draw p
//!  step   publish p, validate the shared reads                  → Valid
//!         caller: write the record behind the ring's tail
//!  step   say in the descriptor where the record lies           → Push
//!         caller: store the tail: decided (P1)
//!         caller: the feed has it, it is applied
//!  step   newest, body, release                                 → Finished: acknowledge
//! ```
//!
//! * Locks come before the draw (P7), validation after it (P8). Then of two transactions, one of
//!   which reads what the other writes, one sees the other's lock or is above its timestamp.
//! * A lock that is taken makes the transaction release all of its own, and wait for the other's
//!   descriptor ([`Progress::Busy`]): nobody holds a lock while it waits for one. Blind writers
//!   wait, too (P11): a tuple has one pending body.

use crate::descriptor::{PLACES_MAX, Place};
use crate::error::Damaged;
use crate::index::{Walk, Walked};
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{
    BODY, Body, BodyWord, COLUMNS, Claim, Kind, LOCK, LOW, Lock, NEWEST, Node, OLDER, OLDER_COLUMNS, PENDING, Versions,
};
use bytes::Bytes;
use meridian_base::{ColumnMask, Timestamp};

/// A shared tuple that a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedWrite {
    pub node: Node,
    /// The new version's, flushed.
    pub body: Body,
    pub columns: ColumnMask,
    /// The node is not in the index yet: it comes there locked, before the draw (P17).
    pub is_new: bool,
}

/// A shared tuple that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedRead {
    pub node: Node,
    /// What was read was the newest version at or below this.
    pub until: Timestamp,
    pub columns: ColumnMask,
}

/// A shared range that it has read: all of its tuples go through the index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedRange {
    pub begin: Bytes,
    /// The first key behind the range.
    pub end: Bytes,
    /// As in [`SharedRead::until`].
    pub until: Timestamp,
    pub columns: ColumnMask,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The next step.
    More,
    /// A lock is taken; all own ones are released. When that claim has ended
    /// ([`Segment::has_ended`]) the next step begins again.
    Busy(Claim),
    /// A tuple has left shared memory; all locks are released and the commit is over. The caller
    /// looks where the key is now, and begins another commit.
    Gone(Node),
    /// Write the node of this write with this claim's lock and link it, then call
    /// [`Commit::linked`].
    Link(usize, Claim),
    /// Certify and draw, then [`Commit::drawn`]; or [`Commit::also`], or [`Commit::give_up`].
    Certify,
    /// Write the record into the ring, then [`Commit::written`]; or [`Commit::give_up`].
    Valid,
    /// Store the ring's tail, then [`Commit::pushed`].
    Push,
    /// A shared tuple has changed, or is being changed; all locks are released.
    Conflict(Node),
    /// Released after [`Commit::give_up`].
    GivenUp,
    /// In the ring: waits for [`Commit::durable`].
    InFlight,
    /// Visible to everyone and released: acknowledge.
    Finished,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    Begin,
    List(usize),
    Link(usize),
    Look(usize),
    Take(usize, Lock),
    Pend(usize),
    Certify,
    Publish,
    Check(usize, Check),
    /// Walks along a range again; the check of the tuple that it has met.
    Range(usize, Walk, Option<(SharedRead, Check)>),
    Valid,
    Say(u64),
    Push,
    InFlight,
    Finish(usize, Finish),
    Release(usize, Ending),
    Unlock(usize, Ending),
    End(Ending),
    Wake(Ending),
    Over,
}

/// Why locks are released without a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ending {
    Busy(Claim),
    Gone(Node),
    Conflict(Node),
    GivenUp,
    Finished,
}

/// A commit under way. See the module's essay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commit {
    rules: Rules,
    descriptors: Vec<u16>,
    claim: Claim,
    writes: Vec<SharedWrite>,
    reads: Vec<SharedRead>,
    ranges: Vec<SharedRange>,
    /// The first so many of `writes` are locked.
    held: usize,
    p: Timestamp,
    /// Whether the reads were validated already (with a planted bug only).
    is_validated: bool,
    /// The bodies that its own have replaced.
    replaced: Vec<Body>,
    at: At,
}

impl Commit {
    /// Of a transaction at `host`. The descriptors are free ones of that host: one for every
    /// [`PLACES_MAX`] writes that it may come to, one at least.
    ///
    /// # Panics
    ///
    /// If there are too few descriptors.
    pub fn new(host: u8, descriptors: Vec<u16>, mut writes: Vec<SharedWrite>, reads: Vec<SharedRead>, rules: Rules) -> Commit {
        assert!(!descriptors.is_empty() && writes.len() <= descriptors.len() * PLACES_MAX, "a place for each write");
        writes.sort_by_key(|write| (write.is_new, write.node));
        let claim = Claim { host, descriptor: descriptors[0], incarnation: 0 };
        let at = At::Begin;
        Commit {
            rules,
            descriptors,
            claim,
            writes,
            reads,
            ranges: Vec::new(),
            held: 0,
            p: Timestamp::MIN,
            is_validated: false,
            replaced: Vec::new(),
            at,
        }
    }

    /// The same, with ranges that it has read.
    pub fn with_ranges(self, ranges: Vec<SharedRange>) -> Commit {
        Commit { ranges, ..self }
    }

    /// What its locks say.
    pub fn claim(&self) -> Claim {
        self.claim
    }
    /// Its timestamp, if it has drawn one.
    pub fn p(&self) -> Option<Timestamp> {
        Some(self.p).filter(|p| *p != Timestamp::MIN)
    }
    /// The shared tuples it writes.
    pub fn writes(&self) -> &[SharedWrite] {
        &self.writes
    }

    /// Its descriptors: free again when it is over.
    pub fn descriptors(&self) -> &[u16] {
        &self.descriptors
    }
    /// The bodies that its own have replaced: to be retired when it has finished.
    pub fn replaced(&self) -> &[Body] {
        &self.replaced
    }

    fn place<M: Memory>(&self, segment: &Segment<M>, index: usize) -> Place {
        Place::new(segment, self.claim.host, self.descriptors[index / PLACES_MAX])
    }
    fn first<M: Memory>(&self, segment: &Segment<M>) -> Place {
        Place::new(segment, self.claim.host, self.descriptors[0])
    }
    fn lock(&self, kind: Kind) -> Lock {
        Lock { kind, claim: self.claim }
    }

    /// An own key has become shared: it is locked like the others before the draw (P6).
    ///
    /// # Panics
    ///
    /// If [`Progress::Certify`] is not what it waits for, or without a place for the tuple.
    pub fn also(&mut self, write: SharedWrite) {
        assert_eq!(self.at, At::Certify, "more locks come before the draw");
        assert!(self.writes.len() < self.descriptors.len() * PLACES_MAX, "a place for each write");
        self.writes.push(write);
        self.at = At::List(self.held);
    }

    /// An own key that it has read has become shared: it is validated like the others (P6).
    ///
    /// # Panics
    ///
    /// If [`Progress::Certify`] is not what it waits for.
    pub fn also_read(&mut self, read: SharedRead) {
        assert_eq!(self.at, At::Certify, "reads are validated after the draw");
        self.reads.push(read);
    }

    /// The node of a new tuple is linked; or another one with its key was there, which takes its
    /// place.
    ///
    /// # Panics
    ///
    /// If [`Progress::Link`] is not what it waits for.
    pub fn linked(&mut self, there: Option<Node>) {
        let At::Link(i) = self.at else { panic!("no node is to be linked at {:?}", self.at) };
        match there {
            None => {
                self.held = i + 1;
                self.at = At::List(i + 1);
            }
            Some(node) => {
                self.writes[i] = SharedWrite { node, is_new: false, ..self.writes[i] };
                self.at = At::List(i);
            }
        }
    }

    /// Its own part is certified and its timestamp drawn.
    ///
    /// # Panics
    ///
    /// If [`Progress::Certify`] is not what it waits for.
    pub fn drawn(&mut self, p: Timestamp) {
        assert_eq!(self.at, At::Certify, "it is certified once");
        (self.p, self.at) = (p, At::Publish);
    }

    /// Its record lies here, behind the ring's tail.
    ///
    /// # Panics
    ///
    /// If [`Progress::Valid`] is not what it waits for.
    pub fn written(&mut self, place: crate::ring::Place) {
        assert_eq!(self.at, At::Valid, "a record is written after validation");
        self.at = At::Say(place.begin);
    }

    /// The ring's tail is stored.
    ///
    /// # Panics
    ///
    /// If [`Progress::Push`] is not what it waits for.
    pub fn pushed(&mut self) {
        assert_eq!(self.at, At::Push, "the descriptor says where the record lies before the tail is stored");
        self.at = At::InFlight;
    }

    /// It is in the log, and applied at its host.
    ///
    /// # Panics
    ///
    /// If it is not in flight.
    pub fn durable(&mut self) {
        assert_eq!(self.at, At::InFlight, "only what was pushed becomes durable");
        self.at = At::Finish(0, Finish::new(self.p));
    }

    /// It will not commit: the next steps release what it holds.
    ///
    /// # Panics
    ///
    /// If its record may be decided already.
    pub fn give_up(&mut self) {
        assert!(matches!(self.at, At::Certify | At::Valid), "what may be in the ring is not given up");
        self.at = At::Release(0, Ending::GivenUp);
    }

    /// The next step: at most one operation on shared memory, or work on its own block.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Progress, Damaged> {
        match self.at.clone() {
            At::Begin => self.begin(segment),
            At::List(i) if i == self.writes.len() || self.links_late(i) => self.at = self.after_locks(),
            At::List(i) => {
                self.place(segment, i).list(segment, i % PLACES_MAX, self.writes[i].node);
                self.at = if self.writes[i].is_new { At::Link(i) } else { At::Look(i) };
            }
            At::Link(i) => return Ok(Progress::Link(i, self.claim)),
            At::Look(i) => self.look(segment, i)?,
            At::Take(i, seen) => {
                let lock = self.lock(Kind::Transaction);
                let place = self.writes[i].node.0 + LOCK;
                self.at = match segment.memory().compare_exchange(place, seen.word(), lock.word()) {
                    Ok(()) => {
                        self.held = i + 1;
                        At::Pend(i)
                    }
                    Err(_) => At::Look(i),
                };
            }
            At::Pend(i) => {
                self.writes[i].node.store(segment, PENDING, self.writes[i].body.line());
                self.at = At::List(i + 1);
            }
            At::Certify => return Ok(Progress::Certify),
            At::Publish => {
                self.first(segment).set_p(segment, self.p);
                let late = !self.rules.locks_before_draw() && self.held < self.writes.len();
                self.at = if late { At::List(0) } else { At::Check(0, Check::new()) };
            }
            At::Check(i, check) => self.check(segment, i, check)?,
            At::Range(i, walk, met) => self.walk(segment, i, walk, met)?,
            At::Valid => return Ok(Progress::Valid),
            At::Say(position) => {
                segment.is_there()?;
                self.first(segment).set_ring(segment, position);
                self.at = At::Push;
            }
            At::Push => return Ok(Progress::Push),
            At::InFlight => return Ok(Progress::InFlight),
            At::Finish(i, _) if i == self.writes.len() => self.at = At::End(Ending::Finished),
            At::Finish(i, mut finish) => {
                let write = self.writes[i];
                let is_over = finish.step(segment, write.node, write.columns, Some(self.claim.host), self.rules)?;
                if is_over {
                    self.replaced.extend(finish.replaced);
                }
                self.at = if is_over { At::Unlock(i, Ending::Finished) } else { At::Finish(i, finish) };
            }
            At::Release(i, ending) if i == self.held => self.at = At::End(ending),
            At::Release(i, ending) => {
                self.writes[i].node.store(segment, PENDING, 0);
                self.at = At::Unlock(i, ending);
            }
            At::Unlock(i, ending) => {
                self.writes[i].node.store(segment, LOCK, self.lock(Kind::Free).word());
                self.at = match ending {
                    Ending::Finished => At::Finish(i + 1, Finish::new(self.p)),
                    ending => At::Release(i + 1, ending),
                };
            }
            // The others of the chain are found through the first, and mean nothing once that has
            // ended.
            At::End(ending) => {
                self.first(segment).end(segment, self.claim.incarnation);
                self.at = At::Wake(ending);
            }
            At::Wake(ending) => {
                self.first(segment).wake(segment);
                return Ok(self.end(ending));
            }
            At::Over => return Ok(Progress::Finished),
        }
        Ok(Progress::More)
    }

    fn begin<M: Memory>(&mut self, segment: &Segment<M>) {
        let mut more = None;
        for number in self.descriptors.iter().rev() {
            self.claim = Place::new(segment, self.claim.host, *number).begin(segment, more);
            more = Some(*number);
        }
        (self.held, self.p, self.is_validated) = (0, Timestamp::MIN, false);
        self.at = match () {
            () if !self.rules.locks_before_draw() => At::Certify,
            () if !self.rules.validates_after_draw() => At::Check(0, Check::new()),
            () => At::List(0),
        };
    }

    fn after_locks(&self) -> At {
        if self.p == Timestamp::MIN { At::Certify } else { At::Check(0, Check::new()) }
    }

    fn look<M: Memory>(&mut self, segment: &Segment<M>, i: usize) -> Result<(), Damaged> {
        let lock = self.writes[i].node.lock(segment)?;
        let is_blind = !self.reads.iter().any(|read| read.node == self.writes[i].node);
        self.at = match lock.kind {
            Kind::Free => At::Take(i, lock),
            Kind::Transaction if is_blind && !self.rules.blind_writers_wait() => {
                let is_in_flight = Place::of(segment, lock.claim)?.ring(segment).is_some();
                if is_in_flight { At::Take(i, lock) } else { At::Release(0, Ending::Busy(lock.claim)) }
            }
            Kind::Transaction | Kind::Moving => At::Release(0, Ending::Busy(lock.claim)),
            Kind::Dead => At::Release(0, Ending::Gone(self.writes[i].node)),
        };
        Ok(())
    }

    /// With the planted bug: a new tuple is linked after validation.
    fn links_late(&self, i: usize) -> bool {
        !self.rules.links_before_draw() && self.writes[i].is_new && !self.is_validated
    }

    /// The points are validated, and the ranges before this one.
    fn range(&mut self, i: usize) {
        if let Some(range) = self.ranges.get(i) {
            self.at = At::Range(i, Walk::new(range.begin.clone(), range.end.clone()), None);
            return;
        }
        let is_early = self.p == Timestamp::MIN;
        self.is_validated = true;
        self.at = match () {
            () if is_early => At::List(0),
            () if self.held < self.writes.len() => At::List(self.held),
            () => At::Valid,
        };
    }

    fn walk<M: Memory>(
        &mut self,
        segment: &Segment<M>,
        i: usize,
        mut walk: Walk,
        met: Option<(SharedRead, Check)>,
    ) -> Result<(), Damaged> {
        let range = &self.ranges[i];
        let Some((read, mut check)) = met else {
            match walk.step(segment)? {
                Walked::More => self.at = At::Range(i, walk, None),
                Walked::Over => self.range(i + 1),
                Walked::Tuple(node) => {
                    let read = SharedRead { node, until: range.until, columns: range.columns };
                    self.at = At::Range(i, walk, Some((read, Check::new())));
                }
            }
            return Ok(());
        };
        self.at = match check.step(segment, &read, self.claim, self.rules)? {
            None => At::Range(i, walk, Some((read, check))),
            Some(true) => At::Range(i, walk, None),
            Some(false) => At::Release(0, Ending::Conflict(read.node)),
        };
        Ok(())
    }

    fn check<M: Memory>(&mut self, segment: &Segment<M>, i: usize, mut check: Check) -> Result<(), Damaged> {
        if self.is_validated {
            self.at = At::Valid;
            return Ok(());
        }
        if i == self.reads.len() {
            self.range(0);
            return Ok(());
        }
        let read = self.reads[i];
        self.at = match check.step(segment, &read, self.claim, self.rules)? {
            None => At::Check(i, check),
            Some(true) => At::Check(i + 1, Check::new()),
            Some(false) => At::Release(0, Ending::Conflict(read.node)),
        };
        Ok(())
    }

    fn end(&mut self, ending: Ending) -> Progress {
        let (at, progress) = match ending {
            Ending::Busy(claim) => (At::Begin, Progress::Busy(claim)),
            Ending::Gone(node) => (At::Over, Progress::Gone(node)),
            Ending::Conflict(node) => (At::Over, Progress::Conflict(node)),
            Ending::GivenUp => (At::Over, Progress::GivenUp),
            Ending::Finished => (At::Over, Progress::Finished),
        };
        self.at = at;
        self.held = 0;
        progress
    }
}

/// The validation of a read (P8): nobody else has the lock, and nothing above `until` changed what
/// was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Check {
    /// The next word to load.
    word: u8,
    lock: u64,
    versions: Versions,
}

impl Check {
    fn new() -> Check {
        Check { word: 0, lock: 0, versions: Versions::default() }
    }

    /// A step; the answer, once it is known.
    fn step<M: Memory>(
        &mut self,
        segment: &Segment<M>,
        read: &SharedRead,
        own: Claim,
        rules: Rules,
    ) -> Result<Option<bool>, Damaged> {
        let node = read.node;
        match self.word {
            0 => {
                let lock = node.lock(segment)?;
                self.lock = lock.word();
                let is_in_the_way = match lock.kind {
                    Kind::Free => false,
                    Kind::Transaction if !rules.awaits_writers() => false,
                    Kind::Transaction | Kind::Moving => lock.claim != own,
                    Kind::Dead => true,
                };
                if is_in_the_way {
                    return Ok(Some(false));
                }
            }
            1 => {
                self.versions.newest = node.load(segment, NEWEST);
                // A transaction that has locked it since draws a timestamp above this
                // transaction's.
                if self.versions.newest <= read.until.0 {
                    return Ok(Some(true));
                }
            }
            2 => self.versions.columns = node.load(segment, COLUMNS),
            3 => self.versions.older = node.load(segment, OLDER),
            4 => self.versions.older_columns = node.load(segment, OLDER_COLUMNS),
            5 => self.versions.low = node.load(segment, LOW),
            _ => {
                if node.load(segment, LOCK) != self.lock {
                    *self = Check::new();
                    return Ok(None);
                }
                return Ok(Some(!self.versions.changed_after(read.until, read.columns)));
            }
        }
        self.word += 1;
        Ok(None)
    }
}

/// A locked tuple gets its new version. Every step may be done again by another host, from the
/// beginning: that is how L finishes what a dead host has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Finish {
    p: Timestamp,
    word: u8,
    /// The body that the new one has replaced.
    replaced: Option<Body>,
}

impl Finish {
    pub fn new(p: Timestamp) -> Finish {
        Finish { p, word: 0, replaced: None }
    }

    /// A step. Whether only the release is left. Loads are of words that only the lock's holder
    /// changes; a store is the step. `by` is the host whose cache the body is valid in, if it is
    /// known to be.
    pub fn step<M: Memory>(
        &mut self,
        segment: &Segment<M>,
        node: Node,
        columns: ColumnMask,
        by: Option<u8>,
        rules: Rules,
    ) -> Result<bool, Damaged> {
        let newest = node.load(segment, NEWEST);
        if self.word < 5 && newest >= self.p.0 {
            self.word = 5;
        } else if self.word == 0 && node.load(segment, OLDER) == newest {
            self.word = 3;
        }
        match self.word {
            0 => node.store(segment, LOW, node.load(segment, OLDER)),
            1 => node.store(segment, OLDER_COLUMNS, node.load(segment, COLUMNS)),
            2 => node.store(segment, OLDER, newest),
            3 => node.store(segment, COLUMNS, columns.0),
            4 => node.store(segment, NEWEST, self.p.0),
            5 => match node.load(segment, PENDING) {
                0 => self.word = 6,
                line => {
                    let pending = Body::from_line(segment, line)?;
                    let word = BodyWord::from_word(segment, node.load(segment, BODY))?;
                    let keep = !rules.clears_valid_bits();
                    let next = word.next(pending, by.unwrap_or(0), keep);
                    let valid = if by.is_some() { next.valid } else { 0 };
                    self.replaced = Some(word.body);
                    node.store(segment, BODY, BodyWord { valid, ..next }.word());
                }
            },
            _ => node.store(segment, PENDING, 0),
        }
        self.word += 1;
        Ok(self.word >= 7)
    }
}
