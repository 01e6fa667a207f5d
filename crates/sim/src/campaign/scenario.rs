//! What kind of a run it is: which faults, how often, and how the cluster is tuned. Drawn from the
//! seed; a run that is to show a planted bug is given what the bug needs to show.

use super::options::Bug;
use crate::cluster::{Deaf, Death, FaultPlan, RareFaults, Strike};
use meridian_base::limits::{GC_TTL_DEFAULT, MAX_OFFSET_DEFAULT, PROTECTED_FOR_MAX};
use meridian_commit::PlantedBug as BallotBug;
use meridian_node::Timing;
use meridian_region::PlantedBug;
use meridian_workload::list_append::Extras;
use rand::Rng;
use rand::rngs::SmallRng;
use std::ops::RangeInclusive;
use std::time::Duration;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub plan: FaultPlan,
    pub timing: Timing,
    /// How far clocks may be apart.
    pub max_offset: Duration,
    /// The share of messages that arrive twice.
    pub repeated_share: f64,
    pub gc_ttl: Duration,
    pub gc_interval: Duration,
    pub protected_for_max: Duration,
    /// Some transactions stay open for up to this long.
    pub pause_max: Duration,
    /// Share of transactions that touch several regions, where there are several.
    pub several_regions_share: f64,
    /// Workloads that can have GLOBAL tables do.
    pub has_global: bool,
    /// List-append goes through more of the database.
    pub extras: Extras,
    /// Where there are several regions, the last one has one zone.
    pub has_small_region: bool,
    /// The nodes begin with a program of the version before, and have this one from their first
    /// restart on.
    pub has_older_programs: bool,
    /// Transactions with more than one write are treated as large ones.
    pub has_large: bool,
    /// Clients change the shares of escrow columns, in place of accounts.
    pub is_about_shares: bool,
    /// A few deltas on their way are most of what a region has of a number.
    pub has_few_tokens: bool,
}

impl Scenario {
    /// Nothing fails.
    pub fn calm() -> Scenario {
        Scenario {
            plan: FaultPlan::none(),
            timing: Timing::default(),
            max_offset: MAX_OFFSET_DEFAULT,
            repeated_share: 0.0,
            gc_ttl: GC_TTL_DEFAULT,
            gc_interval: Duration::from_secs(60),
            protected_for_max: PROTECTED_FOR_MAX,
            pause_max: Duration::ZERO,
            several_regions_share: 0.5,
            has_global: false,
            extras: Extras::default(),
            has_small_region: false,
            has_older_programs: false,
            has_large: false,
            is_about_shares: false,
            has_few_tokens: false,
        }
    }

    /// Whether a clock may be farther off than nodes assume.
    pub fn is_beyond(&self) -> bool {
        self.plan.beyond.is_some() || self.plan.rare.hours
    }

    /// What came to be drawn later, from a generator of its own: a seed that shows a planted bug
    /// has none of it and is what it was.
    pub fn draw_more(&mut self, rng: &mut SmallRng, is_calm: bool, regions: usize) {
        self.has_global = rng.random_bool(0.4);
        let share = |rng: &mut SmallRng, share: f64| if rng.random_bool(0.5) { share } else { 0.0 };
        self.extras = Extras {
            deletes: rng.random_bool(0.5) && !self.has_global,
            by_index: rng.random_bool(0.5),
            by_row: rng.random_bool(0.4) && !self.has_global && regions > 1,
            savepoint_share: share(rng, 0.3),
            reading_share: share(rng, 0.15),
            past_share: share(rng, 0.1),
            schema_share: share(rng, 0.05),
        };
        self.has_small_region = rng.random_bool(0.15);
        // From a copy: the draws after it stay what they were.
        self.is_about_shares = rng.clone().random_bool(0.4);
        if is_calm {
            return;
        }
        let loses_region = regions == 3 && rng.random_bool(0.3);
        self.plan.rare = RareFaults {
            every: Duration::from_millis(rng.random_range(1_000..5_000)),
            blackouts: rng.random_bool(0.5),
            suspensions: rng.random_bool(0.7),
            speeds: rng.random_bool(0.7) && !self.plan.skew_max.is_zero(),
            hours: rng.random_bool(0.3),
            replaced_disks: rng.random_bool(0.5),
            bit_rot: rng.random_bool(0.5),
            lying_syncs: rng.random_bool(0.2),
            lost_regions: loses_region,
            survives_region: loses_region,
        };
        if self.plan.rare.lying_syncs {
            // What a disk forgets is with the others of its region, and these have to hear each
            // other.
            self.plan.links = false;
        }
        if loses_region {
            // One region is what databases survive.
            (self.has_small_region, self.plan.joins) = (false, false);
        }
        self.has_older_programs = rng.random_bool(0.25);
        self.has_large = rng.random_bool(0.4);
    }

