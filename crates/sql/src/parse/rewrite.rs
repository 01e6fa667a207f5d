//! Clauses that sqlparser does not know, inside statements that it does: cut out or replaced before
//! it sees the tokens.

use super::cursor::Cursor;
use super::fold;
use super::statement::{AsOfSystemTime, Locality, Overriding, RowLocks};
use super::tokens::{is, sees, storing, word};
use super::{Place, cockroach, expression_at_start, extra};
use crate::types::functions::text::RESERVED;
use meridian_base::{Error, Result};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::ControlFlow::{Break, Continue};

/// What was cut out.
#[derive(Default)]
pub(super) struct Cut {
    pub(super) locality: Option<Locality>,
    pub(super) as_of: Option<AsOfSystemTime>,
    pub(super) overriding: Option<Overriding>,
    pub(super) row_locks: RowLocks,
    /// What columns get when their rows are updated.
    pub(super) on_updates: Vec<(String, ast::Expr)>,
    pub(super) said: cockroach::Said,
}

impl Cut {
    /// Takes what an `INSERT` overrides and which locks are weaker ones. `has_stronger`: which of
    /// them are named in full.
    fn take(&mut self, tokens: &mut Vec<TokenWithSpan>, i: usize, has_stronger: &mut RowLocks) {
        if sees(tokens, i, &["overriding", "system", "value"]) {
            self.overriding = Some(Overriding::SystemValue);
            tokens.drain(i..i + 3);
        } else if sees(tokens, i, &["overriding", "user", "value"]) {
            self.overriding = Some(Overriding::UserValue);
            tokens.drain(i..i + 3);
        } else if sees(tokens, i, &["for", "no", "key", "update"]) {
            tokens.drain(i + 1..i + 3);
            self.row_locks.keep_keys = true;
        } else if sees(tokens, i, &["for", "key", "share"]) {
            tokens.remove(i + 1);
            self.row_locks.share_keys = true;
        } else if sees(tokens, i, &["for", "update"]) {
            has_stronger.keep_keys = true;
        } else if sees(tokens, i, &["for", "share"]) {
            has_stronger.share_keys = true;
        }
    }

    /// Puts back into the tree what the tree has a place for and its parser does not know.
    pub(super) fn restore(&mut self, statement: &mut ast::Statement) {
        if self.said.is_upsert {
            cockroach::mark_upsert(statement);
        }
        let columns: Vec<&mut ast::ColumnDef> = match statement {
            ast::Statement::CreateTable(table) => table.columns.iter_mut().collect(),
            ast::Statement::AlterTable(alter) => alter.operations.iter_mut().filter_map(added).collect(),
            _ => return,
        };
        for column in columns {
            if self.said.hidden.contains(&fold(&column.name)) {
                column.options.push(ast::ColumnOptionDef { name: None, option: ast::ColumnOption::Invisible });
            }
            if self.said.escrow.contains(&fold(&column.name)) {
                let option = ast::ColumnOption::DialectSpecific(vec![Token::make_word("ESCROW", None)]);
                column.options.push(ast::ColumnOptionDef { name: None, option });
            }
            let own = |(name, _): &mut (String, ast::Expr)| *name == column.name.value;
            for (_, e) in self.on_updates.extract_if(.., own) {
                column.options.push(ast::ColumnOptionDef { name: None, option: ast::ColumnOption::OnUpdate(e) });
            }
        }
    }
}

