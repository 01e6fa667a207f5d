//! Where lines come from: a terminal with editing and history, or a pipe.
//!
//! Both block, so they have a thread of their own, which reads a line only when it is asked for
//! one.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Statements kept in the history file.
const HISTORY_MAX: usize = 10_000;

/// What came instead of, or as, a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Ctrl-C while a line was edited.
    Interrupted,
    /// Ctrl-D, or the end of the pipe.
    End,
    Failed(String),
}

/// What the reading thread is asked.
enum Ask {
    Line {
        prompt: String,
        reply: oneshot::Sender<Line>,
    },
    /// A whole statement, for the history.
    Remember(String),
}

/// Lines, one by one.
pub struct Input {
    asks: mpsc::Sender<Ask>,
    is_interactive: bool,
}

impl Input {
    /// Standard input: edited on a terminal, read as it comes otherwise.
    pub fn stdin() -> Input {
        use std::io::IsTerminal;
        let is_interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let (asks, asked) = mpsc::channel();
        let reader = if is_interactive { edit } else { pipe };
        // Reading a terminal or a pipe blocks, and no simulator runs a shell.
        #[allow(clippy::disallowed_methods)]
        std::thread::spawn(move || reader(&asked));
        Input { asks, is_interactive }
    }

    /// Whether somebody types.
    pub fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// The next line.
    pub async fn line(&self, prompt: &str) -> Line {
        let (reply, line) = oneshot::channel();
        if self.asks.send(Ask::Line { prompt: prompt.to_string(), reply }).is_err() {
            return Line::End;
        }
        line.await.unwrap_or(Line::End)
    }

    /// Puts a statement into the history.
    pub fn remember(&self, statement: &str) {
        // Without its thread there is no history either.
        let _ = self.asks.send(Ask::Remember(statement.to_string()));
    }
}

fn pipe(asked: &mpsc::Receiver<Ask>) {
    let mut stdin = std::io::stdin().lock();
    for ask in asked {
        let Ask::Line { reply, .. } = ask else { continue };
        let mut bytes = Vec::new();
        let line = match stdin.read_until(b'\n', &mut bytes) {
            Ok(0) => Line::End,
            Ok(_) => Line::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) => Line::Failed(e.to_string()),
        };
        if reply.send(line).is_err() {
            return;
        }
    }
}

fn edit(asked: &mpsc::Receiver<Ask>) {
    let config = rustyline::Config::builder().max_history_size(HISTORY_MAX).map(|c| c.build());
    let editor = config.and_then(rustyline::DefaultEditor::with_config);
    let mut editor = match editor {
        Ok(editor) => editor,
        Err(e) => {
            if let Ok(Ask::Line { reply, .. }) = asked.recv() {
                let _ = reply.send(Line::Failed(e.to_string()));
            }
            return;
        }
    };
    let history = history_file();
    if let Some(file) = &history {
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    for ask in asked {
        match ask {
            Ask::Line { prompt, reply } => {
                let line = match editor.readline(&prompt) {
                    Ok(text) => Line::Text(text),
                    Err(rustyline::error::ReadlineError::Interrupted) => Line::Interrupted,
                    Err(rustyline::error::ReadlineError::Eof) => Line::End,
                    Err(e) => Line::Failed(e.to_string()),
                };
                if reply.send(line).is_err() {
                    return;
                }
            }
            Ask::Remember(statement) => {
                // A history that cannot be written is not worth a word.
                let _ = editor.add_history_entry(&statement);
                if let Some(file) = &history {
                    let _ = editor.append_history(file);
                }
            }
        }
    }
}

/// `$XDG_STATE_HOME/meridian/history`, by default under `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    let dir = state.join("meridian");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}
