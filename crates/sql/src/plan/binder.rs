//! The state of binding one statement: parameters, scopes, fresh names; and how names are found.

use super::rel::{AggCall, Cte, WindowCall};
use super::{Need, NeedOn, PlanContext};
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::relation::{Relation, SequenceRef};
use crate::parse;
use crate::plan::eval::eval_constant;
use crate::plan::expr::{ColId, Expr};
use crate::types::cast::{can_cast, cast};
use crate::types::functions::SetFunction;
use crate::types::{CastContext, Datum, Type};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, Ident, Spanned};
use sqlparser::tokenizer::Span;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A typed expression.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: Type,
    /// Where it was written, for literals and names.
    pub(crate) span: sqlparser::tokenizer::Span,
    /// It was written without a type, and became a text for want of another one.
    pub(crate) is_literal: bool,
}

impl Typed {
    pub(crate) fn new(expr: Expr, ty: Type) -> Typed {
        Typed { expr, ty, span: sqlparser::tokenizer::Span::empty(), is_literal: false }
    }
}

/// A column that names can reach.
#[derive(Clone, Debug)]
pub(crate) struct ScopeCol {
    /// The alias of its relation; empty for columns merged by `USING`.
    pub(crate) table: String,
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    pub(crate) id: ColId,
    pub(crate) ty: Type,
    /// Only reached as `table.name`, because `USING` merged it.
    pub(crate) qualified_only: bool,
    /// Not shown by `*`.
    pub(crate) hidden: bool,
    pub(crate) origin: Option<(DescriptorId, u32)>,
    /// Of an escrow column: the column of its `escrow_estimate`.
    pub(crate) estimate: Option<ColId>,
}

/// One level of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) cols: Vec<ScopeCol>,
    /// Relations without columns count too.
    pub(crate) tables: Vec<String>,
    /// Why aggregates are not allowed here: the clause; `None` if they are.
    pub(crate) no_aggregates: Option<&'static str>,
    pub(crate) aggs: Vec<(ColId, AggCall, Type)>,
    pub(crate) windows: Vec<(ColId, WindowCall, Type)>,
    /// Where the calls in `aggs` and `windows` are written first, by what they compute: errors
    /// about them point there.
    pub(crate) calls_at: Vec<(ColId, Span)>,
    pub(crate) sets: Vec<(ColId, SetFunction, Vec<Expr>)>,
    /// Whether set-returning functions may stand here (the select list).
    pub(crate) allow_sets: bool,
    /// Why they may not stand in the part of it that is being bound.
    pub(crate) no_sets: Option<&'static str>,
    pub(crate) allow_windows: bool,
    /// Why window functions may not stand in the part of it that is being bound.
    pub(crate) no_windows: Option<Error>,
    pub(crate) named_windows: Vec<(String, ast::WindowSpec)>,
    /// In a select: the columns that an outer join of its FROM may fill with NULL.
    pub(crate) filled: BTreeSet<ColId>,
    /// Relations among these whose rows are asked for as a whole, and the column that is NULL where
    /// the join has found no row.
    pub(crate) marks: Vec<(String, ColId)>,
}

/// A common table expression in sight.
#[derive(Clone, Debug)]
pub(crate) struct CteBinding {
    pub(crate) name: String,
    pub(crate) cols: Vec<(String, Type)>,
    pub(crate) kind: CteKind,
}

#[derive(Clone, Debug)]
pub(crate) enum CteKind {
    Bound(Arc<Cte>),
    /// Inside its own recursive term.
    Work(u32),
}

/// On whose behalf a query is read.
#[derive(Clone, Copy)]
pub(crate) struct Behalf {
    pub view: DescriptorId,
    /// What the statement needs beside SELECT, because it locks the view's rows.
    pub locked: Privileges,
}

pub(crate) struct Binder<'a> {
    pub(crate) ctx: PlanContext<'a>,
    pub(crate) text: &'a str,
    pub(crate) params: Vec<Option<Type>>,
    /// Of the parameters, if the plan is for these alone: they stand in it as constants.
    pub(crate) values: &'a [Datum],
    /// Columns of select lists that show a literal without a type.
    pub(crate) literals: BTreeSet<ColId>,
    pub(crate) next_col: ColId,
    pub(crate) next_slot: u32,
    pub(crate) descriptors: BTreeSet<DescriptorId>,
    pub(crate) groups: BTreeSet<meridian_base::GroupId>,
    pub(crate) needs: Vec<Need>,
    /// Inside of a view, whose owner needs what it reads.
    pub(crate) behalf: Option<Behalf>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) ctes: Vec<CteBinding>,
    pub(crate) writes: bool,
    pub(crate) cacheable: bool,
    pub(crate) depth: u32,
    pub(crate) row_locks: crate::parse::RowLocks,
    pub(crate) known: super::estimate::Known,
    /// The types that the columns of the next query are converted to; empty if there are none. A
    /// parameter without a type in its select list gets the type of its column. The function that
    /// binds a query takes the list out before it binds anything inside.
    pub(crate) expected: Vec<Type>,
    /// Where the stack was when binding began.
    stack: usize,
}

