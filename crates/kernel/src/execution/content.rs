//! Lenient parsing of message contents: one invalid member does not make the message unusable.

use std::io;

use bytes::Bytes;
use cellwright_jupyter::frame::{Frame, StoredFrame};
use cellwright_output::{Bundle, Data, Scratch, Stream, Traceback};
use serde_json::{Map, Value};

use super::partial_content::{LARGE_STRING_SIZE, PartialContent, StringPart};
use super::scan::{Members, Unescaper, ValueSlice, lossy_utf8, unescape, unescape_to_string};

/// Parses a content. Returns null if it is not JSON.
pub(crate) fn parse_json(content: &Frame) -> Value {
    match content {
        Frame::InMemory(content) => parse_bytes(content),
        Frame::OnDisk(content) => content
            .bytes()
            .map_or(Value::Null, |bytes| parse_bytes(&bytes)),
    }
}

/// Parses JSON that may contain invalid UTF-8. Returns null if it is not JSON.
fn parse_bytes(content: &[u8]) -> Value {
    serde_json::from_slice(content)
        .or_else(|_| serde_json::from_str(&String::from_utf8_lossy(content)))
        .unwrap_or_default()
}

/// Passes the text of a `stream` message to `on_text`, in pieces.
pub(crate) fn read_stream(content: &Frame, mut on_text: impl FnMut(Stream, &[u8])) {
    let content = match content {
        Frame::InMemory(content) => return read_stream_held(content, on_text),
        Frame::OnDisk(content) => content,
    };
    if let Err(error) = read_stream_stored(content, LARGE_STRING_SIZE, &mut on_text) {
        on_text(
            Stream::Stderr,
            unreadable_message(content, &error).as_bytes(),
        );
    }
}

fn read_stream_stored(
    content: &StoredFrame,
    large: usize,
    mut on_text: impl FnMut(Stream, &[u8]),
) -> io::Result<()> {
    // Usually the text comes after the name of its stream, and is passed on while it is read.
    let (mut current, mut passed_on) = (None, Vec::new());
    let partial = PartialContent::read_with(content, large, |before, part| match part {
        StringPart::Chunk(chunk) => {
            let text =
                current.get_or_insert_with(|| (stream_of_next_text(before), Unescaper::default()));
            if let (Some(stream), unescaper) = text {
                unescaper.push(chunk, |piece| on_text(*stream, piece));
            }
        }
        StringPart::End => {
            if let Some((Some(stream), mut unescaper)) = current.take() {
                unescaper.finish(|piece| on_text(stream, piece));
                passed_on.push(before.len() - 1);
            }
        }
    })?;
    let mut result = Ok(());
    read_stream_with(&partial.bytes, &mut on_text, |stream, offset, on_text| {
        let Some(omitted) = partial.omitted_at(offset) else {
            return false;
        };
        if passed_on.contains(&offset) {
            return true;
        }
        let read = omitted.read(content, |piece| on_text(stream, piece));
        result = std::mem::replace(&mut result, Ok(())).and(read);
        true
    });
    result
}

/// The text that replaces a content that cannot be read back from disk.
fn unreadable_message(content: &StoredFrame, error: &io::Error) -> String {
    let size = cellwright_output::ByteSize(content.size());
    format!("[{size} could not be read back from disk: {error}]\n")
}

/// The stream of the string that follows `before`, if that string is the `text` member and `name` came before it.
fn stream_of_next_text(before: &[u8]) -> Option<Stream> {
    let mut stream = None;
    let mut members = Members::new(before);
    while let Some(name) = members.read_name() {
        match name {
            b"text" if members.remaining().len() == 1 => return stream,
            b"name" => stream = Some(stream_named(members.read_value())),
            _ => {
                members.read_value();
            }
        }
    }
    None
}

/// The stream with this name, a JSON string.
fn stream_named(name: Option<ValueSlice<'_>>) -> Stream {
    match name.map(|name| name.bytes) {
        Some(b"\"stderr\"") => Stream::Stderr,
        // Text of an unknown stream is shown as standard output.
        _ => Stream::Stdout,
    }
}

fn read_stream_held(content: &[u8], mut on_text: impl FnMut(Stream, &[u8])) {
    read_stream_with(content, &mut on_text, |_, _, _| false);
}

/// Receives the text of a stream in pieces.
type OnText<'a> = &'a mut dyn FnMut(Stream, &[u8]);

