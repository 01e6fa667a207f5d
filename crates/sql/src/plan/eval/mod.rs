//! Evaluates expressions over a row.
//!
//! Evaluation is an ordinary function call: no future per expression. An expression that needs the
//! executor (a subquery, a draw from a sequence) stops with [`Missing`], the executor finds the
//! value, and the evaluation starts again with it in hand. That keeps SQL's rules about what is not
//! evaluated (`CASE`, `COALESCE`, `AND`) without a second evaluator.

pub(crate) mod bulk;

use crate::plan::expr::*;
use crate::types::cast::cast;
use crate::types::compare::Exact;
use crate::types::functions::Function;
use crate::types::{ArrayValue, CastContext, Datum, EvalContext, RecordValue, Type};
use bulk::Bulk;
use meridian_base::{Error, Result};
use parking_lot::Mutex;
use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) type Row = Vec<Datum>;
/// Rows that a statement holds.
pub(crate) type Kept = Bulk<Vec<Row>>;

/// What an evaluation sees.
pub(crate) struct Env<'e> {
    pub(crate) row: &'e [Datum],
    pub(crate) args: &'e [Datum],
    pub(crate) params: &'e [Datum],
    pub(crate) ctx: &'e EvalContext,
    pub(crate) memo: &'e Memo,
}

/// Why an evaluation stopped.
pub(crate) enum Stop {
    Error(Error),
    Missing(Missing),
}

/// A value that the executor has to find.
pub(crate) enum Missing {
    Subquery {
        subquery: Subquery,
        args: Vec<Datum>,
    },
    /// Of large arguments: computed where it keeps no other session waiting.
    Value {
        work: Work,
        args: Vec<Datum>,
    },
    /// The items of a large array, to look values up in: for [`Memo::know`].
    Members(Arc<ArrayValue>),
    Sequence {
        slot: u32,
        op: SequenceOp,
        target: Option<meridian_base::DescriptorId>,
        args: Vec<Datum>,
        is_identity: bool,
    },
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Error(e)
    }
}

/// What is computed from arguments.
#[derive(Clone)]
pub(crate) enum Work {
    Call(Arc<Function>),
    /// From a type to another.
    Cast(Type, Type, CastContext),
    /// A value and the elements of an array: whether the function holds for any of them, or for
    /// all.
    Quantified {
        meets: Meets,
        all: bool,
    },
}

impl Work {
    fn is_same(&self, other: &Work) -> bool {
        match (self, other) {
            (Work::Call(f), Work::Call(g)) => Arc::ptr_eq(f, g),
            (Work::Cast(from, to, context), Work::Cast(f, t, c)) => from == f && to == t && context == c,
            (Work::Quantified { meets, all }, Work::Quantified { meets: m, all: a }) => meets == m && all == a,
            _ => false,
        }
    }
    /// Does it. No argument of a strict function, and none of a cast, is `NULL`.
    pub(crate) fn run(&self, mut args: Vec<Datum>, ctx: &EvalContext) -> Result<Datum> {
        match self {
            Work::Call(f) => f.call(ctx, &args),
            Work::Cast(from, to, context) => cast(args.remove(0), from, to, *context, ctx),
            Work::Quantified { meets: how, all } => match &args[..] {
                [left, Datum::Array(a)] => fold(a.items.iter().map(|right| meets(how, left, right, ctx)), *all),
                _ => Ok(Datum::Null),
            },
        }
    }
}

pub(crate) fn are_large(values: &[Datum]) -> bool {
    values.iter().any(Datum::is_large)
}

/// A value that was computed aside for the evaluation under way, or the request for it.
fn computed_aside(work: Work, args: Vec<Datum>, env: &Env) -> Result<Datum, Stop> {
    let args = Exact(args);
    match env.memo.values.iter().find(|(w, a, _)| w.is_same(&work) && *a == args) {
        Some((_, _, value)) => Ok(value.clone()),
        None => Err(Stop::Missing(Missing::Value { work, args: args.0 })),
    }
}

