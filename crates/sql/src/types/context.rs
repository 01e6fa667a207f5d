//! What the evaluation of an expression may ask of the session around it.
//!
//! Functions are pure in their arguments and this context: times are fixed when a statement or
//! transaction starts, random numbers and catalog names come through [`System`]. So an evaluation
//! in the simulator repeats exactly.

use super::zone::Zone;
use super::{Datum, Type};
use meridian_base::{DescriptorId, Error, Result};
use std::any::Any;
use std::sync::Arc;

/// Microseconds from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
pub const EPOCH_2000_UNIX_MICROS: i64 = 946_684_800_000_000;

/// The session as expressions see it. Cheap to clone; a session keeps one and changes its times.
#[derive(Clone)]
pub struct EvalContext {
    /// `TimeZone`.
    pub zone: Zone,
    /// Microseconds since 2000-01-01 UTC (as `Datum::Timestamp`): `now()`,
    /// `transaction_timestamp()`.
    pub txn_time: i64,
    /// `statement_timestamp()`.
    pub statement_time: i64,
    /// The catalog the statement was planned with; what functions over system tables read.
    pub catalog: Arc<dyn CatalogView>,
    /// `current_user`.
    pub user: Arc<str>,
    /// `session_user`.
    pub session_user: Arc<str>,
    /// The ids of both.
    pub role: DescriptorId,
    pub session_role: DescriptorId,
    /// `current_database()`.
    pub database: Arc<str>,
    /// `search_path`, schema names in order, `$user` resolved.
    pub search_path: Arc<[String]>,
    /// `gateway_region()`.
    pub gateway_region: Arc<str>,
    /// `IntervalStyle`, `bytea_output` and the like.
    pub style: Style,
    /// Everything that is not a plain value.
    pub system: Arc<dyn System>,
}

/// How values are written as text. The default is PostgreSQL's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// 1 and above: shortest text that reads back exactly; 0 and below: 15 (float4: 6) significant
    /// digits and fewer.
    pub extra_float_digits: i8,
    /// `bytea_output = escape`.
    pub bytea_escape: bool,
    /// How input such as `1/2/2003` is read (`DateStyle`).
    pub date_order: DateOrder,
}

impl Default for Style {
    fn default() -> Style {
        Style { extra_float_digits: 1, bytea_escape: false, date_order: DateOrder::Mdy }
    }
}

/// Which field of an all-numeric date comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

/// What values may ask the catalog. It is implemented by the catalog, which is made of types and so
/// lies above them; functions over system tables know which catalog it is.
pub trait CatalogView: Any + Send + Sync {
    /// The regions of a database; `None` if it has none, or does not exist.
    fn regions(&self, database: &str) -> Option<Regions<'_>>;
    /// Whether a database has a schema, the system's among them.
    fn has_schema(&self, database: &str, schema: &str) -> bool;
}

/// The regions of a database, in their order.
pub struct Regions<'a> {
    pub primary: &'a str,
    pub all: &'a [String],
    /// Those that are being dropped.
    pub dropping: &'a [String],
}

/// For tests and constants: there is nothing.
struct NoCatalog;

impl CatalogView for NoCatalog {
    fn regions(&self, _: &str) -> Option<Regions<'_>> {
        None
    }
    fn has_schema(&self, _: &str, _: &str) -> bool {
        false
    }
}

