//! Roles and privileges: `CREATE ROLE`, `GRANT`, `REVOKE`, `REASSIGN OWNED`, ….

use super::cursor::Cursor;
use super::role_statement::*;
use super::statement::Kind;
use meridian_base::{Error, Result};
use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Token;

/// `None` if it is none of these statements.
pub(super) fn parse(c: &mut Cursor) -> Result<Option<Kind>> {
    let statement = match () {
        _ if c.take(&["create", "role"]) || c.take(&["create", "group"]) => create(c, false)?,
        _ if c.sees(&["create", "user", "mapping"]) => return Ok(Some(Kind::Unsupported("CREATE USER MAPPING"))),
        _ if c.take(&["create", "user"]) => create(c, true)?,
        _ if c.sees(&["alter", "user", "mapping"]) => return Ok(Some(Kind::Unsupported("ALTER USER MAPPING"))),
        _ if c.take(&["alter", "group"]) => alter_group(c)?,
        _ if c.take(&["alter", "role"]) || c.take(&["alter", "user"]) => match alter(c)? {
            Some(statement) => statement,
            None => return Ok(Some(Kind::Unsupported("ALTER ROLE … SET"))),
        },
        _ if c.sees(&["drop", "user", "mapping"]) => return Ok(Some(Kind::Unsupported("DROP USER MAPPING"))),
        _ if c.take(&["drop", "role"]) || c.take(&["drop", "user"]) || c.take(&["drop", "group"]) => {
            let if_exists = c.take(&["if", "exists"]);
            RoleStatement::Drop { roles: specs(c)?, if_exists }
        }
        _ if c.take(&["drop", "owned", "by"]) => {
            let roles = specs(c)?;
            RoleStatement::DropOwned { roles, cascade: behavior(c) }
        }
        _ if c.take(&["reassign", "owned", "by"]) => {
            let from = specs(c)?;
            c.expect(&["to"])?;
            RoleStatement::Reassign { from, to: spec(c)? }
        }
        _ if c.take(&["comment", "on", "role"]) => {
            let role = spec(c)?;
            c.expect(&["is"])?;
            let comment = if c.take(&["null"]) { None } else { Some(string(c)?) };
            RoleStatement::Comment { role, comment }
        }
        _ if c.take(&["grant"]) => grant(c, false, false)?,
        _ if c.take(&["revoke", "admin", "option", "for"]) => grant(c, true, true)?,
        _ if c.take(&["revoke", "grant", "option", "for"]) => grant(c, true, true)?,
        _ if c.take(&["revoke"]) => grant(c, true, false)?,
        _ => return Ok(None),
    };
    c.end()?;
    Ok(Some(Kind::Role(Box::new(statement))))
}

fn create(c: &mut Cursor, login: bool) -> Result<RoleStatement> {
    let name = role_name(c)?;
    let _ = c.take(&["with"]);
    let mut options = options(c, true)?;
    options.login = options.login.or(Some(login));
    Ok(RoleStatement::Create { name, options })
}

fn alter(c: &mut Cursor) -> Result<Option<RoleStatement>> {
    if c.take(&["all"]) {
        let sets = c.sees(&["set"]) || c.sees(&["reset"]) || c.sees(&["in", "database"]);
        return if sets { Ok(None) } else { c.fail() };
    }
    let role = spec(c)?;
    if c.take(&["rename", "to"]) {
        let new = role_name(c)?;
        return match role {
            RoleSpec::Name(role) => Ok(Some(RoleStatement::Rename { role, new })),
            _ => c.fail(),
        };
    }
    if c.sees(&["set"]) || c.sees(&["reset"]) || c.sees(&["in", "database"]) {
        return Ok(None);
    }
    let _ = c.take(&["with"]);
    Ok(Some(RoleStatement::Alter { role, options: options(c, false)? }))
}

fn alter_group(c: &mut Cursor) -> Result<RoleStatement> {
    let role = spec(c)?;
    if c.take(&["rename", "to"]) {
        let RoleSpec::Name(role) = role else { return c.fail() };
        return Ok(RoleStatement::Rename { role, new: role_name(c)? });
    }
    let mut options = RoleOptions::default();
    if c.take(&["add", "user"]) {
        options.members = specs(c)?;
    } else {
        c.expect(&["drop", "user"])?;
        options.leaving = specs(c)?;
    }
    Ok(RoleStatement::Alter { role, options })
}

