//! Jupyter's own list of folders is ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_jupyter::places::{Places, Search, System};
use serde::Deserialize;
use serde_json::json;

use crate::support::{ask, folder, python};

#[derive(Deserialize)]
struct Answer {
    data: Vec<PathBuf>,
    runtime: PathBuf,
    #[serde(default)]
    prefix: PathBuf,
}

type Env = BTreeMap<&'static str, String>;

/// What whoever reads the environment does with it.
fn search(env: &Env, prefixes: Vec<PathBuf>) -> Search {
    let path = |name: &str| env.get(name).map(PathBuf::from);
    Search {
        jupyter_path: env
            .get("JUPYTER_PATH")
            .map(|list| std::env::split_paths(list).collect())
            .unwrap_or_default(),
        data_dir: path("JUPYTER_DATA_DIR"),
        runtime_dir: path("JUPYTER_RUNTIME_DIR"),
        xdg_data_home: path("XDG_DATA_HOME"),
        home: path("HOME"),
        user_base: path("PYTHONUSERBASE"),
        prefixes,
        prefer_env: env
            .get("JUPYTER_PREFER_ENV_PATH")
            .map(|value| Search::is_on(value)),
    }
}

/// Each folder once, where it is first.
fn once(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    kept
}

/// How an interpreter is installed.
#[derive(Clone, Copy, PartialEq)]
enum Install {
    Plain,
    Virtual,
    Open,
    Conda,
    Base,
}

fn install(prefix: &Path, how: Install) {
    fs::create_dir_all(prefix).unwrap();
    let cfg = |open: bool| format!("home = /usr/bin\ninclude-system-site-packages = {open}\n");
    match how {
        Install::Plain => {}
        Install::Virtual => fs::write(prefix.join("pyvenv.cfg"), cfg(false)).unwrap(),
        Install::Open => fs::write(prefix.join("pyvenv.cfg"), cfg(true)).unwrap(),
        Install::Conda => fs::create_dir(prefix.join("conda-meta")).unwrap(),
        Install::Base => {
            fs::create_dir(prefix.join("conda-meta")).unwrap();
            fs::create_dir(prefix.join("condabin")).unwrap();
        }
    }
}

