//! How the times of all rooms must relate.
//!
//! Each constant is defined where it is used, with its own reason. What must hold *between* them is
//! here, as assertions that fail to compile; and what a node may be started with is checked by
//! [`Timing::check`].

use crate::gateway::env::STEP_TIMEOUT;
use crate::gateway::txn::{CALL_TIMEOUT, COMMIT_PATIENCE};
use crate::local::timing::{Timing, less, plus, times};
use crate::membership::clocks::{COMPARE_CALL, COMPARE_MAX};
use crate::membership::founding::{CLAIM_HOLDS, FOUNDING_PAUSE};
use crate::membership::freshness::CONFIRMED_FOR;
use crate::membership::peers::{DEAD_AFTER_DEFAULT, LIVENESS_TIMEOUT, PRIMARY_HEARD_FOR};
use crate::membership::peers::{LINK_SILENT, LOST_AFTER};
use crate::membership::pings::{PING_INTERVAL, PING_TIMEOUT};
use crate::membership::placement::CHANGE_TIMEOUT;
use crate::membership::promises::PROMISE_TIMEOUT;
use crate::replica::TICK;
use crate::replica::closed::LEAD_MAX;
use crate::replica::follower::LAG_MAX;
use crate::replica::primary::WAIT_MAX;
use crate::schema::coordinator::COMMIT_TAKES_MAX;
use crate::transport::frames::LARGE_FRAME_MAX;
use crate::transport::rpc::{CONNECT_TIMEOUT, SILENCE_MAX};
use meridian_base::limits::{
    BEHIND_MAX, CLOSED_INTERVAL, EARLY_VOTES_KEPT, GC_TTL_DEFAULT, LEASE_AHEAD, MAX_OFFSET_DEFAULT, OUTCOME_TIMEOUT,
    PREPARE_RESEND_AFTER, PREPARE_TIMEOUT, PREPARE_WAIT_MAX, SCHEMA_LEASE, VOTE_REQUEST_AFTER, WATERMARK_LAG,
};
use std::time::Duration;

/// A failover is over within this.
const FAILOVER_MAX: Duration = Duration::from_secs(3);

const NEAR: Timing = Timing::NEAR;

// Elections.
const _: () = assert!(NEAR.is_consistent(), "see Timing::check");
const _: () = assert!(
    less(plus(NEAR.election_max, NEAR.election_max), FAILOVER_MAX),
    "a follower waits election_max and up to that again before it stands: a failover must fit the budget"
);
const _: () = assert!(!less(FAILOVER_MAX, LEASE_AHEAD), "a successor waits for the ceiling of its predecessor");

// Leases and promises.
const _: () =
    assert!(less(times(TICK, 8), LEASE_AHEAD), "a lease is renewed at half of its time: with room for ticks that come late");
const _: () = assert!(
    less(plus(LEAD_MAX, TICK), LEASE_AHEAD),
    "the clock of GLOBAL rows runs ahead, below a ceiling that is renewed in time"
);
const _: () = assert!(less(times(MAX_OFFSET_DEFAULT, 2), LEAD_MAX), "a lead is max_offset and the way to the farthest replica");
const _: () = assert!(
    less(plus(plus(LEASE_AHEAD, LEAD_MAX), times(MAX_OFFSET_DEFAULT, 2)), BEHIND_MAX),
    "an ordinary wait for a predecessor's ceiling is not taken for a clock that was ahead"
);
const _: () = assert!(less(CALL_TIMEOUT, BEHIND_MAX), "no message is on its way for as long as that");
const _: () = assert!(!less(CLOSED_INTERVAL, TICK), "a promise is as new as the tick before it");
const _: () =
    assert!(less(CLOSED_INTERVAL, PROMISE_TIMEOUT), "a promise on its way is replaced by better ones before it is given up");

// Who is there.
const _: () = assert!(less(times(PING_INTERVAL, 2), PRIMARY_HEARD_FOR), "a ping may be lost");
const _: () = assert!(less(PING_INTERVAL, SILENCE_MAX), "a connection that lives carries an answer more often");
const _: () =
    assert!(!less(PING_TIMEOUT, SILENCE_MAX), "the silent connection ends before the ping: the next one gets a new connection");
