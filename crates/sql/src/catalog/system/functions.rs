//! Functions about the catalog, and the text forms of `regclass` and its relatives (PostgreSQL
//! manual 9.26.4 and 8.19).

use super::{describe, types};
use crate::catalog::catalog_of;
use crate::catalog::names::{Name, Names};
use crate::catalog::privileges::{Access, ObjectKind, acl_item};
use crate::catalog::{Catalog, Descriptor};
use crate::types::functions::Call;
use crate::types::functions::args::Args;
use crate::types::functions::registry::{Def, Registry};
use crate::types::{ArrayValue, Datum, EvalContext, Type};
use meridian_base::{DescriptorId, Error, Result};

/// The text form of a `regclass`, `regtype`, `regproc` or `regnamespace`; `None` if there is no
/// such object.
pub fn reg_name(ctx: &EvalContext, ty: &Type, oid: u32) -> Option<String> {
    match ty {
        Type::Regclass => describe::relation_name(catalog_of(ctx), &Names::of(ctx), oid),
        Type::Regtype => Type::from_oid(oid).map(|t| t.name()),
        Type::Regnamespace => match oid {
            super::PG_CATALOG_OID => Some(super::PG_CATALOG.to_string()),
            super::INFORMATION_SCHEMA_OID => Some(super::INFORMATION_SCHEMA.to_string()),
            oid => super::from_oid(oid).and_then(|id| catalog_of(ctx).schema_by_id(id)).map(|s| super::quote(&s.name)),
        },
        Type::Regproc => function_by_oid(oid).map(|def| def.name.to_string()),
        _ => None,
    }
}

/// The oid that a name means for a `reg*` type: 42P01, 42704, 3F000 or 42883 if there is none.
pub fn reg_oid(ctx: &EvalContext, ty: &Type, name: &str) -> Result<u32> {
    if let Ok(oid) = name.trim().parse::<u32>() {
        return Ok(oid);
    }
    match ty {
        Type::Regclass => catalog_of(ctx).relation(&Names::of(ctx), &Name::parse(name)?).map(|r| r.oid()),
        Type::Regtype => {
            let found = Type::from_name(name).map(|t| t.oid());
            found.ok_or_else(|| Error::sql("42704", format!("type \"{name}\" does not exist")))
        }
        Type::Regnamespace => {
            let name = Name::parse(name)?.name;
            match name.as_str() {
                super::PG_CATALOG => Ok(super::PG_CATALOG_OID),
                super::INFORMATION_SCHEMA => Ok(super::INFORMATION_SCHEMA_OID),
                name => catalog_of(ctx).schema(&Names::of(ctx), name).map(|s| super::oid(s.id)),
            }
        }
        Type::Regproc => {
            let wanted = Name::parse(name)?.name;
            let mut found = types::functions().filter(|(_, def)| def.name == wanted);
            match (found.next(), found.next()) {
                (Some((oid, _)), None) => Ok(oid),
                (Some(_), Some(_)) => Err(Error::sql("42725", format!("more than one function named \"{wanted}\""))),
                _ => Err(Error::sql("42883", format!("function \"{wanted}\" does not exist"))),
            }
        }
        other => Err(Error::internal(format!("{} has no names", other.name()))),
    }
}

fn function_by_oid(oid: u32) -> Option<&'static Def> {
    types::functions().find(|(o, _)| *o == oid).map(|(_, def)| def)
}

fn text(s: impl AsRef<str>) -> Result<Datum> {
    Ok(Datum::Text(s.as_ref().into()))
}
fn opt(s: Option<impl AsRef<str>>) -> Result<Datum> {
    s.map_or(Ok(Datum::Null), text)
}
fn oid_at(args: &[Datum], i: usize) -> Result<u32> {
    Ok(args.int(i)? as u32)
}
/// The comment on something the catalog holds. `number`: of a column, from 1 on; 0 for the thing
/// itself.
fn comment(catalog: &Catalog, oid: u32, number: i64) -> Option<String> {
    let id = super::from_oid(oid)?;
    match catalog.descriptors.get(&id).map(|d| &**d) {
        Some(Descriptor::Table(t)) if number > 0 => t.columns.get(number as usize - 1)?.comment.clone(),
        Some(_) if number > 0 => None,
        Some(Descriptor::Table(t)) => t.comment.clone(),
        Some(Descriptor::View(v)) => v.comment.clone(),
        Some(Descriptor::Sequence(s)) => s.comment.clone(),
        Some(Descriptor::Schema(s)) => s.comment.clone(),
        Some(Descriptor::Database(d)) => d.comment.clone(),
        Some(Descriptor::Group(_) | Descriptor::Job(_) | Descriptor::Leaving(_) | Descriptor::Statistics(_)) => None,
        Some(Descriptor::Role(r)) => r.comment.clone(),
        Some(Descriptor::LoginRules(_)) => None,
        None => describe::index_by_oid(catalog, oid).and_then(|(_, i)| i.comment.clone()),
    }
}