fn options(c: &mut Cursor, is_new: bool) -> Result<RoleOptions> {
    let mut o = RoleOptions::default();
    fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(Error::sql("42601", "conflicting or redundant options")),
        }
    }
    while !c.is_done() {
        match () {
            _ if c.take(&["superuser"]) => once(&mut o.superuser, true)?,
            _ if c.take(&["nosuperuser"]) => once(&mut o.superuser, false)?,
            _ if c.take(&["createdb"]) => once(&mut o.create_db, true)?,
            _ if c.take(&["nocreatedb"]) => once(&mut o.create_db, false)?,
            _ if c.take(&["createrole"]) => once(&mut o.create_role, true)?,
            _ if c.take(&["nocreaterole"]) => once(&mut o.create_role, false)?,
            _ if c.take(&["inherit"]) => once(&mut o.inherit, true)?,
            _ if c.take(&["noinherit"]) => once(&mut o.inherit, false)?,
            _ if c.take(&["login"]) => once(&mut o.login, true)?,
            _ if c.take(&["nologin"]) => once(&mut o.login, false)?,
            _ if c.take(&["replication"]) => once(&mut o.replication, true)?,
            _ if c.take(&["noreplication"]) => once(&mut o.replication, false)?,
            _ if c.take(&["bypassrls"]) => once(&mut o.bypass_rls, true)?,
            _ if c.take(&["nobypassrls"]) => once(&mut o.bypass_rls, false)?,
            _ if c.take(&["connection", "limit"]) => {
                let limit = c.integer()?;
                match i32::try_from(limit).ok().filter(|l| *l >= -1) {
                    Some(limit) => once(&mut o.connection_limit, limit)?,
                    None => return Err(Error::sql("22023", format!("invalid connection limit: {limit}"))),
                }
            }
            _ if c.take(&["valid", "until"]) => once(&mut o.valid_until, string(c)?)?,
            _ if c.take(&["password", "null"]) => once(&mut o.password, Password::None)?,
            _ if c.take(&["encrypted", "password"]) || c.take(&["password"]) => {
                once(&mut o.password, Password::Text(string(c)?))?;
            }
            _ if c.sees(&["unencrypted", "password"]) => {
                return Err(Error::unsupported("UNENCRYPTED PASSWORD is no longer supported")
                    .hint("Remove UNENCRYPTED to store the password in encrypted form instead."));
            }
            _ if is_new && c.take(&["sysid"]) => {
                c.integer()?;
                c.ignored.push("SYSID can no longer be specified".into());
            }
            _ if is_new && (c.take(&["in", "role"]) || c.take(&["in", "group"])) => o.member_of.extend(specs(c)?),
            _ if is_new && (c.take(&["role"]) || c.take(&["user"])) => o.members.extend(specs(c)?),
            _ if is_new && c.take(&["admin"]) => o.admins.extend(specs(c)?),
            _ => return c.fail(),
        }
    }
    Ok(o)
}

/// `GRANT` and `REVOKE`, behind what says which.
fn grant(c: &mut Cursor, revokes: bool, option: bool) -> Result<RoleStatement> {
    let words = words(c)?;
    if !c.take(&["on"]) {
        return members(c, words, revokes, option);
    }
    let on = grant_on(c)?;
    c.expect(&[if revokes { "from" } else { "to" }])?;
    let roles = grantees(c)?;
    let option = option || (!revokes && c.take(&["with", "grant", "option"]));
    let granted_by = granted_by(c)?;
    let cascade = revokes && behavior(c);
    let is_all = matches!(&words[..], [w] if w == "all" || w == "all privileges");
    let privileges = if is_all { None } else { Some(words) };
    Ok(RoleStatement::Privileges(GrantPrivileges { privileges, on, roles, revokes, option, granted_by, cascade }))
}

/// Privileges or roles: words with commas between.
fn words(c: &mut Cursor) -> Result<Vec<String>> {
    let mut words = Vec::new();
    loop {
        let word = match c.take(&["all", "privileges"]) {
            true => "all privileges".to_string(),
            false => c.name()?,
        };
        words.push(word);
        if c.peek() == Some(&Token::LParen) {
            return Err(Error::unsupported("privileges on columns are not supported yet").hint("Grant on the whole table."));
        }
        if !c.take_token(&Token::Comma) {
            return Ok(words);
        }
    }
}

