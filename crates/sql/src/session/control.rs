//! The statements that are about the session itself: transactions, settings, prepared statements,
//! cursors, and what is accepted because there is nothing to do.

use super::ddl::log_event;
use super::jobs;
use super::run::interruptible;
use super::settings;
use super::simple::Manner;
use super::system::StatementSystem;
use super::{Output, OutputColumn, Session};
use crate::catalog::ids::READ_ALL_SETTINGS;
use crate::env::Environment;
use crate::parse::Control;
use crate::parse::ast::{self, ContextModifier, DiscardObject, Expr, Reset, Set, UnaryOperator, Value};
use crate::parse::fold;
use crate::parse::{Kind, Statement, TransactionModes};
use crate::show::Show;
use crate::types::zone::Zone;
use crate::types::{Datum, EvalContext, Type};
use meridian_base::{DescriptorId, Error, Result};
use std::sync::Arc;

impl<E: Environment> Session<E> {
    /// Runs a statement that is neither a query nor a change of rows or schema.
    pub(super) async fn run_control(
        &mut self,
        statement: &Arc<Statement>,
        manner: Manner<'_>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        if let Some(show) = Show::of(&statement.kind) {
            return Box::pin(self.show(&show, manner, out)).await;
        }
        match &statement.kind {
            Kind::Sql(sql) => return self.run_control_ast(statement, sql, manner, now, out).await,
            Kind::Fetch(fetch) => {
                self.side_effects += 1;
                Box::pin(self.fetch_cursor(fetch, manner, now, out)).await?;
            }
            Kind::Begin(modes) => {
                let was_open = self.block.as_ref().is_some_and(|b| b.explicit);
                self.begin(modes, now, out)?;
                if let Err(e) = self.read_as_of(statement, now).await {
                    if !was_open {
                        self.roll_back();
                    }
                    return Err(e);
                }
                let is_start = statement.text.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start"));
                out.command_complete(if is_start { "START TRANSACTION" } else { "BEGIN" });
            }
            Kind::SetTransaction { session: false, modes } => {
                self.set_transaction(modes, out)?;
                self.read_as_of(statement, now).await?;
                out.command_complete("SET");
            }
            Kind::SetTransaction { session: true, modes } => {
                self.set_with_others(manner, now);
                if let Some(read_only) = modes.read_only {
                    self.set("default_transaction_read_only", Some(if read_only { "on" } else { "off" }), false)?;
                }
                if let Some(deferrable) = modes.deferrable {
                    self.set("default_transaction_deferrable", Some(if deferrable { "on" } else { "off" }), false)?;
                }
                out.command_complete("SET");
            }
            Kind::ControlJob { what, id } => {
                let tag = match what {
                    Control::Pause => "PAUSE JOB",
                    Control::Resume => "RESUME JOB",
                    Control::Cancel => "CANCEL JOB",
                };
                self.must_control_job(DescriptorId(*id), tag)?;
                self.refuse_in_block(tag)?;
                self.commit_block().await?;
                Box::pin(jobs::control(&self.env, DescriptorId(*id), *what, &self.shared)).await?;
                log_event(statement, &self.eval, tag);
                out.command_complete(tag);
            }
            Kind::ResolveTransaction { id, commit, is_unsafe } => {
                const TAG: &str = "RESOLVE TRANSACTION";
                self.must_control_jobs("resolve transactions")?;
                self.refuse_in_block(TAG)?;
                self.commit_block().await?;
                for line in self.env.resolve_transaction(id, *commit, *is_unsafe).await? {
                    self.notice(out, "NOTICE", "00000", line);
                }
                log_event(statement, &self.eval, TAG);
                out.command_complete(TAG);
            }
            Kind::Vacuum { of, analyzes } => {
                self.refuse_in_block("VACUUM")?;
                // Old versions are collected without being asked.
                match analyzes {
                    true => Box::pin(self.run_analyze(of, "vacuum", out)).await?,
                    false => {
                        self.catch_up().await?;
                        self.to_analyze(of, "vacuum", out)?;
                    }
                }
                out.command_complete("VACUUM");
            }
            Kind::Analyze(what) => {
                Box::pin(self.run_analyze(what, "analyze", out)).await?;
                out.command_complete("ANALYZE");
            }
            Kind::Maintenance { tag, of } => {
                self.may_maintain(tag, of)?;
                self.notice(out, "NOTICE", "00000", format!("{tag} has nothing to do: indexes and files are kept in order"));
                out.command_complete(tag);
            }
            Kind::Unsupported(what) => return Err(Error::unsupported(format!("{what} is not supported"))),
            Kind::Empty => out.empty_query(),
            Kind::CreateTable { table, locality, .. } => {
                return Box::pin(self.create_table_as(statement, table, locality.as_ref(), now, out)).await;
            }
            _ => return Err(Error::unsupported("this statement is not supported yet")),
        }
        Ok(())
    }
    async fn run_control_ast(
        &mut self,
        statement: &Arc<Statement>,
        sql: &ast::Statement,
        manner: Manner<'_>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        use ast::Statement as S;
        let tag = match sql {
            S::Commit { chain, .. } => self.commit(*chain, out).await?,
            S::Rollback { chain, savepoint: None } => {
                self.rollback(*chain, out).await?;
                "ROLLBACK"
            }
            S::Rollback { savepoint: Some(name), .. } => {
                self.rollback_to(&fold(name))?;
                "ROLLBACK"
            }
            S::Savepoint { name } => {
                self.savepoint(&fold(name))?;
                "SAVEPOINT"
            }
            S::ReleaseSavepoint { name } => {
                self.release(&fold(name))?;
                "RELEASE"
            }
            S::Set(set) => {
                self.set_with_others(manner, now);
                self.run_set(set, out)?;
                "SET"
            }
            S::Reset(reset) => {
                self.set_with_others(manner, now);
                match &reset.reset {
                    Reset::ALL => self.system.settings().reset_all(),
                    Reset::SessionAuthorization => self.set_session_authorization(None, false)?,
                    Reset::ConfigurationParameter(name) => match setting_name(name).as_str() {
                        "role" => self.set_role(None, false)?,
                        "session_authorization" => self.set_session_authorization(None, false)?,
                        name => self.set(name, None, false)?,
                    },
                }
                "RESET"
            }
            S::ShowVariable { variable } => return self.show_setting(variable, manner, out),
            S::Discard { object_type } => self.discard(object_type)?,
            S::Prepare { name, data_types, statement: inner } => {
                self.side_effects += 1;
                Box::pin(self.prepare_named(&fold(name), data_types, statement.inner((**inner).clone()))).await?;
                "PREPARE"
            }
            S::Execute { name: Some(name), parameters, .. } => {
                return Box::pin(self.execute_named(&setting_name(name), parameters, manner, now, out)).await;
            }
            S::Deallocate { name, .. } => {
                self.side_effects += 1;
                self.deallocate(name)?
            }
            S::Declare { stmts } => {
                self.side_effects += 1;
                self.declare_cursors(statement, stmts)?;
                "DECLARE CURSOR"
            }
            S::Close { cursor } => {
                self.side_effects += 1;
                self.close_cursor(cursor)?;
                "CLOSE CURSOR"
            }
            S::Copy { source, to, target, options, legacy_options, values: _ } => {
                let copy = super::copy::Copy::new(source, *to, target, options, legacy_options)?;
                return Box::pin(self.run_copy(statement, copy, manner.is_whole, now, out)).await;
            }
            S::LISTEN { .. } | S::NOTIFY { .. } => {
                return Err(Error::unsupported("LISTEN and NOTIFY are not supported")
                    .hint("Sessions of different nodes do not share notification queues."));
            }
            S::UNLISTEN { .. } => "UNLISTEN",
            S::Lock(_) => {
                return Err(Error::unsupported("LOCK TABLE is not supported")
                    .hint("Transactions are serializable without table locks; SELECT … FOR UPDATE locks rows."));
            }
            _ => return Err(Error::unsupported("this statement is not supported yet")),
        };
        out.command_complete(tag);
        Ok(())
    }

    /// A setting that is made beside other statements belongs to their implicit transaction: it
    /// ends with that if one of them fails.
    fn set_with_others(&mut self, manner: Manner<'_>, now: u64) {
        if !manner.is_whole {
            self.block(now);
        }
    }
    /// Sets one setting; `None` for its default.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let mut settings = self.system.settings();
        settings.set(name, value, local)?;
        // Outside a block a setting is committed as soon as it is made.
        if self.block.is_none() {
            settings.commit();
        }
        Ok(())
    }
    /// Whether `SET LOCAL` would end at once; the client is told.
    fn is_without_block(&self, out: &mut dyn Output) -> bool {
        let is_without = self.block.is_none();
        if is_without {
            self.notice(out, "WARNING", "25P01", "SET LOCAL can only be used in transaction blocks");
        }
        is_without
    }
    fn run_set(&mut self, set: &Set, out: &mut dyn Output) -> Result<()> {
        match set {
            Set::SingleAssignment { scope, variable, values, .. } => {
                let local = matches!(scope, Some(ContextModifier::Local));
                let name = setting_name(variable);
                if let Some(modes) = transaction_mode(&name, values)? {
                    return self.set_transaction(&modes, out);
                }
                if local && self.is_without_block(out) {
                    return Ok(());
                }
                let is_list = name.eq_ignore_ascii_case("search_path");
                let value = setting_value(values, is_list)?;
                match name.as_str() {
                    "role" => return self.set_role(value.as_deref().filter(|v| *v != "none"), local),
                    "session_authorization" => return self.set_session_authorization(value.as_deref(), local),
                    _ => {}
                }
                self.set(&name, value.as_deref(), local)?;
                if let Some(value) = value
                    && let Some(inert) = settings::definition(&name.to_ascii_lowercase()).filter(|d| d.is_inert)
                    && !value.eq_ignore_ascii_case(inert.default)
                {
                    let message = format!("setting \"{}\" has no effect. {}", inert.name, inert.description);
                    self.notice(out, "NOTICE", "01000", message);
                }
                Ok(())
            }
            Set::SetTimeZone { local, value } => self.set("TimeZone", time_zone(value)?.as_deref(), *local),
            Set::SetNames { charset_name, .. } => self.set("client_encoding", Some(&charset_name.value), false),
            Set::SetNamesDefault {} => self.set("client_encoding", None, false),
            Set::SetRole { role_name, context_modifier } => {
                let is_local = matches!(context_modifier, Some(ContextModifier::Local));
                if is_local && self.is_without_block(out) {
                    return Ok(());
                }
                let name = role_name.as_ref().map(fold).filter(|name| name != "none");
                self.set_role(name.as_deref(), is_local)
            }
            Set::SetSessionAuthorization(param) => {
                let is_local = matches!(param.scope, ContextModifier::Local);
                if is_local && self.is_without_block(out) {
                    return Ok(());
                }
                match &param.kind {
                    ast::SetSessionAuthorizationParamKind::User(user) => {
                        self.set_session_authorization(Some(&fold(user)), is_local)
                    }
                    ast::SetSessionAuthorizationParamKind::Default => self.set_session_authorization(None, is_local),
                }
            }
            _ => Err(Error::sql("42601", "syntax error in SET")),
        }
    }
    fn show_setting(&mut self, variable: &[ast::Ident], manner: Manner<'_>, out: &mut dyn Output) -> Result<()> {
        let name = shown_name(variable);
        let read_only = || self.block.as_ref().map(|b| b.read_only);
        let on_off = |b: bool| if b { "on" } else { "off" }.to_string();
        let (column, value) = match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" => ("transaction_isolation".to_string(), "serializable".to_string()),
            "transaction_read_only" => {
                let default = self.setting(|v| v.default_read_only);
                ("transaction_read_only".to_string(), on_off(read_only().unwrap_or(default)))
            }
            "transaction_deferrable" => ("transaction_deferrable".to_string(), on_off(false)),
            "hba_rules" => ("hba_rules".to_string(), self.login_setting("hba_rules")?),
            "ident_maps" => ("ident_maps".to_string(), self.login_setting("ident_maps")?),
            _ => {
                let settings = self.system.settings();
                (settings.display_name(&name), settings.show(&name)?)
            }
        };
        self.send_rows(&[(&column, Type::Text)], vec![vec![Datum::text(value)]], "SHOW", manner, out);
        Ok(())
    }
    /// The rules of login, which PostgreSQL has in files that not everybody may see.
    fn login_setting(&mut self, name: &str) -> Result<String> {
        let who = self.authority();
        if !who.has(READ_ALL_SETTINGS) {
            let message = format!("must be superuser or have privileges of pg_read_all_settings to examine \"{name}\"");
            return Err(Error::sql("42501", message));
        }
        let catalog = self.catalog();
        Ok(if name == "hba_rules" { catalog.hba_rules() } else { catalog.ident_maps() }.trim_end().to_string())
    }
    /// A `SHOW` statement about what exists and what happens; settings by name are
    /// [`Session::show_setting`]'s.
    async fn show(&mut self, show: &Show, manner: Manner<'_>, out: &mut dyn Output) -> Result<()> {
        let catalog = self.catalog();
        let context = StatementSystem { env: &self.env, system: &*self.system, catalog: &catalog, names: &self.names };
        let rows = interruptible(&self.cancel, show.rows(&context)).await?;
        let tag = match show {
            Show::Settings => "SHOW".to_string(),
            _ => format!("SHOW {}", rows.len()),
        };
        self.send_rows(&show.columns(), rows, &tag, manner, out);
        Ok(())
    }
    /// Sends rows that are in memory.
    pub(super) fn send_rows(
        &self,
        columns: &[(&str, Type)],
        rows: Vec<Vec<Datum>>,
        tag: &str,
        manner: Manner<'_>,
        out: &mut dyn Output,
    ) {
        if manner.describes {
            out.row_description(&output_columns(columns), manner.formats);
        }
        for row in rows {
            let buffer = out.begin_row(row.len());
            for (i, (datum, (_, ty))) in row.iter().zip(columns).enumerate() {
                datum.write_field(ty, manner.formats.of(i), &self.eval, buffer);
            }
            out.end_row();
        }
        out.command_complete(tag);
    }
    /// The columns of a statement's result that is known without planning; empty if it returns
    /// none.
    pub(super) fn control_columns(&self, kind: &Kind) -> Vec<OutputColumn> {
        if let Some(show) = Show::of(kind) {
            return output_columns(&show.columns());
        }
        match kind {
            Kind::Fetch(fetch) if !fetch.is_move => self.cursor_columns(&fetch.cursor),
            Kind::Sql(sql) => match &**sql {
                ast::Statement::ShowVariable { variable } => {
                    let name = self.system.settings().display_name(&shown_name(variable));
                    output_columns(&[(&name, Type::Text)])
                }
                ast::Statement::Execute { name: Some(name), .. } => self.named_columns(&setting_name(name)),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn discard(&mut self, what: &DiscardObject) -> Result<&'static str> {
        self.side_effects += 1;
        Ok(match what {
            DiscardObject::ALL => {
                self.refuse_in_block("DISCARD ALL")?;
                self.portals.clear();
                self.statements.clear();
                self.system.settings().reset_all();
                self.sequences.forget();
                self.set_session_authorization(None, false)?;
                "DISCARD ALL"
            }
            DiscardObject::PLANS => "DISCARD PLANS",
            DiscardObject::SEQUENCES => {
                self.sequences.forget();
                "DISCARD SEQUENCES"
            }
            DiscardObject::TEMP => "DISCARD TEMP",
        })
    }
}

fn output_columns(columns: &[(&str, Type)]) -> Vec<OutputColumn> {
    columns.iter().map(|(name, ty)| OutputColumn { name: name.to_string(), ty: ty.clone(), origin: None }).collect()
}

/// The name of a setting as it was written: settings are found whatever their case.
fn setting_name(name: &ast::ObjectName) -> String {
    let parts: Vec<String> = name.0.iter().filter_map(|p| p.as_ident()).map(fold).collect();
    parts.join(".")
}

/// `SHOW`'s name, with the names that are several words.
fn shown_name(variable: &[ast::Ident]) -> String {
    let words: Vec<String> = variable.iter().map(fold).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["time", "zone"] => "TimeZone".to_string(),
        ["transaction", "isolation", "level"] => "transaction_isolation".to_string(),
        ["session", "authorization"] => "session_authorization".to_string(),
        _ => words.join("."),
    }
}

