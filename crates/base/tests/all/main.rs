//! What holds between the files of other crates. It is here because this crate is built in a
//! moment.

mod rooms;
