//! Rows of an answer: a table that fits the terminal, JSON Lines, or CSV.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Map, Value};
use unspool_index::tables::query::{Cell, Sink};
use unspool_show::style::{Line, Paint, Style};
use unspool_show::table::{Column, Table};

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// One object per row.
    Json,
    /// RFC 4180.
    Csv,
}

/// Prints an answer as it comes; a table when all of it is there.
pub struct Answer<'a, W> {
    form: Form,
    out: W,
    style: &'a Style,
    names: Vec<String>,
    rows: Vec<Vec<Line>>,
    /// Columns that hold numbers alone.
    numbers: Vec<bool>,
}

impl<'a, W: Write> Answer<'a, W> {
    /// An answer in this form.
    pub fn new(form: Form, out: W, style: &'a Style) -> Answer<'a, W> {
        Answer {
            form,
            out,
            style,
            names: Vec::new(),
            rows: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Prints what is left.
    pub fn finish(mut self) -> io::Result<()> {
        if self.form == Form::Table && !self.names.is_empty() {
            let columns = self.names.iter().zip(&self.numbers);
            let columns = columns.map(|(name, number)| match number {
                true if !self.rows.is_empty() => Column::number(name),
                _ => Column::flexible(name, 8),
            });
            let mut table = Table::new(columns.collect());
            table.rows = self.rows;
            table.write(&mut self.out, self.style)?;
        }
        self.out.flush()
    }

    fn object(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
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

impl<W: Write> Sink for Answer<'_, W> {
    fn columns(&mut self, names: &[&str]) -> io::Result<()> {
        self.names = match self.form {
            Form::Json => unique(names),
            Form::Table | Form::Csv => names.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.numbers = vec![true; names.len()];
        match self.form {
            Form::Csv => self.record(names.iter()),
            Form::Table | Form::Json => Ok(()),
        }
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self.form {
            Form::Json => return self.object(cells),
            Form::Csv => return self.record(cells.iter().map(plain)),
            Form::Table => {}
        }
        for (number, cell) in self.numbers.iter_mut().zip(cells) {
            *number &= matches!(cell, Cell::Integer(_) | Cell::Real(_) | Cell::Null);
        }
        let cells = cells.iter().map(|cell| {
            // What may have lines stands on one.
            let text = plain(cell).replace(['\n', '\r', '\t'], " ");
            Line::of(Paint::PLAIN, &text)
        });
        self.rows.push(cells.collect());
        Ok(())
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

fn json(cell: &Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Integer(number) => (*number).into(),
        Cell::Real(number) => (*number).into(),
        Cell::Text(text) => text.as_ref().into(),
        Cell::Blob(bytes) => hex(bytes).into(),
    }
}

fn plain(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.clone().into_owned(),
        Cell::Blob(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
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

    fn told(form: Form, width: usize) -> String {
        let mut out = Vec::new();
        let style = Style {
            width,
            ..Style::default()
        };
        let mut answer = Answer::new(form, &mut out, &style);
        answer.columns(&["id", "n", "id"]).unwrap();
        let text = |text: &'static str| Cell::Text(text.into());
        let rows = [
            [text("a,\"b\""), Cell::Integer(-3), Cell::Null],
            [
                text("x\ny\u{1b}[31m"),
                Cell::Real(0.5),
                Cell::Blob(&[1, 255]),
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
        assert_eq!(told(Form::Csv, 80), expected);
    }

    #[test]
    fn json_keeps_types_and_tells_equal_names_apart() {
        let out = told(Form::Json, 80);
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
        let out = told(Form::Table, 80);
        let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
        let expected = ["id        n  id", "a,\"b\"   -3", "x y     0.5  01ff"];
        assert_eq!(lines, expected);
    }
}
