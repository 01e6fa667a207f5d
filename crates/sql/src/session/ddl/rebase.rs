//! A block with schema changes whose rows are written already cannot be derived again when others
//! have changed the schema: it is moved to the newer catalog as it is, if that changes nothing.

use super::DdlBlock;
use crate::catalog::{Catalog, Descriptor};
use meridian_base::{DescriptorId, Error, Result};
use std::sync::Arc;

/// Moves changes whose rows are written already to a newer catalog. 40001, if others have changed
/// what the block may rest on, or have made something that rests on what it changes.
///
/// # Panics
/// If others may have drawn the ids of the changes.
pub(super) fn rebase(changes: DdlBlock, newest: Arc<Catalog>) -> Result<DdlBlock> {
    assert!(changes.ids_reserved, "rows are written, and ids of the block are not reserved");
    if let Some(hold) = &changes.hold {
        hold.check(&newest)?;
    }
    let is_new = |id: &DescriptorId| newest.changed_in.get(id).is_some_and(|v| *v > changes.base.version);
    let put = &changes.change.put;
    // What the block changes has the names that it left it with.
    let is_left = |id: &DescriptorId| changes.change.delete.contains(id) || put.iter().any(|p| p.id() == *id);
    let of_relations = changes.is_of_relations();
    let may_matter = |(id, before): (&DescriptorId, &Arc<Descriptor>)| match &**before {
        Descriptor::Job(_) | Descriptor::Statistics(_) => false,
        before => {
            let after = newest.descriptors.get(id).map(|d| &**d);
            !of_relations || is_left(id) || [Some(before), after].into_iter().flatten().any(|d| changes.is_near(d, &is_left))
        }
    };
    let is_changed = changes.base.descriptors.iter().filter(|(id, _)| is_new(id)).any(may_matter);
    // What others made of what the block changes or drops.
    let is_made = |(id, d): &(&DescriptorId, &Arc<Descriptor>)| {
        let is_beside = matches!(***d, Descriptor::Job(_) | Descriptor::Statistics(_));
        is_new(id) && !is_beside && !changes.base.descriptors.contains_key(id)
    };
    let rests_on_it = |(_, made): (&DescriptorId, &Arc<Descriptor>)| match of_relations {
        true => is_left(&made.parent()) || names(made, &is_left),
        false => !changes.change.delete.is_empty(),
    };
    let is_changed = is_changed || newest.descriptors.iter().filter(is_made).any(rests_on_it);
    let is_name_taken = |d: &Descriptor| {
        let taken = d.name().and_then(|name| newest.by_name.get(&(d.parent(), name.to_string())));
        taken.is_some_and(|id| !is_left(id))
    };
    let is_id_taken =
        |d: &Descriptor| newest.descriptors.contains_key(&d.id()) && !changes.base.descriptors.contains_key(&d.id());
    assert!(!put.iter().any(is_id_taken), "somebody else has drawn an id that the block has reserved");
    if is_changed || put.iter().any(is_name_taken) {
        return Err(
            Error::sql("40001", "another transaction changed the schema").hint("The transaction might succeed if retried.")
        );
    }
    let mut change = changes.change.clone();
    change.next_id = change.next_id.max(newest.next_id);
    let catalog = Arc::new(newest.with(&change));
    Ok(DdlBlock { base: newest, catalog, change, ..changes })
}

impl DdlBlock {
    /// Whether it changes tables and views alone, of what was there before.
    fn is_of_relations(&self) -> bool {
        let deleted = self.change.delete.iter().filter_map(|id| self.base.descriptors.get(id)).map(|d| &**d);
        let changed = self.change.put.iter().filter(|d| self.base.descriptors.contains_key(&d.id()));
        deleted.chain(changed).all(|d| matches!(d, Descriptor::Table(_) | Descriptor::View(_) | Descriptor::Job(_)))
    }

    /// Whether what it changes may rest on a descriptor, or the other way round: all but tables and
    /// views that neither name what it changes nor are named there.
    fn is_near(&self, d: &Descriptor, is_left: &impl Fn(&DescriptorId) -> bool) -> bool {
        let before = self.change.delete.iter().filter_map(|id| self.base.descriptors.get(id)).map(|d| &**d);
        let is_relation = |d: &Descriptor| matches!(d, Descriptor::Table(_) | Descriptor::View(_));
        let mut own = before.chain(&self.change.put).filter(|d| is_relation(d));
        !is_relation(d) || is_left(&d.parent()) || names(d, is_left) || own.any(|own| names(own, &|id| *id == d.id()))
    }
}

/// Whether a table has foreign keys to or from another one, or a view is of a relation.
fn names(d: &Descriptor, is_meant: &dyn Fn(&DescriptorId) -> bool) -> bool {
    match d {
        Descriptor::Table(t) => {
            t.foreign_keys.iter().any(|fk| is_meant(&fk.parent)) || t.referenced_by.iter().any(|(child, _)| is_meant(child))
        }
        Descriptor::View(v) => v.depends_on.iter().any(is_meant),
        _ => false,
    }
}
