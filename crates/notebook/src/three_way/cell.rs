//! Two changes of one cell, put together.

use std::borrow::Cow;

use super::Marks;
use super::members::{Members, Three, Verdict};
use super::text;
use crate::cell::{CellKind, EXECUTION};
use crate::document::{Cells, Notebook};
use crate::json::alter::{Change, Changes, Object};
use crate::json::content;
use crate::layout::Layout;
use crate::source::{self, Shape};

/// A cell of one of the notebooks.
#[derive(Clone, Copy)]
pub(super) struct Cell<'n> {
    pub(super) notebook: &'n Notebook,
    pub(super) index: usize,
}

/// What came of two changes of a cell.
#[derive(Default)]
pub(super) struct MergedCell {
    pub(super) changes: Changes,
    /// Members that both changed; ours is kept.
    pub(super) clashes: Vec<String>,
    /// Lines of both stand between marks.
    pub(super) source_conflict: bool,
    /// Both changed what the cell is.
    pub(super) kind_conflict: bool,
    /// There were outputs, and they fit the source no more.
    pub(super) cleared: bool,
}

/// Members that have rules of their own.
const OWN: [&str; 7] = [
    "attachments",
    "cell_type",
    "execution_count",
    "id",
    "metadata",
    "outputs",
    "source",
];

/// What a run leaves in a cell, and what it is when there was none.
const RUN: [(&str, &str); 2] = [("execution_count", "null"), ("outputs", "[]")];

/// Metadata that changes by looking at a cell.
const VIEW: [&str; 3] = [EXECUTION, "collapsed", "scrolled"];

impl<'n> Cell<'n> {
    pub(super) fn object(self) -> Option<Object<'n>> {
        Object::at(self.notebook.bytes(), self.notebook.cell(self.index).span)
    }

    pub(super) fn kind(self) -> CellKind {
        self.notebook.kind(self.index)
    }

    pub(super) fn source(self) -> Cow<'n, str> {
        self.notebook.source(self.index)
    }
}

/// Whether a person changed the cell: more than what running and looking at it changes.
pub(super) fn is_touched(base: Cell<'_>, now: Cell<'_>) -> bool {
    if base.kind() != now.kind() || base.source() != now.source() {
        return true;
    }
    let (Some(old), Some(new)) = (base.object(), now.object()) else {
        return true;
    };
    let differs = |old: &Object<'_>, new: &Object<'_>, skip: &[&str]| {
        let names = old.names().into_iter().chain(new.names());
        let mut names = names.filter(|name| !skip.contains(name));
        names.any(|name| !new.agrees(Some(old), name))
    };
    let no_change = ["execution_count", "id", "metadata", "outputs", "source"];
    let metadata_differs = match (old.object("metadata"), new.object("metadata")) {
        (Some(old), Some(new)) => differs(&old, &new, &VIEW),
        _ => !new.agrees(Some(&old), "metadata"),
    };
    metadata_differs || differs(&old, &new, &no_change)
}

/// Whose outputs fit the source in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fitting {
    Ours,
    Theirs,
    Nobodys,
}

/// Puts cells together.
pub(super) struct CellMerger<'m> {
    pub(super) members: Members<'m>,
    /// How our file is laid out.
    pub(super) layout: &'m Layout,
    pub(super) marks: &'m Marks,
    /// How the lines of our cells are indented, if they have lines of their own.
    pub(super) at: Option<&'m str>,
}

impl CellMerger<'_> {
    /// What has to be done to our cell.
    pub(super) fn merge(
        &mut self,
        base: Option<Cell<'_>>,
        ours: Cell<'_>,
        theirs: Cell<'_>,
    ) -> MergedCell {
        let (Some(our), Some(their)) = (ours.object(), theirs.object()) else {
            return MergedCell::default();
        };
        let three = Three {
            base: base.and_then(Cell::object),
            ours: our,
            theirs: their,
        };
        let inside = three.ours.inside(self.at, self.members.spacing);
        let mut merging = Merging {
            inside: inside.as_deref(),
            merged: MergedCell {
                changes: self.members.merge(&three, &OWN, self.at, &mut Vec::new()),
                ..MergedCell::default()
            },
            kinds: [ours.kind(), theirs.kind()],
            kind: ours.kind(),
            three,
            members: &mut self.members,
        };
        merging.kind(base.map(Cell::kind));
        let old = base.map(Cell::source).unwrap_or_default();
        let (our, their) = (ours.source(), theirs.source());
        let text = merging.source(&old, &our, &their, self.marks);
        if text != our {
            let value = written(self.layout, ours, &text);
            merging.set("source", Change::Set(value));
        }
        let fits = [text == our, text == their];
        let fitting = merging.fitting(fits);
        merging.run(fitting);
        merging.metadata(fitting);
        merging.attachments();
        if merging.three.verdict("id") == Verdict::Theirs {
            merging.take("id");
        }
        let mut merged = merging.merged;
        merged.clashes = std::mem::take(&mut self.members.clashes);
        merged
    }
}

/// Our source with new text, in the shape it has.
fn written(layout: &Layout, ours: Cell<'_>, text: &str) -> String {
    let value = ours.notebook.slice(ours.notebook.cell(ours.index).source);
    let shape = match value.first() {
        Some(b'"') => Shape::Text,
        Some(b'[') => Shape::Lines(layout.array_like(value)),
        _ => layout.shape.clone(),
    };
    source::replace(value, text, &shape, layout.escapes).value
}

/// A cell on its way.
struct Merging<'c, 'n, 'm> {
    three: Three<'n>,
    /// What our cell and theirs are, and what it will be.
    kinds: [CellKind; 2],
    kind: CellKind,
    members: &'c mut Members<'m>,
    inside: Option<&'c str>,
    merged: MergedCell,
}

