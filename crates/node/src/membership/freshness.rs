//! Whether this node's copy of the catalog may be planned with.
//!
//! A plan made with an old copy does no harm: primaries certify the schema that was used. But «does
//! not exist» is an answer that no primary certifies, and a copy may be old because the node was
//! restarted, or cut off while a schema change was acknowledged. An error that rests on unverified
//! state must not be sent (counterexample 16), so nothing is planned unless
//!
//! * a primary that holds a schema lease (or the catalog's own) *confirmed*, less than
//!   [`CONFIRMED_FOR`] ago, what the newest version is. A primary on this node confirms at once;
//!   the others do so with every answer to a ping of this node,
//! * the copy is at least as new as every version that was confirmed, and
//! * no version of the copy lies so far ahead of this node's clock that the clock must have been
//!   set back since ([`BEHIND_MAX`]): what such a version brought was acknowledged and used, and is
//!   not said to be missing until its time comes again.
//!
//! Nothing else that others say of versions is heard: any program that reaches the node's port
//! could keep it from planning. A version that is ahead of the copy by more than [`AHEAD_MAX`] is
//! not believed of a member either.
//!
//! It suffices because a schema change is acknowledged only when every group's primary knows it or
//! has no lease any more, and every node plans with it by then, or since then [`CONFIRMED_FOR`] and
//! the version's own time have passed (`schema`): a primary that confirms the version before does
//! so earlier, and a node that hears of nothing newer waits before it is too late.

use crate::catalog::CatalogCache;
use crate::replica::Replica;
use crate::replica::errors::behind_error;
use crate::replica::groups::Groups;
use meridian_base::limits::BEHIND_MAX;
use meridian_base::{Error, GroupId, Result, SchemaVersion, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a confirmation is good for: a few pings.
pub(crate) const CONFIRMED_FOR: Duration = Duration::from_secs(2);
/// How long after the last one a statement waits for the next: longer than a failover takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits in any case. Where no primary has been in reach for long, the client is told
/// soon.
const PATIENCE_MIN: Duration = Duration::from_secs(1);
/// Versions that a copy may lag behind. Steps take a write to a log, so this many are not made in a
/// year.
const AHEAD_MAX: u64 = 1 << 36;
const POLL: Duration = Duration::from_millis(2);

/// What a node was told about the newest version.
struct Confirmations {
    base: Instant,
    heard: AtomicU64,
    /// Nanoseconds after `base` until which the last confirmation is good.
    until: AtomicU64,
    /// How often one came when the one before was good no more.
    lapses: AtomicU64,
}

impl Confirmations {
    fn new() -> Confirmations {
        Confirmations { base: Instant::now(), heard: AtomicU64::new(0), until: AtomicU64::new(0), lapses: AtomicU64::new(0) }
    }
    /// At `when`, there was no version newer than this that had been acknowledged.
    fn confirm(&self, version: SchemaVersion, when: Instant) {
        self.heard.fetch_max(version.0, Ordering::AcqRel);
        let nanos = |at: Instant| at.saturating_duration_since(self.base).as_nanos() as u64;
        let before = self.until.fetch_max(nanos(when + CONFIRMED_FOR), Ordering::AcqRel);
        if before < nanos(when) {
            self.lapses.fetch_add(1, Ordering::AcqRel);
        }
    }
    /// The number of the present time without a gap between confirmations. In a gap, others may
    /// have taken this node for dead.
    fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::Acquire)
    }
    fn is_confirmed(&self) -> bool {
        (self.base.elapsed().as_nanos() as u64) < self.until.load(Ordering::Acquire)
    }
    /// Until when a statement that asks now waits.
    fn deadline(&self) -> Instant {
        let lapsed = self.base + Duration::from_nanos(self.until.load(Ordering::Acquire));
        let now = Instant::now();
        // Confirmed, and the copy lags behind: it comes.
        let since = if self.is_confirmed() { now } else { lapsed };
        (since + PATIENCE).max(now + PATIENCE_MIN)
    }
    /// How long ago there was no newer version than what was heard of; `None`: nobody has said so
    /// yet.
    fn confirmed_ago(&self) -> Option<Duration> {
        let until = Duration::from_nanos(self.until.load(Ordering::Acquire));
        let when = self.base + until.checked_sub(CONFIRMED_FOR)?;
        Some(when.elapsed())
    }
    fn covers(&self, version: SchemaVersion) -> bool {
        version.0 >= self.heard.load(Ordering::Acquire)
    }
}

/// See the module's essay.
pub(crate) struct Freshness {
    confirmations: Confirmations,
    catalog: Arc<CatalogCache>,
    groups: Arc<Groups>,
}

impl Freshness {
    pub(crate) fn new(catalog: Arc<CatalogCache>, groups: Arc<Groups>) -> Freshness {
        Freshness { confirmations: Confirmations::new(), catalog, groups }
    }

    /// See [`meridian_sql::env::Environment::lapses`].
    pub(crate) fn lapses(&self) -> u64 {
        self.confirmations.lapses()
    }

