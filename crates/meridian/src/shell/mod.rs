//! The SQL shell: statements and backslash commands in, tables out.
//!
//! It follows psql where both have something, so that hands and scripts need not learn anew; `\?`
//! says what it knows.
//!
//! * [`target`]: what a URL means.
//! * [`wire`]: the protocol.
//! * [`split`]: where a statement ends.
//! * [`input`]: a terminal or a pipe.
//! * [`table`]: results as text.
//! * [`commands`]: backslash commands.
//! * [`describe`]: `\d` and its family.
//!
//! A pipe is a script: it stops at the first error, and its exit status says whether every
//! statement succeeded. `\set ON_ERROR_STOP off` changes that; somebody who types is not stopped.

mod commands;
mod describe;
mod input;
pub mod secure;
mod split;
mod table;
pub mod target;
pub mod wire;

use input::{Input, Line};
use meridian_base::{Error, Result};
use split::{Piece, Splitter};
use std::io::Write;
use table::Layout;
use target::Target;
use tokio::time::Instant;
use wire::{Block, Column, Connection, Event, Report};

/// A command that whoever runs the shell adds to it.
pub struct Extra {
    /// Without the backslash.
    pub name: &'static str,
    pub help: &'static str,
    /// What it prints.
    pub run: Box<dyn Fn() -> String + Send + Sync>,
}

/// How a shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every statement succeeded, or errors were asked to be no matter.
    Well,
    /// A statement failed.
    Failed,
    /// There is no server (any more).
    Disconnected,
}

impl Ended {
    /// 0, 1 or, as psql has it, 2 for a lost connection.
    pub fn exit_status(self) -> u8 {
        match self {
            Ended::Well => 0,
            Ended::Failed => 1,
            Ended::Disconnected => 2,
        }
    }
}

/// Whether there is a next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    Leave(Ended),
}

/// One shell.
pub struct Shell {
    target: Target,
    /// `None` after it was lost.
    connection: Option<Connection>,
    splitter: Splitter,
    layout: Layout,
    timing: bool,
    stop_at_errors: bool,
    verbose: bool,
    extras: Vec<Extra>,
    /// Errors while `stop_at_errors` was off are no matter.
    is_interactive: bool,
    /// Files that `\i` is reading, so that one that reads itself ends.
    depth: u32,
}

const INCLUDE_DEPTH_MAX: u32 = 16;

/// The command that a line means which is a word without a backslash, as in psql.
fn bare_command(line: &str) -> Option<&'static str> {
    let word = line.trim().trim_end_matches(';').trim_end();
    [("help", "help"), ("quit", "quit"), ("exit", "quit")].into_iter().find(|(w, _)| word.eq_ignore_ascii_case(w)).map(|(_, c)| c)
}

impl Shell {
    /// Connects.
    pub async fn connect(target: Target, extras: Vec<Extra>) -> Result<Shell> {
        let connection = Connection::open(&target).await?;
        Ok(Shell {
            target,
            connection: Some(connection),
            splitter: Splitter::default(),
            layout: Layout::Aligned,
            timing: false,
            stop_at_errors: true,
            verbose: false,
            extras,
            is_interactive: false,
            depth: 0,
        })
    }

    /// Runs the texts of `-c`: each is one message, so that several statements in one are one
    /// transaction, as in psql.
    pub async fn run_texts(mut self, texts: &[String]) -> Ended {
        for text in texts {
            let flow = match text.trim_start().strip_prefix('\\') {
                Some(command) => self.command(command.trim()).await,
                None => self.statement(text).await,
            };
            if let Flow::Leave(ended) = flow {
                return ended;
            }
        }
        self.close().await
    }

    /// Runs a file.
    pub async fn run_file(mut self, path: &str) -> Ended {
        match self.include(path).await {
            Flow::Leave(ended) => ended,
            Flow::GoOn => self.close().await,
        }
    }

