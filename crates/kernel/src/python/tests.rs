//! Tests of the interpreter search.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A temporary directory with files that look like interpreters.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn create_program(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn search_from(&self, cwd: &str) -> InterpreterSearch {
        fs::create_dir_all(self.path(cwd)).unwrap();
        InterpreterSearch {
            cwd: self.path(cwd),
            path: vec![self.path("path-a"), self.path("path-b")],
            home: Some(self.path("home")),
            ..InterpreterSearch::default()
        }
    }
}

#[test]
fn search_order_is_explicit_virtual_env_conda_project_managed_path() {
    let fixture = Fixture::new();
    let mut search = fixture.search_from("work");
    assert!(resolve(&search).is_err());
    let on_path = fixture.create_program("path-b/python3");
    assert_eq!(resolve(&search).unwrap().program, on_path);
    let managed = fixture.create_program("managed/bin/python3");
    search.managed = Some(fixture.path("managed"));
    assert_eq!(resolve(&search).unwrap().program, managed);
    let project = fixture.create_program("work/venv/bin/python");
    assert_eq!(resolve(&search).unwrap().program, project);
    let dotted = fixture.create_program("work/.venv/bin/python3");
    assert_eq!(resolve(&search).unwrap().program, dotted);
    let conda = fixture.create_program("conda/bin/python3");
    search.conda_prefix = Some(fixture.path("conda"));
    assert_eq!(resolve(&search).unwrap().origin, Origin::Conda);
    assert_eq!(resolve(&search).unwrap().program, conda);
    let active = fixture.create_program("active/bin/python3");
    search.virtual_env = Some(fixture.path("active"));
    assert_eq!(resolve(&search).unwrap().program, active);
    search.explicit = Some(fixture.path("path-b/python3"));
    let chosen = resolve(&search).unwrap();
    assert_eq!((chosen.program, chosen.origin), (on_path, Origin::Explicit));
}

#[test]
fn parents_are_searched_up_to_the_repository_and_not_beyond() {
    let fixture = Fixture::new();
    let search = fixture.search_from("repo/deep/er");
    let outside = fixture.create_program(".venv/bin/python3");
    let inside = fixture.create_program("repo/.venv/bin/python3");
    fixture.create_program("path-a/python3");
    fs::create_dir_all(fixture.path("repo/.git")).unwrap();
    let chosen = resolve(&search).unwrap();
    assert_eq!(chosen.program, inside);
    fs::remove_dir_all(fixture.path("repo/.venv")).unwrap();
    assert_eq!(resolve(&search).unwrap().origin, Origin::Path);
    assert!(outside.exists());
}

#[test]
fn parents_outside_of_a_repository_are_searched_while_they_belong_to_the_user() {
    let fixture = Fixture::new();
    let search = fixture.search_from("home/job/deep/er");
    fixture.create_program("path-a/python3");
    fixture.create_program("home/.venv/bin/python3");
    // The home directory is not a project.
    assert_eq!(resolve(&search).unwrap().origin, Origin::Path);
    let project = fixture.create_program("home/job/venv/bin/python3");
    let chosen = resolve(&search).unwrap();
    assert_eq!(chosen.program, project);
    let dir = fixture.path("home/job");
    assert_eq!(chosen.origin, Origin::Project { dir });
    // Where every user can create files, another user may have created the environment.
    fs::set_permissions(fixture.path("home/job"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(resolve(&search).unwrap().origin, Origin::Path);
    // The working directory itself counts always.
    let home = fixture.search_from("home");
    assert_eq!(
        resolve(&home).unwrap().program,
        fixture.path("home/.venv/bin/python3")
    );
}

#[test]
fn rejected_candidates_carry_a_reason() {
    let fixture = Fixture::new();
    let mut search = fixture.search_from("work");
    search.virtual_env = Some(fixture.path("gone"));
    fs::create_dir_all(fixture.path("work/.venv/bin")).unwrap();
    symlink(
        fixture.path("nowhere"),
        fixture.path("work/.venv/bin/python3"),
    )
    .unwrap();
    fs::create_dir_all(fixture.path("work/venv")).unwrap();
    fs::create_dir_all(fixture.path("path-a/python3")).unwrap();
    fs::create_dir_all(fixture.path("path-b")).unwrap();
    fs::write(fixture.path("path-b/python3"), "").unwrap();
    let reasons: Vec<&str> = resolve(&search)
        .unwrap_err()
        .iter()
        .map(|rejected| rejected.reason)
        .collect();
    assert_eq!(
        reasons,
        [
            "there is no such directory",
            "the link is broken",
            "it has no bin/python3",
            "it is a directory",
            "it is not executable",
            "it is not on PATH",
            "it is not on PATH",
        ]
    );
}

#[test]
fn explicit_choice_has_no_fallback() {
    let fixture = Fixture::new();
    let mut search = fixture.search_from("work");
    fixture.create_program("path-a/python3");
    search.explicit = Some("missing/python".into());
    assert!(resolve(&search).is_err());
    search.explicit = Some("python9".into());
    assert!(resolve(&search).is_err());
    let special = fixture.create_program("path-a/python9");
    assert_eq!(resolve(&search).unwrap().program, special);
    let own = fixture.create_program("home/py/bin/python3");
    search.explicit = Some("~/py".into());
    assert_eq!(resolve(&search).unwrap().program, own);
}

#[test]
fn environment_is_recognised_by_its_marker_file() {
    let fixture = Fixture::new();
    let search = fixture.search_from("work");
    fixture.create_program("work/.venv/bin/python3");
    assert_eq!(resolve(&search).unwrap().environment, None);
    fs::write(fixture.path("work/.venv/pyvenv.cfg"), "").unwrap();
    assert_eq!(
        resolve(&search).unwrap().environment,
        Some(fixture.path("work/.venv"))
    );
}