impl Merging<'_, '_, '_> {
    fn set(&mut self, name: &str, change: Change) {
        self.merged.changes.insert(name.to_owned(), change);
    }

    /// Their member instead of ours.
    fn take(&mut self, name: &str) {
        let change = self.members.theirs(&self.three, name, self.inside);
        self.set(name, change);
    }

    fn kind(&mut self, old: Option<CellKind>) {
        let [our, their] = self.kinds;
        if our == their || old == Some(their) {
            return;
        }
        if old == Some(our) {
            self.kind = their;
            self.set("cell_type", Change::Set(format!("\"{their}\"")));
        } else {
            self.merged.kind_conflict = true;
        }
    }

    fn source<'t>(
        &mut self,
        old: &str,
        our: &'t str,
        their: &'t str,
        marks: &Marks,
    ) -> Cow<'t, str> {
        if our == their || old == their {
            return our.into();
        }
        if old == our {
            return their.into();
        }
        let both = text::merge(old, our, their, marks);
        self.merged.source_conflict = both.conflict;
        both.text.into()
    }

    /// Whose outputs fit, where `fits` says whose source it is.
    fn fitting(&self, fits: [bool; 2]) -> Fitting {
        let fits = [
            fits[0] && self.kinds[0] == self.kind,
            fits[1] && self.kinds[1] == self.kind,
        ];
        match fits {
            [true, true] if self.is_theirs_newer() => Fitting::Theirs,
            [true, _] => Fitting::Ours,
            [false, true] => Fitting::Theirs,
            [false, false] => Fitting::Nobodys,
        }
    }

    /// Whether only they ran the cell again.
    fn is_theirs_newer(&self) -> bool {
        let (our, their) = (Run::of(&self.three.ours), Run::of(&self.three.theirs));
        match &self.three.base {
            Some(base) => {
                let old = Run::of(base);
                our.is_same(&old) && !their.is_same(&old)
            }
            None => our.is_none(),
        }
    }

    /// Outputs and execution count.
    fn run(&mut self, fitting: Fitting) {
        let [our, their] = self.kinds;
        for (name, empty) in RUN {
            let value = self.three.ours.get(name);
            let agrees = self.three.ours.agrees(Some(&self.three.theirs), name);
            if self.kind != CellKind::Code {
                // There should be none; what is there all the same is treated like anything else.
                if our != self.kind || (their == our && self.three.verdict(name) == Verdict::Theirs)
                {
                    self.take(name);
                }
                continue;
            }
            match fitting {
                Fitting::Ours => {}
                Fitting::Theirs if agrees => {}
                Fitting::Theirs => self.take(name),
                Fitting::Nobodys => {
                    let had = |value: Option<&[u8]>| {
                        name == "outputs"
                            && value
                                .is_some_and(|value| !content::same(name, Some(value), Some(b"[]")))
                    };
                    self.merged.cleared |= had(value) || had(self.three.theirs.get(name));
                    if value != Some(empty.as_bytes()) {
                        self.set(name, Change::Set(empty.to_owned()));
                    }
                }
            }
        }
    }

    fn metadata(&mut self, fitting: Fitting) {
        let mut path = vec!["metadata".to_owned()];
        let Some(inner) = self.three.inner("metadata") else {
            match self.three.verdict("metadata") {
                Verdict::Ours => {}
                Verdict::Theirs => self.take("metadata"),
                Verdict::Both => self.members.clashes.append(&mut path),
            }
            return;
        };
        let at = self.inside;
        let mut changes = self.members.merge(&inner, &[EXECUTION], at, &mut path);
        let takes_theirs = match fitting {
            Fitting::Theirs => !inner.ours.agrees(Some(&inner.theirs), EXECUTION),
            _ => self.kind != CellKind::Code && inner.verdict(EXECUTION) == Verdict::Theirs,
        };
        if takes_theirs {
            let place = inner.ours.inside(at, self.members.spacing);
            let times = self.members.theirs(&inner, EXECUTION, place.as_deref());
            changes.insert(EXECUTION.to_owned(), times);
        } else if fitting == Fitting::Nobodys && inner.ours.get(EXECUTION).is_some() {
            changes.insert(EXECUTION.to_owned(), Change::Remove);
        }
        if let Some(change) = self.members.changed(&inner, &changes, at) {
            self.set("metadata", change);
        }
    }

    fn attachments(&mut self) {
        let name = "attachments";
        let became_code = self.kind == CellKind::Code && self.kinds[0] != self.kind;
        if became_code {
            if !self.three.ours.agrees(Some(&self.three.theirs), name) {
                self.take(name);
            }
            return;
        }
        let mut path = vec![name.to_owned()];
        if let Some(change) = self.members.member(&self.three, self.inside, &mut path) {
            self.set(name, change);
        }
    }
}

/// What running a cell has left in it.
struct Run<'n> {
    outputs: Option<&'n [u8]>,
    count: Option<&'n [u8]>,
    times: Option<&'n [u8]>,
}

impl<'n> Run<'n> {
    fn of(cell: &Object<'n>) -> Self {
        let metadata = cell.object("metadata");
        Self {
            outputs: cell.get("outputs"),
            count: cell.get("execution_count"),
            times: metadata.and_then(|metadata| metadata.get(EXECUTION)),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        content::same("execution_count", self.count, other.count)
            && content::same(EXECUTION, self.times, other.times)
            && content::same("outputs", self.outputs, other.outputs)
    }

    /// Whether the cell was never run.
    fn is_none(&self) -> bool {
        let outputs = self.outputs.unwrap_or(b"[]");
        let count = self.count.unwrap_or(b"null");
        content::same("outputs", Some(outputs), Some(b"[]")) && count == b"null"
    }
}
