//! What a command prints for its user, who may have stopped reading (`… | head`, `… | grep -q`).

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line to standard output, as `println!` does. A reader that has left is no error.
macro_rules! say {
    () => {
        $crate::say::print(format_args!("\n"))
    };
    ($($arg:tt)*) => {
        $crate::say::print(format_args!("{}\n", format_args!($($arg)*)))
    };
}

/// Prints to standard output at once, as `print!` does. A reader that has left is no error.
macro_rules! say_part {
    ($($arg:tt)*) => {
        $crate::say::print(format_args!($($arg)*))
    };
}

/// What `say!` and `say_part!` do. A reader that has gone is no failure: a server goes on, and a
/// command tells by its exit code what it found. Any other failure is told on standard error.
pub(crate) fn print(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => eprintln!("meridian: cannot write to standard output: {e}"),
        _ => {}
    }
}
