//! Tables, columns, indexes, sequences, and what hangs on them.

use super::describe::visible_indexes;
use super::rows::{Objects, Rows, acl, array, bool, int, oid, opt_text, ordinals, owner, text};
use super::types::{alignment, collation, opclass_oid};
use super::{SystemContext, describe, namespace, tables};
use crate::catalog::{Column, ColumnState, IndexState, Table};
use crate::types::{Datum, Type};
use meridian_base::DescriptorId;

const HEAP: i64 = 2;
const BTREE: i64 = 403;
/// `pg_class` itself, in the columns that say which catalog an oid is of.
pub(super) const PG_CLASS: i64 = 1259;
pub(super) const PG_NAMESPACE: i64 = 2615;
pub(super) const PG_CONSTRAINT: i64 = 2606;

fn objects(context: &dyn SystemContext) -> Objects<'_> {
    Objects::of(context.catalog(), &context.names().database)
}

pub(super) fn pg_class(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_class");
    let o = objects(context);
    let never = || int(-1);
    let counted = |t: &Table| context.catalog().statistics_of(t.id).map(|s| s.rows as f64);
    for t in &o.tables {
        rows.push([
            ("oid", oid(t.id)),
            ("relname", text(&t.name)),
            ("relnamespace", oid(t.schema)),
            ("relowner", owner(&t.access)),
            ("relacl", acl(context.catalog(), &t.access)),
            ("relam", int(HEAP)),
            ("relfilenode", oid(t.id)),
            ("reltuples", Datum::Float(counted(t).unwrap_or(-1.0))),
            ("relhasindex", bool(visible_indexes(t).next().is_some())),
            ("relpersistence", text("p")),
            ("relkind", text("r")),
            ("relnatts", int(t.columns.len() as i64)),
            ("relchecks", int(t.checks.len() as i64)),
            ("relhastriggers", bool(!t.foreign_keys.is_empty() || !t.referenced_by.is_empty())),
            ("relispopulated", bool(true)),
            ("relreplident", text("d")),
        ]);
        for i in visible_indexes(t) {
            rows.push([
                ("oid", oid(DescriptorId(i.id))),
                ("relname", text(&i.name)),
                ("relnamespace", oid(t.schema)),
                ("relowner", owner(&t.access)),
                ("relam", int(BTREE)),
                ("relfilenode", oid(DescriptorId(i.id))),
                ("reltuples", Datum::Float(counted(t).unwrap_or(-1.0))),
                ("relpersistence", text("p")),
                ("relkind", text("i")),
                ("relnatts", int((i.columns.len() + i.stored.len()) as i64)),
                ("relispopulated", bool(true)),
                ("relreplident", text("n")),
            ]);
        }
    }
    for v in &o.views {
        rows.push([
            ("oid", oid(v.id)),
            ("relname", text(&v.name)),
            ("relnamespace", oid(v.schema)),
            ("relowner", owner(&v.access)),
            ("relacl", acl(context.catalog(), &v.access)),
            ("reltuples", Datum::Float(-1.0)),
            ("relpersistence", text("p")),
            ("relkind", text("v")),
            ("relnatts", int(v.columns.len() as i64)),
            ("relhasrules", bool(true)),
            ("relispopulated", bool(true)),
            ("relreplident", text("n")),
        ]);
    }
    for s in &o.sequences {
        rows.push([
            ("oid", oid(s.id)),
            ("relname", text(&s.name)),
            ("relnamespace", oid(s.schema)),
            ("relowner", owner(&s.access)),
            ("relacl", acl(context.catalog(), &s.access)),
            ("relfilenode", oid(s.id)),
            ("relpages", int(1)),
            ("reltuples", Datum::Float(1.0)),
            ("relpersistence", text("p")),
            ("relkind", text("S")),
            ("relnatts", int(3)),
            ("relispopulated", bool(true)),
            ("relreplident", text("n")),
        ]);
    }
    for t in tables() {
        rows.push([
            ("oid", int(t.oid)),
            ("relname", text(t.name)),
            ("relnamespace", int(namespace(t))),
            ("relowner", int(10)),
            ("relam", int(if t.is_view { 0 } else { HEAP })),
            ("reltuples", Datum::Float(-1.0)),
            ("relallvisible", never()),
            ("relpersistence", text("p")),
            ("relkind", text(if t.is_view { "v" } else { "r" })),
            ("relnatts", int(t.columns.len() as i64)),
            ("relispopulated", bool(true)),
            ("relreplident", text("n")),
        ]);
    }
    rows.finish()
}

