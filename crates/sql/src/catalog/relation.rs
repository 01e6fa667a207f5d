//! Tables, views and sequences of one catalog version, shared; and whatever a name in `FROM` means.

use super::ids::oid;
use super::system_table::SystemTable;
use super::{Descriptor, Sequence, Table, View};
use meridian_base::DescriptorId;
use std::ops::Deref;
use std::sync::Arc;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $variant:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Arc<Descriptor>);
        impl $name {
            /// The handle, if the descriptor is of this kind.
            pub fn new(d: &Arc<Descriptor>) -> Option<$name> {
                matches!(**d, Descriptor::$variant(_)).then(|| $name(d.clone()))
            }
        }
        impl Deref for $name {
            type Target = $variant;
            fn deref(&self) -> &$variant {
                match &*self.0 {
                    Descriptor::$variant(d) => d,
                    _ => unreachable!("checked when the handle was made"),
                }
            }
        }
    };
}
handle!(
    /// A table of one catalog version, shared.
    TableRef, Table
);
handle!(
    /// A view of one catalog version, shared.
    ViewRef, View
);
handle!(
    /// A sequence of one catalog version, shared.
    SequenceRef, Sequence
);

/// What a `FROM` item, `\d` or `regclass` may name.
#[derive(Clone, Debug)]
pub enum Relation {
    Table(TableRef),
    View(ViewRef),
    Sequence(SequenceRef),
    /// An index, by its table and its id.
    Index(TableRef, u32),
    System(&'static SystemTable),
}

impl Relation {
    /// What error messages call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Relation::Table(_) | Relation::System(_) => "table",
            Relation::View(_) => "view",
            Relation::Sequence(_) => "sequence",
            Relation::Index(..) => "index",
        }
    }
    /// Its descriptor; for an index, its table's. System tables have none.
    pub fn descriptor(&self) -> Option<DescriptorId> {
        match self {
            Relation::Table(t) | Relation::Index(t, _) => Some(t.id),
            Relation::View(v) => Some(v.id),
            Relation::Sequence(s) => Some(s.id),
            Relation::System(_) => None,
        }
    }
    /// Its oid in `pg_class`.
    pub fn oid(&self) -> u32 {
        match self {
            Relation::Table(t) => oid(t.id),
            Relation::View(v) => oid(v.id),
            Relation::Sequence(s) => oid(s.id),
            Relation::Index(_, id) => oid(DescriptorId(*id)),
            Relation::System(t) => t.oid,
        }
    }
}
