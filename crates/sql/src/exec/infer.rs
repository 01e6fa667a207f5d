//! `infer_rbr_region_col_using_constraint`: a new row that says no region goes where its parent is.
//!
//! The foreign key includes the region columns of both tables, so the parent of the other values
//! can be in one region at most that makes the key complete: the gateway's is tried first, then all
//! the others at once.

use super::Runtime;
use super::eval::Row;
use super::parents::{parent_groups, parent_key};
use crate::catalog::Homes;
use crate::env::{Locking, Transaction};
use crate::plan::node::DmlPlan;
use crate::types::Datum;
use meridian_base::{ColumnMask, GroupId, Key, Result};
use std::collections::BTreeMap;

/// Sets the region of a new row to its parent's. Without a parent the row keeps the one it has, and
/// breaks its foreign key.
pub(crate) async fn region<T: Transaction>(plan: &DmlPlan, row: &mut Row, rt: &mut Runtime<'_, T>) -> Result<()> {
    let table = &plan.table.table;
    let parents = plan.keys.parents.get(&table.id).into_iter().flatten();
    let parent = parents.into_iter().find(|(fk, _, _)| Some(fk.id) == table.infers_region_by);
    let (Some((fk, parent, index)), Some(column), Homes::ByRow(partitions)) = (parent, table.region_column(), &table.homes)
    else {
        return Ok(());
    };
    let is_open = |o: &u32| *o != column && row[*o as usize].is_null();
    if !fk.columns.contains(&column) || fk.columns.iter().any(is_open) {
        return Ok(());
    }
    let default = row[column as usize].clone();
    let (mut near, mut far): (Places, Places) = Default::default();
    for p in partitions {
        row[column as usize] = Datum::text(p.region.as_str());
        let key = parent_key(parent, *index, fk, row)?;
        let places = if *p.region == *rt.ctx.eval.gateway_region { &mut near } else { &mut far };
        for group in parent_groups(parent, fk, row, rt.ctx.eval).iter() {
            places.entry(group).or_default().push((key.clone(), p.region.clone()));
        }
    }
    for places in [near, far] {
        if let Some(region) = find(places, rt).await? {
            row[column as usize] = Datum::text(region);
            return Ok(());
        }
    }
    row[column as usize] = default;
    Ok(())
}

/// Where to look for which key, and the region that it would mean.
type Places = BTreeMap<GroupId, Vec<(Key, String)>>;

async fn find<T: Transaction>(places: Places, rt: &mut Runtime<'_, T>) -> Result<Option<String>> {
    if places.is_empty() {
        return Ok(None);
    }
    rt.ctx.stay_home(places.keys().copied(), Locking::None)?;
    let keys = |found: &[(Key, String)]| found.iter().map(|(key, _)| key.clone()).collect();
    let reads = places.iter().map(|(group, found)| (*group, keys(found))).collect();
    let answers = rt.txn.get_each(reads, ColumnMask::EXISTENCE, Locking::None).await?;
    let regions = places.into_values().flatten().map(|(_, region)| region);
    Ok(regions.zip(answers.into_iter().flatten()).find_map(|(region, value)| value.map(|_| region)))
}
