//! TPC-C over regions: a wholesaler whose warehouses are at home in several regions (TPC-C
//! standard, revision 5.11).
//!
//! Each region has the nine tables for the warehouses that are at home in it; an order or a payment
//! that concerns another warehouse's stock or customer writes that region's tables in the same
//! transaction. The standard lets one in a hundred order lines and 15 in a hundred payments go to
//! another warehouse; here that is always one of another region, where there is one. The catalogue
//! of items, which never changes, is a GLOBAL table: read in every region.
//!
//! Cardinalities, distributions and transactions are the standard's; [`TpccConfig::scale`] shrinks
//! what belongs to one warehouse. Keying and think times are left out unless asked for. What
//! differs: amounts the terminal would only display are read but not added up, and a history row
//! has a number, so that the check can tell whether each payment is there once.
//!
//! * [`scale`]: how many of everything, and who is at home where.
//! * [`tables`]: the schema.
//! * [`load`]: the rows to begin with.
//! * [`names`]: the standard's random text and its non-uniform numbers.
//! * [`new_order`], [`payment`], [`order_status`], [`delivery`], [`stock_level`]: the transactions.
//! * [`books`]: what clients were told.
//! * [`check`]: consistency conditions 1 to 4 (clause 3.3.2), and the books.

mod books;
mod check;
mod delivery;
mod load;
mod names;
mod new_order;
mod order_status;
mod payment;
mod scale;
mod stock_level;
mod tables;

use crate::client::Value;
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::session::{Attempted, Mode, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use books::Books;
use meridian_base::{Error, Result};
use names::Constants;
use rand::Rng;
use rand::rngs::SmallRng;
use scale::Layout;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "tpcc";
/// The transactions, as they are called in tables of results.
pub const TRANSACTIONS: [&str; 5] = ["new order", "payment", "order status", "delivery", "stock level"];

/// The shape of the workload.
#[derive(Clone, Debug)]
pub struct TpccConfig {
    pub warehouses_per_region: i64,
    /// The part of a warehouse's customers, orders and stock that there is: 1.0 is the standard's.
    pub scale: f64,
    /// Share of order lines that another region's warehouse supplies.
    pub remote_line_share: f64,
    /// Share of payments by another region's customer.
    pub remote_payment_share: f64,
    /// Keying and think times as multiples of the standard's (clause 5.2.5.7).
    pub wait: f64,
}

impl Default for TpccConfig {
    fn default() -> TpccConfig {
        TpccConfig { warehouses_per_region: 1, scale: 1.0, remote_line_share: 0.01, remote_payment_share: 0.15, wait: 0.0 }
    }
}

/// The workload.
pub struct Tpcc {
    config: TpccConfig,
    books: Mutex<Books>,
}

/// A terminal's transaction: its inputs.
enum Business {
    NewOrder(Arc<new_order::NewOrder>),
    Payment(Arc<payment::Payment>),
    OrderStatus(Arc<order_status::OrderStatus>),
    Delivery(delivery::Delivery),
    StockLevel(stock_level::StockLevel),
}

impl Business {
    /// Clause 5.2.4.2: the least share of each, and the rest for new orders.
    fn draw(layout: &Layout, config: &TpccConfig, constants: &Constants, warehouse: i64, rng: &mut SmallRng) -> Business {
        match rng.random_range(0..100) {
            0..=44 => Business::NewOrder(Arc::new(new_order::NewOrder::draw(layout, config, constants, warehouse, rng))),
            45..=87 => Business::Payment(Arc::new(payment::Payment::draw(layout, config, constants, warehouse, rng))),
            88..=91 => Business::OrderStatus(Arc::new(order_status::OrderStatus::draw(layout, constants, warehouse, rng))),
            92..=95 => Business::Delivery(delivery::Delivery { warehouse, carrier: rng.random_range(1..=10) }),
            _ => Business::StockLevel(stock_level::StockLevel::draw(warehouse, rng)),
        }
    }

    fn name(&self) -> &'static str {
        TRANSACTIONS[match self {
            Business::NewOrder(_) => 0,
            Business::Payment(_) => 1,
            Business::OrderStatus(_) => 2,
            Business::Delivery(_) => 3,
            Business::StockLevel(_) => 4,
        }]
    }

    /// Keying and mean think time in seconds (clause 5.2.5.7).
    fn waits(&self) -> (f64, f64) {
        match self {
            Business::NewOrder(_) => (18.0, 12.0),
            Business::Payment(_) => (3.0, 12.0),
            Business::OrderStatus(_) => (2.0, 10.0),
            Business::Delivery(_) | Business::StockLevel(_) => (2.0, 5.0),
        }
    }

    fn locality(&self, layout: &Layout) -> Locality {
        let is_remote = match self {
            Business::NewOrder(order) => order.is_remote(layout),
            Business::Payment(payment) => payment.is_remote(layout),
            _ => false,
        };
        if is_remote { Locality::Other } else { Locality::Own }
    }
}