/// How many queries, views and expressions may be inside one another.
const DEPTH_MAX: u32 = 120;

impl<'a> Binder<'a> {
    pub(crate) fn new(ctx: PlanContext<'a>, text: &'a str, params: &[Option<Type>]) -> Binder<'a> {
        Binder {
            ctx,
            text,
            params: params.iter().map(|p| p.clone().filter(|t| *t != Type::Unknown)).collect(),
            values: &[],
            literals: BTreeSet::new(),
            next_col: 0,
            next_slot: 0,
            descriptors: BTreeSet::new(),
            groups: BTreeSet::new(),
            needs: Vec::new(),
            behalf: None,
            scopes: Vec::new(),
            ctes: Vec::new(),
            writes: false,
            cacheable: true,
            depth: 0,
            row_locks: Default::default(),
            known: Default::default(),
            expected: Vec::new(),
            stack: super::limits::mark(),
        }
    }
    pub(crate) fn fresh(&mut self) -> ColId {
        self.fresh_many(1)
    }
    pub(crate) fn fresh_many(&mut self, n: usize) -> ColId {
        let base = self.next_col;
        self.next_col += n as u32;
        base
    }
    pub(crate) fn slot(&mut self) -> u32 {
        self.next_slot += 1;
        self.next_slot
    }
    /// One level deeper, or 54001.
    pub(crate) fn deeper<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.depth >= DEPTH_MAX {
            return Err(parse::too_deep());
        }
        super::limits::check(self.stack)?;
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        r
    }
    pub(crate) fn at(&self, e: Error, span: sqlparser::tokenizer::Span) -> Error {
        match parse::position_in(self.text, span) {
            Some(p) if e.get_position().is_none() => e.at(p),
            _ => e,
        }
    }
    /// An error about an operator: it stands after its left operand.
    pub(crate) fn at_operator(&self, e: Error, left: &ast::Expr) -> Error {
        let span = left.span();
        match parse::position_in(self.text, sqlparser::tokenizer::Span::new(span.end, span.end)) {
            Some(p) if e.get_position().is_none() => {
                let rest = self.text.get(p as usize - 1..).unwrap_or("");
                let gap = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == ')').len();
                e.at(p + gap as u32)
            }
            _ => e,
        }
    }
    pub(crate) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("a scope is open")
    }
    /// Binds a part of a select list where no set-returning function may stand, with the message
    /// that says so.
    pub(crate) fn without_sets<R>(&mut self, message: &'static str, bind: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let Some(scope) = self.scopes.last_mut() else { return bind(self) };
        let before = scope.no_sets.replace(message);
        let bound = bind(self);
        self.scope().no_sets = before;
        bound
    }

    /// Binds what must not contain window functions.
    pub(crate) fn without_windows<R>(&mut self, refusal: Error, bind: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let Some(scope) = self.scopes.last_mut() else { return bind(self) };
        let before = (std::mem::take(&mut scope.allow_windows), scope.no_windows.replace(refusal));
        let bound = bind(self);
        let scope = self.scope();
        (scope.allow_windows, scope.no_windows) = before;
        bound
    }

    /// Notes that whoever the statement acts for needs privileges on an object, and may use the
    /// schema in which the statement has named it.
    pub(crate) fn need(&mut self, object: DescriptorId, privileges: Privileges) {
        let schema = self.ctx.catalog.descriptors.get(&object).map(|d| d.parent());
        if let Some(schema) = schema.filter(|schema| self.behalf.is_none() && self.ctx.catalog.access(*schema).is_some()) {
            self.need_by(NeedOn::Object(schema), Privileges::USAGE, None);
        }
        self.need_of(NeedOn::Object(object), privileges);
    }
    /// The same of anything; a view's owner also needs what the statement does with its rows.
    pub(crate) fn need_of(&mut self, on: NeedOn, privileges: Privileges) {
        match self.behalf {
            Some(behalf) => self.need_by(on, privileges.with(behalf.locked), Some(behalf.view)),
            None => self.need_by(on, privileges, None),
        }
    }
    fn need_by(&mut self, on: NeedOn, privileges: Privileges, by: Option<DescriptorId>) {
        match self.needs.iter_mut().find(|n| n.on == on && n.by == by) {
            Some(need) => need.privileges = need.privileges.with(privileges),
            None => self.needs.push(Need { on, privileges, by }),
        }
    }
    /// Notes that a table's column is read.
    fn reads(&mut self, origin: Option<(DescriptorId, u32)>) {
        if let Some((table, _)) = origin {
            self.need(table, Privileges::SELECT);
        }
    }
    /// The relation that a name means: in a view, whether the schema may be used is not asked.
    pub(crate) fn relation_named(&self, name: &Name) -> Result<Relation> {
        if self.behalf.is_none() {
            return self.ctx.catalog.relation(self.ctx.names, name);
        }
        let found = self.ctx.catalog.find_relation_unchecked(self.ctx.names, name)?;
        found.ok_or_else(|| Error::sql("42P01", format!("relation \"{name}\" does not exist")))
    }

    /// The same of a sequence.
    pub(crate) fn sequence_named(&self, name: &Name) -> Result<SequenceRef> {
        match self.relation_named(name)? {
            Relation::Sequence(s) => Ok(s),
            _ => Err(Error::sql("42809", format!("\"{name}\" is not a sequence"))),
        }
    }

    /// A parameter; its type may still be unknown.
    pub(crate) fn param(&mut self, number: u32) -> Result<Typed> {
        if number == 0 || number > 65_535 {
            return Err(Error::sql("42P02", format!("there is no parameter ${number}")));
        }
        let at = number as usize - 1;
        if self.params.len() <= at {
            self.params.resize(at + 1, None);
        }
        Ok(match (self.params[at].clone(), self.values.get(at)) {
            (Some(ty), Some(value)) => Typed::new(Expr::Const(value.clone()), ty),
            (ty, _) => Typed::new(Expr::Param(at as u32), ty.unwrap_or(Type::Unknown)),
        })
    }
    /// The types of all parameters, or 42P18.
    pub(crate) fn param_types(&self) -> Result<Vec<Type>> {
        let ty = |(i, t): (usize, &Option<Type>)| {
            t.clone().ok_or_else(|| Error::sql("42P18", format!("could not determine data type of parameter ${}", i + 1)))
        };
        self.params.iter().enumerate().map(ty).collect()
    }

    /// Converts an expression to a type, or 42804/42846.
    pub(crate) fn coerce(&mut self, e: Typed, to: &Type, context: CastContext) -> Result<Expr> {
        if e.ty == *to {
            return Ok(e.expr);
        }
        if e.ty == Type::Unknown {
            if let Expr::Param(n) = e.expr {
                let known = self.params[n as usize].get_or_insert_with(|| to.without_modifier_for_param()).clone();
                return self.convert(Expr::Param(n), known, to, context);
            }
            if let Expr::Const(d) = &e.expr {
                return match d {
                    Datum::Text(t) => self.literal(t.as_str(), to, context).map(Expr::Const).map_err(|err| self.at(err, e.span)),
                    _ => Ok(e.expr),
                };
            }
        }
        self.convert(e.expr, e.ty, to, context)
    }
    /// An untyped literal becomes a value of a type.
    fn literal(&mut self, text: &str, to: &Type, context: CastContext) -> Result<Datum> {
        let starts_with_digit = text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        match to {
            Type::Timestamptz | Type::Regclass | Type::Regproc | Type::Regnamespace => self.cacheable = false,
            Type::Date | Type::Timestamp | Type::Time if !starts_with_digit => self.cacheable = false,
            _ => {}
        }
        let base = to.without_modifier_for_param();
        let value = Datum::from_text(text, &base, self.ctx.eval)?;
        if base == *to { Ok(value) } else { cast(value, &base, to, context, self.ctx.eval) }
    }
    pub(crate) fn convert(&mut self, expr: Expr, from: Type, to: &Type, context: CastContext) -> Result<Expr> {
        if from == *to || is_noop(&from, to) {
            return Ok(expr);
        }
        if !can_cast(&from, to, context) {
            return Err(cannot_cast(&from, to));
        }
        if let Expr::Const(d) = &expr
            && d.is_null()
        {
            return Ok(expr);
        }
        let cast = Expr::Cast(Box::new(crate::plan::expr::CastExpr { expr, from, to: to.clone(), context }));
        Ok(self.fold(cast))
    }
    /// Computes what does not depend on anything; errors are left for when it runs.
    pub(crate) fn fold(&self, e: Expr) -> Expr {
        // As PostgreSQL: what is compared with NULL is not computed, and its errors do not show.
        if let Expr::Compare(_, sides) = &e
            && [&sides.0, &sides.1].into_iter().any(|side| matches!(side, Expr::Const(Datum::Null)))
            && !e.is_volatile()
            && !e.needs_executor()
        {
            return Expr::NULL;
        }
        if matches!(e, Expr::Const(_)) || !e.is_foldable() {
            return e;
        }
        // What takes for long is computed when the statement runs, and can be interrupted there.
        let is_dear = |e: &Expr| match e {
            Expr::Const(d) => d.is_large(),
            Expr::Call(f, args) => args.iter().any(|a| matches!(a, Expr::Const(d) if f.is_dear(std::slice::from_ref(d)))),
            _ => false,
        };
        if e.any(&is_dear) {
            return e;
        }
        match eval_constant(&e, self.ctx.eval) {
            Ok(d) => Expr::Const(d),
            Err(_) => e,
        }
    }
    /// As an output or a grouping key: what is still unknown is text.
    pub(crate) fn settle(&mut self, e: Typed) -> Result<Typed> {
        if e.ty == Type::Unknown {
            let span = e.span;
            let expr = self.coerce(e, &Type::Text, CastContext::Implicit)?;
            let is_literal = matches!(expr, Expr::Const(_));
            return Ok(Typed { expr, ty: Type::Text, span, is_literal });
        }
        Ok(e)
    }

    /// Finds a column by its (qualified) name.
    pub(crate) fn column(&mut self, parts: &[Ident]) -> Result<Typed> {
        let span = parts[0].span;
        let names: Vec<String> = parts.iter().map(crate::parse::fold).collect();
        let found = match names.as_slice() {
            [name] => self.unqualified(name),
            [table, name] => self.qualified(None, table, name),
            [schema, table, name] => self.qualified(Some(schema), table, name),
            [_, schema, table, name] => self.qualified(Some(schema), table, name),
            _ => Err(Error::sql("42601", "improper qualified name (too many dotted names)")),
        };
        found.map_err(|e| self.at(e, span))
    }
    fn unqualified(&mut self, name: &str) -> Result<Typed> {
        for scope in self.scopes.iter().rev() {
            let mut found = scope.cols.iter().filter(|c| c.name == name && !c.qualified_only);
            if let Some(col) = found.next() {
                if found.any(|c| c.id != col.id) {
                    return Err(Error::sql("42702", format!("column reference \"{name}\" is ambiguous")));
                }
                let (typed, origin) = (Typed::new(Expr::Column(col.id), col.ty.clone()), col.origin);
                self.reads(origin);
                return Ok(typed);
            }
        }
        if let Some(row) = self.whole_row(name) {
            return Ok(row);
        }
        Err(self.no_column(format!("column \"{name}\" does not exist"), name))
    }
    fn qualified(&mut self, schema: Option<&String>, table: &str, name: &str) -> Result<Typed> {
        let here = |c: &&ScopeCol| c.table == table && schema.is_none_or(|s| c.schema.as_deref().is_none_or(|t| t == s));
        for scope in self.scopes.iter().rev() {
            let mut found = scope.cols.iter().filter(here).filter(|c| c.name == name);
            if let Some(col) = found.next() {
                if found.any(|c| c.id != col.id) {
                    return Err(Error::sql("42702", format!("column reference \"{name}\" is ambiguous")));
                }
                let (typed, origin) = (Typed::new(Expr::Column(col.id), col.ty.clone()), col.origin);
                self.reads(origin);
                return Ok(typed);
            }
            if scope.tables.iter().any(|t| t == table) {
                return Err(self.no_column(format!("column {table}.{name} does not exist"), name));
            }
        }
        let e = Error::sql("42P01", format!("missing FROM-clause entry for table \"{table}\""));
        let base =
            self.scopes.last().and_then(|s| s.cols.iter().find(|c| c.origin.is_some_and(|o| self.table_name(o.0) == table)));
        Err(match base {
            Some(c) => Error::sql("42P01", format!("invalid reference to FROM-clause entry for table \"{table}\""))
                .hint(format!("Perhaps you meant to reference the table alias \"{}\".", c.table)),
            None => e,
        })
    }
    fn table_name(&self, id: DescriptorId) -> String {
        self.ctx.catalog.table_by_id(id).map(|t| t.name.clone()).unwrap_or_default()
    }
    /// A relation's name as an expression: its row. For a function with one column, that column.
    fn whole_row(&mut self, name: &str) -> Option<Typed> {
        let scope = self.scopes.iter().rev().find(|s| s.tables.iter().any(|t| t == name))?;
        let cols: Vec<&ScopeCol> = scope.cols.iter().filter(|c| c.table == name && !c.hidden).collect();
        let fields: Vec<_> = cols.iter().map(|c| (Some(c.name.clone()), c.ty.clone(), Expr::Column(c.id))).collect();
        let origin = cols.first().and_then(|c| c.origin);
        let row = Expr::row(fields);
        // An outer join may have found no row: then the row itself is NULL, and not its fields.
        let key = origin.and_then(|(id, _)| Some((id, self.ctx.catalog.table_by_id(id)?.primary().columns.first()?.ordinal)));
        let key =
            scope.cols.iter().find(|c| c.table == name && c.schema.is_some() && key.is_some() && c.origin == key).map(|c| c.id);
        let is_filled = cols.first().is_some_and(|c| scope.filled.contains(&c.id));
        let key = match key {
            None if is_filled => Some(self.mark_of(name)),
            key => key,
        };
        let row = match key {
            Some(key) => Expr::Case(vec![(Expr::IsNull(Box::new(Expr::Column(key))), Expr::NULL)], Some(Box::new(row))),
            None => row,
        };
        self.reads(origin);
        Some(Typed::new(row, Type::Record))
    }
    /// The column that is NULL where an outer join has found no row of a relation without a key.
    fn mark_of(&mut self, name: &str) -> ColId {
        let fresh = self.fresh();
        let scope = self.scopes.iter_mut().rev().find(|s| s.tables.iter().any(|t| t == name)).expect("found by its name");
        match scope.marks.iter().find(|(of, _)| of == name) {
            Some((_, mark)) => *mark,
            None => {
                scope.marks.push((name.to_string(), fresh));
                fresh
            }
        }
    }
    fn no_column(&self, message: String, name: &str) -> Error {
        let e = Error::sql("42703", message);
        let close = self.scopes.iter().rev().flat_map(|s| &s.cols).filter(|c| !c.hidden && !c.table.is_empty());
        let best = close.map(|c| (distance(name, &c.name), c)).filter(|(d, c)| *d <= 3 && *d * 2 <= c.name.len().max(name.len()));
        match best.min_by_key(|(d, _)| *d) {
            Some((_, c)) => e.hint(format!("Perhaps you meant to reference the column \"{}.{}\".", c.table, c.name)),
            None => e,
        }
    }
    /// Opens a scope around `f`.
    pub(crate) fn in_scope<R>(&mut self, scope: Scope, f: impl FnOnce(&mut Self) -> Result<R>) -> Result<(R, Scope)> {
        self.scopes.push(scope);
        let r = f(self);
        let scope = self.scopes.pop().expect("pushed above");
        r.map(|r| (r, scope))
    }
}

