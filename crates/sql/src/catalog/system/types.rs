//! Types, functions, access methods, collations: what PostgreSQL brings and the catalog does not
//! hold.

use super::rows::{Rows, array, bool, int, text};
use super::{FUNCTIONS, SystemContext};
use crate::types::functions::Volatility;
use crate::types::functions::registry::{Body, Def, Param};
use crate::types::{Category, Datum, Type};

const PG_CATALOG_OID: i64 = super::PG_CATALOG_OID as i64;
const ROOT: i64 = 10;
/// The default collation.
const DEFAULT_COLLATION: i64 = 100;

pub(super) fn pg_type(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_type");
    for ty in Type::all() {
        let is_array = ty.element().is_some();
        let functions = match (&ty, is_array) {
            (_, true) => "array_".to_string(),
            (Type::Char(_), _) => "bpchar".to_string(),
            (Type::Region, _) => "enum_".to_string(),
            // PostgreSQL's older names end without the underscore: int4in, but date_in.
            (Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval | Type::Uuid, _) => {
                format!("{}_", ty.internal_name())
            }
            (Type::Json | Type::Jsonb | Type::Numeric(_) | Type::Void | Type::Record, _) => format!("{}_", ty.internal_name()),
            _ => ty.internal_name(),
        };
        rows.push([
            ("oid", int(ty.oid())),
            ("typname", text(ty.internal_name())),
            ("typnamespace", int(PG_CATALOG_OID)),
            ("typowner", int(ROOT)),
            ("typlen", int(ty.typlen())),
            ("typbyval", bool(matches!(ty.typlen(), 1 | 2 | 4 | 8))),
            ("typtype", text(kind(&ty))),
            ("typcategory", text(ty.category().letter().to_string())),
            ("typispreferred", bool(ty.is_preferred())),
            ("typisdefined", bool(true)),
            ("typdelim", text(",")),
            ("typsubscript", int(if is_array { 6179 } else { 0 })),
            ("typelem", int(ty.element().map_or(0, Type::oid))),
            ("typarray", int(ty.array_oid())),
            ("typinput", int(function_oid(&format!("{functions}in")))),
            ("typoutput", int(function_oid(&format!("{functions}out")))),
            ("typreceive", int(function_oid(&format!("{functions}recv")))),
            ("typsend", int(function_oid(&format!("{functions}send")))),
            ("typalign", text(alignment(&ty))),
            ("typstorage", text(if ty.typlen() > 0 { "p" } else { "x" })),
            ("typtypmod", int(-1)),
            ("typcollation", int(collation(&ty))),
        ]);
    }
    rows.finish()
}

/// `typtype`.
fn kind(ty: &Type) -> &'static str {
    match ty.category() {
        Category::Pseudo | Category::Unknown => "p",
        Category::Enum => "e",
        _ => "b",
    }
}

/// The regions of the current database, as the values of the one enum there is.
pub(super) fn pg_enum(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_enum");
    let database = context.catalog().find_database(&context.names().database).filter(|d| d.is_multi_region);
    for (at, region) in database.into_iter().flat_map(|d| &d.regions).enumerate() {
        rows.push([
            ("oid", int(function_oid(&format!("crdb_internal_region.{region}")))),
            ("enumtypid", int(Type::Region.oid())),
            ("enumsortorder", Datum::Float(at as f64 + 1.0)),
            ("enumlabel", text(region)),
        ]);
    }
    rows.finish()
}

/// The oid that a function is shown under: it follows from its name, and from its signature if
/// there are several.
pub(super) fn function_oid(name: &str) -> u32 {
    // FNV-1a, kept out of the ranges of PostgreSQL's own oids and of the catalog's.
    let hash = name.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    0xC000_0000 | (hash & 0x3FFF_FFFF)
}

/// A signature as `pg_get_function_arguments` shows it.
pub(super) fn arguments(def: &Def) -> String {
    let mut parts: Vec<String> = def.params.iter().map(param_name).collect();
    if def.variadic
        && let Some(last) = parts.last_mut()
    {
        *last = format!("VARIADIC {last}");
    }
    parts.join(", ")
}

/// A result as `pg_get_function_result` shows it.
pub(super) fn result(def: &Def) -> String {
    let name = param_name(&def.result);
    if matches!(def.body, Body::Set(_)) { format!("SETOF {name}") } else { name }
}

fn param_name(p: &Param) -> String {
    match p {
        Param::Type(t) => t.name(),
        Param::AnyElement => "anyelement".into(),
        Param::AnyNonArray => "anynonarray".into(),
        Param::AnyArray => "anyarray".into(),
        Param::AnyCompatible => "anycompatible".into(),
        Param::AnyCompatibleArray => "anycompatiblearray".into(),
        Param::Any => "\"any\"".into(),
    }
}

