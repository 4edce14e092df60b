//! Text for terminals: control characters are shown instead of obeyed.
//!
//! A character is a control character here if a terminal obeys it, or if it changes how the text around it is
//! displayed: C0 except tab and line feed, DEL, C1, the line and paragraph separators, and the characters with the Unicode
//! property `Bidi_Control`, which can display text in another order than programs read it.

use std::borrow::Cow;
use std::io::{self, Write};

/// Whether a terminal must not receive the character.
pub fn is_control(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        _ => character.is_control(),
    }
}

/// Replaces control characters by text: `␛` for ESC and so on for C0 and DEL, `<U+202E>` for the others. Different control
/// characters stay different.
pub fn show_controls(text: &str) -> Cow<'_, str> {
    replace(text, |_| None, push_symbol)
}

/// Like [`show_controls`], but colours (`ESC [ … m`), "erase in line" (`ESC [ … K`), "cursor up" (`ESC [ … A`), carriage returns
/// and backspaces stay. For text whose sequences are ours or were checked.
pub fn show_other_controls(text: &str) -> Cow<'_, str> {
    replace(text, permitted_length, push_symbol)
}

/// Replaces control characters in JSON by escapes such as `\u009b`, and carriage returns between its tokens by spaces. The value
/// of the JSON stays the same.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let push_escape = |character, out: &mut String| match character {
        // JSON strings cannot contain it.
        '\r' => out.push(' '),
        _ => out.push_str(&format!("\\u{:04x}", u32::from(character))),
    };
    replace(json, |_| None, push_escape)
}

fn push_symbol(character: char, out: &mut String) {
    match character {
        '\u{7f}' => out.push('\u{2421}'),
        '\0'..='\u{1f}' => {
            out.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'));
        }
        _ => out.push_str(&format!("<U+{:04X}>", u32::from(character))),
    }
}

/// Replaces control characters. `permitted` returns the length of the text at a control character that stays.
fn replace(
    text: &str,
    permitted: impl Fn(&str) -> Option<usize>,
    push: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut searched = 0;
    while let Some(found) = find_control(&text[searched..]) {
        let at = searched + found;
        let rest = &text[at..];
        let Some(character) = rest.chars().next() else {
            break;
        };
        if let Some(length) = permitted(rest) {
            searched = at + length;
            continue;
        }
        out.push_str(&text[copied..at]);
        push(character, &mut out);
        searched = at + character.len_utf8();
        copied = searched;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn find_control(text: &str) -> Option<usize> {
    // Most text is ASCII, where bytes can be compared.
    let ascii = text.bytes().position(|byte| {
        !byte.is_ascii() || (byte.is_ascii_control() && byte != b'\n' && byte != b'\t')
    })?;
    // The position is the start of a character: every byte before it is ASCII.
    let rest = &text[ascii..];
    rest.find(is_control).map(|at| ascii + at)
}

/// The length of a permitted sequence at the start of a text.
fn permitted_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if matches!(bytes.first(), Some(b'\r' | 0x08)) {
        return Some(1);
    }
    let sequence = bytes.strip_prefix(b"\x1b[")?;
    let parameters = sequence
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':'))
        .count();
    matches!(sequence.get(parameters), Some(b'm' | b'K' | b'A')).then_some(2 + parameters + 1)
}

/// Writes JSON through [`escape_json`]. Characters can arrive in parts.
pub struct JsonEscapeWriter<W> {
    inner: W,
    buffer: Vec<u8>,
}

/// Number of bytes that are escaped at a time.
const BUFFER_SIZE: usize = 64 * 1024;

impl<W: Write> JsonEscapeWriter<W> {
    /// A writer that passes escaped JSON to `inner`.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
        }
    }

    /// Writes the complete characters of the buffer. Bytes that are no characters become U+FFFD.
    fn write_characters(&mut self) -> io::Result<()> {
        let incomplete = match std::str::from_utf8(&self.buffer) {
            Err(error) if error.error_len().is_none() => self.buffer.len() - error.valid_up_to(),
            _ => 0,
        };
        let complete = self.buffer.len() - incomplete;
        let text = String::from_utf8_lossy(&self.buffer[..complete]);
        self.inner.write_all(escape_json(&text).as_bytes())?;
        self.buffer.drain(..complete);
        Ok(())
    }
}

