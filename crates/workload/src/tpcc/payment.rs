//! The Payment transaction (clause 2.5): a customer, of this warehouse or another, pays at a
//! district.

use super::names::{self, Constants};
use super::scale::Layout;
use super::{TpccConfig, money};
use crate::client::Value;
use crate::session::Statements;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;

/// Whom a transaction is about: three in five by their last name (clauses 2.5.1.2 and 2.6.1.2).
#[derive(Clone, Debug)]
pub(super) enum Customer {
    Number(i64),
    LastName(String),
}

impl Customer {
    pub fn draw(layout: &Layout, constants: &Constants, rng: &mut SmallRng) -> Customer {
        match rng.random_bool(0.6) {
            true => Customer::LastName(constants.last_name(layout, rng)),
            false => Customer::Number(constants.customer(layout, rng)),
        }
    }

    /// The customer's number; of several with the name the one in the middle by first name.
    pub async fn find(&self, statements: &mut Statements<'_>, schema: &str, warehouse: i64, district: i64) -> Result<i64> {
        let name = match self {
            Customer::Number(number) => return Ok(*number),
            Customer::LastName(name) => name,
        };
        let sql =
            format!("SELECT c_id FROM {schema}.customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first");
        let rows = statements.query(&sql, &[warehouse.into(), district.into(), name.as_str().into()]).await?;
        rows.int(rows.rows.len().div_ceil(2).saturating_sub(1), 0)
    }
}

#[derive(Debug)]
pub(super) struct Payment {
    pub warehouse: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    customer: Customer,
    /// In cents.
    amount: i64,
}

impl Payment {
    pub fn draw(layout: &Layout, config: &TpccConfig, constants: &Constants, warehouse: i64, rng: &mut SmallRng) -> Payment {
        let district = names::district(rng);
        let (customer_warehouse, customer_district) = match crate::run::chance(config.remote_payment_share, rng) {
            true => (layout.other_warehouse(warehouse, rng), names::district(rng)),
            false => (warehouse, district),
        };
        let customer = Customer::draw(layout, constants, rng);
        Payment { warehouse, district, customer_warehouse, customer_district, customer, amount: rng.random_range(100..=500_000) }
    }

    pub fn is_remote(&self, layout: &Layout) -> bool {
        layout.home(self.customer_warehouse) != layout.home(self.warehouse)
    }

    /// `id` is the history row's number.
    pub async fn run(&self, statements: &mut Statements<'_>, layout: &Layout, id: i64) -> Result<()> {
        let customer = self.debit(statements, layout).await?;
        let (w, d, amount) = (self.warehouse, self.district, money(self.amount));
        let schema = layout.schema(w);
        let sql = format!(
            "UPDATE {schema}.district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
             RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip"
        );
        let district = statements.query(&sql, &[w.into(), d.into(), amount.clone()]).await?;
        // The hottest row comes last: until the payment commits, the warehouse's others wait for
        // it.
        let sql = format!(
            "UPDATE {schema}.warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
             RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip"
        );
        let warehouse = statements.query(&sql, &[w.into(), amount.clone()]).await?;
        let data = format!("{}    {}", warehouse.text(0, 0)?, district.text(0, 0)?);
        let sql = format!(
            "INSERT INTO {schema}.history (h_w_id, h_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, h_amount, h_data) \
             VALUES ($1, $2, $3, $4, $5, $6, now(), $7, $8)"
        );
        let (cw, cd) = (self.customer_warehouse.into(), self.customer_district.into());
        let params: [Value; 8] = [w.into(), id.into(), d.into(), cw, cd, customer.into(), amount, data.into()];
        statements.query(&sql, &params).await.map(drop)
    }

    /// Takes the amount from the customer's balance, and gives the customer's number.
    async fn debit(&self, statements: &mut Statements<'_>, layout: &Layout) -> Result<i64> {
        let schema = layout.schema(self.customer_warehouse);
        let (w, d) = (self.customer_warehouse, self.customer_district);
        let customer = self.customer.find(statements, schema, w, d).await?;
        let sql = format!(
            "UPDATE {schema}.customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
             c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
             RETURNING c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
             c_credit_lim::text, c_discount::text, c_balance::text"
        );
        let params: [Value; 4] = [w.into(), d.into(), customer.into(), money(self.amount)];
        let rows = statements.query(&sql, &params).await?;
        if rows.text(0, 0)? == "BC" {
            self.note_bad_credit(statements, schema, customer).await?;
        }
        Ok(customer)
    }

    /// What a customer with bad credit pays is written down (clause 2.5.2.2).
    async fn note_bad_credit(&self, statements: &mut Statements<'_>, schema: &str, customer: i64) -> Result<()> {
        let (cw, cd) = (self.customer_warehouse, self.customer_district);
        let note = format!("{customer} {cd} {cw} {} {} {} | ", self.district, self.warehouse, self.amount);
        let sql = format!(
            "UPDATE {schema}.customer SET c_data = left($4 || c_data, 500) WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
        );
        match statements.query(&sql, &[cw.into(), cd.into(), customer.into(), note.into()]).await?.affected {
            1 => Ok(()),
            rows => Err(Error::internal(format!("{schema}.customer has {rows} rows of customer {customer}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn fifteen_in_a_hundred_pay_in_another_region() {
        let regions: Vec<String> = ["a", "b"].map(String::from).into();
        let config = TpccConfig { warehouses_per_region: 2, ..TpccConfig::default() };
        let layout = Layout::new(&regions, &config);
        let mut rng = SmallRng::seed_from_u64(9);
        let constants = Constants::of_run(4);
        let mut draw = || Payment::draw(&layout, &config, &constants, 2, &mut rng);
        let payments: Vec<Payment> = (0..5_000).map(|_| draw()).collect();
        let remote = payments.iter().filter(|p| p.is_remote(&layout)).count();
        assert!((650..850).contains(&remote), "{remote}");
        assert!(payments.iter().all(|p| p.is_remote(&layout) || p.customer_warehouse == 2));
        let named = payments.iter().filter(|p| matches!(p.customer, Customer::LastName(_))).count();
        assert!((2_800..3_200).contains(&named), "{named}");
    }
}
