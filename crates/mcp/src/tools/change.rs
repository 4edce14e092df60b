//! Replies of the tools that change a notebook.

use cellwright_diagnostics::failure::Failure;
use cellwright_operations::change::ChangeReport;
use cellwright_operations::undo::UndoReport;

use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::wording;

/// Properties of the structured content, the same for all of these tools.
pub(super) const OUTPUT_PROPERTIES: &str = r#"{"changed": {"type": "boolean"}, "revision": {"type": "string"}, "diff": {"type": "string"}, "notices": {"type": "array"}}"#;

/// Describes a change that was written.
pub(super) fn change_reply(
    server: &Server,
    place: &ConfinedPath,
    change: &ChangeReport,
) -> Result<Reply, Failure> {
    let mut document = serde_json::to_value(change).map_err(std::io::Error::from)?;
    let mut text = change.headline.clone();
    if text.is_empty() {
        text.push_str("Nothing changed.");
    }
    text.push_str(&format!(
        "\n{}, revision {}\n",
        wording::sanitize(&place.display_path().display().to_string()),
        change.revision
    ));
    text.push_str(&wording::format_notices(&change.notices));
    // The diff contains the changed source.
    if let Some(object) = document.as_object_mut() {
        object.remove("source");
    }
    if !change.diff.is_empty() {
        let (diff, missing) = truncate_middle(&change.diff, server.options().text_limit);
        text.push_str(&Delimiter::new()?.enclose("diff", &diff));
        if missing > 0 {
            text.push_str(&format!("{missing} characters of the diff omitted\n"));
            document["diff"] = diff.into();
        }
    }
    Ok(Reply::new(text, &document)?)
}

/// Describes a change that was undone or redone.
pub(super) fn undo_reply(server: &Server, report: &UndoReport) -> Result<Reply, Failure> {
    let headline = wording::sanitize(&report.headline);
    let mut text = format!("{headline}\nrevision {}\n", report.revision);
    text.push_str(&wording::format_notices(&report.notices));
    let (diff, missing) = truncate_middle(&report.diff, server.options().text_limit);
    text.push_str(&Delimiter::new()?.enclose("diff", &diff));
    if missing > 0 {
        text.push_str(&format!("{missing} characters of the diff omitted\n"));
    }
    Ok(Reply::new(text, report)?)
}
