//! [`KernelProfile`]: what is known about a kernel before it replies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_gateway::RemoteKernel;
use serde_json::Value;

use super::gateway::{self, FileAccess, GatewaySpec, GatewayTarget};
use super::python::{PythonSupport, SupportFiles, SupportOptions};
use super::{AttachedSpec, JupyterSpec, NAME};
use crate::backend::runner::staging;
use crate::kernel::Description;
use crate::launch_context::LaunchContext;

/// What is known about a kernel before it replies, and how Cellwright treats it.
#[derive(Clone, Debug)]
pub(super) struct KernelProfile {
    /// The name of the backend.
    pub(super) backend: &'static str,
    /// The kernel's name.
    pub(super) name: String,
    /// The server that it runs on.
    pub(super) server: Option<String>,
    /// Its id on the server.
    pub(super) kernel_id: Option<String>,
    /// The program that runs it.
    pub(super) interpreter: Option<PathBuf>,
    /// Its language, if its `kernel_info_reply` does not name one.
    pub(super) language: Option<String>,
    pub(super) display_name: Option<String>,
    pub(super) interrupt_grace: Duration,
    /// Whether it can read files of this machine.
    pub(super) files: FileAccess,
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
            backend: NAME,
            name: kernelspec.name.clone(),
            server: None,
            kernel_id: None,
            interpreter: command.into_iter().next().map(PathBuf::from),
            language: language.cloned(),
            display_name: Some(kernelspec.display_name.clone()),
            interrupt_grace: spec.interrupt_grace,
            files: FileAccess::ThisMachine,
            staging: context.staging.clone(),
            prelude: !spec.env.iter().any(off),
        }
    }

    /// The profile of a running kernel.
    pub(super) fn of_attached(spec: &AttachedSpec, context: &LaunchContext) -> Self {
        let name = spec.connection_file.file_stem().unwrap_or_default();
        Self {
            backend: NAME,
            name: name.to_string_lossy().into_owned(),
            server: None,
            kernel_id: None,
            interpreter: None,
            language: None,
            display_name: None,
            interrupt_grace: spec.interrupt_grace,
            files: FileAccess::ThisMachine,
            staging: context.staging.clone(),
            prelude: false,
        }
    }

    /// The profile of a kernel on a server.
    pub(super) fn of_gateway(
        spec: &GatewaySpec,
        kernel: RemoteKernel,
        context: &LaunchContext,
    ) -> Self {
        let prelude = match &spec.target {
            GatewayTarget::Start { prelude, .. } => *prelude,
            GatewayTarget::Existing { .. } => false,
        };
        let local = spec.local.as_deref();
        Self {
            backend: gateway::NAME,
            // On the shared gateway, kernelspecs have other names than those that the user knows.
            name: local.map_or(kernel.name, |local| local.name.clone()),
            server: Some(spec.server.short_label()),
            kernel_id: Some(kernel.id),
            interpreter: local.map(|local| local.program.clone()),
            language: None,
            display_name: local.map(|local| local.display_name.clone()),
            interrupt_grace: spec.interrupt_grace,
            files: spec.files,
            staging: context.staging.clone(),
            prelude,
        }
    }

    /// The hooks for a Python kernel; `None` for other kernels, and if the files of the hooks cannot be written anywhere.
    /// An attached kernel is changed only as far as queries need it.
    pub(super) fn hooks(&self, info: &Value, is_attached: bool) -> Option<PythonSupport> {
        let language = self.language(info)?;
        if !language.eq_ignore_ascii_case("python") {
            return None;
        }
        let files = match self.files {
            FileAccess::ThisMachine => SupportFiles::Directory(staging::stage(&self.staging).ok()?),
            FileAccess::OtherMachine if is_attached => return None,
            FileAccess::OtherMachine => SupportFiles::Inline,
        };
        let options = SupportOptions {
            prelude: self.prelude && !is_attached,
            cwd_first: !is_attached,
        };
        Some(PythonSupport::new(files, options))
    }

    fn language<'a>(&'a self, info: &'a Value) -> Option<&'a str> {
        let language = info["language_info"]["name"].as_str();
        language.or(self.language.as_deref())
    }

    /// Describes the kernel, whose `kernel_info_reply` has the content `info`.
    pub(super) fn describe(self, pid: Option<u32>, info: &Value) -> Description {
        Description {
            backend: self.backend,
            language: self.language(info).map(str::to_owned),
            name: self.name,
            server: self.server,
            kernel_id: self.kernel_id,
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
