//! Selects the kernel of a notebook: the one that the caller names, else the one in the notebook's metadata if it can be
//! started, else the built-in runner if the notebook is in Python. Python notebooks without a kernel in the metadata count as
//! notebooks of `python3`, which a run writes there: each run selects the same kernel.

use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind, command, flag, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::Listing;
use cellwright_kernel::KernelSpec;
use cellwright_kernel::backend::jupyter::JupyterSpec;

use super::gateway::{self, NotebookKernel};
use super::jupyter;
use super::selection::{KernelMatch, KernelRequest, KernelSelection, check_contradictions};
use crate::engine::Engine;
use crate::ipykernel::{self, IpykernelStatus};
use crate::settings::{Backend, Origin, Settings};

/// The kernel of Python notebooks that name none.
const DEFAULT_KERNEL: &str = "python3";

/// Returns the kernel for a notebook, and a notice if another one replaces the kernel in its metadata.
pub fn select_for_notebook(
    engine: &Engine,
    settings: &Settings,
    request: &KernelRequest,
    listing: &Listing,
    cwd: &Path,
) -> Result<(KernelSelection, Option<UserNotice>), Failure> {
    let is_named = request.existing.is_some() || request.kernel.is_some();
    let by_setting = *settings.origin("kernel.backend") != Origin::Default;
    let on_server = request.gateway.as_ref().map(|_| Backend::Gateway);
    let backend = request
        .backend
        .or(on_server)
        .or_else(|| by_setting.then_some(settings.kernel.backend));
    let named_python = request.python.is_some();
    match backend {
        _ if is_named => {}
        Some(Backend::Jupyter) => {
            let use_metadata = !(named_python && is_python(listing));
            let request = KernelRequest {
                backend: Some(Backend::Jupyter),
                kernel: listing
                    .kernel_name()
                    .filter(|_| use_metadata)
                    .or(settings.kernel.name.as_deref())
                    .or_else(|| kernel_name(listing).filter(|_| use_metadata))
                    .map(str::to_owned),
                ..request.clone()
            };
            let selection = KernelSelection::new(engine, settings, &request, cwd)?;
            // A run writes the kernel's name into the metadata. The next run must still accept the session's kernel.
            let accepts = if use_metadata && is_python(listing) {
                KernelMatch::AnyJupyter
            } else {
                selection.accepts
            };
            return Ok((
                KernelSelection {
                    accepts,
                    ..selection
                },
                None,
            ));
        }
        Some(Backend::Gateway) => {
            let notebook = NotebookKernel {
                name: kernel_name(listing),
                language: listing.language(),
                is_python: is_python(listing),
            };
            check_contradictions(request)?;
            let selection = gateway::select(engine, settings, request, Some(notebook), cwd)?;
            return Ok((selection, None));
        }
        Some(Backend::Runner) => require_python(listing)?,
        // An interpreter that the caller names runs the notebook itself.
        None if named_python && is_python(listing) => {
            let request = KernelRequest {
                backend: Some(Backend::Runner),
                ..request.clone()
            };
            return Ok((KernelSelection::new(engine, settings, &request, cwd)?, None));
        }
        None => return select_by_metadata(engine, settings, request, listing, cwd),
    }
    let request = KernelRequest {
        backend,
        ..request.clone()
    };
    Ok((KernelSelection::new(engine, settings, &request, cwd)?, None))
}

