//! `COPY … FROM STDIN` and `COPY … TO STDOUT`.

use super::copy_format::{CopyFormat, CopyKind, Decoder, Encoder, Field};
use super::load::Loaded;
use super::output::{CopyInput, Output};
use super::run::{HELD_BYTES_MAX, check_round_trips, confirmed, interruptible, too_much_held};
use super::system::StatementSystem;
use super::{Format, Formats, Session};
use crate::catalog::names::Name;
use crate::catalog::relation::TableRef;
use crate::env::{Environment, Transaction};
use crate::exec::{self, RowSink};
use crate::parse::ast::{self, CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget};
use crate::parse::fold;
use crate::parse::{Statement, parse_one_statement};
use crate::plan::{self, PlanContext, Prepared};
use crate::shared::Company;
use crate::types::{Datum, EvalContext, RowView, Type};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{FuturesUnordered, StreamExt};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result, limits, migration};
use std::sync::Arc;
use std::task::Poll;

/// Rows are inserted in batches of so many, or of so many bytes.
const BATCH_ROWS: usize = 1_000;
const BATCH_BYTES: usize = 512 << 10;

/// A `COPY` statement, understood.
pub(super) struct Copy<'a> {
    source: &'a CopySource,
    is_to: bool,
    is_frozen: bool,
    format: CopyFormat,
}

impl<'a> Copy<'a> {
    pub fn new(
        source: &'a CopySource,
        is_to: bool,
        target: &CopyTarget,
        options: &[CopyOption],
        legacy: &[CopyLegacyOption],
    ) -> Result<Copy<'a>> {
        match (target, is_to) {
            (CopyTarget::Stdin, false) | (CopyTarget::Stdout, true) => {}
            (CopyTarget::File { .. } | CopyTarget::Program { .. }, _) => {
                return Err(Error::sql("42501", "COPY to or from a file or program of the server is not allowed")
                    .hint("Use COPY … FROM STDIN or TO STDOUT; psql's \\copy command works for anyone."));
            }
            _ => return Err(Error::sql("42601", "COPY FROM needs STDIN, COPY TO needs STDOUT")),
        }
        let format = read_options(options, legacy)?;
        let lists = [
            ("quote", !format.force_quote.is_empty(), true),
            ("not null", !format.force_not_null.is_empty(), false),
            ("null", !format.force_null.is_empty(), false),
        ];
        for (name, _, of_to) in lists.into_iter().filter(|(_, is_said, _)| *is_said) {
            if format.kind != CopyKind::Csv {
                return Err(Error::unsupported(format!("COPY force {name} available only in CSV mode")));
            }
            if of_to != is_to {
                let direction = if of_to { "TO" } else { "FROM" };
                return Err(Error::unsupported(format!("COPY force {name} only available using COPY {direction}")));
            }
        }
        let is_frozen = options.iter().any(|o| matches!(o, CopyOption::Freeze(true)));
        Ok(Copy { source, is_to, is_frozen, format })
    }
}

