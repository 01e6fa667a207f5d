//! What holds between the files of other crates, which is here because this crate is built in a
//! moment; and the formats of this one.

mod formats;
mod habits;
mod listed;
mod prose;
mod rooms;
mod source;
