//! Ways in, and the ways out that are none.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// A root with a notebook, and beside it what nobody may reach.
struct Scene {
    _folder: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    roots: Roots,
}

fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (root, outside) = (base.join("root"), base.join("root2"));
    for made in [&root, &outside, &root.join("sub"), &outside.join("sub")] {
        fs::create_dir(made).unwrap();
    }
    for (place, text) in [
        (root.join("a.ipynb"), "inside"),
        (root.join("sub/b.ipynb"), "inside"),
        (outside.join("a.ipynb"), "secret"),
        (outside.join("sub/b.ipynb"), "secret"),
    ] {
        fs::write(place, text).unwrap();
    }
    let roots = Roots::new(std::slice::from_ref(&root));
    Scene {
        _folder: folder,
        root,
        outside,
        roots,
    }
}

#[test]
fn what_is_inside_is_found_by_any_name() {
    let scene = scene();
    let root = scene.root.display();
    symlink("sub/b.ipynb", scene.root.join("link.ipynb")).unwrap();
    symlink("sub", scene.root.join("alias")).unwrap();
    // Absolute links, and a link to the root itself, lead back in.
    symlink(
        scene.root.join("a.ipynb"),
        scene.root.join("absolute.ipynb"),
    )
    .unwrap();
    symlink(scene.root.join("sub"), scene.root.join("door-in")).unwrap();
    let by_link = scene.outside.join("way-in");
    symlink(&scene.root, &by_link).unwrap();
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
        let place = scene.roots.resolve_file(given).unwrap();
        assert_eq!(
            fs::read_to_string(place.path()).unwrap(),
            "inside",
            "{given}"
        );
        assert!(place.display_path.starts_with(&scene.root), "{given}");
        assert!(place.display_path.is_file(), "{given}");
    }
    let new = scene.roots.resolve_file("sub/new.ipynb").unwrap();
    fs::write(new.path(), "made").unwrap();
    assert_eq!(
        fs::read_to_string(scene.root.join("sub/new.ipynb")).unwrap(),
        "made"
    );
    assert_eq!(scene.roots.resolve_dir(".").unwrap(), scene.root);
    assert_eq!(
        scene.roots.resolve_dir("alias").unwrap(),
        scene.root.join("sub")
    );
}

#[test]
fn thirty_ways_out_are_refused() {
    let scene = scene();
    let (root, outside) = (scene.root.display(), scene.outside.display());
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
        symlink(target, scene.root.join(name)).unwrap();
    }
    let ways = [
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
    assert!(ways.len() >= 30);
    for way in ways {
        let found = scene.roots.resolve_file(way);
        let opened = found.map(|place| (fs::read_to_string(place.path()), place.display_path));
        assert!(opened.is_err(), "{way}: {opened:?}");
        // A folder that is meant is no way out, either.
        if let Ok(folder) = scene.roots.resolve_dir(way) {
            assert!(folder.starts_with(&scene.root), "{way}: {folder:?}");
        }
    }
    let nowhere = Roots::new(&[PathBuf::from("/")]);
    assert!(nowhere.resolve_file("etc/passwd").is_err());
    assert!(nowhere.base().is_err());
}

#[test]
fn a_folder_that_turns_into_a_link_leads_nowhere_else() {
    let scene = scene();
    let door = scene.root.join("sub");
    let (spare, link) = (scene.root.join("spare"), scene.root.join("link"));
    symlink(scene.outside.join("sub"), &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Now it is a folder, now it leads out.
                fs::rename(&door, &spare).unwrap();
                fs::rename(&link, &door).unwrap();
                fs::rename(&door, &link).unwrap();
                fs::rename(&spare, &door).unwrap();
            }
        });
        let mut found = 0;
        for _ in 0..20_000 {
            if let Ok(place) = scene.roots.resolve_file("sub/b.ipynb")
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
fn addresses_of_roots_are_folders() {
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
fn a_file_that_turns_into_a_link_is_not_followed() {
    use cellwright_notebook::file;

    let scene = scene();
    let notebook = |text: &str| {
        format!(
            "{{\"cells\": [{{\"cell_type\": \"raw\", \"id\": \"a\", \"metadata\": {{}}, \"source\": \"{text}\"}}], \
             \"metadata\": {{}}, \"nbformat\": 4, \"nbformat_minor\": 5}}"
        )
    };
    fs::write(scene.root.join("a.ipynb"), notebook("inside")).unwrap();
    fs::write(scene.outside.join("a.ipynb"), notebook("secret")).unwrap();
    let place = scene.roots.resolve_file("a.ipynb").unwrap();
    // Between the look and the reading somebody is quick.
    fs::remove_file(scene.root.join("a.ipynb")).unwrap();
    symlink(scene.outside.join("a.ipynb"), scene.root.join("a.ipynb")).unwrap();
    file::load(place.path()).unwrap_err();
    file::load_raw(place.path()).unwrap_err();
    file::read_view(place.path(), None, None).unwrap_err();
    let draft = |cells: &dyn cellwright_notebook::Cells| {
        cellwright_notebook::edit::replace_all(cells, "# %% [raw]\ntaken")
    };
    let request = file::ChangeRequest::default();
    file::change(place.path(), request, &draft).unwrap_err();
    let kept = fs::read_to_string(scene.outside.join("a.ipynb")).unwrap();
    assert_eq!(kept, notebook("secret"));
}