fn read_options(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyFormat> {
    let mut kind = CopyKind::Text;
    let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
    let mut header = false;
    let (mut force_quote, mut force_not_null, mut force_null) = (Vec::new(), Vec::new(), Vec::new());
    let names = |idents: &[ast::Ident]| -> Vec<String> { idents.iter().map(fold).collect() };
    for option in options {
        match option {
            CopyOption::Format(name) => {
                kind = match fold(name).as_str() {
                    "text" => CopyKind::Text,
                    "csv" => CopyKind::Csv,
                    "binary" => CopyKind::Binary,
                    other => return Err(Error::sql("22023", format!("COPY format \"{other}\" not recognized"))),
                }
            }
            CopyOption::Freeze(_) => {}
            CopyOption::Delimiter(c) => delimiter = Some(*c),
            CopyOption::Null(s) => null = Some(s.clone()),
            CopyOption::Header(on) => header = *on,
            CopyOption::Quote(c) => quote = Some(*c),
            CopyOption::Escape(c) => escape = Some(*c),
            CopyOption::ForceQuote(columns) => force_quote = names(columns),
            CopyOption::ForceNotNull(columns) => force_not_null = names(columns),
            CopyOption::ForceNull(columns) => force_null = names(columns),
            CopyOption::Encoding(name) if ["utf8", "utf-8", "unicode"].contains(&name.to_ascii_lowercase().as_str()) => {}
            CopyOption::Encoding(name) => {
                return Err(Error::unsupported(format!("COPY with encoding \"{name}\" is not supported")));
            }
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Binary => kind = CopyKind::Binary,
            CopyLegacyOption::Delimiter(c) => delimiter = Some(*c),
            CopyLegacyOption::Null(s) => null = Some(s.clone()),
            CopyLegacyOption::Header => header = true,
            CopyLegacyOption::Csv(csv) => {
                kind = CopyKind::Csv;
                for option in csv {
                    match option {
                        CopyLegacyCsvOption::Header => header = true,
                        CopyLegacyCsvOption::Quote(c) => quote = Some(*c),
                        CopyLegacyCsvOption::Escape(c) => escape = Some(*c),
                        CopyLegacyCsvOption::ForceQuote(columns) => force_quote = names(columns),
                        CopyLegacyCsvOption::ForceNotNull(columns) => force_not_null = names(columns),
                    }
                }
            }
            other => return Err(Error::unsupported(format!("COPY option {other} is not supported"))),
        }
    }
    let is_csv = kind == CopyKind::Csv;
    let byte = |what: &str, c: char| match u8::try_from(c) {
        Ok(b) if b.is_ascii() && b != b'\n' && b != b'\r' => Ok(b),
        _ => Err(Error::unsupported(format!("COPY {what} must be a single one-byte character"))),
    };
    if !is_csv && (quote.is_some() || escape.is_some()) {
        return Err(Error::unsupported("COPY quote and escape are available only in CSV mode"));
    }
    if kind == CopyKind::Binary && (delimiter.is_some() || null.is_some() || header) {
        return Err(Error::sql("42601", "cannot specify DELIMITER, NULL or HEADER in BINARY mode"));
    }
    let quote = byte("quote", quote.unwrap_or('"'))?;
    let format = CopyFormat {
        kind,
        delimiter: byte("delimiter", delimiter.unwrap_or(if is_csv { ',' } else { '\t' }))?,
        null: null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_string() }),
        header,
        quote,
        escape: escape.map_or(Ok(quote), |c| byte("escape", c))?,
        force_quote,
        force_not_null,
        force_null,
    };
    if !is_csv
        && (format.delimiter.is_ascii_lowercase() || format.delimiter.is_ascii_digit() || b"\\.".contains(&format.delimiter))
    {
        return Err(Error::sql("22023", format!("COPY delimiter cannot be \"{}\"", format.delimiter as char)));
    }
    if format.null.as_bytes().contains(&format.delimiter) {
        return Err(Error::unsupported("COPY delimiter must not appear in the NULL specification"));
    }
    if is_csv && format.null.as_bytes().contains(&format.quote) {
        return Err(Error::unsupported("CSV quote character must not appear in the NULL specification"));
    }
    if is_csv && format.delimiter == format.quote {
        return Err(Error::sql("22023", "COPY delimiter and quote must be different"));
    }
    Ok(format)
}

impl<E: Environment> Session<E> {
    pub(super) async fn run_copy(
        &mut self,
        statement: &Statement,
        copy: Copy<'_>,
        is_whole: bool,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        let rows = match copy.is_to {
            true => self.copy_to(statement, copy, is_whole, now, out).await?,
            false => {
                if copy.is_frozen {
                    let message = "COPY FREEZE is ignored: rows are visible when their transaction commits";
                    self.notice(out, "NOTICE", "01000", message);
                }
                // Data that was read cannot be read again.
                self.side_effects += 1;
                self.copy_from(statement, copy, now, out).await?
            }
        };
        out.command_complete(&format!("COPY {rows}"));
        Ok(())
    }

