//! The directory of artifacts.

use std::collections::HashSet;
use std::fs;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use cellwright_output::{
    Artifact, ArtifactError, ArtifactId, ArtifactKind, Artifacts, Pattern, ProjectTag, Retention,
    SearchOptions, clean,
};
use tempfile::TempDir;

fn store() -> (TempDir, Artifacts) {
    store_with(Retention::default())
}

fn store_with(retention: Retention) -> (TempDir, Artifacts) {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(dir.path().join("artifacts"), retention);
    (dir, artifacts)
}

/// Lines of an artifact, at most `limit` bytes, without partial characters.
fn read_lines(artifact: &mut Artifact, lines: RangeInclusive<u64>, limit: usize) -> String {
    let range = artifact.byte_range(lines).unwrap();
    let length = usize::try_from(range.end - range.start).unwrap();
    let bytes = artifact.read_bytes(range.start, length.min(limit)).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn names_are_numbers() {
    assert_eq!(
        "artifact://12".parse::<ArtifactId>().unwrap(),
        ArtifactId(12)
    );
    assert_eq!(
        "12".parse::<ArtifactId>().unwrap().to_string(),
        "artifact://12"
    );
    for bad in [
        "",
        "artifact://",
        "artifact://0",
        "artifact://+1",
        "-1",
        "x",
        "1.5",
        "../1",
    ] {
        assert!(bad.parse::<ArtifactId>().is_err(), "{bad}");
    }
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, artifacts) = store();
    let id = artifacts.store(ArtifactKind::Png, b"png").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(artifacts.dir()), 0o700);
    let artifact = artifacts.open(id).unwrap();
    assert_eq!(mode(artifact.path()), 0o600);
    assert_eq!(mode(&artifacts.dir().join(".last")), 0o600);
    assert!(artifact.path().ends_with("1.png"));
}

