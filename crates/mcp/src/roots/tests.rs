//! Paths into the roots, and attempts to leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A root with notebooks, next to a directory that must stay out of reach.
struct RootsFixture {
    _dir: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    roots: Roots,
}

fn fixture() -> RootsFixture {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, outside) = (base.join("root"), base.join("root2"));
    for dir in [&root, &outside, &root.join("sub"), &outside.join("sub")] {
        fs::create_dir(dir).unwrap();
    }
    for (path, text) in [
        (root.join("a.ipynb"), "inside"),
        (root.join("sub/b.ipynb"), "inside"),
        (outside.join("a.ipynb"), "secret"),
        (outside.join("sub/b.ipynb"), "secret"),
    ] {
        fs::write(path, text).unwrap();
    }
    let roots = Roots::new(std::slice::from_ref(&root));
    RootsFixture {
        _dir: dir,
        root,
        outside,
        roots,
    }
}

#[test]
fn a_file_inside_is_found_by_any_path() {
    let fixture = fixture();
    let root = fixture.root.display();
    symlink("sub/b.ipynb", fixture.root.join("link.ipynb")).unwrap();
    symlink("sub", fixture.root.join("alias")).unwrap();
    // Absolute links into the root, and a link to the root itself, are accepted.
    symlink(
        fixture.root.join("a.ipynb"),
        fixture.root.join("absolute.ipynb"),
    )
    .unwrap();
    symlink(fixture.root.join("sub"), fixture.root.join("door-in")).unwrap();
    let by_link = fixture.outside.join("way-in");
    symlink(&fixture.root, &by_link).unwrap();
    let through = Roots::new(std::slice::from_ref(&by_link));
    let by_link = by_link.join("a.ipynb").display().to_string();
    let place = through.resolve_file(&by_link).unwrap();
    assert_eq!(fs::read_to_string(place.path()).unwrap(), "inside");
    for given in [
        "a.ipynb",
        "./a.ipynb",
        "sub/./b.ipynb",
        "sub//b.ipynb",
        "link.ipynb",
        "alias/b.ipynb",
        "absolute.ipynb",
        "door-in/b.ipynb",
        &format!("{root}/a.ipynb"),
        &format!("{root}/sub/b.ipynb"),
    ] {
        let place = fixture.roots.resolve_file(given).unwrap();
        assert_eq!(
            fs::read_to_string(place.path()).unwrap(),
            "inside",
            "{given}"
        );
        assert!(place.display_path().starts_with(&fixture.root), "{given}");
        assert!(place.display_path().is_file(), "{given}");
    }
    let new = fixture.roots.resolve_file("sub/new.ipynb").unwrap();
    fs::write(new.path(), "made").unwrap();
    assert_eq!(
        fs::read_to_string(fixture.root.join("sub/new.ipynb")).unwrap(),
        "made"
    );
    assert_eq!(fixture.roots.resolve_dir(".").unwrap().path(), fixture.root);
    assert_eq!(
        fixture.roots.resolve_dir("alias").unwrap().path(),
        fixture.root.join("sub")
    );
}

#[test]
fn paths_out_of_the_roots_are_rejected() {
    let fixture = fixture();
    let (root, outside) = (fixture.root.display(), fixture.outside.display());
    let links = [
        ("out.ipynb", format!("{outside}/a.ipynb")),
        ("up.ipynb", "../root2/a.ipynb".to_owned()),
        ("chain.ipynb", "out.ipynb".to_owned()),
        ("door", format!("{outside}")),
        ("updoor", "../root2".to_owned()),
        ("self", "/proc/self/roo\u{74}".to_owned()),
        ("cwd", "/proc/self/cwd".to_owned()),
        ("top", "/".to_owned()),
        ("loop", "loop".to_owned()),
        ("dangling.ipynb", format!("{outside}/new.ipynb")),
    ];
    for (name, target) in &links {
        symlink(target, fixture.root.join(name)).unwrap();
    }
    let paths = [
        "../root2/a.ipynb",
        "sub/../../root2/a.ipynb",
        "./../root2/a.ipynb",
        "sub/../a.ipynb/../../root2/a.ipynb",
        "..",
        "sub/..",
        "out.ipynb",
        "up.ipynb",
        "chain.ipynb",
        "door/a.ipynb",
        "door/sub/b.ipynb",
        "updoor/a.ipynb",
        "self/etc/passwd",
        "cwd/Cargo.toml",
        "top/etc/passwd",
        "loop/a.ipynb",
        "loop",
        "dangling.ipynb",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/roo\u{74}/etc/passwd",
        "/proc/self/fd/0",
        "/dev/stdin",
        "~/a.ipynb",
        "~root/a.ipynb",
        "",
        "a.ipynb\0.png",
        &format!("{outside}/a.ipynb"),
        &format!("{root}2/a.ipynb"),
        &format!("{root}/../root2/a.ipynb"),
        &format!("{root}/door/a.ipynb"),
        &format!("{root}/out.ipynb"),
    ];
    assert!(paths.len() >= 30);
    for path in paths {
        let found = fixture.roots.resolve_file(path);
        let opened = found.map(|place| {
            (
                fs::read_to_string(place.path()),
                place.display_path().to_owned(),
            )
        });
        assert!(opened.is_err(), "{path}: {opened:?}");
        // The same path as a directory must not lead out either.
        if let Ok(dir) = fixture.roots.resolve_dir(path) {
            assert!(dir.path().starts_with(&fixture.root), "{path}: {dir:?}");
        }
    }
    let nowhere = Roots::new(&[PathBuf::from("/")]);
    assert!(nowhere.resolve_file("etc/passwd").is_err());
    assert!(nowhere.base().is_err());
}

