//! The line in a file of attributes that sends notebooks to us, put in and taken out to the byte.

/// What git does with notebooks.
const PLAIN: &str = "*.ipynb diff=cellwright merge=cellwright";

/// The same, with outputs taken out of what is committed.
const CLEAN: &str = "*.ipynb diff=cellwright merge=cellwright filter=cellwright";

/// The line that is wanted.
pub(super) fn line(clean: bool) -> &'static str {
    if clean { CLEAN } else { PLAIN }
}

/// Whether the file has our line, and whether it is the one with the filter.
pub(super) fn found(content: &[u8]) -> Option<bool> {
    let mut found = None;
    for line in lines(content) {
        let bare = bare(line);
        if bare == CLEAN.as_bytes() || bare == PLAIN.as_bytes() {
            found = Some(found == Some(true) || bare == CLEAN.as_bytes());
        }
    }
    found
}

/// The file with our line in it; `None` if nothing has to change. A line with the filter stays.
pub(super) fn with_line(content: Option<&[u8]>, clean: bool) -> Option<Vec<u8>> {
    let wanted = line(clean);
    let Some(content) = content else {
        return Some(format!("{wanted}\n").into_bytes());
    };
    match found(content) {
        Some(true) => None,
        Some(false) if !clean => None,
        Some(false) => {
            let mut out = Vec::new();
            for line in lines(content) {
                let bare = bare(line);
                let is_ours = bare == PLAIN.as_bytes();
                out.extend_from_slice(if is_ours { wanted.as_bytes() } else { bare });
                out.extend_from_slice(&line[bare.len()..]);
            }
            Some(out)
        }
        None => {
            let mut out = content.to_vec();
            let newline: &[u8] = if content.windows(2).any(|two| two == b"\r\n") {
                b"\r\n"
            } else {
                b"\n"
            };
            // A last line that does not end stays one: taking ours out gives back what was there.
            let ends = content.ends_with(b"\n");
            if !ends && !content.is_empty() {
                out.extend_from_slice(newline);
            }
            out.extend_from_slice(wanted.as_bytes());
            if ends {
                out.extend_from_slice(newline);
            }
            Some(out)
        }
    }
}

/// A file without our line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// It has none.
    Same,
    /// What is left of it.
    Rest(Vec<u8>),
    /// Nothing: it was made for the line.
    Gone,
}

/// Takes our line out.
pub(super) fn without_line(content: &[u8]) -> Without {
    if found(content).is_none() {
        return Without::Same;
    }
    let mut out: Vec<u8> = Vec::new();
    for line in lines(content) {
        let bare = bare(line);
        if bare != CLEAN.as_bytes() && bare != PLAIN.as_bytes() {
            out.extend_from_slice(line);
        } else if bare.len() == line.len() {
            // We put the line break before it.
            let rest = out.strip_suffix(b"\r\n").or(out.strip_suffix(b"\n"));
            let rest = rest.map(<[u8]>::len);
            out.truncate(rest.unwrap_or(out.len()));
        }
    }
    // Only a file that we made ends with our line and its line break.
    let is_made = out.is_empty() && content.ends_with(b"\n");
    if is_made {
        Without::Gone
    } else {
        Without::Rest(out)
    }
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|&byte| byte == b'\n')
}

/// A line without its end.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_taken_out_to_the_byte() {
        let files: [Option<&str>; 9] = [
            None,
            Some(""),
            Some("\n"),
            Some("*.png binary\n"),
            Some("*.png binary"),
            Some("*.png binary\r\n*.txt text\r\n"),
            Some("*.png binary\r\n*.txt text"),
            Some("# no end\n\n"),
            Some("*.ipynb diff=other\n*.ipynb diff=cellwright merge=cellwright -text\n"),
        ];
        for file in files {
            let file = file.map(str::as_bytes);
            for clean in [false, true] {
                let written = with_line(file, clean).unwrap();
                assert_eq!(found(&written), Some(clean));
                assert_eq!(with_line(Some(&written), clean), None, "twice is once");
                let before = file.map_or(Without::Gone, |file| Without::Rest(file.to_vec()));
                assert_eq!(without_line(&written), before, "{file:?}");
                if !clean {
                    let cleaned = with_line(Some(&written), true).unwrap();
                    assert_eq!(found(&cleaned), Some(true));
                    assert_eq!(with_line(Some(&cleaned), false), None, "the filter stays");
                    assert_eq!(without_line(&cleaned), before, "{file:?}");
                }
            }
        }
        assert_eq!(without_line(b"*.png binary\n"), Without::Same);
    }

    #[test]
    fn lines_added_later_stay() {
        let mut file = with_line(Some(b"one"), false).unwrap();
        file.extend_from_slice(b"\ntwo\n");
        assert_eq!(without_line(&file), Without::Rest(b"one\ntwo\n".to_vec()));
        let mut file = with_line(None, false).unwrap();
        file.extend_from_slice(b"two\n");
        assert_eq!(without_line(&file), Without::Rest(b"two\n".to_vec()));
    }
}
