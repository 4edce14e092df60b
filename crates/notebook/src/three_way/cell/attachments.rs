//! Merges attachments that both sides changed: both pictures stay, and the source names them
//! between conflict markers.

use super::super::ConflictMarkers;
use super::super::members::{MemberMerge, ThreeObjects};
use super::CellMergeState;
use crate::cell::CellKind;
use crate::json::object_edit::{MemberChange, MemberChanges, Object};
use crate::span::Span;

const ATTACHMENTS: &str = "attachments";

impl CellMergeState<'_, '_, '_> {
    /// Merges the attachments if both sides changed one of them. Returns the lines that mark the
    /// conflicts; `None` if there is no conflict.
    pub(super) fn merge_conflicting_attachments(
        &mut self,
        markers: &ConflictMarkers,
    ) -> Option<Vec<String>> {
        if self.kind == CellKind::Code {
            return None;
        }
        let three = ThreeObjects {
            base: self.three.base.as_ref().and_then(attachments),
            ours: attachments(&self.three.ours)?,
            theirs: attachments(&self.three.theirs)?,
        };
        let only_theirs = three
            .theirs
            .names()
            .into_iter()
            .filter(|name| three.ours.get(name).is_none());
        let names: Vec<&str> = three.ours.names().into_iter().chain(only_theirs).collect();
        let style = self.members.style;
        let indentation = three
            .ours
            .member_indentation(self.member_indentation, style);
        let mut changes = MemberChanges::new();
        let mut lines = Vec::new();
        for &name in &names {
            let decision = three.decide(name);
            if decision == MemberMerge::KeepOurs {
                continue;
            }
            let theirs = self
                .members
                .take_theirs(&three, name, indentation.as_deref());
            if decision == MemberMerge::TakeTheirs {
                changes.insert(name.to_owned(), theirs);
                continue;
            }
            let is_ours = three.ours.get(name).is_some();
            let their_name = match (is_ours, &theirs) {
                (_, MemberChange::Remove) => None,
                (false, MemberChange::Set(_)) => Some(name.to_owned()),
                (true, MemberChange::Set(_)) => Some(unused_name(name, &names)),
            };
            lines.push(markers.marker_line('<', &markers.ours));
            lines.extend(is_ours.then(|| link(name, name)));
            lines.push(markers.marker_line('=', ""));
            lines.extend(their_name.as_deref().map(|target| link(name, target)));
            lines.push(markers.marker_line('>', &markers.theirs));
            changes.extend(their_name.map(|target| (target, theirs)));
        }
        if lines.is_empty() {
            return None;
        }
        let change = self
            .members
            .changed_object(&three, &changes, self.member_indentation);
        if let Some(change) = change {
            self.set(ATTACHMENTS, change);
        }
        Some(lines)
    }
}

/// The attachments of a cell; empty if it has none.
fn attachments<'n>(cell: &Object<'n>) -> Option<Object<'n>> {
    cell.get_object(ATTACHMENTS)
        .or_else(|| Object::parse(b"{}", Span::new(0, 2)))
}

/// A name for their version of an attachment.
fn unused_name(name: &str, names: &[&str]) -> String {
    let mut unused = format!("theirs-{name}");
    while names.contains(&unused.as_str()) {
        unused = format!("theirs-{unused}");
    }
    unused
}

/// A picture in Markdown.
fn link(name: &str, target: &str) -> String {
    format!("![{name}](attachment:{})", target.replace(' ', "%20"))
}
