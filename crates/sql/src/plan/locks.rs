//! What `FOR UPDATE` and its relatives lock.
//!
//! PostgreSQL locks the rows of a query's result: above its joins and its order, below its limit.
//! So a query with such a clause is a [`Rel::LockRows`] over what gives its rows. The keys of the
//! locked rows come up to there with the rows.

use super::binder::Binder;
use super::rel::{JoinKind, LockedTable, Rel};
use crate::env::{Locking, OnLocked};
use crate::parse::fold;
use crate::plan::expr::{ColId, Expr};
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Spanned};
use std::collections::BTreeSet;

/// `FOR UPDATE` and its relatives.
pub(crate) type Locks = Vec<Lock>;

/// One of them.
pub(crate) struct Lock {
    pub(crate) locking: Locking,
    /// The table it is of, with where it is named; all, if `None`.
    pub(crate) of: Option<(String, sqlparser::tokenizer::Span)>,
}

impl Lock {
    /// Whether it names this relation.
    fn names(&self, relation: &str) -> bool {
        self.of.as_ref().is_some_and(|(name, _)| name == relation)
    }
}

/// How a relation's rows are locked.
pub(crate) fn locking_of(locks: &Locks, relation: &str) -> Locking {
    locks.iter().find(|l| l.of.is_none() || l.names(relation)).map_or(Locking::None, |l| l.locking)
}

/// What a clause is called.
pub(crate) fn clause(locking: Locking) -> &'static str {
    match locking {
        Locking::Shared(_) => "FOR SHARE",
        Locking::KeyShared(_) => "FOR KEY SHARE",
        Locking::KeyKept(_) => "FOR NO KEY UPDATE",
        Locking::Exclusive(_) | Locking::None => "FOR UPDATE",
    }
}

pub(crate) fn not_united(locking: Locking) -> Error {
    not_allowed(locking, "UNION/INTERSECT/EXCEPT")
}

impl Binder<'_> {
    pub(crate) fn locks(&mut self, clauses: &[ast::LockClause]) -> Result<Locks> {
        let row_locks = self.row_locks;
        let lock = |c: &ast::LockClause| {
            let on = match c.nonblock {
                None => OnLocked::Wait,
                Some(ast::NonBlock::Nowait) => OnLocked::NoWait,
                Some(ast::NonBlock::SkipLocked) => OnLocked::Skip,
            };
            let locking = match c.lock_type {
                ast::LockType::Update if row_locks.keep_keys => Locking::KeyKept(on),
                ast::LockType::Update => Locking::Exclusive(on),
                ast::LockType::Share if row_locks.share_keys => Locking::KeyShared(on),
                ast::LockType::Share => Locking::Shared(on),
            };
            let of = match c.of.as_ref().map(|of| of.0.as_slice()) {
                None => None,
                Some([ast::ObjectNamePart::Identifier(name)]) => Some((fold(name), name.span)),
                Some(_) => {
                    let message = format!("{} must specify unqualified relation names", clause(locking));
                    return Err(self.at(Error::sql("42601", message), c.of.as_ref().expect("matched above").span()));
                }
            };
            Ok(Lock { locking, of })
        };
        let locks: Locks = clauses.iter().map(lock).collect::<Result<_>>()?;
        self.writes |= !locks.is_empty();
        Ok(locks)
    }

    /// What has no rows of its own cannot be named by a clause that locks.
    pub(crate) fn refuse_lock(&self, locks: &Locks, relation: &str, what: &str) -> Result<()> {
        let Some(Lock { locking, of: Some((_, span)) }) = locks.iter().find(|l| l.names(relation)) else { return Ok(()) };
        Err(self.at(Error::unsupported(format!("{} cannot be applied to {what}", clause(*locking))), *span))
    }

    /// 42P01 if a clause that locks names another relation than these.
    pub(crate) fn refuse_other_locks(&self, locks: &Locks, tables: &[String]) -> Result<()> {
        for l in locks {
            if let Some((name, span)) = &l.of
                && !tables.contains(name)
            {
                let message = format!("relation \"{name}\" in {} clause not found in FROM clause", clause(l.locking));
                return Err(self.at(Error::sql("42P01", message), *span));
            }
        }
        Ok(())
    }
}

/// Locks the rows of a bound query, if any of its tables is to be locked.
pub(crate) fn lock_rows(mut rel: Rel) -> Rel {
    let mut of = Vec::new();
    add_locked(&rel, &mut of);
    if of.is_empty() {
        return rel;
    }
    let places = of.iter().flat_map(LockedTable::places).collect();
    expose(&mut rel, &places);
    Rel::LockRows { input: Box::new(rel), of, is_limited: false }
}

