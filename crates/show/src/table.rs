//! Aligned tables that fit the terminal.
//!
//! Columns take what they need; when that is too much, the flexible ones give way and their
//! cells are cut with `…`. Widths are display widths.

use std::io;

use crate::layout::{cut, cut_path, pad, wrap};
use crate::style::{ConversationStyle, StyledLine, TextStyle};

/// Columns between two columns of a table.
const GAP: usize = 2;

/// A column of a [`TextTable`].
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its heading.
    pub title: String,
    /// Cells stand at the right, as numbers do.
    pub right: bool,
    /// May be cut down to this many columns; `None`: never cut.
    pub min: Option<usize>,
    /// Where a cell is too long: paths lose their start, other text its end.
    pub path: bool,
    /// Left out where there is no room for it.
    pub optional: bool,
}

impl TableColumn {
    /// A column that is never cut.
    pub fn fixed(title: &str) -> TableColumn {
        TableColumn {
            title: title.to_owned(),
            right: false,
            min: None,
            path: false,
            optional: false,
        }
    }

    /// A column of numbers.
    pub fn number(title: &str) -> TableColumn {
        TableColumn {
            right: true,
            ..TableColumn::fixed(title)
        }
    }

    /// A column that gives way, down to `min` columns.
    pub fn flexible(title: &str, min: usize) -> TableColumn {
        TableColumn {
            min: Some(min),
            ..TableColumn::fixed(title)
        }
    }

    /// The same column, to be left out where there is no room for it.
    #[must_use]
    pub fn optional(mut self) -> TableColumn {
        self.optional = true;
        self
    }

    /// A column of paths, which give way at their start.
    pub fn path(title: &str, min: usize) -> TableColumn {
        TableColumn {
            path: true,
            ..TableColumn::flexible(title, min)
        }
    }
}

/// A table: columns and rows of cells.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    /// Its columns.
    pub columns: Vec<TableColumn>,
    /// Its rows; each cell is a line, which may be coloured.
    pub rows: Vec<Vec<StyledLine>>,
}