/// The impure part of the context, implemented by the session over its environment.
pub trait System: Send + Sync {
    /// A random number: `random()`, `gen_random_uuid()`.
    fn random(&self) -> u64;
    /// `clock_timestamp()`: microseconds since 1970.
    fn now_micros(&self) -> u64;
    /// `unique_rowid()`: larger than every one this node gave before, and no other node's.
    fn unique_rowid(&self) -> i64;
    /// `current_setting(name)`.
    fn setting(&self, name: &str) -> Option<String>;
    /// `set_config(name, value, is_local)`. Returns the value now in force.
    fn set_setting(&self, name: &str, value: &str, local: bool) -> Result<String>;
    /// The error that ends the statement, if it is to end: what computes for long asks now and
    /// then.
    fn interrupted(&self) -> Result<()> {
        Ok(())
    }
    /// `pg_backend_pid()`: what cancel requests and `pg_stat_activity` know the session by.
    fn backend_pid(&self) -> i32 {
        0
    }
    /// `pg_cancel_backend(pid)` and, with `ends`, `pg_terminate_backend(pid)`: whether this node
    /// has such a session. 42501 if one may not.
    fn stop_backend(&self, pid: i32, ends: bool) -> Result<bool> {
        let _ = (pid, ends);
        Ok(false)
    }
    /// `pg_reload_conf()`: this node takes its certificates from their files. Whether that has
    /// begun. 42501 if one may not.
    fn reload(&self) -> Result<bool> {
        Ok(true)
    }
    /// The text form of a `regclass`, `regtype`, `regproc` or `regnamespace`, quoted and qualified
    /// as PostgreSQL does; `None` if there is no such object (then the number is shown).
    fn reg_name(&self, ctx: &EvalContext, ty: &Type, oid: u32) -> Option<String>;
    /// The oid that a name means for a `reg*` type; an error such as 42P01 if there is none.
    fn reg_oid(&self, ctx: &EvalContext, ty: &Type, name: &str) -> Result<u32>;
}

/// A context for tests and constants: UTC, fixed time, nothing in the catalog.
pub struct NoSystem;

impl System for NoSystem {
    fn random(&self) -> u64 {
        0x9E37_79B9_7F4A_7C15
    }
    fn now_micros(&self) -> u64 {
        EPOCH_2000_UNIX_MICROS as u64
    }
    fn unique_rowid(&self) -> i64 {
        1
    }
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn set_setting(&self, name: &str, _: &str, _: bool) -> Result<String> {
        Err(Error::sql("42704", format!("unrecognized configuration parameter \"{name}\"")))
    }
    fn reg_name(&self, _: &EvalContext, ty: &Type, oid: u32) -> Option<String> {
        match ty {
            Type::Regtype => Type::from_oid(oid).map(|t| t.name()),
            _ => None,
        }
    }
    fn reg_oid(&self, _: &EvalContext, ty: &Type, name: &str) -> Result<u32> {
        match ty {
            Type::Regtype => Type::from_name(name)
                .map(|t| t.oid())
                .ok_or_else(|| Error::sql("42704", format!("type \"{name}\" does not exist"))),
            Type::Regclass => Err(Error::sql("42P01", format!("relation \"{name}\" does not exist"))),
            Type::Regnamespace => Err(Error::sql("3F000", format!("schema \"{name}\" does not exist"))),
            _ => Err(Error::sql("42883", format!("function \"{name}\" does not exist"))),
        }
    }
}

impl Default for EvalContext {
    fn default() -> EvalContext {
        EvalContext {
            zone: Zone::utc(),
            txn_time: 0,
            statement_time: 0,
            catalog: Arc::new(NoCatalog),
            user: "meridian".into(),
            session_user: "meridian".into(),
            role: DescriptorId(0),
            session_role: DescriptorId(0),
            database: "postgres".into(),
            search_path: Arc::from(["public".to_string()]),
            gateway_region: "local".into(),
            style: Style::default(),
            system: Arc::new(NoSystem),
        }
    }
}

impl std::fmt::Debug for EvalContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EvalContext").field("user", &self.user).field("database", &self.database).finish_non_exhaustive()
    }
}

impl EvalContext {
    /// The same with a newer catalog.
    pub fn with_catalog(&self, catalog: Arc<dyn CatalogView>) -> EvalContext {
        EvalContext { catalog, ..self.clone() }
    }
    /// `now()` as a datum.
    pub fn now(&self) -> Datum {
        Datum::Timestamp(self.txn_time)
    }
}
