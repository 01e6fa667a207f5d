//! The log on standard error: a line for each event, whatever strangers put into its values.

use std::io::{self, Write};

/// Logs go to standard error; `MERIDIAN_LOG` sets the level (`error`, `warn`, `info`, `debug`, or
/// per module).
pub fn to_stderr(default: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("MERIDIAN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{default},openraft=off,fjall=warn,lsm_tree=warn")));
    let lines = || Lines(io::stderr());
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).with_target(false).try_init();
}

/// How long a line may be, in bytes.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Writes each event as one line. Names of users, statements and errors are written by others: line
/// breaks and other control characters in them are escaped, and what is too long is cut.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    /// `event`: all of an event, as `tracing-subscriber` writes it.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let body = text.strip_suffix('\n').unwrap_or(&text);
        let end = (0..=LINE_BYTES_MAX.min(body.len())).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
        let mut line = String::with_capacity(end + 8);
        for c in body[..end].chars() {
            // The separators of lines and of paragraphs, and what turns the direction of a text
            // around, are no control characters.
            match c {
                c if c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                    line.extend(c.escape_default());
                }
                c => line.push(c),
            }
        }
        if end < body.len() {
            line.push_str(" …");
        }
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: &str) -> String {
        let mut out = Vec::new();
        Lines(&mut out).write_all(event.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let forged = "WARN no role \"x\n2026-01-01T00:00:00Z  INFO a client has logged in event=\"login\"\r\u{1b}[31m\"\n";
        let line = written(forged);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with("\\u{1b}[31m\"\n") && !line.contains('\r'), "{line}");
        assert_eq!(written("INFO Zürich\n"), "INFO Zürich\n");
    }

    #[test]
    fn a_long_event_is_cut() {
        let line = written(&format!("{}é\n", "x".repeat(LINE_BYTES_MAX * 2)));
        assert!(line.len() < LINE_BYTES_MAX + 8 && line.ends_with(" …\n"));
    }
}