    async fn copy_to(
        &mut self,
        statement: &Statement,
        copy: Copy<'_>,
        is_whole: bool,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<u64> {
        let block = self.block(now);
        let is_whole = is_whole && !block.explicit && block.statements == 0;
        self.read_as_of(statement, now).await?;
        let query = match copy.source {
            CopySource::Query(query) => statement.inner(ast::Statement::Query(query.clone())),
            CopySource::Table { table_name, columns } => {
                let columns = self.copied_columns(table_name, columns)?;
                parse_one_statement(&format!("SELECT {columns} FROM {table_name}"))?
            }
        };
        let mut catalog = self.catalog();
        let mut prepared = Arc::new(self.prepare(&query, &catalog, &[])?);
        if !self.admit(&prepared).await? {
            catalog = self.catalog();
            prepared = Arc::new(self.prepare(&query, &catalog, &[])?);
        }
        if matches!(copy.source, CopySource::Query(query) if changes_rows(query)) && prepared.columns.is_empty() {
            return Err(Error::unsupported("COPY query must have a RETURNING clause"));
        }
        let names: Vec<String> = prepared.columns.iter().map(|c| c.name.clone()).collect();
        self.refuse_unused(copy.source, "FORCE_QUOTE", &copy.format.force_quote, &names)?;
        let format = if copy.format.kind == CopyKind::Binary { Format::Binary } else { Format::Text };
        out.copy_out(format, names.len());
        let mut encoder = Encoder::new(copy.format, names);
        encoder.start();
        if format == Format::Text && !encoder.out.is_empty() {
            out.copy_data(&encoder.out);
            encoder.out.clear();
        }
        let formats = if format == Format::Binary { Formats::AllBinary } else { Formats::AllText };
        let read_only = is_whole && prepared.read_only;
        // What is read in one group, at its primary, is certified as it is read, and lines are sent
        // meanwhile.
        let is_certified = read_only && (prepared.groups.len() <= 1 || !self.env.is_far(&prepared.groups));
        let block = self.block(now);
        let is_speculative = !block.explicit && block.past.is_none() && !is_certified;
        let mut lines = Lines { out, encoder, formats, eval: self.eval.clone(), scratch: BytesMut::new(), is_speculative };
        let rows = self.run_to(&prepared, read_only, now, &mut lines).await?;
        let Lines { out, mut encoder, .. } = lines;
        encoder.finish();
        if !encoder.out.is_empty() {
            out.copy_data(&encoder.out);
        }
        out.copy_done();
        Ok(rows)
    }
    /// What `COPY table TO` selects: the columns it names, or all but those that are computed from
    /// others.
    fn copied_columns(&mut self, table_name: &ast::ObjectName, columns: &[ast::Ident]) -> Result<String> {
        let catalog = self.catalog();
        let name = Name::from_ast(table_name)?;
        let Ok(table) = catalog.table(&self.names, &name) else {
            // A view has none; what is neither is refused by the query.
            let names: Vec<String> = columns.iter().map(|c| c.to_string()).collect();
            return Ok(if names.is_empty() { "*".to_string() } else { names.join(", ") });
        };
        let is_generated = |c: &&ast::Ident| {
            let found = table.column(&fold(c));
            found.is_some_and(|(_, c)| c.generated.is_some())
        };
        if let Some(column) = columns.iter().find(is_generated) {
            return Err(generated_in_copy(&fold(column)));
        }
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let names: Vec<String> = match columns.is_empty() {
            true => (table.public_columns().filter(|(_, c)| c.generated.is_none() && !c.is_hidden))
                .map(|(_, c)| quoted(&c.name))
                .collect(),
            false => columns.iter().map(|c| c.to_string()).collect(),
        };
        Ok(names.join(", "))
    }
    /// 42P10 if an option names a column that is not copied, 42703 if there is none of that name.
    fn refuse_unused(&mut self, source: &CopySource, option: &str, named: &[String], copied: &[String]) -> Result<()> {
        let Some(column) = named.iter().find(|n| *n != "*" && !copied.contains(n)) else { return Ok(()) };
        let catalog = self.catalog();
        let table = match source {
            CopySource::Table { table_name, .. } => {
                Name::from_ast(table_name).and_then(|name| catalog.table(&self.names, &name)).ok()
            }
            CopySource::Query(_) => None,
        };
        match table {
            Some(table) if table.column(column).is_some() => {
                Err(Error::sql("42P10", format!("{option} column \"{column}\" not referenced by COPY")))
            }
            Some(table) => Err(Error::sql("42703", format!("column \"{column}\" of relation \"{}\" does not exist", table.name))),
            None => Err(Error::sql("42703", format!("column \"{column}\" does not exist"))),
        }
    }
    /// Runs a query whose rows go out as lines.
    async fn run_to(&mut self, prepared: &Arc<Prepared>, read_only: bool, now: u64, sink: &mut Lines<'_>) -> Result<u64> {
        let catalog = self.catalog();
        self.eval.catalog = catalog.clone();
        let rests_on = self.check_privileges(prepared, &catalog)?;
        let is_alone = self.block(now).runs_ahead() && !prepared.groups.is_empty();
        let mut alone = is_alone.then(|| self.transaction_of_its_own(&catalog));
        let block = self.begun(read_only, sink.is_speculative);
        block.statements += 1;
        block.has_touched_rows |= !is_alone && !prepared.groups.is_empty();
        let system = StatementSystem { env: &self.env, system: &*self.system, catalog: &catalog, names: &self.names };
        let context = system.exec(&self.eval, self.cancel.button(), &self.sequences, self.exec_options());
        let round_trips_max = self.setting(|v| v.round_trips_max);
        let own = self.block.as_mut().and_then(|b| b.txn.as_mut()).expect("a transaction below");
        let txn = alone.as_mut().unwrap_or(own);
        txn.uses(&prepared.descriptors);
        txn.uses(&rests_on);
        let before = txn.round_trips().0;
        let affected = match interruptible(&self.cancel, exec::run(prepared, &[], txn, &context, sink)).await {
            Ok(affected) => affected,
            Err(e) => return Err(confirmed(e, txn).await),
        };
        check_round_trips(before, txn, round_trips_max)?;
        if let Some(txn) = alone {
            txn.commit().await?;
        }
        Ok(affected.rows)
    }

    async fn copy_from(&mut self, statement: &Statement, copy: Copy<'_>, now: u64, out: &mut dyn Output) -> Result<u64> {
        let CopySource::Table { table_name, columns } = copy.source else {
            return Err(Error::sql("42601", "COPY FROM needs a table"));
        };
        self.block(now);
        let may_load = self.may_load();
        self.refuse_if_read_only("COPY FROM")?;
        let name = Name::from_ast(table_name)?;
        let mut load = self.plan_load(&name, columns)?;
        if !self.admit(&load.prepared).await? {
            load = self.plan_load(&name, columns)?;
        }
        let catalog = self.catalog();
        self.check_privileges(&load.prepared, &catalog)?;
        // The invitation to send data sends what comes before it.
        if self.has_uncertified(out) {
            return Err(Error::unsupported("COPY FROM STDIN after other statements of an implicit transaction is not supported")
                .hint("Send it as a query of its own, or use a transaction block."));
        }
        self.refuse_unused(copy.source, "FORCE_NOT_NULL", &copy.format.force_not_null, &load.names)?;
        self.refuse_unused(copy.source, "FORCE_NULL", &copy.format.force_null, &load.names)?;
        let format = if copy.format.kind == CopyKind::Binary { Format::Binary } else { Format::Text };
        let decoder = Decoder::new(copy.format, &load.names);
        out.copy_in(format, load.names.len());
        let company = Company::new(&self.env, &self.shared);
        let mut loading = Loading { on_their_way: FuturesUnordered::new(), rows: 0, company, may_load, loaded: None };
        let changes = load.prepared.changes;
        let incoming = Incoming { statement, load, name: &name, columns, decoder, format };
        let outcome = self.load_rows(incoming, &mut loading, now, out).await;
        // What was sent to the log commits, whatever became of the rest.
        let committed = loading.commit_down_to(0).await;
        outcome.and(committed)?;
        if let Some(loaded) = &loading.loaded {
            self.end_load(loaded).await?;
        }
        if let Some(table) = changes {
            self.shared.changes.add(table, loading.rows);
        }
        Ok(loading.rows)
    }
    /// If the transaction has written much, and loads a table without rows, it goes on in new
    /// indexes of that table.
    async fn load_ahead(&mut self, incoming: &mut Incoming<'_>, loading: &mut Loading) -> Result<()> {
        let written = self.block.as_ref().and_then(|b| b.txn.as_ref());
        if !loading.may_load || !written.is_some_and(|txn| txn.nears_bound()) {
            return Ok(());
        }
        loading.may_load = false;
        let table = incoming.load.table.clone();
        let Some(loaded) = self.begin_load(&table, incoming.statement).await? else { return Ok(()) };
        let txn = self.block.as_mut().and_then(|b| b.txn.take());
        incoming.load = self.plan_load(incoming.name, incoming.columns)?;
        if !self.admit(&incoming.load.prepared).await? {
            incoming.load = self.plan_load(incoming.name, incoming.columns)?;
        }
        self.block.as_mut().expect("an open transaction").txn = txn;
        let most = loading.company.transactions_at_once(&self.env, &self.shared);
        let writes = self.take_loaded(&loaded)?;
        loading.loaded = Some(loaded);
        let catalog = self.catalog();
        let (mut open, mut bytes) = (None, 0);
        for (group, write) in writes {
            let txn = open.get_or_insert_with(|| self.transaction_of_its_own(&catalog));
            bytes += write.key.as_bytes().len() + write.value.as_ref().map_or(0, Bytes::len);
            txn.uses(&[table.id]);
            txn.write(group, write)?;
            if bytes > BATCH_BYTES {
                bytes = 0;
                loading.commit(open.take());
                interruptible(&self.cancel, loading.commit_down_to(most - 1)).await?;
            }
        }
        loading.commit(open);
        Ok(())
    }
    async fn load_rows(
        &mut self,
        mut incoming: Incoming<'_>,
        loading: &mut Loading,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        let mut batch = Batch::default();
        let (name, format) = (incoming.name, incoming.format);
        let in_line = |line: u64, e: Error| {
            let column = e.get_column().map(|column| format!(", column {column}")).unwrap_or_default();
            e.context(format!("COPY {name}, line {line}{column}"))
        };
        loop {
            let mut reading = out.read_copy();
            let input = loop {
                tokio::select! {
                    input = &mut reading => break input?,
                    Some(committed) = loading.on_their_way.next() => committed?,
                    error = self.cancel.interrupted() => return Err(error),
                }
            };
            drop(reading);
            let at_end = match input {
                CopyInput::Data(data) => {
                    incoming.decoder.push(&data);
                    false
                }
                CopyInput::Done => true,
                CopyInput::Fail(reason) => return Err(Error::sql("57014", format!("COPY from stdin failed: {reason}"))),
            };
            loop {
                let decoder = &mut incoming.decoder;
                let fields = decoder.row(at_end);
                let Some(fields) = fields.map_err(|e| in_line(decoder.line, e))? else { break };
                let row = incoming.load.row(&fields, format, &self.eval).map_err(|e| in_line(decoder.line, e))?;
                batch.bytes += fields.iter().flatten().map(|f| f.len() + 16).sum::<usize>();
                batch.rows.push(row);
                if batch.rows.len() >= BATCH_ROWS || batch.bytes >= BATCH_BYTES {
                    self.insert(&incoming.load, std::mem::take(&mut batch).rows, loading, now).await?;
                    self.load_ahead(&mut incoming, loading).await?;
                }
            }
            if at_end {
                return self.insert(&incoming.load, std::mem::take(&mut batch).rows, loading, now).await;
            }
        }
    }
    fn plan_load(&mut self, name: &Name, columns: &[ast::Ident]) -> Result<Load> {
        let catalog = self.catalog();
        let table = catalog.table(&self.names, name)?;
        let mut ordinals = Vec::new();
        if columns.is_empty() {
            ordinals.extend(table.public_columns().filter(|(_, c)| c.generated.is_none()).map(|(ordinal, _)| ordinal));
        }
        for column in columns {
            let column = fold(column);
            let missing = || Error::sql("42703", format!("column \"{column}\" of relation \"{}\" does not exist", table.name));
            let (ordinal, found) = table.column(&column).ok_or_else(missing)?;
            if found.generated.is_some() {
                return Err(generated_in_copy(&column));
            }
            if ordinals.contains(&ordinal) {
                return Err(Error::sql("42701", format!("column \"{column}\" specified more than once")));
            }
            ordinals.push(ordinal);
        }
        self.eval.catalog = catalog.clone();
        let context = PlanContext { catalog: &catalog, names: &self.names, eval: &self.eval };
        let prepared = Arc::new(plan::prepare_insert(&table, &ordinals, &context)?);
        Ok(Load::new(table, &ordinals, prepared))
    }
    async fn insert(&mut self, load: &Load, rows: Vec<Vec<Datum>>, loading: &mut Loading, now: u64) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if loading.rows > 0 {
            // More than a batch.
            migration::computes_long();
        }
        let most = loading.company.transactions_at_once(&self.env, &self.shared);
        loading.commit_down_to(most - 1).await?;
        let catalog = self.catalog();
        // Each batch is a statement of its own: what was revoked meanwhile counts.
        let rests_on = self.check_privileges(&load.prepared, &catalog)?;
        self.eval.catalog = catalog.clone();
        let is_alone = self.block(now).runs_ahead();
        let mut alone = is_alone.then(|| self.transaction_of_its_own(&catalog));
        let block = self.begun(false, false);
        block.statements += 1;
        block.has_touched_rows |= !is_alone;
        let system = StatementSystem { env: &self.env, system: &*self.system, catalog: &catalog, names: &self.names };
        let context = system.exec(&self.eval, self.cancel.button(), &self.sequences, self.exec_options());
        let own = self.block.as_mut().and_then(|b| b.txn.as_mut()).expect("a transaction below");
        let txn = alone.as_mut().unwrap_or(own);
        txn.uses(&load.prepared.descriptors);
        txn.uses(&rests_on);
        loading.rows += match interruptible(&self.cancel, exec::insert_rows(&load.prepared, rows, txn, &context)).await {
            Ok(inserted) => inserted,
            Err(e) => return Err(confirmed(e, txn).await),
        };
        if let Some(txn) = alone {
            loading.commit(Some(txn));
            // The commit is on its way before the next rows are read.
            if let Poll::Ready(Some(committed)) = futures::poll!(loading.on_their_way.next()) {
                committed?;
            }
        }
        Ok(())
    }
}