    pub fn draw(rng: &mut SmallRng) -> Scenario {
        let mut scenario = Scenario { plan: draw_plan(rng), ..Scenario::calm() };
        if rng.random_bool(0.25) {
            scenario.timing = quick_elections();
        }
        if rng.random_bool(0.25) {
            // So short that transactions meet it, and not so short that one over several regions
            // always does.
            scenario.gc_ttl = Duration::from_millis(rng.random_range(1_500..4_000));
            scenario.gc_interval = Duration::from_millis(rng.random_range(100..1_000));
        }
        if rng.random_bool(0.3) {
            scenario.pause_max = Duration::from_millis(rng.random_range(100..2_500));
        }
        scenario.several_regions_share = [0.0, 0.3, 0.8][rng.random_range(0..3)];
        scenario
    }

    /// Makes the run one in which a bug shows, if it is there.
    pub fn provoke(&mut self, bug: Bug) {
        match bug {
            Bug::Group(bug) => self.provoke_in_group(bug),
            Bug::Ballot(bug) => self.provoke_in_ballot(bug),
        }
    }

    fn provoke_in_group(&mut self, bug: PlantedBug) {
        match bug {
            // A primary whose clock is ahead, and whom its region does not hear any more, reads for
            // a transaction of its own gateway while its lease lasts; what its successor commits
            // before its own clock has come so far must be missed by that transaction when it ends.
            // So clocks are farther apart than a failover takes, and nearer than a lease's ceiling
            // is ahead.
            PlantedBug::SuccessorIgnoresCeiling => {
                (self.timing, self.max_offset) = (quickest_elections(), AHEAD.mul_f64(1.3));
                self.pause_max = Duration::from_millis(2_500);
                let strike = Strike { deaf: Some(Deaf::AtHome), ahead: AHEAD, ..Strike::lasting(700..=1_200) };
                self.strike(Duration::from_millis(2_500), strike);
            }
            // The primary that remembers the deletion must be gone, and so must the tombstone.
            PlantedBug::CertifyBelowGc => {
                self.hand_over_often();
                self.gc_ttl = Duration::from_millis(150);
                self.gc_interval = Duration::from_millis(100);
                self.protected_for_max = Duration::ZERO;
                self.pause_max = Duration::from_millis(2_500);
            }
            // A transaction must be open from before a step until after it.
            PlantedBug::SchemaLeaseByBoundOnly | PlantedBug::StepNotTiedToGrants => {
                self.pause_max = Duration::from_millis(4_000);
            }
            // And the grant of that time must come once more.
            PlantedBug::SchemaRegrantByDelayedMessage => {
                self.pause_max = Duration::from_millis(4_000);
                self.repeated_share = 0.5;
            }
            // The primary's clock must be ahead of the reader's gateway.
            PlantedBug::SnapshotDoesNotMove => self.plan.skew_max = MAX_OFFSET_DEFAULT.mul_f64(0.35),
            // Transactions over several regions must meet each other.
            PlantedBug::ReplicaReadSkipsPrepared
            | PlantedBug::RoundIgnoresWriters
            | PlantedBug::RoundLeftOut
            | PlantedBug::DropReservationEarly
            | PlantedBug::ReservingReadHoldsNothing => {
                self.several_regions_share = 0.8;
            }
            // The clocks of readers must be behind, and these must not hear of a writer of a GLOBAL
            // row until it is acknowledged; what they write themselves must be read in between.
            PlantedBug::GlobalReadsHoldToCommit => {
                self.has_global = true;
                self.several_regions_share = 0.8;
                self.pause_max = Duration::from_millis(900);
                let strike = Strike { deaf: Some(Deaf::Abroad), in_first_region: true, ..Strike::lasting(600..=1_200) };
                self.strike(Duration::from_millis(700), strike);
                (self.plan.skew_max, self.plan.first_is_ahead) = (MAX_OFFSET_DEFAULT.mul_f64(0.36), true);
            }
            // A writer of a GLOBAL row must be prepared for longer than its timestamp is ahead,
            // since a vote from another region does not come; a moment of the past that lies
            // between it and a reader of that row must be looked at.
            PlantedBug::GlobalReadsHoldToClosed => {
                self.has_global = true;
                self.several_regions_share = 0.7;
                self.extras.past_share = 0.3;
                self.pause_max = Duration::from_millis(200);
                self.strike(Duration::from_millis(1_500), Strike { deaf: Some(Deaf::Abroad), ..Strike::lasting(800..=2_000) });
            }
            // Gateways must disagree about the time, and what is written soon be read.
            PlantedBug::GlobalReadsNotRechecked
            | PlantedBug::UncertaintySkipped
            | PlantedBug::ReaderDoesNotWait
            | PlantedBug::WriterDoesNotWait => {
                self.has_global = true;
                self.several_regions_share = 0.8;
                self.plan = FaultPlan { skew_max: MAX_OFFSET_DEFAULT.mul_f64(0.45), ..FaultPlan::none() };
                self.gc_ttl = GC_TTL_DEFAULT;
                // So long that a GLOBAL row is written and acknowledged meanwhile.
                self.pause_max = Duration::from_millis(800);
            }
            // What is promised gets there in time, unless a link fails.
            PlantedBug::GlobalReadsNotClosed => {
                self.has_global = true;
                self.several_regions_share = 0.8;
                self.plan = FaultPlan { links: true, every: Duration::from_millis(700), ..FaultPlan::none() };
                self.gc_ttl = GC_TTL_DEFAULT;
            }
            PlantedBug::ReleaseBeforeClock => {
                self.has_global = true;
                self.pause_max = Duration::ZERO;
                self.plan = FaultPlan::none();
                self.gc_ttl = GC_TTL_DEFAULT;
            }
            // What is replaced must be collected between the record and the building.
            PlantedBug::BuildHoldsNothing => {
                self.gc_ttl = Duration::ZERO;
                self.gc_interval = Duration::from_millis(2);
                self.protected_for_max = Duration::ZERO;
            }
            // Transactions of one region, which are in parts; and readers of replicas.
            PlantedBug::LargeTouchesNothing | PlantedBug::PartClosesEarly => {
                (self.has_large, self.several_regions_share) = (true, 0.0);
            }
            PlantedBug::BuildNotClosed | PlantedBug::BuildSkipsPrepared => self.several_regions_share = 0.8,
            PlantedBug::CommitNotIdempotent
            | PlantedBug::ErrorNotConfirmed
            | PlantedBug::ReadInFlight
            | PlantedBug::NewestMaskOnly
            | PlantedBug::SkipRangeCheck
            | PlantedBug::SchemaReadOnce
            | PlantedBug::CommitBelowSchemaStep
            | PlantedBug::EscrowFromApplied => {}
            // Shares must be in many transactions at once, some of them over several groups.
            PlantedBug::EscrowIgnoresInFlight
            | PlantedBug::EscrowCreditEarly
            | PlantedBug::EscrowFoldUndecided
            | PlantedBug::EscrowRefusalNotLogged
            | PlantedBug::EscrowGrantOfAnother
            | PlantedBug::EscrowTrustsOffer
            | PlantedBug::EscrowOfferNotHeld
            | PlantedBug::EscrowForgetsOffer
            | PlantedBug::EscrowRenewsOffered => self.several_regions_share = 0.6,
            // A primary must have prepared deltas, and not have heard how their transactions end,
            // when it is replaced; and its successor must be asked for the same tokens at once.
            PlantedBug::EscrowIgnoresPrepared => {
                self.timing = quick_elections();
                self.several_regions_share = 0.5;
                self.has_few_tokens = true;
                let strike = Strike { deaf: Some(Deaf::Itself), death: Some(Death::Process), ..Strike::lasting(300..=700) };
                self.strike(Duration::from_millis(700), Strike { down_ms: 50..=150, ..strike });
            }
        }
    }

