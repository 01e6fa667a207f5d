//! The Stock-Level transaction (clause 2.8): how many of the items sold last are running out.

use super::names;
use super::scale::Layout;
use crate::session::Statements;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;

/// How many orders are looked at.
const ORDERS: i64 = 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct StockLevel {
    warehouse: i64,
    district: i64,
    threshold: i64,
}

impl StockLevel {
    pub fn draw(warehouse: i64, rng: &mut SmallRng) -> StockLevel {
        StockLevel { warehouse, district: names::district(rng), threshold: rng.random_range(10..=20) }
    }

    pub async fn run(&self, statements: &mut Statements<'_>, layout: &Layout) -> Result<()> {
        let schema = layout.schema(self.warehouse);
        let (w, d) = (self.warehouse, self.district);
        let sql = format!("SELECT d_next_o_id FROM {schema}.district WHERE d_w_id = $1 AND d_id = $2");
        let next = statements.query(&sql, &[w.into(), d.into()]).await?.int(0, 0)?;
        let sql = format!(
            "SELECT count(DISTINCT s_i_id) FROM {schema}.order_line JOIN {schema}.stock ON s_w_id = $1 AND s_i_id = ol_i_id \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_quantity < $5"
        );
        let params = [w.into(), d.into(), (next - ORDERS).into(), next.into(), self.threshold.into()];
        statements.query(&sql, &params).await?.int(0, 0).map(drop)
    }
}