/// Results of subqueries and sequences, by the place in the statement and the values they depend
/// on.
#[derive(Default)]
pub(crate) struct Memo {
    pub(crate) subqueries: HashMap<(u32, Exact), Arc<Rows>>,
    /// Values drawn for the evaluation that is under way.
    pub(crate) draws: BTreeMap<u32, i64>,
    /// Values computed aside for the evaluation that is under way.
    pub(crate) values: Vec<(Work, Exact, Datum)>,
    /// Whether what has large arguments is [`Missing`] now, not computed at once.
    pub(crate) computes_aside: bool,
    /// The same before an evaluation.
    may_compute_aside: bool,
    /// By the address of what they are made of, which is kept with them.
    lists: Mutex<BTreeMap<usize, (Arc<dyn Any + Send + Sync>, Arc<Members>)>>,
    /// How many results [`Memo::subqueries`] may hold before it is emptied.
    pub(crate) size: usize,
    /// What is accounted for them.
    pub(crate) bytes: usize,
}

impl Memo {
    /// Of a running plan: who evaluates finds what is [`Missing`].
    pub(crate) fn of_execution() -> Memo {
        Memo { computes_aside: true, may_compute_aside: true, ..Memo::default() }
    }
    /// An evaluation is done.
    pub(crate) fn settle(&mut self) {
        self.values.clear();
        self.computes_aside = self.may_compute_aside;
    }
    /// The rows of a list that is the same as long as the statement runs, to look rows up in.
    fn members<L: Send + Sync + 'static>(
        &self,
        list: &Arc<L>,
        rows: impl FnOnce(&L) -> Result<Vec<Vec<Datum>>>,
    ) -> Result<Arc<Members>> {
        if let Some(members) = self.known(list) {
            return Ok(members);
        }
        let members = Arc::new(Members::new(rows(list)?));
        self.know(list, members.clone());
        Ok(members)
    }
    fn known<L>(&self, list: &Arc<L>) -> Option<Arc<Members>> {
        self.lists.lock().get(&(Arc::as_ptr(list).cast::<()>() as usize)).map(|(_, members)| members.clone())
    }
    /// Keeps what was made of a list.
    pub(crate) fn know<L: Send + Sync + 'static>(&self, list: &Arc<L>, members: Arc<Members>) {
        self.lists.lock().insert(Arc::as_ptr(list).cast::<()>() as usize, (list.clone(), members));
    }
}

/// Rows of a subquery.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) rows: Kept,
    /// There may be more, which have not been read.
    pub(crate) is_part: bool,
    /// For `IN`, from the second look on.
    members: OnceLock<Members>,
    /// They were looked at.
    is_used: AtomicBool,
    /// For `ARRAY`.
    array: OnceLock<Result<Datum>>,
}

impl Rows {
    pub(crate) fn new(rows: Kept, is_part: bool) -> Rows {
        Rows { rows, is_part, ..Rows::default() }
    }
    /// Makes what evaluations look at: slow, if they are many.
    pub(crate) fn prepare(&self, kind: &SubqueryKind) {
        match kind {
            SubqueryKind::Quantified { meets, quantifier, .. } if sought(meets, *quantifier).is_some() => {
                self.members();
            }
            SubqueryKind::Array(element) => {
                let _ = self.array(element);
            }
            _ => {}
        }
    }
    /// Whether one of them equals a row ([`Members::have`]). Those of a correlated subquery are
    /// seldom looked at twice.
    fn have(&self, row: &[Datum]) -> Option<bool> {
        if self.members.get().is_some() || self.is_used.swap(true, Ordering::Relaxed) {
            return self.members().have(row);
        }
        let mut may_be_there = false;
        for other in self.rows.iter() {
            let mut is_known = true;
            let may_equal = other.iter().zip(row).all(|(a, b)| {
                let has_null = a.is_null() || b.is_null();
                is_known &= !has_null;
                has_null || a == b
            });
            if may_equal && is_known {
                return Some(true);
            }
            may_be_there |= may_equal;
        }
        (!may_be_there).then_some(false)
    }
    fn members(&self) -> &Members {
        self.members.get_or_init(|| Members::new(self.rows.to_vec()))
    }
    /// Arrays become the rows of one of more dimensions.
    fn array(&self, element: &Type) -> Result<Datum> {
        let make = || {
            let items: Vec<Datum> = self.rows.iter().map(|r| r[0].clone()).collect();
            match items.iter().any(|item| matches!(item, Datum::Array(_))) {
                true => ArrayValue::nest(element.clone(), &items),
                false => Ok(ArrayValue::datum(element.clone(), items)),
            }
        };
        self.array.get_or_init(make).clone()
    }
}

