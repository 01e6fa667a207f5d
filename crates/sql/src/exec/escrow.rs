//! Escrow columns: their numbers are in shares, one in each site, and not in the rows
//! (`docs/design/escrow.md`).
//!
//! | statement | what happens | rule |
//! | --- | --- | --- |
//! | reads a number | the shares of all sites are read, and certified with the rest | E9, E12 |
//! | `escrow_estimate(x)` | the shares are read at replicas in this region, a little late ([`numbers::estimate`](super::numbers::estimate)) | E10, E12 |
//! | `SHOW ESCROW` | the shares of all sites are read, and shown one by one ([`numbers::shares`](super::numbers::shares)) | E9 |
//! | `x = x + n` | a delta goes to the nearest site that covers it; nothing is read | E7, E8 |
//! | inserts a row | one site begins with all tokens | E1 |
//! | sets a number | every site gets a new share, of a new incarnation | E11 |
//! | deletes a row | every site loses its share | E11 |

pub(super) mod split;

use super::Runtime;
use super::eval::Row;
use crate::catalog::escrow::{datum, scaled, scaled_delta};
use crate::catalog::expression::{Facts, parse_expression, resolve_columns};
use crate::catalog::{EscrowColumn, Table};
use crate::env::{Brought, Locking, OnLocked, Scan, Transaction};
use crate::plan::TablePlan;
use crate::types::keys::encode_key_column;
use crate::types::{Datum, Type};
use meridian_base::escrow::{self, Bounds, Late, Share, Sum};
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, Result, TxnId, Write};
use std::collections::BTreeMap;

/// Rows whose tokens are looked for at once.
pub(super) const AHEAD: usize = 1_024;

/// Where a column is in rows of these.
pub(super) fn place(columns: &[u32], ordinal: u32) -> Result<usize> {
    let found = columns.iter().position(|c| *c == ordinal);
    found.ok_or_else(|| Error::internal("a row without a column that is needed"))
}

/// The keys in the primary index of rows of these columns.
pub(super) fn primary_keys(table: &Table, types: &[Type], columns: &[u32], rows: &[Row]) -> Result<Vec<Key>> {
    let primary = table.primary();
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let mut key = Vec::with_capacity(32);
        meridian_base::key::encode::index(&mut key, primary.id);
        for c in &primary.columns {
            let ty = &types[c.ordinal as usize];
            encode_key_column(&mut key, &row[place(columns, c.ordinal)?], ty, c.descending, c.nulls_first)?;
        }
        keys.push(Key::new(&key));
    }
    Ok(keys)
}

/// The number of a row among those that were read.
fn number_of(table: &TablePlan, column: &EscrowColumn, found: &BTreeMap<Key, (i128, Bounds)>, share: &Key) -> Result<Datum> {
    let (number, _) = found.get(share).ok_or_else(|| without_share(&table.table))?;
    datum(*number, &table.types[column.ordinal as usize])
}

/// A row and its shares are written together.
pub(super) fn without_share(table: &Table) -> Error {
    Error::sql("XX001", format!("a row of table \"{}\" has no share of its escrow column", table.name))
}

/// The exact numbers of rows, with the bounds that their tokens tell (E2), by the keys of their
/// shares. `is_dense`: all shares between the first and the last are wanted. `to_write`: they are
/// locked before they are read, so that changes by others wait; and what to do if they are taken.
pub(super) async fn sums<T: Transaction>(
    column: &EscrowColumn,
    shares: &[Key],
    is_dense: bool,
    to_write: Option<OnLocked>,
    rt: &mut Runtime<'_, T>,
) -> Result<BTreeMap<Key, (i128, Bounds)>> {
    if let Some(if_taken) = to_write {
        lock(column, shares, if_taken, rt).await?;
    }
    let mut sums: BTreeMap<Key, Sum> = BTreeMap::new();
    for range in ranges(shares, is_dense) {
        for versions in versions(column, &range, rt).await?.values() {
            for of_row in by_row(versions) {
                let sum = sums.entry(share_of(&of_row[0])).or_default();
                sum.add_site(of_row.iter().map(|(key, value)| (key, &value[..])));
            }
        }
    }
    let with_own = |share: &Key, sum: Sum| column.sites.iter().fold(sum, |sum, site| sum.plus(&rt.txn.added(*site, share)));
    let all = sums.into_iter().map(|(share, sum)| (share.clone(), with_own(&share, sum)));
    Ok(all.filter_map(|(share, sum)| Some((share, (sum.value?, told_bounds(column, &sum))))).collect())
}