#[test]
fn a_directory_that_becomes_a_link_does_not_lead_out() {
    let fixture = fixture();
    let dir = fixture.root.join("sub");
    let (spare, link) = (fixture.root.join("spare"), fixture.root.join("link"));
    symlink(fixture.outside.join("sub"), &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Alternates between a directory and a link that leads out.
                fs::rename(&dir, &spare).unwrap();
                fs::rename(&link, &dir).unwrap();
                fs::rename(&dir, &link).unwrap();
                fs::rename(&spare, &dir).unwrap();
            }
        });
        let mut found = 0;
        for _ in 0..20_000 {
            if let Ok(place) = fixture.roots.resolve_file("sub/b.ipynb")
                && let Ok(text) = fs::read_to_string(place.path())
            {
                assert_eq!(text, "inside");
                found += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(found > 0);
    });
}

#[test]
fn a_directory_that_was_resolved_stays_the_same() {
    let fixture = fixture();
    let dir = fixture.roots.resolve_dir("sub").unwrap();
    let by_session = fixture.root.join("sub");
    let session = fixture.roots.session_directory(&by_session).unwrap();
    fs::rename(fixture.root.join("sub"), fixture.root.join("moved")).unwrap();
    symlink(fixture.outside.join("sub"), fixture.root.join("sub")).unwrap();
    fs::write(fixture.root.join("moved/new"), "").unwrap();
    for dir in [dir, session] {
        assert!(dir.open_path().join("new").exists());
        assert_eq!(dir.path(), fixture.root.join("sub"));
    }
    // A session cannot start outside.
    for dir in [&by_session, &fixture.outside] {
        fixture.roots.session_directory(dir).unwrap_err();
    }
}

#[test]
fn a_root_is_held_and_opened_again_after_it_was_deleted() {
    let fixture = fixture();
    let base = fixture.root.parent().unwrap();
    fs::rename(&fixture.root, base.join("moved")).unwrap();
    symlink(&fixture.outside, &fixture.root).unwrap();
    let place = fixture.roots.resolve_file("a.ipynb").unwrap();
    assert_eq!(fs::read_to_string(place.path()).unwrap(), "inside");
    assert_eq!(place.display_path(), base.join("moved/a.ipynb"));
    fs::remove_dir_all(base.join("moved")).unwrap();
    fixture.roots.resolve_file("a.ipynb").unwrap_err();
    fs::remove_file(&fixture.root).unwrap();
    fs::create_dir(&fixture.root).unwrap();
    fs::write(fixture.root.join("a.ipynb"), "again").unwrap();
    let place = fixture.roots.resolve_file("a.ipynb").unwrap();
    assert_eq!(fs::read_to_string(place.path()).unwrap(), "again");
}

#[test]
fn file_uris_become_paths() {
    let cases = [
        ("file:///house/a%20b", Some("/house/a b")),
        ("file://localhost/x", Some("/x")),
        ("file://server/x", None),
        ("https://example.org", None),
        ("file:///%zz", None),
    ];
    for (uri, path) in cases {
        assert_eq!(path_from_file_uri(uri), path.map(PathBuf::from), "{uri}");
    }
    let path = Path::new("/hou se/ä.ipynb");
    assert_eq!(path_from_file_uri(&file_uri(path)).as_deref(), Some(path));
}

#[test]
fn a_file_that_becomes_a_link_is_not_followed() {
    use cellwright_notebook::file;

    let fixture = fixture();
    let notebook = |text: &str| {
        format!(
            "{{\"cells\": [{{\"cell_type\": \"raw\", \"id\": \"a\", \"metadata\": {{}}, \"source\": \"{text}\"}}], \
             \"metadata\": {{}}, \"nbformat\": 4, \"nbformat_minor\": 5}}"
        )
    };
    fs::write(fixture.root.join("a.ipynb"), notebook("inside")).unwrap();
    fs::write(fixture.outside.join("a.ipynb"), notebook("secret")).unwrap();
    let place = fixture.roots.resolve_file("a.ipynb").unwrap();
    // The file is replaced by a link between check and use.
    fs::remove_file(fixture.root.join("a.ipynb")).unwrap();
    symlink(
        fixture.outside.join("a.ipynb"),
        fixture.root.join("a.ipynb"),
    )
    .unwrap();
    file::load(place.path()).unwrap_err();
    file::load_raw(place.path()).unwrap_err();
    file::read_view(place.path(), None, None).unwrap_err();
    let draft = |cells: &dyn cellwright_notebook::Cells| {
        cellwright_notebook::edit::replace_all(cells, "# %% [raw]\ntaken")
    };
    let request = file::ChangeRequest::default();
    file::change(place.path(), request, &draft).unwrap_err();
    let kept = fs::read_to_string(fixture.outside.join("a.ipynb")).unwrap();
    assert_eq!(kept, notebook("secret"));
}
