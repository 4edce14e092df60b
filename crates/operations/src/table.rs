//! [`Table`]: rows with aligned columns, as wide as their text or within the width of a terminal. Durations as text.

use std::fmt;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks between two columns.
const GAP: usize = 2;

/// Smallest width of a column that is clipped while columns can still be hidden.
const CLIPPED_MIN: usize = 16;

/// Smallest width of a column in a very narrow window.
const NARROW_MIN: usize = 3;

const ELLIPSIS: &str = "…";

/// Rows with aligned columns. Widths count terminal columns: `東` has two.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    has_head: bool,
}

#[derive(Clone, Debug)]
struct Column {
    name: &'static str,
    clip: Clip,
    /// Columns with a small number are hidden first.
    hide_rank: Option<usize>,
    is_right_aligned: bool,
    /// Whether the next column follows directly if the width is not limited.
    is_ragged: bool,
}

/// Which part of a long text stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clip {
    /// All, unless the window is very narrow.
    Never,
    /// The start.
    End,
    /// The end, as of a path.
    Start,
}

/// A table within a width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedTable {
    pub text: String,
    /// The columns that are not in the text.
    pub hidden: Vec<&'static str>,
}

impl Table {
    /// A table with a header.
    pub fn new(names: impl IntoIterator<Item = &'static str>) -> Self {
        let column = |name| Column {
            name,
            clip: Clip::Never,
            hide_rank: None,
            is_right_aligned: false,
            is_ragged: false,
        };
        Self {
            columns: names.into_iter().map(column).collect(),
            rows: Vec::new(),
            has_head: true,
        }
    }

    /// The table without its header. Columns without text are left out.
    #[must_use]
    pub fn without_head(mut self) -> Self {
        self.has_head = false;
        self
    }

    /// Long texts of this column are clipped first.
    #[must_use]
    pub fn clip(mut self, name: &str) -> Self {
        self.change(name, |column| column.clip = Clip::End);
        self
    }

    /// Long paths in this column lose their start first.
    #[must_use]
    pub fn clip_path(mut self, name: &str) -> Self {
        self.change(name, |column| column.clip = Clip::Start);
        self
    }

    /// Columns that a narrow window hides, in this order.
    #[must_use]
    pub fn hide_first(mut self, names: &[&str]) -> Self {
        for (rank, name) in names.iter().enumerate() {
            self.change(name, |column| column.hide_rank = Some(rank));
        }
        self
    }

    /// Aligns a column at its right side.
    #[must_use]
    pub fn right(mut self, name: &str) -> Self {
        self.change(name, |column| column.is_right_aligned = true);
        self
    }

    /// The column after this one is not aligned if the width is not limited.
    #[must_use]
    pub fn ragged(mut self, name: &str) -> Self {
        self.change(name, |column| column.is_ragged = true);
        self
    }

    fn change(&mut self, name: &str, change: impl Fn(&mut Column)) {
        let columns = self.columns.iter_mut();
        columns
            .filter(|column| column.name == name)
            .for_each(change);
    }

    /// Adds a row with one text for each column.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        let one_line = |text: String| text.replace(['\n', '\r', '\t'], " ");
        self.rows.push(row.into_iter().map(one_line).collect());
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table in lines of at most `width` columns.
    pub fn fit(&self, width: usize) -> FittedTable {
        let mut shown = self.columns_with_text();
        let mut hidden = Vec::new();
        let widths = loop {
            let mut widths = self.widths(&shown);
            let can_clip = |at: usize| self.columns[shown[at]].clip != Clip::Never;
            shrink(&mut widths, width, CLIPPED_MIN, can_clip);
            if total(&widths) <= width {
                break widths;
            }
            let ranked = shown
                .iter()
                .filter_map(|&at| Some((self.columns[at].hide_rank?, at)));
            let Some((_, at)) = ranked.min() else {
                shrink(&mut widths, width, NARROW_MIN, can_clip);
                shrink(&mut widths, width, NARROW_MIN, |_| true);
                break widths;
            };
            shown.retain(|&column| column != at);
            hidden.push(self.columns[at].name);
        };
        let text = self.render(&shown, &widths, false);
        FittedTable { text, hidden }
    }

