//! Which representation of a value becomes text, and which are listed beside it.
//!
//! Text: `text/markdown`, else `text/plain` unless it only names an object, else `text/html` turned
//! into Markdown, else `text/latex`, else a stub that names what there is. Beside it: JSON, images,
//! status events.

use std::borrow::Cow;

use serde_json::Value;

use crate::bundle::{Bundle, Data};
use crate::html;
use crate::limits::Limits;
use crate::size::Bytes;
use crate::stored::{Form, Stored};

/// MIME types of status events: ours, and those that other programs of this kind use.
const STATUS: [&str; 4] = [
    "application/x-cellwright-status",
    "application/x-pisces-status",
    "application/x-omp-status",
    "application/x-xcsh-status",
];

/// Whether a MIME type is that of a status event.
pub(crate) fn is_status(mime: &str) -> bool {
    STATUS.contains(&mime)
}

/// Whether a bundle is nothing but status events: it is for us, and neither text nor an output.
pub(crate) fn is_status_only(bundle: &Bundle) -> bool {
    !bundle.data.is_empty() && bundle.data.iter().all(|(mime, _)| is_status(mime))
}

/// The status events of a bundle.
pub(crate) fn status(bundle: &Bundle) -> impl Iterator<Item = Value> {
    let events = bundle.data.iter().filter(|(mime, _)| is_status(mime));
    events.filter_map(|(_, data)| match data {
        Data::Json(value) => Some(value.clone()),
        Data::Text(text) => serde_json::from_str(text).ok(),
        Data::Bytes(_) | Data::Stored(_) => None,
    })
}

/// Text that is in memory, or in a file.
#[derive(Debug)]
pub(crate) enum Words<'a> {
    Here(Cow<'a, str>),
    Stored(&'a Stored),
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Words<'a> {
    fn from(text: T) -> Self {
        Self::Here(text.into())
    }
}

impl<'a> Words<'a> {
    /// Hands on the text, in pieces.
    pub(crate) fn say(&self, mut hear: impl FnMut(&str)) {
        match self {
            Self::Here(text) => hear(text),
            Self::Stored(stored) => {
                let read = stored.read_text(|text| {
                    hear(text);
                    Ok(())
                });
                if let Err(error) = read {
                    hear(&format!("\n[… the rest cannot be read: {error} …]\n"));
                }
            }
        }
    }

    /// The first bytes at least, and a little more if there is more.
    fn beginning(self, most: usize) -> Cow<'a, str> {
        match self {
            Self::Here(text) => text,
            Self::Stored(stored) => {
                let head = stored.head(most.saturating_add(4)).unwrap_or_default();
                Cow::Owned(String::from_utf8_lossy(&head).into_owned())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Here(text) => text.is_empty(),
            Self::Stored(stored) => stored.size() == 0,
        }
    }
}

/// The text of a bundle. It may be large.
pub fn text<'a>(bundle: &'a Bundle, limits: &Limits) -> Option<Cow<'a, str>> {
    words(bundle, limits).map(|words| match words {
        Words::Here(text) => text,
        stored @ Words::Stored(_) => {
            let mut text = String::new();
            stored.say(|piece| text.push_str(piece));
            Cow::Owned(text)
        }
    })
}

/// The text of a bundle, wherever it is.
pub(crate) fn words<'a>(bundle: &'a Bundle, limits: &Limits) -> Option<Words<'a>> {
    let plain = |mime| {
        bundle
            .get(mime)
            .and_then(string)
            .filter(|words| !words.is_empty())
    };
    let says_something = |words: &Words<'_>| !is_bare_name(words);
    if let Some(words) = plain("text/markdown")
        .or_else(|| plain("text/plain"))
        .filter(says_something)
    {
        return Some(words);
    }
    let most = limits.html_bytes;
    let markdown = plain("text/html").map(|html| html::markdown(&html.beginning(most), most));
    if let Some(markdown) = markdown.filter(|markdown| !markdown.trim().is_empty()) {
        return Some(markdown.into());
    }
    plain("text/latex")
        .or_else(|| plain("text/plain"))
        .or_else(|| stub(bundle).map(Words::from))
}

/// Whether a text says only what sort of object there is, as `<IPython.core.display.HTML object>` does.
/// Whatever else there is says more.
fn is_bare_name(words: &Words<'_>) -> bool {
    let Words::Here(text) = words else {
        return false;
    };
    let text = text.trim_end();
    let inner = text
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    inner.is_some_and(|inner| {
        let (name, rest) = inner.split_once(' ').unwrap_or_default();
        let dotted = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
        !name.is_empty()
            && name.chars().all(dotted)
            && (rest == "object" || rest.starts_with("object at 0x") && !rest.contains('\n'))
    })
}

/// Text as a string, or as a list of lines, as notebooks write it.
fn string(data: &Data) -> Option<Words<'_>> {
    match data {
        Data::Text(text) | Data::Json(Value::String(text)) => Some(text.into()),
        Data::Json(Value::Array(lines)) => lines
            .iter()
            .map(Value::as_str)
            .collect::<Option<String>>()
            .map(Words::from),
        Data::Json(_) => None,
        Data::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into()),
        Data::Stored(stored) if stored.form() == Form::Json => None,
        Data::Stored(stored) => Some(Words::Stored(stored)),
    }
}

/// A name for what cannot be shown: `[application/x-foo, 1.2 MiB]`.
fn stub(bundle: &Bundle) -> Option<String> {
    let shown = |(mime, data): &&(String, Data)| {
        // What is empty says nothing, but a picture that is empty says that something went wrong.
        !is_status(mime) && (data.size() > 0 || !mime.starts_with("text/"))
    };
    let rank = |mime: &str| match mime {
        _ if mime.starts_with("image/") => 0,
        "application/json" => 1,
        _ => 2,
    };
    let (mime, data) = bundle
        .data
        .iter()
        .filter(shown)
        .min_by_key(|(mime, _)| rank(mime))?;
    Some(name(mime, data.size()))
}

/// A name for a representation.
pub(crate) fn name(mime: &str, bytes: u64) -> String {
    /// Real ones are short.
    const MOST: usize = 100;
    let mime: String = mime
        .chars()
        .filter(|character| !character.is_control())
        .take(MOST)
        .collect();
    format!("[{mime}, {}]", Bytes(bytes))
}
