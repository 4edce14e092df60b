//! Saving a notebook: mode, owner and links are kept, and failures change nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

const EDIT: [&str; 5] = ["notebook", "edit", "a.ipynb", "2", "--source"];

fn edit(context: &Context, source: &str) -> crate::context::CommandOutput {
    let mut arguments = EDIT.to_vec();
    arguments.push(source);
    context.run(&arguments)
}

#[test]
fn mode_owner_and_links_are_kept() {
    let context = Context::with_notebook();
    let path = context.path("a.ipynb");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    let before = fs::metadata(&path).unwrap();
    fs::create_dir(context.path("elsewhere")).unwrap();
    fs::rename(&path, context.path("elsewhere/real.ipynb")).unwrap();
    symlink("elsewhere/real.ipynb", &path).unwrap();
    edit(&context, "x").exits(0);
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    let after = fs::metadata(&path).unwrap();
    assert_eq!(after.permissions().mode() & 0o7777, 0o664);
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert!(context.content("elsewhere/real.ipynb").contains("\"x\""));
}

#[test]
fn a_new_file_has_the_default_mode() {
    let context = Context::new();
    context
        .run_with_input(&["write", "new.ipynb", "--create"], "# %% [code]\n")
        .exits(0);
    context.file("other", "");
    let mode = |name: &str| {
        fs::metadata(context.path(name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("new.ipynb"), mode("other"));
}

#[test]
fn a_file_is_created_at_the_target_of_a_dangling_link() {
    let context = Context::new();
    symlink("target.ipynb", context.path("link.ipynb")).unwrap();
    context.run(&["read", "link.ipynb"]).exits(2);
    context
        .run_with_input(&["write", "link.ipynb", "--create"], "# %% [code]\n")
        .exits(0);
    assert!(
        fs::symlink_metadata(context.path("link.ipynb"))
            .unwrap()
            .is_symlink()
    );
    assert!(context.path("target.ipynb").is_file());
}

/// Runs the binary without privileges. Root may write everywhere, so root changes to user 65534 first.
fn run_unprivileged(context: &Context, arguments: &[&str]) -> std::process::Output {
    let binary = context.path("cellwright");
    fs::copy(env!("CARGO_BIN_EXE_cellwright"), &binary).unwrap();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    command
        .args(arguments)
        .current_dir(context.dir())
        .output()
        .unwrap()
}

#[test]
fn a_save_without_permission_changes_nothing() {
    let context = Context::with_notebook();
    let dir = context.dir().to_owned();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&context.path("a.ipynb"), 0o666);
    mode(&dir, 0o755);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        fs::copy(env!("CARGO_BIN_EXE_cellwright"), context.path("cellwright")).unwrap();
        mode(&dir, 0o555);
    }
    let mut arguments = EDIT.to_vec();
    arguments.push("x");
    let read_only_dir = run_unprivileged(&context, &arguments);
    let text = String::from_utf8_lossy(&read_only_dir.stderr).into_owned();
    assert_eq!(read_only_dir.status.code(), Some(2), "{text}");
    assert!(
        text.contains("Could not create a temporary file in"),
        "{text}"
    );
    assert!(text.contains("nothing was written"), "{text}");
    mode(&dir, 0o777);
    mode(&context.path("a.ipynb"), 0o444);
    let read_only_file = run_unprivileged(&context, &arguments);
    let text = String::from_utf8_lossy(&read_only_file.stderr).into_owned();
    assert_eq!(read_only_file.status.code(), Some(2), "{text}");
    assert!(text.contains("Could not write to"), "{text}");
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn a_full_disk_leaves_the_original() {
    let context = Context::new();
    let Some(mounted) = context.small_disk("64k") else {
        return;
    };
    let disk = mounted.path();
    context.file("disk/a.ipynb", THREE_CELLS);
    context.file("disk/filler", vec![0; 40 * 1024]);
    let long = "x".repeat(40 * 1024);
    let arguments = ["notebook", "edit", "disk/a.ipynb", "2", "--source", &long];
    let result = context.run(&arguments);
    let content = context.content("disk/a.ipynb");
    let names = fs::read_dir(disk).unwrap().count();
    drop(mounted);
    assert_eq!(content, THREE_CELLS);
    assert_eq!(names, 2, "a temporary file was not removed");
    assert_snapshot!(result.exits(2).output_masked());
}

#[test]
fn a_report_that_cannot_be_printed_is_an_error_that_states_the_change() {
    let context = Context::with_notebook();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = context
        .command(&["notebook", "insert", "a.ipynb", "--source", "x"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("The notebook was written"), "{text}");
    assert!(text.contains(&context.revision("a.ipynb")), "{text}");
}

#[test]
fn a_chain_of_links_is_followed_to_its_end() {
    let context = Context::new();
    symlink("l2.ipynb", context.path("l1.ipynb")).unwrap();
    symlink("end.ipynb", context.path("l2.ipynb")).unwrap();
    context
        .run_with_input(&["write", "l1.ipynb", "--create"], "# %% [code]\n")
        .exits(0);
    assert!(context.path("end.ipynb").is_file());
    symlink("loop.ipynb", context.path("loop.ipynb")).unwrap();
    context
        .run_with_input(&["write", "loop.ipynb", "--create"], "# %% [code]\n")
        .exits(2);
}

#[test]
fn a_file_too_large_for_memory_is_refused() {
    let context = Context::new();
    let path = context.path("sparse.ipynb");
    fs::File::create(&path).unwrap().set_len(5 << 40).unwrap();
    let before = fs::metadata(&path).unwrap();
    for arguments in [
        &["read", "sparse.ipynb:raw"][..],
        &["notebook", "upgrade", "sparse.ipynb"],
        &["notebook", "clear", "sparse.ipynb"],
    ] {
        let stderr = context.run(arguments).exits(2).stderr;
        let message = "Notebook too large: sparse.ipynb\n  caused by: files of 4 GiB and more are not supported";
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.ino(), after.len()), (before.ino(), before.len()));
        assert_eq!(
            (after.mtime(), after.mtime_nsec(), after.blocks()),
            (before.mtime(), before.mtime_nsec(), before.blocks())
        );
        assert_eq!(fs::read_dir(context.dir()).unwrap().count(), 1);
    }
}