fn select_by_metadata(
    engine: &Engine,
    settings: &Settings,
    request: &KernelRequest,
    listing: &Listing,
    cwd: &Path,
) -> Result<(KernelSelection, Option<UserNotice>), Failure> {
    let runner = || {
        let request = KernelRequest {
            backend: Some(Backend::Runner),
            ..request.clone()
        };
        let selection = KernelSelection::new(engine, settings, &request, cwd)?;
        // Nothing names this kernel, so the session may have another one.
        Ok::<_, Failure>(KernelSelection {
            accepts: KernelMatch::Any,
            ..selection
        })
    };
    let Some(name) = kernel_name(listing) else {
        require_python(listing)?;
        return Ok((runner()?, None));
    };
    let selected =
        jupyter::select_kernelspec(engine, settings, Some(name), request.python.as_deref(), cwd);
    let problem = match selected {
        Ok(selection) => match interpreter_without_ipykernel(&selection) {
            // The name in the metadata may come from an earlier run on another kernel.
            None if is_python(listing) => {
                let accepts = KernelMatch::Any;
                return Ok((
                    KernelSelection {
                        accepts,
                        ..selection
                    },
                    None,
                ));
            }
            None => return Ok((selection, None)),
            Some(python) => format!("{} has no ipykernel", python.display()),
        },
        Err(failure) if !is_python(listing) => return Err(failure),
        Err(failure) => failure.message,
    };
    if !is_python(listing) {
        // The start reports what is missing.
        let selection = jupyter::select_kernelspec(
            engine,
            settings,
            Some(name),
            request.python.as_deref(),
            cwd,
        )?;
        return Ok((selection, None));
    }
    // The metadata of most Python notebooks has this name: no notice for it.
    let is_default = jupyter::is_default_python_name(name);
    let notice = (!is_default).then(|| {
        UserNotice::new(
            NoticeKind::KernelReplaced,
            format!(
                "the kernel `{name}` in the notebook's metadata cannot be started ({problem}); the built-in \
                 Python runner is used instead"
            ),
        )
    });
    Ok((runner()?, notice))
}

/// The kernel that a notebook names, or that of Python notebooks.
fn kernel_name(listing: &Listing) -> Option<&str> {
    let default = || is_python(listing).then_some(DEFAULT_KERNEL);
    listing.kernel_name().or_else(default)
}

/// Whether a notebook is in Python. One without a language and a kernel name is, as most are.
fn is_python(listing: &Listing) -> bool {
    match listing.language() {
        Some(language) => language.eq_ignore_ascii_case("python"),
        None => listing
            .kernel_name()
            .is_none_or(|name| name.to_lowercase().contains("python")),
    }
}

fn require_python(listing: &Listing) -> Result<(), Failure> {
    if is_python(listing) {
        return Ok(());
    }
    let language = listing
        .language()
        .or_else(|| listing.kernel_name())
        .unwrap_or_default();
    let message =
        format!("The notebook is in {language}, and the built-in runner only runs Python");
    let failure = Failure::new(Kind::BadArguments, message);
    Err(failure.hint(hint![
        "name a kernel with ",
        flag("kernel"),
        "; ",
        command("kernels specs"),
        " lists them",
    ]))
}

/// Returns the interpreter of an ipykernel kernel if it has no ipykernel.
fn interpreter_without_ipykernel(selection: &KernelSelection) -> Option<PathBuf> {
    let KernelSpec::Jupyter(JupyterSpec {
        kernelspec,
        python,
        env,
        ..
    }) = &selection.spec
    else {
        return None;
    };
    if !kernelspec.is_ipykernel() {
        return None;
    }
    let command = kernelspec.command(Path::new(""), python.as_deref());
    let program = PathBuf::from(command.first()?);
    if has_ipykernel_files(&program) {
        return None;
    }
    // ipykernel may be in an unusual directory: ask the interpreter.
    let statuses = ipykernel::query_status(std::slice::from_ref(&program), env).ok()?;
    matches!(statuses.first(), Some(IpykernelStatus::Missing)).then_some(program)
}

/// Whether the package directory next to an interpreter contains ipykernel. This is faster than asking the interpreter.
fn has_ipykernel_files(python: &Path) -> bool {
    let Some(prefix) = python.parent().and_then(Path::parent) else {
        return false;
    };
    ipykernel::library_dirs(prefix).iter().any(|dir| {
        let packages = dir.join("site-packages");
        packages.join("ipykernel_launcher.py").is_file()
    })
}
