//! What messages say, read with patience: a message that is odd in one place is not lost for it.

use std::io;

use bytes::Bytes;
use cellwright_jupyter::frame::{Frame, Stored};
use cellwright_output::{Bundle, Data, Scratch, Stream, Traceback};
use serde_json::{Map, Value};

use super::outline::{LARGE, Outline, Passing};
use super::scan::{Members, Unescape, Written, text, unescape, utf8};

/// What a message says, as a value; null if that is none.
pub(crate) fn said(content: &Frame) -> Value {
    match content {
        Frame::Held(content) => value(content),
        Frame::Stored(content) => content.bytes().map_or(Value::Null, |bytes| value(&bytes)),
    }
}

/// The value of a JSON text; null if it is none.
fn value(content: &[u8]) -> Value {
    serde_json::from_slice(content)
        .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(content)))
        .unwrap_or_default()
}

/// Hands on the text of a `stream` message, in pieces.
pub(crate) fn stream(content: &Frame, mut hear: impl FnMut(Stream, &[u8])) {
    let content = match content {
        Frame::Held(content) => return stream_held(content, hear),
        Frame::Stored(content) => content,
    };
    if let Err(error) = stream_stored(content, LARGE, &mut hear) {
        hear(Stream::Stderr, unreadable(content, &error).as_bytes());
    }
}

fn stream_stored(
    content: &Stored,
    large: usize,
    mut hear: impl FnMut(Stream, &[u8]),
) -> io::Result<()> {
    // Usually the text comes after the name of its stream, and can be heard while it is read.
    let (mut passing, mut heard) = (None, Vec::new());
    let outline = Outline::hearing(content, large, |before, come| match come {
        Passing::Piece(piece) => {
            let text = passing.get_or_insert_with(|| (stream_of(before), Unescape::default()));
            if let (Some(stream), unescape) = text {
                unescape.push(piece, |piece| hear(*stream, piece));
            }
        }
        Passing::End => {
            if let Some((Some(stream), mut unescape)) = passing.take() {
                unescape.finish(|piece| hear(stream, piece));
                heard.push(before.len() - 1);
            }
        }
    })?;
    let mut result = Ok(());
    stream_with(&outline.text, &mut hear, |stream, at, hear| {
        let Some(missing) = outline.missing(at) else {
            return false;
        };
        if heard.contains(&at) {
            return true;
        }
        let read = missing.read(content, |piece| hear(stream, piece));
        result = std::mem::replace(&mut result, Ok(())).and(read);
        true
    });
    result
}

/// Words for what is on disk and cannot be read from there any more.
fn unreadable(content: &Stored, error: &io::Error) -> String {
    let size = cellwright_output::Bytes(content.size());
    format!("[{size} cannot be read from disk any more: {error}]\n")
}

/// The stream of the text that comes next, if that is the text of a `stream` message and its name was before it.
fn stream_of(before: &[u8]) -> Option<Stream> {
    let mut stream = None;
    let mut members = Members::of(before);
    while let Some(name) = members.name() {
        match name {
            b"text" if members.rest().len() == 1 => return stream,
            b"name" => stream = Some(named(members.value())),
            _ => {
                members.value();
            }
        }
    }
    None
}

/// The stream that is named.
fn named(name: Option<Written<'_>>) -> Stream {
    match name.map(|name| name.text) {
        Some(b"\"stderr\"") => Stream::Stderr,
        // Whatever other names there are is for people to read, too.
        _ => Stream::Stdout,
    }
}

fn stream_held(content: &[u8], mut hear: impl FnMut(Stream, &[u8])) {
    stream_with(content, &mut hear, |_, _, _| false);
}

