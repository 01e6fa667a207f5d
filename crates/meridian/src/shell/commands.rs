//! Backslash commands.

use super::table::Layout;
use super::target::Target;
use super::wire::Connection;
use super::{Ended, Flow, Shell, complain, describe};

const HELP: &str = "\
General
  \\q                     leave
  \\?                     this help
  \\c [DATABASE|URL]      connect to another database or node
  \\conninfo              what one is connected to
  \\i FILE                run the statements of a file
  \\echo TEXT             print a text

The statement being typed
  ;  or  \\g              run it
  \\p                     show it
  \\r                     forget it
  Ctrl-C                 while a statement runs: cancel it

What exists
  \\l                     databases
  \\dn                    schemas
  \\d [PATTERN]           tables, views and sequences; one relation in detail if the pattern names one
  \\dt \\di \\dv \\ds        tables, indexes, views, sequences
                         a pattern is a name, or schema.name, with * and ?

How results look
  \\x [on|off]            a line per column instead of a line per row
  \\timing [on|off]       how long each statement took
  \\set ON_ERROR_STOP on|off     stop at the first error (default: on for scripts, off for a terminal)
  \\set VERBOSITY default|verbose     errors with their SQLSTATE
";

impl Shell {
    /// Runs one backslash command, given without its backslash.
    pub(super) async fn command(&mut self, command: &str) -> Flow {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim().trim_end_matches(';').trim();
        let argument = unquoted(rest);
        match name.trim_end_matches(';') {
            "q" | "quit" => return Flow::Leave(Ended::Well),
            "?" | "h" | "help" => self.help(),
            "c" | "connect" => return self.reconnect(&argument).await,
            "conninfo" => say!("{}", self.greeting()),
            // A file may include others, so this is a future of unknown size.
            "i" | "include" => return Box::pin(self.include(&argument)).await,
            "echo" => say!("{argument}"),
            "g" => {
                if let Some(sql) = self.splitter.finish() {
                    return self.statement(&sql).await;
                }
            }
            "p" => say!("{}", self.splitter.pending()),
            "r" => {
                self.splitter.reset();
                say!("Query buffer reset (cleared).");
            }
            "x" => match switched(self.layout == Layout::Expanded, &argument) {
                Some(on) => {
                    self.layout = if on { Layout::Expanded } else { Layout::Aligned };
                    say!("Expanded display is {}.", on_off(on));
                }
                None => return self.refuse(&format!("\\x on or off, not {argument:?}")),
            },
            "timing" => match switched(self.timing, &argument) {
                Some(on) => {
                    self.timing = on;
                    say!("Timing is {}.", on_off(on));
                }
                None => return self.refuse(&format!("\\timing on or off, not {argument:?}")),
            },
            "set" => return self.set(rest),
            listing if listing == "l" || listing.starts_with('d') => return self.describe(listing, &argument).await,
            other => match self.extras.iter().find(|e| e.name == other) {
                Some(extra) => say_part!("{}", (extra.run)()),
                None => return self.refuse(&format!("invalid command \\{other}; \\? lists the commands")),
            },
        }
        Flow::GoOn
    }

    fn refuse(&self, why: &str) -> Flow {
        complain(&format!("{why}\n"));
        self.after_error()
    }

    fn help(&self) {
        say_part!("{}", HELP);
        if !self.extras.is_empty() {
            say!("\nOf this cluster");
        }
        for extra in &self.extras {
            say!("  {:<22} {}", format!("\\{}", extra.name), extra.help);
        }
    }

    fn set(&mut self, rest: &str) -> Flow {
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let value = unquoted(value.trim()).to_lowercase();
        match (name, &*value) {
            ("", _) => {
                let verbosity = if self.verbose { "verbose" } else { "default" };
                say!("ON_ERROR_STOP = '{}'\nVERBOSITY = '{verbosity}'", on_off(self.stop_at_errors));
            }
            ("ON_ERROR_STOP", "on" | "1" | "true" | "") => self.stop_at_errors = true,
            ("ON_ERROR_STOP", "off" | "0" | "false") => self.stop_at_errors = false,
            ("VERBOSITY", "default" | "terse") => self.verbose = false,
            ("VERBOSITY", "verbose") => self.verbose = true,
            ("ON_ERROR_STOP" | "VERBOSITY", other) => return self.refuse(&format!("{name} cannot be {other:?}")),
            (other, _) => return self.refuse(&format!("there is no variable {other}: only ON_ERROR_STOP and VERBOSITY")),
        }
        Flow::GoOn
    }

    async fn reconnect(&mut self, to: &str) -> Flow {
        let target = match to {
            "" => Ok(self.target.clone()),
            url if url.contains("://") => Target::parse(url),
            database => Ok(Target { database: database.to_string(), ..self.target.clone() }),
        };
        let opened = match target {
            Ok(target) => Connection::open(&target).await.map(|connection| (target, connection)),
            Err(e) => Err(e),
        };
        match opened {
            Ok((target, connection)) => {
                if let Some(old) = self.connection.replace(connection) {
                    old.close().await;
                }
                self.target = target;
                let Target { database, user, .. } = &self.target;
                say!("You are now connected to database \"{database}\" as user \"{user}\".");
                Flow::GoOn
            }
            Err(e) => {
                let kept = if self.connection.is_some() { "\nThe previous connection is kept." } else { "" };
                self.refuse(&format!("{}{kept}", e.message()))
            }
        }
    }

    async fn describe(&mut self, listing: &str, pattern: &str) -> Flow {
        match describe::run(self, listing, pattern).await {
            Ok(text) => {
                say_part!("{}", text);
                Flow::GoOn
            }
            Err(e) if e.sqlstate().starts_with("08") => self.lost(&e).await,
            Err(e) => self.refuse(e.message()),
        }
    }
}

/// Without the quotes around all of it.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'"),
        None => text.to_string(),
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// What a switch is after its command: the other way round without an argument.
fn switched(now: bool, argument: &str) -> Option<bool> {
    match argument.to_lowercase().as_str() {
        "" => Some(!now),
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_without_an_argument_turns() {
        assert_eq!(
            [switched(true, ""), switched(false, ""), switched(true, "OFF"), switched(true, "maybe")],
            [Some(false), Some(true), Some(false), None]
        );
    }

    #[test]
    fn quotes_around_an_argument_are_taken_away() {
        assert_eq!(unquoted("'a ''b'''"), "a 'b'");
        assert_eq!(unquoted("a b"), "a b");
    }
}
