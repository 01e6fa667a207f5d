//! What a run may be told. What it is not told it draws from its seed.

use super::scenario::Scenario;
use meridian_commit::PlantedBug as BallotBug;
use meridian_region::PlantedBug;
use meridian_workload::Workload;
use meridian_workload::bank::{Bank, BankConfig};
use meridian_workload::escrow::{Escrow, EscrowConfig};
use meridian_workload::foreign::{Foreign, ForeignConfig};
use meridian_workload::inserts::{Inserts, InsertsConfig};
use meridian_workload::list_append::{ListAppend, ListAppendConfig};
use meridian_workload::localities::{Localities, LocalitiesConfig};
use meridian_workload::movr::{Movr, MovrConfig};
use meridian_workload::multi_region::{MultiRegion, MultiRegionConfig};
use meridian_workload::queue::{Queue, QueueConfig};
use meridian_workload::registers::{Registers, RegistersConfig};
use meridian_workload::schema_steps::{SchemaSteps, SchemaStepsConfig};
use meridian_workload::tpcc::{Tpcc, TpccConfig};
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::Arc;
use std::time::Duration;

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    Bank,
    ListAppend,
    Registers,
    Inserts,
    Queue,
    Foreign,
    SchemaSteps,
    Localities,
    Movr,
    MultiRegion,
    Tpcc,
    Escrow,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [WorkloadKind; 12] = [
        WorkloadKind::Bank,
        WorkloadKind::ListAppend,
        WorkloadKind::Registers,
        WorkloadKind::Inserts,
        WorkloadKind::Queue,
        WorkloadKind::Foreign,
        WorkloadKind::SchemaSteps,
        WorkloadKind::Localities,
        WorkloadKind::Movr,
        WorkloadKind::MultiRegion,
        WorkloadKind::Tpcc,
        WorkloadKind::Escrow,
    ];

    /// As on a command line.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Bank => "bank",
            WorkloadKind::ListAppend => "list-append",
            WorkloadKind::Registers => "registers",
            WorkloadKind::Inserts => "inserts",
            WorkloadKind::Queue => "queue",
            WorkloadKind::Foreign => "foreign",
            WorkloadKind::SchemaSteps => "schema-steps",
            WorkloadKind::Localities => "localities",
            WorkloadKind::Movr => "movr",
            WorkloadKind::MultiRegion => "multi-region",
            WorkloadKind::Tpcc => "tpcc",
            WorkloadKind::Escrow => "escrow",
        }
    }
    /// The reverse of [`WorkloadKind::name`].
    pub fn from_name(name: &str) -> Option<WorkloadKind> {
        WorkloadKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The two that show most are drawn most. What came later takes the place of some
    /// ([`Scenario::is_about_shares`]), so that the other seeds stay what they were.
    pub(super) fn draw(rng: &mut SmallRng) -> WorkloadKind {
        match rng.random_range(0..22) {
            0..=3 => WorkloadKind::Bank,
            4..=9 => WorkloadKind::ListAppend,
            10..=11 => WorkloadKind::Registers,
            12..=13 => WorkloadKind::Inserts,
            14..=15 => WorkloadKind::Queue,
            16 => WorkloadKind::Foreign,
            17 => WorkloadKind::SchemaSteps,
            18 => WorkloadKind::Localities,
            19 => WorkloadKind::Movr,
            20 => WorkloadKind::MultiRegion,
            _ => WorkloadKind::Tpcc,
        }
    }

    /// The workload, small and contended, in a shape drawn from the seed.
    pub(super) fn build(self, rng: &mut SmallRng, scenario: &Scenario) -> Arc<dyn Workload> {
        let Scenario { pause_max, several_regions_share, has_global, .. } = *scenario;
        let think_time = Duration::from_millis([0, 2, 5, 20][rng.random_range(0..4)]);
        match self {
            WorkloadKind::Bank => Arc::new(Bank::new(BankConfig {
                accounts_per_region: rng.random_range(2..12),
                think_time,
                several_regions_share,
                ..BankConfig::default()
            })),
            WorkloadKind::ListAppend => Arc::new(ListAppend::new(ListAppendConfig {
                keys_active: rng.random_range(1..8),
                appends_per_key: rng.random_range(4..32),
                think_time,
                pause_max,
                several_regions_share,
                has_global,
                extras: scenario.extras,
                ..ListAppendConfig::default()
            })),
            WorkloadKind::Registers => Arc::new(Registers::new(RegistersConfig {
                keys_per_region: rng.random_range(1..5),
                think_time: think_time.max(Duration::from_millis(5)),
                is_global: has_global,
                ..RegistersConfig::default()
            })),
            WorkloadKind::Inserts => Arc::new(Inserts::new(InsertsConfig { think_time, ..InsertsConfig::default() })),
            WorkloadKind::Queue => Arc::new(Queue::new(QueueConfig { think_time, ..QueueConfig::default() })),
            WorkloadKind::Foreign => Arc::new(Foreign::new(ForeignConfig {
                think_time,
                pause_max,
                has_global_parents: has_global,
                ..ForeignConfig::default()
            })),
            WorkloadKind::SchemaSteps => {
                Arc::new(SchemaSteps::new(SchemaStepsConfig { think_time, pause_max, ..SchemaStepsConfig::default() }))
            }
            WorkloadKind::Localities => {
                let think_time = think_time.max(Duration::from_millis(5));
                Arc::new(Localities::new(LocalitiesConfig { think_time, ..LocalitiesConfig::default() }))
            }
            WorkloadKind::Movr => Arc::new(Movr::new(MovrConfig {
                users_per_region: 9,
                vehicles_per_region: 9,
                rides_per_region: 12,
                promo_codes_per_region: 3,
                think_time,
                ..MovrConfig::default()
            })),
            WorkloadKind::MultiRegion => Arc::new(MultiRegion::new(MultiRegionConfig {
                rows_per_region: 60,
                hot_rows_per_region: rng.random_range(1..20),
                several_regions_share: 0.5,
                think_time,
                ..MultiRegionConfig::default()
            })),
            WorkloadKind::Escrow if scenario.has_few_tokens => Arc::new(Escrow::new(EscrowConfig {
                rows: 1,
                limit: 40,
                delta_max: 10,
                read_share: 0.05,
                journal_share: several_regions_share,
                wild_share: 0.0,
                think_time,
                ..EscrowConfig::default()
            })),
            WorkloadKind::Escrow => Arc::new(Escrow::new(EscrowConfig {
                rows: rng.random_range(1..4),
                limit: [8, 40, 1_000][rng.random_range(0..3)],
                read_share: [0.02, 0.2][rng.random_range(0..2)],
                journal_share: several_regions_share,
                wild_share: [0.0, 0.25][rng.random_range(0..2)],
                think_time,
                guarded_share: [0.0, 0.2][rng.random_range(0..2)],
                regions_share: [0.0, 0.03][rng.random_range(0..2)],
                epoch: [None, Some(1)][rng.random_range(0..2)],
                by_majority: rng.random_bool(0.5),
                splits_share: [0.0, 0.0, 0.05][rng.random_range(0..3)],
                ..EscrowConfig::default()
            })),
            // As small as it gets, and with more of what goes to other regions than the standard
            // has.
            WorkloadKind::Tpcc => Arc::new(Tpcc::new(TpccConfig {
                scale: 0.001,
                remote_line_share: several_regions_share / 20.0,
                remote_payment_share: several_regions_share / 2.0,
                ..TpccConfig::default()
            })),
        }
    }
}

