//! `SHOW ESCROW FOR TABLE name [FOR ROW (value, …)]`.
//!
//! It is a query over the table: the statement becomes `SELECT * FROM [SHOW ESCROW …]`
//! ([`super::cockroach`]), and the name in brackets is read here when it is bound.

use super::cursor::Cursor;
use super::{Place, expression_at_start, tokens_of, without_space};
use meridian_base::Result;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a `SHOW ESCROW` is about.
#[derive(Clone, Debug, PartialEq)]
pub struct ShowEscrow {
    pub table: ast::ObjectName,
    /// The primary key of the only row that is shown.
    pub row: Option<Vec<ast::Expr>>,
}

/// The words that a statement begins with.
pub(super) const WORDS: [&str; 3] = ["show", "escrow", "for"];

/// The statement, if the text is one. 42601.
pub(crate) fn show_escrow(text: &str) -> Result<Option<ShowEscrow>> {
    let tokens = without_space(tokens_of(&PostgreSqlDialect {}, text)?);
    let place = Place { text };
    let mut c = Cursor::new(&tokens, &place);
    if !c.take(&WORDS) {
        return Ok(None);
    }
    c.expect(&["table"])?;
    let table = c.object_name()?;
    let row = if c.take(&["for", "row"]) { Some(row(&mut c)?) } else { None };
    c.end()?;
    Ok(Some(ShowEscrow { table, row }))
}

fn row(c: &mut Cursor) -> Result<Vec<ast::Expr>> {
    if c.peek() != Some(&Token::LParen) {
        return c.fail();
    }
    match c.operand()? {
        ast::Expr::Tuple(values) => Ok(values),
        ast::Expr::Nested(value) => Ok(vec![*value]),
        _ => c.fail(),
    }
}

impl Cursor<'_> {
    /// An expression, as far as it goes.
    fn operand(&mut self) -> Result<ast::Expr> {
        let rest: &[TokenWithSpan] = self.rest();
        let (e, length) = expression_at_start(rest, self.place())?;
        self.skip(length);
        Ok(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_is_a_list_of_expressions() {
        let shown = |text: &str| show_escrow(text).map(|found| found.map(|f| f.row.map(|r| r.len())));
        assert_eq!(shown("SHOW ESCROW FOR TABLE s.\"T\""), Ok(Some(None)));
        assert_eq!(shown("show escrow for table t for row ('it''s', $1, -2)"), Ok(Some(Some(3))));
        assert_eq!(shown("show escrow for table t for row (now())"), Ok(Some(Some(1))));
        assert_eq!(shown("show regions"), Ok(None));
        for wrong in ["table", "table t for", "table t for row", "table t for row ()", "table t for row (1) + 1", "table t x"] {
            let e = shown(&format!("show escrow for {wrong}")).expect_err(wrong);
            assert_eq!(e.sqlstate(), "42601", "{wrong}");
        }
    }
}
