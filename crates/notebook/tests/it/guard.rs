//! Every write to an existing notebook asks the guard first.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use cellwright_notebook::edit::{Address, CellPosition, Operation};
use cellwright_notebook::file::{
    self, CellUpdate, ChangeRequest, DetachedFiles, GuardRequest, OnMissing, RecordRequest,
    WriteGuard, WritePermit, WriteRefusal,
};
use cellwright_notebook::{CellKind, NotebookError, Notice};
use tempfile::TempDir;

const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","execution_count":1,"metadata":{},"outputs":[],"source":"old"}],"metadata":{},"nbformat":4,"nbformat_minor":4}"#;

/// Refuses writes that are not forced, and counts the questions.
#[derive(Debug, Default)]
struct Room {
    questions: AtomicUsize,
}

impl WriteGuard for Room {
    fn before_write(&self, _: &Path, force: bool) -> Result<WritePermit, WriteRefusal> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let server = "http://localhost:8888/".to_owned();
        if !force {
            return Err(WriteRefusal { server });
        }
        Ok(WritePermit {
            notices: vec![Notice::OpenInRoom { server }],
            on_written: None,
        })
    }
}

impl Room {
    fn request(&self, force: bool) -> GuardRequest<'_> {
        GuardRequest {
            guard: Some(self),
            force,
        }
    }
}

/// Writes to a notebook; returns whether it succeeded.
type Writer = fn(&Path, GuardRequest<'_>) -> Result<Vec<Notice>, NotebookError>;

const WRITERS: [Writer; 4] = [
    |path, guard| change(path, guard, "new"),
    |path, guard| {
        let request = ChangeRequest {
            guard,
            ..ChangeRequest::default()
        };
        file::upgrade(path, request).map(|(_, _, notices)| notices)
    },
    |path, guard| {
        let base = file::survey(path)?;
        let updates = [CellUpdate {
            execution_count: Some(2),
            ..CellUpdate::default()
        }];
        let recorded = file::record(RecordRequest {
            path,
            base: &base.record_base(),
            updates: &updates,
            metadata: &[],
            expected: base.revision(),
            guard,
            detached: &DetachedFiles::default(),
            baselines: None,
            on_step: None,
        });
        recorded.map(|recorded| recorded.notices)
    },
    |path, guard| {
        let source = path.with_file_name("source.ipynb");
        fs::write(&source, NOTEBOOK.replace("old", "copied")).unwrap();
        let copied = file::copy(file::survey(&source)?, path, guard, None);
        fs::remove_file(source).unwrap();
        copied.map(|(_, notices)| notices)
    },
];

fn change(
    path: &Path,
    guard: GuardRequest<'_>,
    source: &str,
) -> Result<Vec<Notice>, NotebookError> {
    let edit = Operation::Edit {
        cell: Address::Index(0),
        source: source.to_owned(),
        tags: None,
    };
    let request = ChangeRequest {
        guard,
        ..ChangeRequest::default()
    };
    let changed = file::change(path, request, &|cells| edit.draft(cells));
    changed.map(|changed| changed.notices)
}

#[test]
fn a_refusal_leaves_the_file_and_no_other_file() {
    for (writer, write) in WRITERS.into_iter().enumerate() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.ipynb");
        fs::write(&path, NOTEBOOK).unwrap();
        let room = Room::default();
        let refused = write(&path, room.request(false));
        let is_refusal = matches!(refused, Err(NotebookError::OpenInRoom { .. }));
        assert!(is_refusal, "writer {writer}: {refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), NOTEBOOK);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let notices = write(&path, room.request(true)).unwrap();
        assert!(
            notices.iter().any(Notice::is_about_open_notebook),
            "writer {writer}: {notices:?}"
        );
        assert_ne!(fs::read_to_string(&path).unwrap(), NOTEBOOK);
    }
}

#[test]
fn nobody_is_asked_about_a_new_file_or_an_unchanged_one() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("new.ipynb");
    let room = Room::default();
    let insert = Operation::Insert {
        position: CellPosition::End,
        kind: CellKind::Code,
        source: "x".to_owned(),
        tags: Vec::new(),
    };
    let request = ChangeRequest {
        on_missing: OnMissing::Create,
        guard: room.request(false),
        ..ChangeRequest::default()
    };
    file::change(&path, request, &|cells| insert.draft(cells)).unwrap();
    change(&path, room.request(false), "x").unwrap();
    assert_eq!(room.questions.load(Ordering::Relaxed), 0);
}
