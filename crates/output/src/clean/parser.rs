//! Text → plain text, `\r`, `\b` and control sequences, across chunk borders.
//!
//! The states are those of a VT500 as far as they matter here: what a sequence begins with decides
//! how long it is, and none of it is ever text. Control characters come as C0 or as the characters
//! U+0080 to U+009F. Text without any of them is handed on in one piece, found by a loop that the
//! compiler turns into vector instructions.

/// What the parser finds.
pub(crate) trait Act {
    /// Text, tabs and newlines.
    fn text(&mut self, text: &str);
    /// `\r`.
    fn carriage_return(&mut self);
    /// `\b`.
    fn backspace(&mut self);
    /// A control sequence that is not private and has no intermediate characters.
    fn control_sequence(&mut self, sequence: Sequence<'_>);
    /// `ESC M`: one line up.
    fn reverse_index(&mut self) {}
}

/// A control sequence: `ESC [`, numbers, and a letter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence<'a> {
    /// Digits, `;` and `:`.
    pub(crate) parameters: &'a str,
    /// What it does.
    pub(crate) letter: u8,
}

impl Sequence<'_> {
    /// Its first number, or another if it has none.
    pub(crate) fn number(&self, otherwise: usize) -> usize {
        let first = self.parameters.split([';', ':']).next().unwrap_or_default();
        if first.is_empty() {
            return otherwise;
        }
        first.parse().unwrap_or(usize::MAX)
    }
}

/// Parameters longer than this make no sense.
const MOST_PARAMETERS: usize = 128;

/// A title or a link ends within this, or was not meant as one: a stray `ESC ]` must not swallow
/// what comes after it.
const MOST_OF_A_COMMAND: usize = 4096;

/// As above, for strings that may hold pictures.
const MOST_OF_A_STRING: usize = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After `ESC`.
    Escape,
    /// After `ESC` and intermediate characters.
    Intermediate,
    /// After `ESC [`.
    Control { ignored: bool },
    /// In OSC (`command`), DCS, SOS, PM or APC, after so many bytes.
    String { command: bool, length: usize },
    /// After an `ESC` in one of those.
    StringEscape,
}

/// Where in a sequence a stream of text stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parser {
    state: State,
    parameters: String,
}