/// The value of `SET`; `None` is `DEFAULT`.
fn setting_value(values: &[Expr], is_list: bool) -> Result<Option<String>> {
    if let [Expr::Identifier(word)] = values
        && word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case("default")
    {
        return Ok(None);
    }
    let texts: Vec<String> = values.iter().map(|v| one_value(v, is_list)).collect::<Result<_>>()?;
    Ok(Some(texts.join(", ")))
}

fn one_value(value: &Expr, is_list: bool) -> Result<String> {
    let quoted = |text: &str| match is_list {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    };
    match value {
        Expr::Identifier(word) if word.quote_style.is_some() => Ok(quoted(&word.value)),
        Expr::Identifier(word) => Ok(word.value.to_lowercase()),
        Expr::Value(v) => Ok(match &v.value {
            Value::Number(n, _) => n.clone(),
            Value::Boolean(b) => b.to_string(),
            Value::SingleQuotedString(s) | Value::EscapedStringLiteral(s) | Value::DoubleQuotedString(s) => {
                // An empty string as search_path means an empty path.
                if is_list && s.is_empty() { String::new() } else { quoted(s) }
            }
            _ => return Err(Error::sql("42601", "syntax error in the value of SET")),
        }),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(format!("-{}", one_value(expr, false)?)),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => one_value(expr, false),
        other => Ok(other.to_string()),
    }
}

