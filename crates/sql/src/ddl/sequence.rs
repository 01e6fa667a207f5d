//! Sequences: `CREATE SEQUENCE`, `ALTER SEQUENCE`, and the ones behind `serial` and identity
//! columns.

use super::{Deriver, free_name};
use crate::catalog::names::Name;
use crate::catalog::privileges::Access;
use crate::catalog::relation::Relation;
use crate::catalog::{Sequence, Table};
use crate::parse::{AlterSequence, RoleSpec, SequenceOption};
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, Expr, ObjectName, SequenceOptions};

impl Deriver<'_> {
    pub(super) fn create_sequence(&mut self, statement: &ast::Statement) -> Result<()> {
        let ast::Statement::CreateSequence { temporary, if_not_exists, name, data_type, sequence_options, owned_by } = statement
        else {
            return Err(Error::internal("not CREATE SEQUENCE"));
        };
        if *temporary {
            return Err(Error::unsupported("temporary sequences are not supported yet"));
        }
        let name = Name::from_ast(name)?;
        let schema = self.catalog.schema_for_new(self.names(), &name)?.id;
        self.may_create_in(schema)?;
        if self.catalog.is_relation_name_taken(schema, &name.name) {
            let message = format!("relation \"{}\" already exists", name.name);
            if !if_not_exists {
                return Err(Error::sql("42P07", message));
            }
            self.notice("42P07", format!("{message}, skipping"));
            return Ok(());
        }
        let ty = data_type.as_ref().map_or(Ok(Type::Int8), crate::catalog::declared::type_from_ast)?;
        let database = self.database_of(schema)?;
        let group = self.primary_group(&database);
        let mut sequence = Sequence {
            id: self.new_descriptor_id(),
            schema,
            name: name.name,
            group,
            index_id: self.new_id(),
            owner: self.names().user.clone(),
            access: self.own_access(),
            ..blank(ty)?
        };
        apply(&mut sequence, &from_ast(sequence_options)?, true)?;
        if let Some(owner) = owned_by {
            let parts: Vec<String> = owner.0.iter().filter_map(|p| p.as_ident()).map(crate::parse::fold).collect();
            sequence.owned_by = self.owner_column(&sequence, &parts)?;
        }
        self.put(sequence);
        Ok(())
    }

    /// The sequence of a `serial` or identity column of a table under construction.
    pub(super) fn owned_sequence(&mut self, table: &Table, ordinal: u32, options: &[SequenceOptions]) -> Result<DescriptorId> {
        self.may_create_in(table.schema)?;
        // A counter that rows of several regions draw from lives with the primary region; so does
        // one of a GLOBAL table, whose own group is made for reading.
        let database = self.database_of(table.schema)?;
        let own = table.only_group().filter(|group| !self.is_global(*group));
        let group = own.unwrap_or_else(|| self.group_for(&database, &database.primary_region));
        let column = &table.columns[ordinal as usize];
        let taken = |n: &str| n == table.name || self.catalog.is_relation_name_taken(table.schema, n);
        let name = free_name(&table.name, &column.name, "seq", taken);
        let mut sequence = Sequence {
            id: self.new_descriptor_id(),
            schema: table.schema,
            name,
            group,
            index_id: self.new_id(),
            owned_by: Some((table.id, ordinal)),
            owner: table.owner.clone(),
            access: Access::of(table.access.owner()),
            ..blank(column.ty.clone())?
        };
        apply(&mut sequence, &from_ast(options)?, true)?;
        let id = sequence.id;
        self.put(sequence);
        Ok(id)
    }

    /// What `OWNED BY table.column` names; `None`: `OWNED BY NONE`. 55000 unless the table has the
    /// sequence's owner and schema.
    fn owner_column(&self, sequence: &Sequence, parts: &[String]) -> Result<Option<(DescriptorId, u32)>> {
        match parts {
            [none] if none.eq_ignore_ascii_case("none") => Ok(None),
            [path @ .., table, column] => {
                let name = Name { database: None, schema: path.last().cloned(), name: table.clone() };
                let table = self.catalog.table(self.names(), &name)?;
                let refused = |what: &str| Error::sql("55000", format!("sequence must {what} as table it is linked to"));
                if table.access.owner() != sequence.access.owner() {
                    return Err(refused("have same owner"));
                }
                if table.schema != sequence.schema {
                    return Err(refused("be in same schema"));
                }
                let (ordinal, _) = table.column(column).ok_or_else(|| {
                    Error::sql("42703", format!("column \"{column}\" of relation \"{}\" does not exist", table.name))
                })?;
                Ok(Some((table.id, ordinal)))
            }
            _ => Err(Error::sql("42601", "invalid OWNED BY option").hint("Specify OWNED BY table.column or OWNED BY NONE.")),
        }
    }

    /// 0A000 for what a sequence does only together with the table whose column it belongs to.
    pub(super) fn linked(&self, sequence: &Sequence, what: &str) -> Option<Error> {
        let table = self.catalog.table_by_id(sequence.owned_by?.0)?;
        let detail = format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
        Some(Error::unsupported(format!("cannot {what}")).detail(detail))
    }

    pub(super) fn alter_sequence(&mut self, name: &ObjectName, if_exists: bool, action: &AlterSequence) -> Result<()> {
        let mut sequence = match self.relation_if_exists(name, "relation", if_exists)? {
            None => return Ok(()),
            Some(Relation::Sequence(s)) => (*s).clone(),
            Some(other) => return Err(super::refuse::wrong_kind(name, &other, "sequence")),
        };
        self.must_own(sequence.id)?;
        match action {
            AlterSequence::Rename(new) => return self.rename_relation(sequence.id, new),
            AlterSequence::Owner(role) => {
                let role = self.named_role(&RoleSpec::of(role))?;
                return self.give_to(sequence.id, role);
            }
            AlterSequence::SetSchema(schema) => {
                if let Some(linked) = self.linked(&sequence, "move an owned sequence into another schema") {
                    return Err(linked);
                }
                sequence.schema = self.catalog.schema(self.names(), schema)?.id;
                self.may_create_in(sequence.schema)?;
            }
            AlterSequence::Options { options } => {
                apply(&mut sequence, options, false)?;
                for option in options {
                    match option {
                        SequenceOption::OwnedBy(parts) => {
                            sequence.owned_by = parts.as_ref().map_or(Ok(None), |p| self.owner_column(&sequence, p))?;
                        }
                        SequenceOption::Restart(value) => {
                            // A counter that was never drawn from starts at `start`: a new key is a
                            // new counter.
                            sequence.index_id = self.new_id();
                            sequence.restart = value.unwrap_or(sequence.start);
                            check_in_range("RESTART", sequence.restart, &sequence)?;
                        }
                        _ => {}
                    }
                }
            }
        }
        self.put(sequence);
        Ok(())
    }
}

