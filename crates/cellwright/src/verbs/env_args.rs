//! Flags for the environment variables of kernels, shared by every verb that runs code.

use cellwright_engine::environment::{EnvironmentPolicy, EnvironmentRequest};
use clap::Args;

/// Flags for the environment variables of the kernel.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct EnvArgs {
    /// Pass this variable to the kernel even if it looks like a secret, or set it; can be repeated
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    env: Vec<(String, Option<String>)>,
    /// Pass all variables to the kernel, also those that look like secrets
    #[arg(long)]
    env_all: bool,
}

impl EnvArgs {
    pub(super) fn request(&self) -> EnvironmentRequest {
        EnvironmentRequest {
            policy: if self.env_all {
                EnvironmentPolicy::All
            } else {
                EnvironmentPolicy::NoSecrets
            },
            variables: self.env.clone(),
        }
    }
}

fn variable(text: &str) -> Result<(String, Option<String>), &'static str> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("expected NAME or NAME=VALUE");
    }
    Ok((name.to_owned(), value))
}
