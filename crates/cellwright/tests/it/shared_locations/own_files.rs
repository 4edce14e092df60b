//! Pipes and links in place of the files in the own directory: no command waits for them or follows them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::host::TestHost;

fn make_pipe(path: &Path) {
    fs::remove_file(path).ok();
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn pipes_in_place_of_files_of_the_host_are_replaced_or_reported() {
    let test_host = TestHost::new();
    test_host.start();
    test_host.run(&["stop"]).exits(0);
    // These are replaced or ignored.
    for name in ["host.json", "sessions.json", "runs.next", "journal"] {
        make_pipe(&test_host.file(name));
    }
    test_host.run(&["status"]).exits(0);
    test_host.context.run(&["kernels", "list"]).exits(0);
    test_host.start();
    let record = fs::symlink_metadata(test_host.file("host.json")).unwrap();
    assert!(record.is_file());
    test_host.context.run(&["kernels", "list"]).exits(0);
    test_host.run(&["stop"]).exits(0);
    // Commands that need these say so.
    for name in ["host.lock", "start.lock", "host.log"] {
        let path = test_host.file(name);
        make_pipe(&path);
        let error = test_host.run(&["start"]).exits(2).stderr;
        let shown = if name == "host.log" { "the log" } else { name };
        assert!(error.contains(shown), "{name}: {error}");
        assert!(error.contains("not a regular file"), "{name}: {error}");
        fs::remove_file(path).unwrap();
    }
    test_host.start();
}

#[test]
fn links_in_place_of_files_of_the_host_are_not_followed() {
    let test_host = TestHost::new();
    test_host.start();
    test_host.run(&["stop"]).exits(0);
    let target = test_host.context.path("target");
    fs::write(&target, "kept").unwrap();
    for name in ["host.lock", "start.lock", "host.log"] {
        let path = test_host.file(name);
        fs::remove_file(&path).ok();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let error = test_host.run(&["start"]).exits(2).stderr;
        assert!(error.contains("a symbolic link"), "{name}: {error}");
        fs::remove_file(path).unwrap();
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
}
