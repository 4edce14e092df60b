//! One line of a screen: characters that can be overwritten.

use super::style::Style;

/// A character and how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    character: char,
    style: Style,
}

const BLANK: Cell = Cell {
    character: ' ',
    style: Style::PLAIN,
};

/// A line whose first characters are held; those beyond are only counted.
///
/// Most lines are only ever appended to. They are plain text, which is fast; the first time that
/// something is overwritten or has a colour, the text is taken apart into cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    plain: String,
    cells: Vec<Cell>,
    /// Whether the characters are in `cells`, and not in `plain`.
    apart: bool,
    /// Characters in all.
    extent: usize,
    /// Bytes of the characters that are not held.
    beyond: u64,
}

impl Row {
    /// The row of a line that was shown already.
    pub(crate) fn of(line: &str) -> Self {
        let mut row = Self::default();
        let mut style = Style::default();
        let mut rest = line;
        while let Some(at) = rest.find("\x1b[") {
            let (text, after) = rest.split_at(at);
            row.write(row.extent, text, style, usize::MAX);
            let (parameters, after) = after[2..].split_once('m').unwrap_or_default();
            style.apply(parameters);
            rest = after;
        }
        row.write(row.extent, rest, style, usize::MAX);
        row
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.extent == 0
    }

    /// Whether nothing can be seen.
    pub(crate) fn is_blank(&self) -> bool {
        self.beyond == 0
            && self.plain.bytes().all(|byte| byte == b' ')
            && self.cells.iter().all(|cell| cell.character == ' ')
    }

    /// Bytes of the characters that are not held.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Writes text without newlines at a column, over what is there. Gives the column after it.
    pub(crate) fn write(&mut self, column: usize, text: &str, style: Style, most: usize) -> usize {
        if !self.apart {
            let end = self.extent + text.chars().count();
            if column == self.extent && end <= most && style.is_plain() {
                self.plain.push_str(text);
                self.extent = end;
                return end;
            }
            self.take_apart();
        }
        let mut column = column;
        let mut rest = text.chars();
        while column < most {
            let Some(character) = rest.next() else {
                return column;
            };
            let cell = Cell { character, style };
            if column < self.cells.len() {
                self.cells[column] = cell;
            } else {
                self.pad(column);
                self.cells.push(cell);
                self.extent = self.extent.max(self.cells.len());
            }
            column += 1;
        }
        let rest = rest.as_str();
        if rest.is_empty() {
            return column;
        }
        self.pad(most);
        // Where something was before, something else is now; only what is longer counts.
        let count = rest.chars().count();
        let old = self.extent.saturating_sub(column).min(count);
        let new = rest
            .char_indices()
            .nth(old)
            .map_or(rest.len(), |(at, _)| at);
        self.beyond += (rest.len() - new) as u64;
        self.extent = self.extent.max(column + count);
        column + count
    }

    /// Takes away what is at a column and after it.
    pub(crate) fn erase_from(&mut self, column: usize) {
        if column == 0 {
            self.plain.clear();
            self.cells.clear();
            self.apart = false;
            self.extent = 0;
            self.beyond = 0;
            return;
        }
        self.take_apart();
        let kept = column.saturating_sub(self.cells.len()) as u64;
        self.beyond = self.beyond.min(kept);
        self.cells.truncate(column);
        self.extent = self.extent.min(column).max(self.cells.len());
    }

    /// Makes everything up to a column and at it blank.
    pub(crate) fn erase_to(&mut self, column: usize) {
        self.take_apart();
        let end = self.cells.len().min(column.saturating_add(1));
        self.cells[..end].fill(BLANK);
    }

    /// The characters, if none has a colour and none was overwritten.
    pub(crate) fn plain(&self) -> Option<&str> {
        (!self.apart).then_some(&self.plain)
    }

    /// Appends the characters, with their looks if asked for.
    pub(crate) fn append_to(&self, out: &mut String, colours: bool) {
        if !self.apart {
            out.push_str(&self.plain);
            return;
        }
        if !colours {
            out.extend(self.cells.iter().map(|cell| cell.character));
            return;
        }
        self.append_between(out, Style::PLAIN, Style::PLAIN);
    }

    /// Appends the characters with their looks, between texts that look otherwise.
    pub(crate) fn append_between(&self, out: &mut String, before: Style, after: Style) {
        let mut style = before;
        let mut turn = |to: Style, out: &mut String| {
            if style != to {
                style = to;
                if to.is_plain() {
                    out.push_str("\x1b[0m");
                } else {
                    to.write(out);
                }
            }
        };
        if !self.plain.is_empty() {
            turn(Style::PLAIN, out);
            out.push_str(&self.plain);
        }
        for cell in &self.cells {
            turn(cell.style, out);
            out.push(cell.character);
        }
        turn(after, out);
    }

    fn take_apart(&mut self) {
        if !self.apart {
            self.apart = true;
            let style = Style::PLAIN;
            self.cells.extend(
                self.plain
                    .chars()
                    .map(|character| Cell { character, style }),
            );
            self.plain.clear();
        }
    }

    fn pad(&mut self, column: usize) {
        if self.cells.len() < column {
            self.cells.resize(column, BLANK);
            self.extent = self.extent.max(column);
        }
    }
}