/// `SET role TO x`, `SET ROLE 'x'` and `SET LOCAL SESSION AUTHORIZATION x` are settings like
/// others; sqlparser knows `SET ROLE x` and `SET SESSION AUTHORIZATION x`.
fn set_role(tokens: &mut Vec<TokenWithSpan>) {
    let is_long = |scope| sees(tokens, 0, &["set", scope, "session", "authorization"]);
    if is_long("local") || is_long("session") {
        tokens[2].token = Token::make_word("session_authorization", Some('"'));
        tokens[3].token = Token::Eq;
        return;
    }
    let at = if sees(tokens, 0, &["set", "local"]) || sees(tokens, 0, &["set", "session"]) { 2 } else { 1 };
    if !sees(tokens, 0, &["set"]) || !sees(tokens, at, &["role"]) {
        return;
    }
    let Some(next) = tokens.get(at + 1) else { return };
    let is_text = matches!(next.token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_));
    if is_text || is(next, "to") || next.token == Token::Eq {
        let span = next.span;
        tokens[at].token = Token::make_word("role", Some('"'));
        if is_text {
            tokens.insert(at + 1, TokenWithSpan { token: Token::Eq, span });
        }
    }
}

fn added(operation: &mut ast::AlterTableOperation) -> Option<&mut ast::ColumnDef> {
    match operation {
        ast::AlterTableOperation::AddColumn { column_def, .. } => Some(column_def),
        _ => None,
    }
}

pub(super) fn rewrite(mut tokens: Vec<TokenWithSpan>, place: &Place) -> Result<(Vec<TokenWithSpan>, Cut)> {
    let mut cut = Cut { said: cockroach::rewrite(&mut tokens, place)?, ..Cut::default() };
    table_queries(&mut tokens);
    interval_precisions(&mut tokens);
    set_role(&mut tokens);
    if sees(&tokens, 0, &["create"]) {
        if let Some(at) =
            find_at_top(&tokens, |t, i| sees(t, i, &["locality", "regional"]) || sees(t, i, &["locality", "global"]))
        {
            let rest: Vec<TokenWithSpan> = tokens.drain(at..).collect();
            let mut c = Cursor::new(&rest[1..], place);
            cut.locality = Some(extra::locality(&mut c)?);
            c.end()?;
        }
        if tokens.iter().take(4).any(|t| is(t, "index")) {
            storing(&mut tokens);
        }
    }
    if sees(&tokens, 0, &["create"]) && tokens.iter().take(3).any(|t| is(t, "sequence")) {
        let start = tokens.iter().position(is_option).unwrap_or(tokens.len());
        sort_options(&mut tokens[start..]);
    }
    if sees(&tokens, 0, &["copy"]) {
        refuse_copy(&tokens)?;
        copy_booleans(&mut tokens);
        every_column(&mut tokens);
    }
    if sees(&tokens, 0, &["create", "table"]) || sees(&tokens, 0, &["alter", "table"]) {
        computed_columns(&mut tokens);
        cut.on_updates = on_updates(&mut tokens)?;
    }
    let mut has_stronger = RowLocks::default();
    let mut i = 0;
    while i < tokens.len() {
        if sees(&tokens, i, &["as", "identity"]) && tokens.get(i + 2).is_some_and(|t| t.token == Token::LParen) {
            let end = after_operand(&tokens, i + 1);
            sort_options(&mut tokens[i + 3..end.max(i + 4) - 1]);
        }
        plain_words(&mut tokens, i);
        cut.take(&mut tokens, i, &mut has_stronger);
        if i > 0 && sees(&tokens, i, &["exclude"]) && ends_frame(&tokens[i - 1]) {
            if sees(&tokens, i + 1, &["no", "others"]) {
                tokens.drain(i..i + 3);
                continue;
            }
            let is_known = [&["current", "row"][..], &["group"], &["ties"]].iter().any(|words| sees(&tokens, i + 1, words));
            if is_known {
                let position = place.position(tokens[i].span.start);
                return Err(Error::unsupported("EXCLUDE in window frames is not supported").at(position));
            }
        }
        if sees(&tokens, i, &["between", "symmetric"]) {
            // No operand starts like that (`plan::bind_expr::symmetric`).
            let span = tokens[i + 1].span;
            let twice = [word("NOT", Keyword::NOT), word("NOT", Keyword::NOT)];
            tokens.splice(i + 1..i + 2, twice.map(|token| TokenWithSpan { token, span }));
        } else if sees(&tokens, i, &["between", "asymmetric"]) {
            tokens.remove(i + 1);
        }
        if combines_in_parentheses(&tokens, i) {
            named_combination(&mut tokens, i);
        }
        if i > 0 && sees(&tokens, i, &["only"]) && may_name_a_table_after(&tokens[i - 1]) {
            only_table(&mut tokens, i);
        }
        if (sees(&tokens, i, &["for", "update"]) || sees(&tokens, i, &["for", "share"])) && follows_a_select_list(&tokens[..i]) {
            // sqlparser would take the word after an item of the list for its alias.
            let span = tokens[i].span;
            let limit = [word("LIMIT", Keyword::LIMIT), word("ALL", Keyword::ALL)];
            tokens.splice(i..i, limit.map(|token| TokenWithSpan { token, span }));
            i += 2;
        }
        if sees(&tokens, i, &["for", "update", "of"]) || sees(&tokens, i, &["for", "share", "of"]) {
            one_table_per_lock(&mut tokens, i);
        }
        i += 1;
    }
    // Where both are named, the stronger one keeps the promises of both.
    cut.row_locks.keep_keys &= !has_stronger.keep_keys;
    cut.row_locks.share_keys &= !has_stronger.share_keys;
    Ok((tokens, cut))
}

