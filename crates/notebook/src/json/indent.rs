//! Lays JSON out anew, the way Jupyter does: one space for each level, tokens as they are.

/// Indents a well-formed document.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + json.len() / 4);
    let mut depth = 0usize;
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                out.push(byte);
                let inside = rest.trim_ascii_start();
                if matches!(inside.first(), Some(b'}' | b']')) {
                    out.push(inside[0]);
                    rest = &inside[1..];
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                let end = string_end(rest);
                out.push(b'"');
                out.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
            }
            other => out.push(other),
        }
    }
    out
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + depth, b' ');
}

/// Where a string ends, closing quote included; the opening one is already taken.
fn string_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
        if at > bytes.len() {
            break;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_and_white_space_changes() {
        let json = r#"{"a":[1.0,{ } , [ ]],"b":"x: {\"y\", [é]}\\","c":{"d":null}}"#;
        let expected = "{\n \"a\": [\n  1.0,\n  {},\n  []\n ],\n \"b\": \"x: {\\\"y\\\", [é]}\\\\\",\n \"c\": {\n  \"d\": null\n }\n}";
        assert_eq!(String::from_utf8_lossy(&indent(json.as_bytes())), expected);
    }
}
