//! Many seeds, each in a process of its own, so that no run can see what another left behind.

use super::options::Options;
use super::report::Report;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a campaign of [`PROMISED_FROM_SEEDS`] seeds or more promises to have made happen.
pub const PROMISED: [&str; 19] = [
    "process killed",
    "power lost",
    "restart",
    "crash at an operation",
    "unsynced writes lost",
    "writes torn",
    "tail corrupted",
    "two-way partition",
    "one-way partition",
    "stalled link",
    "slow link",
    "message repeated",
    "connections reset",
    "clock jump",
    "slow disk",
    "process stopped in good order",
    "outcome unknown to a client",
    "machine suspended",
    "clock of another speed",
];
/// What one of [`PROMISED_RARE_FROM_SEEDS`] seeds or more promises besides, where shapes and
/// workloads are drawn.
pub const PROMISED_RARE: [&str; 8] = [
    "sync failed",
    "power lost everywhere",
    "clock hours off",
    "disk replaced",
    "bit rot detected",
    "full disk",
    "region isolated",
    "program upgraded",
];
const PROMISED_RARE_FROM_SEEDS: u64 = 100;
/// And one of [`PROMISED_RARER_FROM_SEEDS`]. Of 100 seeds, 3.9 add a node and 5.3 have bit rot: two
/// campaigns of 100 seeds in a hundred add no node, of 300 seeds one in 100,000. In one of 27
/// campaigns of 100 seeds no disk that was full refused a write.
pub const PROMISED_RARER: [&str; 3] = ["node added", "bit rot", "write refused by a full disk"];
const PROMISED_RARER_FROM_SEEDS: u64 = 300;
/// And one of [`PROMISED_LATER_FROM_SEEDS`].
pub const PROMISED_LATER: [&str; 8] = [
    "region lost for good",
    "node lost for good",
    "sync that lied",
    "synced writes lost",
    "clock beyond max_offset",
    "node decommissioned",
    "node isolated",
    "table dropped under load",
];
const PROMISED_LATER_FROM_SEEDS: u64 = 1_000;
/// In fewer seeds, chance may leave one out.
pub const PROMISED_FROM_SEEDS: u64 = 30;
/// A run that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(600);

/// What to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    pub first_seed: u64,
    pub seeds: u64,
    /// No run is begun after this.
    pub minutes: Option<u64>,
    /// Processes at a time.
    pub jobs: usize,
    /// What runs one seed; `None`: the current executable.
    pub program: Option<PathBuf>,
    /// Arguments with which it does.
    pub prefix: Vec<String>,
    pub options: Options,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub reports: Vec<Report>,
    pub coverage: BTreeMap<String, u64>,
    /// Promised, and never happened.
    pub missing: Vec<&'static str>,
}

impl Outcome {
    /// Whether every seed passed and every promise was kept.
    pub fn is_ok(&self) -> bool {
        self.missing.is_empty() && self.reports.iter().all(Report::is_ok)
    }
}

struct Running {
    seed: u64,
    child: Child,
    started: Instant,
    /// Where its outputs go: files, since a pipe that nobody reads stops a process whose panic has
    /// much to say.
    out: PathBuf,
    err: PathBuf,
}

/// Runs a campaign; `done` hears of every report as it comes.
#[allow(clippy::disallowed_methods, reason = "outside of the simulation: it waits for real processes")]
pub fn run(campaign: &Campaign, mut done: impl FnMut(&Report)) -> io::Result<Outcome> {
    let deadline = campaign.minutes.map(|m| Instant::now() + Duration::from_secs(60 * m));
    let mut next = campaign.first_seed;
    let end = campaign.first_seed.saturating_add(campaign.seeds);
    let mut running: Vec<Running> = Vec::new();
    let mut outcome = Outcome::default();
    loop {
        let has_time = deadline.is_none_or(|d| Instant::now() < d);
        while running.len() < campaign.jobs && next < end && has_time {
            running.push(start(campaign, next)?);
            next += 1;
        }
        if running.is_empty() {
            break;
        }
        let mut finished = Vec::new();
        for (index, run) in running.iter_mut().enumerate() {
            if run.started.elapsed() > RUN_MAX {
                run.child.kill()?;
            }
            if run.child.try_wait()?.is_some() {
                finished.push(index);
            }
        }
        for index in finished.into_iter().rev() {
            let report = collect(running.remove(index))?;
            done(&report);
            for (what, count) in &report.coverage {
                *outcome.coverage.entry(what.clone()).or_default() += count;
            }
            outcome.reports.push(report);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (ran, is_drawn) = (outcome.reports.len() as u64, campaign.options.shape.is_none() && campaign.options.workload.is_none());
    let promised = [
        (&PROMISED[..], ran >= PROMISED_FROM_SEEDS),
        (&PROMISED_RARE[..], ran >= PROMISED_RARE_FROM_SEEDS && is_drawn),
        (&PROMISED_RARER[..], ran >= PROMISED_RARER_FROM_SEEDS && is_drawn),
        (&PROMISED_LATER[..], ran >= PROMISED_LATER_FROM_SEEDS && is_drawn),
    ];
    let due =
        promised.into_iter().filter(|(_, is_due)| *is_due && !campaign.options.calm).flat_map(|(what, _)| what.iter().copied());
    outcome.missing = due.filter(|what| !outcome.coverage.contains_key(*what)).collect();
    Ok(outcome)
}

#[allow(clippy::disallowed_methods, reason = "outside of the simulation: it limits real processes")]
fn start(campaign: &Campaign, seed: u64) -> io::Result<Running> {
    let program = match &campaign.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?,
    };
    // Distinct even for two campaigns of one process.
    static NEXT_FILE: AtomicU64 = AtomicU64::new(0);
    let name = format!("meridian-sim-{}-{}", std::process::id(), NEXT_FILE.fetch_add(1, Ordering::Relaxed));
    let (out, err) = (std::env::temp_dir().join(format!("{name}.out")), std::env::temp_dir().join(format!("{name}.err")));
    let child = Command::new(program)
        .args(&campaign.prefix)
        .args(["--seed", &seed.to_string(), "--json"])
        .args(campaign.options.to_args())
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()?;
    Ok(Running { seed, child, started: Instant::now(), out, err })
}

/// The report that a process printed; one that died without is a violation by itself.
fn collect(run: Running) -> io::Result<Report> {
    let Running { seed, mut child, started, out, err } = run;
    let status = child.wait()?;
    let (text, errors) = (std::fs::read(&out)?, std::fs::read(&err)?);
    std::fs::remove_file(&out)?;
    std::fs::remove_file(&err)?;
    let (text, errors) = (String::from_utf8_lossy(&text), String::from_utf8_lossy(&errors));
    if let Some(report) = text.lines().last().and_then(|line| serde_json::from_str::<Report>(line).ok()) {
        return Ok(report);
    }
    let mut report = Report { seed, ..Report::default() };
    let panic = errors.lines().position(|line| line.contains("panicked at"));
    let shown: Vec<&str> = errors.lines().skip(panic.unwrap_or(0)).take(3).collect();
    let took = started.elapsed();
    let what = format!("the process ended with {status} after {} s: {}", took.as_secs(), shown.join(" | "));
    if took > RUN_MAX {
        report.does_not_end(what)
    } else {
        report.violate(what)
    }
    Ok(report)
}
