//! The shell commands that install Python packages.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Packages whose names differ from those of their modules.
const PACKAGES: &[(&str, &str)] = &[
    ("Crypto", "pycryptodome"),
    ("IPython", "ipython"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "pymupdf"),
    ("git", "gitpython"),
    ("jwt", "pyjwt"),
    ("magic", "python-magic"),
    ("mpl_toolkits", "matplotlib"),
    ("pptx", "python-pptx"),
    ("psycopg2", "psycopg2-binary"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("umap", "umap-learn"),
    ("yaml", "pyyaml"),
];

/// The package that contains a module: usually the one with its name.
pub fn package_of(module: &str) -> &str {
    let found = PACKAGES.iter().find(|(name, _)| *name == module);
    found.map_or(module, |(_, package)| package)
}

/// The shell command that installs a package for an interpreter; `uv` is whether that program exists.
pub fn install_command(python: &Path, package: &str, uv: bool) -> String {
    let program = shell_quoted(python);
    let pip = format!("-m pip install {package}");
    let installation = PythonInstallation::inspect(python);
    if installation.externally_managed {
        // Only the system's package manager may install into it (PEP 668).
        return format!("{program} -m venv .venv && .venv/bin/python {pip}");
    }
    if installation.has_pip {
        return format!("{program} {pip}");
    }
    if uv {
        return format!("uv pip install --python {program} {package}");
    }
    format!("{program} -m ensurepip && {program} {pip}")
}

/// The directories of Python's standard library below a prefix.
pub fn library_dirs(prefix: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(prefix.join("lib")).into_iter().flatten();
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path())
        .collect()
}

/// Properties of an installation, from its files.
struct PythonInstallation {
    has_pip: bool,
    /// Whether only the system's package manager may install packages.
    externally_managed: bool,
}

impl PythonInstallation {
    fn inspect(python: &Path) -> Self {
        let prefix_of = |program: &Path| Some(program.parent()?.parent()?.to_owned());
        let mut prefix = prefix_of(python).unwrap_or_default();
        let is_environment = prefix.join("pyvenv.cfg").is_file();
        if !is_environment && let Ok(real) = python.canonicalize() {
            prefix = prefix_of(&real).unwrap_or_default();
        }
        let versions = library_dirs(&prefix);
        let has = |name: &str| versions.iter().any(|dir| dir.join(name).exists());
        Self {
            // For an unknown layout, such as a shim, use pip.
            has_pip: versions.is_empty() || has("site-packages/pip") || has("dist-packages/pip"),
            externally_managed: !is_environment && has("EXTERNALLY-MANAGED"),
        }
    }
}

/// A path, quoted for a shell if necessary.
pub fn shell_quoted(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    let text = path.to_string_lossy();
    if text.chars().all(plain) && path.as_os_str() != OsStr::new("") {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
