//! Crashes and partitions (§5.4): which sites reach each other, and whose clients are gone.
//!
//! A site that has crashed is cut off from all others, and its clients send nothing any more, as
//! where the region is lost. It comes back when the turn is over: only then is the number exact.

use crate::demo::Sides;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Fault {
    /// The sites crash one by one, from the last to the second, evenly over the time.
    Crashes,
    /// Two of five do not reach the other three, from a quarter of the time to three quarters.
    Partition,
}

/// What happens in a turn.
pub(super) struct Plan {
    /// From when on each site is on which side, in the order of the times.
    steps: Vec<(Duration, Vec<usize>)>,
    /// When a site's clients are gone.
    gone: Vec<Option<Duration>>,
}

impl Plan {
    pub fn new(fault: Option<Fault>, sites: usize, time: Duration) -> Plan {
        let mut plan = Plan { steps: Vec::new(), gone: vec![None; sites] };
        match fault {
            None => {}
            Some(Fault::Crashes) => {
                for crashed in 1..sites {
                    let at = time * crashed as u32 / sites as u32;
                    plan.gone[sites - crashed] = Some(at);
                    // Each of them alone.
                    let side = |site: usize| if site >= sites - crashed { site } else { 0 };
                    plan.steps.push((at, (0..sites).map(side).collect()));
                }
                plan.steps.push((time, vec![0; sites]));
            }
            Some(Fault::Partition) => {
                let far = sites - sites * 2 / 5;
                plan.steps.push((time / 4, (0..sites).map(|site| usize::from(site >= far)).collect()));
                plan.steps.push((time * 3 / 4, vec![0; sites]));
            }
        }
        plan
    }

    /// When the clients of a site stop, if they do.
    pub fn gone(&self, site: usize) -> Option<Duration> {
        self.gone[site]
    }

    /// Lets it happen. All sites reach each other again when this is dropped.
    pub async fn run(&self, start: Instant, regions: &[String], sides: &Arc<Sides>) {
        let _healed = Healed(sides.clone());
        for (at, of) in &self.steps {
            tokio::time::sleep_until(start + *at).await;
            sides.set(regions.iter().cloned().zip(of.iter().copied()).collect());
        }
        std::future::pending().await
    }
}

/// Ends all partitions when it is dropped.
struct Healed(Arc<Sides>);

impl Drop for Healed {
    fn drop(&mut self) {
        self.0.set(BTreeMap::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(100);

    fn secs(plan: &Plan) -> Vec<(u64, Vec<usize>)> {
        plan.steps.iter().map(|(at, sides)| (at.as_secs(), sides.clone())).collect()
    }

    #[test]
    fn sites_crash_one_by_one_until_the_first_is_alone_and_all_come_back() {
        let plan = Plan::new(Some(Fault::Crashes), 5, TIME);
        let steps = [
            (20, vec![0, 0, 0, 0, 4]),
            (40, vec![0, 0, 0, 3, 4]),
            (60, vec![0, 0, 2, 3, 4]),
            (80, vec![0, 1, 2, 3, 4]),
            (100, vec![0; 5]),
        ];
        assert_eq!(secs(&plan), steps);
        assert_eq!(
            (0..5).map(|site| plan.gone(site).map(|at| at.as_secs())).collect::<Vec<_>>(),
            [None, Some(80), Some(60), Some(40), Some(20)]
        );
    }

    #[test]
    fn three_and_two_are_apart_for_half_of_the_time() {
        let plan = Plan::new(Some(Fault::Partition), 5, TIME);
        assert_eq!(secs(&plan), [(25, vec![0, 0, 0, 1, 1]), (75, vec![0; 5])]);
        assert_eq!(plan.gone(4), None);
        assert!(Plan::new(None, 5, TIME).steps.is_empty());
    }
}
