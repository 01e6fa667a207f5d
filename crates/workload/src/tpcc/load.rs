//! The rows to begin with (clause 4.3.3), in INSERTs of many rows.
//!
//! They are the same in every run, and an INSERT whose rows are there already counts as done, so a
//! load that was interrupted can be run again. A warehouse's own row is written last: a warehouse
//! that has it is complete, and may have been worked on.

use super::names;
use super::scale::{DISTRICTS, Layout};
use super::{check, money};
use crate::run::{Context, Progress};
use crate::schema;
use crate::session::Session;
use meridian_base::Result;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows per INSERT: large enough that a round trip does not show, small enough to be one entry of a
/// log among others.
const BATCH: usize = 200;
/// One customer in ten has bad credit.
const BAD_CREDIT_SHARE: f64 = 0.1;

/// Loads all regions at once, each one's tables through its own node.
pub(super) async fn load(context: &Context, layout: &Layout, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
    let per_warehouse =
        layout.items + DISTRICTS * (1 + layout.customers * (1 + 1 + 1 + 10) + layout.customers - layout.delivered);
    let total = layout.warehouses() * per_warehouse + layout.items;
    let rows_done = AtomicU64::new(0);
    let each = (0..layout.regions()).map(|region| {
        let rows_done = &rows_done;
        async move {
            let session = context.session(layout.region(region), super::DATABASE);
            let told = Told { rows_done, rows_total: total as u64, progress };
            let mut loader = Loader { session, schema: layout.schema_at(region), layout, told };
            let there = check::warehouses_there(context, layout, region).await?;
            let missing: Vec<i64> = layout.warehouses_of(region).filter(|w| !there.contains(w)).collect();
            if region == 0 && !missing.is_empty() {
                loader.items().await?;
            }
            for warehouse in missing {
                loader.warehouse(warehouse).await?;
            }
            Ok(())
        }
    });
    futures::future::try_join_all(each).await.map(drop)
}

/// Who hears how far it is. The number of an order's lines is random, so the total is what is
/// expected.
struct Told<'l> {
    rows_done: &'l AtomicU64,
    rows_total: u64,
    progress: &'l (dyn Fn(Progress) + Send + Sync),
}

struct Loader<'l> {
    session: Session,
    schema: &'l str,
    layout: &'l Layout,
    told: Told<'l>,
}

