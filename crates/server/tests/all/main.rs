//! Integration tests: the server against clients over an environment in memory, and real nodes in
//! one process with real files and real sockets on loopback.

mod clients;
mod first_bytes;
mod single_node;
mod support;
