//! See the crate's essay.
