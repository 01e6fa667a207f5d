//! The integration tests of the whole, in one binary.

#[path = "all/dependencies.rs"]
mod dependencies;
#[path = "all/documents.rs"]
mod documents;
