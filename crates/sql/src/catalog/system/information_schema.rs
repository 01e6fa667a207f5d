//! `information_schema` (PostgreSQL manual, chapter 37).

use super::constraints::parent_index;
use super::describe::visible_indexes;
use super::rows::{Objects, Rows, int, opt_text, text, yes};
use super::{INFORMATION_SCHEMA, SystemContext, describe};
use crate::catalog::privileges::{ObjectKind, Privileges};
use crate::catalog::{Column, FkAction, Table};
use crate::types::{Datum, Type};
use meridian_base::DescriptorId;

fn objects(context: &dyn SystemContext) -> Objects<'_> {
    super::privileges::accessible(context)
}
/// Definitions are shown to those who own what they are of.
fn owner(context: &dyn SystemContext) -> impl Fn(DescriptorId) -> bool {
    let catalog = context.catalog();
    let who = catalog.authority_of(context.names());
    move |object| catalog.owns(&who, object)
}
/// The constraints of a table are shown to its owner, and to those who may do more than read it.
fn may_change(context: &dyn SystemContext) -> impl Fn(&Table) -> bool {
    let catalog = context.catalog();
    let who = catalog.authority_of(context.names());
    move |t| {
        let held = catalog.held(&who, ObjectKind::Table, &t.access);
        catalog.owns(&who, t.id) || !held.without(Privileges::SELECT).is_empty()
    }
}
fn rows_of(table: &str) -> Rows {
    Rows::of(INFORMATION_SCHEMA, table)
}

pub(super) fn catalog_name(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("information_schema_catalog_name");
    rows.push([("catalog_name", text(&context.names().database))]);
    rows.finish()
}

pub(super) fn schemata(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("schemata");
    let root = crate::catalog::ids::ROOT_ROLE.to_string();
    let system = [super::PG_CATALOG, INFORMATION_SCHEMA].map(|s| (s.to_string(), root.clone()));
    let own = objects(context).schemas.into_iter().map(|s| (s.name.clone(), context.catalog().role_name(s.access().owner())));
    for (name, owner) in system.into_iter().chain(own) {
        rows.push([
            ("catalog_name", text(&context.names().database)),
            ("schema_name", text(name)),
            ("schema_owner", text(owner)),
        ]);
    }
    rows.finish()
}

pub(super) fn tables(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("tables");
    let o = objects(context);
    let own_tables = o.tables.iter().map(|t| (o.schema_name(t.schema), t.name.as_str(), "BASE TABLE", true));
    let own_views = o.views.iter().map(|v| (o.schema_name(v.schema), v.name.as_str(), "VIEW", false));
    let system = super::tables().map(|t| (t.schema, t.name, if t.is_view { "VIEW" } else { "BASE TABLE" }, false));
    for (schema, name, kind, insertable) in own_tables.chain(own_views).chain(system) {
        rows.push([
            ("table_catalog", text(&context.names().database)),
            ("table_schema", text(schema)),
            ("table_name", text(name)),
            ("table_type", text(kind)),
            ("is_insertable_into", yes(insertable)),
            ("is_typed", yes(false)),
        ]);
    }
    rows.finish()
}

/// A column of a relation, as `columns` shows it.
struct Shown<'a> {
    schema: &'a str,
    relation: &'a str,
    number: i64,
    name: &'a str,
    ty: &'a Type,
    column: Option<&'a Column>,
    not_null: bool,
    updatable: bool,
}

pub(super) fn columns(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("columns");
    let o = objects(context);
    let database = &context.names().database;
    let names = context.names();
    for t in &o.tables {
        for (ordinal, c) in t.public_columns() {
            let shown = Shown {
                schema: o.schema_name(t.schema),
                relation: &t.name,
                number: i64::from(ordinal) + 1,
                name: &c.name,
                ty: &c.ty,
                column: Some(c),
                not_null: c.not_null,
                updatable: true,
            };
            push_column(&mut rows, database, &shown, &|e| describe::expression(o.catalog, names, e));
        }
    }
    for v in &o.views {
        for (i, (name, ty)) in v.columns.iter().enumerate() {
            let schema = o.schema_name(v.schema);
            let number = i as i64 + 1;
            let shown = Shown { schema, relation: &v.name, number, name, ty, column: None, not_null: false, updatable: false };
            push_column(&mut rows, database, &shown, &|e| e.to_string());
        }
    }
    for t in super::tables() {
        for (i, (name, ty)) in t.columns.iter().enumerate() {
            let (number, not_null) = (i as i64 + 1, t.not_null[i]);
            let shown = Shown { schema: t.schema, relation: t.name, number, name, ty, column: None, not_null, updatable: false };
            push_column(&mut rows, database, &shown, &|e| e.to_string());
        }
    }
    rows.finish()
}

/// PostgreSQL's names for what is no type of its own.
fn data_type(ty: &Type) -> String {
    match ty {
        Type::Region => "USER-DEFINED".to_string(),
        Type::Array(_) => "ARRAY".to_string(),
        ty => ty.base_name(),
    }
}

