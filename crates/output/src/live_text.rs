//! [`LiveText`]: stream text for a viewer while a cell runs. Text is passed on immediately, without sequences
//! that could harm a terminal. Only incomplete characters and sequences are held back.
//!
//! A terminal receives `\r`, `\b`, "erase in line", and "cursor up" within the rows that the stream wrote, so that progress
//! bars move, also several below each other, and colours if it supports them. A pipe receives none of these: a redrawn line appears once, in its final state.

use crate::clean::{AnsiHandler, AnsiParser, ControlSequence, Row, TextStyle};
use crate::limits::Limits;
use crate::utf8::Utf8Decoder;

/// The destination of live text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveTarget {
    /// A terminal that shows colours.
    ColourTerminal,
    /// A terminal without colours.
    PlainTerminal,
    /// A pipe or a file.
    Pipe,
}

/// Converts the raw bytes of one stream for a viewer.
#[derive(Clone, Debug)]
pub struct LiveText {
    decoder: Utf8Decoder,
    parser: AnsiParser,
    state: LiveState,
}

#[derive(Clone, Debug)]
struct LiveState {
    target: LiveTarget,
    style: TextStyle,
    columns_limit: usize,
    /// Whether text of the current line was passed on.
    line_started: bool,
    /// A `\r` arrived; the next character determines its meaning.
    pending_return: bool,
    /// The line being redrawn, and the cursor's column.
    redrawn_line: Option<(Row, usize)>,
    /// Number of columns of the terminal, and the cursor's column in a line that is being redrawn there.
    window: Option<usize>,
    window_column: Option<usize>,
    /// Rows of the terminal above the cursor that only this stream has written. The cursor moves up no further.
    rows_above: usize,
    /// Rows of this stream below the cursor, which has moved up.
    rows_below: usize,
}

impl LiveText {
    /// Creates a converter for one stream.
    pub fn new(target: LiveTarget) -> Self {
        Self {
            decoder: Utf8Decoder::default(),
            parser: AnsiParser::default(),
            state: LiveState {
                target,
                style: TextStyle::default(),
                columns_limit: Limits::default().line_characters,
                line_started: false,
                pending_return: false,
                redrawn_line: None,
                window: None,
                window_column: None,
                rows_above: 0,
                rows_below: 0,
            },
        }
    }

    /// Sets the number of columns of the terminal. A redrawn line is clipped to it: a wrapped line could not be redrawn.
    #[must_use]
    pub fn with_columns(mut self, columns: Option<usize>) -> Self {
        self.state.window = columns;
        self
    }

    /// Receives bytes, and appends the text to show to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let Self {
            decoder,
            parser,
            state,
        } = self;
        decoder.push(bytes, |text| {
            parser.push(text, &mut LiveWriter { state, out });
        });
    }

    /// Appends the text held back, and resets colours.
    pub fn finish(&mut self, out: &mut String) {
        let Self {
            decoder,
            parser,
            state,
        } = self;
        decoder.finish(|text| parser.push(text, &mut LiveWriter { state, out }));
        self.state.end_redrawing(out);
        self.leave_rows(out);
        if !self.state.style.is_plain() {
            self.state.style = TextStyle::default();
            out.push_str("\x1b[0m");
        }
    }
}

impl LiveText {
    /// Ends the redrawing of rows, because something else writes to the terminal: moves below the rows of this stream.
    pub fn leave_rows(&mut self, out: &mut String) {
        let state = &mut self.state;
        state.rows_above = 0;
        if state.rows_below > 0 {
            // The last row may have text.
            out.extend(std::iter::repeat_n('\n', state.rows_below + 1));
            state.rows_below = 0;
            state.window_column = None;
        }
    }
}

impl LiveState {
    /// Counts the rows of text that a terminal receives.
    fn count_rows(&mut self, text: &str) {
        let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.rows_above = self.rows_above.saturating_add(rows);
        self.rows_below = self.rows_below.saturating_sub(rows);
    }

    /// Moves the cursor up within the rows of this stream.
    fn move_up(&mut self, rows: usize, out: &mut String) {
        let rows = rows.min(self.rows_above);
        if rows > 0 {
            out.push_str(&format!("\x1b[{rows}A"));
            self.rows_above -= rows;
            self.rows_below += rows;
        }
    }

