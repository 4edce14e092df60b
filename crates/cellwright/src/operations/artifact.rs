//! Full outputs that were stored as artifacts.

use cellwright_notebook::select::{self, IndexRange, Part, View};
use cellwright_output::{
    Artifact, ArtifactError, ArtifactId, ArtifactKind, Artifacts, SearchResults, clean,
};

use crate::engine::Engine;
use crate::failure::{Failure, Kind};

/// Parses the number and the lines in `12`, `artifact://12`, `artifact://12:3-5`.
pub(crate) fn parse_address(text: &str) -> Result<(ArtifactId, Vec<IndexRange>), Failure> {
    let (name, selector) = select::split(text, &|_| false)?;
    let ranges = match (selector.view, selector.part) {
        (View::Text | View::Raw, Part::All) => Vec::new(),
        (View::Text | View::Raw, Part::Lines(ranges)) => ranges,
        _ => {
            let message = format!("`{text}`: only lines of an artifact can be selected");
            return Err(
                Failure::new(Kind::BadArguments, message).hint("such as artifact://12:1-40")
            );
        }
    };
    Ok((name.parse()?, ranges))
}

/// The artifact store.
pub(crate) fn store(engine: &Engine) -> Result<&Artifacts, Failure> {
    engine.artifacts.as_ref().ok_or_else(|| {
        Failure::new(Kind::BadFile, "There is no directory for artifacts")
            .hint("set HOME, or name one in CELLWRIGHT_ARTIFACTS_DIR")
    })
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        let failure = Self::new(Kind::BadArguments, error.to_string());
        match error {
            ArtifactError::Missing { available, .. } if available.is_empty() => {
                failure.hint("no artifacts are stored")
            }
            ArtifactError::Missing { available, .. } => {
                let last = &available[available.len().saturating_sub(10)..];
                let names: Vec<String> = last.iter().map(ArtifactId::to_string).collect();
                failure.hint(format!("available: {}", names.join(", ")))
            }
            _ => failure,
        }
    }
}

/// A part of an artifact, bounded for a model.
pub(crate) struct Excerpt {
    pub(crate) artifact: String,
    pub(crate) mime: &'static str,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) text: String,
    /// Offset of the rest, in bytes of the selected lines; `None` at the end.
    pub(crate) next: Option<usize>,
}

/// Reads at most `most` bytes of the selected lines, starting at `offset`, without colours. Ends at a line end if
/// one is in the second half.
pub(crate) fn read_excerpt(
    address_text: &str,
    engine: &Engine,
    offset: usize,
    most: usize,
) -> Result<Excerpt, Failure> {
    let (id, ranges) = parse_address(address_text)?;
    let mut artifact = store(engine)?.open(id)?;
    refuse_binary(&artifact)?;
    let total = artifact.lines()?;
    let span = match ranges.as_slice() {
        [] => 0..artifact.bytes(),
        [only] => {
            let last = only.end.map_or(u64::MAX, |end| end as u64);
            artifact.byte_range(only.start as u64..=last)?
        }
        _ => {
            let message = "Only one range of an artifact can be read at a time";
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(format!("such as {id}:1-40")));
        }
    };
    if span.is_empty() && !ranges.is_empty() {
        let message = format!("{id} has {total} lines; none of those asked for is among them");
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let start = span.start.saturating_add(offset as u64).min(span.end);
    let left = usize::try_from(span.end - start).unwrap_or(usize::MAX);
    let mut bytes = artifact.read_bytes(start, left.min(most))?;
    if left > most
        && let Some(end) = memchr::memrchr(b'\n', &bytes)
        && end >= bytes.len() / 2
    {
        bytes.truncate(end + 1);
    }
    let next = offset + bytes.len();
    Ok(Excerpt {
        artifact: id.to_string(),
        mime: artifact.kind.mime(),
        bytes: artifact.bytes(),
        lines: total,
        next: (bytes.len() < left && !bytes.is_empty()).then_some(next),
        text: clean::plain(&String::from_utf8_lossy(&bytes)),
    })
}

/// Rejects artifacts that are not text.
pub(crate) fn refuse_binary(artifact: &Artifact) -> Result<(), Failure> {
    let is_text = !matches!(
        artifact.kind,
        ArtifactKind::Png | ArtifactKind::Jpeg | ArtifactKind::Binary
    );
    if is_text {
        return Ok(());
    }
    let message = format!("{} is {}, not text", artifact.id, artifact.kind.mime());
    let path = artifact.path().display();
    Err(Failure::new(Kind::BadArguments, message).hint(format!("it is in {path}")))
}

/// Formats matching lines with their numbers.
pub(crate) fn format_hits(hits: &SearchResults) -> String {
    let mut text = String::new();
    for (position, hit) in hits.hits.iter().enumerate() {
        let around = hit.before.len() + hit.after.len() > 0;
        if around && position > 0 {
            text.push_str("--\n");
        }
        let first = hit.line - hit.before.len() as u64;
        for (number, line) in (first..).zip(&hit.before) {
            text.push_str(&format!("{number}-{line}\n"));
        }
        text.push_str(&format!("{}:{}\n", hit.line, hit.text));
        for (number, line) in (hit.line + 1..).zip(&hit.after) {
            text.push_str(&format!("{number}-{line}\n"));
        }
    }
    text
}
