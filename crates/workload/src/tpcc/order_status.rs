//! The Order-Status transaction (clause 2.6): what a customer ordered last.

use super::names::{self, Constants};
use super::payment::Customer;
use super::scale::Layout;
use crate::session::Statements;
use meridian_base::Result;
use rand::rngs::SmallRng;

#[derive(Debug)]
pub(super) struct OrderStatus {
    warehouse: i64,
    district: i64,
    customer: Customer,
}

impl OrderStatus {
    pub fn draw(layout: &Layout, constants: &Constants, warehouse: i64, rng: &mut SmallRng) -> OrderStatus {
        OrderStatus { warehouse, district: names::district(rng), customer: Customer::draw(layout, constants, rng) }
    }

    pub async fn run(&self, statements: &mut Statements<'_>, layout: &Layout) -> Result<()> {
        let schema = layout.schema(self.warehouse);
        let (w, d) = (self.warehouse, self.district);
        let customer = self.customer.find(statements, schema, w, d).await?;
        let sql = format!(
            "SELECT c_balance::text, c_first, c_middle, c_last FROM {schema}.customer \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
        );
        statements.query(&sql, &[w.into(), d.into(), customer.into()]).await?.text(0, 0)?;
        let sql = format!(
            "SELECT o_id, o_entry_d::text, o_carrier_id FROM {schema}.orders \
             WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1"
        );
        // Everybody has ordered once: that is how customers are loaded.
        let order = statements.query(&sql, &[w.into(), d.into(), customer.into()]).await?.int(0, 0)?;
        let sql = format!(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::text, ol_delivery_d::text FROM {schema}.order_line \
             WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"
        );
        statements.query(&sql, &[w.into(), d.into(), order.into()]).await?.int(0, 0).map(drop)
    }
}
