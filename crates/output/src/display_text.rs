//! Selects the representation of a displayed value that becomes text.
//!
//! The order is `text/markdown`, `text/plain` unless it is a bare object name, `text/html` converted to
//! Markdown, `text/latex`, and else a placeholder with type and size. Each image is a line after it, which replaces a
//! text that only names the image. JSON and status events are listed separately.

use std::borrow::Cow;

use serde_json::Value;

use crate::bundle::{Bundle, Data};
use crate::figure::Figure;
use crate::html;
use crate::limits::Limits;
use crate::size::ByteSize;
use crate::stored_value::{Encoding, StoredValue};

/// MIME types of status events: Cellwright's, and those of similar programs.
const STATUS_MIME_TYPES: [&str; 4] = [
    "application/x-cellwright-status",
    "application/x-pisces-status",
    "application/x-omp-status",
    "application/x-xcsh-status",
];

/// Returns whether a MIME type denotes a status event.
pub(crate) fn is_status_mime(mime: &str) -> bool {
    STATUS_MIME_TYPES.contains(&mime)
}

/// Returns whether a bundle contains only status events. Such a bundle is neither text nor an output.
pub(crate) fn is_status_only(bundle: &Bundle) -> bool {
    !bundle.data.is_empty() && bundle.data.iter().all(|(mime, _)| is_status_mime(mime))
}

/// Returns the status events of a bundle.
pub(crate) fn status_events(bundle: &Bundle) -> impl Iterator<Item = Value> {
    let events = bundle.data.iter().filter(|(mime, _)| is_status_mime(mime));
    events.filter_map(|(_, data)| match data {
        Data::Json(value) => Some(value.clone()),
        Data::Text(text) => serde_json::from_str(text).ok(),
        Data::Bytes(_) | Data::Stored(_) => None,
    })
}

/// Text in memory or in a file.
#[derive(Debug)]
pub(crate) enum DisplayText<'a> {
    Memory(Cow<'a, str>),
    File(&'a StoredValue),
    /// Text in a file, and lines after it.
    FileAndLines(&'a StoredValue, String),
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for DisplayText<'a> {
    fn from(text: T) -> Self {
        Self::Memory(text.into())
    }
}

impl<'a> DisplayText<'a> {
    /// Calls `push` with the text, in chunks.
    pub(crate) fn for_each_chunk(&self, mut push: impl FnMut(&str)) {
        match self {
            Self::Memory(text) => push(text),
            Self::File(stored) => push_stored(stored, &mut push),
            Self::FileAndLines(stored, lines) => {
                push_stored(stored, &mut push);
                push("\n");
                push(lines);
            }
        }
    }

    /// Returns the text; of a text in a file, only slightly more than the first `limit` bytes.
    fn into_prefix(self, limit: usize) -> Cow<'a, str> {
        match self {
            Self::Memory(text) => text,
            Self::File(stored) | Self::FileAndLines(stored, _) => {
                let head = stored.head(limit.saturating_add(4)).unwrap_or_default();
                Cow::Owned(String::from_utf8_lossy(&head).into_owned())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Memory(text) => text.is_empty(),
            Self::File(stored) => stored.size() == 0,
            Self::FileAndLines(..) => false,
        }
    }

    /// Adds lines, which replace a text that only names an object.
    fn with_lines(self, lines: String) -> Self {
        match self {
            Self::Memory(text) if names_only_an_object(&text) => lines.into(),
            Self::Memory(text) => {
                let text = text.trim_end_matches('\n');
                format!("{text}\n{lines}").into()
            }
            Self::File(stored) | Self::FileAndLines(stored, _) => Self::FileAndLines(stored, lines),
        }
    }
}

fn push_stored(stored: &StoredValue, push: &mut impl FnMut(&str)) {
    let read = stored.read_text(|text| {
        push(text);
        Ok(())
    });
    if let Err(error) = read {
        push(&format!("\n[… the rest cannot be read: {error} …]\n"));
    }
}

/// Returns whether the text of an image is a representation such as `<Figure size 640x480 with 1 Axes>`, which
/// says less than its line.
fn names_only_an_object(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || (text.starts_with('<') && text.ends_with('>') && !text.contains('\n'))
}

/// Returns the text of a bundle with these images. It may be large.
pub fn displayed_text<'a>(
    bundle: &'a Bundle,
    figures: &[Figure],
    limits: &Limits,
) -> Option<Cow<'a, str>> {
    select_text(bundle, figures, limits).map(|text| match text {
        DisplayText::Memory(text) => text,
        stored @ (DisplayText::File(_) | DisplayText::FileAndLines(..)) => {
            let mut text = String::new();
            stored.for_each_chunk(|chunk| text.push_str(chunk));
            Cow::Owned(text)
        }
    })
}

