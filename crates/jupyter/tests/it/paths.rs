//! [`JupyterPaths`]: the same directories as in `jupyter_core.paths`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_jupyter::paths::{JupyterPaths, PathInputs, Platform};
use serde::Deserialize;
use serde_json::json;

use crate::support::{python, run_oracle, temp_dir};

#[derive(Deserialize)]
struct Answer {
    data: Vec<PathBuf>,
    runtime: PathBuf,
    #[serde(default)]
    prefix: PathBuf,
}

type Env = BTreeMap<&'static str, String>;

/// The inputs as a caller takes them from the environment.
fn path_inputs(env: &Env, prefixes: Vec<PathBuf>) -> PathInputs {
    let path = |name: &str| env.get(name).map(PathBuf::from);
    PathInputs {
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
            .map(|value| PathInputs::parse_flag(value)),
    }
}

/// Removes duplicates; the first occurrence stays.
fn without_duplicates(dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut unique: Vec<PathBuf> = Vec::new();
    for dir in dirs {
        if !unique.contains(&dir) {
            unique.push(dir);
        }
    }
    unique
}

/// The kind of an interpreter's environment.
#[derive(Clone, Copy, PartialEq)]
enum EnvKind {
    Plain,
    Venv,
    VenvWithSystemSite,
    Conda,
    CondaBase,
}

fn create_env(prefix: &Path, kind: EnvKind) {
    fs::create_dir_all(prefix).unwrap();
    let cfg = |open: bool| format!("home = /usr/bin\ninclude-system-site-packages = {open}\n");
    match kind {
        EnvKind::Plain => {}
        EnvKind::Venv => fs::write(prefix.join("pyvenv.cfg"), cfg(false)).unwrap(),
        EnvKind::VenvWithSystemSite => fs::write(prefix.join("pyvenv.cfg"), cfg(true)).unwrap(),
        EnvKind::Conda => fs::create_dir(prefix.join("conda-meta")).unwrap(),
        EnvKind::CondaBase => {
            fs::create_dir(prefix.join("conda-meta")).unwrap();
            fs::create_dir(prefix.join("condabin")).unwrap();
        }
    }
}

#[test]
fn directories_are_in_the_order_of_jupyter() {
    let (_guard, root) = temp_dir();
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
    let mut oracle_cases = Vec::new();
    let mut results = Vec::new();
    for (platform, platform_name) in [(Platform::Linux, "linux"), (Platform::MacOs, "darwin")] {
        for (number, kind) in [
            EnvKind::Plain,
            EnvKind::Venv,
            EnvKind::VenvWithSystemSite,
            EnvKind::Conda,
            EnvKind::CondaBase,
        ]
        .into_iter()
        .enumerate()
        {
            let prefix = root.join(format!("{platform_name}-{number}"));
            create_env(&prefix, kind);
            let is_virtual = matches!(kind, EnvKind::Venv | EnvKind::VenvWithSystemSite);
            for env in &cases {
                let mut env_of_python = env.clone();
                if matches!(kind, EnvKind::Conda | EnvKind::CondaBase) {
                    let name = if kind == EnvKind::CondaBase {
                        "base"
                    } else {
                        "work"
                    };
                    env_of_python.insert("CONDA_PREFIX", text(&prefix));
                    env_of_python.insert("CONDA_DEFAULT_ENV", name.to_owned());
                }
                oracle_cases.push(json!({
                    "env": env_of_python,
                    "platform": platform_name,
                    "prefix": prefix,
                    "base_prefix": if is_virtual { Path::new("/usr") } else { &prefix },
                    "user_site": kind != EnvKind::Venv,
                }));
                results.push(JupyterPaths::for_platform(
                    platform,
                    &path_inputs(env, vec![prefix.clone()]),
                ));
            }
        }
    }
    let answers: Vec<Answer> = run_oracle("paths", &json!({ "cases": oracle_cases }));
    assert_eq!(answers.len(), 200);
    for ((case, answer), paths) in oracle_cases.iter().zip(answers).zip(results) {
        assert_eq!(paths.data_dirs, without_duplicates(answer.data), "{case}");
        assert_eq!(paths.runtime_dir, Some(answer.runtime), "{case}");
    }
}