fn members(c: &mut Cursor, roles: Vec<String>, revokes: bool, option: bool) -> Result<RoleStatement> {
    c.expect(&[if revokes { "from" } else { "to" }])?;
    let members = specs(c)?;
    let admin = option || (!revokes && c.take(&["with", "admin", "option"]));
    let granted_by = granted_by(c)?;
    let cascade = revokes && behavior(c);
    Ok(RoleStatement::Members(Members { roles, members, revokes, admin, granted_by, cascade }))
}

fn grant_on(c: &mut Cursor) -> Result<GrantOn> {
    if c.take(&["all", "tables", "in", "schema"]) {
        return Ok(GrantOn::AllTables(names(c)?));
    }
    if c.take(&["all", "sequences", "in", "schema"]) {
        return Ok(GrantOn::AllSequences(names(c)?));
    }
    const OTHERS: [(&[&str], &str); 14] = [
        (&["all", "functions", "in", "schema"], "functions"),
        (&["all", "procedures", "in", "schema"], "procedures"),
        (&["all", "routines", "in", "schema"], "routines"),
        (&["function"], "functions"),
        (&["procedure"], "procedures"),
        (&["routine"], "routines"),
        (&["language"], "languages"),
        (&["large", "object"], "large objects"),
        (&["tablespace"], "tablespaces"),
        (&["type"], "types"),
        (&["domain"], "domains"),
        (&["parameter"], "parameters"),
        (&["foreign", "data", "wrapper"], "foreign data"),
        (&["foreign", "server"], "foreign data"),
    ];
    if let Some((_, what)) = OTHERS.iter().find(|(words, _)| c.sees(words)) {
        return Err(Error::unsupported(format!("privileges on {what} are not supported")));
    }
    Ok(match () {
        _ if c.take(&["schema"]) => GrantOn::Schemas(names(c)?),
        _ if c.take(&["database"]) => GrantOn::Databases(names(c)?),
        _ if c.take(&["sequence"]) => GrantOn::Sequences(objects(c)?),
        _ => {
            let _ = c.take(&["table"]);
            GrantOn::Tables(objects(c)?)
        }
    })
}

fn granted_by(c: &mut Cursor) -> Result<Option<RoleSpec>> {
    if c.take(&["granted", "by"]) { spec(c).map(Some) } else { Ok(None) }
}

/// Whether `CASCADE` is said.
fn behavior(c: &mut Cursor) -> bool {
    let _ = c.take(&["restrict"]);
    c.take(&["cascade"])
}

fn objects(c: &mut Cursor) -> Result<Vec<ObjectName>> {
    let mut all = vec![c.object_name()?];
    while c.take_token(&Token::Comma) {
        all.push(c.object_name()?);
    }
    Ok(all)
}

fn names(c: &mut Cursor) -> Result<Vec<String>> {
    let mut all = vec![c.name()?];
    while c.take_token(&Token::Comma) {
        all.push(c.name()?);
    }
    Ok(all)
}

fn grantees(c: &mut Cursor) -> Result<Vec<RoleSpec>> {
    let mut all = Vec::new();
    loop {
        let _ = c.take(&["group"]);
        all.push(spec(c)?);
        if !c.take_token(&Token::Comma) {
            return Ok(all);
        }
    }
}

fn specs(c: &mut Cursor) -> Result<Vec<RoleSpec>> {
    let mut all = vec![spec(c)?];
    while c.take_token(&Token::Comma) {
        all.push(spec(c)?);
    }
    Ok(all)
}

pub(super) fn spec(c: &mut Cursor) -> Result<RoleSpec> {
    let is_quoted = matches!(c.peek(), Some(Token::Word(w)) if w.quote_style.is_some());
    let name = c.name()?;
    Ok(match name.as_str() {
        "current_user" | "current_role" if !is_quoted => RoleSpec::CurrentUser,
        "session_user" if !is_quoted => RoleSpec::SessionUser,
        "public" => RoleSpec::Public,
        "none" => return Err(reserved("none")),
        _ => RoleSpec::Name(super::truncate(name)),
    })
}

/// The name of a role that is to be made.
fn role_name(c: &mut Cursor) -> Result<String> {
    match spec(c)? {
        RoleSpec::Name(name) => Ok(name),
        RoleSpec::Public => Err(reserved("public")),
        RoleSpec::CurrentUser => Err(Error::sql("42939", "CURRENT_USER cannot be used as a role name here")),
        RoleSpec::SessionUser => Err(Error::sql("42939", "SESSION_USER cannot be used as a role name here")),
    }
}

