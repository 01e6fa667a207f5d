//! Where the rows are that foreign keys refer to.

use super::groups::Groups;
use crate::catalog::ForeignKey;
use crate::plan::TablePlan;
use crate::types::keys::encode_key_column;
use crate::types::{Datum, EvalContext};
use meridian_base::key::encode;
use meridian_base::{Error, Key, Result};

/// The parent's entry for a child's values.
pub(crate) fn parent_key(parent: &TablePlan, index: usize, fk: &ForeignKey, child: &[Datum]) -> Result<Key> {
    let i = &parent.table.indexes[index];
    let mut out = Vec::with_capacity(32);
    encode::index(&mut out, i.id);
    for c in &i.columns {
        let at = fk
            .parent_columns
            .iter()
            .position(|p| *p == c.ordinal)
            .ok_or_else(|| Error::internal("a foreign key's index does not fit"))?;
        let value = &child[fk.columns[at] as usize];
        encode_key_column(&mut out, value, &parent.types[c.ordinal as usize], c.descending, c.nulls_first)?;
    }
    Ok(Key::new(&out))
}

/// The groups that may hold the parent of a child.
pub(crate) fn parent_groups(parent: &TablePlan, fk: &ForeignKey, child: &[Datum], ctx: &EvalContext) -> Groups {
    let known = |o: u32| {
        let at = fk.parent_columns.iter().position(|p| *p == o)?;
        Some(child[fk.columns[at] as usize].clone())
    };
    parent.groups_with(&known, ctx)
}
