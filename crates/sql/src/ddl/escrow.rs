//! Escrow columns: `… ESCROW CHECK (…)` in `CREATE TABLE` (`docs/design/escrow.md`).
//!
//! What a table with such a column may be is looked at where a statement's change is complete
//! ([`check`]), so that no statement has to know of it.

use super::Deriver;
use super::columns::named_column;
use super::refuse::refuse_in_change;
use crate::catalog::escrow::{Before, EPOCHS, EscrowProtocol, Limit, Shadow, can_limit, limits, scaled};
use crate::catalog::escrow_tables::{closing, uses_column};
use crate::catalog::expression::{Facts, parse_expression, resolve_columns};
use crate::catalog::job::Job;
use crate::catalog::system::quote;
use crate::catalog::{Catalog, Check, Column, ColumnState, Database, EscrowColumn, Homes, Table};
use crate::types::datetime::interval;
use crate::types::numeric::Numeric;
use crate::types::{Datum, Type};
use meridian_base::escrow::Bounds;
use meridian_base::{DescriptorId, Error, GroupId, Result};
use meridian_forecast::Kind;
use sqlparser::ast::{self, BinaryOperator, Expr, UnaryOperator};
use sqlparser::tokenizer::Token;
use std::time::Duration;

/// Whether a column's option is `ESCROW`.
pub(super) fn is_said(words: &[Token]) -> bool {
    matches!(words, [Token::Word(word)] if word.value == "ESCROW")
}

/// A column that is declared so, before the rest of its table is known.
pub(super) fn declared(ordinal: u32) -> EscrowColumn {
    EscrowColumn {
        ordinal,
        index: 0,
        lo: 0,
        hi: 0,
        sites: Vec::new(),
        limits: Vec::new(),
        closing: Vec::new(),
        forecaster: None,
        epoch: None,
        before: None,
        protocol: None,
        in_rows: false,
    }
}

