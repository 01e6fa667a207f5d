//! The New-Order transaction (clause 2.4): a customer orders five to fifteen items, some from
//! another warehouse.

use super::names::{self, Constants};
use super::scale::Layout;
use super::{TpccConfig, cents, money};
use crate::client::Value;
use crate::session::Statements;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// Says that the order was to fail.
const MEANT: &str = "P0001";

#[derive(Debug)]
pub(super) struct NewOrder {
    pub warehouse: i64,
    pub district: i64,
    customer: i64,
    lines: Vec<Line>,
    /// The last item does not exist, and the order is rolled back: one in a hundred.
    is_invalid: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    supplier: i64,
    item: i64,
    quantity: i64,
}

/// Whether an order failed because it was to.
pub(super) fn is_meant(error: &Error) -> bool {
    error.sqlstate() == MEANT
}

impl NewOrder {
    pub fn draw(layout: &Layout, config: &TpccConfig, constants: &Constants, warehouse: i64, rng: &mut SmallRng) -> NewOrder {
        let line = |rng: &mut SmallRng| Line {
            supplier: match crate::run::chance(config.remote_line_share, rng) {
                true => layout.other_warehouse(warehouse, rng),
                false => warehouse,
            },
            item: constants.item(layout, rng),
            quantity: rng.random_range(1..=10),
        };
        let count = rng.random_range(5..=15);
        let mut lines: Vec<Line> = (0..count).map(|_| line(rng)).collect();
        // In one order over all clients, so that two orders of the same items wait for each other
        // once and not in a circle.
        lines.sort_unstable();
        let (district, customer) = (names::district(rng), constants.customer(layout, rng));
        NewOrder { warehouse, district, customer, lines, is_invalid: rng.random_bool(0.01) }
    }

    /// Whether another region supplies a line.
    pub fn is_remote(&self, layout: &Layout) -> bool {
        self.lines.iter().any(|line| layout.home(line.supplier) != layout.home(self.warehouse))
    }

    pub async fn run(&self, statements: &mut Statements<'_>, layout: &Layout) -> Result<()> {
        let schema = layout.schema(self.warehouse);
        let (w, d, c) = (self.warehouse, self.district, self.customer);
        let sql = format!("SELECT w_tax::text FROM {schema}.warehouse WHERE w_id = $1");
        statements.query(&sql, &[w.into()]).await?.text(0, 0)?;
        let sql = format!(
            "SELECT c_discount::text, c_last, c_credit FROM {schema}.customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
        );
        statements.query(&sql, &[w.into(), d.into(), c.into()]).await?.text(0, 0)?;
        let prices = self.prices(statements).await?;
        let mut sold = Vec::new();
        for line in &self.lines {
            sold.push(self.take(statements, layout, line).await?);
        }
        // The hottest row comes last: until the order commits, others of the district wait for it.
        let sql = format!(
            "UPDATE {schema}.district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_next_o_id, d_tax::text"
        );
        let order = statements.query(&sql, &[w.into(), d.into()]).await?.int(0, 0)? - 1;
        self.enter(statements, layout, order, &prices, &sold).await
    }

    /// The price of each item in cents; an error that [`is_meant`] where one does not exist and is
    /// not to.
    async fn prices(&self, statements: &mut Statements<'_>) -> Result<BTreeMap<i64, i64>> {
        let mut items: Vec<i64> = self.lines.iter().map(|line| line.item).collect();
        items.sort_unstable();
        items.dedup();
        if self.is_invalid {
            *items.last_mut().expect("an order has lines") = -1;
        }
        let marks: Vec<String> = (1..=items.len()).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT i_id, i_price::text, i_name, i_data FROM item WHERE i_id IN ({})", marks.join(", "));
        let params: Vec<Value> = items.iter().map(|item| (*item).into()).collect();
        let rows = statements.query(&sql, &params).await?;
        let prices: BTreeMap<i64, i64> =
            (0..rows.rows.len()).map(|row| Ok((rows.int(row, 0)?, cents(rows.text(row, 1)?)?))).collect::<Result<_>>()?;
        match (prices.len() == items.len(), self.is_invalid) {
            (true, _) => Ok(prices),
            (false, true) => Err(Error::sql(MEANT, "an item of the order does not exist")),
            (false, false) => Err(Error::retry("an item has not been heard of")),
        }
    }