/// The bounds of a number that was read: what its grants add up to (E2). Sites apply a decision of
/// `majority` one after another, so between them grants add up to something else. Where a column
/// may have such rounds and its bounds are constants, these are told.
fn told_bounds(column: &EscrowColumn, sum: &Sum) -> Bounds {
    if column.keeps_sites() && column.limits.is_empty() { column.bounds() } else { sum.bounds() }
}

/// The keys that these shares have in a site, in their order.
pub(super) fn ranges(shares: &[Key], is_dense: bool) -> Vec<KeyRange> {
    let mut ranges: Vec<KeyRange> = match (is_dense, shares.iter().min(), shares.iter().max()) {
        (true, Some(first), Some(last)) => vec![escrow::ranges(first, last)],
        _ => shares.iter().map(escrow::range).collect(),
    };
    ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    ranges.dedup();
    ranges
}

/// A key of a site and what it holds.
pub(super) type Version = (Key, bytes::Bytes);

/// What each site has in a range, certified with the rest.
pub(super) async fn versions<T: Transaction>(
    column: &EscrowColumn,
    range: &KeyRange,
    rt: &mut Runtime<'_, T>,
) -> Result<BTreeMap<GroupId, Vec<Version>>> {
    rt.step().await?;
    rt.ctx.stay_home(column.sites.iter().copied(), Locking::None)?;
    let scan = |range: KeyRange| Scan { range, columns: ColumnMask::ALL, reverse: false, limit: None, locking: Locking::None };
    let mut left: Vec<(GroupId, KeyRange)> = column.sites.iter().map(|site| (*site, range.clone())).collect();
    let mut found: BTreeMap<GroupId, Vec<Version>> = BTreeMap::new();
    while !left.is_empty() {
        let sites: Vec<GroupId> = left.iter().map(|(site, _)| *site).collect();
        let scans: Vec<(GroupId, Scan)> = left.drain(..).map(|(site, range)| (site, scan(range))).collect();
        let pages = match &scans[..] {
            [(site, scan)] => vec![rt.txn.scan(*site, scan.clone()).await?],
            _ => rt.txn.scan_each(scans).await?,
        };
        for (site, page) in sites.into_iter().zip(pages) {
            found.entry(site).or_default().extend(page.rows);
            left.extend(page.rest.map(|rest| (site, rest)));
        }
        rt.pause().await?;
    }
    Ok(found)
}

pub(super) fn share_of((key, value): &Version) -> Key {
    escrow::share_of(key, value)
}

/// A site's versions, those of each row together.
pub(super) fn by_row(versions: &[Version]) -> impl Iterator<Item = &[Version]> {
    versions.chunk_by(|a, b| share_of(a) == share_of(b))
}

/// What the sites have of a row's number.
pub(super) type Sites = BTreeMap<GroupId, Share>;