/// Words that sqlparser would take for others.
fn plain_words(tokens: &mut Vec<TokenWithSpan>, i: usize) {
    if sees(tokens, i, &["insert", "into", "local"]) {
        // A name; sqlparser takes it for Hive's LOCAL DIRECTORY.
        tokens[i + 2].token = Token::make_word("local", Some('"'));
    }
    if i > 0 && ends_operand(&tokens[i - 1]) && (is(&tokens[i], "isnull") || is(&tokens[i], "notnull")) {
        // Operators, though sqlparser takes them for names.
        let (span, not) = (tokens[i].span, is(&tokens[i], "notnull"));
        let words = [("IS", Keyword::IS), ("NOT", Keyword::NOT), ("NULL", Keyword::NULL)];
        let words = words.into_iter().filter(|(w, _)| not || *w != "NOT");
        tokens.splice(i..=i, words.map(|(w, keyword)| TokenWithSpan { token: word(w, keyword), span }));
    }
    if is(&tokens[i], "in") && is_open(tokens, i + 1) && is_open(tokens, i + 2) {
        let is_subquery = ["select", "with"].iter().any(|w| sees(tokens, i + 3, &[w]));
        let end = after_operand(tokens, i + 1);
        if is_subquery && tokens.get(end).is_some_and(|t| t.token == Token::Comma) {
            // A list, though sqlparser takes what begins like this for a subquery.
            let span = tokens[end].span;
            tokens.insert(end, TokenWithSpan { token: word("END", Keyword::END), span });
            let words = [("CASE", Keyword::CASE), ("WHEN", Keyword::WHEN), ("TRUE", Keyword::TRUE), ("THEN", Keyword::THEN)];
            let span = tokens[i + 2].span;
            tokens.splice(i + 2..i + 2, words.map(|(w, keyword)| TokenWithSpan { token: word(w, keyword), span }));
        }
    }
    if is(&tokens[i], "trim") && tokens.get(i + 1).is_some_and(|t| t.token == Token::LParen) {
        // Of blanks, where nothing else is said.
        let side = ["both", "leading", "trailing"].iter().any(|side| sees(tokens, i + 2, &[side]));
        let from = i + 2 + usize::from(side);
        if sees(tokens, from, &["from"]) {
            let span = tokens[from].span;
            tokens.insert(from, TokenWithSpan { token: Token::SingleQuotedString(" ".into()), span });
        }
    }
}

