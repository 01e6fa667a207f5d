//! The statements of transfers and snapshots.

use super::books::{Books, Transfer, home};
use crate::client::{Rows, Value};
use crate::schema;
use crate::session::{Attempted, Mode, Session, Statements};
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The schemas of all regions.
#[derive(Clone)]
pub(super) struct Schemas(Arc<[String]>);

impl Schemas {
    pub(super) fn of(regions: &[String]) -> Schemas {
        Schemas(regions.iter().map(|region| schema::schema_of(region)).collect())
    }
    pub(super) fn at(&self, region: usize) -> &str {
        &self.0[region]
    }
    fn of_account(&self, account: i64) -> &str {
        self.at(home(account))
    }
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A transfer as it is to be made; a retry makes the same again.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) transfer: Transfer,
    /// Locks both rows first.
    pub(super) lock: bool,
    /// Reads the balances of all regions first.
    pub(super) audit: bool,
}

/// How the balances of all regions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// In a block, a statement per region.
    Block(Mode),
    /// In one statement outside a block.
    Statement,
    /// In one statement that reads the past, as of this time.
    Past(&'static str),
}

/// How old a bank is before its past is read: older than what [`PASTS`] ask for, by any clock.
pub(super) const PAST_AFTER: Duration = Duration::from_secs(4);
/// Times of the past.
const PASTS: [&str; 3] = ["'-2s'", "follower_read_timestamp()", "with_max_staleness('3s')"];

impl View {
    pub(super) fn draw(rng: &mut SmallRng, has_past: bool) -> View {
        if has_past && rng.random_bool(0.4) {
            return View::Past(PASTS[rng.random_range(0..PASTS.len())]);
        }
        [View::Block(Mode::ReadOnly), View::Block(Mode::Usual), View::Statement][rng.random_range(0..3)]
    }
}

/// Moves the money and writes the row of each ledger that it belongs in. Returns the balances if
/// they were asked for.
pub(super) async fn transfer(
    statements: &mut Statements<'_>,
    schemas: &Schemas,
    plan: Plan,
) -> Result<Option<BTreeMap<i64, i64>>> {
    let Plan { transfer, lock, audit } = plan;
    let balances = match audit {
        true => Some(all_balances(statements, schemas).await?),
        false => None,
    };
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let select = |account| format!("SELECT balance FROM {}.accounts WHERE id = $1{suffix}", schemas.of_account(account));
    let update = |account| format!("UPDATE {}.accounts SET balance = $2 WHERE id = $1", schemas.of_account(account));
    let Transfer { id, from, to, amount } = transfer;
    let payer = statements.query(&select(from), &[from.into()]).await?.int(0, 0)?;
    let payee = statements.query(&select(to), &[to.into()]).await?.int(0, 0)?;
    statements.query(&update(from), &[from.into(), (payer - amount).into()]).await?;
    statements.query(&update(to), &[to.into(), (payee + amount).into()]).await?;
    let params: [Value; 4] = [id.into(), from.into(), to.into(), amount.into()];
    for region in transfer.homes() {
        let ledger = schemas.at(region);
        let insert = format!("INSERT INTO {ledger}.transfers (id, from_id, to_id, amount) VALUES ($1, $2, $3, $4)");
        statements.query(&insert, &params).await?;
    }
    Ok(balances)
}

/// The balances of one region, in one statement or in two that split the accounts.
pub(super) async fn balances(statements: &mut Statements<'_>, schema: &str, split: Option<i64>) -> Result<BTreeMap<i64, i64>> {
    let filters = match split {
        Some(split) => vec![format!(" WHERE id < {split}"), format!(" WHERE id >= {split}")],
        None => vec![String::new()],
    };
    let mut balances = BTreeMap::new();
    for filter in filters {
        let rows = statements.query(&format!("SELECT id, balance FROM {schema}.accounts{filter}"), &[]).await?;
        balances.append(&mut balances_in(&rows)?);
    }
    Ok(balances)
}

/// The balances of all regions, a statement for each.
pub(super) async fn all_balances(statements: &mut Statements<'_>, schemas: &Schemas) -> Result<BTreeMap<i64, i64>> {
    let mut all = BTreeMap::new();
    for region in 0..schemas.len() {
        all.append(&mut balances(statements, schemas.at(region), None).await?);
    }
    Ok(all)
}

/// The one statement that reads the balances of all regions.
pub(super) fn all_balances_sql(schemas: &Schemas) -> String {
    let each: Vec<String> = schemas.0.iter().map(|schema| format!("SELECT id, balance FROM {schema}.accounts")).collect();
    each.join(" UNION ALL ")
}

/// The balances that one statement outside a block gives.
pub(super) async fn single_view(session: &mut Session, rng: &mut SmallRng, sql: String) -> Attempted<BTreeMap<i64, i64>> {
    match session.single(rng, &sql, &[]).await {
        Attempted::Committed(rows) => match balances_in(&rows) {
            Ok(balances) => Attempted::Committed(balances),
            Err(error) => Attempted::Failed(error),
        },
        Attempted::Failed(error) => Attempted::Failed(error),
        Attempted::Unknown(error, _) => Attempted::Unknown(error, None),
    }
}

/// The balances in what a statement gave.
pub(super) fn balances_in(rows: &Rows) -> Result<BTreeMap<i64, i64>> {
    (0..rows.rows.len()).map(|row| Ok((rows.int(row, 0)?, rows.int(row, 1)?))).collect()
}

/// Balances and ledgers of some regions, in their order.
pub(super) async fn books(statements: &mut Statements<'_>, schemas: &Schemas, regions: &[usize]) -> Result<Books> {
    let mut books = Books::default();
    for region in regions {
        let schema = schemas.at(*region);
        books.balances.append(&mut balances(statements, schema, None).await?);
        let sql = format!("SELECT id, from_id, to_id, amount FROM {schema}.transfers ORDER BY id");
        let rows = statements.query(&sql, &[]).await?;
        let ledger = (0..rows.rows.len())
            .map(|r| Ok(Transfer { id: rows.int(r, 0)?, from: rows.int(r, 1)?, to: rows.int(r, 2)?, amount: rows.int(r, 3)? }));
        books.ledgers.push(ledger.collect::<Result<Vec<Transfer>>>()?);
    }
    Ok(books)
}