impl Tpcc {
    /// A wholesaler nobody has worked for yet.
    pub fn new(config: TpccConfig) -> Tpcc {
        assert!(config.warehouses_per_region > 0, "a region has a warehouse");
        assert!(config.scale > 0.0 && config.scale <= 1.0, "a scale is a part of the standard's");
        Tpcc { config, books: Mutex::default() }
    }

    fn lock_books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no panic while noting")
    }

    fn layout(&self, context: &Context) -> Layout {
        Layout::new(&context.connector.regions(), &self.config)
    }

    /// So many new orders, one after the other, of warehouses of the region and without lines from
    /// others.
    pub async fn local_orders(&self, context: &Context, region: &str, count: u32) -> Result<()> {
        let layout = self.layout(context);
        let mut rng = context.rng(0);
        let mut session = context.session(region, DATABASE);
        let constants = Constants::of_run(context.seed);
        let warehouse = layout.warehouse_of_client(&Worker { id: 0, region: region.to_string() });
        for _ in 0..count {
            let order = loop {
                let order = new_order::NewOrder::draw(&layout, &self.config, &constants, warehouse, &mut rng);
                if !order.is_remote(&layout) {
                    break Business::NewOrder(Arc::new(order));
                }
            };
            match self.perform(&mut session, &layout, &order, 0, &mut rng).await {
                Attempted::Committed(()) => {}
                Attempted::Failed(e) | Attempted::Unknown(e, _) => return Err(e),
            }
        }
        Ok(())
    }

    /// Runs a transaction until it has ended, and notes what the check needs to know.
    async fn perform(
        &self,
        session: &mut Session,
        layout: &Layout,
        business: &Business,
        payment_id: i64,
        rng: &mut SmallRng,
    ) -> Attempted<()> {
        match business {
            Business::NewOrder(order) => {
                let attempted = session
                    .transaction(rng, |statements| {
                        let (layout, order) = (layout.clone(), order.clone());
                        Box::pin(async move { order.run(statements, &layout).await })
                    })
                    .await;
                let attempted = match attempted {
                    // The one in a hundred whose last item does not exist has ended as it should
                    // (clause 2.4.2.3).
                    Attempted::Failed(error) if new_order::is_meant(&error) => return Attempted::Committed(()),
                    other => other.map(drop),
                };
                self.lock_books().ordered(order.warehouse, order.district, &attempted);
                attempted
            }
            Business::Payment(payment) => {
                let attempted = session
                    .transaction(rng, |statements| {
                        let (layout, payment) = (layout.clone(), payment.clone());
                        Box::pin(async move { payment.run(statements, &layout, payment_id).await })
                    })
                    .await;
                self.lock_books().paid(payment.warehouse, payment_id, &attempted);
                attempted
            }
            Business::OrderStatus(status) => {
                session
                    .transaction_in(Mode::ReadOnly, rng, |statements| {
                        let (layout, status) = (layout.clone(), status.clone());
                        Box::pin(async move { status.run(statements, &layout).await })
                    })
                    .await
            }
            Business::Delivery(delivery) => {
                session
                    .transaction(rng, |statements| {
                        let (layout, delivery) = (layout.clone(), *delivery);
                        Box::pin(async move { delivery.run(statements, &layout).await })
                    })
                    .await
            }
            Business::StockLevel(level) => {
                session
                    .transaction_in(Mode::ReadOnly, rng, |statements| {
                        let (layout, level) = (layout.clone(), *level);
                        Box::pin(async move { level.run(statements, &layout).await })
                    })
                    .await
            }
        }
    }
}

