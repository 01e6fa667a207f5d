//! The nine tables (clause 1.3): the catalogue of items is one GLOBAL table, the others are there
//! once per region.

use super::scale::Layout;
use crate::run::Context;
use crate::schema;
use meridian_base::Result;

/// Creates the database, the items, and a schema per region with the tables homed in that region.
pub(super) async fn create(context: &Context, layout: &Layout) -> Result<()> {
    schema::create_database(context, super::DATABASE).await?;
    let of_region = |at: usize| {
        let home = schema::locality(&*context.connector, layout.region(at));
        statements(layout.schema_at(at), &home)
    };
    let item = "CREATE TABLE item (i_id INT8 PRIMARY KEY, i_im_id INT8 NOT NULL, i_name VARCHAR(24) NOT NULL, \
                i_price NUMERIC(5,2) NOT NULL, i_data VARCHAR(50) NOT NULL)";
    let mut all = vec![format!("{item}{}", schema::global(&*context.connector))];
    all.extend((0..layout.regions()).flat_map(of_region));
    schema::run_block(&mut context.session(layout.region(0), super::DATABASE), &all).await
}

/// The statements for one region. A warehouse's rows lie together: its number is first in every
/// key.
fn statements(schema: &str, home: &str) -> Vec<String> {
    let address = |p: &str| {
        format!(
            "{p}_street_1 VARCHAR(20) NOT NULL, {p}_street_2 VARCHAR(20) NOT NULL, {p}_city VARCHAR(20) NOT NULL, \
             {p}_state CHAR(2) NOT NULL, {p}_zip CHAR(9) NOT NULL"
        )
    };
    let dists: Vec<String> = (1..=10).map(|d| format!("s_dist_{d:02} CHAR(24) NOT NULL")).collect();
    let tables = [
        format!(
            "warehouse (w_id INT8 PRIMARY KEY, w_name VARCHAR(10) NOT NULL, {}, w_tax NUMERIC(4,4) NOT NULL, \
             w_ytd NUMERIC(12,2) NOT NULL)",
            address("w")
        ),
        format!(
            "district (d_w_id INT8, d_id INT8, d_name VARCHAR(10) NOT NULL, {}, d_tax NUMERIC(4,4) NOT NULL, \
             d_ytd NUMERIC(12,2) NOT NULL, d_next_o_id INT8 NOT NULL, PRIMARY KEY (d_w_id, d_id))",
            address("d")
        ),
        format!(
            "customer (c_w_id INT8, c_d_id INT8, c_id INT8, c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL, \
             c_last VARCHAR(16) NOT NULL, {}, c_phone CHAR(16) NOT NULL, c_since TIMESTAMP NOT NULL, c_credit CHAR(2) NOT NULL, \
             c_credit_lim NUMERIC(12,2) NOT NULL, c_discount NUMERIC(4,4) NOT NULL, c_balance NUMERIC(12,2) NOT NULL, \
             c_ytd_payment NUMERIC(12,2) NOT NULL, c_payment_cnt INT8 NOT NULL, c_delivery_cnt INT8 NOT NULL, \
             c_data VARCHAR(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id))",
            address("c")
        ),
        "history (h_w_id INT8, h_id INT8, h_d_id INT8 NOT NULL, h_c_w_id INT8 NOT NULL, h_c_d_id INT8 NOT NULL, \
         h_c_id INT8 NOT NULL, h_date TIMESTAMP NOT NULL, h_amount NUMERIC(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL, \
         PRIMARY KEY (h_w_id, h_id))"
            .to_string(),
        "new_order (no_w_id INT8, no_d_id INT8, no_o_id INT8, PRIMARY KEY (no_w_id, no_d_id, no_o_id))".to_string(),
        "orders (o_w_id INT8, o_d_id INT8, o_id INT8, o_c_id INT8 NOT NULL, o_entry_d TIMESTAMP NOT NULL, o_carrier_id INT8, \
         o_ol_cnt INT8 NOT NULL, o_all_local INT8 NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id))"
            .to_string(),
        "order_line (ol_w_id INT8, ol_d_id INT8, ol_o_id INT8, ol_number INT8, ol_i_id INT8 NOT NULL, \
         ol_supply_w_id INT8 NOT NULL, ol_delivery_d TIMESTAMP, ol_quantity INT8 NOT NULL, ol_amount NUMERIC(6,2) NOT NULL, \
         ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))"
            .to_string(),
        format!(
            "stock (s_w_id INT8, s_i_id INT8, s_quantity INT8 NOT NULL, {}, s_ytd INT8 NOT NULL, s_order_cnt INT8 NOT NULL, \
             s_remote_cnt INT8 NOT NULL, s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id))",
            dists.join(", ")
        ),
    ];
    let mut all = vec![format!("CREATE SCHEMA {schema}")];
    all.extend(tables.iter().map(|table| format!("CREATE TABLE {schema}.{table}{home}")));
    all.push(format!("CREATE INDEX customer_by_name ON {schema}.customer (c_w_id, c_d_id, c_last, c_first)"));
    all.push(format!("CREATE INDEX orders_by_customer ON {schema}.orders (o_w_id, o_d_id, o_c_id, o_id)"));
    all
}