    /// A member whose groups' primaries say so answered a ping that was sent at `when`.
    pub(crate) fn confirmed(&self, version: SchemaVersion, when: Instant) {
        if self.may_be_a_version(version) {
            self.confirmations.confirm(version, when);
        }
    }

    /// Whether there can be such a version.
    pub(crate) fn may_be_a_version(&self, version: SchemaVersion) -> bool {
        version.0.saturating_sub(self.catalog.newest().version.0) <= AHEAD_MAX
    }

    /// The newest version that may have been acknowledged by now, if a primary here knows.
    pub(crate) fn certified_schema(&self) -> Option<SchemaVersion> {
        self.groups.all().iter().find_map(|replica| self.certified_by(replica))
    }

    fn certified_by(&self, replica: &Replica) -> Option<SchemaVersion> {
        if !replica.is_serving() {
            return None;
        }
        let version = match replica.id {
            GroupId::CATALOG => self.catalog.newest().seen,
            _ => {
                let core = replica.core.lock();
                let grant = core.state.grant();
                (replica.clock.now(replica.physical()) <= grant.bound).then_some(grant.version)?
            }
        };
        // Checked last: what was looked at before was this primary's to say.
        replica.lease_holds().then_some(version)
    }

    /// How far the newest version lies ahead of this node's clock, if that is no ordinary wait.
    fn catalog_ahead(&self) -> Option<Duration> {
        self.catalog.ahead_of(self.groups.common.runtime.physical_micros()).filter(|by| *by > BEHIND_MAX)
    }

    /// Whether the present copy may be planned with.
    pub(crate) fn is_fresh(&self) -> bool {
        // It reads the clock. A machine that was suspended measures no time by which a confirmation
        // is good.
        if self.catalog_ahead().is_some() || self.groups.common.has_clock_stepped() {
            return false;
        }
        if !self.confirmations.is_confirmed() {
            let now = Instant::now();
            let Some(version) = self.certified_schema() else { return false };
            self.confirmations.confirm(version, now);
        }
        // A version whose time has not come on this clock is not acknowledged yet, unless all nodes
        // plan with it (`schema`).
        let active = self.catalog.at(|| self.groups.common.runtime.physical_micros()).seen;
        self.confirmations.covers(active) || self.confirmations.covers(self.catalog.newest().seen)
    }

    /// Up to which moment of the past the copy here has every version: it was confirmed after that,
    /// by any clock. So the past can be read where no primary is in reach.
    pub(crate) fn catalog_known_until(&self) -> Option<Timestamp> {
        if !self.confirmations.covers(self.catalog.newest().seen) {
            return None;
        }
        let age = self.confirmations.confirmed_ago()? + self.groups.common.clock.max_offset();
        let micros = self.groups.common.runtime.physical_micros().checked_sub(age.as_micros() as u64)?;
        Some(Timestamp::from_micros(micros))
    }

    /// Whether the copy here has every version up to a moment of the past.
    pub(crate) fn knows_catalog_at(&self, at: Timestamp) -> bool {
        self.catalog_known_until().is_some_and(|until| at <= until)
    }

    /// Waits until it may, for a bounded time.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        let deadline = self.confirmations.deadline();
        while !self.is_fresh() {
            if let Some(by) = self.catalog_ahead() {
                return Err(behind_error(GroupId::CATALOG, by));
            }
            if Instant::now() > deadline {
                return Err(Error::unavailable("this node does not know the present schema")
                    .detail("It has not heard from a primary lately, or its copy of the catalog lags behind.")
                    .hint("Try again, or connect to another node."));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_copy_is_fresh_while_a_confirmation_is_good_and_nothing_newer_was_heard_of() {
        let freshness = Confirmations::new();
        assert!(!freshness.is_confirmed());
        let asked = Instant::now();
        tokio::time::advance(CONFIRMED_FOR / 2).await;
        freshness.confirm(SchemaVersion(3), asked);
        assert!(freshness.is_confirmed() && freshness.covers(SchemaVersion(3)) && !freshness.covers(SchemaVersion(2)));
        let lapses = freshness.lapses();
        freshness.confirm(SchemaVersion(3), Instant::now());
        assert_eq!(freshness.lapses(), lapses, "the one before was still good");
        tokio::time::advance(CONFIRMED_FOR).await;
        assert!(!freshness.is_confirmed(), "it counts from the question, not from the answer");
        tokio::time::advance(Duration::from_millis(1)).await;
        freshness.confirm(SchemaVersion(2), Instant::now());
        assert_eq!(freshness.lapses(), lapses + 1);
        freshness.confirm(SchemaVersion(4), Instant::now());
        assert!(freshness.is_confirmed() && !freshness.covers(SchemaVersion(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failover_is_waited_for_and_a_lasting_loss_is_told_soon() {
        let freshness = Confirmations::new();
        freshness.confirm(SchemaVersion(1), Instant::now());
        tokio::time::advance(CONFIRMED_FOR + Duration::from_millis(1)).await;
        assert!(freshness.deadline() - Instant::now() > PATIENCE / 2);
        tokio::time::advance(PATIENCE * 2).await;
        assert_eq!(freshness.deadline() - Instant::now(), PATIENCE_MIN);
    }
}
