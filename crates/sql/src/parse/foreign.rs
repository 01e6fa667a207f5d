//! Clauses of other databases that sqlparser reads whatever its dialect is: refused as PostgreSQL
//! does, instead of being read and ignored.

use super::Place;
use super::tokens::{is, sees};
use meridian_base::{Error, Result};
use sqlparser::ast::{self, JoinConstraint, JoinOperator, Visit, Visitor};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::ControlFlow;

/// 42601 if a statement has one.
pub(super) fn refuse(statement: &ast::Statement) -> Result<()> {
    let found = match statement {
        ast::Statement::CreateTable(table) => of_table(table),
        _ => None,
    };
    let found = found.or_else(|| match statement.visit(&mut Finder) {
        ControlFlow::Break(clause) => Some(clause),
        ControlFlow::Continue(()) => None,
    });
    match found {
        Some(clause) => Err(Error::sql("42601", format!("syntax error at or near \"{clause}\""))),
        None => Ok(()),
    }
}

/// Options of columns that sqlparser takes up and forgets, where its dialect has none of that name.
pub(super) fn refuse_options(tokens: &[TokenWithSpan], place: &Place) -> Result<()> {
    const OPTIONS: [&str; 4] = ["auto_increment", "autoincrement", "identity", "invisible"];
    if !sees(tokens, 0, &["create", "table"]) {
        return Ok(());
    }
    let mut depth = 0usize;
    for (i, t) in tokens.iter().enumerate() {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // In the list of columns, but not the name of one.
            _ if depth == 1
                && OPTIONS.iter().any(|option| is(t, option))
                && !matches!(tokens[i - 1].token, Token::LParen | Token::Comma)
                && !is(&tokens[i - 1], "as") =>
            {
                return Err(place.near(t.span.start));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The first that is there.
fn first(clauses: &[(bool, &'static str)]) -> Option<&'static str> {
    clauses.iter().find(|(is_there, _)| *is_there).map(|(_, clause)| *clause)
}

fn of_table(table: &ast::CreateTable) -> Option<&'static str> {
    let is_mysql = |option: &ast::ColumnOptionDef| match &option.option {
        ast::ColumnOption::Check(check) if check.enforced.is_some() => Some("enforced"),
        ast::ColumnOption::Comment(_) => Some("comment"),
        ast::ColumnOption::CharacterSet(_) => Some("character"),
        _ => None,
    };
    let is_unenforced = |constraint: &ast::TableConstraint| match constraint {
        ast::TableConstraint::Check(check) if check.enforced.is_some() => Some("enforced"),
        _ => None,
    };
    first(&[
        (table.without_rowid, "without"),
        (table.strict, "strict"),
        (table.comment.is_some(), "comment"),
        (table.cluster_by.is_some() || table.clustered_by.is_some(), "cluster"),
        (table.order_by.is_some(), "order"),
        (table.primary_key.is_some(), "primary"),
        (table.transient, "transient"),
        (table.dynamic, "dynamic"),
        (table.iceberg, "iceberg"),
    ])
    .or_else(|| table.columns.iter().flat_map(|c| &c.options).find_map(is_mysql))
    .or_else(|| table.constraints.iter().find_map(is_unenforced))
}

fn of_select(s: &ast::Select) -> Option<&'static str> {
    let has_text_alias = |item: &ast::SelectItem| match item {
        ast::SelectItem::ExprWithAlias { alias, .. } => alias.quote_style == Some('\''),
        _ => false,
    };
    first(&[
        (s.top.is_some(), "top"),
        (s.qualify.is_some(), "qualify"),
        (!s.connect_by.is_empty(), "connect"),
        (!s.lateral_views.is_empty(), "lateral"),
        (s.prewhere.is_some(), "prewhere"),
        (!s.cluster_by.is_empty(), "cluster"),
        (!s.distribute_by.is_empty(), "distribute"),
        (!s.sort_by.is_empty(), "sort"),
        (s.value_table_mode.is_some(), "as"),
        (s.exclude.is_some(), "exclude"),
        (s.select_modifiers.is_some(), "select"),
        (s.projection.iter().any(has_text_alias), "'"),
    ])
    .or_else(|| s.from.iter().flat_map(|item| &item.joins).find_map(of_join))
}

fn of_join(join: &ast::Join) -> Option<&'static str> {
    let is_bare =
        matches!(join.join_operator, JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None));
    first(&[(join.global, "global"), (is_bare, "join")])
}

struct Finder;

impl Visitor for Finder {
    type Break = &'static str;
    fn pre_visit_query(&mut self, q: &ast::Query) -> ControlFlow<&'static str> {
        let found = first(&[
            (q.for_clause.is_some(), "for"),
            (q.settings.is_some(), "settings"),
            (q.format_clause.is_some(), "format"),
            (!q.pipe_operators.is_empty(), "|>"),
        ]);
        let found = found.or_else(|| match &*q.body {
            ast::SetExpr::Values(values) => first(&[(values.explicit_row, "row"), (values.value_keyword, "value")]),
            _ => None,
        });
        match found {
            Some(clause) => ControlFlow::Break(clause),
            None => ControlFlow::Continue(()),
        }
    }
    fn pre_visit_select(&mut self, s: &ast::Select) -> ControlFlow<&'static str> {
        match of_select(s) {
            Some(clause) => ControlFlow::Break(clause),
            None => ControlFlow::Continue(()),
        }
    }
    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<&'static str> {
        match statement {
            ast::Statement::Insert(i) if !i.into => ControlFlow::Break("insert"),
            ast::Statement::Insert(i) if i.has_table_keyword => ControlFlow::Break("table"),
            _ => ControlFlow::Continue(()),
        }
    }
}
