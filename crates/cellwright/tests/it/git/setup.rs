//! `git setup`: the settings that it writes, checks and removes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use super::Repository;
use crate::context::{Context, THREE_CELLS};

#[test]
fn setup_prints_its_changes_is_idempotent_and_can_be_undone() {
    for before in [
        None,
        Some("*.png binary\n"),
        Some("*.png binary"),
        Some("a text\r\nb text\r\n"),
    ] {
        let repository = Repository::with_notebook(THREE_CELLS);
        repository.git(&["config", "diff.other.textconv", "cat"]);
        repository.git(&["config", "diff.cellwright.cachetextconv", "true"]);
        if let Some(before) = before {
            repository.write(".gitattributes", before);
        }
        let state = || {
            let attributes = fs::read(repository.root.join(".gitattributes")).ok();
            (repository.read(".git/config"), attributes)
        };
        let untouched = state();
        let first = repository.cellwright(&["git", "setup"]).exits(0);
        if before.is_none() {
            assert_snapshot!("git_setup", first.output_masked());
        }
        let written = state();
        assert_ne!(untouched, written);
        let attributes = String::from_utf8(written.1.clone().unwrap()).unwrap();
        assert!(attributes.starts_with(before.unwrap_or_default()));
        let again = repository.cellwright(&["git", "setup"]).exits(0);
        assert_eq!(again.stdout, "");
        assert_eq!(again.stderr, "nothing to do: it is set up already\n");
        assert_eq!(state(), written);

        // `--clean` adds the filter, and `--undo` removes it with the rest.
        let clean = repository.cellwright(&["git", "setup", "--clean"]).exits(0);
        if before.is_none() {
            assert_snapshot!("git_setup_clean", clean.output_masked());
        }
        let cleaned = state();
        repository.cellwright(&["git", "setup"]).exits(0);
        assert_eq!(state(), cleaned);
        let undone = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
        if before.is_none() {
            assert_snapshot!("git_setup_undo", undone.output_masked());
        }
        assert_eq!(state(), untouched);
        let again = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
        assert_eq!(again.stderr, "nothing to remove\n");
        assert_eq!(state(), untouched);
    }
}

#[test]
fn undo_keeps_the_attributes_of_the_repository() {
    let repository = Repository::new();
    let line = "*.ipynb diff=cellwright merge=cellwright filter=cellwright\n";
    repository.write(".gitattributes", line);
    let untouched = repository.read(".git/config");
    repository.cellwright(&["git", "setup", "--check"]).exits(1);
    // The attributes of the repository name the filter, so setup configures it.
    let result = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(
        result.stdout.contains("filter.cellwright.clean"),
        "{}",
        result.stdout
    );
    assert!(
        !result.stdout.contains(".gitattributes"),
        "{}",
        result.stdout
    );
    repository.cellwright(&["git", "setup", "--check"]).exits(0);
    let result = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
    assert!(
        result.stdout.contains("left     .gitattributes"),
        "{}",
        result.stdout
    );
    assert_eq!(repository.read(".gitattributes"), line);
    assert_eq!(repository.read(".git/config"), untouched);
}

#[test]
fn settings_of_other_tools_are_kept_and_reported() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.ipynb diff=jupyter\n");
    let result = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(
        result
            .stderr
            .contains("`diff=jupyter` for *.ipynb is overridden"),
        "{}",
        result.stderr
    );
    repository.git(&["config", "diff.cellwright.textconv", "my own script"]);
    let result = repository.cellwright(&["git", "setup", "--check"]).exits(1);
    assert!(result.stdout.contains("FAIL  diff:"), "{}", result.stdout);
    let result = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
    assert!(
        result
            .stdout
            .contains("left     .git/config     diff.cellwright.textconv   = my own script"),
        "{}",
        result.stdout
    );
    assert_eq!(repository.read(".gitattributes"), "*.ipynb diff=jupyter\n");
    let setting = repository.git(&["config", "diff.cellwright.textconv"]);
    assert_eq!(setting, "my own script\n");
    // `.git/info/attributes` has precedence.
    repository.write(".git/info/attributes", "*.ipynb -merge\n");
    let result = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(result.stderr.contains("`merge=unset`"), "{}", result.stderr);
}

