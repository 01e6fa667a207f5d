//! Consistency conditions 1 to 4 of the standard (clause 3.3.2), and the books: every acknowledged
//! order and payment is there once, and nothing that nobody made.
//!
//! All that a condition compares belongs to one warehouse, which is at home in one region; it is
//! read in one transaction.

use super::books::{Before, Books, DistrictId, Orders};
use super::cents;
use super::scale::Layout;
use crate::client::{Rows, Value};
use crate::run::{Context, Verdict, until_answered};
use crate::session::Statements;
use meridian_base::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What was found of a district.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct District {
    pub next_order: i64,
    pub last_order: Option<i64>,
    /// What its orders say about how many lines they have.
    pub lines_ordered: i64,
    pub lines: i64,
    pub undelivered: Option<Undelivered>,
}

/// The rows of new_order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub first: i64,
    pub last: i64,
    pub rows: i64,
}

/// What was found of a warehouse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Warehouse {
    pub id: i64,
    /// Year to date, in cents.
    pub paid: i64,
    pub paid_in_districts: i64,
    pub districts: BTreeMap<i64, District>,
    /// The history rows of this run.
    pub payments: BTreeSet<i64>,
}

/// The warehouses of a region that have been loaded.
pub(super) async fn warehouses_there(context: &Context, layout: &Layout, region: usize) -> Result<BTreeSet<i64>> {
    let sql = format!("SELECT w_id FROM {}.warehouse", layout.schema_at(region));
    let mut session = context.session(layout.region(region), super::DATABASE);
    until_answered(context, &mut session, |statements| {
        let sql = sql.clone();
        Box::pin(async move {
            let rows = statements.query(&sql, &[]).await?;
            (0..rows.rows.len()).map(|row| rows.int(row, 0)).collect()
        })
    })
    .await
}

/// What there is before a run.
pub(super) async fn read_before(context: &Context, layout: &Layout) -> Result<Before> {
    let mut before = Before::default();
    for region in 0..layout.regions() {
        let schema = layout.schema_at(region).to_string();
        let mut session = context.session(layout.region(region), super::DATABASE);
        let (districts, last) = until_answered(context, &mut session, |statements| {
            let schema = schema.clone();
            Box::pin(async move {
                let districts =
                    statements.query(&format!("SELECT d_w_id, d_id, d_next_o_id FROM {schema}.district"), &[]).await?;
                let last = statements.query(&format!("SELECT max(h_id) FROM {schema}.history"), &[]).await?;
                Ok((districts, last))
            })
        })
        .await?;
        before.last_id = before.last_id.max(last.int(0, 0)?);
        for row in 0..districts.rows.len() {
            before.next_orders.insert((districts.int(row, 0)?, districts.int(row, 1)?), districts.int(row, 2)?);
        }
    }
    Ok(before)
}

/// Everything that is judged; of history rows those from a number on.
pub(super) async fn read(context: &Context, layout: &Layout, first_payment: i64) -> Result<Vec<Warehouse>> {
    let mut found = Vec::new();
    for region in 0..layout.regions() {
        let mut session = context.session(layout.region(region), super::DATABASE);
        for id in layout.warehouses_of(region) {
            let schema = layout.schema_at(region).to_string();
            let warehouse = until_answered(context, &mut session, |statements| {
                let schema = schema.clone();
                Box::pin(async move { read_warehouse(statements, &schema, id, first_payment).await })
            });
            found.push(warehouse.await?);
        }
    }
    Ok(found)
}