impl Deriver<'_> {
    /// Gives a new table's declared columns their bounds, sites and indexes.
    pub(super) fn make_escrow(&mut self, table: &mut Table, database: &Database) -> Result<()> {
        if table.escrow.is_empty() {
            return Ok(());
        }
        let sites = self.sites(table, database);
        let closing = closing(&self.catalog, database, &sites);
        for at in 0..table.escrow.len() {
            let ordinal = table.escrow[at].ordinal;
            let Said { bounds: Bounds { lo, hi }, limits } = said(table, ordinal)?;
            let index = self.new_id();
            table.escrow[at] =
                EscrowColumn { index, lo, hi, sites: sites.clone(), limits, closing: closing.clone(), ..declared(ordinal) };
            check_default(&table.columns[ordinal as usize], Bounds { lo, hi })?;
        }
        Ok(())
    }

    /// `ALTER TABLE … ADD COLUMN … ESCROW`: the column is added as any other is, and then split.
    pub(super) fn split_added(&mut self, id: DescriptorId) -> Result<()> {
        let mut table = self.table_by_id(id)?;
        let Some(at) = table.escrow.iter().position(|column| column.index == 0) else { return Ok(()) };
        let added = table.escrow.split_off(at);
        for EscrowColumn { ordinal, .. } in added {
            if table.columns[ordinal as usize].state != ColumnState::Public {
                return Err(unsupported(&table, ordinal, "is added with a default that is the same for all rows"));
            }
            self.split(&mut table, ordinal)?;
        }
        self.put(table);
        Ok(())
    }

    /// `ALTER TABLE … ALTER COLUMN … SET ESCROW`, `… DROP ESCROW`.
    pub(super) fn split_column(&mut self, table: &ast::ObjectName, if_exists: bool, column: &str, is_split: bool) -> Result<()> {
        let Some(table) = self.table_if_exists(table, if_exists)? else { return Ok(()) };
        self.must_own(table.id)?;
        refuse_in_change(&table)?;
        let mut table = (*table).clone();
        let (ordinal, _) = named_column(&table, column)?;
        let at = table.escrow.iter().position(|column| column.ordinal == ordinal);
        match (at, is_split) {
            (None, true) => self.split(&mut table, ordinal)?,
            (Some(at), false) => {
                if self.is_private(table.id) {
                    return Err(unsupported(&table, ordinal, "ceases to be one after the transaction that creates its table"));
                }
                if !self.database_of(table.schema)?.dropping.is_empty() {
                    let message = format!("a region of the database of table \"{}\" is being dropped", table.name);
                    return Err(Error::sql("55006", message).hint("SHOW JOBS shows the statement that drops it."));
                }
                if table.escrow[at].before.is_some() {
                    let message = format!("the bounds of column \"{column}\" are being changed");
                    return Err(Error::sql("55006", message).table(&table.name));
                }
                if table.escrow[at].keeps_sites() {
                    return Err(keeps_majority(&table, ordinal, "stays one"));
                }
                table.escrow[at].in_rows = true;
                self.jobs.push(Job::Join { table: table.id, index: table.escrow[at].index });
            }
            // As `SET NOT NULL`, and `DROP NOT NULL`.
            (Some(_), true) | (None, false) => return Ok(()),
        }
        self.put(table);
        Ok(())
    }

    /// Has a job make a column of plain numbers an escrow column.
    fn split(&mut self, table: &mut Table, ordinal: u32) -> Result<()> {
        if self.is_private(table.id) {
            return Err(unsupported(table, ordinal, "is declared when its table is created"));
        }
        let database = self.database_of(table.schema)?;
        let sites = self.sites(table, &database);
        if !database.dropping.is_empty() {
            let message = format!("a region of database \"{}\" is being dropped", database.name);
            return Err(Error::sql("55006", message).hint("SHOW JOBS shows the statement that does it."));
        }
        let checks = self.validated_by_split(table, ordinal)?;
        let Said { bounds: Bounds { lo, hi }, limits } = said_with(table, ordinal, &checks)?;
        check_default(&table.columns[ordinal as usize], Bounds { lo, hi })?;
        let index = self.new_id();
        let column = EscrowColumn { index, lo, hi, sites, limits, ..declared(ordinal) };
        table.shadows.push(Shadow { column, is_written: false });
        self.jobs.push(Job::Split { table: table.id, index, checks });
        Ok(())
    }

    /// The new constraints of a column that is split need no job of their own: rows are looked at
    /// when they get shares.
    fn validated_by_split(&mut self, table: &Table, ordinal: u32) -> Result<Vec<DescriptorId>> {
        let mut validated = Vec::new();
        for check in &table.checks {
            let by_another = |job: &Job| matches!(job, Job::Split { checks, .. } if checks.contains(&check.id));
            let is_its = uses_column(table, &check.expression, ordinal)?;
            let is_of_block = |job: &Job| matches!(job, Job::ValidateCheck { check: of, .. } if *of == check.id);
            if is_its && self.context.jobs.iter().any(is_of_block) {
                let what = format!("cannot rest on constraint \"{}\", which the same transaction adds", check.name);
                return Err(unsupported(table, ordinal, &what)
                    .hint("Commit the constraint before SET ESCROW, or add it in the same ALTER TABLE."));
            }
            if is_its && (takes_over(&mut self.jobs, check) || self.jobs.iter().any(by_another)) {
                validated.push(check.id);
            }
        }
        Ok(validated)
    }

    /// `ALTER TABLE … ALTER COLUMN … SET (escrow.name = 'value', …)`.
    pub(super) fn set_escrow(
        &mut self,
        table: &ast::ObjectName,
        if_exists: bool,
        column: &str,
        settings: &[(String, String)],
    ) -> Result<()> {
        let Some(table) = self.table_if_exists(table, if_exists)? else { return Ok(()) };
        self.must_own(table.id)?;
        refuse_in_change(&table)?;
        let mut table = (*table).clone();
        let (ordinal, _) = named_column(&table, column)?;
        let name = table.name.clone();
        let Some(of) = table.escrow.iter_mut().find(|c| c.ordinal == ordinal) else {
            let message = format!("column \"{column}\" of relation \"{name}\" is not an escrow column");
            return Err(Error::sql("42809", message).table(name).column(column));
        };
        for (setting, value) in settings {
            let invalid = |hint: String| {
                Err(Error::sql("22023", format!("invalid value for parameter \"escrow.{setting}\": \"{value}\"")).hint(hint))
            };
            match setting.as_str() {
                // Rounds that are under way go on, and it is noted that there may be some until a
                // job has ended them.
                "protocol" if matches!(&**value, "any" | "majority") => {
                    let job = Job::EndRounds { table: table.id, index: of.index };
                    if ends_rounds(&self.catalog, &job) {
                        let message = format!("rounds of 'majority' of column \"{column}\" of table \"{name}\" are being ended");
                        let e = Error::sql("55006", message).table(name).column(column);
                        return Err(e.hint("SHOW JOBS shows the statement that does it."));
                    }
                    self.jobs.retain(|other| *other != job);
                    if value == "any" {
                        of.protocol = of.protocol.map(|_| EscrowProtocol::Any);
                        self.jobs.extend(of.keeps_sites().then_some(job));
                        continue;
                    }
                    if !of.closing.is_empty() {
                        let message = format!("a region is leaving the sites of column \"{column}\" of table \"{name}\"");
                        return Err(Error::sql("55006", message)
                            .table(name)
                            .column(column)
                            .hint("Set the protocol when the region is gone; SHOW JOBS shows the statement that drops it."));
                    }
                    if of.before.is_some() {
                        let message = format!("the bounds of column \"{column}\" are being changed");
                        return Err(Error::sql("55006", message).table(name).column(column));
                    }
                    of.protocol = Some(EscrowProtocol::Majority);
                }
                "protocol" => return invalid("Available values: any, majority.".to_string()),
                "forecaster" => match Kind::parse(value) {
                    Ok(kind) => of.forecaster = Some(kind.name().to_string()),
                    Err(e) => return invalid(format!("{e}.")),
                },
                "epoch" => {
                    let interval = interval::parse(value).ok().filter(|i| i.months == 0);
                    let micros =
                        interval.map(|i| i64::from(i.days) * 86_400_000_000 + i.micros).and_then(|n| u64::try_from(n).ok());
                    match micros.map(Duration::from_micros).filter(|epoch| EPOCHS.contains(epoch)) {
                        Some(epoch) => of.epoch = Some(epoch),
                        None => return invalid("An epoch is an interval from '1 second' to '1 day'.".to_string()),
                    }
                }
                _ => {
                    return Err(Error::sql("22023", format!("unrecognized parameter \"escrow.{setting}\""))
                        .hint("There are escrow.protocol, escrow.forecaster and escrow.epoch."));
                }
            }
        }
        self.put(table);
        Ok(())
    }

    /// A group of each region, the one with the table's own rows first. Nothing in them is in the
    /// future, as rows of GLOBAL tables are.
    fn sites(&mut self, table: &Table, database: &Database) -> Vec<GroupId> {
        let first = match &table.homes {
            Homes::ByRow(partitions) => return partitions.iter().map(|p| p.group).collect(),
            Homes::One(group) if self.is_global(*group) => self.primary_group(database),
            Homes::One(group) => *group,
        };
        let home = self.catalog.group_by_id(first).map_or(database.primary_region.clone(), |g| g.home.clone());
        let others: Vec<String> = database.regions.iter().filter(|r| **r != home).cloned().collect();
        std::iter::once(first).chain(others.iter().map(|region| self.group_for(database, region))).collect()
    }
}

