//! Colours and emphasis, as `ESC [ … m` sets them.

/// A colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Colour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The style of a character. Concealed text is not supported: all text stays visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextStyle {
    foreground: Colour,
    background: Colour,
    /// One bit for each of [`EMPHASIS_CODES`].
    emphasis: u8,
}

/// The codes that turn each emphasis on and off.
const EMPHASIS_CODES: [(u16, u16); 7] = [
    (1, 22),
    (2, 22),
    (3, 23),
    (4, 24),
    (5, 25),
    (7, 27),
    (9, 29),
];

impl TextStyle {
    /// No colour and no emphasis.
    pub(crate) const PLAIN: Self = Self {
        foreground: Colour::Default,
        background: Colour::Default,
        emphasis: 0,
    };

    /// Returns whether there is no colour and no emphasis.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Applies `ESC [ parameters m`.
    pub(crate) fn apply(&mut self, parameters: &str) {
        // In `4:3`, the part after the colon refines the underline. In colours, a colon is a separator like
        // `;`.
        let mut codes = parameters.split(';').map(|group| {
            let mut parts = group.split(':');
            (parse_code(parts.next().unwrap_or_default()), parts)
        });
        while let Some((code, mut parts)) = codes.next() {
            match code {
                0 => *self = Self::default(),
                30..=37 => self.foreground = indexed_colour(code - 30),
                90..=97 => self.foreground = indexed_colour(code - 90 + 8),
                39 => self.foreground = Colour::Default,
                40..=47 => self.background = indexed_colour(code - 40),
                100..=107 => self.background = indexed_colour(code - 100 + 8),
                49 => self.background = Colour::Default,
                38 | 48 => {
                    let sub_parameters: Vec<u16> = parts.by_ref().map(parse_code).collect();
                    let colour = if sub_parameters.is_empty() {
                        let kind = codes.next().map_or(0, |(kind, _)| kind);
                        let count = if kind == 2 { 3 } else { usize::from(kind == 5) };
                        let rest: Vec<u16> =
                            codes.by_ref().take(count).map(|(code, _)| code).collect();
                        parse_colour(kind, &rest)
                    } else {
                        // `38:2::r:g:b` starts with a colour space.
                        let rest = &sub_parameters[1..];
                        parse_colour(sub_parameters[0], &rest[rest.len().saturating_sub(3)..])
                    };
                    if let Some(colour) = colour {
                        if code == 38 {
                            self.foreground = colour;
                        } else {
                            self.background = colour;
                        }
                    }
                }
                _ => self.emphasise(code, parts.next() == Some("0")),
            }
        }
    }

    fn emphasise(&mut self, code: u16, none: bool) {
        for (bit, (on, off)) in EMPHASIS_CODES.into_iter().enumerate() {
            if code == off || code == on && none {
                self.emphasis &= !(1 << bit);
            } else if code == on {
                self.emphasis |= 1 << bit;
            }
        }
    }

    /// Writes the sequence that sets this style, whatever the current style is.
    pub(crate) fn write(self, out: &mut String) {
        out.push_str("\x1b[0");
        for (bit, (on, _)) in EMPHASIS_CODES.into_iter().enumerate() {
            if self.emphasis & (1 << bit) != 0 {
                push_code(out, on);
            }
        }
        self.foreground.write(out, 30);
        self.background.write(out, 40);
        out.push('m');
    }
}

impl Colour {
    fn write(self, out: &mut String, base: u16) {
        match self {
            Self::Default => {}
            Self::Indexed(index @ 0..8) => push_code(out, base + u16::from(index)),
            Self::Indexed(index @ 8..16) => push_code(out, base + 60 + u16::from(index) - 8),
            Self::Indexed(index) => {
                push_code(out, base + 8);
                push_code(out, 5);
                push_code(out, u16::from(index));
            }
            Self::Rgb(red, green, blue) => {
                push_code(out, base + 8);
                push_code(out, 2);
                for part in [red, green, blue] {
                    push_code(out, u16::from(part));
                }
            }
        }
    }
}

fn push_code(out: &mut String, code: u16) {
    out.push_str(&format!(";{code}"));
}

fn parse_code(text: &str) -> u16 {
    if text.is_empty() {
        return 0;
    }
    // A code that is too large is unknown. It must not become zero, which resets everything.
    text.parse().unwrap_or(u16::MAX)
}

fn indexed_colour(index: u16) -> Colour {
    u8::try_from(index).map_or(Colour::Default, Colour::Indexed)
}

fn parse_colour(kind: u16, rest: &[u16]) -> Option<Colour> {
    let part = |at: usize| rest.get(at).and_then(|&part| u8::try_from(part).ok());
    match kind {
        5 => Some(Colour::Indexed(part(0)?)),
        2 => Some(Colour::Rgb(part(0)?, part(1)?, part(2)?)),
        _ => None,
    }
}