impl TextTable {
    /// An empty table.
    pub fn new(columns: Vec<TableColumn>) -> TextTable {
        TextTable {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row of plain cells.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter();
        self.rows.push(
            cells
                .map(|cell| StyledLine::of(TextStyle::PLAIN, cell.as_ref()))
                .collect(),
        );
    }

    /// Writes it with its headings.
    pub fn write(&self, out: &mut dyn io::Write, style: &ConversationStyle) -> io::Result<()> {
        let lines = self.lines(style.width);
        lines
            .iter()
            .try_for_each(|line| line.write(out, style.color))
    }

    /// Writes it as the top of a longer table, and says how rows go on below it.
    pub fn begin(
        mut self,
        out: &mut dyn io::Write,
        style: &ConversationStyle,
    ) -> io::Result<TableBody> {
        let titles = self.titles();
        let mut widths = self.widths(&titles, style.width);
        // Cells to come may be longer than those that are here.
        let gaps = GAP * widths.len().saturating_sub(1);
        let mut room = style
            .width
            .saturating_sub(widths.iter().sum::<usize>() + gaps);
        for (column, width) in self.columns.iter().zip(&mut widths) {
            let more = column.min.unwrap_or(0).saturating_sub(*width).min(room);
            *width += more;
            room -= more;
        }
        for row in std::iter::once(&titles).chain(&self.rows) {
            self.laid(row, &widths).write(out, style.color)?;
        }
        self.rows = Vec::new();
        Ok(TableBody {
            top: self,
            widths,
            color: style.color,
        })
    }

    /// The last optional column, if not everything fits.
    fn spare(&self, width: usize) -> Option<usize> {
        let optional = self.columns.iter().rposition(|column| column.optional)?;
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let least: usize = self.least(&self.titles()).iter().sum();
        (least + gaps > width).then_some(optional)
    }

    fn without(&self, column: usize) -> TextTable {
        let mut table = self.clone();
        table.columns.remove(column);
        for row in &mut table.rows {
            if column < row.len() {
                row.remove(column);
            }
        }
        table
    }

    fn titles(&self) -> Vec<StyledLine> {
        let titles = self.columns.iter();
        titles
            .map(|column| StyledLine::of(TextStyle::DIM, &column.title))
            .collect()
    }

    /// Its lines with its headings, for screens.
    pub fn lines(&self, width: usize) -> Vec<StyledLine> {
        if let Some(column) = self.spare(width) {
            return self.without(column).lines(width);
        }
        let titles = self.titles();
        let widths = self.widths(&titles, width);
        let rows = std::iter::once(&titles).chain(&self.rows);
        rows.map(|row| self.laid(row, &widths)).collect()
    }

    fn widths(&self, titles: &[StyledLine], width: usize) -> Vec<usize> {
        shrunk(&self.needs(titles), &self.least(titles), width)
    }

    /// What each column takes if nothing is cut.
    fn needs(&self, titles: &[StyledLine]) -> Vec<usize> {
        let all = || std::iter::once(titles).chain(self.rows.iter().map(Vec::as_slice));
        let need = |at: usize| {
            all()
                .filter_map(|row| row.get(at))
                .map(StyledLine::width)
                .max()
        };
        (0..self.columns.len())
            .map(|at| need(at).unwrap_or(0))
            .collect()
    }

    /// What each column takes at least.
    fn least(&self, titles: &[StyledLine]) -> Vec<usize> {
        self.columns
            .iter()
            .zip(self.needs(titles))
            .map(|(column, need)| column.min.map_or(need, |min| min.min(need)))
            .collect()
    }

    fn laid(&self, row: &[StyledLine], widths: &[usize]) -> StyledLine {
        let mut out = StyledLine::new();
        let empty = StyledLine::new();
        for (at, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = row.get(at).unwrap_or(&empty);
            let cell = if column.path && cell.width() > width {
                let paint = cell
                    .pieces()
                    .first()
                    .map_or(TextStyle::PLAIN, |piece| piece.0);
                StyledLine::of(paint, &cut_path(&cell.text(), width))
            } else {
                cut(cell, width)
            };
            place(&mut out, &cell, width, column.right, at > 0);
        }
        out
    }
}

/// Rows below the top of a table, as wide as those there.
#[derive(Clone, Debug)]
pub struct TableBody {
    top: TextTable,
    widths: Vec<usize>,
    color: bool,
}

impl TableBody {
    /// Writes the next row. Cells that are too long are cut, except those that are `whole`:
    /// these make the line longer, as half a number is a wrong one.
    pub fn row(
        &self,
        out: &mut dyn io::Write,
        row: &[StyledLine],
        whole: impl Fn(usize) -> bool,
    ) -> io::Result<()> {
        let widths = self.widths.iter().zip(row).enumerate();
        let widths = widths.map(|(at, (&width, cell))| {
            if whole(at) {
                width.max(cell.width())
            } else {
                width
            }
        });
        let widths: Vec<usize> = widths.collect();
        self.top.laid(row, &widths).write(out, self.color)
    }
}

/// Rows as a table with a rule below the first, for Markdown. Cells that are too long go on
/// in the next line: what was said is never cut.
pub(crate) fn fitted(rows: &[Vec<StyledLine>], right: &[bool], width: usize) -> Vec<StyledLine> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let need = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(StyledLine::width).max()
    };
    let needs: Vec<usize> = (0..columns).map(|at| need(at).unwrap_or(0)).collect();
    let mins: Vec<usize> = needs.iter().map(|need| (*need).min(8)).collect();
    let widths = shrunk(&needs, &mins, width);
    let mut out = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let paint = if at == 0 {
            TextStyle::BOLD
        } else {
            TextStyle::PLAIN
        };
        out.extend(wrapped(row, &widths, right, paint));
        if at == 0 {
            let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            out.push(StyledLine::of(TextStyle::DIM, &"─".repeat(total)));
        }
    }
    out
}