/// Whether a job is ending a column's rounds.
fn ends_rounds(catalog: &Catalog, task: &Job) -> bool {
    catalog.jobs().any(|job| !job.state.has_ended() && job.tasks.contains(task))
}

/// 0A000 for a statement that changes the sites of a column which keeps them.
pub(super) fn check_sites(before: &Table, after: &Table) -> Result<()> {
    for column in before.escrow.iter().filter(|c| c.keeps_sites()) {
        let Some(now) = after.escrow.iter().find(|c| c.index == column.index) else { continue };
        if (&now.sites, &now.closing) != (&column.sites, &column.closing) {
            return Err(keeps_majority(before, column.ordinal, "keeps its regions"));
        }
    }
    Ok(())
}

fn keeps_majority(table: &Table, ordinal: u32, what: &str) -> Error {
    let column = &table.columns[ordinal as usize].name;
    unsupported(table, ordinal, &format!("{what} while rounds of escrow.protocol = 'majority' may be under way")).hint(format!(
        "ALTER TABLE {} ALTER COLUMN {} SET (escrow.protocol = 'any') ends them; 'majority' may be set again afterwards.",
        quote(&table.name),
        quote(column)
    ))
}

fn unsupported(table: &Table, ordinal: u32, what: &str) -> Error {
    let column = &table.columns[ordinal as usize].name;
    Error::unsupported(format!("escrow column \"{column}\" of table \"{}\" {what}", table.name)).table(&table.name).column(column)
}

