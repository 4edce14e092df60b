//! An edit made for an older revision is merged if nothing is lost, and rejected otherwise.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use cellwright_notebook::edit::{self, Address, CellPosition, Draft, Operation};
use cellwright_notebook::file::{self, ChangeOutcome, ChangeRequest};
use cellwright_notebook::{
    Baselines, CellKind, Cells, EditError, MarkerStyle, Notebook, NotebookError, Notice,
};
use tempfile::TempDir;

pub(crate) type Drafter<'d> = &'d dyn Fn(&dyn Cells) -> Result<Draft, EditError>;

/// A notebook that was read and may change before it is written.
pub(crate) struct MergeFixture {
    pub(crate) path: PathBuf,
    baselines: Baselines,
    revision: String,
    _folder: TempDir,
}

impl MergeFixture {
    /// A notebook of code cells with these sources, each with an output that names it.
    pub(crate) fn new(sources: &[&str], ids: bool) -> Self {
        let cells: Vec<String> = sources
            .iter()
            .map(|source| {
                let id = if ids {
                    format!(r#""id": "id-{source}", "#)
                } else {
                    String::new()
                };
                format!(
                    r#"  {{"cell_type": "code", {id}"metadata": {{}}, "execution_count": 1,
   "outputs": [{{"output_type": "stream", "name": "stdout", "text": "out of {source}"}}],
   "source": ["{source}"]}}"#
                )
            })
            .collect();
        let minor = if ids { 5 } else { 4 };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ipynb");
        fs::write(
            &path,
            format!(
                "{{\"cells\": [\n{}\n], \"metadata\": {{}}, \"nbformat\": 4, \"nbformat_minor\": {minor}}}\n",
                cells.join(",\n")
            ),
        )
        .unwrap();
        let baselines = Baselines::new(dir.path().join("baselines"));
        let view = file::read_view(&path, None, Some(&baselines)).unwrap();
        Self {
            path,
            baselines,
            revision: view.revision.to_string(),
            _folder: dir,
        }
    }

    /// Another program changes the file.
    pub(crate) fn apply_theirs(&self, draft: Drafter<'_>) {
        file::change(&self.path, ChangeRequest::default(), draft).unwrap();
    }

    fn apply_their_operation(&self, operation: &Operation) {
        self.apply_theirs(&|cells| operation.draft(cells));
    }

    /// Another program changes the bytes of the file.
    fn replace_bytes(&self, old: &str, new: &str) {
        let text = fs::read_to_string(&self.path).unwrap();
        assert!(text.contains(old), "{old} is not in {text}");
        fs::write(&self.path, text.replace(old, new)).unwrap();
    }

    /// Applies an edit made for the revision that was read.
    pub(crate) fn apply_ours(&self, draft: Drafter<'_>) -> Result<ChangeOutcome, NotebookError> {
        let request = ChangeRequest {
            revision: Some(&self.revision),
            baselines: Some(&self.baselines),
            ..ChangeRequest::default()
        };
        file::change(&self.path, request, draft)
    }

    fn apply_our_operation(&self, operation: &Operation) -> Result<ChangeOutcome, NotebookError> {
        self.apply_ours(&|cells| operation.draft(cells))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    pub(crate) fn sources(&self) -> Vec<String> {
        let notebook = file::load(&self.path).unwrap();
        (0..notebook.count())
            .map(|cell| notebook.source(cell).into_owned())
            .collect()
    }

    /// Asserts that the operation is a conflict and nothing is written.
    fn assert_conflict(&self, operation: &Operation) {
        let before = self.bytes();
        let result = self.apply_our_operation(operation);
        assert!(
            matches!(result, Err(NotebookError::Conflict { .. })),
            "{operation:?}: {result:?}"
        );
        assert_eq!(self.bytes(), before);
    }
}

fn cell(index: usize) -> Address {
    Address::Index(index)
}

fn edit(index: usize, source: &str) -> Operation {
    Operation::Edit {
        cell: cell(index),
        source: source.to_owned(),
        tags: None,
    }
}

fn insert(position: CellPosition, source: &str) -> Operation {
    Operation::Insert {
        position,
        kind: CellKind::Code,
        source: source.to_owned(),
        tags: Vec::new(),
    }
}

fn delete(index: usize) -> Operation {
    Operation::Delete { cell: cell(index) }
}