fn changes_rows(query: &ast::Query) -> bool {
    use ast::SetExpr::{Delete, Insert, Merge, Update};
    matches!(*query.body, Insert(_) | Update(_) | Delete(_) | Merge(_))
}

/// A `COPY … FROM` under way.
struct Loading {
    /// Commits of batches that are transactions of their own. They need not wait for each other.
    on_their_way: FuturesUnordered<BoxFuture<'static, Result<()>>>,
    /// Rows inserted.
    rows: u64,
    company: Company,
    /// It may go on ahead of its transaction, if its table has no rows.
    may_load: bool,
    /// It has done so.
    loaded: Option<Loaded>,
}

impl Loading {
    fn commit<T: Transaction>(&mut self, txn: Option<T>) {
        let committing =
            txn.map(|txn| -> BoxFuture<'static, Result<()>> { Box::pin(async move { txn.commit().await.map(drop) }) });
        self.on_their_way.extend(committing);
    }
    /// Waits until at most `most` commits are under way. After an error it still waits for the
    /// others.
    async fn commit_down_to(&mut self, most: usize) -> Result<()> {
        let mut outcome = Ok(());
        while self.on_their_way.len() > most {
            let committed = self.on_their_way.next().await.unwrap_or(Ok(()));
            outcome = outcome.and(committed);
        }
        outcome
    }
}

/// Rows read and not inserted yet.
#[derive(Default)]
struct Batch {
    rows: Vec<Vec<Datum>>,
    bytes: usize,
}

/// The data that a client sends for a table.
struct Incoming<'a> {
    statement: &'a Statement,
    load: Load,
    /// The table's, as the statement writes it.
    name: &'a Name,
    columns: &'a [ast::Ident],
    decoder: Decoder,
    format: Format,
}