/// `AS OF SYSTEM TIME time`, wherever it stands: there is one for a whole statement.
pub(super) fn cut_as_of(tokens: &mut Vec<TokenWithSpan>, place: &Place) -> Result<Option<AsOfSystemTime>> {
    const WORDS: [&str; 4] = ["as", "of", "system", "time"];
    let Some(at) = (0..tokens.len()).find(|i| sees(tokens, *i, &WORDS)) else { return Ok(None) };
    let position = place.position(tokens[at].span.start);
    let start = at + WORDS.len();
    if start >= tokens.len() {
        return Err(place.end());
    }
    let (time, length) = expression_at_start(&tokens[start..], place)?;
    tokens.drain(at..start + length);
    if ["begin", "start", "set"].iter().any(|w| sees(tokens, 0, &[w])) {
        // One among the modes of a transaction.
        let is_comma = |t: Option<&TokenWithSpan>| t.is_some_and(|t| t.token == Token::Comma);
        if is_comma(tokens.get(at)) {
            tokens.remove(at);
        } else if at == tokens.len() && is_comma(tokens.last()) {
            tokens.pop();
        }
    }
    if let Some(second) = (at..tokens.len()).find(|i| sees(tokens, *i, &WORDS)) {
        return Err(place.near(tokens[second].span.start));
    }
    let is_open = |e: &ast::Expr| match e {
        ast::Expr::Value(v) if matches!(v.value, ast::Value::Placeholder(_)) => Break("parameters"),
        ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => Break("subqueries"),
        _ => Continue(()),
    };
    if let Break(what) = ast::visit_expressions(&time, is_open) {
        return Err(Error::unsupported(format!("{what} are not supported in AS OF SYSTEM TIME")).at(position));
    }
    Ok(Some(AsOfSystemTime { position, time: Box::new(time) }))
}

/// Whether an operand may end with a token: a name, a value, a bracket.
fn ends_operand(t: &TokenWithSpan) -> bool {
    match &t.token {
        Token::Word(w) => {
            // A keyword that is not reserved may be a column.
            let is_reserved = || RESERVED.binary_search(&w.value.to_ascii_lowercase().as_str()).is_ok();
            let is_value = matches!(w.keyword, Keyword::NULL | Keyword::TRUE | Keyword::FALSE);
            w.quote_style.is_some() || is_value || !is_reserved()
        }
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::RParen | Token::RBracket => true,
        _ => false,
    }
}

fn is_open(tokens: &[TokenWithSpan], at: usize) -> bool {
    tokens.get(at).is_some_and(|t| t.token == Token::LParen)
}

/// What sqlparser takes for a syntax error.
fn refuse_copy(tokens: &[TokenWithSpan]) -> Result<()> {
    if (0..tokens.len()).any(|i| sees(tokens, i, &["header", "match"])) {
        return Err(Error::unsupported("COPY HEADER MATCH is not supported"));
    }
    if find_at_top(tokens, |t, i| is(&t[i], "where")).is_some() {
        return Err(Error::unsupported("COPY … WHERE is not supported").hint("Copy into another table and INSERT … SELECT."));
    }
    Ok(())
}

/// sqlparser takes TRUE and FALSE for COPY's options; PostgreSQL takes ON and OFF as well (manual,
/// COPY).
fn copy_booleans(tokens: &mut [TokenWithSpan]) {
    for i in 1..tokens.len() {
        if !(is(&tokens[i - 1], "freeze") || is(&tokens[i - 1], "header")) {
            continue;
        }
        if is(&tokens[i], "on") {
            tokens[i].token = word("TRUE", Keyword::TRUE);
        } else if is(&tokens[i], "off") {
            tokens[i].token = word("FALSE", Keyword::FALSE);
        }
    }
}

/// `FORCE_QUOTE *` names a column that stands for all.
fn every_column(tokens: &mut Vec<TokenWithSpan>) {
    for i in 1..tokens.len() {
        if tokens[i].token != Token::Mul {
            continue;
        }
        let all = Token::Word(Word { value: "*".to_string(), quote_style: Some('"'), keyword: Keyword::NoKeyword });
        if is(&tokens[i - 1], "force_quote") {
            let span = tokens[i].span;
            let list = [Token::LParen, all, Token::RParen].map(|token| TokenWithSpan { token, span });
            tokens.splice(i..=i, list);
            return;
        }
        if i > 1 && sees(tokens, i - 2, &["force", "quote"]) {
            tokens[i].token = all;
            return;
        }
    }
}

