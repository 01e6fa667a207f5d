//! Bound expressions: names are columns, operators are functions, types are known.
//!
//! While a statement is bound, a column is named by a number unique in the statement ([`ColId`]),
//! so that moving an expression through the plan changes nothing in it. When the physical plan is
//! made, each [`Expr::Column`] becomes a place in its operator's input row ([`Expr::Slot`]) or in
//! the frame of values that a correlated subplan was started with ([`Expr::Arg`]).

use super::rel::Rel;
use crate::types::cast::is_immutable_cast;
use crate::types::functions::{Function, Volatility};
use crate::types::{CastContext, Datum, Type};
use meridian_base::DescriptorId;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A column of a relation in a statement.
pub(crate) type ColId = u32;

/// A comparison of two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Cmp {
    pub(crate) fn from_name(op: &str) -> Option<Cmp> {
        Some(match op {
            "=" => Cmp::Eq,
            "<>" | "!=" => Cmp::Ne,
            "<" => Cmp::Lt,
            "<=" => Cmp::Le,
            ">" => Cmp::Gt,
            ">=" => Cmp::Ge,
            _ => return None,
        })
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cmp::Eq => "=",
            Cmp::Ne => "<>",
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
        }
    }
    /// What holds of two values when this does not.
    pub(crate) fn negated(self) -> Cmp {
        match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
        }
    }
    /// With the operands exchanged.
    pub(crate) fn flip(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            same => same,
        }
    }
    pub(crate) fn holds(self, o: std::cmp::Ordering) -> bool {
        match self {
            Cmp::Eq => o.is_eq(),
            Cmp::Ne => o.is_ne(),
            Cmp::Lt => o.is_lt(),
            Cmp::Le => o.is_le(),
            Cmp::Gt => o.is_gt(),
            Cmp::Ge => o.is_ge(),
        }
    }
}

/// A longer list is looked through for longer than an expression that is brief may take.
const BRIEF_LIST_MAX: usize = 64;

/// A bound expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Const(Datum),
    /// From 0 on.
    Param(u32),
    Column(ColId),
    Slot(u32),
    Arg(u32),
    Call(Arc<Function>, Vec<Expr>),
    Compare(Cmp, Box<(Expr, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    /// `IS TRUE`, `IS FALSE`: never `NULL`.
    IsBool(Box<Expr>, bool),
    /// `IS DISTINCT FROM`.
    Distinct(Box<(Expr, Expr)>),
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Coalesce(Vec<Expr>),
    /// `GREATEST` (true) and `LEAST`.
    Extreme(bool, Vec<Expr>),
    Cast(Box<CastExpr>),
    Array(Type, Vec<Expr>),
    Subscript(Box<Expr>, Vec<Expr>),
    /// `a[lower:upper]`.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// A row, with the names and types of its fields.
    Row(Arc<RowShape>, Vec<Expr>),
    /// `left IN (list)`, all of one type.
    In(Box<Expr>, Vec<Expr>),
    /// A test by many values, in a physical plan.
    OneOf(Box<OneOf>),
    /// `left op ANY (array)`; with `all`, `ALL`.
    Quantified(Box<Quantified>),
    Subquery(Box<Subquery>),
    Sequence(Box<SequenceCall>),
}

/// See [`Expr::Row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    pub(crate) names: Arc<[String]>,
    pub(crate) types: Arc<[Type]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CastExpr {
    pub(crate) expr: Expr,
    pub(crate) from: Type,
    pub(crate) to: Type,
    pub(crate) context: CastContext,
}

/// How the left value of a quantified comparison meets each right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meets {
    Compare(Cmp),
    /// The function, and what each side is cast to before it.
    Call(Arc<Function>),
    /// A row meets a row (PostgreSQL manual, 9.25.5): the first fields that differ decide.
    Row(Arc<RowMeets>),
}

/// How the fields of two rows are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowMeets {
    pub(crate) cmp: Cmp,
    /// Of each field: whether the two are equal.
    pub(crate) equal: Vec<Meets>,
    /// Of each field: whether the left one comes first, or for `>` and `>=` the right one. Empty
    /// for `=` and `<>`.
    pub(crate) strict: Vec<Meets>,
}

