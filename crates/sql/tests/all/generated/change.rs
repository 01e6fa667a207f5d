//! Statements that change rows, each in a transaction that is rolled back. What they return and
//! what the table holds then depends on no order among the rows.

use super::expr::{Col, Generator, Scope};
use super::query::{Query, columns};
use super::schema::{TABLES, Table, Ty};

impl Generator {
    pub fn change(&mut self) -> Query {
        let t = &TABLES[[4, 2, 1, 0, 5, 3][self.r.below(6)]];
        let scope = Scope { cols: columns(t, t.name), rows: t.rows.max(1), levels: 1, ..Scope::default() };
        let sql = match self.r.below(8) {
            0..=2 => self.update(t, &scope),
            3 | 4 => self.delete(t, &scope),
            5 => self.changing_with(t, &scope),
            _ => self.insert(t, &scope),
        };
        Query { sql, is_ordered: false, then: Some(format!("select * from {}", t.name)) }
    }
    fn returning(&mut self, scope: &Scope) -> String {
        if self.r.percent(50) {
            return " returning *".into();
        }
        let flat = Scope { levels: 0, ..scope.clone() };
        let items: Vec<String> = (0..self.r.below(3) + 1)
            .map(|_| {
                let ty = self.some_type();
                self.expr(ty, &flat, 2)
            })
            .collect();
        format!(" returning {}", items.join(", "))
    }
    /// Columns that are no part of a key, of another table's key, or of a foreign one.
    fn plain_columns(&mut self, t: &Table) -> Vec<(&'static str, Ty)> {
        let mut list: Vec<(&'static str, Ty)> =
            t.columns[t.key..].iter().filter(|(n, _)| !matches!(*n, "a_id" | "up")).copied().collect();
        let count = self.r.below(3) + 1;
        while list.len() > count {
            let out = self.r.below(list.len());
            list.swap_remove(out);
        }
        list
    }
    fn update(&mut self, t: &Table, scope: &Scope) -> String {
        let list = self.plain_columns(t);
        let other = &TABLES[self.r.below(TABLES.len())];
        // Of the rows that are joined, none has two partners: they are grouped.
        let joined = self.r.percent(35) && t.key == 1;
        let (mut inner, mut from, mut conds) = (scope.clone(), String::new(), Vec::new());
        if joined {
            let of = columns(other, "o");
            let key = of.iter().find(|c| matches!(c.ty, Ty::Int4 | Ty::Int8)).expect("a whole number").sql.clone();
            let (i, c) = (self.r.below(of.len()), &of);
            let (what, ty) = match c[i].ty {
                Ty::Bool => (format!("bool_or({})", c[i].sql), Ty::Bool),
                Ty::Uuid | Ty::Jsonb | Ty::Interval | Ty::Numeric | Ty::Float8 => ("count(*)".to_string(), Ty::Int8),
                ty => (format!("max({})", c[i].sql), ty),
            };
            from = format!(" from (select {key} as c1, {what} as c2 from {} as o group by {key}) as s", other.name);
            inner.cols.push(Col { sql: "s.c2".into(), ty });
            conds.push(format!("{}.id = s.c1", t.name));
        }
        if self.r.percent(80) {
            conds.push(self.bool_in_parentheses(&inner));
        }
        let mut sets: Vec<String> = list.iter().map(|(n, ty)| format!("{n} = {}", self.expr(*ty, &inner, 2))).collect();
        // What another row had before the statement.
        if t.key == 1 && self.r.percent(25) {
            let has_max = |ty: Ty| !matches!(ty, Ty::Bool | Ty::Uuid | Ty::Jsonb | Ty::Interval | Ty::Numeric | Ty::Float8);
            if let Some(i) = list.iter().position(|(_, ty)| has_max(*ty)) {
                let (n, op) = (list[i].0, self.r.of(&["<", ">", "<>"]));
                sets[i] = format!("{n} = (select max(me.{n}) from {0} as me where me.id {op} {0}.id)", t.name);
            }
        }
        let sets = match list.len() {
            2 if self.r.percent(30) => {
                let row: Vec<String> = list.iter().map(|(_, ty)| self.expr(*ty, &inner, 1)).collect();
                format!("({}, {}) = ({})", list[0].0, list[1].0, row.join(", "))
            }
            _ => sets.join(", "),
        };
        let filter = if conds.is_empty() { String::new() } else { format!(" where {}", conds.join(" and ")) };
        let returning = if joined { format!(" returning {}.*, s.c2", t.name) } else { self.returning(scope) };
        format!("update {} set {sets}{from}{filter}{returning}", t.name)
    }
    fn delete(&mut self, t: &Table, scope: &Scope) -> String {
        if self.r.percent(35) {
            let other = &TABLES[self.r.below(TABLES.len())];
            let mut both = scope.clone();
            both.cols.extend(columns(other, "o"));
            both.rows *= other.rows.max(1);
            both.levels = 0;
            let pairs: Vec<String> = (scope.cols.iter())
                .flat_map(|l| {
                    both.cols[scope.cols.len()..].iter().filter(|r| r.ty == l.ty).map(|r| format!("{} = {}", l.sql, r.sql))
                })
                .collect();
            if !pairs.is_empty() {
                let pair = &pairs[self.r.below(pairs.len())];
                let cond = self.bool_in_parentheses(&both);
                return format!(
                    "delete from {} using {} as o where {pair} and {cond} returning {}.*",
                    t.name, other.name, t.name
                );
            }
        }
        let cond = self.bool_in_parentheses(scope);
        format!("delete from {} where {cond}{}", t.name, self.returning(scope))
    }
    fn changing_with(&mut self, t: &Table, scope: &Scope) -> String {
        let w = self.alias("w");
        let cond = self.bool_in_parentheses(&Scope { levels: 0, ..scope.clone() });
        let change = match self.r.below(2) {
            0 => format!("delete from {} where {cond} returning *", t.name),
            _ => {
                let (n, ty) = self.plain_columns(t)[0];
                format!("update {} set {n} = {} where {cond} returning *", t.name, self.expr(ty, scope, 1))
            }
        };
        let seen = Scope { cols: columns(t, &w), rows: t.rows.max(1), ..Scope::default() };
        let filter = self.bool_in_parentheses(&seen);
        format!("with {w} as ({change}) select *, count(*) over () from {w} where {filter}")
    }
    fn insert(&mut self, t: &Table, scope: &Scope) -> String {
        let source = &TABLES[[4, 1, 0, 5, 3][self.r.below(5)]];
        let of = Scope { cols: columns(source, "o"), rows: source.rows.max(1), ..Scope::default() };
        let mut order: Vec<String> = of.cols.iter().map(|c| c.sql.clone()).collect();
        order.extend(
            of.cols
                .iter()
                .filter(|c| matches!(c.ty, Ty::Numeric | Ty::Float8 | Ty::Interval))
                .map(|c| format!("{}::text", c.sql)),
        );
        let number = format!("row_number() over (order by {})", order.join(", "));
        let list = self.plain_columns(t);
        let beyond = self.r.percent(40);
        let keys: Vec<(&str, String)> = match (t.key, beyond) {
            (0, _) => Vec::new(),
            (1, true) => vec![("id", format!("{number} + 1000"))],
            (1, false) => vec![("id", format!("{number} + {}", self.r.below(20)))],
            (_, true) => vec![("k", format!("{number} + 1000")), ("l", "'a'".into())],
            (_, false) => vec![("k", number.clone()), ("l", self.r.of(&["'a'", "''", "'new'"]).to_string())],
        };
        let mut names: Vec<&str> = keys.iter().map(|k| k.0).collect();
        names.extend(list.iter().map(|c| c.0));
        let mut values: Vec<String> = keys.iter().map(|k| k.1.clone()).collect();
        values.extend(list.iter().map(|(_, ty)| self.expr(*ty, &of, 2)));
        let key = if t.key == 1 { "id" } else { "k, l" };
        let conflict = match self.r.below(4) {
            _ if t.key == 0 => String::new(),
            0 => String::new(),
            1 => " on conflict do nothing".into(),
            _ => {
                let (n, ty) = list[0];
                let mut both = scope.clone();
                both.levels = 0;
                both.cols.extend(columns(t, "excluded"));
                let filter = if self.r.percent(40) { format!(" where {}", self.bool(&both, 1)) } else { String::new() };
                format!(" on conflict ({key}) do update set {n} = {}{filter}", self.expr(ty, &both, 2))
            }
        };
        let filter = if self.r.percent(40) { format!(" where {}", self.bool(&of, 1)) } else { String::new() };
        let returning = self.returning(scope);
        let (names, values) = (names.join(", "), values.join(", "));
        format!("insert into {} ({names}) select {values} from {} as o{filter}{conflict}{returning}", t.name, source.name)
    }
}
