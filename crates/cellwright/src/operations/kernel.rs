//! Which kernel a request asks for.

use std::path::PathBuf;

use crate::kernels::KernelFlags;
use crate::settings::Backend;

/// The kernel that code is to run on. Fields that are `None` follow the settings, or the notebook.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelRequest {
    /// Interpreter: a path, the directory of an environment, or a command.
    pub(crate) python: Option<PathBuf>,
    pub(crate) backend: Option<Backend>,
    /// Name of a kernelspec.
    pub(crate) kernel: Option<String>,
    /// Connection file of a running kernel.
    pub(crate) existing: Option<PathBuf>,
}

impl KernelRequest {
    pub(super) fn flags(&self) -> KernelFlags<'_> {
        KernelFlags {
            python: self.python.as_deref(),
            backend: self.backend,
            kernel: self.kernel.as_deref(),
            existing: self.existing.as_deref(),
        }
    }
}
