//! Point statements without operators: from parameters to a key to the stored row to the socket's
//! buffer, or to one write.

use super::eval::Frame;
use super::write::{self, Changes};
use super::{Affected, ExecContext, RowSink, Runtime, Shared, cascade, dml, groups};
use crate::env::Transaction;
use crate::plan::eval::{Env, Memo, eval, finish};
use crate::plan::node::{DmlPlan, DmlPlanKind, KeyPart, Node, Scan};
use crate::plan::{FastKind, FastPlan};
use crate::types::keys::encode_key_column;
use crate::types::{Datum, RowView, Type};
use bytes::Bytes;
use meridian_base::key::encode;
use meridian_base::{Error, Key, Result};

pub(crate) async fn run<T: Transaction>(
    plan: &FastPlan,
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Affected> {
    match &plan.kind {
        FastKind::Get { fields } => get(plan.scan().ok_or_else(damaged)?, fields, params, txn, ctx, sink).await,
        FastKind::Update => update(plan, params, txn, ctx).await,
        FastKind::Insert => insert(plan.dml().ok_or_else(damaged)?, params, txn, ctx).await,
    }
}

fn damaged() -> Error {
    Error::internal("a point statement without its point")
}

async fn get<T: Transaction>(
    s: &Scan,
    fields: &[(u32, Type)],
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Affected> {
    let Some(key) = key(s, params, ctx)? else { return Ok(Affected { rows: 0 }) };
    let Some(bytes) = row(s, &key, params, txn, ctx).await? else { return Ok(Affected { rows: 0 }) };
    let view = RowView::new(bytes)?;
    if fields.iter().any(|(o, _)| view.is_missing(*o as usize)) {
        let row = fields.iter().map(|(o, _)| super::entries::column_of(&view, *o as usize, &s.types, &s.missing));
        let types: Vec<Type> = fields.iter().map(|(_, t)| t.clone()).collect();
        sink.row(&row.collect::<Result<Vec<_>>>()?, &types)?;
    } else {
        sink.stored(&view, fields)?;
    }
    if sink.is_full() {
        sink.drain().await?;
    }
    Ok(Affected { rows: 1 })
}

async fn update<T: Transaction>(plan: &FastPlan, params: &[Datum], txn: &mut T, ctx: &ExecContext<'_>) -> Result<Affected> {
    let (s, d) = (plan.scan().ok_or_else(damaged)?, plan.dml().ok_or_else(damaged)?);
    let DmlPlanKind::Update { set, .. } = &d.kind else { return Err(damaged()) };
    let Some(key) = key(s, params, ctx)? else { return Ok(Affected { rows: 0 }) };
    let Some(bytes) = row(s, &key, params, txn, ctx).await? else { return Ok(Affected { rows: 0 }) };
    let old = d.table.decode_row(bytes)?;
    let memo = Memo::default();
    let mut new = old.clone();
    for (o, e) in set {
        new[*o as usize] = finish(eval(&e.expr, &Env { row: &old, args: &[], params, ctx: ctx.eval, memo: &memo }))?;
    }
    let mut shared = Shared::default();
    write::update(&d.table, &old, &mut new, &mut Runtime { txn, ctx, params, shared: &mut shared }).await?;
    Ok(Affected { rows: 1 })
}

async fn insert<T: Transaction>(d: &DmlPlan, params: &[Datum], txn: &mut T, ctx: &ExecContext<'_>) -> Result<Affected> {
    let (DmlPlanKind::Insert { targets, random, infers, .. }, Node::Values(rows)) = (&d.kind, &*d.input) else {
        return Err(damaged());
    };
    let values = rows.first().ok_or_else(damaged)?;
    let memo = Memo::default();
    let env = Env { row: &[], args: &[], params, ctx: ctx.eval, memo: &memo };
    let mut row = vec![Datum::Null; d.table.types.len()];
    for (o, e) in targets.iter().zip(values) {
        row[*o as usize] = finish(eval(&e.expr, &env))?;
    }
    let mut shared = Shared::default();
    let mut rt = Runtime { txn, ctx, params, shared: &mut shared };
    if *infers {
        super::infer::region(d, &mut row, &mut rt).await?;
    }
    let mut changes = Changes::default();
    dml::insert_plain(d, row, random, &mut changes, &mut rt).await?;
    cascade::check(&d.table, &d.keys, changes, &mut rt).await?;
    Ok(Affected { rows: 1 })
}

/// The stored row of a point.
async fn row<T: Transaction>(s: &Scan, key: &Key, params: &[Datum], txn: &mut T, ctx: &ExecContext<'_>) -> Result<Option<Bytes>> {
    if let Some(group) = s.table.only_group() {
        ctx.stay_home(std::iter::once(group), s.locking)?;
        return txn.get(group, key, s.mask, s.locking).await;
    }
    let frame: Frame = std::sync::Arc::from([]);
    let mut shared = Shared::default();
    let groups = groups::of_scan(s, &frame, &mut Runtime { txn: &mut *txn, ctx, params, shared: &mut shared }).await?;
    let mut found = groups::get_anywhere(txn, ctx, &groups, std::slice::from_ref(key), s.mask, s.locking).await?;
    Ok(found.pop().flatten().map(|(_, value)| value))
}

/// The key of a point; `None` if a part of it is `NULL`.
fn key(s: &Scan, params: &[Datum], ctx: &ExecContext<'_>) -> Result<Option<Key>> {
    let memo = Memo::default();
    let env = Env { row: &[], args: &[], params, ctx: ctx.eval, memo: &memo };
    let index = s.table.primary();
    let mut out = Vec::with_capacity(32);
    encode::index(&mut out, index.id);
    for (part, c) in s.prefix.iter().zip(&index.columns) {
        let KeyPart::Eq(e) = part else { return Err(damaged()) };
        let v = finish(eval(&e.expr, &env))?;
        if v.is_null() {
            return Ok(None);
        }
        encode_key_column(&mut out, &v, &s.types[c.ordinal as usize], c.descending, c.nulls_first)?;
    }
    Ok(Some(Key::new(&out)))
}