/// Reads a `stream` content. `omitted` is called with the offset of each string. It returns true if that string is not in
/// `content` and was passed on from elsewhere.
fn read_stream_with(
    content: &[u8],
    on_text: OnText<'_>,
    mut omitted: impl FnMut(Stream, usize, OnText<'_>) -> bool,
) {
    let (mut stream, mut early_text) = (None, &content[..0]);
    let mut members = Members::new(content);
    while let Some(name) = members.read_name() {
        match (name, stream) {
            (b"name", _) => stream = Some(stream_named(members.read_value())),
            (b"text", Some(stream)) if members.is_at_string() => {
                if omitted(stream, offset_in(content, members.remaining()), on_text) {
                    members.read_value();
                } else {
                    members.read_string(|piece| on_text(stream, piece));
                }
            }
            (b"text", _) => {
                early_text = members
                    .read_value()
                    .map_or(&content[..0], |text| text.bytes);
            }
            _ => {
                members.read_value();
            }
        }
    }
    // No known kernel sends the text before the name, but JSON allows it.
    let stream = stream.unwrap_or(Stream::Stdout);
    if early_text.first() == Some(&b'[') {
        // A list of lines, as in notebooks.
        let lines = parse_bytes(early_text);
        let lines = lines.as_array().into_iter().flatten();
        for line in lines.filter_map(Value::as_str) {
            on_text(stream, line.as_bytes());
        }
        return;
    }
    if !early_text.is_empty() && !omitted(stream, offset_in(content, early_text), on_text) {
        unescape(early_text, |piece| on_text(stream, piece));
    }
}

/// The content of a display message.
#[derive(Debug, Default)]
pub(crate) struct DisplayContent {
    pub(crate) bundle: Bundle,
    pub(crate) id: Option<String>,
    pub(crate) count: Option<u32>,
}

/// Reads the content of `display_data`, `update_display_data` or `execute_result`. A large string of a content on
/// disk stays there.
pub(crate) fn read_display(content: Frame, scratch: &Scratch) -> DisplayContent {
    let content = match content {
        Frame::InMemory(content) => return read_display_held(content),
        Frame::OnDisk(content) => content,
    };
    read_display_stored(&content, LARGE_STRING_SIZE, scratch).unwrap_or_else(|error| {
        DisplayContent {
            bundle: Bundle::text("text/plain", unreadable_message(&content, &error)),
            ..DisplayContent::default()
        }
    })
}

fn read_display_stored(
    content: &StoredFrame,
    large: usize,
    scratch: &Scratch,
) -> io::Result<DisplayContent> {
    let mut partial = PartialContent::read(content, large)?;
    let mut failed = None;
    let text = Bytes::from(std::mem::take(&mut partial.bytes));
    let display = read_display_with(text, |mime, offset| {
        let omitted = partial.omitted_at(offset)?;
        let data = omitted.to_data(content, is_json(mime), scratch);
        data.map_err(|error| failed = Some(error)).ok()
    });
    failed.map_or(Ok(display), Err)
}

fn read_display_held(content: Bytes) -> DisplayContent {
    read_display_with(content, |_, _| None)
}

/// If this is the only reference to the content, a string that makes up most of it reuses its memory: pictures are
/// large, and touching fresh memory costs more than scanning the content. `omitted` is called with the MIME type and
/// the offset of each value, and returns the data of one that is not in the content.
fn read_display_with(
    content: Bytes,
    mut omitted: impl FnMut(&str, usize) -> Option<Data>,
) -> DisplayContent {
    let mut display = DisplayContent::default();
    let mut dominant = None;
    let mut members = Members::new(&content);
    while let Some(name) = members.read_name() {
        if name == b"data" {
            dominant = None;
            display.bundle.data.clear();
            for (mime, value) in members.read_members() {
                let mime = unescape_name(mime);
                if let Some(data) = omitted(&mime, offset_in(&content, value.bytes)) {
                    display.bundle.data.push((mime, data));
                } else if let Some(inner) = dominant_text(&content, &mime, value) {
                    dominant = Some((display.bundle.data.len(), inner));
                    display.bundle.data.push((mime, Data::Text(String::new())));
                } else if let Some(data) = parse_representation(&mime, value.bytes) {
                    display.bundle.data.push((mime, data));
                }
            }
            continue;
        }
        let Some(ValueSlice { bytes: value, .. }) = members.read_value() else {
            break;
        };
        match name {
            b"metadata" => {
                if let Value::Object(metadata) = parse_bytes(value) {
                    display.bundle.metadata = metadata;
                }
            }
            b"transient" => {
                let id = parse_bytes(value).get("display_id").cloned();
                display.id = match id {
                    Some(Value::String(id)) => Some(id),
                    Some(Value::Null) | None => None,
                    Some(other) => Some(other.to_string()),
                };
            }
            b"execution_count" => display.count = parse_count(&parse_bytes(value)),
            _ => {}
        }
    }
    drop(content);
    if let Some((at, text)) = dominant {
        let mut text = Vec::from(text);
        text.shrink_to_fit();
        if let Some((_, data)) = display.bundle.data.get_mut(at) {
            *data = Data::Text(lossy_utf8(text));
        }
    }
    display
}

/// The offset of a subslice.
fn offset_in(content: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - content.as_ptr().addr()
}

/// The text of a string without escapes that makes up more than half of the content.
fn dominant_text(content: &Bytes, mime: &str, value: ValueSlice<'_>) -> Option<Bytes> {
    let inner = value.bytes.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_dominant = value.is_plain && inner.len() > content.len() / 2;
    (is_dominant && !is_json(mime)).then(|| content.slice_ref(inner))
}

/// Unescapes a member name, given without its quotes.
fn unescape_name(name: &[u8]) -> String {
    unescape_to_string(&[b"\"", name, b"\""].concat())
}

fn is_json(mime: &str) -> bool {
    mime == "application/json" || mime.ends_with("+json")
}

/// Parses one representation of a display. Images stay base64, because notebooks store them so.
fn parse_representation(mime: &str, value: &[u8]) -> Option<Data> {
    let data = match value.first()? {
        b'"' if is_json(mime) => Data::Json(Value::String(unescape_to_string(value))),
        b'"' => Data::Text(unescape_to_string(value)),
        b'n' => return None,
        _ => match parse_bytes(value) {
            // Invalid JSON such as `NaN`.
            Value::Null => Data::Text(String::from_utf8_lossy(value).into_owned()),
            Value::Array(lines) if !is_json(mime) && lines.iter().all(Value::is_string) => {
                let lines = lines.iter().filter_map(Value::as_str);
                Data::Text(lines.collect())
            }
            value => Data::Json(value),
        },
    };
    Some(data)
}

/// Parses an execution count.
pub(crate) fn parse_count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}

