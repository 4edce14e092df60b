//! [`StagedKernelspec`]: a kernelspec that a client adds for the gateway, so that the gateway starts the client's program.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use cellwright_jupyter::kernelspec::{InterruptMode, Kernelspec};
use cellwright_stdext::private::{self, PrivateDir};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::LocalGatewayError;
use crate::files::GatewayDir;

/// The placeholder that the gateway replaces.
const CONNECTION_FILE: &str = "{connection_file}";

/// A kernelspec for the gateway. All programs in it are absolute paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedKernelspec {
    /// The name by which the gateway starts it. It depends on the content.
    pub name: String,
    /// The content of `kernel.json`.
    pub content: String,
}

impl StagedKernelspec {
    /// The kernelspec with the program that `python` selects.
    pub fn new(kernelspec: &Kernelspec, python: Option<&Path>) -> Result<Self, LocalGatewayError> {
        let not_utf8 = |_: OsString| LocalGatewayError::NotUtf8 {
            name: kernelspec.name.clone(),
        };
        // The command has an absolute path of the connection file. The gateway inserts one, too.
        let root = format!("/{CONNECTION_FILE}");
        let command = kernelspec.command(Path::new(&root), python);
        let argv: Result<Vec<String>, _> = command.into_iter().map(OsString::into_string).collect();
        let argv = argv.map_err(not_utf8)?.into_iter();
        let mut argv: Vec<String> = argv
            .map(|argument| argument.replace(&root, CONNECTION_FILE))
            .collect();
        if kernelspec.is_ipykernel() {
            // As without a gateway: the code of agents and scripts does not belong into the user's history.
            argv.push("--HistoryManager.hist_file=:memory:".to_owned());
        }
        let content = json!({
            "argv": argv,
            "display_name": kernelspec.display_name,
            "language": kernelspec.language,
            "interrupt_mode": match kernelspec.interrupt {
                InterruptMode::Signal => "signal",
                InterruptMode::Message => "message",
            },
            "metadata": kernelspec.metadata,
        });
        let content = content.to_string();
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let allowed = |character: char| match character {
            'a'..='z' | '0'..='9' | '.' | '-' | '_' => character,
            _ => '_',
        };
        let base: String = kernelspec
            .name
            .to_lowercase()
            .chars()
            .map(allowed)
            .collect();
        Ok(Self {
            name: format!("{base}-{:016x}", hasher.finish()),
            content,
        })
    }

    /// Whether the gateway has the kernelspec already.
    pub fn exists(&self, dir: &GatewayDir) -> bool {
        let file = self.dir(dir).join("kernel.json");
        fs::read(file).is_ok_and(|content| content == self.content.as_bytes())
    }

    /// Adds the kernelspec for all gateways of a directory.
    pub fn write(&self, dir: &GatewayDir) -> Result<(), LocalGatewayError> {
        let path = PrivateDir::create(&self.dir(dir))?;
        let file = path.path().join("kernel.json");
        let written = private::replace_file(&file, self.content.as_bytes());
        written.map_err(LocalGatewayError::io("write", file))
    }

    fn dir(&self, dir: &GatewayDir) -> std::path::PathBuf {
        dir.kernelspecs().join("kernels").join(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interpreter_has_its_own_kernelspec() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = GatewayDir::create(&temp_dir.path().join("gateway")).unwrap();
        let staged = |python: &str| {
            let kernelspec = Kernelspec::ipykernel(Path::new(python));
            StagedKernelspec::new(&kernelspec, Some(Path::new(python))).unwrap()
        };
        let (one, other) = (staged("/a/bin/python"), staged("/b/bin/python"));
        assert_ne!(one.name, other.name);
        assert_eq!(one, staged("/a/bin/python"));
        assert!(!one.exists(&dir));
        one.write(&dir).unwrap();
        assert!(one.exists(&dir) && !other.exists(&dir));
        let content: serde_json::Value = serde_json::from_str(&one.content).unwrap();
        assert_eq!(content["argv"][0], "/a/bin/python");
        assert!(
            content["argv"]
                .as_array()
                .unwrap()
                .contains(&CONNECTION_FILE.into())
        );
    }
}