/// What `pg_attribute` says of a type.
fn push_attribute(rows: &mut Rows, relation: Datum, number: i64, name: &str, ty: &Type, more: Attribute) {
    let storage = match ty {
        Type::Numeric(_) => "m",
        ty if ty.typlen() > 0 => "p",
        _ => "x",
    };
    rows.push([
        ("attrelid", relation),
        ("attname", text(name)),
        ("atttypid", int(if more.is_dropped { 0 } else { ty.oid() })),
        ("attstattarget", int(-1)),
        ("attlen", int(ty.typlen())),
        ("attnum", int(number)),
        ("attndims", int(i64::from(ty.element().is_some()))),
        ("attcacheoff", int(-1)),
        ("atttypmod", int(ty.typmod())),
        ("attbyval", bool(matches!(ty.typlen(), 1 | 2 | 4 | 8))),
        ("attalign", text(alignment(ty))),
        ("attstorage", text(storage)),
        ("attnotnull", bool(more.not_null)),
        ("atthasdef", bool(more.has_default)),
        ("atthasmissing", bool(more.has_missing)),
        ("attidentity", text(more.identity)),
        ("attgenerated", text(more.generated)),
        ("attisdropped", bool(more.is_dropped)),
        ("attislocal", bool(true)),
        ("attcollation", int(collation(ty))),
    ]);
}

#[derive(Default)]
struct Attribute {
    not_null: bool,
    has_default: bool,
    has_missing: bool,
    is_dropped: bool,
    identity: &'static str,
    generated: &'static str,
}

impl Attribute {
    fn of(c: &Column) -> Attribute {
        Attribute {
            not_null: c.not_null,
            has_default: c.default.is_some() || c.generated.is_some(),
            has_missing: c.missing.is_some(),
            // The row id is not there as far as SQL knows, and a gap in the numbers is what a
            // dropped column leaves.
            is_dropped: c.state != ColumnState::Public || c.is_hidden,
            identity: match &c.identity {
                None => "",
                Some(i) if i.always => "a",
                Some(_) => "d",
            },
            generated: if c.generated.is_some() { "s" } else { "" },
        }
    }
}

pub(super) fn pg_attribute(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_attribute");
    let o = objects(context);
    for t in &o.tables {
        for (i, c) in t.columns.iter().enumerate() {
            let number = i as i64 + 1;
            let attribute = Attribute::of(c);
            let name = if attribute.is_dropped { format!("........pg.dropped.{number}........") } else { c.name.clone() };
            push_attribute(&mut rows, oid(t.id), number, &name, &c.ty, attribute);
        }
        for index in visible_indexes(t) {
            let stored = index.columns.iter().map(|c| c.ordinal).chain(index.stored.iter().copied());
            for (i, ordinal) in stored.enumerate() {
                let c = &t.columns[ordinal as usize];
                push_attribute(&mut rows, oid(DescriptorId(index.id)), i as i64 + 1, &c.name, &c.ty, Attribute::default());
            }
        }
    }
    for v in &o.views {
        for (i, (name, ty)) in v.columns.iter().enumerate() {
            push_attribute(&mut rows, oid(v.id), i as i64 + 1, name, ty, Attribute::default());
        }
    }
    let counter = [("last_value", Type::Int8), ("log_cnt", Type::Int8), ("is_called", Type::Bool)];
    for s in &o.sequences {
        for (i, (name, ty)) in counter.iter().enumerate() {
            let attribute = Attribute { not_null: true, ..Attribute::default() };
            push_attribute(&mut rows, oid(s.id), i as i64 + 1, name, ty, attribute);
        }
    }
    for t in tables() {
        for (i, (name, ty)) in t.columns.iter().enumerate() {
            let attribute = Attribute { not_null: t.not_null[i], ..Attribute::default() };
            push_attribute(&mut rows, int(t.oid), i as i64 + 1, name, ty, attribute);
        }
    }
    rows.finish()
}

/// The oid of a default: PostgreSQL gives each one its own, here it follows from its column.
fn default_oid(table: &Table, ordinal: u32) -> i64 {
    (1 << 31) + (i64::from(table.id.0) * 1600 + i64::from(ordinal)) % (1 << 31)
}