#[test]
fn folders_come_in_the_order_of_jupyter() {
    let (_guard, root) = folder();
    let home = root.join("home");
    fs::create_dir(&home).unwrap();
    let link = root.join("link");
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let at = |name: &str| text(&root.join(name));
    let usual: Env = [("HOME", text(&home))].into();
    let with = |more: &[(&'static str, String)]| -> Env {
        let mut env = usual.clone();
        env.extend(more.iter().cloned());
        env
    };
    let cases: Vec<Env> = vec![
        usual.clone(),
        with(&[("HOME", text(&link))]),
        with(&[("HOME", text(&home) + "/")]),
        with(&[("JUPYTER_PATH", at("one"))]),
        with(&[(
            "JUPYTER_PATH",
            format!("{}/:{}//:{0}", at("one"), at("two")),
        )]),
        with(&[(
            "JUPYTER_PATH",
            "/usr/share/jupyter:/usr/local/share/jupyter".to_owned(),
        )]),
        with(&[("JUPYTER_PATH", text(&home.join(".local/share/jupyter")))]),
        with(&[("JUPYTER_PATH", String::new())]),
        with(&[("JUPYTER_DATA_DIR", at("data"))]),
        with(&[("JUPYTER_DATA_DIR", String::new())]),
        with(&[("JUPYTER_RUNTIME_DIR", at("run"))]),
        with(&[("JUPYTER_RUNTIME_DIR", String::new())]),
        with(&[("XDG_DATA_HOME", at("xdg"))]),
        with(&[("XDG_DATA_HOME", String::new())]),
        with(&[
            ("XDG_DATA_HOME", at("xdg")),
            ("JUPYTER_DATA_DIR", at("data")),
        ]),
        with(&[("PYTHONUSERBASE", at("base"))]),
        with(&[("JUPYTER_PREFER_ENV_PATH", "1".to_owned())]),
        with(&[("JUPYTER_PREFER_ENV_PATH", "no".to_owned())]),
        with(&[
            ("JUPYTER_PREFER_ENV_PATH", "Off".to_owned()),
            ("XDG_DATA_HOME", at("xdg")),
        ]),
        with(&[("JUPYTER_PREFER_ENV_PATH", String::new())]),
    ];
    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for (system, platform) in [(System::Linux, "linux"), (System::MacOs, "darwin")] {
        for (number, how) in [
            Install::Plain,
            Install::Virtual,
            Install::Open,
            Install::Conda,
            Install::Base,
        ]
        .into_iter()
        .enumerate()
        {
            let prefix = root.join(format!("{platform}-{number}"));
            install(&prefix, how);
            let is_virtual = matches!(how, Install::Virtual | Install::Open);
            for env in &cases {
                let mut given = env.clone();
                if matches!(how, Install::Conda | Install::Base) {
                    let name = if how == Install::Base { "base" } else { "work" };
                    given.insert("CONDA_PREFIX", text(&prefix));
                    given.insert("CONDA_DEFAULT_ENV", name.to_owned());
                }
                questions.push(json!({
                    "env": given,
                    "platform": platform,
                    "prefix": prefix,
                    "base_prefix": if is_virtual { Path::new("/usr") } else { &prefix },
                    "user_site": how != Install::Virtual,
                }));
                ours.push(Places::on(system, &search(env, vec![prefix.clone()])));
            }
        }
    }
    let answers: Vec<Answer> = ask("paths", &json!({ "cases": questions }));
    assert_eq!(answers.len(), 200);
    for ((question, answer), places) in questions.iter().zip(answers).zip(ours) {
        assert_eq!(places.data, once(answer.data), "{question}");
        assert_eq!(places.runtime, Some(answer.runtime), "{question}");
    }
}

#[test]
fn a_real_interpreter_agrees_in_and_out_of_its_environment() {
    let (_guard, home) = folder();
    let input = home.join("input");
    fs::write(&input, "{}\n").unwrap();
    let python = python();
    let base = Command::new(&python)
        .args(["-c", "import sys; print(sys._base_executable)"])
        .output()
        .unwrap();
    let base = String::from_utf8(base.stdout).unwrap().trim().to_owned();
    let packages = Command::new(&python)
        .args(["-c", "import jupyter_core, os; print(os.path.dirname(os.path.dirname(jupyter_core.__file__)))"])
        .output()
        .unwrap();
    let packages = String::from_utf8(packages.stdout).unwrap();
    for (python, packages) in [(python, ""), (base.into(), packages.trim())] {
        let output = Command::new(python)
            .args([
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/oracle.py"),
                "own_paths",
            ])
            .env_clear()
            .env("HOME", &home)
            .env("PYTHONPATH", packages)
            .env("XDG_DATA_HOME", home.join("xdg"))
            .stdin(fs::File::open(&input).unwrap())
            .output()
            .unwrap();
        let answer: Answer = serde_json::from_slice(&output.stdout).unwrap();
        let env = [
            ("HOME", home.to_str().unwrap().to_owned()),
            (
                "XDG_DATA_HOME",
                home.join("xdg").to_str().unwrap().to_owned(),
            ),
        ]
        .into();
        let places = Places::new(&search(&env, vec![answer.prefix]));
        assert_eq!(places.data, answer.data);
        assert_eq!(places.runtime, Some(answer.runtime));
    }
}

#[test]
fn the_interpreter_of_a_framework_keeps_a_users_data_in_the_library() {
    let search = Search {
        home: Some("/Users/me".into()),
        prefixes: vec!["/opt/Python.framework/Versions/3.12".into()],
        ..Search::default()
    };
    let places = Places::on(System::MacOs, &search);
    assert_eq!(
        places.data[..2],
        [
            PathBuf::from("/Users/me/Library/Jupyter"),
            PathBuf::from("/Users/me/Library/Python/3.12/share/jupyter")
        ]
    );
}

#[test]
fn without_a_home_there_is_what_does_not_need_one() {
    let places = Places::new(&Search::default());
    assert_eq!(
        places.data,
        [
            PathBuf::from("/usr/local/share/jupyter"),
            PathBuf::from("/usr/share/jupyter")
        ]
    );
    assert_eq!(places.runtime, None);

    let told = Search {
        data_dir: Some("/data".into()),
        ..Search::default()
    };
    let places = Places::new(&told);
    assert_eq!(places.data[0], PathBuf::from("/data"));
    assert_eq!(places.runtime, Some("/data/runtime".into()));
}

#[test]
fn a_colon_too_many_does_not_make_the_working_directory_a_place_for_kernels() {
    let search = Search {
        jupyter_path: ["", "/one", ""].map(PathBuf::from).to_vec(),
        ..Search::default()
    };
    let places = Places::new(&search);
    assert_eq!(places.data.len(), 3);
    assert_eq!(places.data[0], PathBuf::from("/one"));
}

#[test]
fn relative_paths_are_taken_from_the_working_directory() {
    let search = Search {
        jupyter_path: vec!["here/./jupyter/".into()],
        runtime_dir: Some("run".into()),
        ..Search::default()
    };
    let places = Places::new(&search);
    let here = std::env::current_dir().unwrap();
    assert_eq!(places.data[0], here.join("here/jupyter"));
    assert_eq!(places.runtime, Some(here.join("run")));
}

#[test]
fn environments_keep_their_order_and_the_systems_own_is_not_named_twice() {
    let search = Search {
        prefixes: ["/b", "/usr", "/a", "/b"].map(PathBuf::from).to_vec(),
        prefer_env: Some(true),
        home: Some("/people/me".into()),
        ..Search::default()
    };
    let expected = [
        "/b/share/jupyter",
        "/a/share/jupyter",
        "/people/me/.local/share/jupyter",
        "/usr/local/share/jupyter",
        "/usr/share/jupyter",
    ];
    let places = Places::on(System::Linux, &search);
    assert_eq!(places.data, expected.map(PathBuf::from));
}

#[test]
fn yes_and_no_are_what_they_are_in_jupyter() {
    let values = [
        "", "1", "0", "0.0", "00", "yes", "no", "NO", "n", "N", "false", "False", "off", "on",
        " no", "nope",
    ];
    let answers: Vec<bool> = ask("flags", &json!({ "values": values }));
    for (value, answer) in values.into_iter().zip(answers) {
        assert_eq!(Search::is_on(value), answer, "{value:?}");
    }
}
