//! Who asks, what of, with which settings; identifiers from nothing.

use super::args::Args;
use super::registry::Registry;
use super::{template, to_number};
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, EvalContext, Type};
use meridian_base::{Error, Result};

/// A region, if it is one of the current database's, else the primary one.
fn own_region(ctx: &EvalContext, region: &str) -> Result<Datum> {
    let regions = ctx.catalog.regions(&ctx.database);
    let regions = regions
        .ok_or_else(|| Error::sql("22023", format!("current database \"{}\" is not multi-region enabled", ctx.database)))?;
    let is_own = regions.all.iter().any(|r| r == region) && !regions.dropping.iter().any(|r| r == region);
    Ok(Datum::text(if is_own { region } else { regions.primary }))
}

/// The regions of the current database, in their order.
fn regions(ctx: &EvalContext) -> Vec<String> {
    ctx.catalog.regions(&ctx.database).map(|r| r.all.to_vec()).unwrap_or_default()
}

/// The schemas of the search path that exist: often there is none of the user's name.
fn path(ctx: &EvalContext) -> impl Iterator<Item = &str> {
    ctx.search_path.iter().map(String::as_str).filter(|s| ctx.catalog.has_schema(&ctx.database, s))
}

/// Of the one enum there is (PostgreSQL manual, 9.10): the regions of the database.
fn register_enum(r: &mut Registry) {
    r.scalar("enum_range", "crdb_internal_region -> crdb_internal_region[]", |c, _| {
        Ok(ArrayValue::datum(Type::Region, regions(c.ctx).into_iter().map(Datum::text).collect()))
    })
    .sees_null()
    .stable();
    r.scalar("enum_first", "crdb_internal_region -> crdb_internal_region", |c, _| {
        Ok(regions(c.ctx).first().map_or(Datum::Null, |r| Datum::text(r.as_str())))
    })
    .sees_null()
    .stable();
    r.scalar("enum_last", "crdb_internal_region -> crdb_internal_region", |c, _| {
        Ok(regions(c.ctx).last().map_or(Datum::Null, |r| Datum::text(r.as_str())))
    })
    .sees_null()
    .stable();
}