    /// Starts redrawing the line. Text already passed on stays, on a separate line.
    fn start_redrawing(&mut self, out: &mut String) -> &mut (Row, usize) {
        if self.redrawn_line.is_none() && self.line_started {
            out.push('\n');
            self.line_started = false;
        }
        self.redrawn_line.get_or_insert_default()
    }

    fn end_redrawing(&mut self, out: &mut String) {
        if let Some((row, _)) = self.redrawn_line.take() {
            row.append_to(out, false);
            self.line_started = !row.is_empty();
        }
    }

    /// Writes text to a terminal. What does not fit in a redrawn line is omitted.
    fn write_to_terminal(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while let (Some(column), Some(columns)) = (self.window_column, self.window) {
            let (line, after) = match rest.split_once('\n') {
                Some((line, after)) => (line, Some(after)),
                None => (rest, None),
            };
            let mut end = column;
            for character in line.chars() {
                let width = character_width(character);
                // The last column stays free: some terminals wrap there.
                if end + width < columns {
                    out.push(character);
                }
                end += width;
            }
            let Some(after) = after else {
                self.window_column = Some(end);
                return;
            };
            out.push('\n');
            self.window_column = None;
            rest = after;
        }
        out.push_str(rest);
    }

    /// Writes text without newlines to a pipe.
    fn write(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.pending_return) {
            self.start_redrawing(out).1 = 0;
        }
        if let Some((row, column)) = &mut self.redrawn_line {
            *column = row.write(*column, text, TextStyle::default(), self.columns_limit);
        } else {
            out.push_str(text);
            self.line_started = true;
        }
    }
}

/// Number of columns of a character: two for East Asian characters and pictures.
fn character_width(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

struct LiveWriter<'a> {
    state: &'a mut LiveState,
    out: &'a mut String,
}

impl AnsiHandler for LiveWriter<'_> {
    fn on_text(&mut self, text: &str) {
        if self.state.target != LiveTarget::Pipe {
            self.state.write_to_terminal(text, self.out);
            self.state.count_rows(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            if self.state.redrawn_line.is_none() && !self.state.pending_return {
                self.out.push_str(rest);
                self.state.line_started = !rest.ends_with('\n');
                return;
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let line = &rest[..end.unwrap_or(rest.len())];
            if !line.is_empty() {
                self.state.write(line, self.out);
            }
            let Some(end) = end else { return };
            self.state.end_redrawing(self.out);
            self.state.pending_return = false;
            self.state.line_started = false;
            self.out.push('\n');
            rest = &rest[end + 1..];
        }
    }

    fn on_carriage_return(&mut self) {
        if self.state.target == LiveTarget::Pipe {
            self.state.pending_return = true;
        } else {
            self.state.window_column = Some(0);
            self.out.push('\r');
        }
    }

    fn on_backspace(&mut self) {
        if self.state.target != LiveTarget::Pipe {
            let column = &mut self.state.window_column;
            *column = column.map(|column| column.saturating_sub(1));
            self.out.push('\u{8}');
            return;
        }
        if !std::mem::take(&mut self.state.pending_return) {
            let (_, column) = self.state.start_redrawing(self.out);
            *column = column.saturating_sub(1);
        } else if let Some((_, column)) = &mut self.state.redrawn_line {
            *column = 0;
        }
    }

    fn on_control_sequence(&mut self, sequence: ControlSequence<'_>) {
        match (self.state.target, sequence.final_byte) {
            (LiveTarget::ColourTerminal, b'm') => {
                self.state.style.apply(sequence.parameters);
                if self.state.style.is_plain() {
                    self.out.push_str("\x1b[0m");
                } else {
                    self.state.style.write(self.out);
                }
            }
            (LiveTarget::ColourTerminal | LiveTarget::PlainTerminal, b'K') => {
                let which = sequence.first_parameter_or(0);
                if which <= 2 {
                    self.out.push_str(&format!("\x1b[{which}K"));
                }
            }
            (LiveTarget::ColourTerminal | LiveTarget::PlainTerminal, b'A') => {
                let rows = sequence.first_parameter_or(1).max(1);
                self.state.move_up(rows, self.out);
            }
            (LiveTarget::Pipe, b'K') => {
                if let Some((row, column)) = &mut self.state.redrawn_line {
                    let column = if self.state.pending_return {
                        0
                    } else {
                        *column
                    };
                    match sequence.first_parameter_or(0) {
                        0 => row.erase_from(column),
                        1 => row.erase_to(column),
                        2 => row.erase_from(0),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