const _: () =
    assert!(less(plus(PING_TIMEOUT, plus(CONNECT_TIMEOUT, PING_INTERVAL)), LIVENESS_TIMEOUT), "one lost connection is no death");
const _: () = assert!(!less(LOST_AFTER, plus(PING_TIMEOUT, plus(CONNECT_TIMEOUT, PING_INTERVAL))), "nor is a group lost by it");
const _: () = assert!(!less(LIVENESS_TIMEOUT, LOST_AFTER), "what is lost has nobody live to elect a primary");
const _: () = assert!(less(times(PING_INTERVAL, 2), LINK_SILENT), "a link is not given up for one ping");
const _: () = assert!(less(LINK_SILENT, SILENCE_MAX), "a detour is known when the connection is given up");
const _: () = assert!(less(times(LIVENESS_TIMEOUT, 4), DEAD_AFTER_DEFAULT), "a restart is no death");
const _: () = assert!(!less(CHANGE_TIMEOUT, LIVENESS_TIMEOUT), "a new voter that is not waited for is not live");
const _: () = assert!(less(COMPARE_CALL, COMPARE_MAX), "a node that starts asks more than once");
const _: () =
    assert!(less(times(PING_INTERVAL, 2), FOUNDING_PAUSE), "a cluster that has lost a node claims it before it founds another");
const _: () = assert!(less(LIVENESS_TIMEOUT, CLAIM_HOLDS), "a claim outlasts a member that is slow to repeat it");
const _: () = assert!(
    less(times(SILENCE_MAX, 2), LARGE_FRAME_MAX),
    "a large frame that makes progress is not cut off by the silence around it"
);

// What a client waits for.
const _: () = assert!(less(WAIT_MAX, CALL_TIMEOUT), "a primary says that it waits too long before the gateway gives its call up");
const _: () = assert!(less(CALL_TIMEOUT, COMMIT_PATIENCE), "a commit is asked for again");
const _: () = assert!(less(LEASE_AHEAD, WAIT_MAX), "whoever waits at a new primary outlasts its wait for the ceiling");
const _: () = assert!(less(PING_INTERVAL, CONFIRMED_FOR), "pings confirm the catalog's version before it is asked for");

// Transactions over several groups.
const _: () =
    assert!(less(plus(COMMIT_PATIENCE, CALL_TIMEOUT), WATERMARK_LAG), "an outcome is kept for as long as somebody asks for it");
const _: () = assert!(less(OUTCOME_TIMEOUT, WATERMARK_LAG), "as above");
const _: () =
    assert!(!less(EARLY_VOTES_KEPT, WATERMARK_LAG), "a vote that came early is kept until its Prepare cannot come any more");
const _: () = assert!(less(PREPARE_RESEND_AFTER, PREPARE_WAIT_MAX), "a lost Prepare is noticed while the others still wait");
const _: () = assert!(less(PREPARE_WAIT_MAX, VOTE_REQUEST_AFTER), "nobody is asked for a vote while its Prepare may wait");
const _: () = assert!(less(VOTE_REQUEST_AFTER, PREPARE_TIMEOUT), "a lost vote is asked for before the transaction is given up");
const _: () = assert!(less(PREPARE_TIMEOUT, OUTCOME_TIMEOUT), "refusing those that have not voted takes time too");

// The catalog and old versions.
const _: () = assert!(less(times(FAILOVER_MAX, 4), SCHEMA_LEASE), "a lost primary of the catalog stops no commits");
const _: () = assert!(
    less(plus(SCHEMA_LEASE, plus(COMMIT_TAKES_MAX, FAILOVER_MAX)), STEP_TIMEOUT),
    "a step waits out the leases of regions that do not answer before its gateway gives it up"
);
const _: () =
    assert!(less(plus(PROMISE_TIMEOUT, times(CLOSED_INTERVAL, 2)), LAG_MAX), "a replica that lost a promise is not behind");
const _: () = assert!(less(SCHEMA_LEASE, GC_TTL_DEFAULT), "what a transaction may still read by its schema is there");
const _: () =
    assert!(less(WATERMARK_LAG, GC_TTL_DEFAULT), "certification sees every version since a transaction that may still commit");