impl Loader<'_> {
    /// Rows of a table of this region.
    async fn insert(&mut self, table: &str, columns: &str, rows: &[String]) -> Result<()> {
        self.insert_into(&format!("{}.{table}", self.schema), columns, rows).await
    }

    async fn insert_into(&mut self, table: &str, columns: &str, rows: &[String]) -> Result<()> {
        for batch in rows.chunks(BATCH) {
            let sql = format!("INSERT INTO {table} ({columns}) VALUES {}", batch.join(", "));
            schema::run(&mut self.session, &sql).await?;
            let Told { rows_done, rows_total, progress } = &self.told;
            let rows_done = rows_done.fetch_add(batch.len() as u64, Ordering::Relaxed) + batch.len() as u64;
            progress(Progress { rows_done: rows_done.min(*rows_total), rows_total: *rows_total });
        }
        Ok(())
    }

    async fn items(&mut self) -> Result<()> {
        let mut rng = SmallRng::seed_from_u64(0);
        let item = |id: i64, rng: &mut SmallRng| {
            let (image, name) = (rng.random_range(1..=10_000), names::text(14..=24, rng));
            let price = money(rng.random_range(100..=10_000)).to_string();
            format!("({id}, {image}, '{name}', {price}, '{}')", names::data(rng))
        };
        for first in (1..=self.layout.items).step_by(BATCH) {
            let last = (first + BATCH as i64 - 1).min(self.layout.items);
            let rows: Vec<String> = (first..=last).map(|id| item(id, &mut rng)).collect();
            self.insert_into("item", "i_id, i_im_id, i_name, i_price, i_data", &rows).await?;
        }
        Ok(())
    }

    async fn warehouse(&mut self, w: i64) -> Result<()> {
        let mut rng = SmallRng::seed_from_u64(w as u64);
        self.stock(w, &mut rng).await?;
        for d in 1..=DISTRICTS {
            self.customers(w, d, &mut rng).await?;
            self.orders(w, d, &mut rng).await?;
        }
        let columns = "d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id";
        let district = |d: i64, rng: &mut SmallRng| {
            let (name, next) = (names::text(6..=10, rng), self.layout.customers + 1);
            format!("({w}, {d}, '{name}', {}, {}, 30000.00, {next})", address(rng), tax(rng))
        };
        let rows: Vec<String> = (1..=DISTRICTS).map(|d| district(d, &mut rng)).collect();
        self.insert("district", columns, &rows).await?;
        let columns = "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd";
        let (name, address) = (names::text(6..=10, &mut rng), address(&mut rng));
        // What its districts have together.
        let row = format!("({w}, '{name}', {address}, {}, {}.00)", tax(&mut rng), DISTRICTS * 30_000);
        self.insert("warehouse", columns, &[row]).await
    }

    async fn stock(&mut self, w: i64, rng: &mut SmallRng) -> Result<()> {
        let dists: Vec<String> = (1..=10).map(|d| format!("s_dist_{d:02}")).collect();
        let columns = format!("s_w_id, s_i_id, s_quantity, {}, s_ytd, s_order_cnt, s_remote_cnt, s_data", dists.join(", "));
        let row = |i: i64, rng: &mut SmallRng| {
            let quantity = rng.random_range(10..=100);
            let dists: Vec<String> = (0..10).map(|_| format!("'{}'", names::text(24..=24, rng))).collect();
            format!("({w}, {i}, {quantity}, {}, 0, 0, 0, '{}')", dists.join(", "), names::data(rng))
        };
        for first in (1..=self.layout.items).step_by(BATCH) {
            let last = (first + BATCH as i64 - 1).min(self.layout.items);
            let rows: Vec<String> = (first..=last).map(|i| row(i, rng)).collect();
            self.insert("stock", &columns, &rows).await?;
        }
        Ok(())
    }

    /// The customers of a district, and what each of them has paid.
    async fn customers(&mut self, w: i64, d: i64, rng: &mut SmallRng) -> Result<()> {
        let customers = 1..=self.layout.customers;
        let row = |c: i64, rng: &mut SmallRng| {
            let last = names::last_name_of(self.layout, c, rng);
            let (first, address) = (names::text(8..=16, rng), address(rng));
            let (phone, data) = (names::digits(16, rng), names::text(300..=500, rng));
            let credit = if rng.random_bool(BAD_CREDIT_SHARE) { "BC" } else { "GC" };
            let discount = rng.random_range(0..=5_000);
            format!(
                "({w}, {d}, {c}, '{first}', 'OE', '{last}', {address}, '{phone}', now(), '{credit}', 50000.00, \
                 0.{discount:04}, -10.00, 10.00, 1, 0, '{data}')"
            )
        };
        let rows: Vec<String> = customers.clone().map(|c| row(c, rng)).collect();
        let columns = "c_w_id, c_d_id, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                       c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, \
                       c_delivery_cnt, c_data";
        self.insert("customer", columns, &rows).await?;
        let before = (d - 1) * self.layout.customers;
        let row = |c: i64, rng: &mut SmallRng| {
            format!("({w}, {}, {d}, {w}, {d}, {c}, now(), 10.00, '{}')", before + c, names::text(12..=24, rng))
        };
        let rows: Vec<String> = customers.map(|c| row(c, rng)).collect();
        self.insert("history", "h_w_id, h_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, h_amount, h_data", &rows).await
    }

    /// An order of every customer, in random order; the last three in ten are not delivered yet.
    async fn orders(&mut self, w: i64, d: i64, rng: &mut SmallRng) -> Result<()> {
        let mut customers: Vec<i64> = (1..=self.layout.customers).collect();
        customers.shuffle(rng);
        let (mut orders, mut lines, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (o, c) in (1..).zip(customers) {
            let is_delivered = o <= self.layout.delivered;
            let carrier = if is_delivered { rng.random_range(1..=10).to_string() } else { "NULL".to_string() };
            let count = rng.random_range(5..=15);
            orders.push(format!("({w}, {d}, {o}, {c}, now(), {carrier}, {count}, 1)"));
            for number in 1..=count {
                let item = rng.random_range(1..=self.layout.items);
                let (delivery, amount) = match is_delivered {
                    true => ("now()", money(0)),
                    false => ("NULL", money(rng.random_range(1..=999_999))),
                };
                let info = names::text(24..=24, rng);
                lines.push(format!("({w}, {d}, {o}, {number}, {item}, {w}, {delivery}, 5, {amount}, '{info}')"));
            }
            if !is_delivered {
                new.push(format!("({w}, {d}, {o})"));
            }
        }
        let columns = "o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local";
        self.insert("orders", columns, &orders).await?;
        let columns = "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, \
                       ol_dist_info";
        self.insert("order_line", columns, &lines).await?;
        self.insert("new_order", "no_w_id, no_d_id, no_o_id", &new).await
    }
}

/// Streets, city, state and zip.
fn address(rng: &mut SmallRng) -> String {
    let mut street = || names::text(10..=20, rng);
    let (one, two, city) = (street(), street(), street());
    let state = names::text(2..=2, rng).to_uppercase();
    format!("'{one}', '{two}', '{city}', '{state}', '{}11111'", names::digits(4, rng))
}

fn tax(rng: &mut SmallRng) -> String {
    format!("0.{:04}", rng.random_range(0..=2_000))
}
