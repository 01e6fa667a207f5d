//! The rules of login that hold in a catalog.

use super::ids::LOGIN_RULES_ID;
use super::login::LoginRules;
use super::{Catalog, Descriptor, hba};

impl Catalog {
    /// The rules that hold: the built-in ones where none were set.
    pub fn hba_rules(&self) -> &str {
        self.login_rules().map(|r| r.hba.as_str()).filter(|text| !text.trim().is_empty()).unwrap_or(hba::BUILT_IN)
    }
    /// The user maps.
    pub fn ident_maps(&self) -> &str {
        self.login_rules().map(|r| r.ident.as_str()).unwrap_or_default()
    }
    /// The rules of login, if any were stored.
    pub fn login_rules(&self) -> Option<&LoginRules> {
        match self.descriptors.get(&LOGIN_RULES_ID).map(|d| &**d) {
            Some(Descriptor::LoginRules(rules)) => Some(rules),
            _ => None,
        }
    }
}