/// Parses the error of an `error` message or of a reply. It is shortened: it is copied for each observer.
pub(crate) fn parse_traceback(content: &Value) -> Traceback {
    let member = |name: &str| match content.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let lines = match content.get("traceback") {
        Some(Value::Array(lines)) => lines.iter().map(traceback_line).collect(),
        Some(Value::String(text)) => text.lines().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    Traceback {
        name: member("ename"),
        value: member("evalue"),
        lines,
    }
    .shortened(Traceback::SIZE_MAX)
}

fn traceback_line(line: &Value) -> String {
    line.as_str()
        .map_or_else(|| line.to_string(), str::to_owned)
}

/// The payloads of a reply, such as text for the pager.
pub(crate) fn payloads(reply: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let payload = reply.get("payload").and_then(Value::as_array);
    payload.into_iter().flatten().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn streamed_text(content: &str) -> Vec<(Stream, String)> {
        let mut pieces = Vec::new();
        read_stream_held(content.as_bytes(), |stream, bytes| {
            pieces.push((stream, String::from_utf8_lossy(bytes).into_owned()));
        });
        pieces
    }

    #[test]
    fn stream_name_is_found_before_or_after_the_text() {
        for content in [
            r#"{"name": "stderr", "text": "a\nb"}"#,
            r#"{"text": "a\nb", "name": "stderr"}"#,
            r#"{"more": {"text": "no"}, "name": "stderr", "x": 1, "text": "a\nb", "y": []}"#,
        ] {
            assert_eq!(
                streamed_text(content),
                [(Stream::Stderr, "a\nb".to_owned())]
            );
        }
        let stdout = [(Stream::Stdout, "a".to_owned())];
        assert_eq!(streamed_text(r#"{"name": "stdout", "text": "a"}"#), stdout);
        assert_eq!(streamed_text(r#"{"text": "a"}"#), stdout);
        for content in [r#"{"name": "stdout", "text": null}"#, r#"{"name": 1}"#, ""] {
            assert_eq!(streamed_text(content), []);
        }
    }

    #[test]
    fn a_long_text_is_read_completely() {
        let long = "x".repeat(70_000);
        for text in [
            format!("{long}\n{long}"),
            format!("a\n{long}\nb"),
            "line\n".repeat(50_000),
            "\n".repeat(70_000),
        ] {
            let content = json!({"name": "stdout", "text": text}).to_string();
            let pieces = streamed_text(&content).into_iter().map(|(_, piece)| piece);
            assert_eq!(pieces.collect::<String>(), text);
        }
    }

    fn picture_message() -> (Bytes, String) {
        let picture = "iVBORw0KGgo=".repeat(10_000);
        let content = json!({
            "data": {"text/plain": "a\nb", "image/png": picture, "application/json": {"a": 1}},
            "metadata": {"width": 3},
            "transient": {"display_id": "d"},
        });
        (Bytes::from(content.to_string()), picture)
    }

    fn assert_display(display: &DisplayContent, picture: &str) {
        let expected = [
            ("text/plain", Data::Text("a\nb".to_owned())),
            ("image/png", Data::Text(picture.to_owned())),
            ("application/json", Data::Json(json!({"a": 1}))),
        ];
        let expected = expected.map(|(mime, data)| (mime.to_owned(), data));
        assert_eq!(display.bundle.data, expected);
        assert_eq!(display.bundle.metadata["width"], 3);
        assert_eq!(display.id.as_deref(), Some("d"));
    }

    #[test]
    fn a_large_string_reuses_the_memory_of_its_message() {
        let (content, picture) = picture_message();
        let address = content.as_ptr();
        let display = read_display_held(content);
        assert_display(&display, &picture);
        let Some(Data::Text(text)) = display.bundle.get("image/png") else {
            panic!("{display:?}");
        };
        assert_eq!(text.as_ptr(), address);
    }

    #[test]
    fn shared_content_is_not_modified() {
        let (content, picture) = picture_message();
        let before = content.to_vec();
        assert_display(&read_display_held(content.clone()), &picture);
        assert_eq!(content, before);
    }

    #[test]
    fn large_strings_with_escapes_or_invalid_utf8_are_decoded() {
        let long = "x".repeat(1000);
        let escaped = format!(r#"{{"data": {{"text/html": "{long}\"\n"}}}}"#);
        let display = read_display_held(escaped.into());
        assert_eq!(display.bundle.data[0].1, Data::Text(format!("{long}\"\n")));
        let mut broken = format!(r#"{{"data": {{"text/html": "{long}"#).into_bytes();
        broken.extend_from_slice(b"\xff\"}}");
        let display = read_display_held(broken.into());
        assert_eq!(
            display.bundle.data[0].1,
            Data::Text(format!("{long}\u{fffd}"))
        );
        let json = format!(r#"{{"data": {{"application/json": "{long}"}}}}"#);
        let display = read_display_held(json.into());
        assert_eq!(display.bundle.data[0].1, Data::Json(Value::String(long)));
    }

    /// The representations of a display, with those on disk loaded.
    fn load_stored(display: &DisplayContent) -> Vec<(String, Data)> {
        let data = display.bundle.data.iter().cloned();
        data.map(|(mime, data)| match data {
            Data::Stored(stored) => (mime, Data::Text(stored.text().unwrap())),
            data => (mime, data),
        })
        .collect()
    }

    #[test]
    fn large_strings_stay_on_disk_and_are_copied_only_if_escaped() {
        let picture = "iVBORw0KGgo=".repeat(200_000);
        let html = "<b>\"é\"</b>\n".repeat(200_000);
        let content = json!({
            "data": {"text/plain": "tiny", "image/png": picture, "text/html": html,
                     "application/json": {"large": picture}},
            "metadata": {"data": picture, "x": {"data": picture}},
            "transient": {"display_id": "d"},
        });
        let stored = StoredFrame::new(content.to_string().as_bytes()).unwrap();
        let file = stored.file();
        let display = read_display(Frame::OnDisk(stored), &Scratch::default());
        let is_stored = |mime| matches!(display.bundle.get(mime), Some(Data::Stored(_)));
        assert!(is_stored("image/png") && is_stored("text/html"));
        assert!(!is_stored("text/plain") && !is_stored("application/json"));
        // References: this test, the message, the picture.
        assert_eq!(std::sync::Arc::strong_count(&file), 3);
        let expected = read_display_held(content.to_string().into());
        assert!(load_stored(&display) == load_stored(&expected));
        assert!(display.bundle.metadata == expected.bundle.metadata);
        assert_eq!(display.id.as_deref(), Some("d"));
    }

    #[test]
    fn a_large_stream_text_is_passed_on_in_pieces() {
        let text = "é\n\u{1b}[0m\"\u{1f600}".repeat(300_000);
        for (content, expected) in [
            (json!({"name": "stderr", "text": text}), Stream::Stderr),
            (
                json!({"text": text, "name": "stderr", "x": [text]}),
                Stream::Stderr,
            ),
            (json!({"text": text}), Stream::Stdout),
        ] {
            let stored = StoredFrame::new(content.to_string().as_bytes()).unwrap();
            let mut received = Vec::new();
            read_stream(&Frame::OnDisk(stored), |stream, piece| {
                assert_eq!(stream, expected);
                assert!(piece.len() < 1 << 20);
                received.extend_from_slice(piece);
            });
            assert!(received == text.as_bytes());
        }
    }

    #[test]
    fn a_picture_on_disk_is_not_read_to_find_its_end() {
        let picture = "x".repeat(LARGE_STRING_SIZE + 1000);
        let content =
            json!({"data": {"text/plain": "a \\ \"b\"", "image/png": picture, "z/z": "z"}});
        let stored = StoredFrame::new(content.to_string().as_bytes()).unwrap();
        // A scan of the picture would take this quote for its end.
        let middle = stored.start() + stored.size() / 2;
        std::os::unix::fs::FileExt::write_all_at(&*stored.file(), b"\"", middle).unwrap();
        let display = read_display_stored(&stored, LARGE_STRING_SIZE, &Scratch::default()).unwrap();
        let sizes = display.bundle.data.iter();
        let sizes: Vec<_> = sizes.map(|(name, data)| (&name[..], data.size())).collect();
        let size = picture.len() as u64;
        assert_eq!(sizes, [("text/plain", 7), ("image/png", size), ("z/z", 1)]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
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
        fn contents_on_disk_and_in_memory_are_read_alike(
            content in prop_oneof![
                any_json(),
                any_json().prop_map(|data| json!({"data": data, "metadata": data, "text": "x"})),
                (any_json(), any::<String>()).prop_map(|(data, text)| json!({"name": "stderr", "text": text, "data": data})),
            ],
            // Stream names are shorter than this.
            large in 7..30_usize,
        ) {
            let text = content.to_string();
            let stored = StoredFrame::new(text.as_bytes()).unwrap();
            let display = read_display_stored(&stored, large, &Scratch::default()).unwrap();
            let expected = read_display_held(text.clone().into());
            prop_assert_eq!(load_stored(&display), load_stored(&expected));
            prop_assert_eq!(display.bundle.metadata, expected.bundle.metadata);
            let (mut received, mut expected) = (Vec::new(), Vec::new());
            let mut names = Vec::new();
            read_stream_stored(&stored, large, |stream, piece| {
                names.push(stream);
                received.extend_from_slice(piece);
            })
            .unwrap();
            read_stream_held(text.as_bytes(), |stream, piece| {
                names.push(stream);
                expected.extend_from_slice(piece);
            });
            prop_assert_eq!(received, expected);
            names.dedup();
            prop_assert!(names.len() <= 1);
        }

        #[test]
        fn arbitrary_contents_on_disk_do_not_panic(bytes in any::<Vec<u8>>(), large in 0..9_usize) {
            let stored = StoredFrame::new(&bytes).unwrap();
            drop(read_display_stored(&stored, large, &Scratch::default()));
            drop(read_stream_stored(&stored, large, |_, _| {}));
        }
    }

    #[test]
    fn invalid_data_does_not_hide_other_members() {
        for data in ["null", "[1, {}]", "\"x\"", "{}", "{ }", r#"{"a/b": null}"#] {
            let content = format!(r#"{{"data": {data}, "execution_count": 7}}"#);
            let display = read_display_held(content.into());
            assert_eq!(display.bundle.data, [], "{data}");
            assert_eq!(display.count, Some(7), "{data}");
        }
    }
}