fn push_column(rows: &mut Rows, database: &str, c: &Shown, show: &dyn Fn(&str) -> String) {
    let (precision, radix, scale) = match c.ty {
        Type::Int2 => (int(16), int(2), int(0)),
        Type::Int4 => (int(32), int(2), int(0)),
        Type::Int8 => (int(64), int(2), int(0)),
        Type::Float4 => (int(24), int(2), Datum::Null),
        Type::Float8 => (int(53), int(2), Datum::Null),
        Type::Numeric(Some((p, s))) => (int(*p), int(10), int(*s)),
        Type::Numeric(None) => (Datum::Null, int(10), Datum::Null),
        _ => (Datum::Null, Datum::Null, Datum::Null),
    };
    let (length, octets) = match c.ty {
        Type::Varchar(Some(n)) | Type::Char(n @ 1..) => (int(*n), int((i64::from(*n) * 4).min(1 << 30))),
        Type::Text | Type::Varchar(None) => (Datum::Null, int(1 << 30)),
        _ => (Datum::Null, Datum::Null),
    };
    let datetime = match c.ty {
        Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval => int(6),
        Type::Date => int(0),
        _ => Datum::Null,
    };
    let identity = c.column.and_then(|c| c.identity.as_ref());
    let generated = c.column.and_then(|c| c.generated.as_deref());
    rows.push([
        ("table_catalog", text(database)),
        ("table_schema", text(c.schema)),
        ("table_name", text(c.relation)),
        ("column_name", text(c.name)),
        ("ordinal_position", int(c.number)),
        ("column_default", opt_text(c.column.and_then(|c| c.default.as_deref()).map(show))),
        ("is_nullable", yes(!c.not_null)),
        ("data_type", text(data_type(c.ty))),
        ("character_maximum_length", length),
        ("character_octet_length", octets),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", datetime),
        ("udt_catalog", text(database)),
        ("udt_schema", text(super::PG_CATALOG)),
        ("udt_name", text(c.ty.internal_name())),
        ("dtd_identifier", text(c.number.to_string())),
        ("is_self_referencing", yes(false)),
        ("is_identity", yes(identity.is_some())),
        ("identity_generation", opt_text(identity.map(|i| if i.always { "ALWAYS" } else { "BY DEFAULT" }))),
        ("is_generated", text(if generated.is_some() { "ALWAYS" } else { "NEVER" })),
        ("generation_expression", opt_text(generated.map(show))),
        ("is_updatable", yes(c.updatable)),
    ]);
}

