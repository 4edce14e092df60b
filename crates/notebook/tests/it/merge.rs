//! An edit made for an older revision: merged where nothing is lost by it, refused where not.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use cellwright_notebook::edit::{self, Address, Draft, Operation, Place};
use cellwright_notebook::file::{self, Changed, Request};
use cellwright_notebook::{
    Baselines, CellKind, Cells, EditError, Markers, Notebook, NotebookError, Notice,
};
use tempfile::TempDir;

pub(crate) type Drafter<'d> = &'d dyn Fn(&dyn Cells) -> Result<Draft, EditError>;

/// A notebook that was read, and may change before it is written.
pub(crate) struct Scene {
    pub(crate) path: PathBuf,
    baselines: Baselines,
    revision: String,
    _folder: TempDir,
}

impl Scene {
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ipynb");
        fs::write(
            &path,
            format!(
                "{{\"cells\": [\n{}\n], \"metadata\": {{}}, \"nbformat\": 4, \"nbformat_minor\": {minor}}}\n",
                cells.join(",\n")
            ),
        )
        .unwrap();
        let baselines = Baselines::new(folder.path().join("baselines"));
        let glance = file::glance(&path, None, Some(&baselines)).unwrap();
        Self {
            path,
            baselines,
            revision: glance.revision.to_string(),
            _folder: folder,
        }
    }

    /// Somebody else changes the file.
    pub(crate) fn they(&self, draft: Drafter<'_>) {
        file::change(&self.path, Request::default(), draft).unwrap();
    }

    fn they_do(&self, operation: &Operation) {
        self.they(&|cells| operation.draft(cells));
    }

    /// Somebody else changes the bytes of the file.
    fn they_replace(&self, old: &str, new: &str) {
        let text = fs::read_to_string(&self.path).unwrap();
        assert!(text.contains(old), "{old} is not in {text}");
        fs::write(&self.path, text.replace(old, new)).unwrap();
    }

    /// We change the file as we have read it.
    pub(crate) fn we(&self, draft: Drafter<'_>) -> Result<Changed, NotebookError> {
        let request = Request {
            revision: Some(&self.revision),
            baselines: Some(&self.baselines),
            ..Request::default()
        };
        file::change(&self.path, request, draft)
    }

    fn we_do(&self, operation: &Operation) -> Result<Changed, NotebookError> {
        self.we(&|cells| operation.draft(cells))
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

    /// Asserts that we are refused and nothing is written.
    fn refuses(&self, operation: &Operation) {
        let before = self.bytes();
        let result = self.we_do(operation);
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
    }
}

fn insert(place: Place, source: &str) -> Operation {
    Operation::Insert {
        place,
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
        place: Place::At(to),
    }
}

const BASE: [&str; 5] = ["A", "B", "C", "D", "E"];

/// What somebody else may do, all of it away from `D`.
fn their_operations() -> Vec<Operation> {
    vec![
        edit(1, "B by them"),
        kind(1),
        clear(1),
        insert(Place::At(0), "new by them"),
        insert(Place::After(cell(1)), "new by them"),
        delete(1),
        delete(0),
        move_to(1, 0),
        move_to(0, 1),
    ]
}

/// What we may do to the cell `D`, wherever it is.
fn our_operations(index: usize) -> Vec<Operation> {
    vec![
        edit(index, "D by us"),
        kind(index),
        clear(index),
        delete(index),
        insert(Place::After(cell(index)), "new by us"),
        insert(Place::Before(cell(index)), "new by us"),
        insert(Place::End, "new by us"),
    ]
}

#[test]
fn changes_to_different_cells_are_merged_whatever_they_are() {
    for ids in [true, false] {
        for theirs in their_operations() {
            for (number, ours) in our_operations(3).into_iter().enumerate() {
                let merged = Scene::new(&BASE, ids);
                merged.they_do(&theirs);
                let with = Notebook::parse(merged.bytes()).unwrap().revision();
                let changed = merged.we_do(&ours).unwrap();
                assert!(changed.notices.contains(&Notice::Merged { with }));

                // What it must come to: our operation on the cell where it is now.
                let expected = Scene::new(&BASE, ids);
                expected.they_do(&theirs);
                let now = expected.sources().iter().position(|s| s == "D").unwrap();
                expected.they_do(&our_operations(now)[number]);
                let text = |scene: &Scene| String::from_utf8(scene.bytes()).unwrap();
                assert_eq!(text(&merged), text(&expected), "{theirs:?} and {ours:?}");
            }
        }
    }
}

#[test]
fn a_cell_that_only_we_move_arrives() {
    for ids in [true, false] {
        for theirs in [
            edit(1, "B by them"),
            insert(Place::After(cell(1)), "new by them"),
            delete(1),
        ] {
            let scene = Scene::new(&BASE, ids);
            scene.they_do(&theirs);
            let mut others = scene.sources();
            others.retain(|source| source != "D");
            scene.we_do(&move_to(3, 0)).unwrap();
            others.insert(0, "D".to_owned());
            assert_eq!(scene.sources(), others, "{theirs:?}");
        }
    }
}

