//! `AS OF SYSTEM TIME`: which past a statement or a transaction reads.
//!
//! | time | what is read |
//! | --- | --- |
//! | `'-10s'`, `'2026-01-31 12:00'`, nanoseconds since 1970, a constant expression | that moment |
//! | `follower_read_timestamp()` | a moment that every replica in good health has reached |
//! | `with_max_staleness(interval [, nearest_only])`, `with_min_timestamp(t [, nearest_only])` | the newest one that the nearest replicas can serve, within the bound; behind it, the primaries are asked unless `nearest_only` |
//!
//! With `default_transaction_use_follower_reads`, transactions that are declared read-only (`BEGIN
//! READ ONLY`, `default_transaction_read_only`) read as of `follower_read_timestamp()` unless they
//! say otherwise.
//!
//! The clause is the whole statement's, wherever in it it stands. Said of a statement outside a
//! block, of `BEGIN`, or of `SET TRANSACTION` before the first query. Such a transaction is
//! read-only and is planned with the catalog of its time: an index that was not there then has no
//! entries from then.

use super::Session;
use super::run::interruptible;
use crate::catalog::Catalog;
use crate::env::{AsOf, Environment};
use crate::parse::fold;
use crate::parse::{AsOfSystemTime, Kind, Statement, ast, parse};
use crate::plan::{self, PlanContext};
use crate::types::context::EPOCH_2000_UNIX_MICROS;
use crate::types::{Datum, Interval, Type};
use meridian_base::{Error, Result, Timestamp};
use std::sync::Arc;

/// How far `follower_read_timestamp()` lies back: more than the longest way of a log record to a
/// replica, and its closed timestamp's interval.
const FOLLOWER_LAG_MICROS: i64 = 500_000;

/// A value of another type.
const CANNOT_COERCE: &str = "42846";

/// The past that a transaction reads.
pub(super) struct Past {
    pub as_of: AsOf,
    pub catalog: Arc<Catalog>,
    /// Who said so; `None`: the session's default for read-only transactions.
    pub clause: Option<AsOfSystemTime>,
}

/// 42601 where a transaction is to read the past and to write.
pub(super) fn refuse_read_write() -> Error {
    Error::sql("42601", "AS OF SYSTEM TIME specified with READ WRITE mode")
        .hint("A transaction that reads the past is read-only.")
}

/// Whether everything in a text reads the past, so that the present catalog does not matter.
pub(super) fn says_so(text: &str) -> bool {
    const WORD: &[u8] = b"system";
    let may = text.as_bytes().windows(WORD.len()).any(|w| w.eq_ignore_ascii_case(WORD));
    may && parse(text).is_ok_and(|statements| statements.iter().all(|s| s.as_of.is_some()))
}

/// 0A000 where the clause would mean nothing.
pub(super) fn check_place(statement: &Statement) -> Result<()> {
    use ast::Statement as S;
    let Some(clause) = &statement.as_of else { return Ok(()) };
    let may = plan::is_plannable(statement)
        || match &statement.kind {
            Kind::Begin(_) | Kind::SetTransaction { session: false, .. } => true,
            Kind::Sql(sql) => matches!(**sql, S::Copy { to: true, .. } | S::Prepare { .. } | S::Explain { .. }),
            _ => false,
        };
    match may {
        true => Ok(()),
        false => Err(Error::unsupported("AS OF SYSTEM TIME is not supported in this statement")
            .hint("Say it with a query by itself, or with BEGIN for all that the block reads.")
            .at(clause.position)),
    }
}

impl<E: Environment> Session<E> {
    /// Fixes what the open transaction reads, if the statement says so.
    pub(super) async fn read_as_of(&mut self, statement: &Statement, now: u64) -> Result<()> {
        let Some(clause) = &statement.as_of else { return self.read_as_of_default(now).await };
        let as_of = self.time_of(clause, now).map_err(|e| e.at(clause.position))?;
        let modes = match &statement.kind {
            Kind::Begin(modes) | Kind::SetTransaction { session: false, modes } => Some(modes),
            _ => None,
        };
        let is_to_write = self.block.as_ref().is_some_and(|b| b.is_to_write);
        if modes.is_some_and(|m| m.read_only.map_or(is_to_write, |read_only| !read_only)) {
            return Err(refuse_read_write().at(clause.position));
        }
        let Some(block) = &self.block else { return Ok(()) };
        let is_first = block.statements == 0 && block.ddl.is_none();
        let may_be_said = is_first && (modes.is_some() || !block.explicit);
        match &block.past {
            Some(past) if past.as_of == as_of => return Ok(()),
            _ if may_be_said => {}
            _ => {
                let message = "inconsistent AS OF SYSTEM TIME: the transaction reads another time";
                return Err(
                    Error::sql("25001", message).hint("Say it with BEGIN, or with SET TRANSACTION before the first query.")
                );
            }
        }
        let past = self.past(as_of, clause).await?;
        let block = self.block(now);
        block.past = Some(past);
        block.read_only = true;
        Ok(())
    }