/// Rows of one width, to look rows up in.
pub(crate) struct Members {
    whole: Bulk<HashSet<Vec<Datum>>>,
    with_nulls: Vec<Vec<Datum>>,
}

impl Members {
    pub(crate) fn of_items(array: &ArrayValue) -> Members {
        Members::new(array.items.iter().map(|i| vec![i.clone()]).collect())
    }
    fn new(rows: Vec<Vec<Datum>>) -> Members {
        let (with_nulls, whole): (Vec<_>, Vec<_>) = rows.into_iter().partition(|r| r.iter().any(Datum::is_null));
        Members { whole: whole.into_iter().collect::<HashSet<_>>().into(), with_nulls }
    }
    /// Whether one of them equals a row; `None`: a `NULL` keeps that from being known.
    fn have(&self, row: &[Datum]) -> Option<bool> {
        let has_nulls = row.iter().any(Datum::is_null);
        if !has_nulls && self.whole.contains(row) {
            return Some(true);
        }
        let may_equal = |other: &Vec<Datum>| other.iter().zip(row).all(|(a, b)| a.is_null() || b.is_null() || a == b);
        let may_be_there = self.with_nulls.iter().any(may_equal) || (has_nulls && self.whole.iter().any(may_equal));
        (!may_be_there).then_some(false)
    }
}

/// A truth value that may be unknown.
fn known(holds: Option<bool>) -> Datum {
    holds.map_or(Datum::Null, Datum::Bool)
}

/// Evaluates what depends on nothing.
pub(crate) fn eval_constant(e: &Expr, ctx: &EvalContext) -> Result<Datum> {
    let memo = Memo::default();
    finish(eval(e, &Env { row: &[], args: &[], params: &[], ctx, memo: &memo }))
}

/// For expressions known not to need the executor.
pub(crate) fn finish<V>(r: Result<V, Stop>) -> Result<V> {
    r.map_err(|s| match s {
        Stop::Error(e) => e,
        Stop::Missing(Missing::Subquery { .. }) => Error::unsupported("subqueries are not allowed here"),
        Stop::Missing(Missing::Sequence { .. }) => Error::unsupported("sequences are not allowed here"),
        Stop::Missing(Missing::Value { .. } | Missing::Members(_)) => Error::internal("nobody computes aside here"),
    })
}

/// Whether a condition holds: neither false nor `NULL`.
pub(crate) fn is_true(d: &Datum) -> bool {
    matches!(d, Datum::Bool(true))
}

/// [`is_true`] of an expression.
#[inline]
pub(crate) fn holds(e: &Expr, env: &Env) -> Result<bool, Stop> {
    Ok(truth(e, env)? == Some(true))
}

