//! [`Style`]: the white space and escapes of a JSON file.

/// How JSON is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Line break, or empty if the document is on one line.
    pub newline: String,
    /// The indentation of one level.
    pub unit: String,
    /// The separator between a name and its value.
    pub colon: String,
    /// The separator between items on one line.
    pub comma: String,
    /// Whether non-ASCII characters are written as escapes.
    pub ascii: bool,
}

impl Default for Style {
    /// Jupyter's style.
    fn default() -> Self {
        Self {
            newline: "\n".to_owned(),
            unit: " ".to_owned(),
            colon: ": ".to_owned(),
            comma: ", ".to_owned(),
            ascii: false,
        }
    }
}

impl Style {
    /// Detects the style from the beginning of a file's top-level object.
    pub(crate) fn detect(top: &[u8], ascii: bool) -> Self {
        let is_space = |b: &u8| b.is_ascii_whitespace();
        let gap = top[1..].iter().take_while(|b| is_space(b)).count();
        let space = &top[1..=gap];
        let newline = if space.contains(&b'\n') {
            if space.contains(&b'\r') { "\r\n" } else { "\n" }
        } else {
            ""
        };
        let unit_start = memchr::memrchr(b'\n', space).map_or(space.len(), |at| at + 1);
        // The first name of a real notebook has no escapes. If it has, the text found here may
        // lie inside the name, so it is used only if it can be a colon.
        let name = top.get(gap + 2..).unwrap_or_default();
        let name_end = memchr::memchr(b'"', name).map_or(0, |at| gap + 3 + at);
        let colon: Vec<u8> = top[name_end..]
            .iter()
            .copied()
            .take_while(|b| is_space(b) || *b == b':')
            .collect();
        let colon = String::from_utf8_lossy(&colon).into_owned();
        Self {
            newline: newline.to_owned(),
            unit: String::from_utf8_lossy(&space[unit_start..]).into_owned(),
            comma: if colon.ends_with(' ') { ", " } else { "," }.to_owned(),
            colon: if colon.matches(':').count() == 1 {
                colon
            } else {
                ": ".to_owned()
            },
            ascii,
        }
    }

    /// A line break and the indentation of a level; empty if the document is on one line.
    pub(crate) fn line(&self, depth: usize) -> String {
        if self.newline.is_empty() {
            return String::new();
        }
        format!("{}{}", self.newline, self.unit.repeat(depth))
    }

    /// The separator between two items at a level.
    pub(crate) fn between(&self, depth: usize) -> String {
        if self.newline.is_empty() {
            return self.comma.clone();
        }
        format!(",{}", self.line(depth))
    }
}