/// Adds the catalog's functions.
pub fn register(r: &mut Registry) {
    register_definitions(r);
    register_visibility(r);
    register_lookups(r);
    register_absent(r);
    super::privileges::register(r);
    register_sizes(r);
    register_escrow(r);
}

/// Of columns of tables in `FROM` it is part of the plan (`plan::bind_escrow`).
fn register_escrow(r: &mut Registry) {
    r.scalar("escrow_estimate", "anyelement -> anyelement", |_, _| {
        Err(Error::sql("42809", "the argument of escrow_estimate must be an escrow column"))
    })
    .stable();
}

fn register_definitions(r: &mut Registry) {
    r.scalar("format_type", "oid, int4 -> text", |_, a| {
        let Some(Datum::Int(oid)) = a.first() else { return Ok(Datum::Null) };
        let Some(ty) = Type::from_oid(*oid as u32) else { return text(if *oid == 0 { "-" } else { "???" }) };
        match a.get(1) {
            // Without a modifier `char` is `character`, with -1 `bpchar`.
            Some(Datum::Int(typmod)) => text(ty.with_typmod(*typmod as i32).name()),
            _ => text(ty.base_name()),
        }
    })
    .sees_null();
    for signature in ["text, oid -> text", "text, oid, bool -> text"] {
        r.scalar("pg_get_expr", signature, |c, a| text(describe::expression(catalog_of(c.ctx), &Names::of(c.ctx), a.text(0)?)))
            .stable();
    }
    r.scalar("pg_get_indexdef", "oid -> text", |c, a| {
        let found = describe::index_by_oid(catalog_of(c.ctx), oid_at(a, 0)?);
        let schema = found.and_then(|(t, _)| catalog_of(c.ctx).schema_by_id(t.schema)).map(|s| s.name.as_str());
        opt(found.map(|(t, i)| describe::index(t, i, schema)))
    })
    .stable();
    r.scalar("pg_get_indexdef", "oid, int4, bool -> text", |c, a| {
        let Some((t, i)) = describe::index_by_oid(catalog_of(c.ctx), oid_at(a, 0)?) else { return Ok(Datum::Null) };
        match a.int(1)? {
            0 => text(describe::index(t, i, None)),
            number => opt(describe::index_column(t, i, number as usize)),
        }
    })
    .stable();
    for signature in ["oid -> text", "oid, bool -> text"] {
        r.scalar("pg_get_constraintdef", signature, |c, a| {
            opt(describe::constraint_by_oid(catalog_of(c.ctx), &Names::of(c.ctx), oid_at(a, 0)?))
        })
        .stable();
        r.scalar("pg_get_viewdef", signature, |c, a| {
            let id = super::from_oid(oid_at(a, 0)?);
            match id.and_then(|id| catalog_of(c.ctx).descriptors.get(&id)).map(|d| &**d) {
                Some(Descriptor::View(v)) => text(describe::view(v)),
                _ => Ok(Datum::Null),
            }
        })
        .stable();
    }
    r.scalar("pg_get_function_result", "oid -> text", |_, a| opt(function_by_oid(oid_at(a, 0)?).map(types::result))).stable();
    for name in ["pg_get_function_arguments", "pg_get_function_identity_arguments"] {
        r.scalar(name, "oid -> text", |_, a| opt(function_by_oid(oid_at(a, 0)?).map(types::arguments))).stable();
    }
    r.scalar("pg_get_serial_sequence", "text, text -> text", serial_sequence).stable();
    r.scalar("pg_get_userbyid", "oid -> name", |c, a| text(super::privileges::user_by_oid(catalog_of(c.ctx), oid_at(a, 0)?)))
        .stable();
}

