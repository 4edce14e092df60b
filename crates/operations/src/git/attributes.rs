//! Adds and removes the line for notebooks in a file of attributes; all other bytes stay.

/// The line without the filter.
const PLAIN: &str = "*.ipynb diff=cellwright merge=cellwright";

/// The line with the filter that removes outputs from commits.
const CLEAN: &str = "*.ipynb diff=cellwright merge=cellwright filter=cellwright";

/// The line that `git setup` adds.
pub(super) fn line(clean: bool) -> &'static str {
    if clean { CLEAN } else { PLAIN }
}

/// Whether the line in the file has the filter; `None` if the file does not have the line.
pub(super) fn find_line(content: &[u8]) -> Option<bool> {
    let mut found = None;
    for line in lines(content) {
        let bare = bare(line);
        if bare == CLEAN.as_bytes() || bare == PLAIN.as_bytes() {
            found = Some(found == Some(true) || bare == CLEAN.as_bytes());
        }
    }
    found
}

/// Returns the file with the line added; `None` if it has the line. A line with the filter stays.
pub(super) fn add_line(content: Option<&[u8]>, clean: bool) -> Option<Vec<u8>> {
    let added = line(clean);
    let Some(content) = content else {
        return Some(format!("{added}\n").into_bytes());
    };
    match find_line(content) {
        Some(true) => None,
        Some(false) if !clean => None,
        Some(false) => {
            let mut out = Vec::new();
            for line in lines(content) {
                let bare = bare(line);
                let is_ours = bare == PLAIN.as_bytes();
                out.extend_from_slice(if is_ours { added.as_bytes() } else { bare });
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
            // A last line without a line end stays so: removing the line restores the file.
            let ends = content.ends_with(b"\n");
            if !ends && !content.is_empty() {
                out.extend_from_slice(newline);
            }
            out.extend_from_slice(added.as_bytes());
            if ends {
                out.extend_from_slice(newline);
            }
            Some(out)
        }
    }
}

/// A file after the removal of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It does not have the line.
    Unchanged,
    /// The remaining content.
    Rest(Vec<u8>),
    /// The file has no other content and was created for the line.
    Empty,
}

/// Removes the line.
pub(super) fn remove_line(content: &[u8]) -> Removal {
    if find_line(content).is_none() {
        return Removal::Unchanged;
    }
    let mut out: Vec<u8> = Vec::new();
    for line in lines(content) {
        let bare = bare(line);
        if bare != CLEAN.as_bytes() && bare != PLAIN.as_bytes() {
            out.extend_from_slice(line);
        } else if bare.len() == line.len() {
            // `add_line` added the line end before it.
            let rest = out.strip_suffix(b"\r\n").or(out.strip_suffix(b"\n"));
            let rest = rest.map(<[u8]>::len);
            out.truncate(rest.unwrap_or(out.len()));
        }
    }
    // Only a file that `add_line` created ends with the line and its line end.
    let is_created = out.is_empty() && content.ends_with(b"\n");
    if is_created {
        Removal::Empty
    } else {
        Removal::Rest(out)
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
    fn removal_restores_the_file_to_the_byte() {
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
                let written = add_line(file, clean).unwrap();
                assert_eq!(find_line(&written), Some(clean));
                assert_eq!(
                    add_line(Some(&written), clean),
                    None,
                    "a second call changes nothing"
                );
                let before = file.map_or(Removal::Empty, |file| Removal::Rest(file.to_vec()));
                assert_eq!(remove_line(&written), before, "{file:?}");
                if !clean {
                    let cleaned = add_line(Some(&written), true).unwrap();
                    assert_eq!(find_line(&cleaned), Some(true));
                    assert_eq!(add_line(Some(&cleaned), false), None, "the filter stays");
                    assert_eq!(remove_line(&cleaned), before, "{file:?}");
                }
            }
        }
        assert_eq!(remove_line(b"*.png binary\n"), Removal::Unchanged);
    }

    #[test]
    fn lines_added_later_stay() {
        let mut file = add_line(Some(b"one"), false).unwrap();
        file.extend_from_slice(b"\ntwo\n");
        assert_eq!(remove_line(&file), Removal::Rest(b"one\ntwo\n".to_vec()));
        let mut file = add_line(None, false).unwrap();
        file.extend_from_slice(b"two\n");
        assert_eq!(remove_line(&file), Removal::Rest(b"two\n".to_vec()));
    }
}
