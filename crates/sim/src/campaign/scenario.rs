//! What kind of a run it is: which faults, how often, and how the cluster is tuned. Drawn from the seed; a run that is to show
//! a planted bug is given what the bug needs to show.

use crate::cluster::FaultPlan;
use meridian_base::limits::{GC_TTL_DEFAULT, MAX_OFFSET_DEFAULT};
use meridian_node::{PlantedBug, Timing};
use rand::Rng;
use rand::rngs::SmallRng;
use std::time::Duration;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub plan: FaultPlan,
    pub timing: Timing,
    pub gc_ttl: Duration,
    pub gc_interval: Duration,
    /// Some transactions stay open for up to this long.
    pub pause_max: Duration,
    /// Share of transactions that touch several regions, where there are several.
    pub several_regions_share: f64,
}

impl Scenario {
    /// Nothing fails.
    pub fn calm() -> Scenario {
        Scenario {
            plan: FaultPlan::none(),
            timing: Timing::default(),
            gc_ttl: GC_TTL_DEFAULT,
            gc_interval: Duration::from_secs(60),
            pause_max: Duration::ZERO,
            several_regions_share: 0.5,
        }
    }

    pub fn draw(rng: &mut SmallRng) -> Scenario {
        let mut scenario = Scenario { plan: draw_plan(rng), ..Scenario::calm() };
        if rng.random_bool(0.25) {
            scenario.timing = quick_elections();
        }
        if rng.random_bool(0.25) {
            // So short that transactions meet it, and not so short that one over several regions always does.
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
    pub fn provoke(&mut self, bug: PlantedBug) {
        match bug {
            // The successor must be there before its clock has passed what the predecessor, whose clock was ahead, served
            // reads at; and a transaction that read there must still be open.
            PlantedBug::SuccessorIgnoresCeiling => {
                self.hand_over_often();
                self.plan.every = Duration::from_millis(1_000);
                self.plan.stops = 1.0;
                self.pause_max = Duration::from_millis(250);
            }
            // The primary that remembers the deletion must be gone, and so must the tombstone.
            PlantedBug::CertifyBelowGc => {
                self.hand_over_often();
                self.gc_ttl = Duration::from_millis(150);
                self.gc_interval = Duration::from_millis(100);
                self.pause_max = Duration::from_millis(2_500);
            }
            // A transaction must be open from before a step until after it.
            PlantedBug::SchemaLeaseByBoundOnly | PlantedBug::SchemaRegrantByDelayedMessage | PlantedBug::StepNotTiedToGrants => {
                self.pause_max = Duration::from_millis(4_000);
            }
            // The primary's clock must be ahead of the reader's gateway.
            PlantedBug::SnapshotDoesNotMove => self.plan.skew_max = MAX_OFFSET_DEFAULT.mul_f64(0.35),
            // Transactions over several regions must meet each other.
            PlantedBug::ReplicaReadSkipsPrepared | PlantedBug::RoundIgnoresWriters | PlantedBug::DropReservationEarly => {
                self.several_regions_share = 0.8;
            }
            PlantedBug::CommitNotIdempotent
            | PlantedBug::ReadInFlight
            | PlantedBug::NewestMaskOnly
            | PlantedBug::SkipRangeCheck => {}
        }
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

/// A failover in a fraction of a second: less than clocks may be apart.
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