/// Every constraint of a table: (name, kind).
fn constraints(t: &Table) -> Vec<(String, &'static str)> {
    let indexes = visible_indexes(t).filter(|i| i.is_constraint);
    let mut all: Vec<(String, &'static str)> =
        indexes.map(|i| (i.name.clone(), if i.id == t.primary().id { "PRIMARY KEY" } else { "UNIQUE" })).collect();
    all.extend(t.foreign_keys.iter().map(|f| (f.name.clone(), "FOREIGN KEY")));
    all.extend(t.checks.iter().map(|c| (c.name.clone(), "CHECK")));
    all.extend(not_nulls(t).map(|(name, _)| (name, "CHECK")));
    all
}

/// NOT NULL is a check by the standard, with a made-up name.
fn not_nulls(t: &Table) -> impl Iterator<Item = (String, &str)> {
    let name = |ordinal: u32| format!("{}_{}_{}_not_null", super::oid(t.schema), super::oid(t.id), ordinal + 1);
    t.public_columns().filter(|(_, c)| c.not_null).map(move |(o, c)| (name(o), c.name.as_str()))
}

pub(super) fn table_constraints(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("table_constraints");
    let (o, may_change) = (objects(context), may_change(context));
    for t in o.tables.iter().filter(|t| may_change(t)) {
        for (name, kind) in constraints(t) {
            rows.push([
                ("constraint_catalog", text(&context.names().database)),
                ("constraint_schema", text(o.schema_name(t.schema))),
                ("constraint_name", text(name)),
                ("table_catalog", text(&context.names().database)),
                ("table_schema", text(o.schema_name(t.schema))),
                ("table_name", text(&t.name)),
                ("constraint_type", text(kind)),
                ("is_deferrable", yes(false)),
                ("initially_deferred", yes(false)),
                ("enforced", yes(true)),
                ("nulls_distinct", if kind == "UNIQUE" { yes(true) } else { Datum::Null }),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn check_constraints(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("check_constraints");
    let (o, owns) = (objects(context), owner(context));
    for t in o.tables.iter().filter(|t| owns(t.id)) {
        let declared = t.checks.iter().map(|c| (c.name.clone(), format!("({})", c.expression)));
        let nulls = not_nulls(t).map(|(name, column)| (name, format!("{column} IS NOT NULL")));
        for (name, clause) in declared.chain(nulls) {
            rows.push([
                ("constraint_catalog", text(&context.names().database)),
                ("constraint_schema", text(o.schema_name(t.schema))),
                ("constraint_name", text(name)),
                ("check_clause", text(clause)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn key_column_usage(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("key_column_usage");
    let o = objects(context);
    for t in &o.tables {
        let schema = o.schema_name(t.schema);
        let mut push = |constraint: &str, column: u32, at: usize, parent: Datum| {
            rows.push([
                ("constraint_catalog", text(&context.names().database)),
                ("constraint_schema", text(schema)),
                ("constraint_name", text(constraint)),
                ("table_catalog", text(&context.names().database)),
                ("table_schema", text(schema)),
                ("table_name", text(&t.name)),
                ("column_name", text(&t.columns[column as usize].name)),
                ("ordinal_position", int(at as i64 + 1)),
                ("position_in_unique_constraint", parent),
            ]);
        };
        for i in visible_indexes(t).filter(|i| i.is_constraint) {
            for (at, c) in i.columns.iter().enumerate() {
                push(&i.name, c.ordinal, at, Datum::Null);
            }
        }
        for f in &t.foreign_keys {
            let parent = o.catalog.table_by_id(f.parent);
            for (at, column) in f.columns.iter().enumerate() {
                let index = parent.as_deref().and_then(|p| parent_index(p, &f.parent_columns));
                let position = index.and_then(|i| i.columns.iter().position(|c| c.ordinal == f.parent_columns[at]));
                push(&f.name, *column, at, position.map_or(Datum::Null, |p| int(p as i64 + 1)));
            }
        }
    }
    rows.finish()
}

pub(super) fn constraint_column_usage(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("constraint_column_usage");
    // The columns of the user's own tables, whoever's constraints use them.
    let (o, owns) = (Objects::of(context.catalog(), &context.names().database), owner(context));
    for t in &o.tables {
        let constraint_schema = o.schema_name(t.schema);
        let mut push = |table: &Table, column: u32, constraint: &str| {
            if !owns(table.id) {
                return;
            }
            rows.push([
                ("table_catalog", text(&context.names().database)),
                ("table_schema", text(o.schema_name(table.schema))),
                ("table_name", text(&table.name)),
                ("column_name", text(&table.columns[column as usize].name)),
                ("constraint_catalog", text(&context.names().database)),
                ("constraint_schema", text(constraint_schema)),
                ("constraint_name", text(constraint)),
            ]);
        };
        for i in visible_indexes(t).filter(|i| i.is_constraint) {
            i.columns.iter().for_each(|c| push(t, c.ordinal, &i.name));
        }
        for c in &t.checks {
            describe::columns_of(t, &c.expression).into_iter().for_each(|o| push(t, o, &c.name));
        }
        for f in &t.foreign_keys {
            if let Some(parent) = o.catalog.table_by_id(f.parent) {
                f.parent_columns.iter().for_each(|c| push(&parent, *c, &f.name));
            }
        }
    }
    rows.finish()
}

pub(super) fn referential_constraints(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("referential_constraints");
    let (o, may_change) = (objects(context), may_change(context));
    let rule = |a: FkAction| text(describe::action(a));
    for t in o.tables.iter().filter(|t| may_change(t)) {
        for f in &t.foreign_keys {
            let Some(parent) = o.catalog.table_by_id(f.parent) else { continue };
            let index = parent_index(&parent, &f.parent_columns);
            rows.push([
                ("constraint_catalog", text(&context.names().database)),
                ("constraint_schema", text(o.schema_name(t.schema))),
                ("constraint_name", text(&f.name)),
                ("unique_constraint_catalog", text(&context.names().database)),
                ("unique_constraint_schema", text(o.schema_name(parent.schema))),
                ("unique_constraint_name", opt_text(index.map(|i| &i.name))),
                ("match_option", text(if f.match_full { "FULL" } else { "NONE" })),
                ("update_rule", rule(f.on_update)),
                ("delete_rule", rule(f.on_delete)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn sequences(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("sequences");
    let o = objects(context);
    for s in &o.sequences {
        let bits = match s.ty {
            Type::Int2 => 16,
            Type::Int4 => 32,
            _ => 64,
        };
        rows.push([
            ("sequence_catalog", text(&context.names().database)),
            ("sequence_schema", text(o.schema_name(s.schema))),
            ("sequence_name", text(&s.name)),
            ("data_type", text(s.ty.name())),
            ("numeric_precision", int(bits)),
            ("numeric_precision_radix", int(2)),
            ("numeric_scale", int(0)),
            ("start_value", text(s.start.to_string())),
            ("minimum_value", text(s.min.to_string())),
            ("maximum_value", text(s.max.to_string())),
            ("increment", text(s.increment.to_string())),
            ("cycle_option", yes(s.cycle)),
        ]);
    }
    rows.finish()
}

pub(super) fn views(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("views");
    let (o, owns) = (objects(context), owner(context));
    for v in &o.views {
        rows.push([
            ("table_catalog", text(&context.names().database)),
            ("table_schema", text(o.schema_name(v.schema))),
            ("table_name", text(&v.name)),
            ("view_definition", opt_text(owns(v.id).then(|| describe::view(v)))),
            ("check_option", text("NONE")),
            ("is_updatable", yes(false)),
            ("is_insertable_into", yes(false)),
            ("is_trigger_updatable", yes(false)),
            ("is_trigger_deletable", yes(false)),
            ("is_trigger_insertable_into", yes(false)),
        ]);
    }
    rows.finish()
}