impl Meets {
    /// Whether values meet that are the same, and no others.
    pub(crate) fn is_identity(&self) -> bool {
        match self {
            Meets::Compare(cmp) => *cmp == Cmp::Eq,
            Meets::Call(_) => false,
            Meets::Row(row) => row.cmp == Cmp::Eq && row.equal.iter().all(Meets::is_identity),
        }
    }
}

/// Shorter lists are compared one by one.
pub(crate) const SHORT_LIST_MAX: usize = 8;

/// `(left, …) IN ((…), …)`, or a disjunction that says the same: looked up, not compared one by
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OneOf {
    pub(crate) left: Vec<Expr>,
    /// Constants and parameters.
    pub(crate) rows: Arc<Vec<Vec<Expr>>>,
}

impl OneOf {
    /// What an expression says, if it is such a test.
    pub(crate) fn of(e: &Expr) -> Option<OneOf> {
        let is_settled = |e: &Expr| matches!(e, Expr::Const(_) | Expr::Param(_));
        match e {
            Expr::In(l, list) if list.len() > SHORT_LIST_MAX && list.iter().all(is_settled) => {
                let rows = list.iter().map(|e| vec![e.clone()]).collect();
                Some(OneOf { left: vec![(**l).clone()], rows: Arc::new(rows) })
            }
            Expr::Or(items) if items.len() > SHORT_LIST_MAX => {
                let mut equal = items.iter().map(|i| equalities(i).filter(|e| e.iter().all(|p| is_settled(&p.1))));
                let first = equal.next()??;
                let left: Vec<&Expr> = first.iter().map(|p| &p.0).collect();
                // What comes after the first comparison may not be computed for every row.
                let (head, rest) = left.split_first()?;
                if head.is_volatile() || head.needs_executor() || !rest.iter().all(|e| is_at_hand(e)) {
                    return None;
                }
                let right = |e: &[&(Expr, Expr)]| e.iter().map(|p| p.1.clone()).collect::<Vec<_>>();
                let mut rows = Vec::with_capacity(items.len());
                rows.push(right(&first));
                for e in equal {
                    let e = e?;
                    if e.len() != left.len() || !e.iter().zip(&left).all(|(p, l)| p.0 == **l) {
                        return None;
                    }
                    rows.push(right(&e));
                }
                Some(OneOf { left: left.into_iter().cloned().collect(), rows: Arc::new(rows) })
            }
            _ => None,
        }
    }
}