/// CockroachDB's `AS (expression) STORED` is `GENERATED ALWAYS AS (expression) STORED`.
fn computed_columns(tokens: &mut Vec<TokenWithSpan>) {
    let mut i = 1;
    while i < tokens.len() {
        let is_computed = is(&tokens[i], "as")
            && !is(&tokens[i - 1], "always")
            && tokens.get(i + 1).is_some_and(|t| t.token == Token::LParen)
            && tokens.get(after_operand(tokens, i)).is_some_and(|t| is(t, "stored"));
        if is_computed {
            let span = tokens[i].span;
            let words = [word("GENERATED", Keyword::GENERATED), word("ALWAYS", Keyword::ALWAYS)];
            tokens.splice(i..i, words.map(|token| TokenWithSpan { token, span }));
            i += 2;
        }
        i += 1;
    }
}

/// Cuts out `ON UPDATE expression` of columns; `ON UPDATE CASCADE` and the like belong to foreign
/// keys.
fn on_updates(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<(String, ast::Expr)>> {
    const ACTIONS: &[&str] = &["cascade", "restrict", "no", "set"];
    const OPTIONS: &[&str] =
        &["not", "null", "default", "primary", "unique", "check", "references", "generated", "constraint", "collate"];
    let mut found = Vec::new();
    let (mut column, mut i, mut depth) = (None, 0, 0usize);
    while i < tokens.len() {
        match tokens[i].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A definition starts with its column's name.
        let name = match tokens[i].token {
            Token::LParen | Token::Comma if depth == 1 => Some(i + 1),
            _ if depth == 0 && is(&tokens[i], "add") => {
                let at = if sees(tokens, i + 1, &["column"]) { i + 2 } else { i + 1 };
                Some(if sees(tokens, at, &["if", "not", "exists"]) { at + 3 } else { at })
            }
            _ => None,
        };
        if let Some(Token::Word(w)) = name.and_then(|at| tokens.get(at)).map(|t| &t.token) {
            column = Some(w.value.clone());
        }
        let is_action = tokens.get(i + 2).is_some_and(|t| ACTIONS.iter().any(|a| is(t, a)));
        if !sees(tokens, i, &["on", "update"]) || is_action {
            i += 1;
            continue;
        }
        let Some(name) = column.clone() else { return Ok(found) };
        let mut end = i + 2;
        let mut inner = 0usize;
        while let Some(t) = tokens.get(end) {
            match t.token {
                Token::LParen => inner += 1,
                Token::RParen if inner == 0 => break,
                Token::RParen => inner -= 1,
                Token::Comma | Token::SemiColon | Token::EOF if inner == 0 => break,
                _ if inner == 0 && OPTIONS.iter().any(|o| is(t, o)) => break,
                _ => {}
            }
            end += 1;
        }
        let cut: Vec<String> = tokens.drain(i..end).skip(2).map(|t| t.token.to_string()).collect();
        found.push((name, super::parse_expression(&cut.join(" "))?));
    }
    Ok(found)
}

/// Whether a token may be the last one of a window frame's bounds.
fn ends_frame(t: &TokenWithSpan) -> bool {
    ["row", "preceding", "following"].iter().any(|w| is(t, w))
}

fn may_name_a_table_after(t: &TokenWithSpan) -> bool {
    t.token == Token::Comma || ["from", "join", "update", "using"].iter().any(|w| is(t, w))
}

/// `ONLY t` and `ONLY (t)` are `t`: no table inherits from another.
fn only_table(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let end = after_operand(tokens, at);
    let is_call = end > at + 1;
    if is_call {
        tokens.remove(end - 1);
        tokens.remove(at + 1);
    }
    if is_call || matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::Word(_))) {
        tokens.remove(at);
    }
}

