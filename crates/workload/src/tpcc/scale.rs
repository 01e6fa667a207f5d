//! How many of everything, and who is at home where.

use super::TpccConfig;
use crate::run::Worker;
use crate::schema;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::Arc;

/// Districts of a warehouse, at any scale.
pub(super) const DISTRICTS: i64 = 10;

/// Cardinalities and homes. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The schema of each region.
    schemas: Arc<[String]>,
    regions: Arc<[String]>,
    pub warehouses_per_region: i64,
    /// Also the stock of a warehouse.
    pub items: i64,
    /// Of a district; also its orders to begin with.
    pub customers: i64,
    /// Of the orders to begin with, those that have been delivered.
    pub delivered: i64,
}

impl Layout {
    pub fn new(regions: &[String], config: &TpccConfig) -> Layout {
        let part = |of: f64, least: i64| ((of * config.scale).round() as i64).max(least);
        let customers = part(3_000.0, 10);
        Layout {
            schemas: regions.iter().map(|region| schema::schema_of(region)).collect(),
            regions: regions.into(),
            warehouses_per_region: config.warehouses_per_region,
            // An order has up to 15 lines.
            items: part(100_000.0, 20),
            customers,
            delivered: customers * 7 / 10,
        }
    }

    pub fn regions(&self) -> usize {
        self.schemas.len()
    }
    pub fn region(&self, at: usize) -> &str {
        &self.regions[at]
    }
    /// Which region's warehouse it is. Warehouses are numbered from 1 on, region by region.
    pub fn home(&self, warehouse: i64) -> usize {
        ((warehouse - 1) / self.warehouses_per_region) as usize
    }
    /// The schema with a warehouse's rows.
    pub fn schema(&self, warehouse: i64) -> &str {
        &self.schemas[self.home(warehouse)]
    }
    pub fn schema_at(&self, region: usize) -> &str {
        &self.schemas[region]
    }
    pub fn warehouses_of(&self, region: usize) -> std::ops::RangeInclusive<i64> {
        let before = region as i64 * self.warehouses_per_region;
        before + 1..=before + self.warehouses_per_region
    }
    pub fn warehouses(&self) -> i64 {
        self.regions() as i64 * self.warehouses_per_region
    }

    /// Clients of a region are spread over its warehouses.
    pub fn warehouse_of_client(&self, worker: &Worker) -> i64 {
        let region = self.regions.iter().position(|r| *r == worker.region).expect("a region of the cluster");
        // Ids go round the regions.
        let turn = i64::from(worker.id) / self.regions() as i64;
        self.warehouses_of(region).start() + turn % self.warehouses_per_region
    }

    /// Another warehouse: of another region if there is one, else another one of this region, else
    /// this one.
    pub fn other_warehouse(&self, warehouse: i64, rng: &mut SmallRng) -> i64 {
        let own = match self.regions() {
            1 => warehouse..=warehouse,
            _ => self.warehouses_of(self.home(warehouse)),
        };
        let others = self.warehouses() - (own.end() - own.start() + 1);
        if others == 0 {
            return warehouse;
        }
        let drawn = rng.random_range(1..=others);
        if drawn < *own.start() { drawn } else { drawn + own.end() - own.start() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn layout(regions: &[&str], warehouses_per_region: i64, scale: f64) -> Layout {
        let regions: Vec<String> = regions.iter().map(|r| r.to_string()).collect();
        Layout::new(&regions, &TpccConfig { warehouses_per_region, scale, ..TpccConfig::default() })
    }

    #[test]
    fn full_scale_is_the_standards() {
        let full = layout(&["a"], 1, 1.0);
        assert_eq!((full.items, full.customers, full.delivered), (100_000, 3_000, 2_100));
        let small = layout(&["a"], 1, 0.001);
        assert!(small.items >= 15 && small.customers >= 10 && small.delivered < small.customers);
    }

    #[test]
    fn every_warehouse_has_one_home() {
        let layout = layout(&["eu-1", "us-1", "asia-1"], 4, 1.0);
        for region in 0..3 {
            assert!(layout.warehouses_of(region).all(|w| layout.home(w) == region && (1..=12).contains(&w)));
        }
        assert_eq!((layout.warehouses(), layout.schema(5)), (12, "us_1"));
    }

    #[test]
    fn other_warehouses_are_of_other_regions_where_there_are_some() {
        let mut rng = SmallRng::seed_from_u64(5);
        let mut drawn =
            |layout: &Layout, from: i64| -> BTreeSet<i64> { (0..500).map(|_| layout.other_warehouse(from, &mut rng)).collect() };
        assert_eq!(drawn(&layout(&["a", "b", "c"], 2, 1.0), 3), BTreeSet::from([1, 2, 5, 6]));
        assert_eq!(drawn(&layout(&["a"], 3, 1.0), 2), BTreeSet::from([1, 3]));
        assert_eq!(drawn(&layout(&["a"], 1, 1.0), 1), BTreeSet::from([1]));
    }

    #[test]
    fn clients_are_spread_over_their_regions_warehouses() {
        let layout = layout(&["a", "b"], 2, 1.0);
        let of = |id, region: &str| layout.warehouse_of_client(&Worker { id, region: region.into() });
        assert_eq!([of(0, "a"), of(2, "a"), of(4, "a")], [1, 2, 1]);
        assert_eq!([of(1, "b"), of(3, "b")], [3, 4]);
    }
}