async fn read_warehouse(statements: &mut Statements<'_>, schema: &str, id: i64, first_payment: i64) -> Result<Warehouse> {
    let mut found = Warehouse { id, ..Warehouse::default() };
    let mut all = async |sql: String, params: &[Value]| statements.query(&sql, params).await;
    let of = [Value::Int(id)];

    let paid = all(format!("SELECT w_ytd::text FROM {schema}.warehouse WHERE w_id = $1"), &of).await?;
    found.paid = cents(paid.text(0, 0)?)?;
    let paid = all(format!("SELECT sum(d_ytd)::text FROM {schema}.district WHERE d_w_id = $1"), &of).await?;
    found.paid_in_districts = cents(paid.text(0, 0)?)?;

    let rows = all(format!("SELECT d_id, d_next_o_id FROM {schema}.district WHERE d_w_id = $1"), &of).await?;
    for row in 0..rows.rows.len() {
        let next_order = rows.int(row, 1)?;
        found.districts.insert(rows.int(row, 0)?, District { next_order, ..District::default() });
    }
    let sql = format!("SELECT o_d_id, max(o_id), sum(o_ol_cnt)::int8 FROM {schema}.orders WHERE o_w_id = $1 GROUP BY o_d_id");
    let rows = all(sql, &of).await?;
    each(&rows, &mut found, |district, row| {
        (district.last_order, district.lines_ordered) = (Some(rows.int(row, 1)?), rows.int(row, 2)?);
        Ok(())
    })?;
    let sql = format!(
        "SELECT no_d_id, min(no_o_id), max(no_o_id), count(*) FROM {schema}.new_order WHERE no_w_id = $1 GROUP BY no_d_id"
    );
    let rows = all(sql, &of).await?;
    each(&rows, &mut found, |district, row| {
        let (first, last, rows) = (rows.int(row, 1)?, rows.int(row, 2)?, rows.int(row, 3)?);
        district.undelivered = Some(Undelivered { first, last, rows });
        Ok(())
    })?;
    let rows = all(format!("SELECT ol_d_id, count(*) FROM {schema}.order_line WHERE ol_w_id = $1 GROUP BY ol_d_id"), &of).await?;
    each(&rows, &mut found, |district, row| {
        district.lines = rows.int(row, 1)?;
        Ok(())
    })?;

    let sql = format!("SELECT h_id FROM {schema}.history WHERE h_w_id = $1 AND h_id >= $2");
    let rows = all(sql, &[id.into(), first_payment.into()]).await?;
    found.payments = (0..rows.rows.len()).map(|row| rows.int(row, 0)).collect::<Result<_>>()?;
    Ok(found)
}

/// For each row of a result whose first column is a district.
fn each(rows: &Rows, found: &mut Warehouse, mut note: impl FnMut(&mut District, usize) -> Result<()>) -> Result<()> {
    for row in 0..rows.rows.len() {
        let id = rows.int(row, 0)?;
        let district = found.districts.get_mut(&id);
        note(district.ok_or_else(|| Error::internal(format!("there are rows of district {id}, which is not there")))?, row)?;
    }
    Ok(())
}

/// Judges what was found.
pub(super) fn judge(found: &[Warehouse], books: &Books, verdict: &mut Verdict) {
    for warehouse in found {
        let w = warehouse.id;
        verdict.expect(warehouse.paid == warehouse.paid_in_districts, || {
            format!(
                "condition 1: warehouse {w} has {} cents year to date, its districts have {}",
                warehouse.paid, warehouse.paid_in_districts
            )
        });
        verdict.expect(!warehouse.districts.is_empty(), || format!("warehouse {w} has no districts"));
        for (d, district) in &warehouse.districts {
            judge_district((w, *d), district, books, verdict);
        }
        judge_payments(warehouse, books, verdict);
    }
}

fn judge_district(id: DistrictId, district: &District, books: &Books, verdict: &mut Verdict) {
    let name = || format!("district {} of warehouse {}", id.1, id.0);
    let last = district.next_order - 1;
    verdict.expect(district.last_order == Some(last), || {
        format!("condition 2: {}: next order - 1 is {last}, the last order {:?}", name(), district.last_order)
    });
    if let Some(Undelivered { first, last: newest, rows }) = district.undelivered {
        verdict.expect(newest == last, || {
            format!("condition 2: {}: next order - 1 is {last}, the last row of new_order {newest}", name())
        });
        verdict.expect(newest - first + 1 == rows, || {
            format!("condition 3: {}: new_order goes from {first} to {newest} and has {rows} rows", name())
        });
    }
    verdict.expect(district.lines_ordered == district.lines, || {
        format!("condition 4: {}: its orders have {} lines, there are {}", name(), district.lines_ordered, district.lines)
    });
    let none = Orders::default();
    let Orders { acknowledged, doubtful } = books.orders.get(&id).unwrap_or(&none);
    let Some(before) = books.next_order(id) else {
        return verdict.expect(false, || format!("{} was not there before", name()));
    };
    let entered = district.next_order - before;
    verdict.expect((*acknowledged..=acknowledged + doubtful).contains(&entered), || {
        format!("{}: {entered} orders were entered; {acknowledged} were acknowledged, and {doubtful} are in doubt", name())
    });
}