fn kind(index: usize) -> Operation {
    Operation::Type {
        cell: cell(index),
        kind: CellKind::Raw,
    }
}

fn clear(index: usize) -> Operation {
    Operation::Clear {
        cell: Some(cell(index)),
    }
}

fn move_to(index: usize, to: usize) -> Operation {
    Operation::Move {
        cell: cell(index),
        position: CellPosition::At(to),
    }
}

const BASE: [&str; 5] = ["A", "B", "C", "D", "E"];

/// Operations of the other side, all away from `D`.
fn their_operations() -> Vec<Operation> {
    vec![
        edit(1, "B by them"),
        kind(1),
        clear(1),
        insert(CellPosition::At(0), "new by them"),
        insert(CellPosition::After(cell(1)), "new by them"),
        delete(1),
        delete(0),
        move_to(1, 0),
        move_to(0, 1),
    ]
}

/// Our operations on the cell `D` at `index`.
fn our_operations(index: usize) -> Vec<Operation> {
    vec![
        edit(index, "D by us"),
        kind(index),
        clear(index),
        delete(index),
        insert(CellPosition::After(cell(index)), "new by us"),
        insert(CellPosition::Before(cell(index)), "new by us"),
        insert(CellPosition::End, "new by us"),
    ]
}

#[test]
fn changes_to_different_cells_merge() {
    for ids in [true, false] {
        for theirs in their_operations() {
            for (number, ours) in our_operations(3).into_iter().enumerate() {
                let merged = MergeFixture::new(&BASE, ids);
                merged.apply_their_operation(&theirs);
                let with = Notebook::parse(merged.bytes()).unwrap().revision();
                let changed = merged.apply_our_operation(&ours).unwrap();
                assert!(changed.notices.contains(&Notice::Merged { with }));

                // The expected result: our operation on the cell's current index.
                let expected = MergeFixture::new(&BASE, ids);
                expected.apply_their_operation(&theirs);
                let now = expected.sources().iter().position(|s| s == "D").unwrap();
                expected.apply_their_operation(&our_operations(now)[number]);
                let text = |fixture: &MergeFixture| String::from_utf8(fixture.bytes()).unwrap();
                assert_eq!(text(&merged), text(&expected), "{theirs:?} and {ours:?}");
            }
        }
    }
}

#[test]
fn our_move_survives_their_changes() {
    for ids in [true, false] {
        for theirs in [
            edit(1, "B by them"),
            insert(CellPosition::After(cell(1)), "new by them"),
            delete(1),
        ] {
            let fixture = MergeFixture::new(&BASE, ids);
            fixture.apply_their_operation(&theirs);
            let mut others = fixture.sources();
            others.retain(|source| source != "D");
            fixture.apply_our_operation(&move_to(3, 0)).unwrap();
            others.insert(0, "D".to_owned());
            assert_eq!(fixture.sources(), others, "{theirs:?}");
        }
    }
}

#[test]
fn edited_view_merges_with_concurrent_changes() {
    let fixture = MergeFixture::new(&BASE, true);
    let view = file::read_view(&fixture.path, Some(MarkerStyle::Indexes), None).unwrap();
    fixture.apply_their_operation(&insert(CellPosition::At(0), "new by them"));
    fixture.apply_their_operation(&delete(2));
    let edited = view.text.replace("\nE", "\nE by us\n# %% [raw]\nmore");
    let changed = fixture
        .apply_ours(&|cells| edit::replace_all(cells, &edited))
        .unwrap();
    assert_eq!(
        fixture.sources(),
        ["new by them", "A", "C", "D", "E by us", "more"]
    );
    assert_eq!((changed.tally.changed, changed.tally.added), (1, 1));
}

#[test]
fn cell_changed_by_both_is_a_conflict() {
    for ids in [true, false] {
        let theirs = [edit(3, "D by them"), kind(3), delete(3)];
        let ours = [edit(3, "D by us"), clear(3)];
        for (theirs, ours) in theirs
            .iter()
            .flat_map(|t| ours.iter().map(move |o| (t, o)))
            .chain([
                (&edit(3, "D by them"), &kind(3)),
                (&edit(3, "D by them"), &delete(3)),
                (&kind(3), &delete(3)),
                (&delete(3), &kind(3)),
            ])
        {
            let fixture = MergeFixture::new(&BASE, ids);
            fixture.apply_their_operation(theirs);
            fixture.assert_conflict(ours);
        }
    }
}

