//! Point statements, without operators: from parameters to a key to the stored row to the socket's buffer.

use super::{Affected, ExecContext, RowSink};
use super::eval::{Env, Memo, eval, finish};
use crate::env::Transaction;
use crate::plan::FastPlan;
use crate::plan::physical::{KeyPart, Node, Scan};
use crate::types::keys::encode_key_column;
use crate::types::{Datum, RowView};
use meridian_base::key::encode;
use meridian_base::{Error, Key, Result};
use std::sync::Arc;

pub(crate) async fn run<T: Transaction>(
    plan: &FastPlan,
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Affected> {
    let FastPlan::Get(get) = plan;
    let s = scan(&get.scan)?;
    let Some(key) = key(s, params, ctx)? else { return Ok(Affected { rows: 0 }) };
    let Some(bytes) = txn.get(s.table.group, &key, s.mask, s.locking).await? else { return Ok(Affected { rows: 0 }) };
    let view = RowView::new(bytes)?;
    if get.fields.iter().any(|(o, _)| view.is_missing(*o as usize)) {
        let row = get.fields.iter().map(|(o, _)| super::entries::column_of(&view, *o as usize, &s.types, &s.missing));
        let row = row.collect::<Result<Vec<_>>>()?;
        let types: Vec<_> = get.fields.iter().map(|(_, t)| t.clone()).collect();
        sink.row(&row, &types)?;
    } else {
        sink.stored(&view, &get.fields)?;
    }
    if sink.is_full() {
        sink.drain().await?;
    }
    Ok(Affected { rows: 1 })
}

/// The operator that does the same, for portals that fetch.
pub(crate) fn node(plan: &FastPlan) -> Arc<Node> {
    let FastPlan::Get(get) = plan;
    get.whole.clone()
}

fn scan(node: &Node) -> Result<&Scan> {
    match node {
        Node::Scan(s) => Ok(s),
        _ => Err(Error::internal("a point statement without a point")),
    }
}

fn key(s: &Scan, params: &[Datum], ctx: &ExecContext<'_>) -> Result<Option<Key>> {
    let memo = Memo::default();
    let env = Env { row: &[], args: &[], params, ctx: ctx.eval, memo: &memo };
    let index = &s.table.indexes[s.index];
    let mut out = Vec::with_capacity(32);
    encode::index(&mut out, index.id);
    for (part, c) in s.prefix.iter().zip(&index.columns) {
        let KeyPart::Eq(e) = part else { return Err(Error::internal("a point statement without a point")) };
        let v = finish(eval(&e.expr, &env))?;
        if v.is_null() {
            return Ok(None);
        }
        encode_key_column(&mut out, &v, &s.types[c.ordinal as usize], c.descending, c.nulls_first)?;
    }
    Ok(Some(Key::new(&out)))
}
