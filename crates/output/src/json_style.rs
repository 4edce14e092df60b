//! Layout of JSON text.

/// Layout of JSON text. The default is that of Python's nbformat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonStyle {
    /// One level of indentation, used if `newline` is not empty.
    pub indent: String,
    /// Line ending: `"\n"`, `"\r\n"`, or empty for JSON on one line.
    pub newline: String,
    /// Separator between a name and its value.
    pub colon: String,
    /// Separator between two items, before the line ending.
    pub comma: String,
    /// Whether non-ASCII characters are written as `\uXXXX`.
    pub ascii: bool,
}

impl Default for JsonStyle {
    fn default() -> Self {
        Self {
            indent: " ".to_owned(),
            newline: "\n".to_owned(),
            colon: ": ".to_owned(),
            comma: ",".to_owned(),
            ascii: false,
        }
    }
}

impl JsonStyle {
    /// JSON on one line, without spaces.
    pub fn compact() -> Self {
        Self {
            indent: String::new(),
            newline: String::new(),
            colon: ":".to_owned(),
            comma: ",".to_owned(),
            ascii: false,
        }
    }
}
