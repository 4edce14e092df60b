//! What the tools that change a notebook answer.

use super::super::content::{Delimiter, Reply, truncate_middle};
use super::super::roots::ConfinedPath;
use super::super::server::Server;
use super::super::wording;
use crate::failure::Failure;
use crate::operations::change::ChangeReport;

/// Of what a change answers: the same for all tools that make one.
pub(super) const OUTPUT_PROPERTIES: &str = r#"{"changed": {"type": "boolean"}, "revision": {"type": "string"}, "diff": {"type": "string"}, "notices": {"type": "array"}}"#;

/// What was done, read back from the file.
pub(super) fn change_reply(
    server: &Server,
    place: &ConfinedPath,
    change: &ChangeReport,
) -> Result<Reply, Failure> {
    let mut document = serde_json::to_value(change).map_err(std::io::Error::from)?;
    place.set_display_path(&mut document);
    let most = server.options().text_limit;
    let mut text = change.headline.clone();
    if text.is_empty() {
        text.push_str("Nothing changed.");
    }
    text.push_str(&format!(
        "\n{}, revision {}\n",
        wording::sanitize(&place.display_path.display().to_string()),
        change.revision
    ));
    text.push_str(&wording::format_notices(&change.notices));
    // What a cell holds is in the diff, or was there before.
    if let Some(object) = document.as_object_mut() {
        object.remove("source");
    }
    if !change.diff.is_empty() {
        let (diff, missing) = truncate_middle(&change.diff, most);
        text.push_str(&Delimiter::new()?.enclose("diff", &diff));
        if missing > 0 {
            text.push_str(&format!("{missing} characters of the diff are not shown\n"));
            document["diff"] = diff.into();
        }
    }
    Ok(Reply::new(text, &document)?)
}
