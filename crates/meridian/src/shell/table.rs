//! Results as text, laid out as psql does, so that a script's output can be compared between the
//! two.

use super::wire::Column;

/// Types whose values are set to the right: the numbers, and what PostgreSQL counts with.
const RIGHT_ALIGNED: [u32; 10] = [20, 21, 23, 26, 28, 29, 700, 701, 790, 1700];

/// How results are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A line per row.
    Aligned,
    /// A line per column.
    Expanded,
}

/// A whole result, with a blank line behind it.
pub fn format(columns: &[Column], rows: &[Vec<Option<String>>], layout: Layout, title: Option<&str>) -> String {
    match layout {
        Layout::Aligned => aligned(columns, rows, title),
        Layout::Expanded => expanded(columns, rows, title),
    }
}

fn count_line(rows: usize) -> String {
    if rows == 1 { "(1 row)\n".into() } else { format!("({rows} rows)\n") }
}

fn lines(cell: &Option<String>) -> Vec<&str> {
    cell.as_deref().unwrap_or_default().split('\n').collect()
}

fn aligned(columns: &[Column], rows: &[Vec<Option<String>>], title: Option<&str>) -> String {
    let widths = widths(columns, rows);
    let mut out = String::new();
    if let Some(title) = title {
        let total = widths.iter().sum::<usize>() + (3 * widths.len()).saturating_sub(1);
        out += &format!("{}{title}\n", " ".repeat(total.saturating_sub(width(title)) / 2));
    }
    let heads: Vec<String> = columns.iter().zip(&widths).map(|(c, w)| format!(" {} ", centered(&c.name, *w))).collect();
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
    if columns.is_empty() {
        out += "--\n";
    } else {
        out += &format!("{}\n{}\n", heads.join("|"), rule.join("+"));
    }
    for row in rows.iter().filter(|r| !r.is_empty()) {
        push_row(&mut out, columns, row, &widths);
    }
    out + &count_line(rows.len()) + "\n"
}

/// One row; more than one line if a cell has more than one.
fn push_row(out: &mut String, columns: &[Column], row: &[Option<String>], widths: &[usize]) {
    let cells: Vec<Vec<&str>> = row.iter().map(lines).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    for line in 0..height {
        for (at, (cell, w)) in cells.iter().zip(widths).enumerate() {
            let is_last = at + 1 == cells.len();
            let text = cell.get(line).copied().unwrap_or_default();
            let goes_on = line + 1 < cell.len();
            let gap = " ".repeat(w - width(text).min(*w));
            out.push(' ');
            if is_last && line >= cell.len() {
                // Below its last line a cell at the end has nothing to align.
            } else if RIGHT_ALIGNED.contains(&columns[at].type_oid) {
                *out += &gap;
                *out += text;
            } else {
                *out += text;
                if !is_last || goes_on {
                    *out += &gap;
                }
            }
            match (goes_on, is_last) {
                (true, _) => out.push('+'),
                (false, false) => out.push(' '),
                (false, true) => {}
            }
            if !is_last {
                out.push('|');
            }
        }
        out.push('\n');
    }
}

fn expanded(columns: &[Column], rows: &[Vec<Option<String>>], title: Option<&str>) -> String {
    let name_width = columns.iter().map(|c| width(&c.name)).max().unwrap_or(0);
    let value_width = rows.iter().flatten().flat_map(lines).map(width).max().unwrap_or(0);
    let mut out = title.map(|t| format!("{t}\n")).unwrap_or_default();
    if rows.is_empty() {
        return out + &count_line(0) + "\n";
    }
    for (n, row) in rows.iter().enumerate() {
        let mut head = format!("-[ RECORD {} ]", n + 1);
        while head.len() < name_width + 1 {
            head.push('-');
        }
        if head.len() == name_width + 1 {
            head.push('+');
        }
        while head.len() < name_width + value_width + 3 {
            head.push('-');
        }
        out += &head;
        out.push('\n');
        for (column, cell) in columns.iter().zip(row) {
            let cell = lines(cell);
            for (line, text) in cell.iter().enumerate() {
                let name = if line == 0 { &*column.name } else { "" };
                let more = match line + 1 < cell.len() {
                    true => " ".repeat(value_width - width(text)) + "+",
                    false => String::new(),
                };
                out += &format!("{name}{} | {text}{more}\n", " ".repeat(name_width - width(name)));
            }
        }
    }
    out + "\n"
}

