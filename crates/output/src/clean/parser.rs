//! Splits text into plain text, `\r`, `\b` and control sequences, across chunk boundaries.
//!
//! The states follow the VT500 parser, as far as needed: the start of a sequence determines its length, and
//! no part of it is text. Control characters arrive as C0 or as U+0080 to U+009F. Text without control
//! characters is passed on in one chunk, found by a loop that the compiler vectorises.

/// Receives the parser's events.
pub(crate) trait AnsiHandler {
    /// Text, tabs and newlines.
    fn on_text(&mut self, text: &str);
    /// `\r`.
    fn on_carriage_return(&mut self);
    /// `\b`.
    fn on_backspace(&mut self);
    /// A control sequence without private or intermediate characters.
    fn on_control_sequence(&mut self, sequence: ControlSequence<'_>);
    /// `ESC M`: one line up.
    fn on_reverse_index(&mut self) {}
}

/// A control sequence (CSI): `ESC [`, parameters, and a final byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlSequence<'a> {
    /// Digits, `;` and `:`.
    pub(crate) parameters: &'a str,
    /// The function, for example `b'm'`.
    pub(crate) final_byte: u8,
}

impl ControlSequence<'_> {
    /// Returns the first parameter, or `default` if there is none.
    pub(crate) fn first_parameter_or(&self, default: usize) -> usize {
        let first = self.parameters.split([';', ':']).next().unwrap_or_default();
        if first.is_empty() {
            return default;
        }
        first.parse().unwrap_or(usize::MAX)
    }
}

/// Maximum length of parameters; longer sequences are ignored.
const PARAMETERS_LIMIT: usize = 128;

/// Maximum length of an OSC string (title, link). A stray `ESC ]` must not hide the text after it.
const COMMAND_STRING_LIMIT: usize = 4096;

/// Maximum length of other control strings, which may contain images.
const CONTROL_STRING_LIMIT: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Ground,
    /// After `ESC`.
    Escape,
    /// After `ESC` and intermediate characters.
    Intermediate,
    /// After `ESC [`.
    ControlSequence { ignored: bool },
    /// In OSC (`command`), DCS, SOS, PM or APC, after `length` bytes.
    ControlString { command: bool, length: usize },
    /// After an `ESC` in a control string.
    ControlStringEscape,
}

/// The parser's position within a sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnsiParser {
    state: ParserState,
    parameters: String,
}

impl AnsiParser {
    /// Parses the next chunk of text.
    pub(crate) fn push(&mut self, text: &str, handler: &mut impl AnsiHandler) {
        let mut rest = text;
        while !rest.is_empty() {
            let consumed = match self.state {
                ParserState::Ground => self.parse_ground(rest, handler),
                ParserState::ControlString { command, length } => {
                    self.skip_string(rest, command, length)
                }
                _ => self.parse_sequence(rest, handler),
            };
            rest = &rest[consumed..];
        }
    }

    fn parse_ground(&mut self, text: &str, handler: &mut impl AnsiHandler) -> usize {
        let bytes = text.as_bytes();
        let end = find_special(bytes);
        if end > 0 {
            handler.on_text(&text[..end]);
        }
        match bytes.get(end) {
            None => return end,
            Some(b'\r') => handler.on_carriage_return(),
            Some(0x08) => handler.on_backspace(),
            Some(0x1b) => self.state = ParserState::Escape,
            Some(0xc2) => {
                self.begin_c1(bytes[end + 1]);
                return end + 2;
            }
            Some(_) => {}
        }
        end + 1
    }

    fn begin_c1(&mut self, byte: u8) {
        match byte {
            0x9b => self.begin_control(),
            0x9d => self.begin_string(true),
            0x90 | 0x98 | 0x9e | 0x9f => self.begin_string(false),
            _ => self.state = ParserState::Ground,
        }
    }

    fn begin_control(&mut self) {
        self.parameters.clear();
        self.state = ParserState::ControlSequence { ignored: false };
    }

    fn begin_string(&mut self, command: bool) {
        self.state = ParserState::ControlString { command, length: 0 };
    }

