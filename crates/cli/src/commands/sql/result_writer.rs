//! Rows of an answer: a table that fits the terminal, JSON Lines, or CSV.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Map, Value};
use unspool_index::tables::sql_query::{SqlCell, SqlRowSink};
use unspool_show::layout::{behind, cut};
use unspool_show::style::{ConversationStyle, StyledLine, TextStyle};
use unspool_show::table::{TableBody, TableColumn, TextTable};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlOutputFormat {
    /// For people.
    Table,
    /// One object per row.
    Json,
    /// RFC 4180.
    Csv,
    /// The same, with no text that a spreadsheet takes for a formula.
    Excel,
}

/// A column of text takes at least this many columns, if its cells do.
const LEAST: usize = 8;

/// As many rows are looked at before a table is laid out …
const ROWS: usize = 500;

/// … or as many bytes, whichever comes first: what is held does not grow with the answer.
const BYTES: usize = 1 << 20;

/// Prints an answer as it comes; of a table, the first rows say how wide it is.
pub struct SqlResultWriter<'a, W> {
    form: SqlOutputFormat,
    out: W,
    style: &'a ConversationStyle,
    names: Vec<String>,
    /// Rows that wait for the layout, and their bytes.
    rows: Vec<Vec<StyledLine>>,
    held: usize,
    columns: Vec<ColumnContent>,
    layout: Option<SqlRowLayout>,
}

/// What the first rows have in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnContent {
    Nothing,
    Numbers,
    Text,
}

/// How rows of a table stand.
enum SqlRowLayout {
    /// Beside each other.
    Table(TableBody),
    /// One column below the other, because a row is too long; with the number of rows so far.
    Records(u64),
}

