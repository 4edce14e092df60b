//! [`JupyterPaths`]: Jupyter's directories, in Jupyter's search order.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Data directories for all users, at the end of the search order.
const SYSTEM_DATA_DIRS: [&str; 2] = ["/usr/local/share/jupyter", "/usr/share/jupyter"];

/// The inputs that decide where Jupyter's directories are. The caller fills them in from the environment.
///
/// An empty variable counts as not set. Relative paths are resolved against the working directory, as in Jupyter.
#[derive(Clone, Debug, Default)]
pub struct PathInputs {
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
    /// The environments (`sys.prefix`) of interpreters, the chosen one first.
    pub prefixes: Vec<PathBuf>,
    /// `JUPYTER_PREFER_ENV_PATH`: whether the environments come before the user's directory (see
    /// [`PathInputs::parse_flag`]). The default is yes if the first is a virtual environment that the user owns.
    pub prefer_env: Option<bool>,
}

impl PathInputs {
    /// Parses a boolean environment variable of Jupyter.
    pub fn parse_flag(value: &str) -> bool {
        let value = value.to_lowercase();
        !["no", "n", "false", "off", "0", "0.0"].contains(&value.as_str())
    }
}

/// The platform whose conventions apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux and other Unixes.
    Linux,
    /// macOS.
    MacOs,
}

impl Platform {
    /// The platform that this program was built for.
    pub const CURRENT: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// Jupyter's directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JupyterPaths {
    /// Data directories. Kernelspecs are in their subfolder `kernels`.
    pub data_dirs: Vec<PathBuf>,
    /// The directory of connection files; `None` without a home directory.
    pub runtime_dir: Option<PathBuf>,
}

impl JupyterPaths {
    /// The directories on the current platform.
    ///
    /// The order is that of `jupyter_core.paths.jupyter_path()` in the first interpreter, each directory once.
    /// `share/jupyter` in Python's user base (`pip install --user`) is included, except for a virtual environment without
    /// access to system packages.
    ///
    /// Unlike Jupyter: an empty entry of `JUPYTER_PATH` (an extra colon) does not mean the working directory, and a conda
    /// environment counts as one whether it is activated or not. `JUPYTER_PLATFORM_DIRS` and the directory of `IPython`
    /// before version 4 are not supported.
    pub fn new(inputs: &PathInputs) -> Self {
        Self::for_platform(Platform::CURRENT, inputs)
    }

    /// The directories on a given platform.
    pub fn for_platform(platform: Platform, inputs: &PathInputs) -> Self {
        let home = normalize(inputs.home.as_ref());
        let user = normalize(inputs.data_dir.as_ref())
            .or_else(|| user_data_dir(platform, inputs, home.as_deref()));
        let runtime_dir = normalize(inputs.runtime_dir.as_ref())
            .or_else(|| user.as_ref().map(|data| data.join("runtime")));

        let user_dirs =
            user.into_iter()
                .chain(user_site_data_dir(platform, inputs, home.as_deref()));
        let environments = inputs
            .prefixes
            .iter()
            .filter_map(|prefix| normalize(Some(prefix)))
            .map(|prefix| prefix.join("share/jupyter"))
            .filter(|dir| {
                !SYSTEM_DATA_DIRS
                    .iter()
                    .any(|shared| dir == Path::new(shared))
            });

        let mut data_dirs: Vec<PathBuf> = Vec::new();
        let mut add = |dir: PathBuf| {
            if !data_dirs.contains(&dir) {
                data_dirs.push(dir);
            }
        };
        inputs
            .jupyter_path
            .iter()
            .filter_map(|entry| normalize(Some(entry)))
            .for_each(&mut add);
        if prefers_environments(inputs) {
            environments.chain(user_dirs).for_each(&mut add);
        } else {
            user_dirs.chain(environments).for_each(&mut add);
        }
        SYSTEM_DATA_DIRS
            .iter()
            .map(PathBuf::from)
            .for_each(&mut add);
        Self {
            data_dirs,
            runtime_dir,
        }
    }

    /// The directories that contain kernelspecs.
    pub fn kernel_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.data_dirs.iter().map(|dir| dir.join("kernels"))
    }
}

/// The absolute path without a slash at its end; `None` for an empty path.
fn normalize(path: Option<&PathBuf>) -> Option<PathBuf> {
    let path = path.filter(|path| !path.as_os_str().is_empty())?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Some(path.components().collect())
}

fn user_data_dir(platform: Platform, inputs: &PathInputs, home: Option<&Path>) -> Option<PathBuf> {
    // Jupyter resolves links in the path of the home directory here, and nowhere else.
    let home = home.map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
    if platform == Platform::MacOs {
        return home.map(|home| home.join("Library/Jupyter"));
    }
    normalize(inputs.xdg_data_home.as_ref())
        .or_else(|| home.map(|home| home.join(".local/share")))
        .map(|share| share.join("jupyter"))
}

/// The data directory of `pip install --user`.
fn user_site_data_dir(
    platform: Platform,
    inputs: &PathInputs,
    home: Option<&Path>,
) -> Option<PathBuf> {
    let first = inputs.prefixes.first();
    if first.is_some_and(|prefix| is_isolated(prefix)) {
        return None;
    }
    let base = normalize(inputs.user_base.as_ref()).or_else(|| {
        let version = first.and_then(|prefix| framework_version(prefix));
        match version.filter(|_| platform == Platform::MacOs) {
            Some(version) => Some(home?.join("Library/Python").join(version)),
            None => Some(home?.join(".local")),
        }
    })?;
    Some(base.join("share/jupyter"))
}

/// The version of a macOS framework build of Python, which has another user base.
fn framework_version(prefix: &Path) -> Option<&Path> {
    let versions = prefix.parent()?;
    let framework = versions.parent()?;
    let is_framework = versions.ends_with("Versions")
        && framework
            .extension()
            .is_some_and(|extension| extension == "framework");
    is_framework.then_some(prefix.file_name().map(Path::new)?)
}

fn prefers_environments(inputs: &PathInputs) -> bool {
    if let Some(prefer) = inputs.prefer_env {
        return prefer;
    }
    let Some(prefix) = inputs.prefixes.first() else {
        return false;
    };
    let conda = prefix.join("conda-meta").is_dir() && !prefix.join("condabin").is_dir();
    (is_virtual_env(prefix) || conda) && is_owned_by_user(prefix)
}

fn is_virtual_env(prefix: &Path) -> bool {
    prefix.join("pyvenv.cfg").is_file()
}

/// Whether a virtual environment has no access to system packages.
fn is_isolated(prefix: &Path) -> bool {
    let Ok(text) = crate::bounded_read::read(&prefix.join("pyvenv.cfg")) else {
        return is_virtual_env(prefix);
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

fn is_owned_by_user(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
}