/// What a condition says; `None`: it is not known. Conditions of conditions make no values.
fn truth(e: &Expr, env: &Env) -> Result<Option<bool>, Stop> {
    Ok(match e {
        Expr::Compare(cmp, p) => {
            let (a, b) = (operand(&p.0, env)?, operand(&p.1, env)?);
            let order = match (&*a, &*b) {
                (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
                (Datum::Null, _) | (_, Datum::Null) => return Ok(None),
                (a, b) => a.cmp(b),
            };
            Some(cmp.holds(order))
        }
        Expr::And(items) => junction(items, false, env)?,
        Expr::Or(items) => junction(items, true, env)?,
        Expr::Not(e) => truth(e, env)?.map(|b| !b),
        Expr::IsNull(e) => Some(match &*operand(e, env)? {
            Datum::Null => true,
            // A row is NULL if all its fields are.
            Datum::Record(r) => !r.values.is_empty() && r.values.iter().all(Datum::is_null),
            _ => false,
        }),
        Expr::IsBool(e, wanted) => Some(truth(e, env)? == Some(*wanted)),
        e => match eval(e, env)? {
            Datum::Bool(b) => Some(b),
            _ => None,
        },
    })
}

pub(crate) fn eval(e: &Expr, env: &Env) -> Result<Datum, Stop> {
    Ok(match e {
        Expr::Const(d) => d.clone(),
        Expr::Slot(i) => env.row[*i as usize].clone(),
        Expr::Arg(i) => env.args[*i as usize].clone(),
        Expr::Param(i) => param(env, *i)?,
        Expr::Column(_) => return Err(Error::internal("a column was left in a plan").into()),
        Expr::Compare(..) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) | Expr::IsBool(..) => {
            known(truth(e, env)?)
        }
        Expr::Call(f, args) => {
            // The common case without a heap allocation is worth little here: most of the time is
            // the function's.
            // A NULL that is written there is the answer; behind another one an argument may fail.
            if f.strict && args.iter().any(|a| matches!(a, Expr::Const(Datum::Null))) {
                return Ok(Datum::Null);
            }
            let (mut values, mut has_null) = (Vec::with_capacity(args.len()), false);
            for a in args {
                let v = eval(a, env)?;
                has_null |= v.is_null();
                values.push(v);
            }
            if f.strict && has_null {
                return Ok(Datum::Null);
            }
            match env.memo.computes_aside && f.is_dear(&values) {
                true => computed_aside(Work::Call(f.clone()), values, env)?,
                false => f.call(env.ctx, &values)?,
            }
        }
        Expr::Distinct(p) => Datum::Bool(eval(&p.0, env)? != eval(&p.1, env)?),
        Expr::Case(whens, otherwise) => {
            for (cond, result) in whens {
                if is_true(&eval(cond, env)?) {
                    return eval(result, env);
                }
            }
            match otherwise {
                Some(e) => eval(e, env)?,
                None => Datum::Null,
            }
        }
        Expr::Coalesce(items) => {
            for i in items {
                let v = eval(i, env)?;
                if !v.is_null() {
                    return Ok(v);
                }
            }
            Datum::Null
        }
        Expr::Extreme(greatest, items) => {
            let mut best = Datum::Null;
            for i in items {
                let v = eval(i, env)?;
                if !v.is_null() && (best.is_null() || (v > best) == *greatest && v != best) {
                    best = v;
                }
            }
            best
        }
        Expr::Cast(c) => {
            let v = eval(&c.expr, env)?;
            match () {
                () if v.is_null() => v,
                () if env.memo.computes_aside && v.is_large() => {
                    computed_aside(Work::Cast(c.from.clone(), c.to.clone(), c.context), vec![v], env)?
                }
                () => cast(v, &c.from, &c.to, c.context, env.ctx)?,
            }
        }
        Expr::Array(element, items) => array(element, items, env)?,
        Expr::Subscript(a, indexes) => subscript(eval(a, env)?, indexes, env)?,
        Expr::Slice(a, l, u) => slice(eval(a, env)?, l.as_deref(), u.as_deref(), env)?,
        Expr::Row(shape, items) => {
            let values = items.iter().map(|i| eval(i, env)).collect::<Result<Vec<_>, Stop>>()?;
            Datum::Record(Arc::new(RecordValue { names: shape.names.clone(), types: shape.types.clone(), values }))
        }
        Expr::In(l, list) => in_list(l, list, env)?,
        Expr::OneOf(o) => one_of(o, env)?,
        Expr::Quantified(q) => quantified(q, env)?,
        Expr::Subquery(s) => subquery(s, env)?,
        Expr::Sequence(s) => sequence(s, env)?,
    })
}

fn param(env: &Env, i: u32) -> Result<Datum> {
    env.params.get(i as usize).cloned().ok_or_else(|| Error::sql("42P02", format!("there is no parameter ${}", i + 1)))
}

/// A value without cloning it, where it lies still.
fn operand<'v>(e: &'v Expr, env: &'v Env) -> Result<Cow<'v, Datum>, Stop> {
    Ok(match e {
        Expr::Const(d) => Cow::Borrowed(d),
        Expr::Slot(i) => Cow::Borrowed(&env.row[*i as usize]),
        Expr::Arg(i) => Cow::Borrowed(&env.args[*i as usize]),
        Expr::Param(i) if (*i as usize) < env.params.len() => Cow::Borrowed(&env.params[*i as usize]),
        e => Cow::Owned(eval(e, env)?),
    })
}

fn junction(items: &[Expr], decisive: bool, env: &Env) -> Result<Option<bool>, Stop> {
    let mut outcome = Some(!decisive);
    for i in items {
        match truth(i, env)? {
            Some(b) if b == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => outcome = None,
        }
    }
    Ok(outcome)
}