fn widths(columns: &[Column], rows: &[Vec<Option<String>>]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|c| width(&c.name)).collect();
    for row in rows {
        for (w, cell) in widths.iter_mut().zip(row) {
            *w = lines(cell).into_iter().map(width).fold(*w, usize::max);
        }
    }
    widths
}

fn centered(text: &str, to: usize) -> String {
    let gap = to - width(text).min(to);
    format!("{}{text}{}", " ".repeat(gap / 2), " ".repeat(gap - gap / 2))
}

/// Terminal columns a text takes: nothing for combining marks, two for East Asian wide characters
/// and emoji.
pub fn width(text: &str) -> usize {
    let of = |c: char| match c as u32 {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 => 2,
        0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(of: &[(&str, u32)]) -> Vec<Column> {
        of.iter().map(|(name, oid)| Column { name: name.to_string(), type_oid: *oid }).collect()
    }
    fn row(cells: &[Option<&str>]) -> Vec<Option<String>> {
        cells.iter().map(|c| c.map(String::from)).collect()
    }

    // The expected texts are psql 15's answers.

    #[test]
    fn numbers_to_the_right_and_long_cells_over_several_lines() {
        let columns = columns(&[("id", 23), ("name", 25), ("v", 1700)]);
        let rows = [row(&[Some("1"), Some("one"), Some("1.50")]), row(&[Some("22"), Some("a longer\nname"), None])];
        let expected = " id |   name   |  v   \n----+----------+------\n  1 | one      | 1.50\n 22 | a longer+|     \n    | name     | \n(2 rows)\n\n";
        assert_eq!(format(&columns, &rows, Layout::Aligned, None), expected);
    }

    #[test]
    fn a_text_at_the_end_of_a_row_has_no_padding() {
        let got = format(&columns(&[("a", 23), ("bbbb", 25)]), &[row(&[Some("1"), Some("x")])], Layout::Aligned, None);
        assert_eq!(got, " a | bbbb \n---+------\n 1 | x\n(1 row)\n\n");
    }

    #[test]
    fn wide_characters_keep_the_columns_straight() {
        let got = format(&columns(&[("日本", 25), ("b", 16)]), &[row(&[Some("é日本"), Some("t")])], Layout::Aligned, None);
        assert_eq!(got, " 日本  | b \n-------+---\n é日本 | t\n(1 row)\n\n");
    }

    #[test]
    fn nothing_is_shown_as_nothing() {
        assert_eq!(format(&columns(&[("?column?", 23)]), &[], Layout::Aligned, None), " ?column? \n----------\n(0 rows)\n\n");
        assert_eq!(format(&[], &[Vec::new()], Layout::Aligned, None), "--\n(1 row)\n\n");
        assert_eq!(format(&columns(&[("a", 23)]), &[], Layout::Expanded, None), "(0 rows)\n\n");
    }

    #[test]
    fn expanded_has_a_line_per_column() {
        let columns_ = columns(&[("id", 23), ("name", 25), ("v", 1700)]);
        let rows = [row(&[Some("1"), Some("one"), Some("1.50")]), row(&[Some("22"), Some("a longer\nname"), None])];
        let expected = "-[ RECORD 1 ]--\nid   | 1\nname | one\nv    | 1.50\n-[ RECORD 2 ]--\nid   | 22\nname | a longer+\n     | name\nv    | \n\n";
        assert_eq!(format(&columns_, &rows, Layout::Expanded, None), expected);
        let wide = columns(&[("a_very_long_column_name_that_is_wide", 23), ("b", 23)]);
        let got = format(&wide, &[row(&[Some("1"), Some("2")])], Layout::Expanded, None);
        assert_eq!(got.lines().next(), Some("-[ RECORD 1 ]------------------------+--"));
    }
}