/// Refuses what a table with escrow columns cannot have, whatever statement asked for it.
pub(super) fn check(table: &Table) -> Result<()> {
    for column in table.with_shares() {
        let ordinal = column.ordinal;
        let refuse = |what: &str| Err(unsupported(table, ordinal, what));
        if column.index == 0 {
            return refuse("cannot be added to a table that is there");
        }
        let of = &table.columns[ordinal as usize];
        if limits(&of.ty).is_none() {
            return refuse("must be of an integer type, or of numeric with up to 18 digits");
        }
        if !of.not_null {
            return refuse("must be NOT NULL");
        }
        if of.generated.is_some() || of.identity.is_some() || of.on_update.is_some() {
            return refuse("cannot be generated, and has no ON UPDATE");
        }
        if let Some(index) =
            table.indexes.iter().find(|i| i.columns.iter().any(|c| c.ordinal == ordinal) || i.stored.contains(&ordinal))
        {
            return refuse(&format!("cannot be in index \"{}\"", index.name));
        }
        let uses = |text: &str| uses_column(table, text, ordinal);
        for index in &table.indexes {
            if index.predicate.as_deref().map(uses).transpose()? == Some(true) {
                return refuse(&format!("cannot be in the predicate of index \"{}\"", index.name));
            }
        }
        for other in table.columns.iter().filter_map(|c| Some((c, c.generated.as_deref()?))) {
            if uses(other.1)? {
                return refuse(&format!("cannot be in the expression of generated column \"{}\"", other.0.name));
            }
        }
        if table.foreign_keys.iter().any(|f| f.columns.contains(&ordinal)) {
            return refuse("cannot be in a foreign key");
        }
        let is_shadow = table.shadows.iter().any(|shadow| shadow.column.ordinal == ordinal);
        let pending: Vec<DescriptorId> = table.checks.iter().filter(|_| is_shadow).map(|check| check.id).collect();
        if said_with(table, ordinal, &pending)? != told(column) {
            return refuse("keeps its bounds and its type");
        }
        check_default(of, Bounds { lo: column.lo, hi: column.hi }).map_err(|e| e.table(&table.name))?;
        for before in column.before.iter().flat_map(|b| &b.checks) {
            let still_means_it = |limit: &Limit| uses_column(table, &before.expression, limit.ordinal);
            let mut limits = column.before.iter().flat_map(|b| &b.limits);
            let is_there = uses_column(table, &before.expression, ordinal).unwrap_or(false);
            if !is_there || !limits.all(|limit| still_means_it(limit).unwrap_or(false)) {
                return refuse(&format!("had constraint \"{}\", whose columns stay until its bounds have changed", before.name));
            }
        }
        if table.indexes.iter().skip(1).any(|i| i.holds_rows) {
            let e = unsupported(table, ordinal, "keeps its table's primary key");
            return Err(e.hint("ALTER COLUMN … DROP ESCROW, change the key, and ALTER COLUMN … SET ESCROW."));
        }
    }
    Ok(())
}

fn used(table: &Table, expression: &Expr) -> Result<Vec<u32>> {
    Ok(resolve_columns(&Facts::of(expression), &table.columns, &table.name)?.into_iter().collect())
}