fn in_list(l: &Expr, list: &[Expr], env: &Env) -> Result<Datum, Stop> {
    let l = operand(l, env)?;
    if l.is_null() {
        return Ok(if list.is_empty() { Datum::Bool(false) } else { Datum::Null });
    }
    let mut unknown = false;
    for i in list {
        let v = operand(i, env)?;
        if v.is_null() {
            unknown = true;
        } else if *v == *l {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

fn one_of(o: &OneOf, env: &Env) -> Result<Datum, Stop> {
    let of_row = |row: &Vec<Expr>| row.iter().map(|e| operand(e, env).map(Cow::into_owned)).collect();
    let of_rows = |rows: &Vec<Vec<Expr>>| finish(rows.iter().map(of_row).collect());
    let members = env.memo.members(&o.rows, of_rows)?;
    if let [one] = o.left.as_slice() {
        let one = operand(one, env)?;
        return Ok(known(members.have(std::slice::from_ref(&*one))));
    }
    let left = o.left.iter().map(|e| eval(e, env)).collect::<Result<Vec<_>, Stop>>()?;
    Ok(known(members.have(&left)))
}

fn array(element: &Type, items: &[Expr], env: &Env) -> Result<Datum, Stop> {
    let values = items.iter().map(|i| eval(i, env)).collect::<Result<Vec<_>, Stop>>()?;
    if !values.iter().any(|v| matches!(v, Datum::Array(_))) {
        return Ok(Datum::Array(Arc::new(ArrayValue { element: element.clone(), dims: vec![(values.len(), 1)], items: values })));
    }
    // Arrays of arrays make one more dimension, and must be of one shape.
    let (mut dims, mut all): (Option<Vec<(usize, i32)>>, Vec<Datum>) = (None, Vec::new());
    for v in &values {
        let Datum::Array(a) = v else {
            return Err(
                Error::sql("2202E", "multidimensional arrays must have array expressions with matching dimensions").into()
            );
        };
        let shape: Vec<usize> = a.dims.iter().map(|d| d.0).collect();
        if dims.as_ref().is_some_and(|d| d.iter().map(|d| d.0).ne(shape.iter().copied())) {
            return Err(
                Error::sql("2202E", "multidimensional arrays must have array expressions with matching dimensions").into()
            );
        }
        dims.get_or_insert_with(|| a.dims.clone());
        all.extend(a.items.iter().cloned());
    }
    let mut shape = vec![(values.len(), 1)];
    shape.extend(dims.unwrap_or_default());
    if all.is_empty() {
        shape.clear();
    }
    Ok(Datum::Array(Arc::new(ArrayValue { element: element.clone(), dims: shape, items: all })))
}

fn subscript(a: Datum, indexes: &[Expr], env: &Env) -> Result<Datum, Stop> {
    let mut at = Vec::with_capacity(indexes.len());
    for i in indexes {
        match eval(i, env)? {
            Datum::Int(i) => at.push(i),
            _ => return Ok(Datum::Null),
        }
    }
    let Datum::Array(a) = a else { return Ok(Datum::Null) };
    if at.len() != a.dims.len() {
        return Ok(Datum::Null);
    }
    let mut offset = 0usize;
    for (i, (len, lower)) in at.iter().zip(&a.dims) {
        match usize::try_from(i - *lower as i64) {
            Ok(i) if i < *len => offset = offset * len + i,
            _ => return Ok(Datum::Null),
        }
    }
    Ok(a.items.get(offset).cloned().unwrap_or(Datum::Null))
}

fn slice(a: Datum, l: Option<&Expr>, u: Option<&Expr>, env: &Env) -> Result<Datum, Stop> {
    let Datum::Array(a) = a else { return Ok(Datum::Null) };
    let bound = |e: Option<&Expr>, or: i64| match e.map(|e| eval(e, env)).transpose()? {
        None => Ok(Some(or)),
        Some(Datum::Int(i)) => Ok(Some(i)),
        Some(_) => Ok::<_, Stop>(None),
    };
    let Some((len, lower)) = a.dims.first().copied() else { return Ok(Datum::Array(a)) };
    if a.dims.len() > 1 {
        return Err(Error::unsupported("slices of multidimensional arrays are not supported").into());
    }
    let (Some(from), Some(to)) = (bound(l, lower as i64)?, bound(u, lower as i64 + len as i64 - 1)?) else {
        return Ok(Datum::Null);
    };
    let from = (from - lower as i64).clamp(0, len as i64) as usize;
    let to = (to - lower as i64 + 1).clamp(0, len as i64) as usize;
    let items: Vec<Datum> = if from < to { a.items[from..to].to_vec() } else { Vec::new() };
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len(), 1)] };
    Ok(Datum::Array(Arc::new(ArrayValue { element: a.element.clone(), dims, items })))
}

