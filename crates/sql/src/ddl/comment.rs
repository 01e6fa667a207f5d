//! `COMMENT ON`.

use super::Deriver;
use crate::catalog::Descriptor;
use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use meridian_base::{Error, Result};
use sqlparser::ast::{CommentObject, ObjectName};

impl Deriver<'_> {
    pub(super) fn comment(
        &mut self,
        kind: CommentObject,
        name: &ObjectName,
        comment: Option<&str>,
        if_exists: bool,
    ) -> Result<()> {
        // An empty comment is none.
        let comment = comment.filter(|c| !c.is_empty()).map(str::to_string);
        match kind {
            CommentObject::Database => {
                let mut d = self.catalog.database(&Name::from_ast(name)?.name)?.clone();
                self.must_own(d.id)?;
                d.comment = comment;
                self.put(d);
            }
            CommentObject::Schema => {
                let mut s = self.catalog.schema(self.names(), &Name::from_ast(name)?.name)?.clone();
                self.must_own(s.id)?;
                s.comment = comment;
                self.put(s);
            }
            CommentObject::Column => self.comment_on_column(name, comment)?,
            CommentObject::Table | CommentObject::View | CommentObject::Index | CommentObject::Sequence => {
                let wanted = kind.to_string().to_lowercase();
                let Some(relation) = self.relation_if_exists(name, "relation", if_exists)? else { return Ok(()) };
                if relation.kind() != wanted {
                    return Err(super::refuse::wrong_kind(name, &relation, &wanted));
                }
                self.must_own_relation(&relation)?;
                self.comment_on_relation(&relation, comment)?;
            }
            other => return Err(Error::unsupported(format!("COMMENT ON {other} is not supported yet"))),
        }
        Ok(())
    }

    fn comment_on_relation(&mut self, relation: &Relation, comment: Option<String>) -> Result<()> {
        let id = relation.descriptor().ok_or_else(|| Error::sql("42501", "permission denied: it is a system catalog"))?;
        let Some(mut d) = self.catalog.descriptors.get(&id).map(|d| (**d).clone()) else { return Ok(()) };
        match (&mut d, relation) {
            (Descriptor::Table(t), Relation::Index(_, index)) => {
                t.indexes.iter_mut().filter(|i| i.id == *index).for_each(|i| i.comment = comment.clone());
            }
            (Descriptor::Table(t), _) => t.comment = comment,
            (Descriptor::View(v), _) => v.comment = comment,
            (Descriptor::Sequence(s), _) => s.comment = comment,
            _ => {}
        }
        self.put(d);
        Ok(())
    }

    fn comment_on_column(&mut self, name: &ObjectName, comment: Option<String>) -> Result<()> {
        let mut path = name.0.clone();
        let column = path.pop().and_then(|p| p.as_ident().map(crate::parse::fold));
        let (Some(column), false) = (column, path.is_empty()) else {
            return Err(Error::sql("42601", "column name must be qualified"));
        };
        let mut table = (*self.own_table(&ObjectName(path))?).clone();
        let Some((ordinal, _)) = table.column(&column) else {
            return Err(Error::sql("42703", format!("column \"{column}\" of relation \"{}\" does not exist", table.name)));
        };
        table.columns[ordinal as usize].comment = comment;
        self.put(table);
        Ok(())
    }
}
