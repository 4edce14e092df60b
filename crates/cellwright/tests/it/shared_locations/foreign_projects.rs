//! Markers, environments, settings and modules that another user puts next to the files of this user do not count.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use super::{SharedDir, set_mode, succeeded};

/// The other user creates a project with an interpreter that records its starts, and settings.
fn plant_project(shared: &SharedDir, marker: &str) {
    succeeded(&shared.attack(&format!(
        "{marker}; mkdir -p .venv/bin .cellwright; echo home=/usr/bin >.venv/pyvenv.cfg; \
         printf '#!/bin/sh\\nid -u >>{runs}; exec %s \"$@\"\\n' \"$(command -v python3)\" >.venv/bin/python3; chmod +x .venv/bin/python3; \
         printf '[eval]\\ntimeout = 1\\n' >.cellwright/config.toml; : >{runs}; chmod 666 {runs}",
        runs = shared.path("runs").display(),
    )));
}

/// The directory of the user in the shared directory.
fn own_dir(shared: &SharedDir) -> std::path::PathBuf {
    let dir = shared.path("work");
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(shared.user), Some(shared.user)).unwrap();
    dir
}

/// A command of the user in its directory, with a state directory.
fn in_own_dir(shared: &SharedDir, arguments: &[&str]) -> Command {
    let mut command = shared.command(arguments);
    command
        .current_dir(shared.path("work"))
        .env("CELLWRIGHT_STATE_DIR", shared.path("work/state"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_project_of_another_user_above_does_not_count() {
    for (number, marker) in [(10, "mkdir .git"), (11, ": >.git")] {
        let Some(shared) = SharedDir::new(number) else {
            return;
        };
        if !shared.has_python() {
            return;
        }
        plant_project(&shared, marker);
        own_dir(&shared);
        let starts = || fs::read_to_string(shared.path("runs")).unwrap();
        let output = in_own_dir(&shared, &["eval", "1 + 1"]).output().unwrap();
        assert_eq!(succeeded(&output).trim(), "2");
        assert_eq!(starts(), "", "{marker}");
        let notice = text(&output.stderr);
        let reason = format!(".git belongs to user {}", shared.other);
        assert!(notice.contains(&reason), "{notice}");
        let timeout = in_own_dir(&shared, &["config", "get", "eval.timeout"]);
        assert_eq!(succeeded(&{ timeout }.output().unwrap()).trim(), "30");
        let trusted = in_own_dir(&shared, &["trust"]).output().unwrap();
        assert_eq!(trusted.status.code(), Some(2), "{}", text(&trusted.stderr));
        assert!(text(&trusted.stderr).contains(&reason));
        // The user can accept the projects in a directory.
        let accepted = in_own_dir(&shared, &["eval", "1 + 1"])
            .env("CELLWRIGHT_PROJECTS_DIRECTORIES", shared.temporary())
            .output()
            .unwrap();
        succeeded(&accepted);
        assert_eq!(starts().lines().count(), 1, "{marker}");
    }
}

#[test]
fn an_environment_of_another_user_in_the_own_directory_does_not_count() {
    let Some(shared) = SharedDir::new(12) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    let work = own_dir(&shared);
    set_mode(&work, 0o1777);
    plant_project(&shared, "cd work");
    let output = in_own_dir(&shared, &["eval", "1 + 1"]).output().unwrap();
    assert_eq!(succeeded(&output).trim(), "2");
    assert_eq!(fs::read_to_string(shared.path("runs")).unwrap(), "");
    let notice = text(&output.stderr);
    let owner = format!("belongs to user {}", shared.other);
    assert!(
        notice.contains("work/.venv") && notice.contains(&owner),
        "{notice}"
    );
    assert!(notice.contains("work/.cellwright"), "{notice}");
    // Root in a directory of another user, such as a mounted checkout, keeps working, without that environment.
    let output = Command::new(shared.context.path("cellwright"))
        .args(["eval", "1 + 1"])
        .current_dir(&work)
        .env_clear()
        .env("PATH", super::SYSTEM_PATH)
        .env("HOME", shared.context.home())
        .output()
        .unwrap();
    assert_eq!(succeeded(&output).trim(), "2");
    assert_eq!(fs::read_to_string(shared.path("runs")).unwrap(), "");
}

#[test]
fn settings_and_modules_in_a_directory_of_another_user_do_not_count() {
    let Some(shared) = SharedDir::new(13) else {
        return;
    };
    if !shared.has_python() {
        return;
    }
    own_dir(&shared);
    succeeded(&shared.attack(
        "mkdir -p conf/cellwright/modules; echo 'planted = 1' >conf/cellwright/modules/a.py; \
         printf '[eval]\\ntimeout = 7\\n' >conf/cellwright/config.toml; chmod -R a+rwX conf",
    ));
    for (name, value) in [
        ("XDG_CONFIG_HOME", shared.path("conf")),
        ("CELLWRIGHT_CONFIG_DIR", shared.path("conf/cellwright")),
    ] {
        let run = |arguments: &[&str]| {
            let mut command = in_own_dir(&shared, arguments);
            command.env(name, &value).output().unwrap()
        };
        let output = run(&["eval", "print('planted' in globals())"]);
        assert_eq!(succeeded(&output).trim(), "False", "{name}");
        let owner = format!("belongs to user {}", shared.other);
        assert!(text(&output.stderr).contains(&owner), "{name}");
        let timeout = run(&["config", "get", "eval.timeout"]);
        assert_eq!(succeeded(&timeout).trim(), "30", "{name}");
    }
}
