//! `pg_constraint`.

use super::SystemContext;
use super::describe::visible_indexes;
use super::rows::{Objects, Rows, array, bool, int, oid, ordinals, text};
use crate::catalog::{FkAction, Index, Table};
use crate::types::{Datum, Type};
use meridian_base::DescriptorId;

/// The letter of `pg_constraint.confupdtype`.
fn letter(action: FkAction) -> &'static str {
    match action {
        FkAction::NoAction => "a",
        FkAction::Restrict => "r",
        FkAction::Cascade => "c",
        FkAction::SetNull => "n",
        FkAction::SetDefault => "d",
    }
}

/// The unique index that a foreign key points at.
pub(super) fn parent_index<'t>(parent: &'t Table, columns: &[u32]) -> Option<&'t Index> {
    let covers =
        |i: &&Index| i.unique && i.columns.len() == columns.len() && i.columns.iter().all(|c| columns.contains(&c.ordinal));
    visible_indexes(parent).find(covers)
}

pub(super) fn pg_constraint(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_constraint");
    let o = Objects::of(context.catalog(), &context.names().database);
    for t in &o.tables {
        for i in visible_indexes(t).filter(|i| i.is_constraint) {
            rows.push([
                ("oid", oid(DescriptorId(i.id))),
                ("conname", text(&i.name)),
                ("connamespace", oid(t.schema)),
                ("contype", text(if i.id == t.primary().id { "p" } else { "u" })),
                ("convalidated", bool(true)),
                ("conrelid", oid(t.id)),
                ("conindid", oid(DescriptorId(i.id))),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conislocal", bool(true)),
                ("connoinherit", bool(true)),
                ("conkey", ordinals(i.columns.iter().map(|c| c.ordinal))),
            ]);
        }
        for c in &t.checks {
            rows.push([
                ("oid", oid(c.id)),
                ("conname", text(&c.name)),
                ("connamespace", oid(t.schema)),
                ("contype", text("c")),
                ("convalidated", bool(c.validated)),
                ("conrelid", oid(t.id)),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conislocal", bool(true)),
                ("conkey", ordinals(super::describe::columns_of(t, &c.expression))),
                ("conbin", text(&c.expression)),
            ]);
        }
        for f in &t.foreign_keys {
            let parent = o.catalog.table_by_id(f.parent);
            let index =
                parent.as_deref().and_then(|p| parent_index(p, &f.parent_columns)).map_or(int(0), |i| oid(DescriptorId(i.id)));
            let equals = || array(Type::Oid, f.columns.iter().map(|_| int(96)).collect());
            rows.push([
                ("oid", oid(f.id)),
                ("conname", text(&f.name)),
                ("connamespace", oid(t.schema)),
                ("contype", text("f")),
                ("convalidated", bool(f.validated)),
                ("conrelid", oid(t.id)),
                ("conindid", index),
                ("confrelid", oid(f.parent)),
                ("confupdtype", text(letter(f.on_update))),
                ("confdeltype", text(letter(f.on_delete))),
                ("confmatchtype", text(if f.match_full { "f" } else { "s" })),
                ("conislocal", bool(true)),
                ("connoinherit", bool(true)),
                ("conkey", ordinals(f.columns.iter().copied())),
                ("confkey", ordinals(f.parent_columns.iter().copied())),
                ("conpfeqop", equals()),
                ("conppeqop", equals()),
                ("conffeqop", equals()),
            ]);
        }
    }
    rows.finish()
}