fn serial_sequence(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let catalog = catalog_of(c.ctx);
    let names = Names::of(c.ctx);
    let table = catalog.table(&names, &Name::parse(a.text(0)?)?)?;
    let (ordinal, _) = table.column(a.text(1)?).ok_or_else(|| {
        Error::sql("42703", format!("column \"{}\" of relation \"{}\" does not exist", a.text(1).unwrap_or_default(), table.name))
    })?;
    let owned = catalog.descriptors.values().find_map(|d| match &**d {
        Descriptor::Sequence(s) if s.owned_by == Some((table.id, ordinal)) => Some(s),
        _ => None,
    });
    let qualified = owned.and_then(|s| {
        let schema = catalog.schema_by_id(s.schema)?;
        Some(format!("{}.{}", super::quote(&schema.name), super::quote(&s.name)))
    });
    opt(qualified)
}

fn register_visibility(r: &mut Registry) {
    r.scalar("pg_table_is_visible", "oid -> bool", |c, a| {
        Ok(describe::is_visible(catalog_of(c.ctx), &Names::of(c.ctx), oid_at(a, 0)?).map_or(Datum::Null, Datum::Bool))
    })
    .stable();
    // Everything else is in pg_catalog, which every search path contains.
    for name in [
        "pg_type_is_visible",
        "pg_function_is_visible",
        "pg_operator_is_visible",
        "pg_opclass_is_visible",
        "pg_opfamily_is_visible",
        "pg_collation_is_visible",
        "pg_conversion_is_visible",
        "pg_statistics_obj_is_visible",
    ] {
        r.scalar(name, "oid -> bool", |_, _| Ok(Datum::Bool(true))).stable();
    }
    for signature in ["oid -> text", "oid, name -> text"] {
        r.scalar("obj_description", signature, |c, a| opt(comment(catalog_of(c.ctx), oid_at(a, 0)?, 0))).stable();
    }
    r.scalar("shobj_description", "oid, name -> text", |c, a| opt(comment(catalog_of(c.ctx), oid_at(a, 0)?, 0))).stable();
    r.scalar("col_description", "oid, int4 -> text", |c, a| opt(comment(catalog_of(c.ctx), oid_at(a, 0)?, a.int(1)?.max(1))))
        .stable();
}

fn register_lookups(r: &mut Registry) {
    fn to<const T: usize>(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
        let ty = [Type::Regclass, Type::Regtype, Type::Regnamespace, Type::Regproc];
        Ok(reg_oid(c.ctx, &ty[T], a.text(0)?).map_or(Datum::Null, |oid| Datum::Int(oid.into())))
    }
    r.scalar("to_regclass", "text -> regclass", to::<0>).stable();
    r.scalar("to_regtype", "text -> regtype", to::<1>).stable();
    r.scalar("to_regnamespace", "text -> regnamespace", to::<2>).stable();
    r.scalar("to_regproc", "text -> regproc", to::<3>).stable();
    r.scalar("acldefault", "text, oid -> text[]", acl_default).stable();
    r.scalar("pg_reload_conf", "-> bool", |c, _| c.ctx.system.reload().map(Datum::Bool)).volatile();
    r.scalar("unique_rowid", "-> int8", |c, _| Ok(Datum::Int(c.ctx.system.unique_rowid()))).volatile();
    r.scalar("pg_encoding_to_char", "int4 -> name", |_, a| text(if a.int(0)? == super::cluster::UTF8 { "UTF8" } else { "" }))
        .stable();
    r.scalar("pg_char_to_encoding", "name -> int4", |_, a| {
        let utf8 = matches!(a.text(0)?.to_ascii_uppercase().as_str(), "UTF8" | "UTF-8" | "UNICODE");
        Ok(Datum::Int(if utf8 { super::cluster::UTF8 } else { -1 }))
    })
    .stable();
}

