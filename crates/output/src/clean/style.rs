//! Colours and emphasis, as `ESC [ … m` sets them.

/// A colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Colour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// How a character looks. Concealed text is not offered: people shall see what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    foreground: Colour,
    background: Colour,
    /// A bit for each of [`EMPHASES`].
    emphases: u8,
}

/// What turns an emphasis on, and what turns it off.
const EMPHASES: [(u16, u16); 7] = [
    (1, 22),
    (2, 22),
    (3, 23),
    (4, 24),
    (5, 25),
    (7, 27),
    (9, 29),
];

impl Style {
    /// Like any other text.
    pub(crate) const PLAIN: Self = Self {
        foreground: Colour::Default,
        background: Colour::Default,
        emphases: 0,
    };

    /// Whether it looks like any other text.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Does what `ESC [ parameters m` does.
    pub(crate) fn apply(&mut self, parameters: &str) {
        // `4:3` is a kind of underline: what follows the colon refines it, but for colours, where
        // it stands for `;`.
        let mut codes = parameters.split(';').map(|group| {
            let mut parts = group.split(':');
            (number(parts.next().unwrap_or_default()), parts)
        });
        while let Some((code, mut parts)) = codes.next() {
            match code {
                0 => *self = Self::default(),
                30..=37 => self.foreground = indexed(code - 30),
                90..=97 => self.foreground = indexed(code - 90 + 8),
                39 => self.foreground = Colour::Default,
                40..=47 => self.background = indexed(code - 40),
                100..=107 => self.background = indexed(code - 100 + 8),
                49 => self.background = Colour::Default,
                38 | 48 => {
                    let inner: Vec<u16> = parts.by_ref().map(number).collect();
                    let colour = if inner.is_empty() {
                        let kind = codes.next().map_or(0, |(kind, _)| kind);
                        let count = if kind == 2 { 3 } else { usize::from(kind == 5) };
                        let rest: Vec<u16> =
                            codes.by_ref().take(count).map(|(code, _)| code).collect();
                        colour(kind, &rest)
                    } else {
                        // `38:2::r:g:b` names a colour space first.
                        let rest = &inner[1..];
                        colour(inner[0], &rest[rest.len().saturating_sub(3)..])
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
        for (bit, (on, off)) in EMPHASES.into_iter().enumerate() {
            if code == off || code == on && none {
                self.emphases &= !(1 << bit);
            } else if code == on {
                self.emphases |= 1 << bit;
            }
        }
    }

    /// Writes what makes text look like this, whatever it looked like before.
    pub(crate) fn write(self, out: &mut String) {
        out.push_str("\x1b[0");
        for (bit, (on, _)) in EMPHASES.into_iter().enumerate() {
            if self.emphases & (1 << bit) != 0 {
                push(out, on);
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
            Self::Indexed(index @ 0..8) => push(out, base + u16::from(index)),
            Self::Indexed(index @ 8..16) => push(out, base + 60 + u16::from(index) - 8),
            Self::Indexed(index) => {
                push(out, base + 8);
                push(out, 5);
                push(out, u16::from(index));
            }
            Self::Rgb(red, green, blue) => {
                push(out, base + 8);
                push(out, 2);
                for part in [red, green, blue] {
                    push(out, u16::from(part));
                }
            }
        }
    }
}

fn push(out: &mut String, code: u16) {
    out.push_str(&format!(";{code}"));
}

fn number(text: &str) -> u16 {
    if text.is_empty() {
        return 0;
    }
    // Too large is unknown, not zero, which would reset everything.
    text.parse().unwrap_or(u16::MAX)
}

fn indexed(index: u16) -> Colour {
    u8::try_from(index).map_or(Colour::Default, Colour::Indexed)
}

fn colour(kind: u16, rest: &[u16]) -> Option<Colour> {
    let part = |at: usize| rest.get(at).and_then(|&part| u8::try_from(part).ok());
    match kind {
        5 => Some(Colour::Indexed(part(0)?)),
        2 => Some(Colour::Rgb(part(0)?, part(1)?, part(2)?)),
        _ => None,
    }
}