/// Whether the last clause before the end is the list of a `SELECT`.
fn follows_a_select_list(tokens: &[TokenWithSpan]) -> bool {
    const CLAUSES: [&str; 11] =
        ["from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "union", "values"];
    let mut depth = 0usize;
    for t in tokens.iter().rev() {
        match t.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if is(t, "select") => return true,
            _ if CLAUSES.iter().any(|c| is(t, c)) => return false,
            _ => {}
        }
    }
    false
}

/// `FOR UPDATE OF a, b NOWAIT` is `FOR UPDATE OF a NOWAIT FOR UPDATE OF b NOWAIT`.
fn one_table_per_lock(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let name_at = at + 3;
    let is_comma = |i: usize| tokens.get(i).is_some_and(|t| t.token == Token::Comma);
    let mut last = name_at;
    while is_comma(last + 1) && matches!(tokens.get(last + 2).map(|t| &t.token), Some(Token::Word(_))) {
        last += 2;
    }
    if last == name_at || is_comma(last + 1) {
        return;
    }
    let mut end = last + 1;
    if sees(tokens, end, &["nowait"]) {
        end += 1;
    } else if sees(tokens, end, &["skip", "locked"]) {
        end += 2;
    }
    let (words, wait) = (tokens[at..name_at].to_vec(), tokens[last + 1..end].to_vec());
    let names: Vec<TokenWithSpan> = tokens[name_at..=last].iter().step_by(2).cloned().collect();
    let clauses =
        names.into_iter().flat_map(|n| words.iter().cloned().chain([n]).chain(wait.iter().cloned()).collect::<Vec<_>>());
    let clauses: Vec<TokenWithSpan> = clauses.collect();
    tokens.splice(at..end, clauses);
}

/// Whether a token starts an option of a sequence.
fn is_option(t: &TokenWithSpan) -> bool {
    option_rank(t).is_some()
}
/// The place of an option in the one order that sqlparser takes them in.
fn option_rank(t: &TokenWithSpan) -> Option<usize> {
    const ORDER: &[&[&str]] = &[&["increment"], &["minvalue"], &["maxvalue"], &["start"], &["cache"], &["cycle"], &["owned"]];
    ORDER.iter().position(|words| words.iter().any(|w| is(t, w))).or_else(|| is(t, "no").then_some(usize::MAX))
}

/// PostgreSQL takes the options of a sequence in any order.
fn sort_options(tokens: &mut [TokenWithSpan]) {
    let mut groups: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut after_no = false;
    for t in tokens.iter() {
        match option_rank(t) {
            // `NO MINVALUE` is placed by its second word.
            Some(rank) if after_no => {
                if let Some(g) = groups.last_mut() {
                    g.0 = rank;
                    g.1.push(t.clone());
                }
                after_no = false;
            }
            Some(rank) => {
                after_no = is(t, "no");
                groups.push((rank, vec![t.clone()]));
            }
            None => match groups.last_mut() {
                Some(g) => g.1.push(t.clone()),
                None => return,
            },
        }
    }
    groups.sort_by_key(|g| g.0);
    for (slot, t) in tokens.iter_mut().zip(groups.into_iter().flat_map(|g| g.1)) {
        *slot = t;
    }
}

/// `INTERVAL(3) '1.2345 s'`, whose precision sqlparser drops, is `INTERVAL '1.2345 s' SECOND(3)`.
fn interval_precisions(tokens: &mut Vec<TokenWithSpan>) {
    let is_one = |t: &[TokenWithSpan]| {
        is(&t[0], "interval")
            && matches!(t[1].token, Token::LParen)
            && matches!(t[2].token, Token::Number(..))
            && matches!(t[3].token, Token::RParen)
            && matches!(t[4].token, Token::SingleQuotedString(_))
    };
    let found: Vec<usize> = (0..tokens.len().saturating_sub(4)).filter(|at| is_one(&tokens[*at..at + 5])).collect();
    for at in found.into_iter().rev() {
        tokens[at + 1..at + 5].rotate_right(1);
        let second = TokenWithSpan::new(word("SECOND", Keyword::SECOND), tokens[at + 1].span);
        tokens.insert(at + 2, second);
    }
}

