//! The conflict index.
