//! The views of `pg_catalog` that list relations for people.

use super::relations::visible_indexes;
use super::rows::{Objects, Rows, bool, int, text};
use super::{SystemContext, describe};
use crate::types::Datum;

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
            ("tableowner", text(&t.owner)),
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
            ("tableowner", text(crate::catalog::bootstrap::ROOT_ROLE)),
            ("hasindexes", bool(false)),
            ("hasrules", bool(false)),
            ("hastriggers", bool(false)),
            ("rowsecurity", bool(false)),
        ]);
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
            ("viewowner", text(&v.owner)),
            ("definition", text(describe::view(v))),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_sequences(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_sequences");
    let o = objects(context);
    for s in &o.sequences {
        // `last_value` is in the sequence's group, which system tables do not read: NULL, as where PostgreSQL may not look.
        rows.push([
            ("schemaname", text(o.schema_name(s.schema))),
            ("sequencename", text(&s.name)),
            ("sequenceowner", text(&s.owner)),
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
