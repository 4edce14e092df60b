//! Tests of the walk through a path.

use std::fs;
use std::os::unix::fs::symlink;

use super::super::{open_beneath, real_path};
use super::*;

#[test]
fn both_ways_to_open_a_path_find_the_same() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let root = base.join("root");
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir(base.join("outside")).unwrap();
    for file in ["root/a", "root/sub/b", "outside/a"] {
        fs::write(base.join(file), file).unwrap();
    }
    let links = [
        ("alias", "sub"),
        ("sub/up", "../a"),
        ("sub/deep/top", "../.."),
        ("sub/deep/out", "../../.."),
        ("absolute", root.to_str().unwrap()),
        ("out", "../outside/a"),
        ("door", "../outside"),
        ("loop", "loop"),
        ("dangling", "nothing"),
    ];
    for (name, target) in links {
        symlink(target, root.join(name)).unwrap();
    }
    let fd = OwnedFd::from(fs::File::open(&root).unwrap());
    for path in [
        "",
        ".",
        "a",
        "sub",
        "sub/b",
        "alias/b",
        "sub/up",
        "sub/deep/top/a",
        "sub/deep/out",
        "sub/deep/out/outside/a",
        "absolute/a",
        "out",
        "door/a",
        "door",
        "loop",
        "dangling",
        "a/b",
        "nothing",
        "..",
        "sub/../..",
        "alias/deep/top/alias/up",
    ] {
        for target in [OpenTarget::Directory, OpenTarget::Any] {
            let show = |found: Result<OwnedFd, Errno>| {
                found
                    .map(|fd| real_path(&fd).unwrap())
                    .map_err(|error| match error {
                        Errno::XDEV | Errno::LOOP => "leads out",
                        Errno::NOENT => "missing",
                        Errno::NOTDIR => "not a directory",
                        _ => "other",
                    })
            };
            let path = Path::new(path);
            let by_call = open_beneath(&fd, path, target).map(Option::unwrap);
            let by_component = open_by_component(&fd, path, target);
            assert_eq!(show(by_component), show(by_call), "{}", path.display());
        }
    }
}
