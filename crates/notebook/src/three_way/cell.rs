//! Merges two changes of one cell.

mod attachments;

use std::borrow::Cow;

use super::ConflictMarkers;
use super::members::{MemberMerge, MemberMerger, ThreeObjects};
use super::text;
use crate::cell::{CellKind, EXECUTION_KEY};
use crate::document::{Cells, Notebook};
use crate::json::content;
use crate::json::object_edit::{MemberChange, MemberChanges, Object};
use crate::layout::Layout;
use crate::source::{self, SourceShape};

/// A cell of one of the notebooks.
#[derive(Clone, Copy)]
pub(super) struct CellRef<'n> {
    pub(super) notebook: &'n Notebook,
    pub(super) index: usize,
}

/// The merge of two changes of a cell.
#[derive(Default)]
pub(super) struct MergedCell {
    pub(super) changes: MemberChanges,
    /// Members that both sides changed; ours is kept.
    pub(super) member_conflicts: Vec<String>,
    /// Whether the source has conflict markers.
    pub(super) source_conflict: bool,
    /// Whether both sides changed the kind.
    pub(super) kind_conflict: bool,
    /// Whether outputs were removed because they do not belong to the merged source.
    pub(super) outputs_cleared: bool,
}

/// Members with their own merge rules.
const HANDLED_MEMBERS: [&str; 7] = [
    "attachments",
    "cell_type",
    "execution_count",
    "id",
    "metadata",
    "outputs",
    "source",
];

/// The members that a run sets, and their values before any run.
const RUN_MEMBERS: [(&str, &str); 2] = [("execution_count", "null"), ("outputs", "[]")];

/// Metadata that running or viewing a cell changes.
const VIEW_METADATA: [&str; 3] = [EXECUTION_KEY, "collapsed", "scrolled"];

impl<'n> CellRef<'n> {
    pub(super) fn object(self) -> Option<Object<'n>> {
        Object::parse(self.notebook.bytes(), self.notebook.cell(self.index).span)
    }

    pub(super) fn kind(self) -> CellKind {
        self.notebook.kind(self.index)
    }

    pub(super) fn source(self) -> Cow<'n, str> {
        self.notebook.source(self.index)
    }
}

/// Whether a user changed the cell, beyond running and viewing it.
pub(super) fn is_changed_by_user(base: CellRef<'_>, now: CellRef<'_>) -> bool {
    if base.kind() != now.kind() || base.source() != now.source() {
        return true;
    }
    let (Some(old), Some(new)) = (base.object(), now.object()) else {
        return true;
    };
    let differs = |old: &Object<'_>, new: &Object<'_>, skip: &[&str]| {
        let names = old.names().into_iter().chain(new.names());
        let mut names = names.filter(|name| !skip.contains(name));
        names.any(|name| !new.same_member(Some(old), name))
    };
    let no_change = ["execution_count", "id", "metadata", "outputs", "source"];
    let metadata_differs = match (old.get_object("metadata"), new.get_object("metadata")) {
        (Some(old), Some(new)) => differs(&old, &new, &VIEW_METADATA),
        _ => !new.same_member(Some(&old), "metadata"),
    };
    metadata_differs || differs(&old, &new, &no_change)
}

/// The side whose outputs belong to the merged source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputsFrom {
    Ours,
    Theirs,
    Neither,
}

/// Merges cells.
pub(super) struct CellMerger<'m> {
    pub(super) members: MemberMerger<'m>,
    /// The layout of our file.
    pub(super) layout: &'m Layout,
    pub(super) markers: &'m ConflictMarkers,
    /// The indentation of our cells, if each starts on its own line.
    pub(super) cell_indentation: Option<&'m str>,
}

