//! The soak script, for a short while.

use std::path::Path;
use std::process::Command;

#[test]
fn a_host_that_is_driven_hard_does_not_grow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("python3")
        .arg(root.join("scripts/soak"))
        .args(["--minutes", "0.15"])
        .env("CELLWRIGHT_SOAK_BINARY", env!("CARGO_BIN_EXE_cellwright"))
        .output()
        .unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}{}", said[0], said[1]);
}
