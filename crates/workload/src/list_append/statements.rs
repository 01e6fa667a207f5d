//! The statements of a transaction's steps, and what they did.

use super::{EVERYWHERE, Extras, Fate, How, Step, Tried, keys_of_region};
use crate::client::{Rows, Value};
use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Worker};
use crate::schema;
use crate::session::{Session, Statements};
use meridian_base::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Where a step goes.
#[derive(Debug)]
pub(super) struct Home {
    pub schema: String,
    region: String,
    regions: Arc<Vec<String>>,
    /// What a key is higher by in the history.
    pub offset: i64,
    /// What a key is higher by in the table.
    shift: i64,
    extras: Extras,
}

impl Home {
    pub fn of(context: &Context, region: &str, extras: Extras) -> Home {
        let regions = context.connector.regions();
        let index = regions.iter().position(|r| r == region).expect("a region of the cluster");
        let offset = keys_of_region(index).start;
        let (schema, shift) = match extras.by_row {
            true => (EVERYWHERE.to_string(), offset),
            false => (schema::schema_of(region), 0),
        };
        Home { schema, region: region.to_string(), regions: Arc::new(regions), offset, shift, extras }
    }

    /// The row of a key, and the column.
    fn place_of(&self, key: i64) -> (i64, &'static str) {
        place_of(key + self.shift)
    }

    /// The rows that hold a range of keys.
    fn rows_of(&self, from: i64, to: i64) -> (i64, i64) {
        ((from + self.shift) / 2, (to + self.shift + 1) / 2)
    }

    /// The column by which a statement finds a row, for a number drawn for it.
    fn column(&self, drawn: i64) -> &'static str {
        if self.extras.by_index && drawn % 2 == 0 { "tag" } else { "k" }
    }

    /// The statement that inserts a row with one list, given the row's number and the list.
    fn insert(&self, column: &str) -> String {
        let Home { schema, region, .. } = self;
        let (mut names, mut values) = (format!("k, {column}"), "$1, $2".to_string());
        if self.extras.by_index {
            names += ", tag";
            values += ", $1";
        }
        if self.extras.by_row {
            names += ", crdb_region";
            values += &format!(", '{region}'");
        }
        format!("INSERT INTO {schema}.lists ({names}) VALUES ({values})")
    }
}

/// What a transaction has done so far.
#[derive(Default)]
pub(super) struct Done {
    ops: Mutex<Vec<Op>>,
    taken_back: Mutex<Vec<Op>>,
}

impl Done {
    pub fn note(&self, op: Op) {
        self.ops.lock().expect("no panic while noting").push(op);
    }
    /// The last thing that was noted did not happen.
    pub fn forget(&self) {
        self.ops.lock().expect("no panic while noting").pop();
    }
    /// Appends from the given place on were taken back; what was read is still known.
    pub fn take_back(&self, from: usize) {
        let mut ops = self.ops.lock().expect("no panic while noting");
        let (appends, others) = ops.drain(from..).partition(|op| matches!(op, Op::Append { .. }));
        *ops = std::mem::take(&mut *ops).into_iter().chain::<Vec<Op>>(others).collect();
        self.taken_back.lock().expect("no panic while noting").extend::<Vec<Op>>(appends);
    }
    pub fn len(&self) -> usize {
        self.ops.lock().expect("no panic while noting").len()
    }
    pub fn take(&self) -> Vec<Op> {
        std::mem::take(&mut *self.ops.lock().expect("no panic while noting"))
    }
    pub fn take_taken_back(&self) -> Vec<Op> {
        std::mem::take(&mut *self.taken_back.lock().expect("no panic while noting"))
    }
}

/// Ranges of several regions, read by one statement outside a block.
pub(super) async fn read_at_once(
    context: &Context,
    session: &mut Session,
    worker: &Worker,
    homes: &[Home],
    steps: &[(usize, Step)],
) -> Tried {
    let ranges = steps.iter().filter_map(|(at, step)| match step {
        Step::ReadRange { from, to } => Some((*at, *from, *to)),
        _ => None,
    });
    let ranges: Vec<(usize, i64, i64)> = ranges.collect();
    let part = |(at, from, to): &(usize, i64, i64)| {
        let (first, end) = homes[*at].rows_of(*from, *to);
        let column = homes[*at].column(first + end);
        format!("SELECT {at} AS region, k, v, w FROM {}.lists WHERE {column} >= {first} AND {column} < {end}", homes[*at].schema)
    };
    let sql = ranges.iter().map(part).collect::<Vec<_>>().join(" UNION ALL ");
    let invoked = context.timer.now_micros();
    let read = session.query(&sql, &[]).await.and_then(|rows| {
        let mut ops = Vec::new();
        for (at, from, to) in &ranges {
            ops.push(Op::ReadRange {
                from: from + homes[*at].offset,
                to: to + homes[*at].offset,
                lists: lists_of(&rows, Some(*at as i64), *from, *to, &homes[*at])?,
            });
        }
        Ok(ops)
    });
    match read {
        Ok(ops) => {
            let completed = Some(context.timer.now_micros());
            context.history.push(Record { client: worker.id, invoked, completed, outcome: Outcome::Committed, ops });
            Tried::Committed
        }
        // It had no effect, whatever became of it.
        Err(error) => Tried::Failed(error),
    }
}