pub fn register(r: &mut Registry) {
    register_enum(r);
    for name in ["current_user", "user", "current_role"] {
        r.scalar(name, "-> name", |c, _| Ok(Datum::text(&*c.ctx.user))).stable();
    }
    r.scalar("session_user", "-> name", |c, _| Ok(Datum::text(&*c.ctx.session_user))).stable();
    for name in ["current_database", "current_catalog"] {
        r.scalar(name, "-> name", |c, _| Ok(Datum::text(&*c.ctx.database))).stable();
    }
    r.scalar("current_schema", "-> name", |c, _| Ok(path(c.ctx).find(|s| *s != "pg_catalog").map_or(Datum::Null, Datum::text)))
        .stable();
    r.scalar("current_schemas", "bool -> name[]", |c, a| {
        let implicit = a.bool(0)?;
        let names = path(c.ctx).filter(|s| implicit || *s != "pg_catalog").map(Datum::text).collect();
        Ok(ArrayValue::datum(Type::Name, names))
    })
    .stable();
    r.scalar("gateway_region", "-> text", |c, _| Ok(Datum::text(&*c.ctx.gateway_region))).stable();
    r.scalar("default_to_database_primary_region", "text -> text", |c, a| own_region(c.ctx, a.text(0)?)).stable();
    r.scalar("rehome_row", "-> text", |c, _| own_region(c.ctx, &c.ctx.gateway_region)).stable();
    // What `ON UPDATE rehome_row()` calls, with where the row is.
    r.scalar("rehome_row", "crdb_internal_region -> text", |c, a| {
        let setting = c.ctx.system.setting("auto_rehoming_hysteresis");
        let one_in: u64 = setting.and_then(|n| n.parse().ok()).unwrap_or(1);
        // A row that several regions update would move to and fro; by chance, it is where it is
        // updated most.
        if one_in > 1 && !c.ctx.system.random().is_multiple_of(one_in) {
            return Ok(a[0].clone());
        }
        own_region(c.ctx, &c.ctx.gateway_region)
    })
    .volatile();
    r.scalar("current_setting", "text -> text", |c, a| {
        let name = a.text(0)?;
        match c.ctx.system.setting(name) {
            Some(v) => Ok(Datum::text(v)),
            None => Err(Error::sql("42704", format!("unrecognized configuration parameter \"{name}\""))),
        }
    })
    .stable();
    r.scalar("current_setting", "text, bool -> text", |c, a| {
        let name = a.text(0)?;
        match c.ctx.system.setting(name) {
            Some(v) => Ok(Datum::text(v)),
            None if a.bool(1)? => Ok(Datum::Null),
            None => Err(Error::sql("42704", format!("unrecognized configuration parameter \"{name}\""))),
        }
    })
    .stable();
    r.scalar("set_config", "text, text, bool -> text", |c, a| {
        Ok(Datum::text(c.ctx.system.set_setting(a.text(0)?, a.text(1)?, a.bool(2)?)?))
    })
    .volatile();
    r.scalar("version", "-> text", |c, _| {
        let version = c.ctx.system.setting("server_version").unwrap_or_default();
        Ok(Datum::text(format!("PostgreSQL {version}")))
    })
    .stable();
    r.scalar("pg_backend_pid", "-> int4", |c, _| Ok(Datum::Int(i64::from(c.ctx.system.backend_pid())))).stable();
    r.scalar("pg_cancel_backend", "int4 -> bool", |c, a| c.ctx.system.stop_backend(a.int(0)? as i32, false).map(Datum::Bool))
        .volatile();
    r.scalar("pg_terminate_backend", "int4 -> bool", |c, a| c.ctx.system.stop_backend(a.int(0)? as i32, true).map(Datum::Bool))
        .volatile();
    // There are no advisory locks, so a pool that lets go of all of its session's finds none.
    r.scalar("pg_advisory_unlock_all", "-> void", |_, _| Ok(Datum::text(""))).volatile();
    r.scalar("gen_random_uuid", "-> uuid", |c, _| {
        let mut v = [0; 16];
        v[..8].copy_from_slice(&c.ctx.system.random().to_be_bytes());
        v[8..].copy_from_slice(&c.ctx.system.random().to_be_bytes());
        // Version 4, variant 1 (RFC 4122).
        v[6] = v[6] & 0x0F | 0x40;
        v[8] = v[8] & 0x3F | 0x80;
        Ok(Datum::Uuid(v))
    })
    .volatile();
    r.scalar("pg_typeof", "any -> regtype", |c, _| Ok(Datum::Int(i64::from(c.args[0].oid())))).sees_null().stable();
    r.scalar("num_nulls", "variadic any -> int4", |_, a| Ok(Datum::Int(a.iter().filter(|d| d.is_null()).count() as i64)))
        .sees_null();
    r.scalar("num_nonnulls", "variadic any -> int4", |_, a| Ok(Datum::Int(a.iter().filter(|d| !d.is_null()).count() as i64)))
        .sees_null();
    for t in ["int4", "int8", "float4", "float8", "numeric"] {
        r.scalar("to_char", &format!("{t}, text -> text"), |_, a| {
            let n = match &a[0] {
                Datum::Int(v) => Numeric::from(*v),
                Datum::Float(v) => Numeric::from_f64(*v, 15),
                _ => a.numeric(0)?.clone(),
            };
            Ok(Datum::text(template::number(&n, a.text(1)?)?))
        })
        .stable();
    }
    r.scalar("to_number", "text, text -> numeric", |_, a| {
        let number = to_number::parse(a.text(0)?, a.text(1)?)?;
        Ok(number.map_or(Datum::Null, Datum::Numeric))
    })
    .stable();
}
