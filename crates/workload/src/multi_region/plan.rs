//! Which rows a transaction accesses, and how.

use super::MultiRegionConfig;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// The paper's three mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// 95 % reads, 5 % writes.
    ReadHeavy,
    /// Half reads, half reads followed by a write of the same row.
    ReadModifyWrite,
    /// Reads only, in transactions that say so.
    ReadOnly,
}

/// The regions that a transaction touches, as places among the cluster's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// The client's.
    pub own: usize,
    /// The others, ascending.
    pub others: Vec<usize>,
}

impl Route {
    /// How many.
    pub fn regions(&self) -> usize {
        1 + self.others.len()
    }
}

/// What is done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// One statement that adds one.
    Write,
    /// Reads the value, then writes one more.
    ReadModifyWrite,
}

/// One row's access. The region is its place among the cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) region: usize,
    pub(super) id: i64,
    pub(super) access: Access,
}

/// Which regions a client's transaction touches.
pub(super) fn route_of(own: usize, steps: &[Step]) -> Route {
    let mut others: Vec<usize> = steps.iter().map(|step| step.region).filter(|region| *region != own).collect();
    others.sort_unstable();
    others.dedup();
    Route { own, others }
}

/// How many regions a transaction touches.
#[cfg(test)]
pub(super) fn regions_of(steps: &[Step]) -> usize {
    route_of(steps[0].region, steps).regions()
}

/// Plans the transactions of a client.
pub(super) struct Planner<'c> {
    config: &'c MultiRegionConfig,
    /// The client's region.
    own: usize,
    regions: usize,
    /// How likely it is, among transactions over several regions, that one touches at most 2, 3, …
    /// of them.
    cumulative: Vec<f64>,
}