impl CellMerger<'_> {
    /// The changes to apply to our cell.
    pub(super) fn merge(
        &mut self,
        base: Option<CellRef<'_>>,
        ours: CellRef<'_>,
        theirs: CellRef<'_>,
    ) -> MergedCell {
        let (Some(our), Some(their)) = (ours.object(), theirs.object()) else {
            return MergedCell::default();
        };
        let three = ThreeObjects {
            base: base.and_then(CellRef::object),
            ours: our,
            theirs: their,
        };
        let member_indentation = three
            .ours
            .member_indentation(self.cell_indentation, self.members.style);
        let mut state = CellMergeState {
            member_indentation: member_indentation.as_deref(),
            merged: MergedCell {
                changes: self.members.merge(
                    &three,
                    &HANDLED_MEMBERS,
                    self.cell_indentation,
                    &mut Vec::new(),
                ),
                ..MergedCell::default()
            },
            kinds: [ours.kind(), theirs.kind()],
            kind: ours.kind(),
            three,
            members: &mut self.members,
        };
        state.merge_kind(base.map(CellRef::kind));
        let old = base.map(CellRef::source).unwrap_or_default();
        let (our, their) = (ours.source(), theirs.source());
        let mut text = state.merge_source(&old, &our, &their, self.markers);
        match state.merge_conflicting_attachments(self.markers) {
            Some(lines) => {
                state.merged.source_conflict = true;
                let start = if text.is_empty() { "" } else { "\n" };
                text = format!("{text}{start}{}", lines.join("\n")).into();
            }
            None => state.merge_attachments(),
        }
        if text != our {
            let value = source_value(self.layout, ours, &text);
            state.set("source", MemberChange::Set(value));
        }
        let fits = [text == our, text == their];
        let outputs_from = state.outputs_from(fits);
        state.merge_run(outputs_from);
        state.merge_metadata(outputs_from);
        if state.three.decide("id") == MemberMerge::TakeTheirs {
            state.take_theirs("id");
        }
        let mut merged = state.merged;
        merged.member_conflicts = std::mem::take(&mut self.members.conflicts);
        merged
    }
}

/// The value of our source with new text, in its old shape.
fn source_value(layout: &Layout, ours: CellRef<'_>, text: &str) -> String {
    let value = ours.notebook.slice(ours.notebook.cell(ours.index).source);
    let shape = match value.first() {
        Some(b'"') => SourceShape::Text,
        Some(b'[') => SourceShape::Lines(layout.array_like(value)),
        _ => layout.shape.clone(),
    };
    source::rewrite_value(value, text, &shape, layout.escapes).value
}

/// The state of one cell merge.
struct CellMergeState<'c, 'n, 'm> {
    three: ThreeObjects<'n>,
    /// The kinds of our and of their cell, and the merged kind.
    kinds: [CellKind; 2],
    kind: CellKind,
    members: &'c mut MemberMerger<'m>,
    member_indentation: Option<&'c str>,
    merged: MergedCell,
}