/// The lists in rows of (k, v, w), or of (region, k, v, w) those of one region.
fn lists_of(rows: &Rows, region: Option<i64>, from: i64, to: i64, home: &Home) -> Result<BTreeMap<i64, Vec<i64>>> {
    let mut lists: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let first_column = usize::from(region.is_some());
    for (index, row) in rows.rows.iter().enumerate() {
        if region.is_some() && region != Some(rows.int(index, 0)?) {
            continue;
        }
        let first = rows.int(index, first_column)? * 2 - home.shift;
        for (key, list) in [(first, &row[first_column + 1]), (first + 1, &row[first_column + 2])] {
            if (from..to).contains(&key) {
                // A row that is there twice has its values twice.
                lists.entry(key + home.offset).or_default().extend(parse_list(list)?);
            }
        }
    }
    Ok(lists)
}

/// Runs one step and notes what it did. A step that finds no table, or no region, is tried again.
pub(super) async fn perform(statements: &mut Statements<'_>, home: &Home, step: Step, done: &Done) -> Result<()> {
    match (step, perform_once(statements, home, step, done).await) {
        // The table is not there now, or the region is no place for rows.
        (Step::Scratch { .. }, Err(e)) if e.sqlstate() == "42P01" => Err(Error::retry("there is no such table now")),
        (_, Err(e)) if home.extras.by_row && is_about_regions(&e) => Err(Error::retry("a region is not there now")),
        (_, result) => result,
    }
}

/// What a step does behind a savepoint may be taken back.
async fn perform_once(statements: &mut Statements<'_>, home: &Home, step: Step, done: &Done) -> Result<()> {
    let Step::Append { savepoint: Some(fate), .. } = step else { return append_or(statements, home, step, done).await };
    let before = done.len();
    statements.query("SAVEPOINT here", &[]).await?;
    append_or(statements, home, step, done).await?;
    if fate == Fate::Kept {
        statements.query("RELEASE SAVEPOINT here", &[]).await?;
    } else {
        // It may have been taken back even if nobody says so: then nothing is committed.
        done.take_back(before);
        statements.query("ROLLBACK TO SAVEPOINT here", &[]).await?;
    }
    Ok(())
}

/// What a statement that names a region is told while the database does not have it.
fn is_about_regions(error: &Error) -> bool {
    matches!(error.sqlstate(), "22P02" | "42602" | "42704" | "22023")
}