#[test]
fn new_outputs_block_delete_kind_change_and_clear() {
    for ids in [true, false] {
        for ours in [delete(3), kind(3), clear(3)] {
            let fixture = MergeFixture::new(&BASE, ids);
            fixture.replace_bytes("out of D", "new output of D");
            fixture.assert_conflict(&ours);
        }
        let fixture = MergeFixture::new(&BASE, ids);
        fixture.replace_bytes("out of D", "new output of D");
        fixture.apply_our_operation(&edit(3, "D by us")).unwrap();
        let text = String::from_utf8(fixture.bytes()).unwrap();
        assert!(text.contains("new output of D") && text.contains("D by us"));
    }
}

#[test]
fn moves_by_both_are_a_conflict() {
    let fixture = MergeFixture::new(&BASE, true);
    fixture.apply_their_operation(&move_to(0, 4));
    fixture.assert_conflict(&move_to(3, 0));
}

#[test]
fn unknown_revision_is_a_conflict() {
    let mut fixture = MergeFixture::new(&BASE, true);
    let stored = fixture.revision.clone();
    for unknown in [
        "00000000",
        "",
        "latest",
        &stored[..7],
        "../../../etc/passwd",
    ] {
        fixture.revision = unknown.to_owned();
        fixture.assert_conflict(&edit(0, "x"));
    }
    fixture.revision = stored;
    fixture.apply_their_operation(&edit(1, "B by them"));
    fixture.baselines = Baselines::new(fixture.path.with_file_name("elsewhere"));
    fixture.assert_conflict(&edit(0, "x"));
}

#[test]
fn ambiguous_revision_prefix_is_a_conflict() {
    let mut fixture = MergeFixture::new(&BASE, true);
    fixture.apply_their_operation(&edit(1, "B by them"));
    let dir = fixture.path.with_file_name("baselines");
    let other = format!("{}{}", &fixture.revision[..8], "0".repeat(24));
    fs::copy(dir.join(&fixture.revision), dir.join(other)).unwrap();
    let whole = fixture.revision.clone();
    fixture.revision.truncate(8);
    fixture.assert_conflict(&edit(0, "A by us"));
    fixture.revision = whole;
    fixture.apply_our_operation(&edit(0, "A by us")).unwrap();
}

#[test]
fn revision_prefix_is_accepted() {
    let mut fixture = MergeFixture::new(&BASE, true);
    fixture.revision = fixture.revision[..8].to_uppercase();
    fixture.apply_their_operation(&edit(1, "B by them"));
    fixture.apply_our_operation(&edit(0, "A by us")).unwrap();
    assert_eq!(fixture.sources()[..2], ["A by us", "B by them"]);
}

#[test]
fn touched_file_counts_as_unchanged() {
    let fixture = MergeFixture::new(&BASE, true);
    fs::write(&fixture.path, fixture.bytes()).unwrap();
    let file = fs::File::options()
        .append(true)
        .open(&fixture.path)
        .unwrap();
    file.set_modified(SystemTime::now()).unwrap();
    let changed = fixture.apply_our_operation(&edit(0, "A by us")).unwrap();
    assert_eq!(changed.notices, []);
    assert_eq!(changed.before.unwrap().to_string(), fixture.revision);
}

#[test]
fn same_change_by_both_is_no_conflict() {
    for ids in [true, false] {
        for same in [edit(3, "D by both"), kind(3), clear(3), delete(3)] {
            let fixture = MergeFixture::new(&BASE, ids);
            fixture.apply_their_operation(&same);
            let theirs = fixture.bytes();
            let changed = fixture.apply_our_operation(&same).unwrap_or_else(|error| {
                panic!("{same:?}: {error:?}");
            });
            assert_eq!(fixture.bytes(), theirs, "{same:?}");
            assert!(changed.notices.contains(&Notice::Unchanged), "{same:?}");
        }
        // Two new cells stay two, even if they are equal.
        let fixture = MergeFixture::new(&BASE, ids);
        fixture.apply_their_operation(&insert(CellPosition::End, "new"));
        fixture
            .apply_our_operation(&insert(CellPosition::End, "new"))
            .unwrap();
        assert_eq!(fixture.sources()[5..], ["new", "new"]);
        let notebook = file::load(&fixture.path).unwrap();
        assert!(!ids || notebook.id(5) != notebook.id(6));
    }
}
