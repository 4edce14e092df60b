//! Lists of environment variables.

use std::ffi::OsString;

/// Sets one variable.
pub fn set_variable(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(other, _)| other != name);
    env.push((name.into(), value));
}