/// An append is noted before it is sent: it may have happened even if it fails.
async fn append_or(statements: &mut Statements<'_>, home: &Home, step: Step, done: &Done) -> Result<()> {
    let Home { schema, offset, .. } = home;
    match step {
        Step::Read { key } => {
            let values = read_list(statements, home, key, false).await?.unwrap_or_default();
            done.note(Op::ReadList { key: key + offset, values });
        }
        Step::ReadRange { from, to } => {
            let lists = read_range(statements, home, from, to).await?;
            done.note(Op::ReadRange { from: from + offset, to: to + offset, lists });
        }
        Step::Append { key, value, how: how @ (How::ReadThenWrite | How::LockThenWrite), .. } => {
            let list = read_list(statements, home, key, matches!(how, How::LockThenWrite)).await?;
            let missing = list.is_none();
            let mut values = list.unwrap_or_default();
            done.note(Op::ReadList { key: key + offset, values: values.clone() });
            values.push(value);
            done.note(Op::Append { key: key + offset, value });
            let (row, column) = home.place_of(key);
            let by = home.column(value);
            let sql = match missing {
                true => home.insert(column),
                false => format!("UPDATE {schema}.lists SET {column} = $2 WHERE {by} = $1"),
            };
            statements.query(&sql, &[row.into(), format_list(&values).into()]).await?;
        }
        Step::Append { key, value, how: How::Birth, .. } => {
            done.note(Op::Append { key: key + offset, value });
            let (row, column) = home.place_of(key);
            statements.query(&home.insert(column), &[row.into(), value.to_string().into()]).await?;
        }
        Step::Append { key, value, how: how @ (How::Concatenate | How::IfThere), .. } => {
            done.note(Op::Append { key: key + offset, value });
            let (row, column) = home.place_of(key);
            let by = home.column(value);
            let params: [Value; 2] = [row.into(), value.to_string().into()];
            let update = format!("UPDATE {schema}.lists SET {column} = COALESCE({column} || ',', '') || $2 WHERE {by} = $1");
            let is_missing = statements.query(&update, &params).await?.affected == 0;
            if is_missing && matches!(how, How::Concatenate) {
                statements.query(&home.insert(column), &params).await?;
            } else if is_missing {
                done.forget();
                done.note(Op::ReadList { key: key + offset, values: Vec::new() });
            }
        }
        Step::Append { key, value, how: How::Upsert, .. } => {
            done.note(Op::Append { key: key + offset, value });
            let (row, column) = home.place_of(key);
            let sql = format!(
                "{} ON CONFLICT (k) DO UPDATE SET {column} = COALESCE(lists.{column} || ',', '') || excluded.{column}",
                home.insert(column)
            );
            statements.query(&sql, &[row.into(), value.to_string().into()]).await?;
        }
        Step::Delete { row } => {
            let (place, _) = home.place_of(row * 2);
            let by = home.column(row);
            let sql = format!("DELETE FROM {schema}.lists WHERE {by} = $1 RETURNING v, w");
            let rows = statements.query(&sql, &[place.into()]).await?;
            for (key, column) in [(row * 2, 0), (row * 2 + 1, 1)] {
                let key = key + offset;
                match rows.rows.first() {
                    Some(lists) => done.note(Op::Delete { key, values: parse_list(&lists[column])? }),
                    None => done.note(Op::ReadList { key, values: Vec::new() }),
                }
            }
        }
        Step::Move { row, to } => {
            let (place, _) = home.place_of(row * 2);
            let to = &home.regions[to % home.regions.len()];
            let sql = format!("UPDATE {schema}.lists SET crdb_region = '{to}' WHERE k = $1");
            statements.query(&sql, &[place.into()]).await?;
        }
        Step::Scratch { id } => {
            statements.query(&format!("INSERT INTO {schema}.scratch (id) VALUES ($1)"), &[id.into()]).await?;
        }
    }
    Ok(())
}

/// The row and the column of a key's list.
fn place_of(key: i64) -> (i64, &'static str) {
    (key / 2, if key % 2 == 0 { "v" } else { "w" })
}

/// A key's list; `None` if its row is missing.
async fn read_list(statements: &mut Statements<'_>, home: &Home, key: i64, lock: bool) -> Result<Option<Vec<i64>>> {
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let (row, column) = home.place_of(key);
    let sql = format!("SELECT {column} FROM {}.lists WHERE {} = $1{suffix}", home.schema, home.column(key / 2));
    let rows = statements.query(&sql, &[row.into()]).await?;
    rows.rows.first().map(|row| parse_list(&row[0])).transpose()
}

/// The lists of the keys of a range whose rows are there.
pub(super) async fn read_range(
    statements: &mut Statements<'_>,
    home: &Home,
    from: i64,
    to: i64,
) -> Result<BTreeMap<i64, Vec<i64>>> {
    let (first, end) = home.rows_of(from, to);
    let by = home.column(first + end);
    let sql = format!("SELECT k, v, w FROM {}.lists WHERE {by} >= $1 AND {by} < $2", home.schema);
    let rows = statements.query(&sql, &[first.into(), end.into()]).await?;
    lists_of(&rows, None, from, to, home)
}

fn format_list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// A column of lists: NULL is the empty one.
fn parse_list(value: &Value) -> Result<Vec<i64>> {
    let wrong = || Error::internal("a list that nobody wrote").detail(value.to_string());
    match value {
        Value::Null => Ok(Vec::new()),
        // A list of one looks like a number to drivers that guess.
        Value::Int(only) => Ok(vec![*only]),
        Value::Text(text) => text.split(',').map(|part| part.parse().map_err(|_| wrong())).collect(),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_as_they_were_formatted() {
        assert_eq!(parse_list(&format_list(&[3, 1, 2]).into()).expect("a list"), vec![3, 1, 2]);
        assert_eq!(parse_list(&Value::Null).expect("no list"), Vec::<i64>::new());
        assert!(parse_list(&"1,,2".into()).is_err());
    }
}
