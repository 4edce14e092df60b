//! [`Places`]: Jupyter's folders, in the order in which Jupyter looks into them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where every user's data is, after everything else.
const SHARED: [&str; 2] = ["/usr/local/share/jupyter", "/usr/share/jupyter"];

/// What decides where Jupyter's folders are; whoever reads the environment fills it in.
///
/// A variable that is set to nothing counts as not set. Relative paths are taken from our own working
/// directory, as Jupyter does.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// `JUPYTER_PATH`, split.
    pub jupyter_path: Vec<PathBuf>,
    /// `JUPYTER_DATA_DIR`.
    pub data_dir: Option<PathBuf>,
    /// `JUPYTER_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub xdg_data_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `PYTHONUSERBASE`.
    pub user_base: Option<PathBuf>,
    /// The environments of interpreters (their `sys.prefix`), the chosen one first.
    pub prefixes: Vec<PathBuf>,
    /// `JUPYTER_PREFER_ENV_PATH`: whether those come before the user's own folder (see
    /// [`Search::is_on`]); by default they do if the first is a virtual environment of our own.
    pub prefer_env: Option<bool>,
}

impl Search {
    /// Whether a variable of Jupyter's that stands for yes or no says yes.
    pub fn is_on(value: &str) -> bool {
        let value = value.to_lowercase();
        !["no", "n", "false", "off", "0", "0.0"].contains(&value.as_str())
    }
}

/// Whose conventions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Those of Linux and other Unixes.
    Linux,
    /// Those of macOS.
    MacOs,
}

impl System {
    /// The one we run on.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// Jupyter's folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders with data; kernelspecs are in their folder `kernels`.
    pub data: Vec<PathBuf>,
    /// Where running kernels are listed; `None` without a home.
    pub runtime: Option<PathBuf>,
}

impl Places {
    /// The folders for what was found in the environment.
    ///
    /// The order is that of `jupyter_core.paths.jupyter_path()` in the first interpreter, each folder
    /// once. `share/jupyter` of Python's folder for what a user installs is looked into where that
    /// interpreter would: always, except from a virtual environment that is closed to the outside.
    ///
    /// Unlike Jupyter: an empty entry of `JUPYTER_PATH` (a colon too many) does not mean the working
    /// directory, and a conda environment counts as one whether it is activated or not.
    /// `JUPYTER_PLATFORM_DIRS` and the folder of `IPython` before version 4 are not known here.
    pub fn new(search: &Search) -> Self {
        Self::on(System::HERE, search)
    }

    /// The folders as they are on some system.
    pub fn on(system: System, search: &Search) -> Self {
        let home = given(search.home.as_ref());
        let user =
            given(search.data_dir.as_ref()).or_else(|| user_data(system, search, home.as_deref()));
        let runtime = given(search.runtime_dir.as_ref())
            .or_else(|| user.as_ref().map(|data| data.join("runtime")));

        let users = user
            .into_iter()
            .chain(user_site(system, search, home.as_deref()));
        let environments = search
            .prefixes
            .iter()
            .filter_map(|prefix| given(Some(prefix)))
            .map(|prefix| prefix.join("share/jupyter"))
            .filter(|folder| !SHARED.iter().any(|shared| folder == Path::new(shared)));

        let mut data: Vec<PathBuf> = Vec::new();
        let mut add = |folder: PathBuf| {
            if !data.contains(&folder) {
                data.push(folder);
            }
        };
        search
            .jupyter_path
            .iter()
            .filter_map(|entry| given(Some(entry)))
            .for_each(&mut add);
        if prefers_environments(search) {
            environments.chain(users).for_each(&mut add);
        } else {
            users.chain(environments).for_each(&mut add);
        }
        SHARED.iter().map(PathBuf::from).for_each(&mut add);
        Self { data, runtime }
    }

    /// The folders with kernelspecs.
    pub fn kernels(&self) -> impl Iterator<Item = PathBuf> {
        self.data.iter().map(|folder| folder.join("kernels"))
    }
}

/// A path that says something, from the root, without a slash at its end.
fn given(path: Option<&PathBuf>) -> Option<PathBuf> {
    let path = path.filter(|path| !path.as_os_str().is_empty())?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Some(path.components().collect())
}

fn user_data(system: System, search: &Search, home: Option<&Path>) -> Option<PathBuf> {
    // Jupyter follows links in the path to the home folder here, and nowhere else.
    let home = home.map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
    if system == System::MacOs {
        return home.map(|home| home.join("Library/Jupyter"));
    }
    given(search.xdg_data_home.as_ref())
        .or_else(|| home.map(|home| home.join(".local/share")))
        .map(|share| share.join("jupyter"))
}

/// Where `pip install --user` puts data.
fn user_site(system: System, search: &Search, home: Option<&Path>) -> Option<PathBuf> {
    let first = search.prefixes.first();
    if first.is_some_and(|prefix| is_closed(prefix)) {
        return None;
    }
    let base = given(search.user_base.as_ref()).or_else(|| {
        let version = first.and_then(|prefix| framework_version(prefix));
        match version.filter(|_| system == System::MacOs) {
            Some(version) => Some(home?.join("Library/Python").join(version)),
            None => Some(home?.join(".local")),
        }
    })?;
    Some(base.join("share/jupyter"))
}

/// The version of a Python that is a framework of macOS, which keeps what users install elsewhere.
fn framework_version(prefix: &Path) -> Option<&Path> {
    let versions = prefix.parent()?;
    let framework = versions.parent()?;
    let is_framework = versions.ends_with("Versions")
        && framework
            .extension()
            .is_some_and(|extension| extension == "framework");
    is_framework.then_some(prefix.file_name().map(Path::new)?)
}

fn prefers_environments(search: &Search) -> bool {
    if let Some(told) = search.prefer_env {
        return told;
    }
    let Some(prefix) = search.prefixes.first() else {
        return false;
    };
    let conda = prefix.join("conda-meta").is_dir() && !prefix.join("condabin").is_dir();
    (is_virtual(prefix) || conda) && is_ours(prefix)
}

fn is_virtual(prefix: &Path) -> bool {
    prefix.join("pyvenv.cfg").is_file()
}

/// Whether a virtual environment sees nothing of what is installed outside.
fn is_closed(prefix: &Path) -> bool {
    let Ok(text) = crate::small::read(&prefix.join("pyvenv.cfg")) else {
        return is_virtual(prefix);
    };
    let text = String::from_utf8_lossy(&text);
    !text.lines().any(|line| {
        line.split_once('=').is_some_and(|(key, value)| {
            key.trim()
                .eq_ignore_ascii_case("include-system-site-packages")
                && value.trim().eq_ignore_ascii_case("true")
        })
    })
}

fn is_ours(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
}
