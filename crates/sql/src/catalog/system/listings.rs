//! The views of `pg_catalog` that list relations for people.

use super::describe::visible_indexes;
use super::rows::{Objects, Rows, array, bool, int, text};
use super::{SystemContext, describe};
use crate::catalog::privileges::Privileges;
use crate::types::keys::decode_key_column;
use crate::types::{Datum, EvalContext, Type};

fn objects(context: &dyn SystemContext) -> Objects<'_> {
    Objects::of(context.catalog(), &context.names().database)
}

pub(super) fn pg_tables(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_tables");
    let o = objects(context);
    for t in &o.tables {
        rows.push([
            ("schemaname", text(o.schema_name(t.schema))),
            ("tablename", text(&t.name)),
            ("tableowner", text(context.catalog().role_name(t.access.owner()))),
            ("hasindexes", bool(visible_indexes(t).next().is_some())),
            ("hasrules", bool(false)),
            ("hastriggers", bool(!t.foreign_keys.is_empty() || !t.referenced_by.is_empty())),
            ("rowsecurity", bool(false)),
        ]);
    }
    for t in super::tables().filter(|t| !t.is_view) {
        rows.push([
            ("schemaname", text(t.schema)),
            ("tablename", text(t.name)),
            ("tableowner", text(crate::catalog::ids::ROOT_ROLE)),
            ("hasindexes", bool(false)),
            ("hasrules", bool(false)),
            ("hastriggers", bool(false)),
            ("rowsecurity", bool(false)),
        ]);
    }
    rows.finish()
}

/// Values are shown as text, whatever their type, and only to those who may read the table.
pub(super) fn pg_stats(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_stats");
    let o = objects(context);
    let eval = EvalContext::default();
    // A read of the past asks who may read the table now, too.
    let newest = context.newest();
    let who = newest.authority_of(context.names());
    for t in o.tables.iter().filter(|t| newest.permits(&who, t.id, Privileges::SELECT)) {
        let Some(statistics) = o.catalog.statistics_of(t.id) else { continue };
        for (ordinal, column) in t.live_columns() {
            let Some(c) = statistics.column(ordinal, &column.ty) else { continue };
            let shown = |key: &Vec<u8>| {
                let value = decode_key_column(&mut key.as_slice(), &column.ty, false, false).ok();
                value.map_or(Datum::Null, |v| text(v.to_text(&column.ty, &eval)))
            };
            let list = |items: Vec<Datum>, ty| if items.is_empty() { Datum::Null } else { array(ty, items) };
            // As in PostgreSQL: what grows with the table is a part of its rows, below zero.
            let (distinct, all) = (c.distinct as f64, statistics.rows as f64);
            let distinct = if distinct > all / 10.0 { -distinct / all } else { distinct };
            rows.push([
                ("schemaname", text(o.schema_name(t.schema))),
                ("tablename", text(&t.name)),
                ("attname", text(&column.name)),
                ("inherited", bool(false)),
                ("null_frac", Datum::Float(c.nulls.into())),
                ("avg_width", int(c.width.round() as i64)),
                ("n_distinct", Datum::Float(f64::from(distinct as f32))),
                ("most_common_vals", list(c.common.iter().map(|(v, _)| shown(v)).collect(), Type::Text)),
                ("most_common_freqs", list(c.common.iter().map(|(_, p)| Datum::Float((*p).into())).collect(), Type::Float4)),
                ("histogram_bounds", list(c.bounds.iter().map(shown).collect(), Type::Text)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_indexes(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_indexes");
    let o = objects(context);
    for t in &o.tables {
        for i in visible_indexes(t) {
            rows.push([
                ("schemaname", text(o.schema_name(t.schema))),
                ("tablename", text(&t.name)),
                ("indexname", text(&i.name)),
                ("indexdef", text(describe::index(t, i, Some(o.schema_name(t.schema))))),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_views(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_views");
    let o = objects(context);
    for v in &o.views {
        rows.push([
            ("schemaname", text(o.schema_name(v.schema))),
            ("viewname", text(&v.name)),
            ("viewowner", text(context.catalog().role_name(v.access.owner()))),
            ("definition", text(describe::view(v))),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_sequences(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_sequences");
    let o = objects(context);
    for s in &o.sequences {
        // `last_value` is in the sequence's group, which system tables do not read: NULL, as where
        // PostgreSQL may not look.
        rows.push([
            ("schemaname", text(o.schema_name(s.schema))),
            ("sequencename", text(&s.name)),
            ("sequenceowner", text(context.catalog().role_name(s.access.owner()))),
            ("data_type", int(s.ty.oid())),
            ("start_value", int(s.start)),
            ("min_value", int(s.min)),
            ("max_value", int(s.max)),
            ("increment_by", int(s.increment)),
            ("cycle", bool(s.cycle)),
            ("cache_size", int(s.cache)),
        ]);
    }
    rows.finish()
}