/// What the sites have, by the keys of the shares, own deltas included.
pub(super) async fn sites<T: Transaction>(
    column: &EscrowColumn,
    shares: &[Key],
    is_dense: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<BTreeMap<Key, Sites>> {
    let mut all: BTreeMap<Key, Sites> = BTreeMap::new();
    for range in ranges(shares, is_dense) {
        for (site, versions) in versions(column, &range, rt).await? {
            for of_row in by_row(&versions) {
                let key = share_of(&of_row[0]);
                if let Some(share) = Share::seen(of_row.iter().map(|(key, value)| (key, &value[..]))) {
                    let own = rt.txn.added(site, &key);
                    all.entry(key).or_default().insert(site, share.plus(&own));
                }
            }
        }
    }
    Ok(all)
}

/// A number and its bounds as they were at one moment of the statement. `None`: it is not known, or
/// there was no row.
async fn number_now<T: Transaction>(
    column: &EscrowColumn,
    share: &Key,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(i128, Bounds)>> {
    if column.sites.len() < 2 {
        return Ok(None);
    }
    rt.ctx.stay_home(column.sites.iter().copied(), Locking::None)?;
    let found = match rt.txn.sites_now(&column.sites, share).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        // No replica is near, or not all regions answer: what is read as usual may do.
        Err(e) if e.is_unavailable() => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut sum = Sum::default();
    for (site, versions) in column.sites.iter().zip(&found) {
        sum.add_site(versions.iter().map(|(key, value)| (key, &value[..])));
        sum = sum.plus(&rt.txn.added(*site, share));
    }
    Ok(sum.value.map(|value| (value, told_bounds(column, &sum))))
}

/// Whether a round of `majority` may be half applied to one of these rows: a site has an offer out.
/// It is certified with the rest.
async fn is_moving<T: Transaction>(column: &EscrowColumn, shares: &[Key], rt: &mut Runtime<'_, T>) -> Result<bool> {
    let open: Vec<Key> = shares.iter().map(escrow::open_key).collect();
    rt.ctx.stay_home(column.sites.iter().copied(), Locking::None)?;
    let reads = column.sites.iter().map(|site| (*site, open.clone())).collect();
    let found = rt.txn.get_each(reads, ColumnMask::ALL, Locking::None).await?;
    Ok(found.iter().flatten().any(Option::is_some))
}

/// Keeps changes of these shares by others away, as far as they wait in queues.
async fn lock<T: Transaction>(column: &EscrowColumn, shares: &[Key], if_taken: OnLocked, rt: &mut Runtime<'_, T>) -> Result<()> {
    // A row that was not left out is not left out for its number.
    let locking = Locking::Exclusive(if if_taken == OnLocked::NoWait { OnLocked::NoWait } else { OnLocked::Wait });
    rt.ctx.stay_home(column.sites.iter().copied(), locking)?;
    for site in &column.sites {
        rt.txn.get_many(*site, shares, ColumnMask::ALL, locking).await?;
    }
    Ok(())
}

/// The exact number of one row, with its bounds; `None`: no site has a share of it.
async fn number<T: Transaction>(
    column: &EscrowColumn,
    share: &Key,
    to_write: Option<OnLocked>,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(i128, Bounds)>> {
    Ok(sums(column, std::slice::from_ref(share), false, to_write, rt).await?.remove(share))
}

fn name(table: &TablePlan, column: &EscrowColumn) -> String {
    table.table.columns[column.ordinal as usize].name.clone()
}

/// 23514, or 23502 for no number.
fn checked(table: &TablePlan, column: &EscrowColumn, bounds: Bounds, value: &Datum) -> Result<i128> {
    let Some(number) = scaled(value, &table.types[column.ordinal as usize])? else {
        return Err(table.null_in(column.ordinal));
    };
    match bounds.contain(number) {
        true => Ok(number),
        false => Err(outside(table, column, bounds, None)),
    }
}

/// The bounds of one row.
fn row_bounds(table: &TablePlan, column: &EscrowColumn, row: &[Datum]) -> Result<Bounds> {
    column.bounds_of(row, &table.types[column.ordinal as usize])
}

/// 23514: the number would be outside of its bounds. `number`: what it is, if it is known.
fn outside(table: &TablePlan, column: &EscrowColumn, bounds: Bounds, number: Option<i128>) -> Error {
    let (of, name) = (&table.table, name(table, column));
    let ty = &table.types[column.ordinal as usize];
    let shown = |n: i128| datum(n, ty).map_or_else(|_| n.to_string(), |d| number_text(&d));
    let Bounds { lo, hi } = bounds;
    let uses = |text: &str| resolve_columns(&Facts::of(&parse_expression(text).ok()?), &of.columns, &of.name).ok();
    let is_its = |text: &str| uses(text).is_some_and(|used| used.into_iter().any(|o| o == column.ordinal));
    let check = of.checks.iter().find(|c| is_its(&c.expression)).map(|c| c.name.clone());
    let message = match &check {
        Some(check) => format!("new row for relation \"{}\" violates check constraint \"{check}\"", of.name),
        // The type's own limits.
        None => return Error::sql("22003", format!("{} out of range", ty.base_name())).table(&of.name).column(name),
    };
    let headroom = match number.map(|number| (shown(number - lo), shown(hi - number))) {
        Some((down, up)) => format!("; it can go down by {down} and up by {up}"),
        None => String::new(),
    };
    let detail = format!("\"{name}\" stays from {} to {}{headroom}.", shown(lo), shown(hi));
    let e = Error::sql("23514", message).detail(detail).table(&of.name).column(name);
    match check {
        Some(check) => e.constraint(check),
        None => e,
    }
}

fn number_text(d: &Datum) -> String {
    match d {
        Datum::Int(n) => n.to_string(),
        Datum::Numeric(n) => n.to_string(),
        _ => String::new(),
    }
}

/// Writes the shares of a new row.
pub(super) fn begin<T: Transaction>(table: &TablePlan, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    table.table.escrow.iter().try_for_each(|column| split::begin(table, column, row, rt))
}

fn put<T: Transaction>(site: GroupId, key: Key, share: Option<Share>, rt: &mut Runtime<'_, T>) -> Result<()> {
    rt.ctx.write_at_home(site)?;
    let columns = if share.is_some() { ColumnMask::ALL } else { ColumnMask::EXISTENCE };
    rt.txn.write(site, Write { key, value: share.map(|s| s.encode()), columns })
}

/// Deletes the shares of a row that goes.
pub(super) fn end<T: Transaction>(table: &TablePlan, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    if table.table.escrow.is_empty() {
        return Ok(());
    }
    let primary = table.primary_key(row)?;
    table.table.escrow.iter().try_for_each(|column| end_shares(column, &column.share_key(&primary), rt))
}

fn end_shares<T: Transaction>(column: &EscrowColumn, key: &Key, rt: &mut Runtime<'_, T>) -> Result<()> {
    for site in &column.sites {
        rt.txn.hold(*site, escrow::range(key))?;
        put(*site, key.clone(), None, rt)?;
    }
    Ok(())
}

/// Sets the number of a row to what the row says.
fn set<T: Transaction>(table: &TablePlan, column: &EscrowColumn, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let bounds = row_bounds(table, column, row)?;
    let number = checked(table, column, bounds, &row[column.ordinal as usize])?;
    let (first, key) = (column.first_site(table.group_of(row)?), column.share_key(&table.primary_key(row)?));
    let incarnation = rt.txn.incarnation();
    for site in &column.sites {
        rt.txn.hold(*site, escrow::range(&key))?;
        let share = match *site == first {
            true => Some(Share::begin(incarnation, number, bounds)),
            false => (!column.closing.contains(site)).then(|| Share::empty(incarnation)),
        };
        put(*site, key.clone(), share, rt)?;
    }
    Ok(())
}

/// Sets the numbers that differ between two versions of a row that keeps its primary key, and moves
/// the bounds of the others. A number that was not read is `NULL` in the old one, and in the new
/// one unless it is set.
pub(super) async fn change<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for column in &table.table.escrow {
        let at = column.ordinal as usize;
        let bounds = row_bounds(table, column, new)?;
        if old[at].is_identical(&new[at]) {
            rebound(table, column, (row_bounds(table, column, old)?, bounds), new, rt).await?;
            continue;
        }
        set(table, column, new, rt)?;
    }
    Ok(())
}

/// What a row's numbers are, where they were not read, for a row that gets another primary key.
pub(super) async fn complete<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &mut [Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    read_unread(table, |_| true, old, new, rt).await
}

/// The same of the numbers that rows hold too, for a row that is written.
pub(super) async fn complete_stored<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &mut [Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    read_unread(table, |column| column.in_rows, old, new, rt).await
}

async fn read_unread<T: Transaction>(
    table: &TablePlan,
    which: impl Fn(&EscrowColumn) -> bool,
    old: &[Datum],
    new: &mut [Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let ordinals = table.table.escrow.iter().filter(|column| which(column)).map(|column| column.ordinal);
    let unread: Vec<u32> = ordinals.filter(|at| new[*at as usize].is_null()).collect();
    if unread.is_empty() {
        return Ok(());
    }
    read(table, &unread, &table.primary_key(old)?, new, rt).await
}

/// Whether numbers of the table have tokens in several places.
pub(super) fn may_bring(table: &TablePlan) -> bool {
    table.table.escrow.iter().any(|column| column.open_sites().nth(1).is_some())
}

/// Before a statement adds to the numbers of several rows: brings the tokens that are missing here,
/// for at most [`AHEAD`] rows at once.
pub(super) async fn bring_ahead<T: Transaction>(
    table: &TablePlan,
    changes: &[(Key, Vec<(u32, Datum)>)],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for column in &table.table.escrow {
        let sites = nearest(column, rt);
        let Some(first) = sites.first().copied() else { continue };
        let ty = &table.types[column.ordinal as usize];
        let mut short = Vec::new();
        for (primary, deltas) in changes {
            let Some((_, delta)) = deltas.iter().find(|(ordinal, _)| *ordinal == column.ordinal) else { continue };
            // What no row can have is told when it is added.
            let Some(delta) = scaled_delta(delta, ty, column.widest())?.filter(|d| d.abs() <= column.widest().width()) else {
                continue;
            };
            let (share, late) = (column.share_key(primary), Late::delta(TxnId::default(), delta));
            if !takes_some(&late) {
                continue;
            }
            let offer = rt.txn.offer(first, &share, &late).await?;
            if !offer.is_some_and(|offer| offer.free.allow(&late)) {
                short.push((share, late));
            }
        }
        if short.len() > 1 {
            rt.ctx.stay_home(sites.iter().copied(), Locking::None)?;
            rt.txn.bring_each(&sites, short).await?;
        }
    }
    Ok(())
}

/// Whether deltas of a row come before its other changes: these may take tokens that the deltas
/// give.
pub(super) fn adds_first(table: &TablePlan, old: &[Datum], new: &[Datum]) -> Result<bool> {
    let narrows = |column: &EscrowColumn| {
        let (before, after) = (row_bounds(table, column, old)?, row_bounds(table, column, new)?);
        Ok::<_, Error>(after.lo > before.lo || after.hi < before.hi)
    };
    let stays = table.primary_key(old)? == table.primary_key(new)?;
    Ok(stays && table.table.escrow.iter().map(narrows).collect::<Result<Vec<bool>>>()?.contains(&true))
}

/// Adds to the numbers of a row. `false`: the row is not there. `is_read`: it was read, so that it
/// is there. What adds nothing has to show that only where nothing else does.
pub(super) async fn add_all<T: Transaction>(
    table: &TablePlan,
    primary: &Key,
    deltas: &[(u32, Datum)],
    is_read: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    let is_known = is_read || !deltas.iter().all(|(_, delta)| is_nothing(delta));
    let (mut asked, mut found) = (0, 0);
    for (ordinal, delta) in deltas.iter().filter(|(_, delta)| !is_known || !is_nothing(delta)) {
        asked += 1;
        found += usize::from(add(table, *ordinal, primary, delta, rt).await?);
    }
    match found {
        0 => Ok(asked == 0),
        all if all == asked => Ok(true),
        _ => Err(Error::retry("could not serialize access: a row was inserted or deleted meanwhile")),
    }
}

fn is_nothing(delta: &Datum) -> bool {
    match delta {
        Datum::Int(n) => *n == 0,
        Datum::Numeric(n) => n.is_finite() && n.signum() == 0,
        _ => false,
    }
}

/// Puts exact numbers into a row that was read without them, to be written.
pub(super) async fn read<T: Transaction>(
    table: &TablePlan,
    ordinals: &[u32],
    primary: &Key,
    row: &mut [Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for column in table.table.escrow.iter().filter(|e| ordinals.contains(&e.ordinal)) {
        let (found, _) = number(column, &column.share_key(primary), Some(OnLocked::Wait), rt)
            .await?
            .ok_or_else(|| without_share(&table.table))?;
        row[column.ordinal as usize] = datum(found, &table.types[column.ordinal as usize])?;
    }
    Ok(())
}

/// Adds to the number of a row, at the nearest site that covers it. Whether the row is there:
/// certification asserts it.
async fn add<T: Transaction>(
    table: &TablePlan,
    ordinal: u32,
    primary: &Key,
    delta: &Datum,
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    let of = table.table.escrow_column(ordinal);
    let column = of.ok_or_else(|| Error::internal("a delta of a column that has no shares"))?;
    let share = column.share_key(primary);
    let delta = match scaled_delta(delta, &table.types[ordinal as usize], column.widest())? {
        Some(delta) if delta.abs() <= column.widest().width() => delta,
        // No row can have it; whether there is one has to be known first.
        certain => {
            return match (number(column, &share, None, rt).await?, certain) {
                (None, _) => Ok(false),
                (Some((_, bounds)), Some(_)) => Err(outside(table, column, bounds, None)),
                (Some((_, bounds)), None) => checked(table, column, bounds, &Datum::Null).map(|_| true),
            };
        }
    };
    let sites = nearest(column, rt);
    let (is_there, may_come) = match put_in(&sites, &share, Late::delta(TxnId::default(), delta), rt).await? {
        Put::Done => return Ok(true),
        Put::Nowhere { is_there, may_come } => (is_there, may_come),
    };
    // While a round of `majority` is applied, tokens do not tell the bounds of a row.
    let may_mislead = column.keeps_sites() && !column.limits.is_empty();
    // A number that all the sites had at one moment tells that it would leave its bounds, however
    // fast it changes.
    if !may_mislead
        && let Some((number, bounds)) = number_now(column, &share, rt).await?
        && !bounds.contain(number + delta)
    {
        return Err(outside(table, column, bounds, Some(number)));
    }
    // What no site said is certified: the row is not there, or the number would leave its bounds.
    let exact = match number(column, &share, None, rt).await {
        // The sites that answer have enough, for a statement that comes again.
        Err(e) if e.is_unavailable() && may_come => return Err(short(table, column, is_there)),
        exact => exact?,
    };
    let Some((number, bounds)) = exact else { return Ok(false) };
    let is_misled = may_mislead && is_moving(column, std::slice::from_ref(&share), rt).await?;
    if !bounds.contain(number + delta) && !is_misled {
        return Err(outside(table, column, bounds, Some(number)));
    }
    Err(short(table, column, is_there))
}

/// Moves the bounds of a row's number (E13): its tokens change by the difference, in the row's own
/// group if they are there.
async fn rebound<T: Transaction>(
    table: &TablePlan,
    column: &EscrowColumn,
    (before, after): (Bounds, Bounds),
    row: &[Datum],
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    if before == after {
        return Ok(());
    }
    // What a job has not come to yet has other tokens than the two say.
    if column.before.is_some() {
        return settle(table, column.index, &[row.to_vec()], true, rt).await;
    }
    let (first, share) = (column.first_site(table.group_of(row)?), column.share_key(&table.primary_key(row)?));
    let others = column.open_sites().filter(|site| *site != first);
    let sites: Vec<GroupId> = std::iter::once(first).chain(others).collect();
    let Put::Nowhere { is_there, .. } = put_in(&sites, &share, Late::rebound(TxnId::default(), before, after), rt).await? else {
        return Ok(());
    };
    match number(column, &share, None, rt).await? {
        None => Err(without_share(&table.table)),
        Some((number, _)) if !after.contain(number) => Err(outside(table, column, after, None)),
        Some(_) => Err(short(table, column, is_there)),
    }
}

/// Takes the tokens of rows to their bounds, whatever they were before.
pub(super) async fn settle<T: Transaction>(
    table: &TablePlan,
    index: u32,
    rows: &[Vec<Datum>],
    to_write: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let Some(column) = table.table.escrow.iter().find(|c| c.index == index) else { return Ok(()) };
    let shares: Vec<Key> = rows.iter().map(|row| Ok(column.share_key(&table.primary_key(row)?))).collect::<Result<_>>()?;
    if to_write {
        lock(column, &shares, OnLocked::Wait, rt).await?;
    }
    // Between the rows of one group there may be those of others.
    let is_dense = table.table.groups().nth(1).is_none();
    let found = sites(column, &shares, is_dense, rt).await?;
    for (row, share) in rows.iter().zip(&shares) {
        rt.pause().await?;
        let sites = found.get(share).ok_or_else(|| without_share(&table.table))?;
        let sum = |of: fn(&Share) -> i128| sites.values().map(of).sum::<i128>();
        let (number, is) = (sum(|s| s.contribution), Bounds { lo: -sum(|s| s.down), hi: sum(|s| s.up) });
        let target = row_bounds(table, column, row)?;
        if is == target {
            continue;
        }
        if !target.contain(number) {
            return Err(outside(table, column, target, None));
        }
        // What is given goes to the first site; what is taken is taken where it is.
        let (mut down, mut up) = Late::rebound(TxnId::default(), is, target).takes();
        let first = column.first_site(table.group_of(row)?);
        let order = std::iter::once(first).chain(column.sites.iter().copied().filter(|site| *site != first));
        for (site, of) in order.filter_map(|site| Some((site, sites.get(&site)?))) {
            let free = of.free();
            let takes = (down.min(free.down.max(0)), up.min(free.up.max(0)));
            (down, up) = (down - takes.0, up - takes.1);
            let late = Late::grant(of.incarnation, -takes.0, -takes.1);
            if late.has_grants() {
                rt.ctx.write_at_home(site)?;
                rt.txn.shift(site, share.clone(), late)?;
            }
        }
    }
    Ok(())
}

/// 40001: the tokens that are needed are somewhere else, or on their way.
fn short(table: &TablePlan, column: &EscrowColumn, is_there: bool) -> Error {
    let why = if is_there { "no region has enough tokens of the number for it" } else { "the row has just been inserted" };
    Error::retry(format!("could not serialize access: {why}"))
        .detail(format!("Column \"{}\" of table \"{}\".", name(table, column), table.table.name))
        .hint("Run the transaction again.")
}

/// Where a change of a share went.
enum Put {
    Done,
    /// No site allows it. `is_there`: one of them has a share. `may_come`: the sites that answer
    /// may have enough tokens, and they were not to be had now.
    Nowhere {
        is_there: bool,
        may_come: bool,
    },
}

/// Whether a change needs tokens.
fn takes_some(late: &Late) -> bool {
    let (down, up) = late.takes();
    down > 0 || up > 0
}

/// Adds to the share of the first of these sites that allows it. Tokens are brought to the first
/// one if it does not.
async fn put_in<T: Transaction>(sites: &[GroupId], share: &Key, late: Late, rt: &mut Runtime<'_, T>) -> Result<Put> {
    let (mut is_there, mut is_first, mut may_come) = (false, true, false);
    for site in sites.iter().copied() {
        let mut offer = match rt.txn.offer(site, share, &late).await {
            Ok(offer) => offer,
            // Another one may allow it.
            Err(e) if e.is_unavailable() && !is_first => None,
            Err(e) => return Err(e),
        };
        is_there |= offer.is_some();
        let mut allows = offer.is_some_and(|offer| offer.free.allow(&late));
        // No tokens need to come for a change that takes none: any share will do.
        if !allows && std::mem::take(&mut is_first) && sites.len() > 1 && takes_some(&late) {
            rt.ctx.stay_home(sites.iter().copied(), Locking::None)?;
            match rt.txn.bring(sites, share, late).await? {
                Brought::Yes => allows = true,
                Brought::TooFew => return Ok(Put::Nowhere { is_there, may_come }),
                Brought::TooFewAnswer => {}
                Brought::No => may_come = true,
            }
            is_there |= allows;
            // It may have no share before tokens come; and in a block they are held now.
            if allows {
                offer = rt.txn.offer(site, share, &late).await?;
            }
        }
        if !allows {
            continue;
        }
        rt.ctx.write_at_home(site)?;
        match offer {
            Some(offer) if late.has_grants() => {
                rt.txn.shift(site, share.clone(), Late { incarnation: offer.incarnation, ..late })?
            }
            None if late.has_grants() => continue,
            _ => rt.txn.add(site, share.clone(), late.contribution)?,
        }
        return Ok(Put::Done);
    }
    Ok(Put::Nowhere { is_there, may_come })
}

/// What a number that was read is after a delta; one that was not read stays `NULL`.
pub(super) fn show(table: &TablePlan, ordinal: u32, shown: &mut Datum, delta: &Datum) -> Result<()> {
    let ty = &table.types[ordinal as usize];
    let Some(column) = table.table.escrow_column(ordinal) else { return Ok(()) };
    if let (Some(before), Some(delta)) = (scaled(shown, ty)?, scaled_delta(delta, ty, column.widest())?) {
        *shown = datum(before + delta, ty)?;
    }
    Ok(())
}

/// The sites in which a column is changed, those of the gateway's region first.
fn nearest<T: Transaction>(column: &EscrowColumn, rt: &Runtime<'_, T>) -> Vec<GroupId> {
    let here = &*rt.ctx.eval.gateway_region;
    let is_here = |site: &GroupId| rt.ctx.catalog.group_by_id(*site).is_some_and(|g| g.home == here);
    let (mut near, far): (Vec<GroupId>, Vec<GroupId>) = column.open_sites().partition(is_here);
    near.extend(far);
    near
}

/// The error is the first escrow column of a row to be inserted that has no number.
pub(super) fn require(table: &TablePlan, row: &[Datum]) -> std::result::Result<(), u32> {
    table.table.escrow.iter().map(|e| e.ordinal).find(|o| row[*o as usize].is_null()).map_or(Ok(()), Err)
}

/// Whether a column of this table is an escrow column, whose numbers rows do not store.
pub(super) fn is_number(table: &TablePlan, ordinal: u32) -> bool {
    table.table.escrow_column(ordinal).is_some()
}

/// Whether rows do not store the numbers of this column.
pub(super) fn is_only_in_shares(table: &TablePlan, ordinal: u32) -> bool {
    table.table.escrow_column(ordinal).is_some_and(|column| !column.in_rows)
}