    /// The catalog that a statement is planned in: that of the time which it says it reads.
    pub(super) async fn catalog_of(&mut self, statement: &Statement) -> Result<Arc<Catalog>> {
        match &statement.as_of {
            Some(clause) if self.block.as_ref().is_none_or(|b| b.past.is_none()) => {
                let now = self.env.now_micros();
                Ok(self.past_of(clause, now).await?.catalog)
            }
            _ => Ok(self.catalog()),
        }
    }

    /// What a clause means now.
    pub(super) async fn past_of(&mut self, clause: &AsOfSystemTime, now: u64) -> Result<Past> {
        let as_of = self.time_of(clause, now).map_err(|e| e.at(clause.position))?;
        self.past(as_of, clause).await
    }

    async fn past(&mut self, mut as_of: AsOf, clause: &AsOfSystemTime) -> Result<Past> {
        let catalog = match &mut as_of {
            AsOf::Exact(at) => interruptible(&self.cancel, self.env.catalog_at(*at)).await?,
            AsOf::Bounded { min, max, .. } => {
                let (catalog, until) = interruptible(&self.cancel, self.env.catalog_since(*min)).await?;
                *max = until;
                catalog
            }
        };
        Ok(Past { as_of, catalog, clause: Some(clause.clone()) })
    }

    /// The same by the session's default, for transactions that are read-only by declaration.
    pub(super) async fn read_as_of_default(&mut self, now: u64) -> Result<()> {
        let is_new = self.block.as_ref().is_some_and(|b| b.read_only && b.past.is_none() && b.statements == 0 && b.ddl.is_none());
        if !self.setting(|v| v.use_follower_reads) || !is_new {
            return Ok(());
        }
        let at = timestamp(now as i64 - FOLLOWER_LAG_MICROS, now as i64)?;
        let catalog = interruptible(&self.cancel, self.env.catalog_at(at)).await?;
        if catalog.seen != self.env.catalog().seen {
            // The schema, or who may read what, was changed meanwhile: nobody has asked for what
            // was there before.
            return Ok(());
        }
        self.block(now).past = Some(Past { as_of: AsOf::Exact(at), catalog, clause: None });
        Ok(())
    }

    fn time_of(&self, clause: &AsOfSystemTime, now: u64) -> Result<AsOf> {
        let now = now as i64;
        if let ast::Expr::Function(function) = &*clause.time {
            let name = function.name.to_string().to_ascii_lowercase();
            let (arguments, nearest_only) = arguments(function);
            let bounded = |min: i64, positional: Option<&&ast::Expr>| {
                let said = positional.copied().or(nearest_only);
                let nearest_only = match said.map(|e| self.constant(e, &Type::Bool)).transpose()? {
                    None | Some(Datum::Null) => false,
                    Some(value) => matches!(value, Datum::Bool(true)),
                };
                Ok(AsOf::Bounded { min: timestamp(min, now)?, max: Timestamp::MAX, nearest_only })
            };
            let may_be_bounded = function_takes(function, &arguments, nearest_only);
            match (name.as_str(), &arguments[..]) {
                ("follower_read_timestamp", []) if has_no_arguments(function) => {
                    return Ok(AsOf::Exact(timestamp(now - FOLLOWER_LAG_MICROS, now)?));
                }
                ("with_max_staleness", [interval, rest @ ..]) if may_be_bounded => {
                    let Datum::Interval(interval) = self.constant(interval, &Type::Interval)? else { return Err(no_time()) };
                    let back = micros(&interval);
                    if back < 0 {
                        return Err(Error::sql(
                            "22023",
                            "interval duration for with_max_staleness must be greater or equal to 0",
                        ));
                    }
                    return bounded(now.saturating_sub(back), rest.first());
                }
                ("with_min_timestamp", [at, rest @ ..]) if may_be_bounded => {
                    let Datum::Timestamp(at) = self.constant(at, &Type::Timestamptz)? else { return Err(no_time()) };
                    return bounded(at.saturating_add(EPOCH_2000_UNIX_MICROS), rest.first());
                }
                _ => {}
            }
        }
        Ok(AsOf::Exact(timestamp(self.moment(&clause.time, now)?, now)?))
    }