/// Hears text.
type Hear<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// What is not in the content is asked for by its place there; whether it was heard then.
fn stream_with(
    content: &[u8],
    hear: Hear<'_>,
    mut missing: impl FnMut(Stream, usize, Hear<'_>) -> bool,
) {
    let (mut stream, mut said) = (None, &content[..0]);
    let mut members = Members::of(content);
    while let Some(name) = members.name() {
        match (name, stream) {
            (b"name", _) => stream = Some(named(members.value())),
            (b"text", Some(stream)) if members.is_at_string() => {
                if missing(stream, place(content, members.rest()), hear) {
                    members.value();
                } else {
                    members.string(|piece| hear(stream, piece));
                }
            }
            (b"text", _) => said = members.value().map_or(&content[..0], |text| text.text),
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
    if !said.is_empty() && !missing(stream, place(content, said), hear) {
        unescape(said, |piece| hear(stream, piece));
    }
}

/// What a message displays.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) bundle: Bundle,
    pub(crate) id: Option<String>,
    pub(crate) count: Option<u32>,
}

/// What `display_data`, `update_display_data` or `execute_result` shows. Of a content that is on disk a large
/// text stays there.
pub(crate) fn display(content: Frame, scratch: &Scratch) -> Shown {
    let content = match content {
        Frame::Held(content) => return display_held(content),
        Frame::Stored(content) => content,
    };
    display_stored(&content, LARGE, scratch).unwrap_or_else(|error| Shown {
        bundle: Bundle::text("text/plain", unreadable(&content, &error)),
        ..Shown::default()
    })
}

fn display_stored(content: &Stored, large: usize, scratch: &Scratch) -> io::Result<Shown> {
    let mut outline = Outline::of(content, large)?;
    let mut failed = None;
    let text = Bytes::from(std::mem::take(&mut outline.text));
    let shown = display_with(text, |mime, at| {
        let missing = outline.missing(at)?;
        let data = missing.representation(content, is_json(mime), scratch);
        data.map_err(|error| failed = Some(error)).ok()
    });
    failed.map_or(Ok(shown), Err)
}

fn display_held(content: Bytes) -> Shown {
    display_with(content, |_, _| None)
}

/// If nobody else has the content, a text that is most of it takes its memory over: pictures are large, and
/// memory that is touched for the first time costs more than to look at what is in it. What is not in the
/// content is asked for by its type and its place there.
fn display_with(content: Bytes, mut missing: impl FnMut(&str, usize) -> Option<Data>) -> Shown {
    let mut shown = Shown::default();
    let mut most = None;
    let mut members = Members::of(&content);
    while let Some(name) = members.name() {
        if name == b"data" {
            most = None;
            shown.bundle.data.clear();
            for (mime, written) in members.members() {
                let mime = name_text(mime);
                if let Some(data) = missing(&mime, place(&content, written.text)) {
                    shown.bundle.data.push((mime, data));
                } else if let Some(inner) = most_of(&content, &mime, written) {
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

/// Where in a content a part of it begins.
fn place(content: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - content.as_ptr().addr()
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
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn streamed(content: &str) -> Vec<(Stream, String)> {
        let mut heard = Vec::new();
        stream_held(content.as_bytes(), |stream, bytes| {
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
        let shown = display_held(content);
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
        is_right(&display_held(content.clone()), &picture);
        assert_eq!(content, before);
    }

    #[test]
    fn a_large_text_with_escapes_or_broken_characters_is_what_it_means() {
        let long = "x".repeat(1000);
        let escaped = format!(r#"{{"data": {{"text/html": "{long}\"\n"}}}}"#);
        let shown = display_held(escaped.into());
        assert_eq!(shown.bundle.data[0].1, Data::Text(format!("{long}\"\n")));
        let mut broken = format!(r#"{{"data": {{"text/html": "{long}"#).into_bytes();
        broken.extend_from_slice(b"\xff\"}}");
        let shown = display_held(broken.into());
        assert_eq!(
            shown.bundle.data[0].1,
            Data::Text(format!("{long}\u{fffd}"))
        );
        let json = format!(r#"{{"data": {{"application/json": "{long}"}}}}"#);
        let shown = display_held(json.into());
        assert_eq!(shown.bundle.data[0].1, Data::Json(Value::String(long)));
    }

    /// A bundle with everything in memory.
    fn in_memory(shown: &Shown) -> Vec<(String, Data)> {
        let data = shown.bundle.data.iter().cloned();
        data.map(|(mime, data)| match data {
            Data::Stored(stored) => (mime, Data::Text(stored.text().unwrap())),
            data => (mime, data),
        })
        .collect()
    }

    #[test]
    fn a_large_text_stays_on_disk_and_is_not_copied_if_it_is_what_it_means() {
        let picture = "iVBORw0KGgo=".repeat(200_000);
        let html = "<b>\"é\"</b>\n".repeat(200_000);
        let content = json!({
            "data": {"text/plain": "tiny", "image/png": picture, "text/html": html,
                     "application/json": {"large": picture}},
            "metadata": {"data": picture, "x": {"data": picture}},
            "transient": {"display_id": "d"},
        });
        let stored = Stored::new(content.to_string().as_bytes()).unwrap();
        let file = stored.file();
        let shown = display(Frame::Stored(stored), &Scratch::default());
        let is_stored = |mime| matches!(shown.bundle.get(mime), Some(Data::Stored(_)));
        assert!(is_stored("image/png") && is_stored("text/html"));
        assert!(!is_stored("text/plain") && !is_stored("application/json"));
        // The file is ours and the picture's.
        assert_eq!(std::sync::Arc::strong_count(&file), 3);
        let expected = display_held(content.to_string().into());
        assert!(in_memory(&shown) == in_memory(&expected));
        assert!(shown.bundle.metadata == expected.bundle.metadata);
        assert_eq!(shown.id.as_deref(), Some("d"));
    }

    #[test]
    fn a_large_text_of_a_stream_comes_in_pieces() {
        let text = "é\n\u{1b}[0m\"\u{1f600}".repeat(300_000);
        for (content, expected) in [
            (json!({"name": "stderr", "text": text}), Stream::Stderr),
            (
                json!({"text": text, "name": "stderr", "x": [text]}),
                Stream::Stderr,
            ),
            (json!({"text": text}), Stream::Stdout),
        ] {
            let stored = Stored::new(content.to_string().as_bytes()).unwrap();
            let mut heard = Vec::new();
            stream(&Frame::Stored(stored), |stream, piece| {
                assert_eq!(stream, expected);
                assert!(piece.len() < 1 << 20);
                heard.extend_from_slice(piece);
            });
            assert!(heard == text.as_bytes());
        }
    }

    #[test]
    fn a_picture_that_stays_on_disk_is_not_read_to_find_its_end() {
        let picture = "x".repeat(LARGE + 1000);
        let content =
            json!({"data": {"text/plain": "a \\ \"b\"", "image/png": picture, "z/z": "z"}});
        let stored = Stored::new(content.to_string().as_bytes()).unwrap();
        // Whoever read it would take this for its end.
        let middle = stored.start() + stored.size() / 2;
        std::os::unix::fs::FileExt::write_all_at(&*stored.file(), b"\"", middle).unwrap();
        let shown = display_stored(&stored, LARGE, &Scratch::default()).unwrap();
        let sizes = shown.bundle.data.iter();
        let sizes: Vec<_> = sizes.map(|(name, data)| (&name[..], data.size())).collect();
        let size = picture.len() as u64;
        assert_eq!(sizes, [("text/plain", 7), ("image/png", size), ("z/z", 1)]);
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z\"\\\\\n\u{1f600}]{0,30}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            let name = prop_oneof![
                "data",
                "text",
                "name",
                "text/html",
                "a/b",
                "x\\+json",
                any::<String>()
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_on_disk_means_the_same(
            content in prop_oneof![
                anything(),
                anything().prop_map(|data| json!({"data": data, "metadata": data, "text": "x"})),
                (anything(), any::<String>()).prop_map(|(data, text)| json!({"name": "stderr", "text": text, "data": data})),
            ],
            // The names of streams are never large.
            large in 7..30_usize,
        ) {
            let text = content.to_string();
            let stored = Stored::new(text.as_bytes()).unwrap();
            let shown = display_stored(&stored, large, &Scratch::default()).unwrap();
            let expected = display_held(text.clone().into());
            prop_assert_eq!(in_memory(&shown), in_memory(&expected));
            prop_assert_eq!(shown.bundle.metadata, expected.bundle.metadata);
            let (mut heard, mut expected) = (Vec::new(), Vec::new());
            let mut names = Vec::new();
            stream_stored(&stored, large, |stream, piece| {
                names.push(stream);
                heard.extend_from_slice(piece);
            })
            .unwrap();
            stream_held(text.as_bytes(), |stream, piece| {
                names.push(stream);
                expected.extend_from_slice(piece);
            });
            prop_assert_eq!(heard, expected);
            names.dedup();
            prop_assert!(names.len() <= 1);
        }

        #[test]
        fn nothing_on_disk_makes_it_panic(bytes in any::<Vec<u8>>(), large in 0..9_usize) {
            let stored = Stored::new(&bytes).unwrap();
            drop(display_stored(&stored, large, &Scratch::default()));
            drop(stream_stored(&stored, large, |_, _| {}));
        }
    }

    #[test]
    fn data_that_is_none_hides_nothing_else() {
        for data in ["null", "[1, {}]", "\"x\"", "{}", "{ }", r#"{"a/b": null}"#] {
            let content = format!(r#"{{"data": {data}, "execution_count": 7}}"#);
            let shown = display_held(content.into());
            assert_eq!(shown.bundle.data, [], "{data}");
            assert_eq!(shown.count, Some(7), "{data}");
        }
    }
}