fn param_oid(p: &Param) -> u32 {
    match p {
        Param::Type(t) => t.oid(),
        Param::AnyElement => 2283,
        Param::AnyNonArray => 2776,
        Param::AnyArray => 2277,
        Param::AnyCompatible => 5077,
        Param::AnyCompatibleArray => 5078,
        Param::Any => 2276,
    }
}

/// Every function with its oid.
pub(super) fn functions() -> impl Iterator<Item = (u32, &'static Def)> {
    FUNCTIONS.functions.values().flatten().map(|def| (function_oid(&format!("{}({})", def.name, arguments(def))), def))
}

pub(super) fn pg_proc(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_proc");
    for (oid, def) in functions() {
        let volatility = match def.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        rows.push([
            ("oid", int(oid)),
            ("proname", text(def.name)),
            ("pronamespace", int(PG_CATALOG_OID)),
            ("proowner", int(ROOT)),
            ("prolang", int(12)),
            ("procost", Datum::Float(1.0)),
            ("provariadic", int(if def.variadic { def.params.last().map_or(0, param_oid) } else { 0 })),
            ("prokind", text(if matches!(def.body, Body::Aggregate(_)) { "a" } else { "f" })),
            ("proisstrict", bool(def.strict)),
            ("proretset", bool(matches!(def.body, Body::Set(_)))),
            ("provolatile", text(volatility)),
            ("proparallel", text("s")),
            ("pronargs", int(def.params.len() as i64)),
            ("prorettype", int(param_oid(&def.result))),
            ("proargtypes", array(Type::Oid, def.params.iter().map(|p| int(param_oid(p))).collect())),
            ("prosrc", text(def.name)),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_am(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_am");
    for (oid, name, handler, kind) in [(2, "heap", "heap_tableam_handler", "t"), (403, "btree", "bthandler", "i")] {
        let handler = int(function_oid(handler));
        rows.push([("oid", int(oid)), ("amname", text(name)), ("amhandler", handler), ("amtype", text(kind))]);
    }
    rows.finish()
}

/// The oid of a type's order, as `pg_index.indclass` has it.
pub(super) fn opclass_oid(ty: &Type) -> u32 {
    function_oid(&format!("{}_ops", opclass_type(ty).internal_name()))
}

/// `varchar` is ordered as text.
fn opclass_type(ty: &Type) -> Type {
    match ty {
        Type::Varchar(_) => Type::Text,
        Type::Array(_) => Type::Array(Box::new(Type::Int4)),
        other => other.without_modifier(),
    }
}

pub(super) fn pg_opclass(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_opclass");
    let ordered = |t: &Type| {
        t.element().is_none() && t.category() != Category::Pseudo && !matches!(t, Type::Varchar(_) | Type::Json | Type::Unknown)
    };
    for ty in Type::all().into_iter().filter(ordered) {
        rows.push([
            ("oid", int(opclass_oid(&ty))),
            ("opcmethod", int(403)),
            ("opcname", text(format!("{}_ops", ty.internal_name()))),
            ("opcnamespace", int(PG_CATALOG_OID)),
            ("opcowner", int(ROOT)),
            ("opcintype", int(ty.oid())),
            ("opcdefault", bool(true)),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_collation(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_collation");
    for (oid, name, provider) in [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")] {
        rows.push([
            ("oid", int(oid)),
            ("collname", text(name)),
            ("collnamespace", int(PG_CATALOG_OID)),
            ("collowner", int(ROOT)),
            ("collprovider", text(provider)),
            ("collisdeterministic", bool(true)),
            ("collencoding", int(-1)),
            ("collcollate", if provider == "c" { text(name) } else { Datum::Null }),
            ("collctype", if provider == "c" { text(name) } else { Datum::Null }),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_language(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_language");
    for (oid, name) in [(12, "internal"), (14, "sql")] {
        rows.push([("oid", int(oid)), ("lanname", text(name)), ("lanowner", int(ROOT)), ("lanpltrusted", bool(name == "sql"))]);
    }
    rows.finish()
}

pub(super) fn alignment(ty: &Type) -> &'static str {
    match ty.typlen() {
        1 | 64 | 16 if *ty != Type::Interval => "c",
        2 => "s",
        8 | 16 => "d",
        _ => "i",
    }
}

pub(super) fn collation(ty: &Type) -> i64 {
    match ty.element().unwrap_or(ty) {
        // PostgreSQL's `name` has the collation C.
        Type::Name => 950,
        t if t.category() == Category::String => DEFAULT_COLLATION,
        _ => 0,
    }
}