#[test]
fn a_real_interpreter_agrees_inside_and_outside_of_its_environment() {
    let (_guard, home) = temp_dir();
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
        let paths = JupyterPaths::new(&path_inputs(&env, vec![answer.prefix]));
        assert_eq!(paths.data_dirs, answer.data);
        assert_eq!(paths.runtime_dir, Some(answer.runtime));
    }
}

#[test]
fn a_framework_build_has_its_user_base_in_the_library() {
    let inputs = PathInputs {
        home: Some("/Users/me".into()),
        prefixes: vec!["/opt/Python.framework/Versions/3.12".into()],
        ..PathInputs::default()
    };
    let paths = JupyterPaths::for_platform(Platform::MacOs, &inputs);
    assert_eq!(
        paths.data_dirs[..2],
        [
            PathBuf::from("/Users/me/Library/Jupyter"),
            PathBuf::from("/Users/me/Library/Python/3.12/share/jupyter")
        ]
    );
}

#[test]
fn without_a_home_only_system_directories_remain() {
    let paths = JupyterPaths::new(&PathInputs::default());
    assert_eq!(
        paths.data_dirs,
        [
            PathBuf::from("/usr/local/share/jupyter"),
            PathBuf::from("/usr/share/jupyter")
        ]
    );
    assert_eq!(paths.runtime_dir, None);

    let inputs = PathInputs {
        data_dir: Some("/data".into()),
        ..PathInputs::default()
    };
    let paths = JupyterPaths::new(&inputs);
    assert_eq!(paths.data_dirs[0], PathBuf::from("/data"));
    assert_eq!(paths.runtime_dir, Some("/data/runtime".into()));
}

#[test]
fn an_extra_colon_does_not_add_the_working_directory() {
    let inputs = PathInputs {
        jupyter_path: ["", "/one", ""].map(PathBuf::from).to_vec(),
        ..PathInputs::default()
    };
    let paths = JupyterPaths::new(&inputs);
    assert_eq!(paths.data_dirs.len(), 3);
    assert_eq!(paths.data_dirs[0], PathBuf::from("/one"));
}

#[test]
fn relative_paths_are_resolved_against_the_working_directory() {
    let inputs = PathInputs {
        jupyter_path: vec!["here/./jupyter/".into()],
        runtime_dir: Some("run".into()),
        ..PathInputs::default()
    };
    let paths = JupyterPaths::new(&inputs);
    let here = std::env::current_dir().unwrap();
    assert_eq!(paths.data_dirs[0], here.join("here/jupyter"));
    assert_eq!(paths.runtime_dir, Some(here.join("run")));
}

#[test]
fn environments_keep_their_order_without_duplicates() {
    let inputs = PathInputs {
        prefixes: ["/b", "/usr", "/a", "/b"].map(PathBuf::from).to_vec(),
        prefer_env: Some(true),
        home: Some("/people/me".into()),
        ..PathInputs::default()
    };
    let expected = [
        "/b/share/jupyter",
        "/a/share/jupyter",
        "/people/me/.local/share/jupyter",
        "/usr/local/share/jupyter",
        "/usr/share/jupyter",
    ];
    let paths = JupyterPaths::for_platform(Platform::Linux, &inputs);
    assert_eq!(paths.data_dirs, expected.map(PathBuf::from));
}

#[test]
fn boolean_variables_are_parsed_as_in_jupyter() {
    let values = [
        "", "1", "0", "0.0", "00", "yes", "no", "NO", "n", "N", "false", "False", "off", "on",
        " no", "nope",
    ];
    let answers: Vec<bool> = run_oracle("flags", &json!({ "values": values }));
    for (value, answer) in values.into_iter().zip(answers) {
        assert_eq!(PathInputs::parse_flag(value), answer, "{value:?}");
    }
}
