//! `CREATE TABLE … AS`: a table with the columns of a query, filled with its rows. It is a schema
//! change and an `INSERT` in one block: that of the client, or one of its own.

use super::run::Fetching;
use super::{Formats, Output, Session};
use crate::catalog::names::Name;
use crate::env::Environment;
use crate::parse::ast::{self, ColumnDef, CreateTable, Ident, WithData};
use crate::parse::{Kind, Locality, Statement, TransactionModes, parse_data_type, parse_one_statement};
use meridian_base::{Error, Result};
use std::sync::Arc;

impl<E: Environment> Session<E> {
    pub(super) async fn create_table_as(
        &mut self,
        statement: &Statement,
        table: &CreateTable,
        locality: Option<&Locality>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        let is_own = self.block.as_ref().is_none_or(|b| !b.explicit);
        self.side_effects += 1;
        if is_own {
            self.commit_block().await?;
            self.begin(&TransactionModes::default(), now, out)?;
        }
        let tag = match self.make_and_fill(statement, table, locality, is_own, now, out).await {
            Ok(tag) => tag,
            Err(e) => {
                if is_own {
                    self.roll_back();
                }
                return Err(e);
            }
        };
        if is_own {
            self.commit_block().await?;
        }
        out.command_complete(&tag);
        Ok(())
    }

    async fn make_and_fill(
        &mut self,
        statement: &Statement,
        table: &CreateTable,
        locality: Option<&Locality>,
        is_own: bool,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<String> {
        let (Some(query), []) = (&table.query, &table.columns[..]) else {
            return Err(Error::unsupported("the columns of CREATE TABLE AS are those of its query"));
        };
        let has_data = match &table.with_data {
            None => true,
            Some(WithData { data, statistics: None }) => *data,
            Some(_) => return Err(Error::unsupported("AND STATISTICS is not supported: a new table is counted by itself")),
        };
        let before = self.catalog();
        let planned = self.prepare(&statement.inner(ast::Statement::Query(query.clone())), &before, &[])?;
        if !planned.params.is_empty() {
            return Err(Error::sql("42P02", "there is no parameter $1"));
        }
        self.check_privileges(&planned, &before)?;
        let column = |c: &super::OutputColumn| {
            let data_type = parse_data_type(&c.ty.name())?;
            Ok(ColumnDef { name: Ident::with_quote('"', &c.name), data_type, options: Vec::new() })
        };
        let columns = planned.columns.iter().map(column).collect::<Result<_>>()?;
        let create = Box::new(CreateTable { columns, query: None, with_data: None, ..table.clone() });
        let kind = Kind::CreateTable { table: create, locality: locality.cloned(), indexes: Vec::new() };
        self.run_ddl(&Arc::new(Statement { kind, ..statement.clone() }), out).await?;
        let made = self.catalog().table(&self.names, &Name::from_ast(&table.name)?)?.id;
        if before.descriptors.contains_key(&made) || !has_data {
            // IF NOT EXISTS, or WITH NO DATA.
            return Ok("CREATE TABLE AS".to_string());
        }
        let block = self.block(now);
        block.loads = is_own.then_some(made);
        let insert = parse_one_statement(&format!("INSERT INTO {} {query}", table.name))?;
        let mut catalog = self.catalog();
        let mut prepared = Arc::new(self.prepare(&insert, &catalog, &[])?);
        if !self.admit(&prepared).await? {
            catalog = self.catalog();
            prepared = Arc::new(self.prepare(&insert, &catalog, &[])?);
        }
        let fetch = Fetching { prepared: &prepared, max_rows: None, formats: &Formats::AllText, read_only: false, now };
        let filled = self.run_plan(fetch, &[], out).await?;
        Ok(format!("SELECT {}", filled.rows))
    }
}
