//! How clients log in: what the catalog keeps besides roles.

use super::ids::LOGIN_RULES_ID;
use meridian_base::DescriptorId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The rules of login of a cluster.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct LoginRules {
    pub id: DescriptorId,
    /// Host-based authentication in the syntax of `pg_hba.conf`; empty: the built-in rules.
    pub hba: String,
    /// User maps in the syntax of `pg_ident.conf`.
    pub ident: String,
    /// What the answers for users that are not there are made of: the same at every node, for ever.
    pub mock_secret: Vec<u8>,
}

/// Without the secret.
impl fmt::Debug for LoginRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRules").field("hba", &self.hba).field("ident", &self.ident).finish_non_exhaustive()
    }
}

impl Default for LoginRules {
    fn default() -> LoginRules {
        LoginRules { id: LOGIN_RULES_ID, hba: String::new(), ident: String::new(), mock_secret: Vec::new() }
    }
}
