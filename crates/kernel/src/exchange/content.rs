//! What messages say, read with patience: a message that is odd in one place is not lost for it.

use bytes::Bytes;
use cellwright_output::{Bundle, Data, Stream, Traceback};
use serde_json::{Map, Value};

use super::scan::{Members, Written, text, unescape, utf8};

/// The value of a JSON text; null if it is none.
pub(crate) fn value(content: &[u8]) -> Value {
    serde_json::from_slice(content)
        .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(content)))
        .unwrap_or_default()
}

/// Hands on the text of a `stream` message, in pieces.
pub(crate) fn stream(content: &[u8], mut hear: impl FnMut(Stream, &[u8])) {
    let (mut stream, mut said) = (None, &[][..]);
    let mut members = Members::of(content);
    while let Some(name) = members.name() {
        match (name, stream) {
            (b"name", _) => {
                stream = match members.value().map(|name| name.text) {
                    Some(b"\"stderr\"") => Some(Stream::Stderr),
                    // Whatever other names there are is for people to read, too.
                    _ => Some(Stream::Stdout),
                };
            }
            (b"text", Some(stream)) if members.is_at_string() => {
                members.string(|piece| hear(stream, piece));
            }
            (b"text", _) => said = members.value().map_or(&[][..], |text| text.text),
            _ => {
                members.value();
            }
        }
    }
    // Nobody sends the text before the name, but it would be allowed.
    let stream = stream.unwrap_or(Stream::Stdout);
    if said.first() == Some(&b'[') {
        // In lines, as notebooks have it.
        let lines = value(said);
        let lines = lines.as_array().into_iter().flatten();
        for line in lines.filter_map(Value::as_str) {
            hear(stream, line.as_bytes());
        }
        return;
    }
    unescape(said, |piece| hear(stream, piece));
}

/// What a message displays.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) bundle: Bundle,
    pub(crate) id: Option<String>,
    pub(crate) count: Option<u32>,
}

/// What `display_data`, `update_display_data` or `execute_result` shows. If nobody else has the content, a
/// text that is most of it takes its memory over: pictures are large, and memory that is touched for the
/// first time costs more than to look at what is in it.
pub(crate) fn display(content: Bytes) -> Shown {
    let mut shown = Shown::default();
    let mut most = None;
    let mut members = Members::of(&content);
    while let Some(name) = members.name() {
        if name == b"data" {
            most = None;
            shown.bundle.data.clear();
            for (mime, written) in members.members() {
                let mime = name_text(mime);
                if let Some(inner) = most_of(&content, &mime, written) {
                    most = Some((shown.bundle.data.len(), inner));
                    shown.bundle.data.push((mime, Data::Text(String::new())));
                } else if let Some(data) = representation(&mime, written.text) {
                    shown.bundle.data.push((mime, data));
                }
            }
            continue;
        }
        let Some(Written { text: written, .. }) = members.value() else {
            break;
        };
        match name {
            b"metadata" => {
                if let Value::Object(metadata) = value(written) {
                    shown.bundle.metadata = metadata;
                }
            }
            b"transient" => {
                let id = value(written).get("display_id").cloned();
                shown.id = match id {
                    Some(Value::String(id)) => Some(id),
                    Some(Value::Null) | None => None,
                    Some(other) => Some(other.to_string()),
                };
            }
            b"execution_count" => shown.count = count(&value(written)),
            _ => {}
        }
    }
    drop(content);
    if let Some((at, text)) = most {
        let mut text = Vec::from(text);
        text.shrink_to_fit();
        if let Some((_, data)) = shown.bundle.data.get_mut(at) {
            *data = Data::Text(utf8(text));
        }
    }
    shown
}

/// A text that is what it means, and is most of what came.
fn most_of(content: &Bytes, mime: &str, written: Written<'_>) -> Option<Bytes> {
    let inner = written.text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let most = written.plain && inner.len() > content.len() / 2;
    (most && !is_json(mime)).then(|| content.slice_ref(inner))
}

/// A name, of which we have what stands between its quotes.
fn name_text(name: &[u8]) -> String {
    text(&[b"\"", name, b"\""].concat())
}

fn is_json(mime: &str) -> bool {
    mime == "application/json" || mime.ends_with("+json")
}

/// One representation. Images stay the base64 text that they are, so that a notebook gets just that.
fn representation(mime: &str, written: &[u8]) -> Option<Data> {
    let data = match written.first()? {
        b'"' if is_json(mime) => Data::Json(Value::String(text(written))),
        b'"' => Data::Text(text(written)),
        b'n' => return None,
        _ => match value(written) {
            // Numbers that JSON does not have, or the like.
            Value::Null => Data::Text(String::from_utf8_lossy(written).into_owned()),
            Value::Array(lines) if !is_json(mime) && lines.iter().all(Value::is_string) => {
                let lines = lines.iter().filter_map(Value::as_str);
                Data::Text(lines.collect())
            }
            value => Data::Json(value),
        },
    };
    Some(data)
}

/// An execution count.
pub(crate) fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}

