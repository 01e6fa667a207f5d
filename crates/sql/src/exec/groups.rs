//! Which groups of a table a read goes to, and in which order (CockroachDB's multi-region paper,
//! §4.2).
//!
//! A table that is `REGIONAL BY ROW` has its rows in several groups. Where a condition, a key or a
//! computed region says which one, only that one is read. Otherwise, if every key can have one row
//! at most, the gateway's own group is read first and the others only for what it lacks, all of
//! them together: *locality-optimized search*. A session can do without it
//! (`locality_optimized_partitioned_index_scan`, to see what it is worth): then all of them are
//! read together.

use super::eval::{Frame, eval_scalar};
use super::key_parts::part_values;
use super::{ExecContext, Runtime};
use crate::catalog::Table;
use crate::catalog::being_dropped;
use crate::env::{Locking, Transaction};
use crate::plan::TablePlan;
use crate::plan::eval::{Env, Memo, eval, finish};
use crate::plan::node::{KeyPart, Scalar, Scan};
use crate::types::keys::is_exact;
use crate::types::{Datum, EvalContext};
use bytes::Bytes;
use meridian_base::{ColumnMask, Error, GroupId, Key, Result};

/// The groups that may hold what is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Groups {
    /// Read first: the gateway's own, or the only one.
    pub(crate) near: Option<GroupId>,
    /// Read together, for what is missing.
    pub(crate) far: Vec<GroupId>,
}

impl Groups {
    pub(crate) fn one(group: GroupId) -> Groups {
        Groups { near: Some(group), far: Vec::new() }
    }
    /// All groups of a table, that of a region first.
    pub(crate) fn all(table: &Table, region: &str) -> Groups {
        match table.only_group() {
            Some(group) => Groups::one(group),
            None => Groups::of(table.groups().collect(), table.group_in(region)),
        }
    }
    /// The groups of some regions' rows. A region that the table has no partition for has no rows.
    pub(crate) fn in_regions(table: &Table, regions: &[Datum], gateway: &str) -> Groups {
        let mut groups: Vec<GroupId> = Vec::with_capacity(regions.len());
        for region in regions {
            if let Datum::Text(name) = region
                && let Some(group) = table.group_in(name.as_str())
                && !groups.contains(&group)
            {
                groups.push(group);
            }
        }
        Groups::of(groups, table.group_in(gateway))
    }
    fn of(mut groups: Vec<GroupId>, first: Option<GroupId>) -> Groups {
        let near = match groups.as_slice() {
            [one] => Some(*one),
            _ => first.filter(|g| groups.contains(g)),
        };
        groups.retain(|g| Some(*g) != near);
        Groups { near, far: groups }
    }
    /// The same, none of them before the others.
    pub(crate) fn together(self) -> Groups {
        match (self.near, self.far.as_slice()) {
            (Some(_), [_, ..]) => Groups { near: None, far: self.iter().collect() },
            _ => self,
        }
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.near.iter().chain(&self.far).copied()
    }
}

