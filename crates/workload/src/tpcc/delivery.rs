//! The Delivery transaction (clause 2.7): the oldest undelivered order of each district, all in one
//! transaction.

use super::scale::{DISTRICTS, Layout};
use super::{cents, money};
use crate::session::Statements;
use meridian_base::{Error, Result};

#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub warehouse: i64,
    pub carrier: i64,
}

impl Delivery {
    pub async fn run(&self, statements: &mut Statements<'_>, layout: &Layout) -> Result<()> {
        for district in 1..=DISTRICTS {
            self.deliver(statements, layout.schema(self.warehouse), district).await?;
        }
        Ok(())
    }

    async fn deliver(&self, statements: &mut Statements<'_>, schema: &str, district: i64) -> Result<()> {
        let (w, d) = (self.warehouse, district);
        let sql = format!("SELECT no_o_id FROM {schema}.new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1");
        let oldest = statements.query(&sql, &[w.into(), d.into()]).await?;
        if oldest.rows.is_empty() {
            return Ok(()); // The district is done (clause 2.7.4.2).
        }
        let order = oldest.int(0, 0)?;
        let sql = format!("DELETE FROM {schema}.new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3");
        if statements.query(&sql, &[w.into(), d.into(), order.into()]).await?.affected != 1 {
            return Err(Error::retry("somebody else delivers the order"));
        }
        let sql = format!(
            "UPDATE {schema}.orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id"
        );
        let params = [w.into(), d.into(), order.into(), self.carrier.into()];
        let customer = statements.query(&sql, &params).await?.int(0, 0)?;
        let sql = format!(
            "UPDATE {schema}.order_line SET ol_delivery_d = now() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 \
             RETURNING ol_amount::text"
        );
        let lines = statements.query(&sql, &[w.into(), d.into(), order.into()]).await?;
        let mut total = 0;
        for line in 0..lines.rows.len() {
            total += cents(lines.text(line, 0)?)?;
        }
        let sql = format!(
            "UPDATE {schema}.customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
        );
        match statements.query(&sql, &[w.into(), d.into(), customer.into(), money(total)]).await?.affected {
            1 => Ok(()),
            rows => Err(Error::internal(format!("{schema}.customer has {rows} rows of customer {customer}"))),
        }
    }
}