/// What the grants on a new object are, by its kind and its owner.
fn acl_default(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let catalog = catalog_of(c.ctx);
    let owner = oid_at(a, 1)?;
    let id = catalog.roles().find(|r| r.oid() == owner).map_or(DescriptorId(owner), |r| r.id);
    let name = |role| catalog.role_name(role);
    let of_kind = |kind| Access::of(id).grants(kind).iter().map(|g| acl_item(g, &name)).collect::<Vec<_>>();
    let owner = name(id);
    let of_all = |letters: &str, public: bool| {
        let public = public.then(|| format!("={letters}/{owner}"));
        public.into_iter().chain([format!("{owner}={letters}/{owner}")]).collect()
    };
    let items = match a.text(0)? {
        "r" => of_kind(ObjectKind::Table),
        "s" => of_kind(ObjectKind::Sequence),
        "n" => of_kind(ObjectKind::Schema),
        "d" => of_kind(ObjectKind::Database),
        "c" => Vec::new(),
        "f" => of_all("X", true),
        "l" | "T" => of_all("U", true),
        "F" | "S" => of_all("U", false),
        "t" => of_all("C", false),
        "L" => of_all("rw", false),
        "p" => of_all("sA", false),
        other => return Err(Error::sql("22023", format!("unrecognized object type abbreviation: {other}"))),
    };
    Ok(ArrayValue::datum(Type::Text, items.into_iter().map(Datum::text).collect()))
}

/// Functions about things that do not exist here: they have nothing to tell.
fn register_absent(r: &mut Registry) {
    for (name, signature) in [
        ("pg_get_ruledef", "oid -> text"),
        ("pg_get_ruledef", "oid, bool -> text"),
        ("pg_get_triggerdef", "oid -> text"),
        ("pg_get_triggerdef", "oid, bool -> text"),
        ("pg_get_partkeydef", "oid -> text"),
        ("pg_get_functiondef", "oid -> text"),
        ("pg_get_statisticsobjdef", "oid -> text"),
        ("pg_get_statisticsobjdef_columns", "oid -> text"),
        ("pg_tablespace_location", "oid -> text"),
        ("pg_relation_filepath", "regclass -> text"),
    ] {
        r.scalar(name, signature, |_, _| Ok(Datum::Null)).stable();
    }
    r.scalar("pg_relation_is_publishable", "regclass -> bool", |_, _| Ok(Datum::Bool(false))).stable();
    r.set("pg_partition_ancestors", "regclass -> regclass", |_, _| Ok(Box::new(std::iter::empty())))
        .columns(&[("relid", "regclass")]);
    r.set("pg_partition_tree", "regclass -> record", |_, _| Ok(Box::new(std::iter::empty()))).columns(&[
        ("relid", "regclass"),
        ("parentrelid", "regclass"),
        ("isleaf", "bool"),
        ("level", "int4"),
    ]);
}

/// Sizes are the store's, which the catalog does not see: unknown. A relation that does not exist
/// is an error all the same.
fn register_sizes(r: &mut Registry) {
    for name in ["pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size"] {
        r.scalar(name, "regclass -> int8", |_, _| Ok(Datum::Null)).stable();
    }
    r.scalar("pg_relation_size", "regclass, text -> int8", |_, _| Ok(Datum::Null)).stable();
    r.scalar("pg_database_size", "name -> int8", |c, a| catalog_of(c.ctx).database(a.text(0)?).map(|_| Datum::Null)).stable();
    r.scalar("pg_database_size", "oid -> int8", |_, _| Ok(Datum::Null)).stable();
    r.scalar("pg_tablespace_size", "oid -> int8", |_, _| Ok(Datum::Null)).stable();
    r.scalar("pg_size_pretty", "int8 -> text", |_, a| text(size_pretty(a.int(0)?)));
}

/// PostgreSQL's `pg_size_pretty`: the largest unit with at least 10 of it, rounded half away from
/// zero.
fn size_pretty(bytes: i64) -> String {
    let mut size = i128::from(bytes);
    if size.abs() < 10 * 1024 {
        return format!("{size} bytes");
    }
    // Kept doubled, so that the last division can round.
    size /= 512;
    for unit in ["kB", "MB", "GB", "TB"] {
        if size.abs() < 20 * 1024 - 1 {
            return format!("{} {unit}", (size + size.signum()) / 2);
        }
        size /= 1024;
    }
    format!("{} PB", (size + size.signum()) / 2)
}