/// The same after the query got an order in addition: rows are locked in it.
pub(crate) fn above_sort(rel: Rel) -> Rel {
    let Rel::Sort { input, keys } = rel else { return rel };
    match *input {
        Rel::LockRows { input, of, is_limited: false } => {
            Rel::LockRows { input: Box::new(Rel::Sort { input, keys }), of, is_limited: false }
        }
        // It only leaves out what was added to find the rows again.
        Rel::Project { input, exprs } if matches!(*input, Rel::LockRows { .. }) => {
            Rel::Project { input: Box::new(above_sort(Rel::Sort { input, keys })), exprs }
        }
        other => Rel::Sort { input: Box::new(other), keys },
    }
}

/// The query has a limit: no more rows may be locked than it lets through.
pub(crate) fn limit(rel: &mut Rel) {
    match rel {
        Rel::LockRows { is_limited, .. } => *is_limited = true,
        Rel::Project { input, .. } => limit(input),
        _ => {}
    }
}

/// Those of the query itself: the ones of a subquery with a clause of its own are locked there.
fn add_locked(rel: &Rel, of: &mut Vec<LockedTable>) {
    match rel {
        Rel::Table { table, base, alias, locking, .. } if *locking != Locking::None => {
            of.push(LockedTable { table: table.clone(), base: *base, alias: alias.clone(), locking: *locking });
        }
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => {
            add_locked(input, of)
        }
        Rel::Join { left, right, .. } => {
            add_locked(left, of);
            add_locked(right, of);
        }
        _ => {}
    }
}

/// Lets projections hand on these columns.
fn expose(rel: &mut Rel, columns: &BTreeSet<ColId>) {
    match rel {
        Rel::Project { input, exprs } => {
            expose(input, columns);
            for c in input.cols().into_iter().filter(|c| columns.contains(c)) {
                if !exprs.iter().any(|(id, _)| *id == c) {
                    exprs.push((c, Expr::Column(c)));
                }
            }
        }
        Rel::Filter { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => expose(input, columns),
        Rel::Join { left, right, .. } => {
            expose(left, columns);
            expose(right, columns);
        }
        _ => {}
    }
}

/// Sets the locking of the tables of a view, or of a subquery in `FROM`, whose rows are to be those
/// of tables.
pub(crate) fn lock_tables(rel: &mut Rel, locking: Locking) -> Result<()> {
    match rel {
        Rel::Table { locking: l, .. } => {
            *l = locking;
            Ok(())
        }
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => {
            lock_tables(input, locking)
        }
        Rel::Join { left, right, .. } => {
            lock_tables(left, locking)?;
            lock_tables(right, locking)
        }
        Rel::Aggregate { keys, .. } if keys.is_empty() => Err(not_allowed(locking, "aggregate functions")),
        Rel::Aggregate { .. } => Err(not_allowed(locking, "GROUP BY clause")),
        Rel::Distinct { .. } => Err(not_allowed(locking, "DISTINCT clause")),
        Rel::SetOp { .. } => Err(not_allowed(locking, "UNION/INTERSECT/EXCEPT")),
        Rel::Window { .. } => Err(not_allowed(locking, "window functions")),
        Rel::ProjectSet { .. } => Err(not_allowed(locking, "set-returning functions in the target list")),
        _ => Ok(()),
    }
}

pub(crate) fn not_allowed(locking: Locking, with: &str) -> Error {
    Error::unsupported(format!("{} is not allowed with {with}", clause(locking)))
}

/// Refuses locks of rows that an outer join may make up. Asked for after joins have become inner
/// ones as far as they can.
pub(crate) fn check_nullable(rel: &Rel, of: &[LockedTable], is_nullable: bool) -> Result<()> {
    match rel {
        Rel::Table { base, .. } => match of.iter().find(|t| t.base == *base) {
            Some(t) if is_nullable => {
                let message = format!("{} cannot be applied to the nullable side of an outer join", clause(t.locking));
                Err(Error::unsupported(message))
            }
            _ => Ok(()),
        },
        Rel::Join { kind, left, right, .. } => {
            check_nullable(left, of, is_nullable || *kind == JoinKind::Full)?;
            check_nullable(right, of, is_nullable || matches!(kind, JoinKind::Left | JoinKind::Full))
        }
        // Rows of a table expression are not locked from outside.
        Rel::Cte { .. } => Ok(()),
        rel => rel.inputs().into_iter().try_for_each(|input| check_nullable(input, of, is_nullable)),
    }
}
