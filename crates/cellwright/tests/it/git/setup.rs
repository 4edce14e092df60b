//! What the setup writes, and how it is taken back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use super::Repository;
use crate::context::{Context, THREE_CELLS};

#[test]
fn it_says_what_it_writes_does_nothing_twice_and_is_taken_back_to_the_byte() {
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

        // The filter comes in on top, and goes with the rest.
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
fn a_line_that_came_with_the_repository_is_not_taken_back() {
    let repository = Repository::new();
    let line = "*.ipynb diff=cellwright merge=cellwright filter=cellwright\n";
    repository.write(".gitattributes", line);
    let untouched = repository.read(".git/config");
    repository.cellwright(&["git", "setup", "--check"]).exits(1);
    // The repository wants outputs left out, so they are.
    let ran = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(
        ran.stdout.contains("filter.cellwright.clean"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains(".gitattributes"), "{}", ran.stdout);
    repository.cellwright(&["git", "setup", "--check"]).exits(0);
    let ran = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
    assert!(
        ran.stdout.contains("left     .gitattributes"),
        "{}",
        ran.stdout
    );
    assert_eq!(repository.read(".gitattributes"), line);
    assert_eq!(repository.read(".git/config"), untouched);
}

#[test]
fn settings_of_other_tools_stay_and_are_reported() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.ipynb diff=jupyter\n");
    let ran = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(
        ran.stderr
            .contains("`diff=jupyter` for *.ipynb is overridden"),
        "{}",
        ran.stderr
    );
    repository.git(&["config", "diff.cellwright.textconv", "my own script"]);
    let ran = repository.cellwright(&["git", "setup", "--check"]).exits(1);
    assert!(ran.stdout.contains("FAIL  diff:"), "{}", ran.stdout);
    let ran = repository.cellwright(&["git", "setup", "--undo"]).exits(0);
    assert!(
        ran.stdout
            .contains("left     .git/config: diff.cellwright.textconv = my own script"),
        "{}",
        ran.stdout
    );
    assert_eq!(repository.read(".gitattributes"), "*.ipynb diff=jupyter\n");
    let left = repository.git(&["config", "diff.cellwright.textconv"]);
    assert_eq!(left, "my own script\n");
    // Attributes of the repository's own that win.
    repository.write(".git/info/attributes", "*.ipynb -merge\n");
    let ran = repository.cellwright(&["git", "setup"]).exits(0);
    assert!(ran.stderr.contains("`merge=unset`"), "{}", ran.stderr);
}

#[test]
fn a_check_says_what_is_missing() {
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
    let answer = repository
        .cellwright(&["git", "setup", "--check", "--json"])
        .exits(0)
        .json();
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["findings"][2]["code"], "clean");
}

#[test]
fn all_repositories_of_a_user_are_set_up_at_once() {
    let repository = Repository::with_notebook(THREE_CELLS);
    let home = repository.context.home().to_owned();
    let ran = repository
        .cellwright(&["git", "setup", "--global", "--clean"])
        .exits(0);
    assert!(
        ran.stdout.contains(".gitconfig: diff.cellwright.textconv"),
        "{}",
        ran.stdout
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
fn without_git_or_a_repository_it_says_so() {
    let context = Context::new();
    let ran = context.run(&["git", "setup"]).exits(2);
    assert!(
        ran.stderr.contains("not in a git repository"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    let mut command = context.command(&["git", "setup"]);
    let output = command.env("PATH", context.folder()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("Could not run git"), "{words}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_called_by_its_place() {
    let repository = Repository::with_notebook(THREE_CELLS);
    let folder = repository.context.path("50%A%f odd 'place'");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("cell wright");
    let binary = env!("CARGO_BIN_EXE_cellwright");
    if fs::hard_link(binary, &program).is_err() {
        fs::copy(binary, &program).unwrap();
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Another program of that name does not count.
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

    // Shown, stored and merged by it.
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