/// Has a table's escrow columns follow their checks, as a statement on it leaves them: the bounds
/// of each row are moved by jobs. `base`: the tables before it; `begun`: what its transaction block
/// will do.
pub(super) fn follow_checks(table: &mut Table, base: &Catalog, begun: &[Job], jobs: &mut Vec<Job>) -> Result<()> {
    let Some(old) = base.table_by_id(table.id) else { return Ok(()) };
    for at in 0..table.escrow.len() {
        let (ordinal, index) = (table.escrow[at].ordinal, table.escrow[at].index);
        // One of another type is refused.
        if index == 0 || old.columns[ordinal as usize].ty != table.columns[ordinal as usize].ty {
            continue;
        }
        let moved = [Job::LowerBounds { table: table.id, index }, Job::RaiseBounds { table: table.id, index }];
        let uses = |check: &Check| uses_column(table, &check.expression, ordinal);
        let of_column: Vec<bool> = table.checks.iter().map(uses).collect::<Result<_>>()?;
        for (check, _) in table.checks.iter_mut().zip(of_column).filter(|(_, is_its)| *is_its) {
            check.validated |= takes_over(jobs, check);
        }
        let said = said(table, ordinal)?;
        if said == told(&table.escrow[at]) {
            continue;
        }
        // Sites apply a decision one after another: between them, grants do not tell the bounds.
        if table.escrow[at].keeps_sites() {
            return Err(keeps_majority(table, ordinal, "keeps its bounds"));
        }
        if table.escrow[at].before.is_some() && !begun.contains(&moved[0]) {
            let message = format!("the bounds of column \"{}\" are being changed", table.columns[ordinal as usize].name);
            return Err(Error::sql("55006", message).table(&table.name).hint("SHOW JOBS shows the statement that does it."));
        }
        let mut checks = Vec::new();
        for check in &old.checks {
            if uses_column(&old, &check.expression, ordinal)? {
                checks.push(check.clone());
            }
        }
        // What is taken back if a number is outside of the new bounds has to have its columns.
        if begun.iter().chain(&*jobs).any(|job| !moved.contains(job)) {
            return Err(unsupported(table, ordinal, "changes its bounds by a statement of its own"));
        }
        let column = &mut table.escrow[at];
        let before = Before { lo: column.lo, hi: column.hi, limits: column.limits.clone(), checks };
        column.before.get_or_insert(before);
        (column.lo, column.hi, column.limits) = (said.bounds.lo, said.bounds.hi, said.limits);
        jobs.extend(moved);
    }
    Ok(())
}

/// Takes the job out that validates a new constraint, if there is one: rows are looked at when
/// their tokens are moved.
fn takes_over(jobs: &mut Vec<Job>, check: &Check) -> bool {
    let before = jobs.len();
    jobs.retain(|job| !matches!(job, Job::ValidateCheck { check: of, keep: false, .. } if *of == check.id));
    jobs.len() < before
}

/// What a column's check said when its bounds were last set.
fn told(column: &EscrowColumn) -> Said {
    Said { bounds: Bounds { lo: column.lo, hi: column.hi }, limits: column.limits.clone() }
}

/// What a column's check says.
#[derive(PartialEq)]
struct Said {
    /// The type's where it says nothing.
    bounds: Bounds,
    /// In order.
    limits: Vec<Limit>,
}

fn said(table: &Table, ordinal: u32) -> Result<Said> {
    said_with(table, ordinal, &[])
}

/// The same, with constraints that are about to be validated.
fn said_with(table: &Table, ordinal: u32, pending: &[DescriptorId]) -> Result<Said> {
    let ty = &table.columns[ordinal as usize].ty;
    let bounds = limits(ty)
        .ok_or_else(|| unsupported(table, ordinal, "must be of an integer type, or of numeric with up to 18 digits"))?;
    let mut checks = Vec::new();
    for check in &table.checks {
        let expression = parse_expression(&check.expression)?;
        if used(table, &expression)?.contains(&ordinal) {
            checks.push((check, expression));
        }
    }
    let (check, expression) = match &checks[..] {
        [] => return Ok(Said { bounds, limits: Vec::new() }),
        [one] => one,
        [..] => return Err(unsupported(table, ordinal, "can have one CHECK")),
    };
    if !check.validated && !pending.contains(&check.id) {
        return Err(unsupported(table, ordinal, "cannot have a CHECK that is NOT VALID"));
    }
    let mut said = Said { bounds, limits: Vec::new() };
    let mut conditions = Vec::new();
    conjuncts(expression, &mut conditions);
    for condition in conditions {
        let ends = ends(table, ordinal, condition)?.ok_or_else(|| {
            unsupported(
                table,
                ordinal,
                "can have a CHECK of >=, <= and BETWEEN with constants and NOT NULL numbers of its row only",
            )
            .detail(format!("Constraint \"{}\" says something else.", check.name))
        })?;
        for (end, is_upper) in ends {
            match (end, is_upper) {
                (End::Number(n), true) => said.bounds.hi = said.bounds.hi.min(n),
                (End::Number(n), false) => said.bounds.lo = said.bounds.lo.max(n),
                (End::Column(ordinal), is_upper) => said.limits.push(Limit { ordinal, is_upper }),
            }
        }
    }
    said.limits.sort_unstable();
    said.limits.dedup();
    if said.bounds.lo > said.bounds.hi {
        let message =
            format!("no value of column \"{}\" meets constraint \"{}\"", table.columns[ordinal as usize].name, check.name);
        return Err(Error::sql("42P16", message));
    }
    Ok(said)
}

