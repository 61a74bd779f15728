//! Tables that fit the terminal. A cell is never broken: what may be shortened is, and if that is not enough a row goes on in a
//! second line, between two cells. Without a terminal every row is one line, as long as it is.

use crate::output::{clean, colours, on_terminal};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const GAP: usize = 2;
/// Further lines of a row begin so far in.
const INDENT: usize = 4;
/// What may be shortened still says something with so many columns.
const SHORT: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Red,
    Green,
    Yellow,
    Blue,
    Grey,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Grey => "90",
        }
    }
}

pub struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    pub fn colour(self, colour: impl Into<Option<Colour>>) -> Self {
        Self { colour: colour.into(), ..self }
    }
}

pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell { text: clean(text.as_ref()), colour: None }
}

/// A table in the making.
pub struct Rows {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    empty: &'static str,
}

impl Rows {
    /// A head that ends with `…` is of a column that may be shortened; the sign itself is not shown. `empty` is said where there
    /// are no rows, and should say what to do.
    pub fn new(heads: &[&'static str], empty: &'static str) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new(), empty }
    }

    pub fn add(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub fn text(&self) -> String {
        self.shown(width(), colours())
    }

    pub fn shown(&self, width: Option<usize>, colours: bool) -> String {
        if self.rows.is_empty() {
            return self.empty.to_owned();
        }
        let columns = self.columns();
        let lines = arranged(&columns, width);
        let heads: Vec<Cell> = self.heads.iter().map(|head| cell(head.trim_end_matches('…'))).collect();
        let rows = std::iter::once(&heads).chain(&self.rows);
        rows.flat_map(|row| lines.iter().enumerate().map(move |(at, line)| drawn(row, line, at > 0, colours)))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn columns(&self) -> Vec<Column> {
        let column = |(at, head): (usize, &&'static str)| {
            let name = head.trim_end_matches('…');
            let widest = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max();
            let filled = widest.unwrap_or(0);
            Column { at, width: filled.max(name.width()), flexible: name.len() < head.len(), empty: filled == 0 }
        };
        self.heads.iter().enumerate().map(column).collect()
    }
}

/// Of the terminal that is written to; none where it is not one.
fn width() -> Option<usize> {
    let size = on_terminal().then(|| terminal_size::terminal_size_of(std::io::stdout())).flatten();
    size.map(|(width, _)| usize::from(width.0)).filter(|&width| width > 0)
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    at: usize,
    width: usize,
    flexible: bool,
    empty: bool,
}

impl Column {
    fn least(&self) -> usize {
        if self.flexible { self.width.min(SHORT) } else { self.width }
    }
}

/// Which columns go into which line of a row, and how wide they are.
fn arranged(columns: &[Column], width: Option<usize>) -> Vec<Vec<Column>> {
    let whole = |columns: &[Column]| columns.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP);
    let Some(width) = width else { return vec![columns.to_vec()] };
    if whole(columns) <= width {
        return vec![columns.to_vec()];
    }
    // Where there is too little room, none is for columns in which nothing is.
    let mut lines: Vec<Vec<Column>> = vec![Vec::new()];
    let mut used = 0;
    for column in columns.iter().filter(|column| !column.empty) {
        if used > 0 && used + column.least() > width {
            lines.push(Vec::new());
            used = INDENT;
        }
        used += column.least() + GAP;
        lines.last_mut().expect("there is a line").push(*column);
    }
    for (at, line) in lines.iter_mut().enumerate() {
        let room = width.saturating_sub(if at > 0 { INDENT } else { 0 });
        while whole(line) > room {
            let widest =
                line.iter_mut().filter(|column| column.width > column.least()).max_by_key(|column| column.width);
            let Some(widest) = widest else { break };
            widest.width -= 1;
        }
    }
    lines
}

fn drawn(row: &[Cell], columns: &[Column], further: bool, colours: bool) -> String {
    let mut text = if further { " ".repeat(INDENT) } else { String::new() };
    for column in columns {
        let Some(cell) = row.get(column.at) else { continue };
        let shown = cut(&cell.text, column.width);
        let room = " ".repeat((column.width + GAP).saturating_sub(shown.width()));
        match cell.colour.filter(|_| colours && !shown.is_empty()) {
            Some(colour) => text += &format!("\x1b[{}m{shown}\x1b[0m{room}", colour.code()),
            None => text += &format!("{shown}{room}"),
        }
    }
    text.trim_end().to_owned()
}

/// The first line, at most so many columns wide, with a sign where something was cut off. What is one sign to a reader (a letter
/// with its accents, an emoji of several parts) is kept or left out as a whole.
pub fn cut(text: &str, max: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.width() <= max && first.len() == text.trim_end().len() {
        return first.to_owned();
    }
    let mut kept = String::new();
    for sign in first.graphemes(true) {
        if kept.width() + sign.width() >= max {
            break;
        }
        kept.push_str(sign);
    }
    kept + "…"
}
