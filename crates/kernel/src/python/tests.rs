//! Which interpreter is chosen in which surroundings.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A folder with things that look like interpreters.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn program(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn search(&self, cwd: &str) -> Search {
        fs::create_dir_all(self.at(cwd)).unwrap();
        Search {
            cwd: self.at(cwd),
            path: vec![self.at("path-a"), self.at("path-b")],
            home: Some(self.at("home")),
            ..Search::default()
        }
    }
}

#[test]
fn the_order_is_explicit_virtual_env_conda_beside_managed_path() {
    let place = Place::new();
    let mut search = place.search("work");
    assert!(resolve(&search).is_err());
    let on_path = place.program("path-b/python3");
    assert_eq!(resolve(&search).unwrap().program, on_path);
    let managed = place.program("managed/bin/python3");
    search.managed = Some(place.at("managed"));
    assert_eq!(resolve(&search).unwrap().program, managed);
    let beside = place.program("work/venv/bin/python");
    assert_eq!(resolve(&search).unwrap().program, beside);
    let dotted = place.program("work/.venv/bin/python3");
    assert_eq!(resolve(&search).unwrap().program, dotted);
    let conda = place.program("conda/bin/python3");
    search.conda_prefix = Some(place.at("conda"));
    assert_eq!(resolve(&search).unwrap().origin, Origin::Conda);
    assert_eq!(resolve(&search).unwrap().program, conda);
    let active = place.program("active/bin/python3");
    search.virtual_env = Some(place.at("active"));
    assert_eq!(resolve(&search).unwrap().program, active);
    search.explicit = Some(place.at("path-b/python3"));
    let chosen = resolve(&search).unwrap();
    assert_eq!((chosen.program, chosen.origin), (on_path, Origin::Explicit));
}

#[test]
fn parents_are_searched_up_to_the_repository_and_not_beyond() {
    let place = Place::new();
    let search = place.search("repo/deep/er");
    let outside = place.program(".venv/bin/python3");
    let inside = place.program("repo/.venv/bin/python3");
    place.program("path-a/python3");
    // Without a repository only the directory itself counts.
    assert_eq!(resolve(&search).unwrap().origin, Origin::Path);
    fs::create_dir_all(place.at("repo/.git")).unwrap();
    let chosen = resolve(&search).unwrap();
    assert_eq!(chosen.program, inside);
    fs::remove_dir_all(place.at("repo/.venv")).unwrap();
    assert_eq!(resolve(&search).unwrap().origin, Origin::Path);
    assert!(outside.exists());
}

#[test]
fn what_would_not_do_is_named_with_the_reason() {
    let place = Place::new();
    let mut search = place.search("work");
    search.virtual_env = Some(place.at("gone"));
    fs::create_dir_all(place.at("work/.venv/bin")).unwrap();
    symlink(place.at("nowhere"), place.at("work/.venv/bin/python3")).unwrap();
    fs::create_dir_all(place.at("work/venv")).unwrap();
    fs::create_dir_all(place.at("path-a/python3")).unwrap();
    fs::create_dir_all(place.at("path-b")).unwrap();
    fs::write(place.at("path-b/python3"), "").unwrap();
    let whys: Vec<&str> = resolve(&search)
        .unwrap_err()
        .iter()
        .map(|rejected| rejected.why)
        .collect();
    assert_eq!(
        whys,
        [
            "there is no such folder",
            "the link leads nowhere",
            "it has no bin/python3",
            "it is a folder",
            "it may not be executed",
            "it is not on PATH",
            "it is not on PATH",
        ]
    );
}

#[test]
fn an_explicit_choice_has_no_fall_back() {
    let place = Place::new();
    let mut search = place.search("work");
    place.program("path-a/python3");
    search.explicit = Some("missing/python".into());
    assert!(resolve(&search).is_err());
    search.explicit = Some("python9".into());
    assert!(resolve(&search).is_err());
    let special = place.program("path-a/python9");
    assert_eq!(resolve(&search).unwrap().program, special);
    let own = place.program("home/py/bin/python3");
    search.explicit = Some("~/py".into());
    assert_eq!(resolve(&search).unwrap().program, own);
}

#[test]
fn an_environment_is_recognised_by_its_mark() {
    let place = Place::new();
    let search = place.search("work");
    place.program("work/.venv/bin/python3");
    assert_eq!(resolve(&search).unwrap().environment, None);
    fs::write(place.at("work/.venv/pyvenv.cfg"), "").unwrap();
    assert_eq!(
        resolve(&search).unwrap().environment,
        Some(place.at("work/.venv"))
    );
}