fn meets(how: &Meets, l: &Datum, r: &Datum, ctx: &EvalContext) -> Result<Option<bool>> {
    if let Meets::Compare(cmp) = how {
        return Ok((!l.is_null() && !r.is_null()).then(|| cmp.holds(l.cmp(r))));
    }
    let Meets::Call(f) = how else { return Ok(None) };
    if f.strict && (l.is_null() || r.is_null()) {
        return Ok(None);
    }
    Ok(match f.call(ctx, &[l.clone(), r.clone()])? {
        Datum::Bool(b) => Some(b),
        _ => None,
    })
}

fn row_meets(how: &RowMeets, left: &[Datum], right: &[Datum], ctx: &EvalContext) -> Result<Option<bool>> {
    let is_ordered = !matches!(how.cmp, Cmp::Eq | Cmp::Ne);
    let mut unknown = false;
    for (at, (l, r)) in left.iter().zip(right).enumerate() {
        match meets(&how.equal[at], l, r, ctx)? {
            Some(true) => {}
            Some(false) if is_ordered => return meets(&how.strict[at], l, r, ctx),
            Some(false) => return Ok(Some(how.cmp == Cmp::Ne)),
            None if is_ordered => return Ok(None),
            None => unknown = true,
        }
    }
    Ok((!unknown).then_some(matches!(how.cmp, Cmp::Eq | Cmp::Le | Cmp::Ge)))
}

