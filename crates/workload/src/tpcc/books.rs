//! What clients were told: acknowledged orders and payments, and those whose outcome nobody knows.

use crate::session::Attempted;
use std::collections::{BTreeMap, BTreeSet};

/// Each client's payments have numbers of their own: so many.
const IDS_PER_CLIENT: i64 = 1 << 32;
/// And each run's: so many.
const IDS_PER_RUN: i64 = 1 << 44;

/// A warehouse's number and a district's.
pub(super) type DistrictId = (i64, i64);

/// See the module.
#[derive(Default)]
pub(super) struct Books {
    before: Before,
    clients: i64,
    pub orders: BTreeMap<DistrictId, Orders>,
    /// By warehouse.
    pub payments: BTreeMap<i64, Payments>,
}

/// What there was when the run began.
#[derive(Default)]
pub(super) struct Before {
    /// Each district's next order.
    pub next_orders: BTreeMap<DistrictId, i64>,
    /// The largest number of a history row.
    pub last_id: i64,
}

#[derive(Default)]
pub(super) struct Orders {
    pub acknowledged: i64,
    pub doubtful: i64,
}

#[derive(Default)]
pub(super) struct Payments {
    pub acknowledged: BTreeSet<i64>,
    pub doubtful: BTreeSet<i64>,
}

impl Books {
    /// A run begins.
    pub fn begin(&mut self, before: Before) {
        *self = Books { before, ..Books::default() };
    }
    /// Payments of this run have this number or a larger one.
    pub fn first_id(&self) -> i64 {
        (self.before.last_id / IDS_PER_RUN + 1) * IDS_PER_RUN
    }
    /// Below the numbers of one more client's payments.
    pub fn next_client(&mut self) -> i64 {
        self.clients += 1;
        self.first_id() + (self.clients - 1) * IDS_PER_CLIENT
    }
    /// A district's next order when the run began.
    pub fn next_order(&self, district: DistrictId) -> Option<i64> {
        self.before.next_orders.get(&district).copied()
    }

    pub fn ordered<T>(&mut self, warehouse: i64, district: i64, attempted: &Attempted<T>) {
        let orders = self.orders.entry((warehouse, district)).or_default();
        match attempted {
            Attempted::Committed(_) => orders.acknowledged += 1,
            Attempted::Unknown(..) => orders.doubtful += 1,
            Attempted::Failed(_) => {}
        }
    }

    pub fn paid<T>(&mut self, warehouse: i64, id: i64, attempted: &Attempted<T>) {
        let payments = self.payments.entry(warehouse).or_default();
        match attempted {
            Attempted::Committed(_) => payments.acknowledged.insert(id),
            Attempted::Unknown(..) => payments.doubtful.insert(id),
            Attempted::Failed(_) => false,
        };
    }
}