fn conjuncts<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match e {
        Expr::Nested(inner) => conjuncts(inner, out),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, out);
            conjuncts(right, out);
        }
        _ => out.push(e),
    }
}

/// What a number does not cross.
enum End {
    Number(i128),
    Column(u32),
}

/// The ends that a condition gives the column, each with whether it is the upper one; `None`: it
/// says something else.
fn ends(table: &Table, ordinal: u32, e: &Expr) -> Result<Option<Vec<(End, bool)>>> {
    let column = &table.columns[ordinal as usize];
    let named = |e: &Expr, of: &Column| matches!(peeled(e), Expr::Identifier(name) if crate::parse::fold(name) == of.name);
    let is_it = |e: &Expr| named(e, column);
    let end = |e: &Expr| {
        let mut others = table.public_columns().filter(|(o, _)| *o != ordinal);
        match others.find(|(_, of)| named(e, of)) {
            Some((o, of)) => {
                let is_one = of.not_null && can_limit(&of.ty, &column.ty) && table.with_shares().all(|c| c.ordinal != o);
                Ok(is_one.then_some(End::Column(o)))
            }
            None => Ok::<_, Error>(constant(e, &column.ty)?.map(End::Number)),
        }
    };
    Ok(match e {
        Expr::Between { expr, negated: false, low, high } if is_it(expr) => match (end(low)?, end(high)?) {
            (Some(low), Some(high)) => Some(vec![(low, false), (high, true)]),
            _ => None,
        },
        Expr::BinaryOp { left, op, right } => {
            let (other, is_upper) = match (is_it(left), is_it(right), op) {
                (true, false, BinaryOperator::GtEq) => (right, false),
                (true, false, BinaryOperator::LtEq) => (right, true),
                (false, true, BinaryOperator::LtEq) => (left, false),
                (false, true, BinaryOperator::GtEq) => (left, true),
                _ => return Ok(None),
            };
            end(other)?.map(|end| vec![(end, is_upper)])
        }
        _ => None,
    })
}

fn peeled(e: &Expr) -> &Expr {
    match e {
        Expr::Nested(inner) => peeled(inner),
        Expr::Cast { expr, .. } => peeled(expr),
        _ => e,
    }
}

/// A number that is written down, in the column's scale.
fn constant(e: &Expr, ty: &Type) -> Result<Option<i128>> {
    let (e, is_negative) = match peeled(e) {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (peeled(expr), true),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => (peeled(expr), false),
        e => (e, false),
    };
    let Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(text, _), .. }) = e else { return Ok(None) };
    let Some(number) = Numeric::parse(text).transpose()? else { return Ok(None) };
    // One that no value of the type can be is none.
    Ok(scaled(&Datum::Numeric(if is_negative { number.neg() } else { number }), ty).unwrap_or(None))
}

/// 23514 for a default that no row could have.
fn check_default(column: &Column, bounds: Bounds) -> Result<()> {
    let Some(text) = &column.default else { return Ok(()) };
    match constant(&parse_expression(text)?, &column.ty)? {
        Some(number) if !bounds.contain(number) => {
            Err(Error::sql("23514", format!("the default of column \"{}\" is outside its bounds", column.name))
                .column(&column.name))
        }
        _ => Ok(()),
    }
}