/// The exception in an `error` message or in a reply.
pub(crate) fn traceback(content: &Value) -> Traceback {
    let words = |name: &str| match content.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let lines = match content.get("traceback") {
        Some(Value::Array(lines)) => lines.iter().map(line).collect(),
        Some(Value::String(text)) => text.lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Traceback {
        name: words("ename"),
        value: words("evalue"),
        lines,
    }
}

fn line(line: &Value) -> String {
    line.as_str()
        .map_or_else(|| line.to_string(), str::to_owned)
}

/// What a reply wants shown: the text of the pager, and what it wants to be asked next.
pub(crate) fn payloads(reply: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let payload = reply.get("payload").and_then(Value::as_array);
    payload.into_iter().flatten().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn streamed(content: &str) -> Vec<(Stream, String)> {
        let mut heard = Vec::new();
        stream(content.as_bytes(), |stream, bytes| {
            heard.push((stream, String::from_utf8_lossy(bytes).into_owned()));
        });
        heard
    }

    #[test]
    fn text_is_told_by_its_stream_in_any_order() {
        for content in [
            r#"{"name": "stderr", "text": "a\nb"}"#,
            r#"{"text": "a\nb", "name": "stderr"}"#,
            r#"{"more": {"text": "no"}, "name": "stderr", "x": 1, "text": "a\nb", "y": []}"#,
        ] {
            assert_eq!(streamed(content), [(Stream::Stderr, "a\nb".to_owned())]);
        }
        let stdout = [(Stream::Stdout, "a".to_owned())];
        assert_eq!(streamed(r#"{"name": "stdout", "text": "a"}"#), stdout);
        assert_eq!(streamed(r#"{"text": "a"}"#), stdout);
        for content in [r#"{"name": "stdout", "text": null}"#, r#"{"name": 1}"#, ""] {
            assert_eq!(streamed(content), []);
        }
    }

    #[test]
    fn a_long_text_comes_whole_whatever_its_pieces() {
        let long = "x".repeat(70_000);
        for text in [
            format!("{long}\n{long}"),
            format!("a\n{long}\nb"),
            "line\n".repeat(50_000),
            "\n".repeat(70_000),
        ] {
            let content = json!({"name": "stdout", "text": text}).to_string();
            let heard = streamed(&content).into_iter().map(|(_, piece)| piece);
            assert_eq!(heard.collect::<String>(), text);
        }
    }

    fn picture() -> (Bytes, String) {
        let picture = "iVBORw0KGgo=".repeat(10_000);
        let content = json!({
            "data": {"text/plain": "a\nb", "image/png": picture, "application/json": {"a": 1}},
            "metadata": {"width": 3},
            "transient": {"display_id": "d"},
        });
        (Bytes::from(content.to_string()), picture)
    }

    fn is_right(shown: &Shown, picture: &str) {
        let expected = [
            ("text/plain", Data::Text("a\nb".to_owned())),
            ("image/png", Data::Text(picture.to_owned())),
            ("application/json", Data::Json(json!({"a": 1}))),
        ];
        let expected = expected.map(|(mime, data)| (mime.to_owned(), data));
        assert_eq!(shown.bundle.data, expected);
        assert_eq!(shown.bundle.metadata["width"], 3);
        assert_eq!(shown.id.as_deref(), Some("d"));
    }

    #[test]
    fn a_large_text_takes_over_the_memory_that_it_came_in() {
        let (content, picture) = picture();
        let place = content.as_ptr();
        let shown = display(content);
        is_right(&shown, &picture);
        let Some(Data::Text(text)) = shown.bundle.get("image/png") else {
            panic!("{shown:?}");
        };
        assert_eq!(text.as_ptr(), place);
    }

    #[test]
    fn content_that_somebody_else_has_stays_what_it_is() {
        let (content, picture) = picture();
        let before = content.to_vec();
        is_right(&display(content.clone()), &picture);
        assert_eq!(content, before);
    }

    #[test]
    fn a_large_text_with_escapes_or_broken_characters_is_what_it_means() {
        let long = "x".repeat(1000);
        let escaped = format!(r#"{{"data": {{"text/html": "{long}\"\n"}}}}"#);
        let shown = display(escaped.into());
        assert_eq!(shown.bundle.data[0].1, Data::Text(format!("{long}\"\n")));
        let mut broken = format!(r#"{{"data": {{"text/html": "{long}"#).into_bytes();
        broken.extend_from_slice(b"\xff\"}}");
        let shown = display(broken.into());
        assert_eq!(
            shown.bundle.data[0].1,
            Data::Text(format!("{long}\u{fffd}"))
        );
        let json = format!(r#"{{"data": {{"application/json": "{long}"}}}}"#);
        let shown = display(json.into());
        assert_eq!(shown.bundle.data[0].1, Data::Json(Value::String(long)));
    }

    #[test]
    fn data_that_is_none_hides_nothing_else() {
        for data in ["null", "[1, {}]", "\"x\"", "{}", "{ }", r#"{"a/b": null}"#] {
            let content = format!(r#"{{"data": {data}, "execution_count": 7}}"#);
            let shown = display(content.into());
            assert_eq!(shown.bundle.data, [], "{data}");
            assert_eq!(shown.count, Some(7), "{data}");
        }
    }
}
