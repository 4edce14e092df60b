//! Secrets in names and texts: which names of variables and members mark their value as a secret, and which parts of a text
//! are credentials. [`redact`] is the only function that removes them from texts for users, logs and traces.

mod name;
mod text;

pub use name::is_secret_name;
pub use text::{contains_credentials, redact};

/// Whether the value of an environment variable is a secret: by its name, or because it contains credentials.
///
/// Empty values and flags such as `1` or `true` are no secrets, whatever their name.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    const FLAGS: [&str; 8] = ["0", "1", "true", "false", "yes", "no", "on", "off"];
    let value = value.trim();
    if value.is_empty() || FLAGS.iter().any(|flag| value.eq_ignore_ascii_case(flag)) {
        return false;
    }
    let is_number = value.len() <= 9 && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && name.to_ascii_uppercase().contains("TOKENS") {
        // A number of tokens of a language model.
        return false;
    }
    is_secret_name(name)
        || contains_credentials(value)
        || name::is_data_source(name) && has_password(value)
}

/// Whether the name of a data source contains a password without being a URL: `user:password@tcp(host)/database`.
fn has_password(value: &str) -> bool {
    let login = value.split_once('@').map(|(login, _)| login);
    login.is_some_and(|login| {
        login
            .split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests;
