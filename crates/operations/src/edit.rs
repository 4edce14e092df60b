//! Replaces a piece of a notebook's text.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::engine::Engine;
use cellwright_notebook::edit::{self, MatchMode, ReplaceScope, Replacement};
use cellwright_notebook::{CellKind, Cells, file};

use super::change::{BaseRevision, ChangeReport};
use super::file_path::FilePath;

/// A request of `edit`.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options of a request")]
pub struct EditRequest {
    pub path: FilePath,
    /// The text to replace, as the text view shows it.
    pub old: String,
    pub new: String,
    /// Whether every occurrence is replaced; otherwise there must be exactly one.
    pub all: bool,
    /// Whether `old` must not be a part of a longer word.
    pub word: bool,
    /// Whether `old` is a regular expression.
    pub regex: bool,
    /// Whether only code cells change.
    pub code: bool,
    /// Whether only Markdown cells change; with `code`, both kinds.
    pub markdown: bool,
    pub revision: BaseRevision,
}

/// Replaces the text.
pub fn edit(request: &EditRequest, engine: &Engine) -> Result<ChangeReport, Failure> {
    let occurrences = if request.all {
        ReplaceScope::All
    } else {
        ReplaceScope::One
    };
    if request.word && request.regex {
        let message = "A regular expression cannot be searched as a word";
        return Err(Failure::new(Kind::BadArguments, message)
            .hint("write `\\b` at both ends of the regular expression")
            .hint("nothing was written"));
    }
    let kinds: Vec<CellKind> = [
        (request.code, CellKind::Code),
        (request.markdown, CellKind::Markdown),
    ]
    .into_iter()
    .filter_map(|(is_selected, kind)| is_selected.then_some(kind))
    .collect();
    let replacement = Replacement {
        old: &request.old,
        new: &request.new,
        scope: occurrences,
        mode: match request {
            _ if request.word => MatchMode::Word,
            _ if request.regex => MatchMode::Regex,
            _ => MatchMode::Text,
        },
        kinds: &kinds,
    };
    let draft = |cells: &dyn Cells| edit::replace(cells, &replacement);
    let changed = file::change(
        request.path.open_path(),
        request.revision.request(engine, false),
        &draft,
    )
    .map_err(|error| request.path.change_failure(error))?;
    Ok(ChangeReport::new("edit", &request.path, changed))
}
