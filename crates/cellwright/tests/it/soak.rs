//! Runs the soak script for a short time.

use std::path::Path;
use std::process::Command;

#[test]
fn memory_use_of_a_host_under_load_is_limited() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("python3")
        .arg(root.join("scripts/soak"))
        .args(["--minutes", "0.15"])
        .env("CELLWRIGHT_SOAK_BINARY", env!("CARGO_BIN_EXE_cellwright"))
        .output()
        .unwrap();
    let texts =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}{}", texts[0], texts[1]);
}
