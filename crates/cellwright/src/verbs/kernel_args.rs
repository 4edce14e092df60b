//! Flags that select a kernel, shared by every verb that runs code.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_engine::kernels::KernelRequest;
use cellwright_engine::servers::ServerChoice;
use cellwright_engine::settings::Backend;
use cellwright_operations::seconds::parse_seconds;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Flags that select the kernel to start.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct KernelArgs {
    /// Python interpreter: a path, the directory of an environment, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    pub(super) python: Option<PathBuf>,
    /// Kernel, by the name of its kernelspec (see `cellwright kernels specs`)
    #[arg(long, value_name = "NAME")]
    pub(super) kernel: Option<String>,
    /// Backend that runs the code [default: jupyter with `--kernel`, otherwise by the settings or the notebook]
    #[arg(long, value_name = "BACKEND", value_parser = backend())]
    pub(super) backend: Option<Backend>,
    /// Jupyter server that runs the code: the name of a table `[server.NAME]` in the settings, or a URL
    #[arg(long, value_name = "NAME|URL", value_parser = server)]
    pub(super) gateway: Option<ServerChoice>,
    /// Time limit of the start of the kernel in seconds; 0 for none [default: the setting `kernel.start_timeout`,
    /// initially 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) start_timeout: Option<Duration>,
}

/// The flag that attaches to a running kernel.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct ExistingArg {
    /// Attach to a running kernel: its connection file, or the name of that file in Jupyter's runtime directory; with
    /// `--gateway`, the id of a kernel on the server or the start of it, or the path of its notebook there
    #[arg(long, value_name = "FILE|ID", conflicts_with_all = ["kernel", "python"])]
    pub(super) existing: Option<PathBuf>,
}

impl KernelArgs {
    pub(super) fn request(&self, existing: Option<&ExistingArg>) -> KernelRequest {
        KernelRequest {
            python: self.python.clone(),
            backend: self.backend,
            kernel: self.kernel.clone(),
            existing: existing.and_then(|arg| arg.existing.clone()),
            gateway: self.gateway.clone(),
            start_timeout: self.start_timeout,
        }
    }
}

/// Accepts every text: it may contain a token, which errors of the parser would print.
#[expect(clippy::unnecessary_wraps, reason = "the type of parsers")]
pub(super) fn server(text: &str) -> Result<ServerChoice, std::convert::Infallible> {
    Ok(ServerChoice::new(text))
}

fn backend() -> impl TypedValueParser<Value = Backend> {
    PossibleValuesParser::new(Backend::NAMES)
        .map(|name| Backend::from_name(&name).unwrap_or_default())
}

/// Parses an interpreter. A path is relative to the current directory, not to that of the kernel; anything else is
/// a command.
pub(super) fn interpreter(text: &str) -> std::io::Result<PathBuf> {
    let path = PathBuf::from(text);
    let is_place = path.components().count() > 1 && !path.starts_with("~");
    if is_place || path.exists() {
        return std::path::absolute(path);
    }
    Ok(path)
}