/// 42939.
pub(crate) fn reserved(name: &str) -> Error {
    Error::sql("42939", format!("role name \"{name}\" is reserved"))
}

/// A string literal of any kind.
pub(super) fn string(c: &mut Cursor) -> Result<String> {
    let text = match c.peek() {
        Some(Token::SingleQuotedString(s) | Token::EscapedStringLiteral(s) | Token::UnicodeStringLiteral(s)) => s.clone(),
        Some(Token::DollarQuotedString(s)) => s.value.clone(),
        _ => return c.fail(),
    };
    c.skip(1);
    Ok(text)
}

/// A text for others to see: without the passwords in it.
pub fn without_passwords(text: &str) -> std::borrow::Cow<'_, str> {
    const WORD: &str = "password";
    // Every query is looked at: most have no such word.
    let has_word = |at: usize| text.as_bytes().get(at..at + WORD.len()).is_some_and(|w| w.eq_ignore_ascii_case(WORD.as_bytes()));
    if !text.bytes().enumerate().any(|(at, b)| b | 0x20 == b'p' && has_word(at)) {
        return text.into();
    }
    let lower = text.to_ascii_lowercase();
    if !["role", "user", "group"].iter().any(|w| lower.contains(w)) {
        return text.into();
    }
    let is_of_role = ["create", "alter"].iter().any(|verb| {
        let object = lower.trim_start().strip_prefix(verb).unwrap_or_default().trim_start();
        ["role", "user", "group"].iter().any(|what| object.starts_with(what))
    });
    let (mut out, mut from) = (String::new(), 0);
    while let Some(at) = lower[from..].find(WORD).map(|at| from + at + WORD.len()) {
        let after = &text[at..];
        let spaces = after.len() - after.trim_start().len();
        let rest = &after[spaces..];
        // A literal of any kind begins here, or a comment may hide one. What follows the word in a
        // statement about roles is meant to be one.
        let begins =
            is_of_role || rest.starts_with(['\'', '$', '-', '/']) || rest.get(1..2) == Some("'") || rest.get(1..3) == Some("&'");
        out.push_str(&text[from..at]);
        from = at;
        if begins {
            // Where a literal ends depends on its kind: nothing of what follows is shown.
            out.push_str(" '********'");
            return out.into();
        }
    }
    out.push_str(&text[from..]);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(text: &str) -> RoleStatement {
        match crate::parse::parse_one_statement(text).unwrap().kind {
            Kind::Role(r) => *r,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn users_log_in_and_roles_do_not() {
        for (text, login) in [("create user a", true), ("create role a", false), ("create user a nologin", false)] {
            let RoleStatement::Create { options, .. } = role(text) else { panic!("{text}") };
            assert_eq!(options.login, Some(login), "{text}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for text in [
            "create role a password 'secret'",
            "ALTER USER a WITH ENCRYPTED PASSWORD   E'secret''s' valid until 'x'",
            "alter role a password $x$secret$x$",
            "alter role a password /* 'x' */ 'secret'",
            "alter role a password U&'secret'; select 1",
            "alter role a password secret",
            "create user a password \"secret\"",
        ] {
            assert!(!without_passwords(text).contains("secret"), "{text}");
        }
        for text in ["select password from users", "create role a"] {
            assert_eq!(without_passwords(text), text);
        }
        // What only looks like one is cut as well.
        assert_eq!(without_passwords("select 'password' as user"), "select 'password '********'");
        assert!(!format!("{:?}", role("create role a password 'secret'")).contains("secret"));
    }

    #[test]
    fn grants_of_privileges_and_of_roles_are_told_apart() {
        assert!(matches!(role("grant select, insert on t, s.u to a, public with grant option"), RoleStatement::Privileges(g)
            if g.option && g.roles.len() == 2 && g.privileges.as_ref().is_some_and(|p| p.len() == 2)));
        assert!(matches!(role("revoke a from b cascade"), RoleStatement::Members(m) if m.revokes && m.cascade));
        assert!(matches!(role("revoke grant option for all on all tables in schema s from a"), RoleStatement::Privileges(g)
            if g.option && g.privileges.is_none() && matches!(g.on, GrantOn::AllTables(_))));
        let error = crate::parse::parse_one_statement("grant select (a) on t to b").unwrap_err();
        assert_eq!(error.sqlstate(), "0A000");
    }
}