/// A rule left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// In a group.
    Group(PlantedBug),
    /// In the commit over several groups.
    Ballot(BallotBug),
}

impl Bug {
    /// As on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Bug::Group(bug) => bug.name(),
            Bug::Ballot(bug) => bug.name(),
        }
    }
    /// The workload that it shows in, if it does in one only.
    pub(super) fn workload(self) -> Option<WorkloadKind> {
        let is_of_shares = matches!(self, Bug::Group(bug) if bug.is_of_shares());
        is_of_shares.then_some(WorkloadKind::Escrow)
    }
    /// The reverse of [`Bug::name`].
    pub fn from_name(name: &str) -> Option<Bug> {
        PlantedBug::from_name(name).map(Bug::Group).or_else(|| BallotBug::from_name(name).map(Bug::Ballot))
    }
}

impl From<PlantedBug> for Bug {
    fn from(bug: PlantedBug) -> Bug {
        Bug::Group(bug)
    }
}

impl From<BallotBug> for Bug {
    fn from(bug: BallotBug) -> Bug {
        Bug::Ballot(bug)
    }
}

/// What a run is told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Print every event.
    pub trace: bool,
    /// `None`: drawn.
    pub workload: Option<WorkloadKind>,
    /// Regions and zones; `None`: drawn.
    pub shape: Option<(usize, usize)>,
    /// How long workers work, in simulated time; `None`: drawn.
    pub duration: Option<Duration>,
    pub bug: Option<Bug>,
    /// The run is one in which this bug would show; the same as with `bug`, but the bug is not
    /// there.
    pub provoke: Option<Bug>,
    /// Nothing fails.
    pub calm: bool,
    /// There are GLOBAL tables, and a clock is farther off than nodes assume.
    pub beyond: bool,
    /// The last region has one zone.
    pub small_region: bool,
    /// Where to write the history, as lines of JSON.
    pub history: Option<String>,
}

impl Options {
    /// The same as command-line arguments, for a child process.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        let mut push = |name: &str, value: String| args.extend([name.to_string(), value]);
        if let Some(workload) = self.workload {
            push("--workload", workload.name().to_string());
        }
        if let Some((regions, zones)) = self.shape {
            push("--shape", format!("{regions}x{zones}"));
        }
        if let Some(duration) = self.duration {
            push("--duration", format!("{}", duration.as_secs()));
        }
        if let Some(bug) = self.bug {
            push("--bug", bug.name().to_string());
        }
        if let Some(bug) = self.provoke {
            push("--provoke", bug.name().to_string());
        }
        if self.calm {
            args.push("--calm".to_string());
        }
        if self.beyond {
            args.push("--beyond".to_string());
        }
        if self.small_region {
            args.push("--small-region".to_string());
        }
        args
    }
}