/// Returns the text of a bundle with these images, in memory or in a file.
pub(crate) fn select_text<'a>(
    bundle: &'a Bundle,
    figures: &[Figure],
    limits: &Limits,
) -> Option<DisplayText<'a>> {
    let text = select_representation(bundle, limits);
    if figures.is_empty() {
        return text.or_else(|| placeholder(bundle).map(DisplayText::from));
    }
    let lines: Vec<String> = figures.iter().map(|figure| format!("{figure}\n")).collect();
    let lines = lines.concat();
    Some(match text {
        Some(text) => text.with_lines(lines),
        None => lines.into(),
    })
}

/// Returns the most readable representation as text.
fn select_representation<'a>(bundle: &'a Bundle, limits: &Limits) -> Option<DisplayText<'a>> {
    let plain = |mime| {
        bundle
            .get(mime)
            .and_then(as_text)
            .filter(|text| !text.is_empty())
    };
    let is_informative = |text: &DisplayText<'_>| !is_bare_object_repr(text);
    if let Some(text) = plain("text/markdown")
        .or_else(|| plain("text/plain"))
        .filter(is_informative)
    {
        return Some(text);
    }
    let limit = limits.html_bytes;
    let markdown = plain("text/html").map(|html| html::markdown(&html.into_prefix(limit), limit));
    if let Some(markdown) = markdown.filter(|markdown| !markdown.trim().is_empty()) {
        return Some(markdown.into());
    }
    plain("text/latex").or_else(|| plain("text/plain"))
}

/// Returns whether the text only names the object's class, as `<IPython.core.display.HTML object>` does.
/// Every other representation is more useful.
fn is_bare_object_repr(text: &DisplayText<'_>) -> bool {
    let DisplayText::Memory(text) = text else {
        return false;
    };
    let text = text.trim_end();
    let name_and_rest = text
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    name_and_rest.is_some_and(|name_and_rest| {
        let (name, rest) = name_and_rest.split_once(' ').unwrap_or_default();
        let dotted = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
        !name.is_empty()
            && name.chars().all(dotted)
            && (rest == "object" || rest.starts_with("object at 0x") && !rest.contains('\n'))
    })
}

/// Returns text that is a string or, as in notebooks, a list of lines.
fn as_text(data: &Data) -> Option<DisplayText<'_>> {
    match data {
        Data::Text(text) | Data::Json(Value::String(text)) => Some(text.into()),
        Data::Json(Value::Array(lines)) => lines
            .iter()
            .map(Value::as_str)
            .collect::<Option<String>>()
            .map(DisplayText::from),
        Data::Json(_) => None,
        Data::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into()),
        Data::Stored(stored) if stored.encoding() == Encoding::Json => None,
        Data::Stored(stored) => Some(DisplayText::File(stored)),
    }
}

/// Returns a placeholder for a value without text: `[application/x-foo, 1.2 MiB]`.
fn placeholder(bundle: &Bundle) -> Option<String> {
    let has_content = |(mime, data): &&(String, Data)| {
        // Empty text is skipped. An empty image is not: it shows that something went wrong.
        !is_status_mime(mime) && (data.size() > 0 || !mime.starts_with("text/"))
    };
    let rank = |mime: &str| match mime {
        _ if mime.starts_with("image/") => 0,
        "application/json" => 1,
        _ => 2,
    };
    let (mime, data) = bundle
        .data
        .iter()
        .filter(has_content)
        .min_by_key(|(mime, _)| rank(mime))?;
    Some(mime_label(mime, data.size()))
}

/// Returns the type and size of a representation: `[image/png, 1.2 MiB]`.
pub(crate) fn mime_label(mime: &str, bytes: u64) -> String {
    /// Real MIME types are shorter.
    const LENGTH_LIMIT: usize = 100;
    let mime: String = mime
        .chars()
        .filter(|character| !character.is_control())
        .take(LENGTH_LIMIT)
        .collect();
    format!("[{mime}, {}]", ByteSize(bytes))
}