#[test]
fn a_view_edited_meanwhile_is_merged_as_a_whole() {
    let scene = Scene::new(&BASE, true);
    let glance = file::glance(&scene.path, Some(Markers::Indexes), None).unwrap();
    scene.they_do(&insert(Place::At(0), "new by them"));
    scene.they_do(&delete(2));
    let edited = glance.text.replace("\nE", "\nE by us\n# %% [raw]\nmore");
    let changed = scene
        .we(&|cells| edit::replace_all(cells, &edited))
        .unwrap();
    assert_eq!(
        scene.sources(),
        ["new by them", "A", "C", "D", "E by us", "more"]
    );
    assert_eq!((changed.tally.changed, changed.tally.added), (1, 1));
}

#[test]
fn a_cell_that_both_changed_is_a_conflict() {
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
            let scene = Scene::new(&BASE, ids);
            scene.they_do(theirs);
            scene.refuses(ours);
        }
    }
}

#[test]
fn new_outputs_are_not_lost_with_the_cell_they_belong_to() {
    for ids in [true, false] {
        for ours in [delete(3), kind(3), clear(3)] {
            let scene = Scene::new(&BASE, ids);
            scene.they_replace("out of D", "new output of D");
            scene.refuses(&ours);
        }
        let scene = Scene::new(&BASE, ids);
        scene.they_replace("out of D", "new output of D");
        scene.we_do(&edit(3, "D by us")).unwrap();
        let text = String::from_utf8(scene.bytes()).unwrap();
        assert!(text.contains("new output of D") && text.contains("D by us"));
    }
}

#[test]
fn cells_that_both_moved_are_a_conflict() {
    let scene = Scene::new(&BASE, true);
    scene.they_do(&move_to(0, 4));
    scene.refuses(&move_to(3, 0));
}

#[test]
fn a_revision_that_nobody_remembers_is_a_conflict() {
    let mut scene = Scene::new(&BASE, true);
    let known = scene.revision.clone();
    for unknown in ["00000000", "", "latest", &known[..7], "../../../etc/passwd"] {
        scene.revision = unknown.to_owned();
        scene.refuses(&edit(0, "x"));
    }
    scene.revision = known;
    scene.they_do(&edit(1, "B by them"));
    scene.baselines = Baselines::new(scene.path.with_file_name("elsewhere"));
    scene.refuses(&edit(0, "x"));
}

#[test]
fn a_beginning_that_two_revisions_share_names_none() {
    let mut scene = Scene::new(&BASE, true);
    scene.they_do(&edit(1, "B by them"));
    let folder = scene.path.with_file_name("baselines");
    let other = format!("{}{}", &scene.revision[..8], "0".repeat(24));
    fs::copy(folder.join(&scene.revision), folder.join(other)).unwrap();
    let whole = scene.revision.clone();
    scene.revision.truncate(8);
    scene.refuses(&edit(0, "A by us"));
    scene.revision = whole;
    scene.we_do(&edit(0, "A by us")).unwrap();
}

#[test]
fn the_beginning_of_a_revision_names_it() {
    let mut scene = Scene::new(&BASE, true);
    scene.revision = scene.revision[..8].to_uppercase();
    scene.they_do(&edit(1, "B by them"));
    scene.we_do(&edit(0, "A by us")).unwrap();
    assert_eq!(scene.sources()[..2], ["A by us", "B by them"]);
}

#[test]
fn a_file_that_was_only_touched_has_not_changed() {
    let scene = Scene::new(&BASE, true);
    fs::write(&scene.path, scene.bytes()).unwrap();
    let file = fs::File::options().append(true).open(&scene.path).unwrap();
    file.set_modified(SystemTime::now()).unwrap();
    let changed = scene.we_do(&edit(0, "A by us")).unwrap();
    assert_eq!(changed.notices, []);
    assert_eq!(changed.before.unwrap().to_string(), scene.revision);
}

#[test]
fn what_both_did_alike_is_no_conflict() {
    for ids in [true, false] {
        for same in [edit(3, "D by both"), kind(3), clear(3), delete(3)] {
            let scene = Scene::new(&BASE, ids);
            scene.they_do(&same);
            let theirs = scene.bytes();
            let changed = scene.we_do(&same).unwrap_or_else(|error| {
                panic!("{same:?}: {error:?}");
            });
            assert_eq!(scene.bytes(), theirs, "{same:?}");
            assert!(changed.notices.contains(&Notice::Unchanged), "{same:?}");
        }
        // Two new cells are two, even if they say the same.
        let scene = Scene::new(&BASE, ids);
        scene.they_do(&insert(Place::End, "new"));
        scene.we_do(&insert(Place::End, "new")).unwrap();
        assert_eq!(scene.sources()[5..], ["new", "new"]);
        let notebook = file::load(&scene.path).unwrap();
        assert!(!ids || notebook.id(5) != notebook.id(6));
    }
}
