//! How JSON is laid out.

/// How JSON is laid out. The default is what Python's nbformat writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// One level of indentation; it counts only where lines are broken.
    pub unit: String,
    /// What ends a line: `"\n"`, `"\r\n"`, or nothing if everything stands on one line.
    pub newline: String,
    /// What stands between a name and its value.
    pub colon: String,
    /// What stands between two items, before the end of the line if there is one.
    pub comma: String,
    /// Whether everything but ASCII is written as `\uXXXX`.
    pub ascii: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            unit: " ".to_owned(),
            newline: "\n".to_owned(),
            colon: ": ".to_owned(),
            comma: ",".to_owned(),
            ascii: false,
        }
    }
}

impl Style {
    /// Everything on one line, without blanks.
    pub fn compact() -> Self {
        Self {
            unit: String::new(),
            newline: String::new(),
            colon: ":".to_owned(),
            comma: ",".to_owned(),
            ascii: false,
        }
    }
}