#[test]
fn check_reports_missing_settings() {
    let repository = Repository::new();
    assert_snapshot!(
        "git_check_nothing",
        repository
            .cellwright(&["git", "setup", "--check"])
            .exits(1)
            .output_masked()
    );
    repository.cellwright(&["git", "setup", "--clean"]).exits(0);
    assert_snapshot!(
        "git_check_all",
        repository
            .cellwright(&["git", "setup", "--check"])
            .exits(0)
            .output_masked()
    );
    let report = repository
        .cellwright(&["git", "setup", "--check", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["ok"], true);
    assert_eq!(report["findings"][2]["code"], "clean");
}

#[test]
fn global_setup_applies_to_all_repositories_of_a_user() {
    let repository = Repository::with_notebook(THREE_CELLS);
    let home = repository.context.home().to_owned();
    let result = repository
        .cellwright(&["git", "setup", "--global", "--clean"])
        .exits(0);
    assert!(
        result
            .stdout
            .contains(".gitconfig              diff.cellwright.textconv"),
        "{}",
        result.stdout
    );
    let attributes = fs::read_to_string(home.join(".config/git/attributes")).unwrap();
    assert_eq!(
        attributes,
        "*.ipynb diff=cellwright merge=cellwright filter=cellwright\n"
    );
    assert!(!repository.root.join(".gitattributes").exists());
    repository.cellwright(&["git", "setup", "--check"]).exits(0);
    repository.write("a.ipynb", THREE_CELLS.replace("answer = 42", "answer = 43"));
    assert!(repository.git(&["diff"]).contains("\n+answer = 43\n"));
    repository
        .cellwright(&["git", "setup", "--global", "--undo"])
        .exits(0);
    assert!(!home.join(".config/git/attributes").exists());
    assert_eq!(
        fs::read_to_string(home.join(".gitconfig")).unwrap_or_default(),
        ""
    );
}

#[test]
fn setup_without_git_or_a_repository_is_an_error() {
    let context = Context::new();
    let result = context.run(&["git", "setup"]).exits(2);
    assert!(
        result.stderr.contains("not in a git repository"),
        "{}",
        result.stderr
    );
    assert!(result.stderr.contains("hint: "), "{}", result.stderr);
    let mut command = context.command(&["git", "setup"]);
    let output = command.env("PATH", context.dir()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("Could not run git"), "{message}");
}

#[test]
fn a_program_outside_the_path_is_configured_with_its_absolute_path() {
    let repository = Repository::with_notebook(THREE_CELLS);
    let dir = repository.context.path("50%A%f odd 'place'");
    fs::create_dir(&dir).unwrap();
    let program = dir.join("cell wright");
    let binary = env!("CARGO_BIN_EXE_cellwright");
    if fs::hard_link(binary, &program).is_err() {
        fs::copy(binary, &program).unwrap();
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Another program with that name is on the path.
    let decoy = repository.context.path("decoy");
    fs::create_dir(&decoy).unwrap();
    fs::write(decoy.join("cellwright"), "#!/bin/sh\nexit 9\n").unwrap();
    fs::set_permissions(decoy.join("cellwright"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", decoy.display(), std::env::var("PATH").unwrap());
    let run = |program: &std::path::Path, arguments: &[&str]| {
        repository.run(repository.program(program, arguments).env("PATH", &path))
    };
    run(&program, &["git", "setup", "--clean"]).exits(0);
    let textconv = repository.git(&["config", "diff.cellwright.textconv"]);
    assert!(textconv.contains("50%A%f odd "), "{textconv}");
    run(&program, &["git", "setup", "--check"]).exits(0);

    // Git uses the program for diff, clean and merge.
    repository.write("a.ipynb", THREE_CELLS.replace("answer = 42", "answer = 43"));
    let git = std::path::Path::new("git");
    let diff = run(git, &["diff"]).exits(0);
    assert!(diff.stdout.contains("\n+answer = 43\n"), "{}", diff.stdout);
    run(git, &["commit", "-qam", "two"]).exits(0);
    assert!(
        repository
            .git(&["cat-file", "blob", "HEAD:a.ipynb"])
            .contains("\"outputs\": []")
    );
    run(git, &["checkout", "-qb", "side", "HEAD"]).exits(0);
    repository.write(
        "a.ipynb",
        THREE_CELLS
            .replace("answer = 42", "answer = 43")
            .replace("# A tour", "# One"),
    );
    run(git, &["commit", "-qam", "three"]).exits(0);
    run(git, &["checkout", "-q", "main"]).exits(0);
    repository.write(
        "a.ipynb",
        THREE_CELLS
            .replace("answer = 42", "answer = 43")
            .replace("+ 1.0", "+ 2.0"),
    );
    run(git, &["commit", "-qam", "four"]).exits(0);
    run(git, &["merge", "-q", "side", "-m", "five"]).exits(0);
    let merged = repository.read("a.ipynb");
    assert!(
        merged.contains("# One") && merged.contains("+ 2.0"),
        "{merged}"
    );
}

/// The attributes of a repository come from other people: a link there is not followed, and a pipe does not block.
#[test]
fn attributes_that_are_no_file_are_refused() {
    let repository = Repository::new();
    let outside = repository.context.file("outside", "*.png binary\n");
    let attributes = repository.root.join(".gitattributes");
    let config = repository.read(".git/config");
    let place = |create: &dyn Fn()| {
        fs::remove_file(&attributes).ok();
        create();
    };
    let link = |target: &std::path::Path| std::os::unix::fs::symlink(target, &attributes).unwrap();
    let missing = repository.context.path("missing");
    for (create, reason) in [
        (&(|| link(&outside)) as &dyn Fn(), "it is a symbolic link"),
        (&(|| link(&missing)), "it is a symbolic link"),
        (
            &(|| {
                let made = std::process::Command::new("mkfifo")
                    .arg(&attributes)
                    .status();
                assert!(made.unwrap().success());
            }),
            "it is not a regular file",
        ),
    ] {
        place(create);
        for arguments in [
            &["git", "setup"][..],
            &["git", "setup", "--clean"],
            &["git", "setup", "--undo"],
        ] {
            let result = repository.cellwright(arguments).exits(2);
            assert!(result.stderr.contains(reason), "{}", result.stderr);
            assert_eq!(repository.read(".git/config"), config);
        }
    }
    // Git would wait for the pipe.
    repository.write("a.ipynb", THREE_CELLS);
    for arguments in [
        &["git", "setup", "--check"][..],
        &["git", "setup", "--global"],
        &["diff", "a.ipynb", "a.ipynb"],
        &["diff", "a.ipynb"],
    ] {
        let result = repository.cellwright(arguments);
        assert_ne!(result.code, None, "{}", result.stderr);
    }
    fs::remove_file(&attributes).unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "*.png binary\n");
    assert!(!missing.exists());
    // The file for all repositories is the user's own; a link to it is common.
    let dir = repository.context.home().join(".config/git");
    fs::create_dir_all(&dir).unwrap();
    std::os::unix::fs::symlink(&outside, dir.join("attributes")).unwrap();
    repository
        .cellwright(&["git", "setup", "--global"])
        .exits(0);
    let written = fs::read_to_string(&outside).unwrap();
    assert!(written.ends_with("merge=cellwright\n"), "{written}");
    assert!(dir.join("attributes").is_symlink());
}