/// A sequence of a type with PostgreSQL's defaults.
fn blank(ty: Type) -> Result<Sequence> {
    let max = max_of(&ty)?;
    Ok(Sequence {
        id: DescriptorId(0),
        schema: DescriptorId(0),
        name: String::new(),
        group: meridian_base::GroupId(0),
        index_id: 0,
        ty,
        start: 1,
        restart: 1,
        increment: 1,
        min: 1,
        max,
        cycle: false,
        cache: 1,
        owned_by: None,
        owner: String::new(),
        comment: None,
        access: Access::default(),
    })
}

fn max_of(ty: &Type) -> Result<i64> {
    match ty {
        Type::Int2 => Ok(i16::MAX.into()),
        Type::Int4 => Ok(i32::MAX.into()),
        Type::Int8 => Ok(i64::MAX),
        _ => Err(Error::sql("22023", "sequence type must be smallint, integer, or bigint")),
    }
}

fn from_ast(options: &[SequenceOptions]) -> Result<Vec<SequenceOption>> {
    options
        .iter()
        .map(|o| {
            Ok(match o {
                SequenceOptions::IncrementBy(e, _) => SequenceOption::Increment(integer(e)?),
                SequenceOptions::MinValue(e) => SequenceOption::Min(e.as_ref().map(integer).transpose()?),
                SequenceOptions::MaxValue(e) => SequenceOption::Max(e.as_ref().map(integer).transpose()?),
                SequenceOptions::StartWith(e, _) => SequenceOption::Start(integer(e)?),
                SequenceOptions::Cache(e) => SequenceOption::Cache(integer(e)?),
                // The parser's flag says whether NO was there.
                SequenceOptions::Cycle(no) => SequenceOption::Cycle(!no),
            })
        })
        .collect()
}