/// Casts that change no datum: an index on the column still answers for the cast.
pub(crate) fn is_noop(from: &Type, to: &Type) -> bool {
    let int = |t: &Type| match t {
        Type::Int2 => Some(2),
        Type::Int4 | Type::Oid => Some(4),
        Type::Int8 => Some(8),
        _ => None,
    };
    let text = |t: &Type| matches!(t, Type::Text | Type::Varchar(_));
    match (from, to) {
        (Type::Oid, Type::Int4) | (Type::Int4 | Type::Int2, Type::Oid) => false,
        (Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace, Type::Oid) => true,
        (Type::Oid, Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace) => true,
        (Type::Numeric(_), Type::Numeric(None)) | (Type::Varchar(_), Type::Varchar(None)) => true,
        (Type::Char(_), Type::Char(0)) => true,
        (a, Type::Text | Type::Varchar(None)) if text(a) => true,
        // An array knows the type of its elements.
        (Type::Array(a), Type::Array(b)) => a == b || a.without_modifier() == **b,
        (a, b) => matches!((int(a), int(b)), (Some(x), Some(y)) if x <= y),
    }
}

pub(crate) fn cannot_cast(from: &Type, to: &Type) -> Error {
    Error::sql("42846", format!("cannot cast type {} to {}", from.base_name(), to.base_name()))
}

/// The edit distance, as far as a hint needs it.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + (ca != *cb) as usize;
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

impl Type {
    /// What a parameter in the place of a value of this type is: the type without its modifier;
    /// `char(n)` stays blank-padded text.
    pub(crate) fn without_modifier_for_param(&self) -> Type {
        self.without_modifier()
    }
}

/// A column of a bound query's result.
#[derive(Clone, Debug)]
pub(crate) struct OutCol {
    pub(crate) id: ColId,
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) origin: Option<(DescriptorId, u32)>,
}
