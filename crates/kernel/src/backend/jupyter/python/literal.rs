//! Values as Python source: ASCII, one line, the same in every version and encoding.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A `str`.
pub(super) fn text(text: &str) -> String {
    let mut source = String::with_capacity(text.len() + 2);
    source.push('\'');
    for character in text.chars() {
        match character {
            '\\' | '\'' => source.extend(['\\', character]),
            '\n' => source.push_str("\\n"),
            ' '..='~' => source.push(character),
            _ => {
                let code = u32::from(character);
                let _infallible = match code {
                    0..=0xff => write!(source, "\\x{code:02x}"),
                    0x100..=0xffff => write!(source, "\\u{code:04x}"),
                    _ => write!(source, "\\U{code:08x}"),
                };
            }
        }
    }
    source.push('\'');
    source
}

/// A path as a Python `str`, whatever bytes it contains.
pub(super) fn path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    match path.to_str() {
        Some(ascii) if bytes.is_ascii() => text(ascii),
        _ => format!("__import__('os').fsdecode({})", self::bytes(bytes)),
    }
}

fn bytes(bytes: &[u8]) -> String {
    let mut source = String::with_capacity(bytes.len() + 3);
    source.push_str("b'");
    for byte in bytes {
        match byte {
            b'\\' | b'\'' => source.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => source.push(char::from(*byte)),
            _ => {
                let _infallible = write!(source, "\\x{byte:02x}");
            }
        }
    }
    source.push('\'');
    source
}

/// A `str`, or `None`.
pub(super) fn optional_text(text: Option<&str>) -> String {
    text.map_or_else(|| "None".to_owned(), self::text)
}

/// A `bool`.
pub(super) fn boolean(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A `list` of sources.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", joined(items))
}

/// A `dict` with these keys; the values are sources.
pub(super) fn dict<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members = members.into_iter();
    let members = members.map(|(key, value)| format!("{}: {value}", text(key)));
    format!("{{{}}}", joined(members))
}

fn joined(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::python;

    use super::*;

    /// Evaluates these literals in Python. Returns the code points of each.
    fn read_back(sources: &[String]) -> Vec<Vec<u32>> {
        let program = "import ast, json, sys\nprefix = \"__import__('os').fsdecode(\"\nread = []\n\
            for source in json.load(sys.stdin):\n    assert source.isascii() and source.isprintable(), source\n    \
            if source.startswith(prefix):\n        value = ast.literal_eval(source[len(prefix):-1])\n        \
            value = value.decode('utf-8', 'surrogateescape')\n    else:\n        value = ast.literal_eval(source)\n    \
            read.append(list(map(ord, value)))\njson.dump(read, sys.stdout)";
        let output = python(&["-c", program], &serde_json::to_string(sources).unwrap());
        serde_json::from_str(&output).unwrap()
    }

    proptest! {
        // Each case starts a process that reads hundreds of literals.
        #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

        #[test]
        fn python_reads_the_same_text(texts in vec(any::<String>(), 200)) {
            let sources: Vec<String> = texts.iter().map(|one| text(one)).collect();
            let expected: Vec<Vec<u32>> = texts.iter().map(|one| one.chars().map(u32::from).collect()).collect();
            prop_assert_eq!(read_back(&sources), expected);
        }

        #[test]
        fn python_reads_the_same_path(paths in vec(vec(any::<u8>(), 0..20), 200)) {
            let sources: Vec<String> = paths
                .iter()
                .map(|bytes| path(Path::new(&OsString::from_vec(bytes.clone()))))
                .collect();
            for (bytes, read) in paths.iter().zip(read_back(&sources)) {
                // Invalid UTF-8 becomes lone surrogates, one for each byte.
                let mut again = Vec::new();
                for code in read {
                    match code {
                        0xdc80..=0xdcff => again.push(u8::try_from(code - 0xdc00).unwrap()),
                        _ => again.extend(char::from_u32(code).unwrap().to_string().bytes()),
                    }
                }
                prop_assert_eq!(&again, bytes);
            }
        }
    }

    #[test]
    fn quotes_and_line_ends_are_escaped() {
        let texts = [
            "",
            "'",
            "\\",
            "\\'",
            "\n",
            "\r\n",
            "\0",
            "'''\"\"\"",
            "{}%s",
            "\u{85}\u{2028}",
            "é€😀",
        ];
        let sources: Vec<String> = texts.iter().map(|one| text(one)).collect();
        let expected: Vec<Vec<u32>> = texts
            .iter()
            .map(|one| one.chars().map(u32::from).collect())
            .collect();
        assert_eq!(read_back(&sources), expected);
    }
}