/// The sides of an equality, or of a conjunction of some.
fn equalities(e: &Expr) -> Option<Vec<&(Expr, Expr)>> {
    match e {
        Expr::Compare(Cmp::Eq, p) => Some(vec![p]),
        Expr::And(all) => all
            .iter()
            .map(|e| match e {
                Expr::Compare(Cmp::Eq, p) => Some(&**p),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

/// Whether it is a value of the row, or an implicit cast of one.
fn is_at_hand(e: &Expr) -> bool {
    match e {
        Expr::Slot(_) | Expr::Arg(_) => true,
        Expr::Cast(c) => c.context == CastContext::Implicit && is_at_hand(&c.expr),
        _ => false,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantified {
    pub(crate) left: Expr,
    pub(crate) meets: Meets,
    pub(crate) array: Expr,
    pub(crate) all: bool,
}

/// A subquery inside an expression.
#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    /// Unique in the statement: names its results in the memo.
    pub(crate) slot: u32,
    pub(crate) kind: SubqueryKind,
    pub(crate) body: SubqueryBody,
}

/// Which rows of a subquery a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Any,
    All,
    /// The only one: `(a, b) = (SELECT …)`.
    Sole,
}

#[derive(Clone, Debug)]
pub(crate) enum SubqueryKind {
    /// One column of at most one row.
    Scalar,
    Exists,
    /// `left op ANY (…)`. Several left values make a row.
    Quantified {
        left: Vec<Expr>,
        meets: Meets,
        quantifier: Quantifier,
    },
    /// `ARRAY(SELECT …)`, its element type.
    Array(Type),
}

#[derive(Clone, Debug)]
pub(crate) enum SubqueryBody {
    Logical(Arc<Rel>),
    Physical(Arc<super::node::SubPlan>),
}

#[derive(Clone, Debug)]
pub(crate) struct SequenceCall {
    /// Unique in the statement: one call site draws once per evaluation.
    pub(crate) slot: u32,
    pub(crate) op: SequenceOp,
    /// The sequence, or the expression of its regclass.
    pub(crate) target: SequenceTarget,
    /// Of `setval`.
    pub(crate) args: Vec<Expr>,
    /// An identity column draws: whoever may insert rows may.
    pub(crate) is_identity: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceOp {
    Next,
    Current,
    Last,
    Set,
}

#[derive(Clone, Debug)]
pub(crate) enum SequenceTarget {
    Known(DescriptorId),
    /// An oid, as `regclass`.
    Computed(Expr),
    None,
}

/// Whether both are written the same once names are resolved: then the one's value can stand for
/// the other's, unless they are volatile. `SELECT random() … GROUP BY random()` means one column;
/// two calls of `sum(random())` do not (PostgreSQL's `equal()` and `find_compatible_agg`): see
/// [`super::rel::AggCall::is_one_value_with`].
impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        use Expr as E;
        match (self, other) {
            // `1.0` is not `1.00` here.
            (E::Const(a), E::Const(b)) => a.is_identical(b),
            (E::Param(a), E::Param(b)) | (E::Slot(a), E::Slot(b)) | (E::Arg(a), E::Arg(b)) => a == b,
            (E::Column(a), E::Column(b)) => a == b,
            (E::Call(f, a), E::Call(g, b)) => f == g && a == b,
            (E::Compare(f, a), E::Compare(g, b)) => f == g && a == b,
            (E::Distinct(a), E::Distinct(b)) => a == b,
            (E::And(a), E::And(b)) | (E::Or(a), E::Or(b)) | (E::Coalesce(a), E::Coalesce(b)) => a == b,
            (E::Not(a), E::Not(b)) | (E::IsNull(a), E::IsNull(b)) => a == b,
            (E::IsBool(a, v), E::IsBool(b, w)) => v == w && a == b,
            (E::Case(a, d), E::Case(b, e)) => a == b && d == e,
            (E::Extreme(v, a), E::Extreme(w, b)) => v == w && a == b,
            (E::Cast(a), E::Cast(b)) => a == b,
            (E::Array(t, a), E::Array(u, b)) => t == u && a == b,
            (E::Subscript(a, i), E::Subscript(b, j)) => a == b && i == j,
            (E::Slice(a, l, u), E::Slice(b, m, v)) => a == b && l == m && u == v,
            (E::Row(s, a), E::Row(t, b)) => s == t && a == b,
            (E::In(a, l), E::In(b, m)) => a == b && l == m,
            (E::OneOf(a), E::OneOf(b)) => a == b,
            (E::Quantified(a), E::Quantified(b)) => a == b,
            // Numbered where they stand: another one is another one, whatever it says.
            (E::Subquery(a), E::Subquery(b)) => a.slot == b.slot,
            (E::Sequence(a), E::Sequence(b)) => a.slot == b.slot,
            _ => false,
        }
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            // Identical values are equal ones.
            Expr::Const(value) => value.hash(state),
            Expr::Param(n) | Expr::Slot(n) | Expr::Arg(n) => n.hash(state),
            Expr::Column(column) => column.hash(state),
            Expr::Call(function, _) => function.hash(state),
            Expr::Compare(cmp, _) => cmp.hash(state),
            Expr::Cast(cast) => cast.to.hash(state),
            Expr::Subquery(s) => return s.slot.hash(state),
            Expr::Sequence(s) => return s.slot.hash(state),
            _ => {}
        }
        self.children().hash(state);
    }
}

impl Expr {
    /// A row; fields without names are `f1`, `f2`, ….
    pub(crate) fn row(fields: Vec<(Option<String>, Type, Expr)>) -> Expr {
        let names = fields.iter().enumerate().map(|(i, f)| f.0.clone().unwrap_or_else(|| format!("f{}", i + 1))).collect();
        let types = fields.iter().map(|f| f.1.clone()).collect();
        Expr::Row(Arc::new(RowShape { names, types }), fields.into_iter().map(|f| f.2).collect())
    }
    pub(crate) const TRUE: Expr = Expr::Const(Datum::Bool(true));
    pub(crate) const NULL: Expr = Expr::Const(Datum::Null);

    pub(crate) fn compare(op: Cmp, a: Expr, b: Expr) -> Expr {
        Expr::Compare(op, Box::new((a, b)))
    }
    /// What it shows without the blanks at the end, which do not count where `char(n)` are
    /// compared.
    pub(crate) fn without_blanks(&self) -> Option<&Expr> {
        match self {
            Expr::Cast(c) if matches!((&c.from, &c.to), (Type::Char(_), Type::Text)) => Some(&c.expr),
            _ => None,
        }
    }
    pub(crate) fn as_const(&self) -> Option<&Datum> {
        match self {
            Expr::Const(d) => Some(d),
            _ => None,
        }
    }
    /// The expressions directly inside; of a subquery, those outside its body.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::Slot(_) | Expr::Arg(_) => Vec::new(),
            Expr::Call(_, v)
            | Expr::And(v)
            | Expr::Or(v)
            | Expr::Coalesce(v)
            | Expr::Extreme(_, v)
            | Expr::Array(_, v)
            | Expr::Row(_, v) => v.iter().collect(),
            Expr::Compare(_, p) | Expr::Distinct(p) => vec![&p.0, &p.1],
            Expr::Not(e) | Expr::IsNull(e) | Expr::IsBool(e, _) => vec![e],
            Expr::Case(whens, otherwise) => whens.iter().flat_map(|(a, b)| [a, b]).chain(otherwise.as_deref()).collect(),
            Expr::Cast(c) => vec![&c.expr],
            Expr::Subscript(a, i) => std::iter::once(&**a).chain(i).collect(),
            Expr::Slice(a, l, u) => std::iter::once(&**a).chain(l.as_deref()).chain(u.as_deref()).collect(),
            Expr::In(e, v) => std::iter::once(&**e).chain(v).collect(),
            Expr::OneOf(o) => o.left.iter().chain(o.rows.iter().flatten()).collect(),
            Expr::Quantified(q) => vec![&q.left, &q.array],
            Expr::Subquery(s) => match &s.kind {
                SubqueryKind::Quantified { left, .. } => left.iter().collect(),
                _ => Vec::new(),
            },
            Expr::Sequence(s) => {
                let target = match &s.target {
                    SequenceTarget::Computed(e) => Some(e),
                    _ => None,
                };
                target.into_iter().chain(&s.args).collect()
            }
        }
    }
    /// The same, to change them.
    pub(crate) fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Const(_) | Expr::Param(_) | Expr::Column(_) | Expr::Slot(_) | Expr::Arg(_) => Vec::new(),
            Expr::Call(_, v)
            | Expr::And(v)
            | Expr::Or(v)
            | Expr::Coalesce(v)
            | Expr::Extreme(_, v)
            | Expr::Array(_, v)
            | Expr::Row(_, v) => v.iter_mut().collect(),
            Expr::Compare(_, p) | Expr::Distinct(p) => {
                let (a, b) = &mut **p;
                vec![a, b]
            }
            Expr::Not(e) | Expr::IsNull(e) | Expr::IsBool(e, _) => vec![e],
            Expr::Case(whens, otherwise) => whens.iter_mut().flat_map(|(a, b)| [a, b]).chain(otherwise.as_deref_mut()).collect(),
            Expr::Cast(c) => vec![&mut c.expr],
            Expr::Subscript(a, i) => std::iter::once(&mut **a).chain(i).collect(),
            Expr::Slice(a, l, u) => std::iter::once(&mut **a).chain(l.as_deref_mut()).chain(u.as_deref_mut()).collect(),
            Expr::In(e, v) => std::iter::once(&mut **e).chain(v).collect(),
            Expr::OneOf(o) => o.left.iter_mut().chain(Arc::make_mut(&mut o.rows).iter_mut().flatten()).collect(),
            Expr::Quantified(q) => vec![&mut q.left, &mut q.array],
            Expr::Subquery(s) => match &mut s.kind {
                SubqueryKind::Quantified { left, .. } => left.iter_mut().collect(),
                _ => Vec::new(),
            },
            Expr::Sequence(s) => {
                let target = match &mut s.target {
                    SequenceTarget::Computed(e) => Some(e),
                    _ => None,
                };
                target.into_iter().chain(&mut s.args).collect()
            }
        }
    }
    /// Calls `f` on this and everything inside, bodies of subqueries excepted.
    pub(crate) fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        for c in self.children() {
            c.visit(f);
        }
    }
    /// Whether anything inside satisfies the predicate, bodies of subqueries excepted.
    pub(crate) fn any(&self, f: &dyn Fn(&Expr) -> bool) -> bool {
        f(self) || self.children().into_iter().any(|c| c.any(f))
    }
    /// Columns used and not made inside: those of this statement level and outer ones, and what
    /// subqueries take from outside.
    pub(crate) fn columns(&self) -> Vec<ColId> {
        let mut out = Vec::new();
        self.add_columns(&mut out);
        out.sort_unstable();
        out.dedup();
        out
    }
    pub(crate) fn add_columns(&self, out: &mut Vec<ColId>) {
        match self {
            Expr::Column(c) => out.push(*c),
            Expr::Subquery(s) => {
                if let SubqueryBody::Logical(rel) = &s.body {
                    out.extend(rel.free_columns());
                }
            }
            _ => {}
        }
        for c in self.children() {
            c.add_columns(out);
        }
    }
    /// The places of its input row that it reads.
    pub(crate) fn slots(&self) -> Vec<u32> {
        let mut out = Vec::new();
        self.visit(&mut |e| {
            if let Expr::Slot(o) = e {
                out.push(*o);
            }
        });
        out
    }
    /// The same with what is handed to its subqueries; `None` if one of these is not planned yet.
    pub(crate) fn slots_with_subqueries(&self) -> Option<Vec<u32>> {
        let mut out = self.slots();
        let mut are_planned = true;
        self.visit(&mut |e| {
            let Expr::Subquery(s) = e else { return };
            match &s.body {
                SubqueryBody::Physical(plan) => {
                    let args = plan.args.iter().map(Expr::slots_with_subqueries);
                    args.for_each(|slots| match slots {
                        Some(slots) => out.extend(slots),
                        None => are_planned = false,
                    });
                }
                SubqueryBody::Logical(_) => are_planned = false,
            }
        });
        are_planned.then_some(out)
    }
    /// Replaces columns by expressions, inside subqueries too. Only sound where the replacement may
    /// be computed again.
    pub(crate) fn substitute(&mut self, with: &dyn Fn(ColId) -> Option<Expr>) {
        if let Expr::Column(c) = self {
            if let Some(e) = with(*c) {
                *self = e;
            }
            return;
        }
        if let Expr::Subquery(s) = self
            && let SubqueryBody::Logical(rel) = &mut s.body
        {
            let mut new = (**rel).clone();
            new.visit_exprs_mut(&mut |e| e.substitute(with));
            *rel = Arc::new(new);
        }
        for c in self.children_mut() {
            c.substitute(with);
        }
    }
    /// Whether its value may depend on when it is computed, or computing it does something.
    pub(crate) fn is_volatile(&self) -> bool {
        self.any(&|e| match e {
            Expr::Call(f, _) => f.volatility == Volatility::Volatile,
            Expr::Sequence(_) => true,
            _ => false,
        })
    }
    /// Whether it is a few comparisons of values that are there, whatever these are.
    pub(crate) fn is_brief(&self) -> bool {
        !self.any(&|e| match e {
            Expr::Const(_) | Expr::Param(_) | Expr::Slot(_) | Expr::Arg(_) => false,
            Expr::Compare(..) | Expr::Distinct(_) | Expr::IsNull(_) | Expr::IsBool(..) => false,
            Expr::And(_) | Expr::Or(_) | Expr::Not(_) => false,
            Expr::In(_, list) => list.len() > BRIEF_LIST_MAX,
            Expr::OneOf(o) => o.rows.len() > BRIEF_LIST_MAX,
            Expr::Subquery(s) => !matches!(s.kind, SubqueryKind::Scalar),
            _ => true,
        })
    }
    /// Whether it must be computed through the executor: subqueries and sequences.
    pub(crate) fn needs_executor(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Subquery(_) | Expr::Sequence(_)))
    }
    pub(crate) fn has_subquery(&self) -> bool {
        self.any(&|e| matches!(e, Expr::Subquery(_)))
    }
    /// How much it is to compute, about: calls and comparisons.
    fn calls(&self) -> usize {
        let own = match self {
            Expr::Call(..) | Expr::Compare(..) | Expr::Distinct(_) | Expr::Cast(_) => 1,
            Expr::In(_, list) => 1 + list.len() / 2,
            Expr::Quantified(_) => 5,
            Expr::Subquery(_) | Expr::Sequence(_) => 1_000,
            _ => 0,
        };
        own + self.children().into_iter().map(Expr::calls).sum::<usize>()
    }
    /// Conditions in the order in which they are tested: cheap ones first, as PostgreSQL has it.
    /// Statements rely on it: `n <> 0 AND 100 / n > 20`, however the two came together.
    pub(crate) fn in_turn(conds: &[Expr]) -> Vec<Expr> {
        let mut conds = conds.to_vec();
        conds.sort_by_cached_key(Expr::calls);
        conds
    }
    /// Whether nothing in it depends on the session, the catalog, the rows of tables or the time.
    pub(crate) fn is_immutable(&self) -> bool {
        !self.any(&|e| match e {
            Expr::Call(f, _) => f.volatility != Volatility::Immutable,
            Expr::Quantified(q) => matches!(&q.meets, Meets::Call(f) if f.volatility != Volatility::Immutable),
            Expr::Cast(c) => !is_immutable_cast(&c.from, &c.to),
            Expr::Subquery(_) | Expr::Sequence(_) => true,
            _ => false,
        })
    }
    /// Whether it is a constant: immutable, and without anything that gets its value later.
    pub(crate) fn is_foldable(&self) -> bool {
        let is_later = |e: &Expr| matches!(e, Expr::Param(_) | Expr::Column(_) | Expr::Slot(_) | Expr::Arg(_));
        self.is_immutable() && !self.any(&is_later)
    }
    /// Splits a conjunction.
    pub(crate) fn conjuncts(self, out: &mut Vec<Expr>) {
        match self {
            Expr::And(v) => v.into_iter().for_each(|e| e.conjuncts(out)),
            Expr::Const(Datum::Bool(true)) => {}
            Expr::Or(sides) => shared(sides, out),
            e => out.push(e),
        }
    }
}