    fn columns_with_text(&self) -> Vec<usize> {
        let has_text = |at: &usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(*at));
            self.has_head || cells.any(|cell| !cell.is_empty())
        };
        (0..self.columns.len()).filter(has_text).collect()
    }

    /// The widest text of each column.
    fn widths(&self, columns: &[usize]) -> Vec<usize> {
        let width = |&at: &usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
            let head = self.has_head.then(|| self.columns[at].name.width());
            widest.max(head.unwrap_or(0))
        };
        columns.iter().map(width).collect()
    }

    fn render(&self, columns: &[usize], widths: &[usize], is_ragged: bool) -> String {
        let head: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.name.to_owned())
            .collect();
        let head = self.has_head.then_some(&head);
        let mut out = String::new();
        for row in head.into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (&at, &width) in columns.iter().zip(widths) {
                let column = &self.columns[at];
                let cell = row.get(at).map_or("", String::as_str);
                let cell = clipped(cell, width, column.clip);
                let padding = width.saturating_sub(cell.width());
                let padding = if is_ragged && column.is_ragged {
                    0
                } else {
                    padding
                };
                let padding = std::iter::repeat_n(' ', padding);
                if column.is_right_aligned {
                    line.extend(padding);
                    line.push_str(&cell);
                } else {
                    line.push_str(&cell);
                    line.extend(padding);
                }
                line.push_str("  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// The whole table, as wide as its text.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns_with_text();
        f.write_str(&self.render(&columns, &self.widths(&columns), true))
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Reduces the widest columns, none below `min`, until all fit into `limit`.
fn shrink(widths: &mut [usize], limit: usize, min: usize, can_shrink: impl Fn(usize) -> bool) {
    while total(widths) > limit {
        let candidates = widths.iter_mut().enumerate();
        let candidates = candidates.filter(|(at, width)| can_shrink(*at) && **width > min);
        let Some((_, widest)) = candidates.max_by_key(|(_, width)| **width) else {
            return;
        };
        *widest -= 1;
    }
}

fn clipped(text: &str, width: usize, clip: Clip) -> String {
    match clip {
        Clip::Start if text.width() > width => {
            let mut kept = text.len();
            let mut room = width.saturating_sub(ELLIPSIS.width());
            for (at, character) in text.char_indices().rev() {
                let Some(left) = room.checked_sub(character.width().unwrap_or(0)) else {
                    break;
                };
                (room, kept) = (left, at);
            }
            format!("{ELLIPSIS}{}", &text[kept..])
        }
        _ => clip_text(text, width),
    }
}

/// The start of a text within `width` columns of a terminal, with an ellipsis if it is longer.
pub fn clip_text(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(ELLIPSIS.width());
    let mut end = 0;
    for (at, character) in text.char_indices() {
        let Some(left) = room.checked_sub(character.width().unwrap_or(0)) else {
            break;
        };
        room = left;
        end = at + character.len_utf8();
    }
    format!("{}{ELLIPSIS}", text[..end].trim_end())
}

/// Formats a count with its noun: `1 cell`, `3 cells`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a duration: `12s`, `5m`, `3h`, `2d`.
pub fn format_seconds(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["NAME", "SIZE", "OWNER", "PATH", "VALUE"])
            .right("SIZE")
            .clip("VALUE")
            .clip_path("PATH")
            .hide_first(&["OWNER"]);
        let rows = [
            ["東京", "8 B", "me", "/data/archive/projects/analysis", "1"],
            [
                "naïve",
                "12.5 KiB",
                "another user",
                "/tmp",
                "a long text, longer than a window is wide\nof two lines",
            ],
        ];
        for row in rows {
            table.push(row.map(str::to_owned));
        }
        table
    }

    #[test]
    fn a_table_is_as_wide_as_its_text() {
        let expected = "\
NAME       SIZE  OWNER         PATH                             VALUE
東京        8 B  me            /data/archive/projects/analysis  1
naïve  12.5 KiB  another user  /tmp                             a long text, longer than a window is wide of two lines
";
        assert_eq!(table().to_string(), expected);
    }

    #[test]
    fn a_table_fits_into_its_window() {
        for width in [10, 20, 40, 80, 100, 120] {
            let fitted = table().fit(width);
            let widest = fitted.text.lines().map(UnicodeWidthStr::width).max();
            assert!(
                widest <= Some(width.max(4 * NARROW_MIN + 3 * GAP)),
                "{width}\n{}",
                fitted.text
            );
        }
        let wide = table().fit(120);
        assert_eq!((wide.text, wide.hidden), (table().to_string(), vec![]));
        let fitted = table().fit(60);
        assert_eq!(fitted.hidden, ["OWNER"]);
        let expected = "\
NAME       SIZE  PATH                   VALUE
東京        8 B  …ve/projects/analysis  1
naïve  12.5 KiB  /tmp                   a long text, longer…
";
        assert_eq!(fitted.text, expected);
    }

    #[test]
    fn texts_are_clipped_by_their_width_on_a_terminal() {
        assert_eq!(clip_text("東京都", 6), "東京都");
        assert_eq!(clip_text("東京都", 5), "東京…");
        assert_eq!(clip_text("東京都", 4), "東…");
        assert_eq!(clip_text("one two", 5), "one…");
        assert_eq!(clip_text("ab", 0), "…");
    }
}
