//! Kernels on the shared gateway of this user: the same kernels that the backend `jupyter` starts.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, command, flag, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_gateway::{PastedUrl, Server};
use cellwright_kernel::KernelSpec;
use cellwright_kernel::backend::jupyter::JupyterSpec;
use cellwright_kernel::backend::jupyter::gateway::{
    FileAccess, GatewaySpec, GatewayTarget, LocalGateway,
};
use cellwright_kernel::python::Interpreter;
use cellwright_kernel::variables::set_variable;
use cellwright_local_gateway::{GatewayDir, RunningGateway, StagedKernelspec, StartOptions};

use super::gateway::NotebookKernel;
use super::jupyter;
use super::selection::{KernelMatch, KernelRequest, KernelSelection};
use crate::engine::Engine;
use crate::local_gateway;
use crate::program::current_program;
use crate::settings::Settings;

/// Stands for the address until the kernel starts: the gateway may not run yet.
const NO_ADDRESS: &str = "http://127.0.0.1/";

/// Selects a kernel to start on the shared gateway.
pub(super) fn select(
    engine: &Engine,
    settings: &Settings,
    request: &KernelRequest,
    notebook: Option<NotebookKernel<'_>>,
    cwd: &Path,
) -> Result<KernelSelection, Failure> {
    if request.existing.is_some() {
        let message = "A running kernel is on a server, and none is named";
        return Err(Failure::new(Kind::BadArguments, message)
            .hint(hint!["name the server with ", flag("gateway")])
            .hint(hint![
                command("gateway status"),
                " shows the address of the shared gateway",
            ]));
    }
    let python = request.python.as_deref();
    // An interpreter that the caller names runs the notebook itself.
    let notebook = notebook.filter(|notebook| !(python.is_some() && notebook.is_python));
    let by_notebook = notebook.and_then(|notebook| notebook.name);
    let name = request.kernel.as_deref().or(by_notebook);
    let name = name.or(settings.kernel.name.as_deref());
    let select = |name| jupyter::select_kernelspec(engine, settings, name, python, cwd);
    let mut notices = Vec::new();
    let selection = match (select(name), notebook) {
        (Err(failure), Some(notebook)) if request.kernel.is_none() && notebook.is_python => {
            let name = name.unwrap_or_default();
            notices.push(UserNotice::new(
                NoticeKind::KernelReplaced,
                format!(
                    "the kernel `{name}` in the notebook's metadata cannot be started ({}); ipykernel is used instead",
                    failure.message
                ),
            ));
            select(None)?
        }
        (selected, _) => selected?,
    };
    let accepts = match notebook {
        // A run writes the kernel's name into the metadata. The next run must still accept the session's kernel.
        Some(notebook) if notebook.is_python && request.kernel.is_none() => KernelMatch::SameServer,
        _ => KernelMatch::Exact,
    };
    let KernelSpec::Jupyter(spec) = selection.spec else {
        return Ok(selection);
    };
    notices.extend(selection.notices);
    Ok(KernelSelection {
        spec: KernelSpec::Gateway(gateway_spec(settings, spec)?),
        accepts,
        notices,
        cwd: selection.cwd,
        project_interpreter: selection.project_interpreter,
    })
}

/// Finds the shared gateway, or starts it with an interpreter. Returns how to reach it.
pub async fn ensure_running(
    engine: &Engine,
    settings: &Settings,
    interpreter: &Interpreter,
) -> Result<Server, Failure> {
    let gateway = ensure_gateway(engine, settings, interpreter).await?;
    Ok(local_gateway::server(&gateway))
}

/// Finds the shared gateway, or starts it with an interpreter.
pub async fn ensure_gateway(
    engine: &Engine,
    settings: &Settings,
    interpreter: &Interpreter,
) -> Result<RunningGateway, Failure> {
    let options = StartOptions {
        program: current_program(),
        python: interpreter.program.clone(),
        env: super::kernel_env(engine, settings, Some(interpreter)),
        start_timeout: super::unlimited_if_zero(settings.gateway.start_timeout),
        idle_timeout: settings.gateway.idle_timeout,
    };
    let gateway = async {
        let dir = GatewayDir::create(&local_gateway::dir())?;
        cellwright_local_gateway::ensure_running(&dir, &options, None).await
    };
    gateway.await.map_err(local_gateway::into_failure)
}

/// The kernel of a specification, on the shared gateway.
fn gateway_spec(settings: &Settings, spec: JupyterSpec) -> Result<GatewaySpec, Failure> {
    let id = KernelSpec::Jupyter(spec.clone()).id().to_string();
    let kernel = id.strip_prefix("jupyter:").unwrap_or(&id).to_owned();
    let JupyterSpec {
        kernelspec,
        python,
        mut env,
        start_timeout,
        interrupt_grace,
        ..
    } = spec;
    let staged = StagedKernelspec::new(&kernelspec, python.as_deref());
    let staged = staged.map_err(local_gateway::into_failure)?;
    let command = kernelspec.command(Path::new(""), python.as_deref());
    let program: PathBuf = command.into_iter().next().unwrap_or_default().into();
    for (name, value) in kernelspec.environment(&env) {
        if let Some(name) = name.to_str() {
            set_variable(&mut env, name, value);
        }
    }
    let address = PastedUrl::parse(NO_ADDRESS)
        .map_err(|error| Failure::new(Kind::Bug, format!("{NO_ADDRESS} is not a URL: {error}")))?;
    Ok(GatewaySpec {
        server: Box::new(Server {
            name: Some(local_gateway::NAME.to_owned()),
            ..Server::new(address.url)
        }),
        target: GatewayTarget::Start {
            kernelspec: Some(staged.name),
            env: Vec::new(),
            prelude: settings.kernel.prelude,
        },
        files: FileAccess::ThisMachine,
        local: Some(Box::new(LocalGateway {
            dir: local_gateway::dir(),
            python: python.unwrap_or_else(|| "python3".into()),
            env,
            kernel,
            needs_ipykernel: kernelspec.is_ipykernel(),
            name: kernelspec.name,
            display_name: kernelspec.display_name,
            program,
            kernelspec: staged.content,
            start_timeout: super::unlimited_if_zero(settings.gateway.start_timeout),
            idle_timeout: settings.gateway.idle_timeout,
        })),
        start_timeout,
        interrupt_grace,
    })
}