impl<W: Write> Write for JsonEscapeWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_SIZE {
            self.write_characters()?;
        }
        Ok(bytes.len())
    }

    /// Writes everything but an incomplete character.
    fn flush(&mut self) -> io::Result<()> {
        self.write_characters()?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_shown() {
        for (text, shown) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\u{1b}[2J\r\u{7f}\0", "␛[2J␍␡␀"),
            ("\u{9b}1m\u{85}", "<U+009B>1m<U+0085>"),
            (
                "ab\u{202e}cd\u{2066}\u{200f}",
                "ab<U+202E>cd<U+2066><U+200F>",
            ),
            ("a\u{2028}\u{2029}\u{61c}", "a<U+2028><U+2029><U+061C>"),
            ("Grüße, 東京 👩\u{200d}🔬", "Grüße, 東京 👩\u{200d}🔬"),
        ] {
            assert_eq!(show_controls(text), shown);
        }
    }

    #[test]
    fn only_colours_and_redrawing_stay() {
        for text in [
            "\u{1b}[31mred\u{1b}[0m",
            "\u{1b}[0;38;5;7mx\u{1b}[m",
            "\r\u{1b}[K50 %\u{8}",
            "\u{1b}[2K",
            "\u{1b}[1A",
        ] {
            assert_eq!(show_other_controls(text), text);
        }
        for (text, shown) in [
            ("\u{1b}[2J", "␛[2J"),
            ("\u{1b}[?25l", "␛[?25l"),
            ("\u{1b}[31", "␛[31"),
            ("\u{1b}[31 m", "␛[31 m"),
            ("\u{1b}[>4m", "␛[>4m"),
            ("\u{1b}]0;x\u{7}", "␛]0;x␇"),
            ("\u{1b}\u{1b}[1m", "␛\u{1b}[1m"),
            ("\u{9b}1m", "<U+009B>1m"),
            ("\u{1b}[1m\u{202e}", "\u{1b}[1m<U+202E>"),
        ] {
            assert_eq!(show_other_controls(text), shown);
        }
    }

    #[test]
    fn json_keeps_its_value() {
        assert_eq!(
            escape_json("\"\u{9b}\u{7f}\u{202e}\""),
            r#""\u009b\u007f\u202e""#
        );
        assert_eq!(escape_json("[1,\r\n2]"), "[1, \n2]");
    }

    /// Strings in which control characters and parts of sequences are frequent.
    fn hostile_text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            any::<char>().prop_map(String::from),
            prop::sample::select(vec![
                "\u{1b}", "[", "]", "0;", "31", "m", "K", "A", "J", "\u{7}", "\u{9b}", "\u{9d}",
                "\u{90}", "\\", "\u{7f}", "\u{202e}", "\u{2066}", "\u{200e}", "\u{61c}",
                "\u{2028}", "\r", "\u{8}", "\n", "\t", "?", ":", " ",
            ])
            .prop_map(String::from),
            "[ -~]{0,4}",
        ];
        prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_control_character_remains(text in hostile_text()) {
            let shown = show_controls(&text);
            prop_assert!(!shown.contains(is_control), "{shown:?}");
            prop_assert_eq!(show_controls(&shown), shown.clone());
            // Text without control characters stays.
            let harmless: String = text.chars().filter(|c| !is_control(*c)).collect();
            prop_assert_eq!(show_controls(&harmless), harmless.clone());
        }

        #[test]
        fn only_permitted_sequences_remain(text in hostile_text()) {
            let shown = show_other_controls(&text).into_owned();
            let mut rest = shown.replace(['\r', '\u{8}'], "");
            while let Some(at) = rest.find('\u{1b}') {
                let (before, sequence) = rest.split_at(at);
                let end = sequence.find(['m', 'K', 'A']);
                prop_assert!(end.is_some(), "{shown:?}");
                let (sequence, after) = sequence.split_at(end.unwrap_or_default());
                let parameters = sequence.strip_prefix("\u{1b}[");
                let is_parameter = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
                prop_assert!(parameters.is_some_and(|text| text.chars().all(is_parameter)), "{shown:?}");
                rest = format!("{before}{after}");
            }
            prop_assert!(!rest.contains(is_control), "{shown:?}");
        }

        #[test]
        fn escaped_json_has_the_same_value(text in hostile_text(), cuts in 1usize..9) {
            // The standard library has no JSON parser; the text needs only these escapes.
            let plain: String = text.chars().filter(|c| *c >= ' ' && *c != '"' && *c != '\\').collect();
            let json = format!("\"{plain}\"");
            let mut written = Vec::new();
            let mut writer = JsonEscapeWriter::new(&mut written);
            for bytes in json.as_bytes().chunks(cuts) {
                writer.write_all(bytes).unwrap();
                writer.flush().unwrap();
            }
            let written = String::from_utf8(written).unwrap();
            prop_assert_eq!(&written, &escape_json(&json));
            prop_assert!(!written.contains(is_control));
            let mut decoded = String::new();
            let mut parts = written.split("\\u");
            decoded.push_str(parts.next().unwrap());
            for part in parts {
                let code = u32::from_str_radix(&part[..4], 16).unwrap();
                decoded.push(char::from_u32(code).unwrap());
                decoded.push_str(&part[4..]);
            }
            prop_assert_eq!(decoded, json);
        }
    }
}