    /// Takes a line's quantity from the stock, and gives the text that belongs on the order.
    async fn take(&self, statements: &mut Statements<'_>, layout: &Layout, line: &Line) -> Result<String> {
        let is_remote = i64::from(line.supplier != self.warehouse);
        let sql = format!(
            "UPDATE {}.stock SET s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 ELSE s_quantity - $3 + 91 END, \
             s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + {is_remote} \
             WHERE s_w_id = $1 AND s_i_id = $2 RETURNING s_dist_{:02}, s_data, s_quantity",
            layout.schema(line.supplier),
            self.district
        );
        let rows = statements.query(&sql, &[line.supplier.into(), line.item.into(), line.quantity.into()]).await?;
        Ok(rows.text(0, 0)?.to_string())
    }

    /// Writes the order's own rows.
    async fn enter(
        &self,
        statements: &mut Statements<'_>,
        layout: &Layout,
        order: i64,
        prices: &BTreeMap<i64, i64>,
        sold: &[String],
    ) -> Result<()> {
        let schema = layout.schema(self.warehouse);
        let (w, d) = (self.warehouse, self.district);
        let is_local = i64::from(self.lines.iter().all(|line| line.supplier == w));
        let sql = format!(
            "INSERT INTO {schema}.orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
             VALUES ($1, $2, $3, $4, now(), $5, $6)"
        );
        let count = self.lines.len() as i64;
        statements.query(&sql, &[w.into(), d.into(), order.into(), self.customer.into(), count.into(), is_local.into()]).await?;
        let sql = format!("INSERT INTO {schema}.new_order (no_w_id, no_d_id, no_o_id) VALUES ($1, $2, $3)");
        statements.query(&sql, &[w.into(), d.into(), order.into()]).await?;

        let mut params: Vec<Value> = vec![w.into(), d.into(), order.into()];
        let mut rows = Vec::new();
        for (number, (line, info)) in self.lines.iter().zip(sold).enumerate() {
            let amount = prices.get(&line.item).copied().unwrap_or(0) * line.quantity;
            let at = params.len();
            rows.push(format!("($1, $2, $3, {}, ${}, ${}, ${}, ${}, ${})", number + 1, at + 1, at + 2, at + 3, at + 4, at + 5));
            params.extend([
                line.item.into(),
                line.supplier.into(),
                line.quantity.into(),
                money(amount),
                Value::Text(info.clone()),
            ]);
        }
        let sql = format!(
            "INSERT INTO {schema}.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
             ol_amount, ol_dist_info) VALUES {}",
            rows.join(", ")
        );
        statements.query(&sql, &params).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn one_line_in_a_hundred_is_of_another_region_and_one_order_in_a_hundred_fails() {
        let regions: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let config = TpccConfig::default();
        let layout = Layout::new(&regions, &config);
        let mut rng = SmallRng::seed_from_u64(9);
        let constants = Constants::of_run(4);
        let orders: Vec<NewOrder> = (0..5_000).map(|_| NewOrder::draw(&layout, &config, &constants, 2, &mut rng)).collect();
        let lines: Vec<&Line> = orders.iter().flat_map(|order| &order.lines).collect();
        let remote = lines.iter().filter(|line| line.supplier != 2).count();
        let share = remote as f64 / lines.len() as f64;
        assert!((share - 0.01).abs() < 0.003, "{share}");
        assert!((lines.len() as f64 / 5_000.0 - 10.0).abs() < 0.2);
        let invalid = orders.iter().filter(|order| order.is_invalid).count();
        assert!((20..90).contains(&invalid), "{invalid}");
        assert!(orders.iter().all(|order| order.is_remote(&layout) == order.lines.iter().any(|line| line.supplier != 2)));
    }
}
