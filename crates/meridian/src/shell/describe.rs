//! `\l`, `\dn`, `\d` and its family, asked of `pg_catalog`.
//!
//! Unlike psql's, the lists show every schema of the database, not only those in the search path:
//! the tables of a region often have a schema of their own.

use super::Shell;
use super::table::{self, Layout};
use super::wire::Column;
use meridian_base::{Error, Result};

/// Relations that are neither the system's nor about large values.
const OF_USERS: &str = "n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')";

/// Runs a listing command and returns what it prints.
pub(super) async fn run(shell: &mut Shell, listing: &str, pattern: &str) -> Result<String> {
    let listing = listing.trim_end_matches('+');
    match listing {
        "l" => databases(shell).await,
        "dn" => schemas(shell, pattern).await,
        "d" if !pattern.is_empty() => details(shell, pattern).await,
        "d" => relations(shell, &["r", "p", "v", "m", "S"], pattern).await,
        "dt" => relations(shell, &["r", "p"], pattern).await,
        "di" => relations(shell, &["i"], pattern).await,
        "dv" => relations(shell, &["v", "m"], pattern).await,
        "ds" => relations(shell, &["S"], pattern).await,
        other => Err(Error::sql("42601", format!("invalid command \\{other}; \\? lists the commands"))),
    }
}

async fn databases(shell: &mut Shell) -> Result<String> {
    let sql = "SELECT d.datname AS \"Name\", pg_catalog.pg_get_userbyid(d.datdba) AS \"Owner\", \
               pg_catalog.pg_encoding_to_char(d.encoding) AS \"Encoding\" FROM pg_catalog.pg_database d ORDER BY 1";
    let (columns, rows) = shell.ask(sql).await?;
    Ok(table::format(&columns, &rows, shell.layout, Some("List of databases")))
}

async fn schemas(shell: &mut Shell, pattern: &str) -> Result<String> {
    let name = matching("n.nspname", pattern);
    let sql = format!(
        "SELECT n.nspname AS \"Name\", pg_catalog.pg_get_userbyid(n.nspowner) AS \"Owner\" FROM pg_catalog.pg_namespace n \
         WHERE {OF_USERS}{name} ORDER BY 1"
    );
    let (columns, rows) = shell.ask(&sql).await?;
    Ok(table::format(&columns, &rows, shell.layout, Some("List of schemas")))
}

async fn relations(shell: &mut Shell, kinds: &[&str], pattern: &str) -> Result<String> {
    let kinds: Vec<String> = kinds.iter().map(|k| format!("'{k}'")).collect();
    let filter = relation_filter(pattern);
    let sql = format!(
        "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", \
         CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' \
         WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' END AS \"Type\", \
         pg_catalog.pg_get_userbyid(c.relowner) AS \"Owner\" \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ({}) AND {OF_USERS}{filter} ORDER BY 1, 2",
        kinds.join(", ")
    );
    let (columns, rows) = shell.ask(&sql).await?;
    if rows.is_empty() {
        return Ok(match pattern {
            "" => "Did not find any relations.\n".into(),
            _ => format!("Did not find any relation named \"{pattern}\".\n"),
        });
    }
    Ok(table::format(&columns, &rows, shell.layout, Some("List of relations")))
}

/// Every relation that the pattern names, in detail.
async fn details(shell: &mut Shell, pattern: &str) -> Result<String> {
    let filter = relation_filter(pattern);
    let users = if pattern.contains('.') { "true" } else { OF_USERS };
    let sql = format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {users}{filter} ORDER BY 2, 3"
    );
    let (_, found) = shell.ask(&sql).await?;
    if found.is_empty() {
        return Ok(format!("Did not find any relation named \"{pattern}\".\n"));
    }
    let mut out = String::new();
    for relation in found {
        let [oid, schema, name, kind] = &relation.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()[..] else {
            return Err(Error::internal("the catalog's answer has another shape"));
        };
        out += &detail(shell, oid, &format!("{schema}.{name}"), kind).await?;
    }
    Ok(out)
}

async fn detail(shell: &mut Shell, oid: &str, name: &str, kind: &str) -> Result<String> {
    let title = match kind {
        "r" | "p" => "Table",
        "v" | "m" => "View",
        "i" => "Index",
        "S" => "Sequence",
        _ => "Relation",
    };
    let sql = format!(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), \
         CASE WHEN a.attnotnull THEN 'not null' ELSE '' END, pg_catalog.pg_get_expr(d.adbin, d.adrelid) \
         FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    let (_, rows) = shell.ask(&sql).await?;
    let columns = ["Column", "Type", "Nullable", "Default"].map(|name| Column { name: name.into(), type_oid: 25 });
    let text = table::format(&columns, &rows, Layout::Aligned, Some(&format!("{title} \"{name}\"")));
    // The number of columns is nothing to tell.
    let mut out = text.rsplit_once("\n(").map_or(text.clone(), |(head, _)| format!("{head}\n"));
    if matches!(kind, "r" | "p") {
        out += &indexes(shell, oid).await?;
        out += &constraints(shell, oid).await?;
        out += &home(shell, name).await;
    }
    Ok(out + "\n")
}

