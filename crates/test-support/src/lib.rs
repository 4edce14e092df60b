//! Shared by the tests of all crates: a test that cannot run on this machine reports it with [`skip`] and returns.
//!
//! `scripts/test` sets two variables. `CELLWRIGHT_TEST_REQUIRE` lists what the machine has (separated by blanks): a
//! test that misses one of these fails. `CELLWRIGHT_TEST_SKIPS` names the file that collects the skips, which
//! `scripts/test` prints at the end.
//!
//! For tests of the gateway client, [`GatewayServer`] starts real servers, and [`FaultProxy`], [`TlsFront`] and
//! [`ConnectProxy`] are placed between them and the client.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests read their variables and report here; a fixture that fails ends the test"
)]

mod connect_proxy;
mod fault_proxy;
mod gateway;
mod service;
mod tls;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

pub use self::connect_proxy::ConnectProxy;
pub use self::fault_proxy::{Direction, Fault, FaultProxy, Phase, Rule, SeenRequest};
pub use self::gateway::{Engine, GatewayOptions, GatewayServer, processes_of};
pub use self::tls::{Authority, Identity, TlsFront};

/// The variable with the Python interpreter that has the packages of `scripts/test-requirements.txt`.
pub const PYTHON: &str = "CELLWRIGHT_TEST_PYTHON";
const REQUIRE: &str = "CELLWRIGHT_TEST_REQUIRE";
const SKIPS: &str = "CELLWRIGHT_TEST_SKIPS";

/// Reports that the current test cannot run, or not as a whole, because the machine lacks `requirement` (one word).
/// Fails the test if `scripts/test` requires it.
pub fn skip(requirement: &str, reason: &str) {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    assert!(
        !required.split_whitespace().any(|word| word == requirement),
        "{requirement} is required here, but: {reason}"
    );
    let line = skip_line(requirement, reason);
    eprint!("skipped: {line}");
    if let Some(path) = std::env::var_os(SKIPS) {
        let file = File::options().create(true).append(true).open(path);
        // One write, so that lines of concurrent tests do not mix.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "{SKIPS}: {written:?}");
    }
}

/// The Python interpreter of the tests. Reports a skip if there is none.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os(PYTHON).map(PathBuf::from);
    if python.is_none() {
        skip("python", "CELLWRIGHT_TEST_PYTHON is not set");
    }
    python
}

/// Requirement, reason and the name of the test.
fn skip_line(requirement: &str, reason: &str) -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{requirement}: {reason} ({test})\n")
}

#[cfg(test)]
mod tests {
    use super::skip_line;

    #[test]
    fn a_skip_is_one_line() {
        assert_eq!(
            skip_line("disk", "no permission\n  to mount"),
            "disk: no permission to mount (tests::a_skip_is_one_line)\n"
        );
    }
}