/// A table being loaded.
struct Load {
    table: TableRef,
    names: Vec<String>,
    types: Vec<Type>,
    prepared: Arc<Prepared>,
}

fn generated_in_copy(column: &str) -> Error {
    Error::sql("42P10", format!("column \"{column}\" is a generated column")).detail("Generated columns cannot be used in COPY.")
}

impl Load {
    fn new(table: TableRef, ordinals: &[u32], prepared: Arc<Prepared>) -> Load {
        let columns = || ordinals.iter().map(|o| &table.columns[*o as usize]);
        let names = columns().map(|c| c.name.clone()).collect();
        let types = columns().map(|c| c.ty.clone()).collect();
        Load { table, names, types, prepared }
    }
    fn row(&self, fields: &[Field], format: Format, eval: &EvalContext) -> Result<Vec<Datum>> {
        let mut row = Vec::with_capacity(fields.len());
        for ((field, ty), name) in fields.iter().zip(&self.types).zip(&self.names) {
            let datum = match field {
                None => Ok(Datum::Null),
                Some(bytes) if format == Format::Binary && *ty != Type::Region => Datum::from_binary(bytes, ty),
                Some(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) if !text.contains('\0') => Datum::from_text(text, ty, eval),
                    _ => Err(Error::sql("22021", "invalid byte sequence for encoding \"UTF8\"")),
                },
            };
            row.push(datum.map_err(|e| e.column(name.clone()))?);
        }
        Ok(row)
    }
}