    /// Microseconds since 1970.
    fn moment(&self, time: &ast::Expr, now: i64) -> Result<i64> {
        if let Some(at) = literal(time).and_then(|text| self.moment_of(&text, now)) {
            return Ok(at);
        }
        match self.constant(time, &Type::Timestamptz) {
            Ok(Datum::Timestamp(at)) => return Ok(at.saturating_add(EPOCH_2000_UNIX_MICROS)),
            Ok(_) => return Err(no_time()),
            Err(e) if e.sqlstate() != CANNOT_COERCE => return Err(e),
            Err(_) => {}
        }
        if let Ok(Datum::Interval(interval)) = self.constant(time, &Type::Interval) {
            return Ok(now.saturating_add(micros(&interval)));
        }
        let Datum::Text(text) = self.constant(time, &Type::Text)? else { return Err(no_time()) };
        let text = text.as_str();
        match (self.moment_of(text, now), Datum::from_text(text, &Type::Timestamptz, &self.eval)) {
            (Some(at), _) => Ok(at),
            (None, Ok(Datum::Timestamp(at))) => Ok(at.saturating_add(EPOCH_2000_UNIX_MICROS)),
            (None, Ok(_)) => Err(no_time()),
            (None, Err(e)) => Err(e),
        }
    }

    /// What a text says that is no timestamp: an interval with its sign, or nanoseconds since 1970.
    fn moment_of(&self, text: &str, now: i64) -> Option<i64> {
        let text = text.trim();
        if let Ok(Datum::Interval(interval)) = Datum::from_text(text, &Type::Interval, &self.eval)
            && text.starts_with(['-', '+'])
        {
            return Some(now.saturating_add(micros(&interval)));
        }
        let nanos = text.split('.').next().unwrap_or_default();
        nanos.parse::<i64>().ok().map(|nanos| nanos / 1_000)
    }

    fn constant(&self, e: &ast::Expr, ty: &Type) -> Result<Datum> {
        let catalog = self.env.catalog();
        plan::evaluate(e, ty, &PlanContext { catalog: &catalog, names: &self.names, eval: &self.eval })
    }
}

/// The arguments by position, and the one that is named `nearest_only`.
fn arguments(function: &ast::Function) -> (Vec<&ast::Expr>, Option<&ast::Expr>) {
    use ast::{FunctionArg, FunctionArgExpr};
    let ast::FunctionArguments::List(list) = &function.args else { return (Vec::new(), None) };
    let (mut positional, mut nearest_only) = (Vec::new(), None);
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => positional.push(e),
            FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg: FunctionArgExpr::Expr(e), .. }
                if fold(name) == "nearest_only" =>
            {
                nearest_only = Some(e);
            }
            _ => {}
        }
    }
    (positional, nearest_only)
}

fn has_no_arguments(function: &ast::Function) -> bool {
    matches!(&function.args, ast::FunctionArguments::List(list) if list.args.is_empty())
}

/// Whether a call of `with_max_staleness` or `with_min_timestamp` has the bound, `nearest_only` at
/// most once, and nothing else.
fn function_takes(function: &ast::Function, positional: &[&ast::Expr], named: Option<&ast::Expr>) -> bool {
    let ast::FunctionArguments::List(list) = &function.args else { return false };
    let understood = positional.len() + usize::from(named.is_some());
    list.args.len() == understood && !positional.is_empty() && understood <= 2
}

/// The text of a literal, with its sign.
fn literal(e: &ast::Expr) -> Option<String> {
    match e {
        ast::Expr::Value(v) => match &v.value {
            ast::Value::SingleQuotedString(s) => Some(s.clone()),
            ast::Value::Number(n, _) => Some(n.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn micros(interval: &Interval) -> i64 {
    const DAY: i64 = 86_400_000_000;
    let days = i64::from(interval.months) * 30 + i64::from(interval.days);
    days.saturating_mul(DAY).saturating_add(interval.micros)
}

fn no_time() -> Error {
    Error::sql("22004", "AS OF SYSTEM TIME: the time must not be NULL")
}

fn timestamp(micros: i64, now: i64) -> Result<Timestamp> {
    if micros > now {
        return Err(Error::sql("22023", "AS OF SYSTEM TIME: cannot specify a timestamp in the future"));
    }
    match u64::try_from(micros) {
        Ok(micros) if micros > 0 => Ok(Timestamp::from_micros(micros)),
        _ => Err(Error::sql("22023", "AS OF SYSTEM TIME: the time is before 1970")),
    }
}
