//! `SHOW …`: what exists, as rows. Column names are CockroachDB's where it has the statement.

use super::system::SystemContext;
use crate::types::{Datum, Type};
use meridian_base::{Error, Result};
use sqlparser::ast::ObjectName;

/// A SHOW statement that reads the catalog; settings are the session's.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases,
    Schemas,
    Tables { schema: Option<ObjectName> },
    Columns { table: ObjectName },
    Indexes { table: ObjectName },
    Constraints { table: ObjectName },
    CreateTable { table: ObjectName },
    Sequences,
    /// `SHOW REGIONS`: regions of the cluster and which databases use them.
    Regions,
    RegionsFromCluster,
    /// `None`: the current database.
    RegionsFromDatabase { database: Option<ObjectName> },
    /// `SHOW LOCALITY`: this node's.
    Locality,
    LocalityFromTable { table: ObjectName },
}

impl Show {
    /// The result's columns, known without running it.
    pub fn columns(&self) -> Vec<(&'static str, Type)> {
        match self {
            Show::Locality => vec![("locality", Type::Text)],
            _ => Vec::new(),
        }
    }
    /// The result.
    pub fn rows(&self, context: &dyn SystemContext) -> Result<Vec<Vec<Datum>>> {
        match self {
            Show::Locality => Ok(vec![vec![Datum::Text(context.locality().into())]]),
            _ => Err(Error::unsupported("this SHOW statement is not supported yet")),
        }
    }
}