fn judge_payments(warehouse: &Warehouse, books: &Books, verdict: &mut Verdict) {
    let w = warehouse.id;
    let known = books.payments.get(&w);
    let acknowledged = known.map(|p| p.acknowledged.clone()).unwrap_or_default();
    let lost: Vec<&i64> = acknowledged.difference(&warehouse.payments).take(5).collect();
    verdict.expect(lost.is_empty(), || format!("warehouse {w} has lost acknowledged payments, among them {lost:?}"));
    let is_known = |id: &&i64| known.is_some_and(|p| p.acknowledged.contains(id) || p.doubtful.contains(id));
    let invented: Vec<&i64> = warehouse.payments.iter().filter(|id| !is_known(id)).take(5).collect();
    verdict.expect(invented.is_empty(), || format!("warehouse {w} has payments nobody made, among them {invented:?}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Attempted;

    fn sound() -> (Warehouse, Books) {
        let mut books = Books::default();
        books.begin(Before { next_orders: BTreeMap::from([((1, 7), 31)]), last_id: 30 });
        let unknown = || Attempted::Unknown(Error::unknown_outcome("who knows"), None);
        books.ordered(1, 7, &Attempted::Committed(()));
        books.ordered::<()>(1, 7, &unknown());
        books.paid(1, 100, &Attempted::Committed(()));
        books.paid::<()>(1, 101, &unknown());
        let undelivered = Some(Undelivered { first: 22, last: 31, rows: 10 });
        let district = District { next_order: 32, last_order: Some(31), lines_ordered: 310, lines: 310, undelivered };
        let warehouse = Warehouse {
            id: 1,
            paid: 5_000,
            paid_in_districts: 5_000,
            districts: BTreeMap::from([(7, district)]),
            payments: BTreeSet::from([100]),
        };
        (warehouse, books)
    }

    fn violations(change: impl FnOnce(&mut Warehouse, &mut District)) -> Vec<String> {
        let (mut warehouse, books) = sound();
        let mut district = warehouse.districts.remove(&7).expect("there");
        change(&mut warehouse, &mut district);
        warehouse.districts.insert(7, district);
        let mut verdict = Verdict::default();
        judge(&[warehouse], &books, &mut verdict);
        assert!(verdict.examined > 5);
        verdict.violations
    }

    #[test]
    fn a_sound_warehouse_passes_whatever_became_of_the_doubts() {
        assert_eq!(violations(|_, _| {}), Vec::<String>::new());
        let happened = violations(|warehouse, district| {
            warehouse.payments.insert(101);
            (district.next_order, district.last_order) = (33, Some(32));
            district.undelivered = None;
        });
        assert_eq!(happened, Vec::<String>::new());
    }

    #[test]
    fn each_condition_is_seen_broken() {
        let begins = |violations: Vec<String>, with: &str| {
            assert_eq!(violations.len(), 1, "{violations:?}");
            assert!(violations[0].starts_with(with), "{violations:?}");
        };
        begins(violations(|w, _| w.paid += 1), "condition 1");
        begins(violations(|_, d| d.last_order = Some(30)), "condition 2");
        begins(violations(|_, d| d.last_order = None), "condition 2");
        begins(violations(|_, d| d.undelivered = Some(Undelivered { first: 21, last: 30, rows: 10 })), "condition 2");
        begins(violations(|_, d| d.undelivered = Some(Undelivered { first: 22, last: 31, rows: 9 })), "condition 3");
        begins(violations(|_, d| d.lines -= 1), "condition 4");
    }

    #[test]
    fn lost_and_invented_orders_and_payments_are_found() {
        let lost = violations(|warehouse, district| {
            warehouse.payments.clear();
            *district = District { next_order: 31, last_order: Some(30), undelivered: None, ..district.clone() };
        });
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost[0].contains("0 orders were entered; 1 were acknowledged"), "{lost:?}");
        assert!(lost[1].contains("lost acknowledged payments, among them [100]"), "{lost:?}");
        let invented = violations(|warehouse, district| {
            warehouse.payments.insert(102);
            *district = District { next_order: 34, last_order: Some(33), undelivered: None, ..district.clone() };
        });
        assert_eq!(invented.len(), 2, "{invented:?}");
        assert!(invented[1].contains("nobody made, among them [102]"), "{invented:?}");
    }
}