#[async_trait]
impl Workload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        let layout = self.layout(context);
        tables::create(context, &layout).await?;
        load::load(context, &layout, progress).await?;
        // Others may have worked on these rows before; only what happens from here on is judged.
        let before = check::read_before(context, &layout).await?;
        self.lock_books().begin(before);
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let layout = self.layout(context);
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let constants = Constants::of_run(context.seed);
        let warehouse = layout.warehouse_of_client(&worker);
        let mut payment_id = self.lock_books().next_client();
        while !context.stop.is_stopped() {
            let business = Business::draw(&layout, &self.config, &constants, warehouse, &mut rng);
            let (keying, thinking) = business.waits();
            rest(keying * self.config.wait, context).await;
            payment_id += 1;
            let started = context.timer.now_micros();
            let attempted = self.perform(&mut session, &layout, &business, payment_id, &mut rng).await;
            let (operation, locality) = (business.name(), business.locality(&layout));
            let key = StatsKey { region: worker.region.clone(), operation, locality };
            crate::run::account(context, &mut session, &key, started, &attempted).await?;
            // Exponentially distributed, at most ten times the mean (clause 5.2.5.4).
            let times = if self.config.wait > 0.0 { (-rng.random::<f64>().max(1e-9).ln()).min(10.0) } else { 0.0 };
            rest(times * thinking * self.config.wait, context).await;
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let layout = self.layout(context);
        let first_id = self.lock_books().first_id();
        let found = check::read(context, &layout, first_id).await?;
        let mut verdict = Verdict::default();
        check::judge(&found, &self.lock_books(), &mut verdict);
        Ok(verdict)
    }
}

/// Sleeps, but not through the end of the run.
async fn rest(seconds: f64, context: &Context) {
    const STEP: Duration = Duration::from_millis(500);
    let mut left = Duration::from_secs_f64(seconds);
    while !left.is_zero() && !context.stop.is_stopped() {
        let step = left.min(STEP);
        tokio::time::sleep(step).await;
        left -= step;
    }
}

/// An amount of money in cents as SQL has it.
fn money(cents: i64) -> Value {
    Value::Text(format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100))
}

/// The reverse of [`money`].
fn cents(text: &str) -> Result<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (units, rest) = digits.split_once('.').unwrap_or((digits, "00"));
    // Not signed: a second minus is none.
    let number = |text: &str| text.parse::<u64>().ok().and_then(|n| i64::try_from(n).ok());
    let parsed = number(units).zip(number(rest)).filter(|_| rest.len() == 2);
    let (units, rest) = parsed.ok_or_else(|| Error::internal(format!("not an amount of money: {text}")))?;
    Ok(if text.starts_with('-') { -(units * 100 + rest) } else { units * 100 + rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_and_read() {
        for (amount, text) in [(0, "0.00"), (7, "0.07"), (-1_000, "-10.00"), (30_000_000, "300000.00"), (-5, "-0.05")] {
            assert_eq!(money(amount), Value::Text(text.to_string()));
            assert_eq!(cents(text), Ok(amount));
        }
        assert!(["", "1.5", "1.555", "x.10", "--1.00"].iter().all(|text| cents(text).is_err()));
        assert_eq!(cents("12"), Ok(1_200));
    }
}