/// `ANY` (or `ALL`) over what each value gives.
fn fold(outcomes: impl Iterator<Item = Result<Option<bool>>>, all: bool) -> Result<Datum> {
    let mut unknown = false;
    for o in outcomes {
        match o? {
            Some(b) if b != all => return Ok(Datum::Bool(!all)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

fn quantified(q: &Quantified, env: &Env) -> Result<Datum, Stop> {
    let l = operand(&q.left, env)?;
    let array = operand(&q.array, env)?;
    let Datum::Array(a) = &*array else { return Ok(Datum::Null) };
    if let Some(holds) = membership(&q.meets, q.all)
        && a.items.len() > SHORT_LIST_MAX
        && is_settled(&q.array)
    {
        let members = match env.memo.known(a) {
            Some(members) => members,
            None if env.memo.computes_aside && array.is_large() => return Err(Stop::Missing(Missing::Members(a.clone()))),
            None => {
                let members = Arc::new(Members::of_items(a));
                env.memo.know(a, members.clone());
                members
            }
        };
        return Ok(known(members.have(std::slice::from_ref(&*l)).map(|there| there == holds)));
    }
    if dear(&q.meets, a.items.len(), env).is_some() {
        let work = Work::Quantified { meets: q.meets.clone(), all: q.all };
        return computed_aside(work, vec![l.into_owned(), array.into_owned()], env);
    }
    Ok(fold(a.items.iter().map(|r| meets(&q.meets, &l, r, env.ctx)), q.all)?)
}

/// More values than these are compared aside, if a function does it.
const COMPARED_MAX: usize = 32;

/// Whether comparing a value with `values` others is work for another thread: a function does it,
/// and there are more than [`COMPARED_MAX`]. The answer is the type of the others.
fn dear<'m>(how: &'m Meets, values: usize, env: &Env) -> Option<&'m Type> {
    let Meets::Call(f) = how else { return None };
    let ty = f.args.get(1).filter(|ty| !matches!(ty, Type::Array(_)))?;
    (values > COMPARED_MAX && env.memo.computes_aside).then_some(ty)
}

/// Whether a quantified comparison asks if a value is among others (`= ANY`), or if it is not (`<>
/// ALL`).
fn membership(how: &Meets, all: bool) -> Option<bool> {
    match how {
        how if how.is_identity() && !all => Some(true),
        Meets::Compare(Cmp::Ne) if all => Some(false),
        _ => None,
    }
}

/// The same of a subquery's rows.
fn sought(how: &Meets, quantifier: Quantifier) -> Option<bool> {
    if quantifier == Quantifier::Sole { None } else { membership(how, quantifier == Quantifier::All) }
}

fn too_many_rows() -> Error {
    Error::sql("21000", "more than one row returned by a subquery used as an expression")
}

/// Whether an array is the same one as long as the statement runs.
fn is_settled(array: &Expr) -> bool {
    match array {
        Expr::Const(_) | Expr::Param(_) => true,
        Expr::Subquery(s) => matches!(&s.body, SubqueryBody::Physical(plan) if plan.args.is_empty()),
        _ => false,
    }
}

fn subquery(s: &Subquery, env: &Env) -> Result<Datum, Stop> {
    let SubqueryBody::Physical(plan) = &s.body else {
        return Err(Error::internal("a subquery was not planned").into());
    };
    let args = plan.args.iter().map(|a| eval(a, env)).collect::<Result<Vec<_>, Stop>>()?;
    let key = (s.slot, Exact(args));
    let Some(rows) = env.memo.subqueries.get(&key) else {
        return Err(Stop::Missing(Missing::Subquery { subquery: s.clone(), args: key.1.0 }));
    };
    Ok(match &s.kind {
        SubqueryKind::Exists => Datum::Bool(!rows.rows.is_empty()),
        SubqueryKind::Scalar => match rows.rows.as_slice() {
            [] => Datum::Null,
            [row] => row[0].clone(),
            _ => return Err(too_many_rows().into()),
        },
        SubqueryKind::Array(element) => rows.array(element)?,
        SubqueryKind::Quantified { left, meets: how, quantifier } => {
            let left = left.iter().map(|l| eval(l, env)).collect::<Result<Vec<_>, Stop>>()?;
            let whole = || Stop::Missing(Missing::Subquery { subquery: s.clone(), args: key.1.0.clone() });
            if let Some(holds) = sought(how, *quantifier) {
                return match rows.have(&left) {
                    Some(true) => Ok(Datum::Bool(holds)),
                    _ if rows.is_part => Err(whole()),
                    there => Ok(known(there.map(|there| there == holds))),
                };
            }
            let outcome = |right: &Vec<Datum>| match how {
                Meets::Row(row) => row_meets(row, &left, right, env.ctx),
                one => meets(one, &left[0], &right[0], env.ctx),
            };
            match (quantifier, rows.rows.as_slice()) {
                (Quantifier::Sole, []) => Datum::Null,
                (Quantifier::Sole, [row]) => known(outcome(row)?),
                (Quantifier::Sole, _) => return Err(too_many_rows().into()),
                (_, all_rows) => {
                    let all = *quantifier == Quantifier::All;
                    // The first rows are few.
                    match dear(how, all_rows.len(), env).filter(|_| !rows.is_part) {
                        Some(ty) => {
                            let work = Work::Quantified { meets: how.clone(), all };
                            computed_aside(work, vec![left[0].clone(), rows.array(ty)?], env)?
                        }
                        None => match fold(all_rows.iter().map(outcome), all)? {
                            Datum::Bool(holds) if holds != all => Datum::Bool(holds),
                            _ if rows.is_part => return Err(whole()),
                            other => other,
                        },
                    }
                }
            }
        }
    })
}

fn sequence(s: &SequenceCall, env: &Env) -> Result<Datum, Stop> {
    use crate::plan::expr::SequenceTarget;
    if let Some(v) = env.memo.draws.get(&s.slot) {
        return Ok(Datum::Int(*v));
    }
    let target = match &s.target {
        SequenceTarget::Known(id) => Some(*id),
        SequenceTarget::None => None,
        SequenceTarget::Computed(e) => match eval(e, env)? {
            Datum::Int(oid) => crate::catalog::system::from_oid(oid as u32),
            _ => return Ok(Datum::Null),
        },
    };
    let args = s.args.iter().map(|a| eval(a, env)).collect::<Result<Vec<_>, Stop>>()?;
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    Err(Stop::Missing(Missing::Sequence { slot: s.slot, op: s.op, target, args, is_identity: s.is_identity }))
}
