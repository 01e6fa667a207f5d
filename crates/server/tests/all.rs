//! Integration tests of real nodes in one process: real files, real sockets on loopback.

mod single_node;
mod support;