/// Splits an `OR`: what all its sides say comes out of it. (`a AND b OR a AND c` is `a AND (b OR
/// c)`, and `a OR a AND b` is `a`, also where some of them are unknown.)
fn shared(mut sides: Vec<Expr>, out: &mut Vec<Expr>) {
    let said = |side: &Expr| -> Vec<Expr> {
        let mut said = Vec::new();
        side.clone().conjuncts(&mut said);
        said
    };
    let mut common = sides.first().map_or_else(Vec::new, said);
    common.retain(|c| !c.is_volatile());
    for side in &sides[1..] {
        if common.is_empty() {
            break;
        }
        let others = said(side);
        common.retain(|c| others.contains(c));
    }
    if common.is_empty() {
        return out.push(Expr::Or(sides));
    }
    let mut is_all = false;
    for side in &mut sides {
        let mut rest = said(side);
        rest.retain(|c| !common.contains(c));
        is_all |= rest.is_empty();
        *side = if rest.len() == 1 { rest.remove(0) } else { Expr::And(rest) };
    }
    out.append(&mut common);
    if !is_all {
        out.push(Expr::Or(sides));
    }
}

/// A table plan's expression reads ordinals; a query's reads columns.
pub(crate) fn shift_slots(e: &mut Expr, base: ColId) {
    if let Expr::Slot(o) = e {
        *e = Expr::Column(base + *o);
        return;
    }
    e.children_mut().into_iter().for_each(|c| shift_slots(c, base));
}
