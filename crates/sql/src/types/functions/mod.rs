//! Operators and functions: what exists, and which of them a call means (PostgreSQL manual, chapter
//! 10).
//!
//! The planner asks [`registry::Registry::resolve_operator`] and
//! [`registry::Registry::resolve_function`] with the argument types (`Type::Unknown` for quoted
//! literals and parameters without a type), casts the arguments to [`Function::args`] with an
//! implicit cast, and calls [`Function::call`]. `AND`, `OR`, `NOT`, `IS …`, `CASE`, `COALESCE`,
//! `NULLIF`, `GREATEST`, `LEAST`, `= ANY`, `BETWEEN`, `IN` and `ROW` are syntax and the planner's
//! own.

mod aggregate;
pub mod args;
mod arithmetic;
mod array;
mod comparison;
mod datetime;
pub mod json;
mod md5;
mod missing;
pub mod pattern;
pub mod registry;
mod resolve;
mod series;
mod session;
mod template;
pub mod text;
mod to_number;

pub(crate) use aggregate::{IntSum, NumericSum};

use super::{Datum, EvalContext, Type};
use meridian_base::Result;
use std::hash::{Hash, Hasher};

/// A function's body. Arguments have been cast; strict functions never see `NULL`.
pub type ScalarFn = fn(&Call<'_>, &[Datum]) -> Result<Datum>;

/// What a body may know of its call.
pub struct Call<'a> {
    pub ctx: &'a EvalContext,
    /// The types of the arguments after casts, one per argument of this call.
    pub args: &'a [Type],
    pub result: &'a Type,
}

/// `pg_proc.provolatile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Depends on its arguments only: may be computed at planning.
    Immutable,
    /// Constant within a statement.
    Stable,
    Volatile,
}

/// A resolved scalar function or operator.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: &'static str,
    pub body: ScalarFn,
    /// What to cast each argument to (implicitly). As long as the call's argument list.
    pub args: Vec<Type>,
    pub result: Type,
    /// `NULL` if an argument is.
    pub strict: bool,
    pub volatility: Volatility,
    /// [`registry::Def::dear_above`].
    pub dear_above: i64,
}

impl Function {
    /// Whether a call with these may take for long: see `session::aside`.
    pub(crate) fn is_dear(&self, args: &[Datum]) -> bool {
        let is_above = |d: &Datum| match d {
            Datum::Int(n) => *n > self.dear_above,
            Datum::Array(a) => a.items.iter().any(|d| matches!(d, Datum::Int(n) if *n > self.dear_above)),
            _ => false,
        };
        args.iter().any(Datum::is_large) || (self.dear_above < i64::MAX && args.iter().any(is_above))
    }
    /// Calls it with arguments already cast.
    pub fn call(&self, ctx: &EvalContext, args: &[Datum]) -> Result<Datum> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        (self.body)(&Call { ctx, args: &self.args, result: &self.result }, args)
    }
}

/// The same overload.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && self.args == other.args && self.result == other.result
    }
}
impl Eq for Function {}
impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.args.hash(state);
    }
}

impl registry::Registry {
    /// The operators and functions over values alone. Those that need the catalog join them there
    /// (`catalog::functions`).
    pub fn of_values() -> Self {
        let mut r = Self::default();
        comparison::register(&mut r);
        arithmetic::register(&mut r);
        text::register(&mut r);
        pattern::register(&mut r);
        datetime::register(&mut r);
        json::register(&mut r);
        array::register(&mut r);
        session::register(&mut r);
        series::register(&mut r);
        aggregate::register(&mut r);
        r
    }
}

/// What a name in a call can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    Scalar,
    Aggregate,
    /// Returns rows: `generate_series`, `unnest`.
    Set,
}

/// A resolved aggregate. `count(*)` is `count` without arguments.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub name: &'static str,
    pub args: Vec<Type>,
    pub result: Type,
    make: fn(&Aggregate) -> Box<dyn Accumulator>,
}

impl Aggregate {
    /// A fresh state, one per group.
    pub fn start(&self) -> Box<dyn Accumulator> {
        (self.make)(self)
    }
}

/// The state of one aggregate over one group. `DISTINCT`, `ORDER BY` and `FILTER` are the
/// executor's.
pub trait Accumulator: Send + Sync {
    /// One row's arguments, cast to [`Aggregate::args`]. Rows with `NULL` are skipped inside where
    /// the aggregate says so.
    fn add(&mut self, ctx: &EvalContext, args: &[Datum]) -> Result<()>;
    /// Takes back a row that was added, the first one of a window frame that moves on. `false`: the
    /// state cannot do that, and is of no use any more.
    fn remove(&mut self, _args: &[Datum]) -> Result<bool> {
        Ok(false)
    }
    /// The bytes that it keeps of the values, if it keeps them all.
    fn held(&self) -> usize {
        0
    }
    /// The result so far (a window frame asks several times).
    fn finish(&self, ctx: &EvalContext) -> Result<Datum>;
}

/// Rows of a set-returning function.
pub type SetRows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

/// A resolved set-returning function.
#[derive(Clone, Debug)]
pub struct SetFunction {
    pub name: &'static str,
    pub args: Vec<Type>,
    /// Names and types of its columns; one column named after the function for scalar sets.
    pub columns: Vec<(String, Type)>,
    body: fn(&Call<'_>, &[Datum]) -> Result<SetRows>,
    strict: bool,
}

impl SetFunction {
    /// Its rows. No rows if it is strict and an argument is `NULL`.
    pub fn call(&self, ctx: &EvalContext, args: &[Datum]) -> Result<SetRows> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Box::new(std::iter::empty()));
        }
        (self.body)(&Call { ctx, args: &self.args, result: &self.columns[0].1 }, args)
    }
}