impl Parser {
    /// Takes the next piece of text.
    pub(crate) fn push(&mut self, text: &str, act: &mut impl Act) {
        let mut rest = text;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Ground => self.ground(rest, act),
                State::String { command, length } => self.string(rest, command, length),
                _ => self.sequence(rest, act),
            };
            rest = &rest[taken..];
        }
    }

    fn ground(&mut self, text: &str, act: &mut impl Act) -> usize {
        let bytes = text.as_bytes();
        let end = find_special(bytes);
        if end > 0 {
            act.text(&text[..end]);
        }
        match bytes.get(end) {
            None => return end,
            Some(b'\r') => act.carriage_return(),
            Some(0x08) => act.backspace(),
            Some(0x1b) => self.state = State::Escape,
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
            _ => self.state = State::Ground,
        }
    }

    fn begin_control(&mut self) {
        self.parameters.clear();
        self.state = State::Control { ignored: false };
    }

    fn begin_string(&mut self, command: bool) {
        self.state = State::String { command, length: 0 };
    }

    /// Skips to what may end the string.
    fn string(&mut self, text: &str, command: bool, length: usize) -> usize {
        let most = if command {
            MOST_OF_A_COMMAND
        } else {
            MOST_OF_A_STRING
        };
        let bytes = text.as_bytes();
        let ends = |at: usize| match bytes[at] {
            // Pictures may go over several lines; but one that was never ended, or never meant as one,
            // would swallow all that follows.
            0x07 | 0x18 | 0x1a | 0x1b | b'\n' => true,
            0xc2 => bytes[at + 1] == 0x9c,
            _ => false,
        };
        let room = most - length;
        let Some(end) = (0..bytes.len().min(room)).find(|&at| ends(at)) else {
            if bytes.len() < room {
                self.begin_string(command);
                self.state = State::String {
                    command,
                    length: length + bytes.len(),
                };
                return bytes.len();
            }
            self.state = State::Ground;
            return text.ceil_char_boundary(room);
        };
        self.state = State::Ground;
        match bytes[end] {
            0x1b => {
                self.state = State::StringEscape;
                end + 1
            }
            // The line ends too.
            b'\n' => end,
            0xc2 => end + 2,
            _ => end + 1,
        }
    }

    /// One character within a sequence.
    fn sequence(&mut self, text: &str, act: &mut impl Act) -> usize {
        let Some(character) = text.chars().next() else {
            return 0;
        };
        let length = character.len_utf8();
        match (self.state, character) {
            // A terminal does these where they stand, and goes on with the sequence.
            (_, '\n' | '\t') => act.text(&text[..1]),
            (_, '\r') => act.carriage_return(),
            (_, '\u{8}') => act.backspace(),
            (_, '\u{18}' | '\u{1a}') => self.state = State::Ground,
            (_, '\u{1b}') => self.state = State::Escape,
            (_, '\u{80}'..='\u{9f}') => self.begin_c1(text.as_bytes()[1]),
            (_, '\0'..='\u{1f}' | '\u{7f}') | (State::Intermediate, ' '..='/') => {}
            (State::Escape | State::StringEscape, '[') => self.begin_control(),
            (State::Escape | State::StringEscape, ']') => self.begin_string(true),
            (State::Escape | State::StringEscape, 'P' | 'X' | '^' | '_') => {
                self.begin_string(false);
            }
            (State::Escape | State::StringEscape, ' '..='/') => self.state = State::Intermediate,
            (State::Escape, 'M') => {
                self.state = State::Ground;
                act.reverse_index();
            }
            (State::Escape | State::StringEscape | State::Intermediate, '0'..='~') => {
                self.state = State::Ground;
            }
            (State::Control { .. }, '0'..='9' | ';' | ':') => {
                if self.parameters.len() < MOST_PARAMETERS {
                    self.parameters.push(character);
                } else {
                    self.state = State::Control { ignored: true };
                }
            }
            (State::Control { .. }, ' '..='?') => {
                self.state = State::Control { ignored: true };
            }
            (State::Control { ignored }, '@'..='~') => {
                self.state = State::Ground;
                if !ignored {
                    act.control_sequence(Sequence {
                        parameters: &self.parameters,
                        letter: text.as_bytes()[0],
                    });
                }
            }
            // No sequence holds such a character: it is text, and there was none.
            _ => {
                self.state = State::Ground;
                return 0;
            }
        }
        length
    }
}

/// Where the first control character other than a tab or a newline is, or the length.
fn find_special(bytes: &[u8]) -> usize {
    /// Where there is one, the next is often near, and setting up vectors would not pay.
    const NEAR: usize = 24;
    /// Enough for vectors, little enough to be looked at again byte by byte.
    const BLOCK: usize = 128;
    let scan = |start: usize, end: usize| {
        (start..end).find(|&at| {
            // Of a character from U+0080 to U+009F the second byte is less than 0xa0.
            is_special(bytes[at]) && (bytes[at] != C1 || bytes[at + 1] < 0xa0)
        })
    };
    let near = bytes.len().min(NEAR);
    if let Some(at) = scan(0, near) {
        return at;
    }
    let mut start = near;
    while start < bytes.len() {
        let end = bytes.len().min(start + BLOCK);
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

/// The first byte of U+0080 to U+00BF.
pub(super) const C1: u8 = 0xc2;

/// Whether a control character may begin with this byte. Without branches, so that a loop over many
/// bytes becomes vector instructions.
#[allow(clippy::needless_bitwise_bool)]
fn is_special(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\n') & (byte != b'\t') | (byte == 0x7f) | (byte == C1)
}