    /// Runs what is typed or piped.
    pub async fn run_stdin(mut self) -> Ended {
        let input = Input::stdin();
        self.is_interactive = input.is_interactive();
        self.stop_at_errors = !self.is_interactive;
        if self.is_interactive {
            say!("{}\nType \\? for help, \\q to leave.\n", self.greeting());
        }
        let mut was_interrupted = false;
        loop {
            let prompt = self.prompt();
            match input.line(&prompt).await {
                Line::Text(text) => {
                    was_interrupted = false;
                    if let Flow::Leave(ended) = self.typed(&text, &input).await {
                        return ended;
                    }
                }
                Line::Interrupted if self.splitter.is_empty() && was_interrupted => break,
                Line::Interrupted => {
                    was_interrupted = self.splitter.is_empty();
                    if was_interrupted {
                        say!("Ctrl-C again, Ctrl-D or \\q leaves.");
                    }
                    self.splitter.reset();
                }
                Line::End => break,
                Line::Failed(why) => {
                    complain(&format!("cannot read: {why}\n"));
                    return Ended::Failed;
                }
            }
        }
        if let Some(sql) = self.splitter.finish().filter(|_| !self.is_interactive)
            && let Flow::Leave(ended) = self.statement(&sql).await
        {
            return ended;
        }
        self.close().await
    }

    async fn close(self) -> Ended {
        if let Some(connection) = self.connection {
            connection.close().await;
        }
        Ended::Well
    }

    fn greeting(&self) -> String {
        let version = self.connection.as_ref().and_then(|c| c.parameter("server_version")).unwrap_or("?");
        format!("Connected to {} (server {version}).", self.target)
    }

    /// As psql's: database, what is unfinished, and `*` or `!` in an open or failed transaction.
    fn prompt(&self) -> String {
        let block = match self.connection.as_ref().map(Connection::block) {
            Some(Block::None) => "",
            Some(Block::Open) => "*",
            Some(Block::Failed) => "!",
            None => "?",
        };
        format!("{}{}{block}> ", self.target.database, self.splitter.prompt_mark())
    }

    /// One line of somebody or of a script.
    async fn typed(&mut self, line: &str, input: &Input) -> Flow {
        if self.is_interactive
            && self.splitter.is_empty()
            && let Some(command) = bare_command(line)
        {
            return self.command(command).await;
        }
        self.splitter.feed(line);
        while let Some(piece) = self.splitter.next() {
            let flow = match piece {
                Piece::Sql(sql) => {
                    if self.is_interactive {
                        input.remember(&format!("{sql};"));
                    }
                    self.statement_with(&sql, Some(input)).await
                }
                Piece::Command(command) => {
                    if self.is_interactive {
                        input.remember(&format!("\\{command}"));
                    }
                    self.command(&command).await
                }
            };
            if flow != Flow::GoOn {
                return flow;
            }
        }
        Flow::GoOn
    }