impl<'a, W: Write> SqlResultWriter<'a, W> {
    /// An answer in this form.
    pub fn new(
        form: SqlOutputFormat,
        out: W,
        style: &'a ConversationStyle,
    ) -> SqlResultWriter<'a, W> {
        SqlResultWriter {
            form,
            out,
            style,
            names: Vec::new(),
            rows: Vec::new(),
            held: 0,
            columns: Vec::new(),
            layout: None,
        }
    }

    /// Prints what is left.
    pub fn finish(mut self) -> io::Result<()> {
        if self.form == SqlOutputFormat::Table && self.layout.is_none() && !self.names.is_empty() {
            if self.fits() {
                self.table().write(&mut self.out, self.style)?;
            } else {
                self.records(0)?;
            }
        }
        self.out.flush()
    }

    /// Lays out the first rows when more follow.
    fn begin(&mut self) -> io::Result<()> {
        let layout = if self.fits() {
            SqlRowLayout::Table(self.table().begin(&mut self.out, self.style)?)
        } else {
            SqlRowLayout::Records(self.records(0)?)
        };
        self.layout = Some(layout);
        // They can be read while the rest is looked for.
        self.out.flush()
    }

    /// Whether all columns fit beside each other when each gives what it can.
    fn fits(&self) -> bool {
        let need = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].width());
            let need = cells.max().unwrap_or(0).max(self.names[at].len());
            if self.columns[at] == ColumnContent::Text {
                need.min(LEAST)
            } else {
                need
            }
        };
        let widths: usize = (0..self.names.len()).map(|at| need(at) + 2).sum();
        self.rows.is_empty() || widths <= self.style.width + 2
    }

    fn table(&mut self) -> TextTable {
        let columns = self.names.iter().zip(&self.columns);
        let columns = columns.map(|(name, holds)| match name.as_str() {
            _ if *holds == ColumnContent::Numbers => TableColumn::number(name),
            "path" | "project" | "cwd" => TableColumn::path(name, LEAST),
            _ => TableColumn::flexible(name, LEAST),
        });
        let mut table = TextTable::new(columns.collect());
        table.rows = std::mem::take(&mut self.rows);
        table
    }

    /// One column below the other: nothing is lost where a row is too long. Says how many
    /// there are now.
    fn records(&mut self, before: u64) -> io::Result<u64> {
        let mut n = before;
        for row in std::mem::take(&mut self.rows) {
            n += 1;
            self.one_below_the_other(n, &row)?;
        }
        Ok(n)
    }

    fn one_below_the_other(&mut self, n: u64, row: &[StyledLine]) -> io::Result<()> {
        let names = self.names.iter().map(String::len);
        let width = names.max().unwrap_or(0) + 2;
        let room = self.style.width.saturating_sub(width).max(LEAST);
        StyledLine::of(TextStyle::DIM, &format!("── {n} "))
            .write(&mut self.out, self.style.color)?;
        for (name, cell) in self.names.iter().zip(row) {
            let name = StyledLine::of(TextStyle::DIM, &format!("{name:<width$}"));
            behind(&name, &cut(cell, room)).write(&mut self.out, self.style.color)?;
        }
        Ok(())
    }

    fn line(&mut self, cells: &[SqlCell<'_>]) -> io::Result<()> {
        let row: Vec<StyledLine> = cells.iter().map(shown).collect();
        match &mut self.layout {
            Some(SqlRowLayout::Table(below)) => {
                return below.row(&mut self.out, &row, |at| is_number(&cells[at]));
            }
            Some(SqlRowLayout::Records(n)) => {
                *n += 1;
                let n = *n;
                return self.one_below_the_other(n, &row);
            }
            None => {}
        }
        for (holds, cell) in self.columns.iter_mut().zip(cells) {
            *holds = match cell {
                SqlCell::Null => *holds,
                cell if is_number(cell) && *holds != ColumnContent::Text => ColumnContent::Numbers,
                _ => ColumnContent::Text,
            };
        }
        self.held += row.iter().map(|cell| cell.text().len()).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() >= ROWS || self.held >= BYTES {
            self.begin()?;
        }
        Ok(())
    }

    fn object(&mut self, cells: &[SqlCell<'_>]) -> io::Result<()> {
        let names = self.names.iter().cloned();
        let object: Map<String, Value> = names.zip(cells.iter().map(json)).collect();
        serde_json::to_writer(&mut self.out, &object)?;
        self.out.write_all(b"\n")
    }

    fn record<T: AsRef<str>>(&mut self, fields: impl Iterator<Item = T>) -> io::Result<()> {
        for (at, field) in fields.enumerate() {
            if at > 0 {
                self.out.write_all(b",")?;
            }
            self.out.write_all(quoted(field.as_ref()).as_bytes())?;
        }
        self.out.write_all(b"\r\n")
    }
}

impl<W: Write> SqlRowSink for SqlResultWriter<'_, W> {
    fn columns(&mut self, names: &[&str]) -> io::Result<()> {
        self.names = match self.form {
            SqlOutputFormat::Json => unique(names),
            SqlOutputFormat::Table | SqlOutputFormat::Csv | SqlOutputFormat::Excel => {
                names.iter().map(|name| (*name).to_owned()).collect()
            }
        };
        self.columns = vec![ColumnContent::Nothing; names.len()];
        match self.form {
            SqlOutputFormat::Csv => self.record(names.iter()),
            SqlOutputFormat::Excel => self.record(names.iter().map(|name| no_formula(name))),
            SqlOutputFormat::Table | SqlOutputFormat::Json => Ok(()),
        }
    }

    fn row(&mut self, cells: &[SqlCell<'_>]) -> io::Result<()> {
        match self.form {
            SqlOutputFormat::Json => self.object(cells),
            SqlOutputFormat::Csv => self.record(cells.iter().map(plain)),
            SqlOutputFormat::Excel => self.record(cells.iter().map(|cell| match cell {
                SqlCell::Text(text) => no_formula(text).into_owned(),
                other => plain(other),
            })),
            SqlOutputFormat::Table => self.line(cells),
        }
    }
}

/// Names that an object can have: those that come again get a number.
fn unique(names: &[&str]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for name in names {
        let mut unique = (*name).to_owned();
        let mut n = 2;
        while !seen.insert(unique.clone()) {
            unique = format!("{name}_{n}");
            n += 1;
        }
        out.push(unique);
    }
    out
}

fn json(cell: &SqlCell<'_>) -> Value {
    match cell {
        SqlCell::Null => Value::Null,
        SqlCell::Integer(number) => (*number).into(),
        SqlCell::Real(number) => (*number).into(),
        SqlCell::Text(text) => text.as_ref().into(),
        SqlCell::Blob(bytes) => hex(bytes).into(),
    }
}

fn is_number(cell: &SqlCell<'_>) -> bool {
    matches!(cell, SqlCell::Integer(_) | SqlCell::Real(_))
}

/// A cell of a table: what may have lines stands on one.
fn shown(cell: &SqlCell<'_>) -> StyledLine {
    let text = plain(cell).replace(['\n', '\r', '\t'], " ");
    StyledLine::of(TextStyle::PLAIN, &text)
}

fn plain(cell: &SqlCell<'_>) -> String {
    match cell {
        SqlCell::Null => String::new(),
        SqlCell::Integer(number) => number.to_string(),
        SqlCell::Real(number) => number.to_string(),
        SqlCell::Text(text) => text.clone().into_owned(),
        SqlCell::Blob(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// Text that a spreadsheet shows rather than computes. Some skip blanks before they look, some
/// take the wide forms of the signs for the signs.
fn no_formula(text: &str) -> Cow<'_, str> {
    let begins = |c: char| {
        matches!(
            c,
            '=' | '+' | '-' | '@' | '\u{ff1d}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff20}'
        )
    };
    let is_risky = text.starts_with(['\t', '\r', '\n'])
        || text
            .trim_start_matches(|c: char| c.is_whitespace() || c.is_control())
            .starts_with(begins);
    match is_risky {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(form: SqlOutputFormat, width: usize) -> String {
        let mut out = Vec::new();
        let style = ConversationStyle {
            width,
            ..ConversationStyle::default()
        };
        let mut answer = SqlResultWriter::new(form, &mut out, &style);
        answer.columns(&["id", "n", "id"]).unwrap();
        let text = |text: &'static str| SqlCell::Text(text.into());
        let rows = [
            [text("a,\"b\""), SqlCell::Integer(-3), SqlCell::Null],
            [
                text("x\ny\u{1b}[31m"),
                SqlCell::Real(0.5),
                SqlCell::Blob(&[1, 255]),
            ],
        ];
        for row in &rows {
            answer.row(row).unwrap();
        }
        answer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let expected = "id,n,id\r\n\"a,\"\"b\"\"\",-3,\r\n\"x\ny\u{1b}[31m\",0.5,01ff\r\n";
        assert_eq!(told(SqlOutputFormat::Csv, 80), expected);
    }

    #[test]
    fn a_spreadsheet_gets_no_formula_and_its_numbers() {
        let mut out = Vec::new();
        let style = ConversationStyle::default();
        let mut answer = SqlResultWriter::new(SqlOutputFormat::Excel, &mut out, &style);
        answer.columns(&["=1+1", "n"]).unwrap();
        for text in [
            "=cmd|' /C calc'!A0",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "  =1",
            "=\"a\",b",
            "a=1",
            "",
        ] {
            let row = [SqlCell::Text(text.into()), SqlCell::Integer(-3)];
            answer.row(&row).unwrap();
        }
        answer.row(&[SqlCell::Real(-0.5), SqlCell::Null]).unwrap();
        answer.finish().unwrap();
        let expected = "'=1+1,n\r\n'=cmd|' /C calc'!A0,-3\r\n'+1,-3\r\n'-1,-3\r\n'@SUM(A1),-3\r\n'\t=1,-3\r\n\"'\r=1\",-3\r\n'  =1,-3\r\n\"'=\"\"a\"\",b\",-3\r\na=1,-3\r\n,-3\r\n-0.5,\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// An answer printed on a width of 40, and how many rows were held at most.
    fn streamed(
        rows: impl Iterator<Item = Vec<SqlCell<'static>>>,
        names: &[&str],
    ) -> (String, usize) {
        let mut out = Vec::new();
        let style = ConversationStyle {
            width: 40,
            ..ConversationStyle::default()
        };
        let mut answer = SqlResultWriter::new(SqlOutputFormat::Table, &mut out, &style);
        answer.columns(names).unwrap();
        let mut most = 0;
        for row in rows {
            answer.row(&row).unwrap();
            most = most.max(answer.rows.len());
        }
        answer.finish().unwrap();
        (String::from_utf8(out).unwrap(), most)
    }

    #[test]
    fn a_long_table_is_not_held_and_loses_no_row() {
        let rows = (0..3000).map(|n| vec![SqlCell::Integer(n), SqlCell::Text("x".into())]);
        let (out, most) = streamed(rows, &["n", "text"]);
        assert!(most < 500, "{most} rows were held");
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        assert_eq!(lines.len(), 3001);
        for (n, line) in lines[1..].iter().enumerate() {
            assert_eq!(line.trim_start(), format!("{n}  x"));
        }
    }

    #[test]
    fn few_rows_with_much_text_are_not_held_either() {
        let long = || SqlCell::Text("x".repeat(BYTES / 4).into());
        let (out, most) = streamed((0..20).map(|_| vec![long()]), &["text"]);
        assert!(most < 5, "{most} rows were held");
        assert_eq!(out.lines().count(), 21);
    }

    #[test]
    fn late_text_is_cut_and_late_numbers_are_not() {
        let number = |n: i64| {
            vec![
                SqlCell::Null,
                SqlCell::Text("ok".into()),
                SqlCell::Integer(n),
            ]
        };
        let late = vec![
            SqlCell::Integer(123_456_789_012),
            SqlCell::Text("much longer than before".into()),
            SqlCell::Integer(1_000_000),
        ];
        let rows = (0..ROWS).map(|_| number(7)).chain([late]);
        let (out, _) = streamed(rows, &["late", "text", "n"]);
        let last = out.lines().last().unwrap().trim_end();
        assert_eq!(last, "123456789012  much lo…  1000000");
    }

    #[test]
    fn a_long_answer_of_wide_rows_goes_on_column_by_column() {
        let names = ["a_long_name_of_a_number"; 3];
        let rows = (0..1200).map(|n| vec![SqlCell::Integer(n); 3]);
        let (out, most) = streamed(rows, &names);
        assert!(most < 500, "{most} rows were held");
        assert_eq!(out.lines().count(), 4 * 1200);
        assert!(out.contains("── 1200"));
    }

    #[test]
    fn json_keeps_types_and_tells_equal_names_apart() {
        let out = told(SqlOutputFormat::Json, 80);
        let rows: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            rows[0],
            serde_json::json!({"id": "a,\"b\"", "n": -3, "id_2": null})
        );
        assert_eq!(rows[1]["id_2"], "01ff");
        assert_eq!(rows[1]["n"], 0.5);
    }

    #[test]
    fn a_table_is_clean_and_numbers_stand_at_the_right() {
        let out = told(SqlOutputFormat::Table, 80);
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        let expected = ["id       n  id", "a,\"b\"   -3", "x y    0.5  01ff"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn rows_that_are_too_wide_stand_column_by_column() {
        let out = told(SqlOutputFormat::Table, 14);
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        let expected = [
            "── 1",
            "id  a,\"b\"",
            "n   -3",
            "id",
            "── 2",
            "id  x y",
            "n   0.5",
            "id  01ff",
        ];
        assert_eq!(lines, expected);
    }
}