fn integer(e: &Expr) -> Result<i64> {
    let text = e.to_string().replace(' ', "");
    text.parse().map_err(|_| Error::sql("22003", format!("value \"{text}\" is out of range for type bigint")))
}

/// Applies options, then checks them together, as PostgreSQL does: what is not named has its
/// default in a new sequence and stays as it is in one that is altered, the bounds of one that
/// changes its direction included.
fn apply(sequence: &mut Sequence, options: &[SequenceOption], is_new: bool) -> Result<()> {
    let mut start = None;
    let default = is_new.then_some(None);
    let (mut min, mut max) = (default, default);
    for option in options {
        match option {
            SequenceOption::Increment(0) => return Err(Error::sql("22023", "INCREMENT must not be zero")),
            SequenceOption::Increment(by) => sequence.increment = *by,
            SequenceOption::Min(v) => min = Some(*v),
            SequenceOption::Max(v) => max = Some(*v),
            SequenceOption::Start(v) => start = Some(*v),
            SequenceOption::Cycle(c) => sequence.cycle = *c,
            SequenceOption::Cache(n) if *n < 1 => {
                return Err(Error::sql("22023", format!("CACHE ({n}) must be greater than zero")));
            }
            SequenceOption::Cache(n) => sequence.cache = *n,
            SequenceOption::Restart(_) | SequenceOption::OwnedBy(_) => {}
        }
    }
    let ascending = sequence.increment > 0;
    let limit = max_of(&sequence.ty)?;
    if let Some(v) = min {
        sequence.min = v.unwrap_or(if ascending { 1 } else { -limit - 1 });
    }
    if let Some(v) = max {
        sequence.max = v.unwrap_or(if ascending { limit } else { -1 });
    }
    for (what, v) in [("MINVALUE", sequence.min), ("MAXVALUE", sequence.max)] {
        if v > limit || v < -limit - 1 {
            return Err(Error::sql(
                "22023",
                format!("{what} ({v}) is out of range for sequence data type {}", sequence.ty.name()),
            ));
        }
    }
    if sequence.min >= sequence.max {
        return Err(Error::sql("22023", format!("MINVALUE ({}) must be less than MAXVALUE ({})", sequence.min, sequence.max)));
    }
    match start {
        Some(v) => sequence.start = v,
        None if is_new => sequence.start = if ascending { sequence.min } else { sequence.max },
        None => {}
    }
    check_in_range("START", sequence.start, sequence)?;
    // Only a counter that was never drawn from begins there.
    if is_new || sequence.restart < sequence.min || sequence.restart > sequence.max {
        sequence.restart = sequence.start;
    }
    Ok(())
}

fn check_in_range(what: &str, value: i64, sequence: &Sequence) -> Result<()> {
    if value < sequence.min {
        return Err(Error::sql("22023", format!("{what} value ({value}) cannot be less than MINVALUE ({})", sequence.min)));
    }
    if value > sequence.max {
        return Err(Error::sql("22023", format!("{what} value ({value}) cannot be greater than MAXVALUE ({})", sequence.max)));
    }
    Ok(())
}