    /// A script in a file.
    async fn include(&mut self, path: &str) -> Flow {
        if self.depth == INCLUDE_DEPTH_MAX {
            complain(&format!("{path}: files include each other more than {INCLUDE_DEPTH_MAX} deep\n"));
            return self.after_error();
        }
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) => {
                complain(&format!("{path}: {e}\n"));
                return self.after_error();
            }
        };
        self.depth += 1;
        let outer = std::mem::take(&mut self.splitter);
        let flow = self.script(&text).await;
        self.splitter = outer;
        self.depth -= 1;
        flow
    }

    async fn script(&mut self, text: &str) -> Flow {
        self.splitter.feed(text);
        while let Some(piece) = self.splitter.next() {
            let flow = match piece {
                Piece::Sql(sql) => self.statement(&sql).await,
                // A file may include another one, so this is a future of unknown size.
                Piece::Command(command) => Box::pin(self.command(&command)).await,
            };
            if flow != Flow::GoOn {
                return flow;
            }
        }
        match self.splitter.finish() {
            Some(sql) => self.statement(&sql).await,
            None => Flow::GoOn,
        }
    }

    fn after_error(&self) -> Flow {
        if self.stop_at_errors { Flow::Leave(Ended::Failed) } else { Flow::GoOn }
    }

    async fn statement(&mut self, sql: &str) -> Flow {
        self.statement_with(sql, None).await
    }

    /// Runs one message. `input` is where the rows of a COPY FROM STDIN come from.
    async fn statement_with(&mut self, sql: &str, input: Option<&Input>) -> Flow {
        let started = Instant::now();
        let done = self.exchange(sql, input).await;
        let flow = match done {
            Ok(true) => Flow::GoOn,
            Ok(false) => self.after_error(),
            Err(e) => self.lost(&e).await,
        };
        if self.timing && flow == Flow::GoOn {
            say!("Time: {:.3} ms", started.elapsed().as_secs_f64() * 1000.0);
        }
        flow
    }

    /// Sends a message and shows every answer. Whether all of it succeeded.
    async fn exchange(&mut self, sql: &str, input: Option<&Input>) -> Result<bool> {
        let Some(connection) = &mut self.connection else { return Err(Error::unavailable("not connected")) };
        let _watch = self.is_interactive.then(|| CancelOnInterrupt::start(connection));
        connection.send_query(sql).await?;
        let mut succeeded = true;
        let mut columns: Option<Vec<Column>> = None;
        let mut rows = Vec::new();
        loop {
            match connection.next().await? {
                Event::Columns(found) => columns = Some(found),
                Event::Row(row) => rows.push(row),
                Event::Complete(tag) => match columns.take() {
                    Some(columns) => {
                        say_part!("{}", table::format(&columns, &std::mem::take(&mut rows), self.layout, None));
                        if !tag.starts_with("SELECT") && !tag.starts_with("SHOW") {
                            say!("{tag}");
                        }
                    }
                    None => say!("{tag}"),
                },
                Event::CopyData(bytes) => say_part!("{}", String::from_utf8_lossy(&bytes)),
                Event::CopyIn => copy_in(connection, input).await?,
                Event::Failed(report) => {
                    succeeded = false;
                    complain(&described(&report, sql, self.verbose));
                }
                Event::Notice(report) => complain(&described(&report, sql, self.verbose)),
                Event::Empty => {}
                Event::Ready => return Ok(succeeded),
            }
        }
    }

    /// A statement's rows, for the shell's own questions.
    async fn ask(&mut self, sql: &str) -> Result<(Vec<Column>, Vec<Vec<Option<String>>>)> {
        let Some(connection) = &mut self.connection else { return Err(Error::unavailable("not connected")) };
        connection.send_query(sql).await?;
        let (mut columns, mut rows, mut failed) = (Vec::new(), Vec::new(), None);
        loop {
            match connection.next().await? {
                Event::Columns(found) => columns = found,
                Event::Row(row) => rows.push(row),
                Event::Failed(report) => failed = Some(report),
                Event::Ready => break,
                _ => {}
            }
        }
        match failed {
            None => Ok((columns, rows)),
            Some(report) => Err(Error::sql("XX000", described(&report, sql, self.verbose).trim_end())),
        }
    }

    /// The connection is gone: a script ends, somebody who types gets a new one.
    async fn lost(&mut self, e: &Error) -> Flow {
        complain(&format!("{}{}\n", e.message(), e.get_detail().map(|d| format!(": {d}")).unwrap_or_default()));
        self.connection = None;
        if !self.is_interactive {
            return Flow::Leave(Ended::Disconnected);
        }
        match Connection::open(&self.target).await {
            Ok(connection) => {
                self.connection = Some(connection);
                complain("Connected again; settings and an open transaction are gone.\n");
            }
            Err(e) => complain(&format!("{}\nThe next statement tries again; \\q leaves.\n", e.message())),
        }
        Flow::GoOn
    }
}