impl<'c> Planner<'c> {
    pub(super) fn new(config: &'c MultiRegionConfig, own: usize, regions: usize) -> Planner<'c> {
        assert!(own < regions, "the client is in one of the regions");
        // A region without a row is not touched.
        let most = regions.min(config.rows_per_transaction);
        let weights: Vec<f64> = (1..most).map(|rank| (rank as f64).powf(-config.zipf_exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let cumulative = weights.iter().map(|weight| {
            sum += weight / total;
            sum
        });
        Planner { config, own, regions, cumulative: cumulative.collect() }
    }

    /// The steps of one transaction, the client's own region first.
    pub(super) fn plan(&self, rng: &mut SmallRng) -> Vec<Step> {
        let count = self.count(rng);
        let mut others: Vec<usize> = (0..self.regions).filter(|region| *region != self.own).collect();
        others.shuffle(rng);
        let touched = std::iter::once(self.own).chain(others).take(count);
        let (each, rest) = (self.config.rows_per_transaction / count, self.config.rows_per_transaction % count);
        let mut steps = Vec::with_capacity(self.config.rows_per_transaction);
        for (index, region) in touched.enumerate() {
            for id in self.rows(each + usize::from(index < rest), rng) {
                steps.push(Step { region, id, access: self.access(rng) });
            }
        }
        steps
    }

    fn count(&self, rng: &mut SmallRng) -> usize {
        if self.cumulative.is_empty() || !rng.random_bool(self.config.several_regions_share) {
            return 1;
        }
        let drawn: f64 = rng.random();
        let rank = self.cumulative.iter().position(|share| drawn < *share);
        // Rounding may leave the last share a little below one.
        2 + rank.unwrap_or(self.cumulative.len() - 1)
    }

    /// One hot row and otherwise cold ones, none twice.
    fn rows(&self, count: usize, rng: &mut SmallRng) -> Vec<i64> {
        let (hot, rows) = (self.config.hot_rows_per_region, self.config.rows_per_region);
        let mut ids = vec![rng.random_range(0..hot)];
        while ids.len() < count {
            let id = rng.random_range(hot..rows);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    fn access(&self, rng: &mut SmallRng) -> Access {
        match self.config.mix {
            Mix::ReadHeavy if rng.random_bool(0.05) => Access::Write,
            Mix::ReadModifyWrite if rng.random_bool(0.5) => Access::ReadModifyWrite,
            _ => Access::Read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::{BTreeMap, BTreeSet};

    fn config(mix: Mix, several_regions_share: f64) -> MultiRegionConfig {
        MultiRegionConfig {
            mix,
            several_regions_share,
            rows_per_region: 40,
            hot_rows_per_region: 5,
            ..MultiRegionConfig::default()
        }
    }

    fn plans(config: &MultiRegionConfig, regions: usize, count: usize) -> Vec<Vec<Step>> {
        let mut rng = SmallRng::seed_from_u64(11);
        let planner = Planner::new(config, 1, regions);
        (0..count).map(|_| planner.plan(&mut rng)).collect()
    }

    #[test]
    fn rows_are_distinct_divided_evenly_and_one_of_each_region_is_hot() {
        for steps in plans(&config(Mix::ReadModifyWrite, 0.5), 4, 500) {
            assert_eq!(steps.len(), 8);
            assert_eq!(steps[0].region, 1, "the client's own region is among them, first");
            let rows: BTreeSet<(usize, i64)> = steps.iter().map(|step| (step.region, step.id)).collect();
            assert_eq!(rows.len(), 8, "{steps:?}");
            let mut per_region: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
            for (region, id) in rows {
                assert!((0..40).contains(&id));
                let (all, hot) = per_region.entry(region).or_default();
                *all += 1;
                *hot += usize::from(id < 5);
            }
            assert!(per_region.values().all(|(_, hot)| *hot == 1), "{per_region:?}");
            let sizes = per_region.values().map(|(all, _)| *all);
            assert!(sizes.clone().max().zip(sizes.min()).is_some_and(|(most, least)| most - least <= 1), "{per_region:?}");
        }
    }

    #[test]
    fn the_number_of_regions_is_zipfian_among_the_share_that_has_several() {
        let mut counts = [0.0_f64; 5];
        for steps in plans(&config(Mix::ReadOnly, 0.5), 4, 20_000) {
            counts[regions_of(&steps)] += 1.0;
        }
        assert!((counts[1] / 20_000.0 - 0.5).abs() < 0.02, "{counts:?}");
        assert!((counts[2] / counts[3] - 2f64.powf(0.99)).abs() < 0.15, "{counts:?}");
        assert!((counts[2] / counts[4] - 3f64.powf(0.99)).abs() < 0.3, "{counts:?}");
    }

    #[test]
    fn shares_of_0_and_1_are_exact_and_one_region_is_enough() {
        assert!(plans(&config(Mix::ReadOnly, 0.0), 3, 300).iter().all(|steps| regions_of(steps) == 1));
        assert!(plans(&config(Mix::ReadOnly, 1.0), 3, 300).iter().all(|steps| regions_of(steps) >= 2));
        let alone = config(Mix::ReadOnly, 1.0);
        let mut rng = SmallRng::seed_from_u64(1);
        assert_eq!(regions_of(&Planner::new(&alone, 0, 1).plan(&mut rng)), 1);
    }

    #[test]
    fn the_mixes_have_their_shares_of_writes() {
        let share = |mix, access| {
            let all: Vec<Step> = plans(&config(mix, 0.1), 3, 2_000).concat();
            all.iter().filter(|step| step.access == access).count() as f64 / all.len() as f64
        };
        assert!((share(Mix::ReadHeavy, Access::Write) - 0.05).abs() < 0.01);
        assert!((share(Mix::ReadHeavy, Access::Read) - 0.95).abs() < 0.01);
        assert!((share(Mix::ReadModifyWrite, Access::ReadModifyWrite) - 0.5).abs() < 0.02);
        assert_eq!(share(Mix::ReadOnly, Access::Read), 1.0);
    }
}