impl CellMergeState<'_, '_, '_> {
    fn set(&mut self, name: &str, change: MemberChange) {
        self.merged.changes.insert(name.to_owned(), change);
    }

    /// Replaces our member by theirs.
    fn take_theirs(&mut self, name: &str) {
        let change = self
            .members
            .take_theirs(&self.three, name, self.member_indentation);
        self.set(name, change);
    }

    fn merge_kind(&mut self, old: Option<CellKind>) {
        let [our, their] = self.kinds;
        if our == their || old == Some(their) {
            return;
        }
        if old == Some(our) {
            self.kind = their;
            self.set("cell_type", MemberChange::Set(format!("\"{their}\"")));
        } else {
            self.merged.kind_conflict = true;
        }
    }

    fn merge_source<'t>(
        &mut self,
        old: &str,
        our: &'t str,
        their: &'t str,
        markers: &ConflictMarkers,
    ) -> Cow<'t, str> {
        if our == their || old == their {
            return our.into();
        }
        if old == our {
            return their.into();
        }
        let both = text::merge_text(old, our, their, markers);
        self.merged.source_conflict = both.conflict;
        both.text.into()
    }

    /// The side whose outputs are kept. `fits` holds for each side whether its source is the
    /// merged one.
    fn outputs_from(&self, fits: [bool; 2]) -> OutputsFrom {
        let fits = [
            fits[0] && self.kinds[0] == self.kind,
            fits[1] && self.kinds[1] == self.kind,
        ];
        match fits {
            [true, true] if self.is_theirs_newer() => OutputsFrom::Theirs,
            [true, _] => OutputsFrom::Ours,
            [false, true] => OutputsFrom::Theirs,
            [false, false] => OutputsFrom::Neither,
        }
    }

    /// Whether only they ran the cell again.
    fn is_theirs_newer(&self) -> bool {
        let (our, their) = (
            RunResult::from_cell(&self.three.ours),
            RunResult::from_cell(&self.three.theirs),
        );
        match &self.three.base {
            Some(base) => {
                let old = RunResult::from_cell(base);
                our.is_same(&old) && !their.is_same(&old)
            }
            None => our.is_none(),
        }
    }

    /// Merges outputs and execution count.
    fn merge_run(&mut self, outputs_from: OutputsFrom) {
        let [our, their] = self.kinds;
        for (name, empty) in RUN_MEMBERS {
            let value = self.three.ours.get(name);
            let agrees = self.three.ours.same_member(Some(&self.three.theirs), name);
            if self.kind != CellKind::Code {
                // Not valid in such a cell; if present, merged like any other member.
                if our != self.kind
                    || (their == our && self.three.decide(name) == MemberMerge::TakeTheirs)
                {
                    self.take_theirs(name);
                }
                continue;
            }
            match outputs_from {
                OutputsFrom::Ours => {}
                OutputsFrom::Theirs if agrees => {}
                OutputsFrom::Theirs => self.take_theirs(name),
                OutputsFrom::Neither => {
                    let had = |value: Option<&[u8]>| {
                        name == "outputs"
                            && value.is_some_and(|value| {
                                !content::same_content(name, Some(value), Some(b"[]"))
                            })
                    };
                    self.merged.outputs_cleared |= had(value) || had(self.three.theirs.get(name));
                    if value != Some(empty.as_bytes()) {
                        self.set(name, MemberChange::Set(empty.to_owned()));
                    }
                }
            }
        }
    }

    fn merge_metadata(&mut self, outputs_from: OutputsFrom) {
        let mut path = vec!["metadata".to_owned()];
        let Some(inner) = self.three.nested("metadata") else {
            match self.three.decide("metadata") {
                MemberMerge::KeepOurs => {}
                MemberMerge::TakeTheirs => self.take_theirs("metadata"),
                MemberMerge::Conflict => self.members.conflicts.append(&mut path),
            }
            return;
        };
        let indentation = self.member_indentation;
        let mut changes = self
            .members
            .merge(&inner, &[EXECUTION_KEY], indentation, &mut path);
        let takes_theirs = match outputs_from {
            OutputsFrom::Theirs => !inner.ours.same_member(Some(&inner.theirs), EXECUTION_KEY),
            _ => {
                self.kind != CellKind::Code
                    && inner.decide(EXECUTION_KEY) == MemberMerge::TakeTheirs
            }
        };
        if takes_theirs {
            let indentation = inner
                .ours
                .member_indentation(indentation, self.members.style);
            let times = self
                .members
                .take_theirs(&inner, EXECUTION_KEY, indentation.as_deref());
            changes.insert(EXECUTION_KEY.to_owned(), times);
        } else if outputs_from == OutputsFrom::Neither && inner.ours.get(EXECUTION_KEY).is_some() {
            changes.insert(EXECUTION_KEY.to_owned(), MemberChange::Remove);
        }
        if let Some(change) = self.members.changed_object(&inner, &changes, indentation) {
            self.set("metadata", change);
        }
    }

    fn merge_attachments(&mut self) {
        let name = "attachments";
        let became_code = self.kind == CellKind::Code && self.kinds[0] != self.kind;
        if became_code {
            if !self.three.ours.same_member(Some(&self.three.theirs), name) {
                self.take_theirs(name);
            }
            return;
        }
        let mut path = vec![name.to_owned()];
        if let Some(change) = self
            .members
            .member(&self.three, self.member_indentation, &mut path)
        {
            self.set(name, change);
        }
    }
}

/// The members that running a cell sets.
struct RunResult<'n> {
    outputs: Option<&'n [u8]>,
    execution_count: Option<&'n [u8]>,
    times: Option<&'n [u8]>,
}

impl<'n> RunResult<'n> {
    fn from_cell(cell: &Object<'n>) -> Self {
        let metadata = cell.get_object("metadata");
        Self {
            outputs: cell.get("outputs"),
            execution_count: cell.get("execution_count"),
            times: metadata.and_then(|metadata| metadata.get(EXECUTION_KEY)),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        content::same_content(
            "execution_count",
            self.execution_count,
            other.execution_count,
        ) && content::same_content(EXECUTION_KEY, self.times, other.times)
            && content::same_content("outputs", self.outputs, other.outputs)
    }

    /// Whether the cell never ran.
    fn is_none(&self) -> bool {
        let outputs = self.outputs.unwrap_or(b"[]");
        let count = self.execution_count.unwrap_or(b"null");
        content::same_content("outputs", Some(outputs), Some(b"[]")) && count == b"null"
    }
}