/// Sends the lines up to `\.` as the rows of a COPY.
async fn copy_in(connection: &mut Connection, input: Option<&Input>) -> Result<()> {
    if let Some(input) = input {
        if input.is_interactive() {
            say!("Rows, one per line; \\. alone ends them.");
        }
        loop {
            match input.line(">> ").await {
                Line::Text(text) if text.trim_end_matches(['\r', '\n']) == "\\." => break,
                Line::Text(text) => {
                    connection.send_copy_data(format!("{}\n", text.trim_end_matches(['\r', '\n'])).as_bytes()).await?
                }
                _ => break,
            }
        }
    }
    connection.send_copy_done().await
}

/// While it lives, Ctrl-C ends what the server runs for a session.
struct CancelOnInterrupt(tokio::task::JoinHandle<()>);

impl CancelOnInterrupt {
    fn start(connection: &Connection) -> CancelOnInterrupt {
        let key = connection.cancel_key();
        CancelOnInterrupt(tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                match key.cancel().await {
                    Ok(()) => complain("Cancel request sent\n"),
                    Err(e) => complain(&format!("could not cancel: {}\n", e.message())),
                }
            }
        }))
    }
}

impl Drop for CancelOnInterrupt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An error or a notice as psql shows it.
fn described(report: &Report, sql: &str, verbose: bool) -> String {
    let mut out = match verbose {
        true => format!("{}:  {}: {}\n", report.severity(), report.sqlstate(), report.message()),
        false => format!("{}:  {}\n", report.severity(), report.message()),
    };
    if let Some(position) = report.position() {
        out += &marked(sql, position);
    }
    if let Some(detail) = report.detail() {
        out += &format!("DETAIL:  {detail}\n");
    }
    if let Some(hint) = report.hint() {
        out += &format!("HINT:  {hint}\n");
    }
    if let Some(context) = report.context() {
        out += &format!("CONTEXT:  {context}\n");
    }
    out
}

/// The line of a statement that a position (in characters, from 1 on) lies in, and a mark below the
/// place.
fn marked(sql: &str, position: usize) -> String {
    const SHOWN_MAX: usize = 60;
    let before: String = sql.chars().take(position.saturating_sub(1)).collect();
    let line_number = before.matches('\n').count() + 1;
    let Some(line) = sql.split('\n').nth(line_number - 1) else { return String::new() };
    let line: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let at = before.rsplit('\n').next().unwrap_or_default().chars().count();
    // Of a long line, what is around the place.
    let from = if line.len() > SHOWN_MAX { at.saturating_sub(SHOWN_MAX / 2).min(line.len() - SHOWN_MAX) } else { 0 };
    let to = line.len().min(from + SHOWN_MAX);
    let shown: String = line[from..to].iter().collect();
    let (head, tail) = (if from > 0 { "..." } else { "" }, if to < line.len() { "..." } else { "" });
    let start = format!("LINE {line_number}: {head}");
    let until: String = line[from..at.clamp(from, to)].iter().collect();
    format!("{start}{shown}{tail}\n{}^\n", " ".repeat(start.len() + table::width(&until)))
}

/// To standard error.
fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{bare_command, marked};

    #[test]
    fn words_that_nobody_means_as_sql_are_commands() {
        let meant = ["help", " Help; ", "exit", "quit", "helper", "help me"].map(bare_command);
        assert_eq!(meant, [Some("help"), Some("help"), Some("quit"), Some("quit"), None, None]);
    }

    #[test]
    fn the_mark_is_below_the_place() {
        assert_eq!(marked("select x from t", 8), "LINE 1: select x from t\n               ^\n");
        assert_eq!(marked("select\n  日本, x", 14), "LINE 2:   日本, x\n                ^\n");
        assert_eq!(marked("select", 99), "LINE 1: select\n              ^\n");
    }

    #[test]
    fn of_a_long_line_the_surroundings_are_shown() {
        let sql = format!("select {}, x, {}", "1".repeat(100), "2".repeat(100));
        let shown = marked(&sql, 110);
        let (line, mark) = shown.split_once('\n').expect("two lines");
        assert_eq!(line.chars().nth(mark.trim_end().len() - 1), Some('x'), "{shown}");
        assert!(line.starts_with("LINE 1: ...") && line.ends_with("..."), "{shown}");
    }
}
