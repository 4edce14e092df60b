//! One row of a screen, with characters that can be overwritten.

use super::text_style::TextStyle;

/// A character with its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StyledChar {
    character: char,
    style: TextStyle,
}

const BLANK: StyledChar = StyledChar {
    character: ' ',
    style: TextStyle::PLAIN,
};

/// A row that holds its first characters and only counts the rest.
///
/// Most rows are only appended to. They are plain text, which is fast. The first overwrite or colour splits
/// the text into styled characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    plain: String,
    chars: Vec<StyledChar>,
    /// Whether the characters are in `chars` instead of `plain`.
    styled: bool,
    /// Number of characters, including those that are not held.
    length: usize,
    /// Bytes of the characters that are not held.
    overflow_bytes: u64,
}

impl Row {
    /// Restores the row of a line that was passed on.
    pub(crate) fn from_styled_text(line: &str) -> Self {
        let mut row = Self::default();
        let mut style = TextStyle::default();
        let mut rest = line;
        while let Some(at) = rest.find("\x1b[") {
            let (text, after) = rest.split_at(at);
            row.write(row.length, text, style, usize::MAX);
            let (parameters, after) = after[2..].split_once('m').unwrap_or_default();
            style.apply(parameters);
            rest = after;
        }
        row.write(row.length, rest, style, usize::MAX);
        row
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the row shows nothing.
    pub(crate) fn is_blank(&self) -> bool {
        self.overflow_bytes == 0
            && self.plain.bytes().all(|byte| byte == b' ')
            && self
                .chars
                .iter()
                .all(|styled_char| styled_char.character == ' ')
    }

    /// Returns the bytes of the characters that are not held.
    pub(crate) fn overflow_bytes(&self) -> u64 {
        self.overflow_bytes
    }

    /// Writes text without newlines over the characters at `column`. Returns the column after it.
    pub(crate) fn write(
        &mut self,
        column: usize,
        text: &str,
        style: TextStyle,
        limit: usize,
    ) -> usize {
        if !self.styled {
            let end = self.length + text.chars().count();
            if column == self.length && end <= limit && style.is_plain() {
                self.plain.push_str(text);
                self.length = end;
                return end;
            }
            self.split_into_chars();
        }
        let mut column = column;
        let mut rest = text.chars();
        while column < limit {
            let Some(character) = rest.next() else {
                return column;
            };
            let styled_char = StyledChar { character, style };
            if column < self.chars.len() {
                self.chars[column] = styled_char;
            } else {
                self.pad(column);
                self.chars.push(styled_char);
                self.length = self.length.max(self.chars.len());
            }
            column += 1;
        }
        let rest = rest.as_str();
        if rest.is_empty() {
            return column;
        }
        self.pad(limit);
        // Characters beyond `limit` replace earlier ones there; only the extra length counts.
        let count = rest.chars().count();
        let replaced = self.length.saturating_sub(column).min(count);
        let extra = rest
            .char_indices()
            .nth(replaced)
            .map_or(rest.len(), |(at, _)| at);
        self.overflow_bytes += (rest.len() - extra) as u64;
        self.length = self.length.max(column + count);
        column + count
    }

    /// Removes the characters from `column` on.
    pub(crate) fn erase_from(&mut self, column: usize) {
        if column == 0 {
            self.plain.clear();
            self.chars.clear();
            self.styled = false;
            self.length = 0;
            self.overflow_bytes = 0;
            return;
        }
        self.split_into_chars();
        let left = column.saturating_sub(self.chars.len()) as u64;
        self.overflow_bytes = self.overflow_bytes.min(left);
        self.chars.truncate(column);
        self.length = self.length.min(column).max(self.chars.len());
    }

    /// Replaces the characters up to and including `column` by blanks.
    pub(crate) fn erase_to(&mut self, column: usize) {
        self.split_into_chars();
        let end = self.chars.len().min(column.saturating_add(1));
        self.chars[..end].fill(BLANK);
    }

    /// Returns the characters, if none is coloured and none was overwritten.
    pub(crate) fn plain(&self) -> Option<&str> {
        (!self.styled).then_some(&self.plain)
    }

    /// Appends the characters, with colours if `colours` is set.
    pub(crate) fn append_to(&self, out: &mut String, colours: bool) {
        if !self.styled {
            out.push_str(&self.plain);
            return;
        }
        if !colours {
            out.extend(self.chars.iter().map(|styled_char| styled_char.character));
            return;
        }
        self.append_styled(out, TextStyle::PLAIN, TextStyle::PLAIN);
    }

    /// Appends the characters with their styles, after text with style `before` and before text with style
    /// `after`.
    pub(crate) fn append_styled(&self, out: &mut String, before: TextStyle, after: TextStyle) {
        let mut style = before;
        let mut set_style = |target: TextStyle, out: &mut String| {
            if style != target {
                style = target;
                if target.is_plain() {
                    out.push_str("\x1b[0m");
                } else {
                    target.write(out);
                }
            }
        };
        if !self.plain.is_empty() {
            set_style(TextStyle::PLAIN, out);
            out.push_str(&self.plain);
        }
        for styled_char in &self.chars {
            set_style(styled_char.style, out);
            out.push(styled_char.character);
        }
        set_style(after, out);
    }

    fn split_into_chars(&mut self) {
        if !self.styled {
            self.styled = true;
            let style = TextStyle::PLAIN;
            self.chars.extend(
                self.plain
                    .chars()
                    .map(|character| StyledChar { character, style }),
            );
            self.plain.clear();
        }
    }

    fn pad(&mut self, column: usize) {
        if self.chars.len() < column {
            self.chars.resize(column, BLANK);
            self.length = self.length.max(column);
        }
    }
}