async fn indexes(shell: &mut Shell, oid: &str) -> Result<String> {
    let sql = format!(
        "SELECT c.relname, i.indisprimary, i.indisunique, pg_catalog.pg_get_indexdef(i.indexrelid) \
         FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
         WHERE i.indrelid = {oid} ORDER BY i.indisprimary DESC, c.relname"
    );
    let (_, rows) = shell.ask(&sql).await?;
    let lines = rows.iter().filter_map(|row| {
        let [Some(name), is_primary, is_unique, Some(definition)] = &row[..] else { return None };
        let kind = match (is_primary.as_deref(), is_unique.as_deref()) {
            (Some("t"), _) => " PRIMARY KEY,",
            (_, Some("t")) => " UNIQUE,",
            _ => "",
        };
        let method = definition.split_once(" USING ").map_or(&**definition, |(_, method)| method);
        Some(format!("    \"{name}\"{kind} {method}\n"))
    });
    Ok(headed("Indexes:", lines.collect()))
}

async fn constraints(shell: &mut Shell, oid: &str) -> Result<String> {
    let mut out = String::new();
    for (title, condition, of) in [
        ("Check constraints:", format!("c.contype = 'c' AND c.conrelid = {oid}"), ""),
        ("Foreign-key constraints:", format!("c.contype = 'f' AND c.conrelid = {oid}"), ""),
        ("Referenced by:", format!("c.contype = 'f' AND c.confrelid = {oid}"), "TABLE"),
    ] {
        let sql = format!(
            "SELECT n.nspname, t.relname, c.conname, pg_catalog.pg_get_constraintdef(c.oid) FROM pg_catalog.pg_constraint c \
             JOIN pg_catalog.pg_class t ON t.oid = c.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace \
             WHERE {condition} ORDER BY 1, 2, 3"
        );
        let (_, rows) = shell.ask(&sql).await?;
        let lines = rows.iter().filter_map(|row| {
            let [Some(schema), Some(table), Some(name), Some(definition)] = &row[..] else { return None };
            Some(match of {
                "" => format!("    \"{name}\" {definition}\n"),
                of => format!("    {of} \"{schema}.{table}\" CONSTRAINT \"{name}\" {definition}\n"),
            })
        });
        out += &headed(title, lines.collect());
    }
    Ok(out)
}

/// Where a table's rows live. A server without regions does not say.
async fn home(shell: &mut Shell, name: &str) -> String {
    let is_alone = shell.connection.as_ref().is_some_and(|c| c.block() == super::Block::None);
    if !is_alone {
        // A question that fails would end the transaction.
        return String::new();
    }
    let Ok((columns, rows)) = shell.ask("SHOW TABLES").await else { return String::new() };
    let at = |name: &str| columns.iter().position(|c| c.name == name);
    let (Some(schema), Some(table), Some(locality)) = (at("schema_name"), at("table_name"), at("locality")) else {
        return String::new();
    };
    let text = |row: &Vec<Option<String>>, at: usize| row[at].clone().unwrap_or_default();
    let found = rows.iter().find(|row| format!("{}.{}", text(row, schema), text(row, table)) == name);
    let locality = found.map(|row| text(row, locality)).unwrap_or_default();
    if locality.is_empty() { String::new() } else { format!("Locality: {locality}\n") }
}

fn headed(title: &str, lines: Vec<String>) -> String {
    if lines.is_empty() { String::new() } else { format!("{title}\n{}", lines.concat()) }
}

/// Conditions on schema and name that follow from `schema.name`.
fn relation_filter(pattern: &str) -> String {
    match pattern.split_once('.') {
        Some((schema, name)) => matching("n.nspname", schema) + &matching("c.relname", name),
        None => matching("c.relname", pattern),
    }
}

/// A condition on a name; nothing for an empty pattern.
fn matching(column: &str, pattern: &str) -> String {
    if pattern.is_empty() || pattern == "*" {
        return String::new();
    }
    // Names in quotes are taken as they are; others are folded to lower case.
    let (text, is_quoted) = match pattern.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
        Some(inner) => (inner.to_string(), true),
        None => (pattern.to_lowercase(), false),
    };
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    if is_quoted || !text.contains(['*', '?']) {
        return format!(" AND {column} = {}", literal(&text));
    }
    // LIKE's own wildcards are ordinary characters here.
    let like: String = text
        .chars()
        .flat_map(|c| match c {
            '*' => vec!['%'],
            '?' => vec!['_'],
            '%' | '_' | '\\' => vec!['\\', c],
            other => vec![other],
        })
        .collect();
    format!(" AND {column} LIKE {}", literal(&like))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_conditions() {
        assert_eq!(relation_filter("Users"), " AND c.relname = 'users'");
        assert_eq!(relation_filter("\"Users\""), " AND c.relname = 'Users'");
        assert_eq!(relation_filter("us_*.?"), " AND n.nspname LIKE 'us\\_%' AND c.relname LIKE '_'");
        assert_eq!(relation_filter("*.o'brien"), " AND c.relname = 'o''brien'");
        assert_eq!(relation_filter(""), "");
    }
}