/// `TABLE t` is `SELECT * FROM t`, as a statement, in parentheses and beside `UNION` and the like.
fn table_queries(tokens: &mut Vec<TokenWithSpan>) {
    let mut i = 0;
    while i + 1 < tokens.len() {
        let may_be_a_query = i == 0
            || tokens[i - 1].token == Token::LParen
            || ["union", "except", "intersect", "all"].iter().any(|w| is(&tokens[i - 1], w));
        if is(&tokens[i], "table") && may_be_a_query && matches!(tokens[i + 1].token, Token::Word(_)) {
            let span = tokens[i].span;
            let new = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM)];
            tokens.splice(i..=i, new.map(|token| TokenWithSpan { token, span }));
        }
        i += 1;
    }
}

/// Whether a parenthesis in an expression opens a query that starts with one in parentheses:
/// sqlparser takes the first for an operand there.
fn combines_in_parentheses(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_open = |i: usize| tokens.get(i).is_some_and(|t: &TokenWithSpan| t.token == Token::LParen);
    if !is_open(at) || !is_open(at + 1) || at == 0 {
        return false;
    }
    let combines = |t: &TokenWithSpan| ["union", "intersect", "except"].iter().any(|w| is(t, w));
    let may_be_a_query = ["from", "join", "lateral", "as", "materialized", "in", "exists"].iter().any(|w| is(&tokens[at - 1], w))
        || combines(&tokens[at - 1])
        || (at > 1 && combines(&tokens[at - 2]));
    let is_operand = at > 1 && (sees(tokens, at - 2, &["distinct", "from"]) || is_from_of_a_call(tokens, at - 1));
    (is_operand || !may_be_a_query) && tokens.get(after_operand(tokens, at)).is_some_and(combines)
}

/// Whether a `FROM` separates the arguments of `extract` and the like.
fn is_from_of_a_call(tokens: &[TokenWithSpan], from: usize) -> bool {
    let mut depth = 0usize;
    let opens = tokens[..from].iter().rposition(|t| match t.token {
        Token::RParen => {
            depth += 1;
            false
        }
        Token::LParen if depth == 0 => true,
        Token::LParen => {
            depth -= 1;
            false
        }
        _ => false,
    });
    let call = opens.and_then(|o| o.checked_sub(1)).and_then(|c| tokens.get(c));
    is(&tokens[from], "from") && call.is_some_and(|c| ["extract", "substring", "trim", "overlay"].iter().any(|w| is(c, w)))
}

/// `((a) union (b))` becomes `(select * from ((a) union (b)) as c)`.
fn named_combination(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut depth = 0usize;
    let closes = tokens[at..].iter().position(|t| {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some(end) = closes.map(|c| at + c) else { return };
    let with_span = |token: Token, at: usize, tokens: &[TokenWithSpan]| TokenWithSpan { token, span: tokens[at].span };
    let close = [Token::RParen, word("AS", Keyword::AS), Token::make_word("combined", Some('"'))];
    let close = close.map(|t| with_span(t, end, tokens));
    let open = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM), Token::LParen];
    let open = open.map(|t| with_span(t, at, tokens));
    tokens.splice(end..end, close);
    tokens.splice(at + 1..at + 1, open);
}

/// The end of a literal, a name or a function call that starts at `at`.
fn after_operand(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut end = (at + 1).min(tokens.len());
    if tokens.get(at).is_some_and(|t| t.token == Token::Minus) {
        end = (end + 1).min(tokens.len());
    }
    if tokens.get(end).is_some_and(|t| t.token == Token::LParen) {
        let mut depth = 0usize;
        while let Some(t) = tokens.get(end) {
            end += 1;
            match t.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    end
}

fn find_at_top(tokens: &[TokenWithSpan], what: impl Fn(&[TokenWithSpan], usize) -> bool) -> Option<usize> {
    let mut depth = 0i32;
    (0..tokens.len()).find(|i| {
        match tokens[*i].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && what(tokens, *i)
    })
}
