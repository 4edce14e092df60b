//! [`KernelProfile`]: what is known about a kernel before it replies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::python::{PythonSupport, SupportOptions};
use super::{AttachedSpec, JupyterSpec, NAME};
use crate::backend::runner::staging;
use crate::kernel::Description;
use crate::launch_context::LaunchContext;

/// What is known about a kernel before it replies, and how Cellwright treats it.
#[derive(Clone, Debug)]
pub(super) struct KernelProfile {
    /// The kernel's name.
    pub(super) name: String,
    /// The program that runs it.
    pub(super) interpreter: Option<PathBuf>,
    /// Its language, if its `kernel_info_reply` does not name one.
    pub(super) language: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) interrupt_grace: Duration,
    /// Directories for the Python files of the hooks.
    pub(super) staging: Vec<PathBuf>,
    /// Whether a Python kernel that Cellwright started gets the prelude.
    pub(super) prelude: bool,
}

impl KernelProfile {
    /// The profile of a kernel to start.
    pub(super) fn of_spec(spec: &JupyterSpec, context: &LaunchContext) -> Self {
        let kernelspec = &spec.kernelspec;
        let command = kernelspec.command(Path::new(""), spec.python.as_deref());
        let language = Some(&kernelspec.language).filter(|language| !language.is_empty());
        let off =
            |(name, value): &(OsString, OsString)| name == "CELLWRIGHT_PRELUDE" && value == "0";
        Self {
            name: kernelspec.name.clone(),
            interpreter: command.into_iter().next().map(PathBuf::from),
            language: language.cloned(),
            display_name: Some(kernelspec.display_name.clone()),
            interrupt_grace: spec.interrupt_grace,
            staging: context.staging.clone(),
            prelude: !spec.env.iter().any(off),
        }
    }

    /// The profile of a running kernel.
    pub(super) fn of_attached(spec: &AttachedSpec, context: &LaunchContext) -> Self {
        let name = spec.connection_file.file_stem().unwrap_or_default();
        Self {
            name: name.to_string_lossy().into_owned(),
            interpreter: None,
            language: None,
            display_name: None,
            interrupt_grace: spec.interrupt_grace,
            staging: context.staging.clone(),
            prelude: false,
        }
    }

    /// The hooks for a Python kernel; `None` for other kernels, and if the files of the hooks cannot be written anywhere.
    /// An attached kernel is changed only as far as queries need it.
    pub(super) fn hooks(&self, info: &Value, is_attached: bool) -> Option<PythonSupport> {
        let language = self.language(info)?;
        if !language.eq_ignore_ascii_case("python") {
            return None;
        }
        let dir = staging::stage(&self.staging).ok()?;
        let options = SupportOptions {
            prelude: self.prelude && !is_attached,
            cwd_first: !is_attached,
        };
        Some(PythonSupport::new(dir, options))
    }

    fn language<'a>(&'a self, info: &'a Value) -> Option<&'a str> {
        let language = info["language_info"]["name"].as_str();
        language.or(self.language.as_deref())
    }

    /// Describes the kernel, whose `kernel_info_reply` has the content `info`.
    pub(super) fn describe(self, pid: Option<u32>, info: &Value) -> Description {
        Description {
            backend: NAME,
            language: self.language(info).map(str::to_owned),
            name: self.name,
            pid,
            interpreter: self.interpreter,
            version: info["language_info"]["version"].as_str().map(str::to_owned),
            display_name: self.display_name,
            language_info: info
                .get("language_info")
                .filter(|language| language.is_object())
                .map(|language| Arc::new(language.clone())),
        }
    }
}