/// `SET transaction_isolation = …` and its relatives are `SET TRANSACTION`.
fn transaction_mode(name: &str, values: &[Expr]) -> Result<Option<TransactionModes>> {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if !(is("transaction_isolation") || is("transaction_read_only") || is("transaction_deferrable")) {
        return Ok(None);
    }
    let value = setting_value(values, false)?.unwrap_or_default();
    let invalid = || Error::sql("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
    if is("transaction_isolation") {
        const LEVELS: [&str; 4] = ["serializable", "repeatable read", "read committed", "read uncommitted"];
        let level = LEVELS.into_iter().find(|l| l.eq_ignore_ascii_case(&value)).ok_or_else(invalid)?;
        return Ok(Some(TransactionModes { isolation: Some(level), ..Default::default() }));
    }
    let on = super::settings::parse_bool(&value).ok_or_else(invalid)?;
    Ok(Some(match is("transaction_read_only") {
        true => TransactionModes { read_only: Some(on), ..Default::default() },
        false => TransactionModes { deferrable: Some(on), ..Default::default() },
    }))
}

/// The value of `SET TIME ZONE`; `None` is `LOCAL` or `DEFAULT`.
fn time_zone(value: &Expr) -> Result<Option<String>> {
    match value {
        Expr::Identifier(word) if word.value.eq_ignore_ascii_case("local") => Ok(None),
        Expr::Interval(interval) => zone_of_interval(interval).map(Some),
        value => setting_value(std::slice::from_ref(value), false),
    }
}

/// The zone that is so far east of Greenwich.
fn zone_of_interval(interval: &ast::Interval) -> Result<String> {
    let mut text = one_value(&interval.value, false)?;
    if let (Some(unit), Ok(_)) = (&interval.leading_field, text.trim().parse::<f64>()) {
        text = format!("{} {}", text.trim(), unit.to_string().to_lowercase());
    }
    let refused = |what: &str| {
        Err(Error::sql("22023", format!("invalid value for parameter \"TimeZone\": \"INTERVAL '{text}'\""))
            .detail(format!("Cannot specify {what} in time zone interval.")))
    };
    match Datum::from_text(&text, &Type::Interval, &EvalContext::default())? {
        Datum::Interval(i) if i.months != 0 => refused("months"),
        Datum::Interval(i) if i.days != 0 => refused("days"),
        Datum::Interval(i) => Ok(Zone::fixed((i.micros / 1_000_000) as i32).name().to_string()),
        _ => Err(Error::internal("an interval was read as something else")),
    }
}
