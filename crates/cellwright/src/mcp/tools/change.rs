//! What the tools that change a notebook answer.

use super::super::content::{Border, Reply, cut};
use super::super::roots::Place;
use super::super::server::Server;
use super::super::words;
use crate::failure::Failure;
use crate::operations::change::ChangeReport;

/// Of what a change answers: the same for all tools that make one.
pub(super) const ANSWER: &str = r#"{"changed": {"type": "boolean"}, "revision": {"type": "string"}, "diff": {"type": "string"}, "notices": {"type": "array"}}"#;

/// What was done, read back from the file.
pub(super) fn answer(
    server: &Server,
    place: &Place,
    change: &ChangeReport,
) -> Result<Reply, Failure> {
    let mut document = serde_json::to_value(change).map_err(std::io::Error::from)?;
    place.named_in(&mut document);
    let most = server.options().text;
    let mut text = change.headline.clone();
    if text.is_empty() {
        text.push_str("Nothing changed.");
    }
    text.push_str(&format!(
        "\n{}, revision {}\n",
        words::sentence(&place.shown.display().to_string()),
        change.revision
    ));
    text.push_str(&words::notices(&change.notices));
    // What a cell holds is in the diff, or was there before.
    if let Some(object) = document.as_object_mut() {
        object.remove("source");
    }
    if !change.diff.is_empty() {
        let (diff, missing) = cut(&change.diff, most);
        text.push_str(&Border::new()?.enclose("diff", &diff));
        if missing > 0 {
            text.push_str(&format!("{missing} characters of the diff are not shown\n"));
            document["diff"] = diff.into();
        }
    }
    Ok(Reply::new(text, &document)?)
}
