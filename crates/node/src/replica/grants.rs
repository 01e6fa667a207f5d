//! Schema grants at a group's primary.

use crate::replica::Replica;
use crate::replica::pod::Outlet;
use crate::replica::primary::WAIT_MAX;
use meridian_base::record::{Record, SchemaGrant};
use meridian_base::{Error, Result, Timestamp};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often L looks whether the hosts of its pod have acknowledged a grant.
const LOOK: Duration = Duration::from_millis(1);
/// For longer than that no read is planned with a version before: the schema's step waits for it.
const LEASE_BEFORE_MAX: Duration = Duration::from_secs(1);

impl Replica {
    /// Logs a grant of the catalog; answers with its bound when it is durable, and no read can be
    /// planned with a version before it any more.
    pub async fn grant(&self, grant: SchemaGrant) -> Result<Timestamp> {
        let bound = self.log_grant(grant).await?;
        self.outlive_lease_before().await?;
        Ok(bound)
    }

    /// Reads that are planned with the version before go on up to the end of its lease.
    async fn outlive_lease_before(&self) -> Result<()> {
        loop {
            let left = {
                let mut core = self.core.lock();
                let (_, term) = self.leading(&mut core)?;
                let Some(until) = term.engine.lease_before() else { return Ok(()) };
                let now = self.now();
                if now > until || until.since(now) > LEASE_BEFORE_MAX {
                    term.engine.end_lease_before();
                    return Ok(());
                }
                until.since(now)
            };
            tokio::time::sleep(left.max(LOOK)).await;
        }
    }

    async fn log_grant(&self, grant: SchemaGrant) -> Result<Timestamp> {
        self.announce_to_pod(&grant).await?;
        let applied = {
            let mut core = self.core.lock();
            let (state, term) = self.leading(&mut core)?;
            self.used_by_pod(term);
            let Some(record) = term.engine.grant(state, &grant) else {
                let known = state.grant();
                if known.seq == grant.seq {
                    return Ok(known.bound);
                }
                return Err(Error::unavailable(format!(
                    "schema grant {} of group {} is outdated or under way",
                    grant.seq, self.id
                )));
            };
            // A lowering obeys at once, before it is durable.
            self.fast.grant_bound.fetch_min(record.bound.0, Ordering::AcqRel);
            let (tx, rx) = oneshot::channel();
            term.grants.push((record.seq, tx));
            term.records.push(Record::Schema(record));
            self.pump(&mut core);
            rx
        };
        match tokio::time::timeout(WAIT_MAX, applied).await {
            Ok(Ok(bound)) => Ok(bound),
            _ => Err(Error::not_primary(self.id)),
        }
    }

    /// A grant that lowers the bound counts when every host of the pod obeys it (counterexample
    /// 75).
    async fn announce_to_pod(&self, grant: &SchemaGrant) -> Result<()> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            {
                let mut core = self.core.lock();
                let (state, term) = self.leading(&mut core)?;
                let Outlet::Led(leader) = &term.outlet else { return Ok(()) };
                if grant.seq <= state.grant().seq || grant.bound >= state.grant().bound {
                    return Ok(());
                }
                let segment = &leader.member.segment;
                let (number, _) = segment.grant();
                if number < grant.seq {
                    segment.set_grant(grant.seq, grant.bound);
                }
                if leader.grant_is_seen(grant.seq) {
                    return Ok(());
                }
            }
            if Instant::now() >= deadline {
                return Err(Error::unavailable(format!("a host of the pod of group {} does not answer", self.id)));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