#[test]
fn concurrent_users_never_share_a_number() {
    let (_dir, artifacts) = store();
    let ids: Vec<ArtifactId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number: u8| {
                // A separate handle, as in another process.
                let artifacts = Artifacts::new(artifacts.dir(), Retention::default());
                let artifacts = match number {
                    0..2 => artifacts,
                    _ => artifacts.for_project(ProjectTag::new([number / 4; 4])),
                };
                let kind = if number.is_multiple_of(2) {
                    ArtifactKind::Log
                } else {
                    ArtifactKind::Png
                };
                scope.spawn(move || {
                    let store = |_| artifacts.store(kind, b"x").unwrap();
                    (0..25).map(store).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 200);
    assert_eq!(artifacts.list().unwrap().len(), 200);
}

#[test]
fn numbers_are_never_reused() {
    let (_dir, artifacts) = store();
    for _ in 0..12 {
        artifacts.store(ArtifactKind::Log, b"x").unwrap();
    }
    let later = SystemTime::now() + Duration::from_hours(1000);
    assert_eq!(artifacts.sweep_at(later).unwrap().removed.len(), 12);
    let reopened = Artifacts::new(artifacts.dir(), Retention::default());
    assert_eq!(
        reopened.store(ArtifactKind::Log, b"x").unwrap(),
        ArtifactId(13)
    );
    // An existing file is skipped, and a corrupt counter is replaced.
    fs::write(artifacts.dir().join("14.log"), "mine").unwrap();
    assert_eq!(
        reopened.store(ArtifactKind::Log, b"x").unwrap(),
        ArtifactId(15)
    );
    let existing = fs::read(artifacts.dir().join("14.log")).unwrap();
    assert_eq!(existing, b"mine");
    fs::write(artifacts.dir().join(".last"), "nonsense, and long").unwrap();
    assert_eq!(
        reopened.store(ArtifactKind::Log, b"x").unwrap(),
        ArtifactId(16)
    );
    reopened.sweep_at(later).unwrap();
    assert_eq!(
        reopened.store(ArtifactKind::Log, b"x").unwrap(),
        ArtifactId(17)
    );
}

#[test]
fn missing_artifact_error_lists_available_ids() {
    let (_dir, artifacts) = store();
    assert!(artifacts.list().unwrap().is_empty());
    artifacts.store(ArtifactKind::Log, b"x").unwrap();
    fs::write(artifacts.dir().join("notes.txt"), "not ours").unwrap();
    fs::write(artifacts.dir().join("007.log"), "nor this").unwrap();
    match artifacts.open(ArtifactId(7)) {
        Err(ArtifactError::Missing { id, available }) => {
            assert_eq!((id, available), (ArtifactId(7), vec![ArtifactId(1)]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sweep_removes_oldest_but_never_open_artifacts() {
    let retention = Retention {
        bytes: 1000,
        ..Retention::default()
    };
    let (_dir, artifacts) = store_with(retention);
    let mut writing = artifacts.create(ArtifactKind::Log).unwrap();
    writing.write(&[b'w'; 300]).unwrap();
    writing.flush().unwrap();
    for _ in 0..4 {
        artifacts.store(ArtifactKind::Log, &[b'x'; 300]).unwrap();
    }
    let report = artifacts.sweep().unwrap();
    assert_eq!(report.removed, [ArtifactId(2), ArtifactId(3)]);
    assert_eq!((report.freed_bytes, report.remaining_bytes), (600, 900));
    drop(writing);
    artifacts.store(ArtifactKind::Log, &[b'x'; 300]).unwrap();
    assert_eq!(artifacts.sweep().unwrap().removed, [ArtifactId(1)]);
}

#[test]
fn sweep_removes_expired_artifacts() {
    let (_dir, artifacts) = store();
    artifacts.store(ArtifactKind::Log, b"x").unwrap();
    assert!(artifacts.sweep().unwrap().removed.is_empty());
    let later = SystemTime::now() + Duration::from_hours(7 * 24 + 1);
    assert_eq!(artifacts.sweep_at(later).unwrap().removed, [ArtifactId(1)]);
}

#[test]
fn lines_are_read_by_number() {
    let (_dir, artifacts) = store();
    let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    let id = artifacts
        .store(ArtifactKind::Log, format!("{text}last").as_bytes())
        .unwrap();
    let mut artifact = artifacts.open(id).unwrap();
    let cases = [
        (1, 2, "line 1\nline 2\n"),
        (1024, 1026, "line 1024\nline 1025\nline 1026\n"),
        (4999, 5000, "line 4999\nline 5000\n"),
        (5000, 9000, "line 5000\nlast"),
        (5001, 5001, "last"),
        (5002, 6000, ""),
        (0, 1, "line 1\n"),
        (3, 2, ""),
    ];
    for (first, last, text) in cases {
        assert_eq!(
            read_lines(&mut artifact, first..=last, 10_000),
            text,
            "{first}-{last}"
        );
    }
    assert_eq!(artifact.lines().unwrap(), 5001);
    // Backwards, with an index.
    assert_eq!(read_lines(&mut artifact, 2050..=2050, 100), "line 2050\n");
    assert_eq!(read_lines(&mut artifact, 1..=100, 10), "line 1\nlin");
}

#[test]
fn every_line_of_every_text_is_found() {
    let (_dir, artifacts) = store();
    for text in ["", "\n", "a", "a\n", "\n\na", "a\n\n", "\u{20ac}\n\u{20ac}"] {
        let id = artifacts.store(ArtifactKind::Log, text.as_bytes()).unwrap();
        let mut artifact = artifacts.open(id).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (at, line) in (1_u64..).zip(&lines) {
            assert_eq!(&read_lines(&mut artifact, at..=at, 100), line);
        }
        assert_eq!(artifact.lines().unwrap(), lines.len() as u64, "{text:?}");
    }
}

#[test]
fn line_over_the_limit_is_truncated_at_a_character() {
    let (_dir, artifacts) = store();
    let id = artifacts
        .store(ArtifactKind::Log, "€".repeat(200_000).as_bytes())
        .unwrap();
    let mut artifact = artifacts.open(id).unwrap();
    assert_eq!(read_lines(&mut artifact, 1..=1, 100), "€".repeat(33));
    assert_eq!(artifact.read_bytes(1, 10).unwrap(), "€€".as_bytes());
    assert_eq!(artifact.read_raw(1, 4).unwrap(), [0x82, 0xac, 0xe2, 0x82]);
}

#[test]
fn stored_lines_render_clean_text() {
    let (_dir, artifacts) = store();
    let id = artifacts
        .store(ArtifactKind::Log, b"\x1b[31m10%\r20%\x1b[0m\n\xff\n")
        .unwrap();
    let text = read_lines(&mut artifacts.open(id).unwrap(), 1..=2, 100);
    assert_eq!(clean::plain(&text), "20%\n\u{fffd}\n");
}

#[test]
fn search_finds_lines() {
    let (_dir, artifacts) = store();
    let text: String = (1..=3000)
        .map(|n| {
            format!(
                "{} \x1b[3{}mitem\x1b[0m {n}\n",
                if n % 1000 == 0 { "hit" } else { "no" },
                n % 8
            )
        })
        .collect();
    let id = artifacts.store(ArtifactKind::Log, text.as_bytes()).unwrap();
    let artifact = artifacts.open(id).unwrap();
    let search = SearchOptions {
        context: 1,
        max_hits: 2,
        ..SearchOptions::default()
    };
    let results = artifact
        .search(&Pattern::Plain("hit ".to_owned()), &search)
        .unwrap();
    assert_eq!(
        (results.total, results.lines_searched, results.hits.len()),
        (3, 3000, 2)
    );
    assert_eq!(results.hits[1].line, 2000);
    assert_eq!(results.hits[1].text, "hit item 2000");
    assert_eq!(results.hits[1].before, ["no item 1999"]);
    assert_eq!(results.hits[1].after, ["no item 2001"]);
    let results = artifact
        .search(
            &Pattern::Regex("^hit.* [13]000$".to_owned()),
            &SearchOptions::default(),
        )
        .unwrap();
    let lines: Vec<u64> = results.hits.iter().map(|hit| hit.line).collect();
    assert_eq!(lines, [1000, 3000]);
    let results = artifact
        .search(
            &Pattern::Regex("hit ".to_owned()),
            &SearchOptions::default(),
        )
        .unwrap();
    assert_eq!(results.total, 3);
    let bad = artifact.search(&Pattern::Regex("(".to_owned()), &search);
    assert!(matches!(bad, Err(ArtifactError::BadPattern { .. })));
}

#[test]
fn context_stops_at_the_ends() {
    let (_dir, artifacts) = store();
    let id = artifacts.store(ArtifactKind::Log, b"a\na\nb").unwrap();
    let search = SearchOptions {
        context: 5,
        ..SearchOptions::default()
    };
    let results = artifacts
        .open(id)
        .unwrap()
        .search(&Pattern::Plain("a".to_owned()), &search)
        .unwrap();
    assert_eq!(results.hits[0].after, ["a", "b"]);
    assert_eq!(results.hits[1].before, ["a"]);
}

/// The same directory for two projects.
fn two_projects(artifacts: &Artifacts) -> (Artifacts, Artifacts) {
    // Separate handles, as in two processes.
    let project = |byte| {
        Artifacts::new(artifacts.dir(), artifacts.retention())
            .for_project(ProjectTag::new([byte; 4]))
    };
    (project(0xaa), project(0x0b))
}

fn ids(artifacts: &Artifacts) -> Vec<u64> {
    let entries = artifacts.list().unwrap();
    entries.iter().map(|entry| entry.id.0).collect()
}

#[test]
fn each_project_lists_its_artifacts() {
    let (_dir, artifacts) = store();
    let (first, second) = two_projects(&artifacts);
    first.store(ArtifactKind::Log, b"one").unwrap();
    second.store(ArtifactKind::Png, b"two").unwrap();
    first.store(ArtifactKind::Json, b"three").unwrap();
    // An artifact of an older version.
    artifacts.store(ArtifactKind::Log, b"four").unwrap();
    assert_eq!(ids(&first), [1, 3]);
    assert_eq!(ids(&second), [2]);
    assert_eq!(ids(&artifacts), [1, 2, 3, 4]);
    assert_eq!(second.list_all().unwrap(), artifacts.list().unwrap());
    let mut names: Vec<String> = fs::read_dir(artifacts.dir())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            ".last",
            "1-aaaaaaaa.log",
            "2-0b0b0b0b.png",
            "3-aaaaaaaa.json",
            "4.log"
        ]
    );
}

#[test]
fn an_artifact_of_another_project_is_opened_on_explicit_request_only() {
    let (_dir, artifacts) = store();
    let (first, second) = two_projects(&artifacts);
    let id = first.store(ArtifactKind::Png, b"picture").unwrap();
    let old = artifacts.store(ArtifactKind::Log, b"old").unwrap();
    let opened = second.open(id).unwrap();
    assert_eq!(
        (opened.kind, opened.project),
        (ArtifactKind::Png, first.project())
    );
    assert_eq!(opened.read_raw(0, 100).unwrap(), b"picture");
    first.open_in_project(id).unwrap();
    for other in [&second, &artifacts] {
        let error = other.open_in_project(id).unwrap_err();
        assert!(
            matches!(error, ArtifactError::OtherProject { .. }),
            "{error:?}"
        );
        assert_eq!(error.to_string(), "artifact://1 belongs to another project");
    }
    for any in [&first, &second, &artifacts] {
        assert_eq!(any.open_in_project(old).unwrap().project, None);
    }
    match second.open_in_project(ArtifactId(9)) {
        Err(ArtifactError::Missing { available, .. }) => assert!(available.is_empty()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_projects_share_the_counter_and_the_sweep() {
    let retention = Retention {
        bytes: 500,
        ..Retention::default()
    };
    let (_dir, artifacts) = store_with(retention);
    let (first, second) = two_projects(&artifacts);
    for project in [&first, &second, &first] {
        project.store(ArtifactKind::Log, &[b'x'; 300]).unwrap();
    }
    fs::write(artifacts.dir().join(".last"), "nonsense").unwrap();
    let mut writing = second.create(ArtifactKind::Log).unwrap();
    assert_eq!(writing.id(), ArtifactId(4));
    writing.write(&[b'x'; 300]).unwrap();
    writing.flush().unwrap();
    let later = SystemTime::now() + Duration::from_hours(1000);
    let removed = first.sweep_at(later).unwrap().removed;
    assert_eq!(removed, [ArtifactId(1), ArtifactId(2), ArtifactId(3)]);
    assert_eq!(ids(&artifacts), [4], "the artifact is being written");
}
