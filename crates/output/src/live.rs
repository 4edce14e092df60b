//! Text for people while a cell runs: what comes goes on at once, but nothing that could harm a
//! terminal. Only the beginning of a character or of a sequence is held back.
//!
//! A terminal gets `\r`, `\b` and "erase in line" as they are, so that a progress bar moves, and
//! colours if it shows them. A pipe gets none of these: there a line that is drawn again and again
//! appears once, when it is done.

use crate::clean::{Act, Parser, Row, Sequence, Style};
use crate::limits::Limits;
use crate::utf8::Decoder;

/// Where the text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A terminal that shows colours.
    Colours,
    /// A terminal without colours.
    Terminal,
    /// A pipe or a file.
    Pipe,
}

/// Makes what one stream brings fit to be shown.
#[derive(Clone, Debug)]
pub struct Live {
    decoder: Decoder,
    parser: Parser,
    face: Face,
}

#[derive(Clone, Debug)]
struct Face {
    target: Target,
    style: Style,
    most_columns: usize,
    /// Whether the line has text that went out.
    begun: bool,
    /// `\r` came, and what follows decides what it means.
    returned: bool,
    /// A line that is being redrawn, and where the cursor is in it.
    redrawn: Option<(Row, usize)>,
}

impl Live {
    /// For one stream.
    pub fn new(target: Target) -> Self {
        Self {
            decoder: Decoder::default(),
            parser: Parser::default(),
            face: Face {
                target,
                style: Style::default(),
                most_columns: Limits::default().line_characters,
                begun: false,
                returned: false,
                redrawn: None,
            },
        }
    }

    /// Takes bytes, and appends what can be shown.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let Self {
            decoder,
            parser,
            face,
        } = self;
        decoder.push(bytes, |text| parser.push(text, &mut Painter { face, out }));
    }

    /// Nothing more comes: appends what was held back, and turns colours off.
    pub fn finish(&mut self, out: &mut String) {
        let Self {
            decoder,
            parser,
            face,
        } = self;
        decoder.finish(|text| parser.push(text, &mut Painter { face, out }));
        self.face.end_redrawing(out);
        if !self.face.style.is_plain() {
            self.face.style = Style::default();
            out.push_str("\x1b[0m");
        }
    }
}

impl Face {
    /// From here on the line is drawn anew; what went out of it stays, on a line of its own.
    fn redraw(&mut self, out: &mut String) -> &mut (Row, usize) {
        if self.redrawn.is_none() && self.begun {
            out.push('\n');
            self.begun = false;
        }
        self.redrawn.get_or_insert_default()
    }

    fn end_redrawing(&mut self, out: &mut String) {
        if let Some((row, _)) = self.redrawn.take() {
            row.append_to(out, false);
            self.begun = !row.is_empty();
        }
    }

    /// Text without newlines, to a pipe.
    fn write(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.returned) {
            self.redraw(out).1 = 0;
        }
        if let Some((row, column)) = &mut self.redrawn {
            *column = row.write(*column, text, Style::default(), self.most_columns);
        } else {
            out.push_str(text);
            self.begun = true;
        }
    }
}

struct Painter<'a> {
    face: &'a mut Face,
    out: &'a mut String,
}

impl Act for Painter<'_> {
    fn text(&mut self, text: &str) {
        if self.face.target != Target::Pipe {
            self.out.push_str(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            if self.face.redrawn.is_none() && !self.face.returned {
                self.out.push_str(rest);
                self.face.begun = !rest.ends_with('\n');
                return;
            }
            let end = memchr::memchr(b'\n', rest.as_bytes());
            let line = &rest[..end.unwrap_or(rest.len())];
            if !line.is_empty() {
                self.face.write(line, self.out);
            }
            let Some(end) = end else { return };
            self.face.end_redrawing(self.out);
            self.face.returned = false;
            self.face.begun = false;
            self.out.push('\n');
            rest = &rest[end + 1..];
        }
    }

    fn carriage_return(&mut self) {
        if self.face.target == Target::Pipe {
            self.face.returned = true;
        } else {
            self.out.push('\r');
        }
    }

    fn backspace(&mut self) {
        if self.face.target != Target::Pipe {
            self.out.push('\u{8}');
            return;
        }
        if !std::mem::take(&mut self.face.returned) {
            let (_, column) = self.face.redraw(self.out);
            *column = column.saturating_sub(1);
        } else if let Some((_, column)) = &mut self.face.redrawn {
            *column = 0;
        }
    }

    fn control_sequence(&mut self, sequence: Sequence<'_>) {
        match (self.face.target, sequence.letter) {
            (Target::Colours, b'm') => {
                self.face.style.apply(sequence.parameters);
                if self.face.style.is_plain() {
                    self.out.push_str("\x1b[0m");
                } else {
                    self.face.style.write(self.out);
                }
            }
            (Target::Colours | Target::Terminal, b'K') => {
                let which = sequence.number(0);
                if which <= 2 {
                    self.out.push_str(&format!("\x1b[{which}K"));
                }
            }
            (Target::Pipe, b'K') => {
                if let Some((row, column)) = &mut self.face.redrawn {
                    let column = if self.face.returned { 0 } else { *column };
                    match sequence.number(0) {
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
