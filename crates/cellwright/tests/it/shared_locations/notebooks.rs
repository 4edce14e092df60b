//! Notebooks that other users can read, or that they own.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{SharedDir, set_mode};

const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [], "source": "open('ran', 'w')"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

impl SharedDir {
    /// A directory that the user owns, with a notebook that all users can read.
    fn home(&self) -> (PathBuf, PathBuf) {
        let home = self.context.path("home");
        fs::create_dir(&home).unwrap();
        let notebook = home.join("a.ipynb");
        fs::write(&notebook, NOTEBOOK).unwrap();
        for path in [&home, &notebook] {
            chown(path, Some(self.user), Some(self.user)).unwrap();
        }
        set_mode(&home, 0o755);
        set_mode(&notebook, 0o644);
        (home, notebook)
    }
}

#[test]
fn a_reader_cannot_block_a_notebook_with_a_lock() {
    let Some(shared) = SharedDir::new(9) else {
        return;
    };
    let (home, notebook) = shared.home();
    let other = shared.other;
    // Holds the lock until its stdin is closed.
    let mut holder = Command::new("setpriv")
        .args([format!("--reuid={other}"), format!("--regid={other}")])
        .args(["--clear-groups", "flock", "-x"])
        .arg(&notebook)
        .args(["sh", "-c", "echo held; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = holder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    assert_eq!(line, "held\n");
    let path = notebook.to_str().unwrap();
    let edited = shared
        .command(&["edit", path, "--old", "'ran'", "--new", "'RAN'"])
        .env("HOME", &home)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&edited.stderr);
    assert!(edited.status.success(), "{error}");
    assert!(fs::read_to_string(&notebook).unwrap().contains("'RAN'"));
    let locks = fs::read_dir(home.join(".cache/cellwright/locks")).unwrap();
    assert_eq!(locks.count(), 0);
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn a_file_of_another_user_in_a_sticky_directory_is_reported_before_cells_run() {
    let Some(shared) = SharedDir::new(10) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    let (home, _) = shared.home();
    let notebook = shared.path("b.ipynb");
    fs::write(
        &notebook,
        NOTEBOOK.replace("'ran'", &format!("'{}/ran'", home.display())),
    )
    .unwrap();
    chown(&notebook, Some(shared.other), Some(shared.other)).unwrap();
    set_mode(&notebook, 0o666);
    let path = notebook.to_str().unwrap();
    for arguments in [
        &["run", path, "-q"][..],
        &["edit", path, "--old", "ran", "--new", "x"],
    ] {
        let output = shared
            .command(arguments)
            .env("HOME", &home)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("belongs to another user"), "{error}");
        assert!(error.contains("nothing was written"), "{error}");
    }
    assert!(!home.join("ran").exists());
    let names = fs::read_dir(shared.temporary()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let temporary: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert_eq!(temporary, [""; 0]);
}