/// Rows as lines of `COPY … TO`.
struct Lines<'a> {
    out: &'a mut dyn Output,
    encoder: Encoder,
    formats: Formats,
    eval: EvalContext,
    scratch: BytesMut,
    /// They are held back until the transaction has committed.
    is_speculative: bool,
}

impl Lines<'_> {
    /// Writes the fields of the scratch buffer as a line.
    fn line(&mut self, fields: usize) {
        self.encoder.begin_row(fields);
        let mut rest = &self.scratch[..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (field, after) = match length {
                Some(length) => (Some(&after[..length]), &after[length..]),
                None => (None, after),
            };
            self.encoder.field(field);
            rest = after;
        }
        self.encoder.end_row();
        self.out.copy_data(&self.encoder.out);
        self.encoder.out.clear();
    }
}

impl RowSink for Lines<'_> {
    fn row(&mut self, row: &[Datum], types: &[Type]) -> Result<()> {
        self.scratch.clear();
        for (i, (datum, ty)) in row.iter().zip(types).enumerate() {
            match datum {
                Datum::Null => self.scratch.put_i32(-1),
                datum => datum.write_field(ty, self.formats.of(i), &self.eval, &mut self.scratch),
            }
        }
        self.line(row.len());
        Ok(())
    }
    fn stored(&mut self, row: &RowView, fields: &[(u32, Type)]) -> Result<()> {
        self.scratch.clear();
        for (i, (ordinal, ty)) in fields.iter().enumerate() {
            row.write_field(*ordinal as usize, ty, self.formats.of(i), &self.eval, &mut self.scratch)?;
        }
        self.line(fields.len());
        Ok(())
    }
    fn is_full(&self) -> bool {
        self.out.buffered() > if self.is_speculative { HELD_BYTES_MAX } else { limits::RESULT_BUFFER_BYTES }
    }
    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        if self.is_speculative {
            return Box::pin(async { Err(too_much_held()) });
        }
        self.out.flush()
    }
}
