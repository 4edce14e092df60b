//! Recording outputs changes those values and no other byte.

mod concurrent_edits;
mod failures;
mod memory;
mod random;

use std::fs;
use std::path::{Path, PathBuf};

use cellwright_notebook::file::{
    self, CellUpdate, DetachedFiles, GuardRequest, RecordReport, RecordRequest, Segment, Survey,
};
use cellwright_notebook::{CellKind, Cells, NotebookError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::oracle::OracleJobs;
use crate::support::json::Document;
use crate::support::relayout::{Layout, Order, Spacing, relayout};
use crate::support::{corpus, fixtures, lossy, notebooks_in};

/// A notebook in its own directory.
struct NotebookFixture {
    dir: TempDir,
    path: PathBuf,
}

impl NotebookFixture {
    fn with(content: impl AsRef<[u8]>) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.ipynb");
        fs::write(&path, content).unwrap();
        Self { dir, path }
    }

    fn survey(&self) -> Survey {
        file::survey(&self.path).unwrap()
    }

    fn content(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// The file names in the directory.
    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn segment(text: impl AsRef<[u8]>) -> Segment {
    Segment::Bytes(text.as_ref().into())
}

/// An update without execution times.
fn update(cell: usize, count: u64, outputs: impl AsRef<[u8]>) -> CellUpdate {
    CellUpdate {
        cell,
        execution_count: Some(count),
        outputs: vec![segment(outputs)],
        metadata: None,
    }
}

/// A stream output with this text, on one line.
fn stream_output(text: &str) -> String {
    json!([{"name": "stdout", "output_type": "stream", "text": [text]}]).to_string()
}

fn record(
    path: &Path,
    base: &Survey,
    updates: &[CellUpdate],
) -> Result<RecordReport, NotebookError> {
    record_with(path, base, updates, &[])
}

fn record_with(
    path: &Path,
    base: &Survey,
    updates: &[CellUpdate],
    metadata: &[(&'static str, String)],
) -> Result<RecordReport, NotebookError> {
    file::record(RecordRequest {
        path,
        base: &base.record_base(),
        updates: &updates,
        metadata,
        expected: base.revision(),
        guard: GuardRequest::default(),
        detached: &DetachedFiles::default(),
        baselines: None,
        on_step: None,
    })
}

/// The layouts of real notebooks.
fn layouts() -> Vec<Layout> {
    let indented = |unit, newline| Spacing::Indented { unit, newline };
    let inline = |comma, colon| Spacing::Inline { comma, colon };
    let mut layouts = Vec::new();
    for spacing in [
        indented(" ", "\n"),
        indented("  ", "\n"),
        indented("    ", "\n"),
        indented("\t", "\n"),
        indented("", "\n"),
        indented(" ", "\r\n"),
        inline(", ", ": "),
        inline(",", ":"),
    ] {
        for (bom, end) in [(false, "\n"), (true, ""), (false, "\r\n")] {
            layouts.push(Layout {
                spacing: spacing.clone(),
                order: Order::AsIs,
                bom,
                end,
            });
        }
    }
    layouts
}

/// The outputs of a cell, as bytes of the document.
fn outputs_of(document: &Document<'_>, cell: usize) -> Vec<u8> {
    let outputs = document.cells()[cell].get("outputs").unwrap();
    outputs.raw(document.bytes).to_vec()
}

/// Records the outputs of `after` into `before`; the file must then equal `after`, in every
/// layout.
fn assert_records_to(
    before: &str,
    after: &str,
    updates: &[CellUpdate],
    metadata: &[(&'static str, String)],
) {
    for layout in layouts() {
        let (before, after) = (relayout(before, &layout), relayout(after, &layout));
        let document = Document::read(&after);
        let fixture = NotebookFixture::with(&before);
        let formatted = |cell_update: &CellUpdate| CellUpdate {
            outputs: vec![segment(outputs_of(&document, cell_update.cell))],
            ..cell_update.clone()
        };
        let updates: Vec<CellUpdate> = updates.iter().map(formatted).collect();
        let report = record_with(&fixture.path, &fixture.survey(), &updates, metadata).unwrap();
        assert_eq!(lossy(&fixture.content()), lossy(&after), "{layout:?}");
        assert!(!report.merged);
        assert_eq!(report.conflicts, []);
        assert_eq!(report.survey.revision(), fixture.survey().revision());
        assert_eq!(fixture.names(), ["a.ipynb"]);
    }
}

const OLD: &str = r#"[{"name":"stdout","output_type":"stream","text":["old\n","old\n"]}]"#;
const NEW: &str = r#"[{"data":{"text/plain":["new"]},"execution_count":7,"metadata":{},"output_type":"execute_result"},{"name":"stderr","output_type":"stream","text":["ä"]}]"#;

#[test]
fn record_changes_only_outputs_in_any_layout() {
    let notebook = |first: &str, second: &str| {
        format!(
            r##"{{"cells":[{{"cell_type":"code",{first},"source":["print(1)\n","é"]}},{{"attachments":{{}},"cell_type":"markdown","id":"m","metadata":{{}},"source":"# outputs: []"}},{{"source":"x","outputs":{second},"metadata":{{}},"id":"c","execution_count":null,"cell_type":"code","more":{{"outputs":[1.0]}}}}],"metadata":{{"n":1e400}},"nbformat":4,"nbformat_minor":5}}"##
        )
    };
    let cell = |count: &str, outputs: &str| {
        format!(
            r#""execution_count":{count},"id":"a","metadata":{{"tags":["a"]}},"outputs":{outputs}"#
        )
    };
    assert_records_to(
        &notebook(&cell("3", OLD), OLD),
        &notebook(&cell("7", NEW), OLD),
        &[update(0, 7, "")],
        &[],
    );
    // No outputs and no execution count.
    let none = CellUpdate {
        cell: 0,
        ..CellUpdate::default()
    };
    assert_records_to(
        &notebook(&cell("3", OLD), OLD),
        &notebook(&cell("null", "[]"), OLD),
        &[none],
        &[],
    );
    assert_records_to(
        &notebook(&cell("3", "[]"), OLD),
        &notebook(&cell("7", NEW), OLD),
        &[update(0, 7, "")],
        &[],
    );
}

#[test]
fn missing_members_are_appended() {
    let notebook = |rest: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"raw","source":""}},{{"cell_type":"code","source":"x"{rest}}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#
        )
    };
    let both = format!(r#","execution_count":7,"outputs":{NEW}"#);
    assert_records_to(&notebook(""), &notebook(&both), &[update(1, 7, "")], &[]);
    let mut with_times = update(1, 7, "");
    with_times.metadata = Some(("execution", r#"{"a":"b"}"#.to_owned()));
    let all = format!(r#"{both},"metadata":{{"execution":{{"a":"b"}}}}"#);
    assert_records_to(&notebook(""), &notebook(&all), &[with_times.clone()], &[]);
    let old = format!(r#","metadata":null,"outputs":{OLD}"#);
    let new =
        format!(r#","metadata":{{"execution":{{"a":"b"}}}},"outputs":{NEW},"execution_count":7"#);
    assert_records_to(&notebook(&old), &notebook(&new), &[with_times], &[]);
}

#[test]
fn execution_times_go_into_cell_metadata() {
    let notebook = |metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{metadata},"outputs":{NEW},"source":"x"}}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let times = r#"{"iopub.status.busy":"now"}"#;
    let mut with_times = update(0, 7, "");
    with_times.metadata = Some(("execution", times.to_owned()));
    for (before, after) in [
        ("{}", r#"{"execution":TIMES}"#),
        (r#"{"tags":["a"]}"#, r#"{"execution":TIMES,"tags":["a"]}"#),
        (
            r#"{"collapsed":true}"#,
            r#"{"collapsed":true,"execution":TIMES}"#,
        ),
        (
            r#"{"collapsed":true,"tags":[],"deep":{"execution":1}}"#,
            r#"{"collapsed":true,"tags":[],"deep":{"execution":1},"execution":TIMES}"#,
        ),
        (
            r#"{"z":NaN,"execution":{"old":[1,2]},"tags":["ä"]}"#,
            r#"{"z":NaN,"execution":TIMES,"tags":["ä"]}"#,
        ),
    ] {
        let after = after.replace("TIMES", times);
        assert_records_to(
            &notebook(before),
            &notebook(&after),
            &[with_times.clone()],
            &[],
        );
    }
}

#[test]
fn kernel_metadata_goes_into_notebook_metadata() {
    let notebook = |metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{{}},"outputs":{NEW},"source":"x"}}]{metadata},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let metadata = [
        ("kernelspec", r#"{"name":"python3"}"#.to_owned()),
        (
            "language_info",
            r#"{"name":"python","versions":[3,12]}"#.to_owned(),
        ),
    ];
    let (spec, info) = (&metadata[0].1, &metadata[1].1);
    for (before, after) in [
        (
            String::new(),
            format!(r#","metadata":{{"kernelspec":{spec},"language_info":{info}}}"#),
        ),
        (
            r#","metadata":{}"#.to_owned(),
            format!(r#","metadata":{{"kernelspec":{spec},"language_info":{info}}}"#),
        ),
        (
            r#","metadata":{"authors":[],"kernelspec":{"name":"old"},"zoo":1.0}"#.to_owned(),
            format!(
                r#","metadata":{{"authors":[],"kernelspec":{spec},"language_info":{info},"zoo":1.0}}"#
            ),
        ),
    ] {
        let (before, after) = (notebook(&before), notebook(&after));
        assert_records_to(&before, &after, &[update(0, 7, "")], &metadata);
    }
}

/// New text uses escapes if the rest of the file does.
#[test]
fn non_ascii_metadata_follows_file_escapes() {
    let notebook = |source: &str, metadata: &str| {
        format!(
            r#"{{"cells":[{{"cell_type":"code","execution_count":7,"id":"a","metadata":{{}},"outputs":[],"source":"{source}"}}],"metadata":{metadata},"nbformat":4,"nbformat_minor":5}}"#
        )
    };
    let spec = [("kernelspec", r#"{"display_name":"Größe 𝄞"}"#.to_owned())];
    let none = CellUpdate {
        cell: 0,
        execution_count: Some(7),
        ..CellUpdate::default()
    };
    let metadata = |name: &str| format!(r#"{{"kernelspec":{{"display_name":"{name}"}}}}"#);
    for (source, name) in [
        ("\\u00e4", "Gr\\u00f6\\u00dfe \\ud834\\udd1e"),
        ("ä", "Größe 𝄞"),
        ("plain", "Größe 𝄞"),
    ] {
        let fixture = NotebookFixture::with(notebook(source, "{}"));
        record_with(
            &fixture.path,
            &fixture.survey(),
            std::slice::from_ref(&none),
            &spec,
        )
        .unwrap();
        assert_eq!(lossy(&fixture.content()), notebook(source, &metadata(name)));
    }
}

#[test]
fn last_of_duplicate_members_is_replaced() {
    let notebook = |count: &str, outputs: &str| {
        format!(
            r#"{{"cells":[{{"outputs":["first"],"cell_type":"code","execution_count":1,"metadata":{{}},"outputs":{outputs},"source":"x","exec\u0075tion_count":{count}}}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#
        )
    };
    assert_records_to(
        &notebook("2", OLD),
        &notebook("7", NEW),
        &[update(0, 7, "")],
        &[],
    );
}

#[test]
fn identical_cells_get_their_outputs_without_concurrent_edit() {
    let notebook = |outputs: [&str; 3]| {
        let cell = |outputs| {
            format!(
                r#"{{"cell_type":"code","execution_count":7,"id":"same","metadata":{{}},"outputs":{outputs},"source":"x"}}"#
            )
        };
        format!(
            r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
            outputs.map(cell).join(",")
        )
    };
    let updates = [update(0, 7, ""), update(2, 7, "")];
    assert_records_to(
        &notebook([OLD, OLD, "[]"]),
        &notebook([NEW, OLD, OLD]),
        &updates,
        &[],
    );
}

#[test]
fn segments_can_be_read_and_sliced() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store");
    let text = format!("before[\"{}\"]after!", "x".repeat(200_000));
    fs::write(&path, &text).unwrap();
    let stored = Segment::Stored {
        file: std::sync::Arc::new(fs::File::open(&path).unwrap()),
        start: 0,
        length: text.len() as u64,
    };
    let length = text.len() as u64;
    for whole in [stored, segment(&text)] {
        assert_eq!(whole.length(), length);
        let part = whole.slice(6, length - 6);
        assert_eq!(part.length(), length - 12);
        assert_eq!(lossy(&part.read().unwrap()), text[6..text.len() - 6]);
        // Offsets after the end are clamped.
        assert_eq!(whole.slice(length - 3, length + 9).read().unwrap(), b"er!");
        assert_eq!(whole.slice(9, 3).length(), 0);
        let fixture = NotebookFixture::with(
            r#"{"cells":[{"cell_type":"code","outputs":[],"source":"x","execution_count":null,"metadata":{}}],"metadata":{},"nbformat":4,"nbformat_minor":4}"#,
        );
        let cell_update = CellUpdate {
            cell: 0,
            outputs: vec![part, segment("")],
            ..CellUpdate::default()
        };
        record(&fixture.path, &fixture.survey(), &[cell_update]).unwrap();
        let content = fixture.content();
        let outputs = outputs_of(&Document::read(&content), 0);
        assert_eq!(lossy(&outputs), text[6..text.len() - 6]);
    }
}

/// A stored segment that is shorter than its stated length must not corrupt the notebook.
#[test]
fn unreadable_segment_leaves_notebook_unchanged() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store");
    fs::write(&path, "[1").unwrap();
    let cell_update = CellUpdate {
        cell: 0,
        outputs: vec![Segment::Stored {
            file: std::sync::Arc::new(fs::File::open(&path).unwrap()),
            start: 0,
            length: 3,
        }],
        ..CellUpdate::default()
    };
    let old = r#"{"cells":[{"cell_type":"code","outputs":[],"source":"x"}],"nbformat":4,"nbformat_minor":4}"#;
    let fixture = NotebookFixture::with(old);
    record(&fixture.path, &fixture.survey(), &[cell_update]).unwrap_err();
    assert_eq!(lossy(&fixture.content()), old);
    assert_eq!(fixture.names(), ["a.ipynb"]);
}

#[test]
fn a_copy_is_not_readable_for_more_users_and_replaces_no_other_file_through_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let source = NotebookFixture::with(OLD_COPY);
    let copy = |name: &str| {
        let to = source.dir.path().join(name);
        file::copy(source.survey(), &to, GuardRequest::default(), None)
    };
    let mode = |name: &str| {
        let path = source.dir.path().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for (number, original, copied) in [(1, 0o600, 0o600), (2, 0o440, 0o640), (3, 0o666, 0o644)] {
        fs::set_permissions(&source.path, fs::Permissions::from_mode(original)).unwrap();
        let name = format!("{number}.ipynb");
        copy(&name).unwrap();
        assert_eq!(mode(&name) | 0o044, copied | 0o044, "{original:o}");
        assert_eq!(mode(&name) & 0o077 & !original, 0, "{original:o}");
    }
    let dir = source.dir.path();
    fs::write(dir.join("profile"), "text").unwrap();
    fs::write(dir.join("notebook"), OLD_COPY.replace('3', "4")).unwrap();
    for (target, is_copied) in [
        ("profile", false),
        ("missing", false),
        ("notebook", true),
        ("1.ipynb", true),
        ("new.ipynb", true),
    ] {
        symlink(target, dir.join("link.ipynb")).unwrap();
        let copied = copy("link.ipynb");
        assert_eq!(copied.is_ok(), is_copied, "{target}: {copied:?}");
        assert!(
            fs::symlink_metadata(dir.join("link.ipynb"))
                .unwrap()
                .is_symlink()
        );
        fs::remove_file(dir.join("link.ipynb")).unwrap();
    }
    assert_eq!(fs::read_to_string(dir.join("profile")).unwrap(), "text");
    assert!(!dir.join("missing").exists());
    assert!(dir.join("new.ipynb").exists());
}

#[test]
fn copy_is_identical_and_replaces_target() {
    let source = NotebookFixture::with(OLD_COPY);
    for old in [None, Some(""), Some("no notebook"), Some(OLD_COPY)] {
        let fixture = NotebookFixture::with("");
        let to = fixture.dir.path().join("to.ipynb");
        if let Some(old) = old {
            fs::write(&to, old).unwrap();
        }
        let (copied, _) = file::copy(source.survey(), &to, GuardRequest::default(), None).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), OLD_COPY);
        assert_eq!(copied.revision(), source.survey().revision());
        assert_eq!(fixture.names(), ["a.ipynb", "to.ipynb"]);
    }
    // Onto the same file.
    file::copy(source.survey(), &source.path, GuardRequest::default(), None).unwrap();
    assert_eq!(lossy(&source.content()), OLD_COPY);
    let nowhere = source.dir.path().join("no/such/directory.ipynb");
    assert!(file::copy(source.survey(), &nowhere, GuardRequest::default(), None).is_err());
    assert!(
        file::copy(
            source.survey(),
            source.dir.path(),
            GuardRequest::default(),
            None
        )
        .is_err()
    );
    assert_eq!(source.names(), ["a.ipynb"]);
}

const OLD_COPY: &str = "{\"cells\": [ ], \"nbformat\":4, \"nbformat_minor\": 5}\r\n\n";

/// Records outputs for every code cell of every available notebook.
#[test]
fn record_keeps_nbformat_validity() {
    let dir = TempDir::new().unwrap();
    let mut jobs = OracleJobs::new(dir.path());
    let mut paths = fixtures();
    paths.extend(
        corpus()
            .map(|corpus| notebooks_in(&corpus))
            .unwrap_or_default(),
    );
    let metadata = [
        (
            "kernelspec",
            r#"{"display_name":"P","language":"python","name":"p"}"#.to_owned(),
        ),
        ("language_info", r#"{"name":"python"}"#.to_owned()),
    ];
    for path in paths {
        let before = fs::read(&path).unwrap();
        let fixture = NotebookFixture::with(&before);
        let Ok(survey) = file::survey(&fixture.path) else {
            continue;
        };
        let code = (0..survey.count()).filter(|&cell| survey.kind(cell) == CellKind::Code);
        let updates: Vec<CellUpdate> = code
            .map(|cell| CellUpdate {
                metadata: Some(("execution", "{}".to_owned())),
                ..update(cell, 7, NEW)
            })
            .collect();
        record_with(&fixture.path, &survey, &updates, &metadata).unwrap();
        jobs.add_recorded(&path, &fixture.content());
    }
    let answers = jobs.run();
    let valid = |answer: &&Value| answer["before"]["valid"] == true;
    assert!(answers.iter().filter(valid).count() > 5);
    let mut problems = Vec::new();
    for answer in &answers {
        crate::oracle::check(answer, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