pub(super) fn pg_attrdef(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_attrdef");
    for t in &objects(context).tables {
        for (ordinal, c) in t.public_columns() {
            let Some(expression) = c.default.as_ref().or(c.generated.as_ref()) else { continue };
            rows.push([
                ("oid", int(default_oid(t, ordinal))),
                ("adrelid", oid(t.id)),
                ("adnum", int(ordinal + 1)),
                ("adbin", text(expression)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_index(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_index");
    for t in &objects(context).tables {
        for i in visible_indexes(t) {
            let columns = || i.columns.iter().map(|c| &t.columns[c.ordinal as usize].ty);
            // Bit 0: descending, bit 1: NULLs first.
            let option = |c: &crate::catalog::IndexColumn| int(i64::from(c.descending) | i64::from(c.nulls_first) << 1);
            rows.push([
                ("indexrelid", oid(DescriptorId(i.id))),
                ("indrelid", oid(t.id)),
                ("indnatts", int((i.columns.len() + i.stored.len()) as i64)),
                ("indnkeyatts", int(i.columns.len() as i64)),
                ("indisunique", bool(i.unique)),
                ("indisprimary", bool(i.id == t.primary().id)),
                ("indimmediate", bool(true)),
                ("indisvalid", bool(i.state == IndexState::Public)),
                ("indisready", bool(i.state != IndexState::DeleteOnly)),
                ("indislive", bool(true)),
                ("indkey", ordinals(i.columns.iter().map(|c| c.ordinal).chain(i.stored.iter().copied()))),
                ("indcollation", array(Type::Oid, columns().map(|ty| int(collation(ty))).collect())),
                ("indclass", array(Type::Oid, columns().map(|ty| int(opclass_oid(ty))).collect())),
                ("indoption", array(Type::Int2, i.columns.iter().map(option).collect())),
                ("indpred", opt_text(i.predicate.as_ref())),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_sequence(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_sequence");
    for s in &objects(context).sequences {
        rows.push([
            ("seqrelid", oid(s.id)),
            ("seqtypid", int(s.ty.oid())),
            ("seqstart", int(s.start)),
            ("seqincrement", int(s.increment)),
            ("seqmax", int(s.max)),
            ("seqmin", int(s.min)),
            ("seqcache", int(s.cache)),
            ("seqcycle", bool(s.cycle)),
        ]);
    }
    rows.finish()
}

/// What a sequence belongs to, what an index is of, and what a view reads: the dependencies that
/// tools follow.
pub(super) fn pg_depend(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_depend");
    let o = objects(context);
    let class = || int(PG_CLASS);
    for s in &o.sequences {
        if let Some((table, ordinal)) = s.owned_by {
            let column = o.catalog.table_by_id(table).and_then(|t| t.columns.get(ordinal as usize).cloned());
            let is_identity = column.is_some_and(|c| c.identity.is_some());
            rows.push([
                ("classid", class()),
                ("objid", oid(s.id)),
                ("refclassid", class()),
                ("refobjid", oid(table)),
                ("refobjsubid", int(ordinal + 1)),
                ("deptype", text(if is_identity { "i" } else { "a" })),
            ]);
        }
    }
    for t in &o.tables {
        for i in visible_indexes(t) {
            // An index that a constraint made belongs to the constraint.
            let of = if i.is_constraint { (int(PG_CONSTRAINT), oid(DescriptorId(i.id)), "i") } else { (class(), oid(t.id), "a") };
            rows.push([
                ("classid", class()),
                ("objid", oid(DescriptorId(i.id))),
                ("refclassid", of.0),
                ("refobjid", of.1),
                ("deptype", text(of.2)),
            ]);
        }
    }
    for v in &o.views {
        for used in &v.depends_on {
            rows.push([
                ("classid", int(2618)),
                ("objid", oid(v.id)),
                ("refclassid", class()),
                ("refobjid", oid(*used)),
                ("deptype", text("n")),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_description(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_description");
    let o = objects(context);
    let mut push = |id: DescriptorId, class: i64, number: i64, comment: &Option<String>| {
        if let Some(comment) = comment {
            rows.push([("objoid", oid(id)), ("classoid", int(class)), ("objsubid", int(number)), ("description", text(comment))]);
        }
    };
    for s in &o.schemas {
        push(s.id, PG_NAMESPACE, 0, &s.comment);
    }
    for t in &o.tables {
        push(t.id, PG_CLASS, 0, &t.comment);
        for (ordinal, c) in t.public_columns() {
            push(t.id, PG_CLASS, i64::from(ordinal) + 1, &c.comment);
        }
        for i in visible_indexes(t) {
            push(DescriptorId(i.id), PG_CLASS, 0, &i.comment);
        }
    }
    for v in &o.views {
        push(v.id, PG_CLASS, 0, &v.comment);
    }
    for s in &o.sequences {
        push(s.id, PG_CLASS, 0, &s.comment);
    }
    rows.finish()
}

pub(super) fn pg_rewrite(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_rewrite");
    for v in &objects(context).views {
        rows.push([
            ("oid", oid(v.id)),
            ("rulename", text("_RETURN")),
            ("ev_class", oid(v.id)),
            ("ev_type", text("1")),
            ("ev_enabled", text("O")),
            ("is_instead", bool(true)),
            ("ev_qual", text("<>")),
            ("ev_action", text(describe::view(v))),
        ]);
    }
    rows.finish()
}