/// The groups that a scan has to read.
pub(crate) async fn of_scan<T: Transaction>(s: &Scan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Groups> {
    if let Some(group) = s.table.only_group() {
        return Ok(Groups::one(group));
    }
    let gateway = rt.ctx.eval.gateway_region.clone();
    let is_near_first = rt.ctx.options.is_near_first;
    let in_order = |groups: Groups| if is_near_first { groups } else { groups.together() };
    let Some(regions) = &s.regions else { return Ok(in_order(Groups::all(&s.table, &gateway))) };
    let values = match &regions.part {
        KeyPart::Eq(e) if regions.is_computed => computed(std::slice::from_ref(e), frame, rt).await?,
        KeyPart::In(list) if regions.is_computed => computed(list, frame, rt).await?,
        part => part_values(part, frame, rt).await?,
    };
    Ok(in_order(Groups::in_regions(&s.table, &values, &gateway)))
}

/// Regions computed from other columns' values. Where that fails, no row with such values could
/// have been written.
async fn computed<T: Transaction>(each: &[Scalar], frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Datum>> {
    let mut out = Vec::with_capacity(each.len());
    for e in each {
        match eval_scalar(e, &[], frame, rt).await {
            Ok(region) => out.push(region),
            Err(e) if e.sqlstate().starts_with("22") => {}
            Err(e) => return Err(e),
        }
    }
    Ok(out)
}

/// Each key's value and the group that has it, for keys that one group has at most.
pub(crate) async fn get_anywhere<T: Transaction>(
    txn: &mut T,
    exec: &ExecContext<'_>,
    groups: &Groups,
    keys: &[Key],
    columns: ColumnMask,
    locking: Locking,
) -> Result<Vec<Option<(GroupId, Bytes)>>> {
    exec.stay_home(groups.near.into_iter(), locking)?;
    let mut out: Vec<Option<(GroupId, Bytes)>> = match (groups.near, keys) {
        (None, _) => vec![None; keys.len()],
        (Some(near), [key]) => vec![txn.get(near, key, columns, locking).await?.map(|v| (near, v))],
        (Some(near), keys) => {
            let found = txn.get_many(near, keys, columns, locking).await?;
            found.into_iter().map(|v| v.map(|v| (near, v))).collect()
        }
    };
    let missing: Vec<usize> = (0..keys.len()).filter(|at| out[*at].is_none()).collect();
    if groups.far.is_empty() || missing.is_empty() {
        return Ok(out);
    }
    exec.stay_home(groups.far.iter().copied(), locking)?;
    let wanted: Vec<Key> = missing.iter().map(|at| keys[*at].clone()).collect();
    let reads = groups.far.iter().map(|g| (*g, wanted.clone())).collect();
    let found = txn.get_each(reads, columns, locking).await?;
    for (group, values) in groups.far.iter().zip(found) {
        for (at, value) in missing.iter().zip(values) {
            if let Some(value) = value {
                out[*at] = Some((*group, value));
            }
        }
    }
    Ok(out)
}

impl TablePlan {
    /// The group a row lives in.
    pub fn group_of(&self, row: &[Datum]) -> Result<GroupId> {
        if let Some(group) = self.table.only_group() {
            return Ok(group);
        }
        let region = self.table.region_column().and_then(|o| row.get(o as usize));
        self.group_in(region.unwrap_or(&Datum::Null))
    }
    /// The same for a row that comes to live there; 55006 in a region that is being dropped.
    pub fn open_group_of(&self, row: &[Datum]) -> Result<GroupId> {
        let group = self.group_of(row)?;
        match self.table.closing_region(group) {
            Some(region) => Err(being_dropped(region).table(&self.table.name)),
            None => Ok(group),
        }
    }
    fn group_in(&self, region: &Datum) -> Result<GroupId> {
        let Datum::Text(name) = region else {
            return Err(Error::internal("a row of a REGIONAL BY ROW table has no region"));
        };
        self.table.group_in(name.as_str()).ok_or_else(|| {
            Error::sql("22P02", format!("invalid input value for enum crdb_internal_region: \"{}\"", name.as_str()))
                .table(&self.table.name)
        })
    }
    /// The groups that may hold a row of which some columns are known; those of the gateway's
    /// region first.
    pub(crate) fn groups_with(&self, known: &dyn Fn(u32) -> Option<Datum>, ctx: &EvalContext) -> Groups {
        let region = self.table.region_column().and_then(|o| known(o).or_else(|| self.computed_region(o, known, ctx)));
        match region {
            Some(region) => Groups::in_regions(&self.table, &[region], &ctx.gateway_region),
            None => Groups::all(&self.table, &ctx.gateway_region),
        }
    }
    /// The region of such a row, if it is computed from known columns.
    fn computed_region(&self, column: u32, known: &dyn Fn(u32) -> Option<Datum>, ctx: &EvalContext) -> Option<Datum> {
        let (_, e) = self.generated.iter().find(|(o, _)| *o == column)?;
        let mut row = vec![Datum::Null; self.types.len()];
        for o in e.slots() {
            row[o as usize] = known(o).filter(|_| is_exact(&self.types[o as usize]))?;
        }
        finish(eval(e, &Env { row: &row, args: &[], params: &[], ctx, memo: &Memo::default() })).ok()
    }
    /// Whether two rows with the same values in an index may live in different groups, so that
    /// uniqueness is a question to all of them.
    pub(crate) fn is_scattered(&self, index: usize) -> bool {
        let Some(region) = self.table.region_column() else { return false };
        let has = |o: u32| self.table.indexes[index].columns.iter().any(|c| c.ordinal == o);
        let says = |o: &u32| has(*o) && is_exact(&self.types[*o as usize]);
        let computed = self.generated.iter().find(|(o, _)| *o == region);
        !has(region) && !computed.is_some_and(|(_, e)| e.slots().iter().all(says))
    }
}