    /// Transactions over several regions are in the middle of their commit all the time; the
    /// primary of one of their groups is kept there for a while.
    fn provoke_in_ballot(&mut self, bug: BallotBug) {
        self.several_regions_share = 0.8;
        match bug {
            // The vote must have left, and its record not be durable.
            BallotBug::VoteBeforeDurable => {
                let strike = Strike { sync_time: Some(Duration::from_millis(400)), ..Strike::lasting(300..=800) };
                self.strike(Duration::from_millis(1_000), Strike { death: Some(Death::Power), ..strike });
            }
            // The same with the outcome; and the other groups must have forgotten the transaction
            // when the group is back.
            BallotBug::AckBeforeDurable => {
                let strike = Strike { sync_time: Some(Duration::from_millis(400)), ..Strike::lasting(600..=1_500) };
                self.strike(Duration::from_millis(500), Strike { death: Some(Death::Power), down_ms: LONG_AWAY_MS, ..strike });
            }
            // The gateway must have the vote and the other groups not, before the group that gave
            // it forgets it.
            BallotBug::UnloggedReadOnlyVote | BallotBug::AnswerFromMemory => {
                let strike = Strike { deaf: Some(Deaf::Abroad), ..Strike::lasting(200..=1_200) };
                self.strike(Duration::from_millis(800), Strike { death: Some(Death::Process), ..strike });
            }
            BallotBug::ForgetBeforeAcks => {
                self.strike(Duration::from_millis(500), Strike { deaf: Some(Deaf::Abroad), ..Strike::lasting(LONG_AWAY_MS) });
            }
            // The others must miss its vote for longer than the bound.
            BallotBug::DecideByBound => {
                self.strike(Duration::from_millis(1_000), Strike { deaf: Some(Deaf::Abroad), ..Strike::lasting(2_200..=4_000) });
            }
            // A late copy is refused by what the first one wrote: no statement writes a row that it
            // has not read.
            BallotBug::LatePrepareAsNew => {}
            // What a Prepare may wait for at a group ends by itself; the bound keeps others from
            // waiting so long.
            BallotBug::WaitWithoutBound => {}
        }
    }

