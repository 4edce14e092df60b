//! The folder of artifacts.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, SystemTime};

use cellwright_output::{
    ArtifactError, ArtifactId, Artifacts, Kind, Pattern, Retention, Search, Spill,
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
    let id = artifacts.store(Kind::Png, b"png").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(artifacts.dir()), 0o700);
    let artifact = artifacts.open(id).unwrap();
    assert_eq!(mode(artifact.path()), 0o600);
    assert_eq!(mode(&artifacts.dir().join(".last")), 0o600);
    assert!(artifact.path().ends_with("1.png"));
}

#[test]
fn several_users_never_share_a_number() {
    let (_dir, artifacts) = store();
    let ids: Vec<ArtifactId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                // Each as if it were a process of its own.
                let artifacts = Artifacts::new(artifacts.dir(), Retention::default());
                let kind = if number % 2 == 0 {
                    Kind::Log
                } else {
                    Kind::Png
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
fn numbers_are_not_given_out_again() {
    let (_dir, artifacts) = store();
    for _ in 0..12 {
        artifacts.store(Kind::Log, b"x").unwrap();
    }
    let later = SystemTime::now() + Duration::from_hours(1000);
    assert_eq!(artifacts.sweep_at(later).unwrap().removed.len(), 12);
    let again = Artifacts::new(artifacts.dir(), Retention::default());
    assert_eq!(again.store(Kind::Log, b"x").unwrap(), ArtifactId(13));
    // Not even where someone put a file, or when the counter was spoilt.
    fs::write(artifacts.dir().join("14.log"), "mine").unwrap();
    assert_eq!(again.store(Kind::Log, b"x").unwrap(), ArtifactId(15));
    let theirs = fs::read(artifacts.dir().join("14.log")).unwrap();
    assert_eq!(theirs, b"mine");
    fs::write(artifacts.dir().join(".last"), "nonsense, and long").unwrap();
    assert_eq!(again.store(Kind::Log, b"x").unwrap(), ArtifactId(16));
    again.sweep_at(later).unwrap();
    assert_eq!(again.store(Kind::Log, b"x").unwrap(), ArtifactId(17));
}

#[test]
fn a_missing_artifact_names_those_there_are() {
    let (_dir, artifacts) = store();
    assert!(artifacts.list().unwrap().is_empty());
    artifacts.store(Kind::Log, b"x").unwrap();
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
fn the_oldest_go_first_but_never_what_is_being_written() {
    let retention = Retention {
        bytes: 1000,
        ..Retention::default()
    };
    let (_dir, artifacts) = store_with(retention);
    let mut writing = artifacts.create(Kind::Log).unwrap();
    writing.write(&[b'w'; 300]).unwrap();
    writing.flush().unwrap();
    for _ in 0..4 {
        artifacts.store(Kind::Log, &[b'x'; 300]).unwrap();
    }
    let swept = artifacts.sweep().unwrap();
    assert_eq!(swept.removed, [ArtifactId(2), ArtifactId(3)]);
    assert_eq!((swept.freed, swept.left), (600, 900));
    drop(writing);
    artifacts.store(Kind::Log, &[b'x'; 300]).unwrap();
    assert_eq!(artifacts.sweep().unwrap().removed, [ArtifactId(1)]);
}

#[test]
fn what_is_old_goes() {
    let (_dir, artifacts) = store();
    artifacts.store(Kind::Log, b"x").unwrap();
    assert!(artifacts.sweep().unwrap().removed.is_empty());
    let later = SystemTime::now() + Duration::from_hours(7 * 24 + 1);
    assert_eq!(artifacts.sweep_at(later).unwrap().removed, [ArtifactId(1)]);
}

#[test]
fn a_spill_keeps_bytes_exactly() {
    let (_dir, artifacts) = store();
    let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(200_000).collect();
    let mut spill = Spill::new(Some(artifacts.clone()), Kind::Log, 1000);
    for chunk in bytes.chunks(333) {
        spill.push(chunk);
    }
    assert_eq!(spill.id(), Some(ArtifactId(1)));
    let spilled = spill.finish();
    assert_eq!((spilled.kept, spilled.total), (200_000, 200_000));
    assert!(spilled.failure.is_none());
    let kept = fs::read(artifacts.open(ArtifactId(1)).unwrap().path()).unwrap();
    assert!(kept == bytes);
}

#[test]
fn a_spill_within_its_limit_is_no_file() {
    let (_dir, artifacts) = store();
    let mut spill = Spill::new(Some(artifacts.clone()), Kind::Log, 10);
    spill.push(b"0123456789");
    assert_eq!(spill.id(), None);
    assert!(!artifacts.dir().exists());
    spill.push(b"a");
    assert_eq!(spill.finish().kept, 11);
}

#[test]
fn lines_are_read_without_the_file() {
    let (_dir, artifacts) = store();
    let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    let id = artifacts
        .store(Kind::Log, format!("{text}last").as_bytes())
        .unwrap();
    let mut artifact = artifacts.open(id).unwrap();
    let cases = [
        (1, 2, "line 1\nline 2\n", false),
        (1024, 1026, "line 1024\nline 1025\nline 1026\n", false),
        (4999, 5000, "line 4999\nline 5000\n", false),
        (5000, 9000, "line 5000\nlast", true),
        (5001, 5001, "last", true),
        (5002, 6000, "", true),
        (0, 1, "line 1\n", false),
        (3, 2, "", false),
    ];
    for (first, last, text, at_end) in cases {
        let passage = artifact.read_lines(first..=last, 10_000).unwrap();
        assert_eq!(passage.raw_text(), text, "{first}-{last}");
        assert_eq!(
            (passage.at_end, passage.cut),
            (at_end, false),
            "{first}-{last}"
        );
        assert_eq!(passage.lines, text.lines().count() as u64);
    }
    assert_eq!(artifact.lines().unwrap(), 5001);
    // Backwards, when the index is there.
    let passage = artifact.read_lines(2050..=2050, 100).unwrap();
    assert_eq!(passage.raw_text(), "line 2050\n");
    let cut = artifact.read_lines(1..=100, 10).unwrap();
    assert_eq!(
        (cut.raw_text().as_str(), cut.cut, cut.lines),
        ("line 1\nlin", true, 2)
    );
}

#[test]
fn every_line_of_every_text_is_found() {
    let (_dir, artifacts) = store();
    for text in ["", "\n", "a", "a\n", "\n\na", "a\n\n", "\u{20ac}\n\u{20ac}"] {
        let id = artifacts.store(Kind::Log, text.as_bytes()).unwrap();
        let mut artifact = artifacts.open(id).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (at, line) in (1_u64..).zip(&lines) {
            assert_eq!(&artifact.read_lines(at..=at, 100).unwrap().raw_text(), line);
        }
        assert_eq!(artifact.lines().unwrap(), lines.len() as u64, "{text:?}");
    }
}

#[test]
fn a_line_longer_than_the_limit_is_cut_at_a_character() {
    let (_dir, artifacts) = store();
    let id = artifacts
        .store(Kind::Log, "€".repeat(200_000).as_bytes())
        .unwrap();
    let mut artifact = artifacts.open(id).unwrap();
    let passage = artifact.read_lines(1..=1, 100).unwrap();
    assert_eq!(passage.raw_text(), "€".repeat(33));
    assert!(passage.cut);
    assert_eq!(artifact.read_bytes(1, 10).unwrap(), "€€".as_bytes());
    assert_eq!(artifact.read_raw(1, 4).unwrap(), [0x82, 0xac, 0xe2, 0x82]);
}

#[test]
fn passages_can_be_shown() {
    let (_dir, artifacts) = store();
    let id = artifacts
        .store(Kind::Log, b"\x1b[31m10%\r20%\x1b[0m\n\xff\n")
        .unwrap();
    let passage = artifacts.open(id).unwrap().read_lines(1..=2, 100).unwrap();
    assert_eq!(passage.text(), "20%\n\u{fffd}\n");
}

#[test]
fn lines_are_found() {
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
    let id = artifacts.store(Kind::Log, text.as_bytes()).unwrap();
    let artifact = artifacts.open(id).unwrap();
    let search = Search {
        context: 1,
        most_hits: 2,
        ..Search::default()
    };
    let found = artifact
        .search(&Pattern::Plain("hit ".to_owned()), &search)
        .unwrap();
    assert_eq!((found.total, found.lines, found.hits.len()), (3, 3000, 2));
    assert_eq!(found.hits[1].line, 2000);
    assert_eq!(found.hits[1].text, "hit item 2000");
    assert_eq!(found.hits[1].before, ["no item 1999"]);
    assert_eq!(found.hits[1].after, ["no item 2001"]);
    let found = artifact
        .search(
            &Pattern::Regex("^hit.* [13]000$".to_owned()),
            &Search::default(),
        )
        .unwrap();
    let lines: Vec<u64> = found.hits.iter().map(|hit| hit.line).collect();
    assert_eq!(lines, [1000, 3000]);
    let found = artifact
        .search(&Pattern::Regex("hit ".to_owned()), &Search::default())
        .unwrap();
    assert_eq!(found.total, 3);
    let bad = artifact.search(&Pattern::Regex("(".to_owned()), &search);
    assert!(matches!(bad, Err(ArtifactError::BadPattern { .. })));
}

#[test]
fn context_stops_at_the_ends() {
    let (_dir, artifacts) = store();
    let id = artifacts.store(Kind::Log, b"a\na\nb").unwrap();
    let search = Search {
        context: 5,
        ..Search::default()
    };
    let found = artifacts
        .open(id)
        .unwrap()
        .search(&Pattern::Plain("a".to_owned()), &search)
        .unwrap();
    assert_eq!(found.hits[0].after, ["a", "b"]);
    assert_eq!(found.hits[1].before, ["a"]);
}