fn wrapped(
    row: &[StyledLine],
    widths: &[usize],
    right: &[bool],
    paint: TextStyle,
) -> Vec<StyledLine> {
    let empty = StyledLine::new();
    let cell = |column: usize| row.get(column).unwrap_or(&empty).clone().over(paint);
    let cells: Vec<Vec<StyledLine>> = widths
        .iter()
        .enumerate()
        .map(|(column, &width)| wrap(&cell(column), width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let mut line = StyledLine::new();
        for (column, &width) in widths.iter().enumerate() {
            let piece = cells[column].get(at).unwrap_or(&empty);
            let right = right.get(column).copied().unwrap_or(false);
            place(&mut line, piece, width, right, column > 0);
        }
        line
    };
    (0..height).map(line).collect()
}

fn place(out: &mut StyledLine, cell: &StyledLine, width: usize, right: bool, gap: bool) {
    if gap {
        out.push(TextStyle::PLAIN, &" ".repeat(GAP));
    }
    let start = out.width();
    if right {
        out.push(
            TextStyle::PLAIN,
            &" ".repeat(width.saturating_sub(cell.width())),
        );
    }
    out.append(cell);
    pad(out, start + width);
}

/// Takes columns from the widest that may give, one by one, until the rest fits.
fn shrunk(needs: &[usize], mins: &[usize], width: usize) -> Vec<usize> {
    let mut widths = needs.to_vec();
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    while excess > 0 {
        let gives = |&at: &usize| widths[at] > mins[at];
        let Some(widest) = (0..widths.len()).filter(gives).max_by_key(|&at| widths[at]) else {
            break;
        };
        widths[widest] -= 1;
        excess -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_optional_column_is_there_only_where_it_fits() {
        let mut table = TextTable::new(vec![
            TableColumn::flexible("title", 6),
            TableColumn::number("cost").optional(),
            TableColumn::number("turns"),
        ]);
        table.row(["Fix the login bug", "$0.25", "12"]);
        let laid = |width: usize| {
            let mut out = Vec::new();
            let style = ConversationStyle {
                width,
                ..ConversationStyle::default()
            };
            table.write(&mut out, &style).unwrap();
            String::from_utf8(out).unwrap()
        };
        // Six, five and five columns and two gaps.
        expect![[r#"
            title    cost  turns
            Fix t…  $0.25     12
        "#]]
        .assert_eq(&laid(20));
        expect![[r#"
            title         turns
            Fix the log…     12
        "#]]
        .assert_eq(&laid(19));
    }

    #[test]
    fn rows_below_the_top_keep_its_widths_and_numbers_are_never_cut() {
        let mut table = TextTable::new(vec![
            TableColumn::flexible("title", 8),
            TableColumn::number("n"),
        ]);
        table.row(["short", "1"]);
        let mut out = Vec::new();
        let below = table
            .begin(&mut out, &ConversationStyle::default())
            .unwrap();
        let row =
            |title: &str, n: &str| [title, n].map(|cell| StyledLine::of(TextStyle::PLAIN, cell));
        let number = |at: usize| at == 1;
        below
            .row(&mut out, &row("longer than that", "2"), number)
            .unwrap();
        below.row(&mut out, &row("x", "1234"), number).unwrap();
        expect![[r#"
            title     n
            short     1
            longer …  2
            x         1234
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn flexible_columns_give_way_and_the_rest_stays_whole() {
        let mut table = TextTable::new(vec![
            TableColumn::fixed("id"),
            TableColumn::flexible("title", 8),
            TableColumn::path("project", 8),
            TableColumn::number("turns"),
        ]);
        table.row([
            "7f3a",
            "Fix the login bug that nobody understood",
            "/home/dev/projects/site",
            "12",
        ]);
        table.row(["日本", "短い", "/x", "3"]);
        let mut out = Vec::new();
        let style = ConversationStyle {
            width: 48,
            ..ConversationStyle::default()
        };
        table.write(&mut out, &style).unwrap();
        expect![[r#"
            id    title              project           turns
            7f3a  Fix the login bu…  …/projects/site      12
            日本  短い               /x                    3
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