    /// Skips to a possible end of the control string.
    fn skip_string(&mut self, text: &str, command: bool, length: usize) -> usize {
        let limit = if command {
            COMMAND_STRING_LIMIT
        } else {
            CONTROL_STRING_LIMIT
        };
        let bytes = text.as_bytes();
        let ends = |at: usize| match bytes[at] {
            // A newline ends the string too. An image may span several lines, but an unterminated string
            // would hide all text after it.
            0x07 | 0x18 | 0x1a | 0x1b | b'\n' => true,
            0xc2 => bytes[at + 1] == 0x9c,
            _ => false,
        };
        let left = limit - length;
        let Some(end) = (0..bytes.len().min(left)).find(|&at| ends(at)) else {
            if bytes.len() < left {
                self.begin_string(command);
                self.state = ParserState::ControlString {
                    command,
                    length: length + bytes.len(),
                };
                return bytes.len();
            }
            self.state = ParserState::Ground;
            return text.ceil_char_boundary(left);
        };
        self.state = ParserState::Ground;
        match bytes[end] {
            0x1b => {
                self.state = ParserState::ControlStringEscape;
                end + 1
            }
            // The newline itself is text.
            b'\n' => end,
            0xc2 => end + 2,
            _ => end + 1,
        }
    }

    /// Parses one character within a sequence.
    fn parse_sequence(&mut self, text: &str, handler: &mut impl AnsiHandler) -> usize {
        let Some(character) = text.chars().next() else {
            return 0;
        };
        let length = character.len_utf8();
        match (self.state, character) {
            // A terminal executes these within a sequence and continues the sequence.
            (_, '\n' | '\t') => handler.on_text(&text[..1]),
            (_, '\r') => handler.on_carriage_return(),
            (_, '\u{8}') => handler.on_backspace(),
            (_, '\u{18}' | '\u{1a}') => self.state = ParserState::Ground,
            (_, '\u{1b}') => self.state = ParserState::Escape,
            (_, '\u{80}'..='\u{9f}') => self.begin_c1(text.as_bytes()[1]),
            (_, '\0'..='\u{1f}' | '\u{7f}') | (ParserState::Intermediate, ' '..='/') => {}
            (ParserState::Escape | ParserState::ControlStringEscape, '[') => self.begin_control(),
            (ParserState::Escape | ParserState::ControlStringEscape, ']') => {
                self.begin_string(true);
            }
            (ParserState::Escape | ParserState::ControlStringEscape, 'P' | 'X' | '^' | '_') => {
                self.begin_string(false);
            }
            (ParserState::Escape | ParserState::ControlStringEscape, ' '..='/') => {
                self.state = ParserState::Intermediate;
            }
            (ParserState::Escape, 'M') => {
                self.state = ParserState::Ground;
                handler.on_reverse_index();
            }
            (
                ParserState::Escape | ParserState::ControlStringEscape | ParserState::Intermediate,
                '0'..='~',
            ) => {
                self.state = ParserState::Ground;
            }
            (ParserState::ControlSequence { .. }, '0'..='9' | ';' | ':') => {
                if self.parameters.len() < PARAMETERS_LIMIT {
                    self.parameters.push(character);
                } else {
                    self.state = ParserState::ControlSequence { ignored: true };
                }
            }
            (ParserState::ControlSequence { .. }, ' '..='?') => {
                self.state = ParserState::ControlSequence { ignored: true };
            }
            (ParserState::ControlSequence { ignored }, '@'..='~') => {
                self.state = ParserState::Ground;
                if !ignored {
                    handler.on_control_sequence(ControlSequence {
                        parameters: &self.parameters,
                        final_byte: text.as_bytes()[0],
                    });
                }
            }
            // The character cannot be part of a sequence: it is text.
            _ => {
                self.state = ParserState::Ground;
                return 0;
            }
        }
        length
    }
}

/// Returns the position of the first control character except tab and newline, or the length.
fn find_special(bytes: &[u8]) -> usize {
    /// Control characters are often close together, where vector code would not pay.
    const NEAR_SIZE: usize = 24;
    /// Large enough for vector code, small enough to search again byte by byte.
    const BLOCK_SIZE: usize = 128;
    let scan = |start: usize, end: usize| {
        (start..end).find(|&at| {
            // The second byte of U+0080 to U+009F is below 0xa0.
            is_special(bytes[at]) && (bytes[at] != C1_LEAD_BYTE || bytes[at + 1] < 0xa0)
        })
    };
    let near = bytes.len().min(NEAR_SIZE);
    if let Some(at) = scan(0, near) {
        return at;
    }
    let mut start = near;
    while start < bytes.len() {
        let end = bytes.len().min(start + BLOCK_SIZE);
        let any = |any, &byte: &u8| any | is_special(byte);
        if bytes[start..end].iter().fold(false, any)
            && let Some(at) = scan(start, end)
        {
            return at;
        }
        start = end;
    }
    bytes.len()
}

/// The first byte of U+0080 to U+00BF in UTF-8.
pub(super) const C1_LEAD_BYTE: u8 = 0xc2;

/// Returns whether a control character can start with this byte. Without branches, so that the compiler
/// vectorises a loop over many bytes.
#[allow(clippy::needless_bitwise_bool)]
fn is_special(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f) | (byte == C1_LEAD_BYTE)
}
