//! Lists the runner's Python files, so that the crate embeds all of them.

use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo passes paths to build scripts in environment variables"
    )]
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = PathBuf::from(root).join("python");
    println!(
        "cargo:rerun-if-changed={}",
        root.join("cellwright_runner").display()
    );
    let mut files = Vec::new();
    collect_python_files(&root.join("cellwright_runner"), &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file);
        let (name, file) = (name.display(), file.display());
        list.push_str(&format!(
            "    ({:?}, include_bytes!({:?})),\n",
            name.to_string(),
            file.to_string()
        ));
    }
    list.push_str("]\n");
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo passes paths to build scripts in environment variables"
    )]
    let out_dir = std::env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out_dir).join("runner_files.rs"), list)
}

fn collect_python_files(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "__pycache__") {
                println!("cargo:rerun-if-changed={}", path.display());
                collect_python_files(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "py") {
            println!("cargo:rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}
