//! All operators and functions: those over values, and those that read the catalog.

use crate::types::functions::registry::Registry;
use std::sync::LazyLock;

pub static FUNCTIONS: LazyLock<Registry> = LazyLock::new(|| {
    let mut all = Registry::of_values();
    super::system::functions::register(&mut all);
    all
});