    fn strike(&mut self, every: Duration, strike: Strike) {
        self.plan = FaultPlan { every, strike: Some(strike), ..FaultPlan::none() };
        self.gc_ttl = GC_TTL_DEFAULT;
    }

    fn hand_over_often(&mut self) {
        self.timing = quick_elections();
        self.plan.every = Duration::from_millis(400);
        self.plan.machines = true;
        self.plan.stops = 0.7;
        self.plan.links = false;
        self.plan.disks = false;
        self.plan.skew_max = MAX_OFFSET_DEFAULT.mul_f64(0.35);
    }
}

/// Longer than a group remembers what everybody has acknowledged (`WATERMARK_LAG`).
const LONG_AWAY_MS: RangeInclusive<u64> = 33_000..=35_000;

/// Less than what is left of a ceiling when it is raised (`LEASE_AHEAD / 2`).
const AHEAD: Duration = Duration::from_millis(850);

/// A failover in half of [`AHEAD`]: after the longest election timeout a candidate waits for
/// another one. A lease is shorter than the shortest by a margin, and has to be worth something
/// still.
fn quickest_elections() -> Timing {
    let ms = Duration::from_millis;
    Timing { heartbeat: ms(30), election_min: ms(180), election_max: ms(200) }
}

/// A failover in a fraction of a second.
fn quick_elections() -> Timing {
    Timing {
        heartbeat: Duration::from_millis(30),
        election_min: Duration::from_millis(120),
        election_max: Duration::from_millis(240),
    }
}

fn draw_plan(rng: &mut SmallRng) -> FaultPlan {
    let mut plan = FaultPlan::all(MAX_OFFSET_DEFAULT);
    plan.every = Duration::from_millis(rng.random_range(300..3_000));
    // Some runs lack a kind of fault, so that what it would hide can show.
    plan.machines = rng.random_bool(0.85);
    plan.links = rng.random_bool(0.85);
    plan.disks = rng.random_bool(0.8);
    plan.joins = rng.random_bool(0.25);
    plan.beyond = rng.random_bool(0.08).then_some(MAX_OFFSET_DEFAULT);
    if rng.random_bool(0.2) {
        plan.skew_max = Duration::ZERO;
    }
    plan
}
