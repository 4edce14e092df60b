//! Kernels on Jupyter servers: which server, which kernelspec, or which running kernel.

use std::path::Path;
use std::sync::Arc;

use cellwright_diagnostics::failure::{Failure, Kind, command, flag, flag_value, hint};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_gateway::{
    RemoteKernel, RemoteKernelspecs, RemoteSession, ServerClient, ServerError,
};
use cellwright_kernel::backend::jupyter::gateway::{GatewaySpec, GatewayTarget};
use cellwright_kernel::{KernelError, KernelSpec};

use super::local;
use super::selection::{KernelMatch, KernelRequest, KernelSelection};
use crate::engine::Engine;
use crate::env;
use crate::environment;
use crate::runtime;
use crate::servers::{self, ResolvedServer};
use crate::settings::Settings;

/// How many kernels an error lists.
const LISTED_KERNELS_MAX: usize = 8;

/// The kernelspec that a notebook names, and its language.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotebookKernel<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) language: Option<&'a str>,
    pub(super) is_python: bool,
}

/// Selects a kernel on the server that the request names, else on that of the settings.
pub(super) fn select(
    engine: &Engine,
    settings: &Settings,
    request: &KernelRequest,
    notebook: Option<NotebookKernel<'_>>,
    cwd: &Path,
) -> Result<KernelSelection, Failure> {
    let Some(resolved) = server(settings, request)? else {
        return local::select(engine, settings, request, notebook, cwd);
    };
    let client = || ServerClient::new(Arc::new(resolved.server.clone())).map_err(Failure::from);
    let mut notices = resolved.notices.clone();
    let mut accepts = KernelMatch::Exact;
    let target = if let Some(existing) = &request.existing {
        let id = find_running(&client()?, &existing.to_string_lossy())?;
        GatewayTarget::Existing { id }
    } else {
        let named = request.kernel.as_deref();
        let kernelspec = match (named, notebook) {
            (Some(name), _) => Some(find_kernelspec(&client()?, name)?),
            (None, Some(notebook)) => {
                // A run writes the kernel's name into the metadata. The next run must still accept the session's kernel.
                accepts = KernelMatch::SameServer;
                let default = resolved.kernel.as_deref();
                notebook_kernelspec(&client()?, notebook, default, &mut notices)?
            }
            (None, None) => {
                accepts = KernelMatch::SameServer;
                let by_setting = settings.kernel.name.clone();
                resolved.kernel.clone().or(by_setting)
            }
        };
        GatewayTarget::Start {
            kernelspec,
            env: start_variables(settings, &resolved.env),
            prelude: settings.kernel.prelude,
        }
    };
    Ok(KernelSelection {
        spec: KernelSpec::Gateway(GatewaySpec {
            server: Box::new(resolved.server),
            target,
            files: resolved.files,
            local: None,
            start_timeout: super::start_timeout(settings),
            interrupt_grace: super::interrupt_grace(settings),
        }),
        accepts,
        cwd: cwd.into(),
        project_interpreter: None,
        notices,
    })
}

/// The server of a request. `None`: the shared gateway of this user.
fn server(settings: &Settings, request: &KernelRequest) -> Result<Option<ResolvedServer>, Failure> {
    let resolved = match &request.gateway {
        Some(choice) => Some(servers::resolve(settings, choice)?),
        None => servers::resolve_default(settings)?,
    };
    let Some(resolved) = resolved else {
        return Ok(None);
    };
    if request.python.is_some() {
        let label = resolved.server.label();
        let message = format!("The server {label} does not start the interpreters of this machine");
        return Err(Failure::new(Kind::BadArguments, message).hint(hint![
            "leave out ",
            flag("python"),
            "; ",
            flag_value("kernel", "NAME"),
            " names a kernel that is installed on the server",
        ]));
    }
    Ok(Some(resolved))
}

/// The variables that a kernel on a server starts with: those that the settings of the server name, and those that the
/// caller requests.
fn start_variables(settings: &Settings, names: &[String]) -> Vec<(String, String)> {
    let rules = settings.environment_rules();
    let mut variables: Vec<(String, String)> = Vec::new();
    let is_named = |name: &str, value: &std::ffi::OsStr| {
        names.iter().any(|entry| match entry.strip_suffix('*') {
            // As for other kernels, a prefix passes no secrets.
            Some(prefix) => name.starts_with(prefix) && !environment::is_secret(name, value),
            None => entry == name,
        })
    };
    for (name, value) in env::all() {
        let (Some(name), Some(text)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        let is_requested = rules.requested.iter().any(|(other, _)| other == name);
        if is_requested || is_named(name, &value) {
            variables.push((name.to_owned(), text.to_owned()));
        }
    }
    let given = |(name, value): &(String, Option<String>)| Some((name.clone(), value.clone()?));
    let given = rules.requested.iter().filter_map(given);
    for (name, value) in rules.set.iter().cloned().chain(given) {
        variables.retain(|(other, _)| *other != name);
        variables.push((name, value));
    }
    variables
}

fn kernelspecs(client: &ServerClient) -> Result<RemoteKernelspecs, Failure> {
    Ok(runtime::block_on(client.kernelspecs())??)
}

/// The name of an installed kernelspec, as the server writes it.
fn find_kernelspec(client: &ServerClient, name: &str) -> Result<String, Failure> {
    let installed = kernelspecs(client)?;
    if let Some(found) = installed.find(name) {
        return Ok(found.name.clone());
    }
    let names = installed.kernelspecs.into_iter();
    let available: Vec<String> = names.map(|kernelspec| kernelspec.name).collect();
    let label = client.server().label();
    let list = available.join(", ");
    let failure = Failure::from(KernelError::NoKernelspec {
        name: name.to_owned(),
        available,
        searched: Vec::new(),
    });
    // The other hints are about kernels of this machine.
    let mut hints = failure.hints.clone();
    hints.retain(|hint| !hint.names_command("kernels") && !hint.names_command("doctor"));
    let mut failure = Failure { hints, ..failure };
    failure.message = format!("There is no kernel named `{name}` on the server {label}");
    Err(failure.hint(if list.is_empty() {
        "the server has no kernels".to_owned()
    } else {
        format!("installed there: {list}")
    }))
}

/// The kernelspec for a notebook: the one that it names if the server has it, else one of the same language.
fn notebook_kernelspec(
    client: &ServerClient,
    notebook: NotebookKernel<'_>,
    default: Option<&str>,
    notices: &mut Vec<UserNotice>,
) -> Result<Option<String>, Failure> {
    let installed = kernelspecs(client)?;
    if let Some(found) = notebook.name.and_then(|name| installed.find(name)) {
        return Ok(Some(found.name.clone()));
    }
    let is_language = |language: &str| match notebook.language {
        Some(wanted) => language.eq_ignore_ascii_case(wanted),
        None => notebook.is_python && language.eq_ignore_ascii_case("python"),
    };
    let preferred = [default, installed.default.as_deref()];
    let preferred = preferred.into_iter().flatten();
    let preferred = preferred.filter_map(|name| installed.find(name));
    let mut candidates = preferred.chain(&installed.kernelspecs);
    let label = client.server().label();
    let Some(found) = candidates.find(|kernelspec| is_language(&kernelspec.language)) else {
        let wanted = notebook.language.or(notebook.name).unwrap_or("Python");
        let message = format!("The server {label} has no kernel for a notebook in {wanted}");
        let names = installed.kernelspecs.iter();
        let names: Vec<&str> = names.map(|kernelspec| kernelspec.name.as_str()).collect();
        return Err(Failure::new(Kind::Kernel, message).hint(hint![
            format!("installed there: {}; ", names.join(", ")),
            flag_value("kernel", "NAME"),
            " selects one",
        ]));
    };
    if let Some(name) = notebook
        .name
        .filter(|name| !super::jupyter::is_default_python_name(name))
    {
        let text = format!(
            "the server {label} has no kernel `{name}`, which the notebook's metadata names; `{}` is used instead",
            found.name
        );
        notices.push(UserNotice::new(NoticeKind::KernelReplaced, text));
    }
    Ok(Some(found.name.clone()))
}

/// The id of a running kernel: by the start of its id, or by the path of its notebook on the server.
pub fn find_running(client: &ServerClient, text: &str) -> Result<String, Failure> {
    if is_kernel_id(text) {
        // The server need not list its kernels.
        return Ok(text.to_owned());
    }
    let (kernels, sessions) = list_running(client)?;
    let label = client.server().label();
    choose_running(&kernels, &sessions, text).map_err(|problem| {
        let mut failure =
            Failure::new(Kind::KernelGone, format!("{problem} on the server {label}"));
        let shown = kernels.iter().take(LISTED_KERNELS_MAX);
        let describe = |kernel: &RemoteKernel| format!("{} ({})", kernel.id, kernel.name);
        failure.causes.extend(shown.map(describe));
        failure.hint(hint![
            command("kernels list --gateway NAME"),
            " lists the kernels and the notebooks of a server",
        ])
    })
}

/// The kernels of a server, and the notebooks that have them.
pub fn list_running(
    client: &ServerClient,
) -> Result<(Vec<RemoteKernel>, Vec<RemoteSession>), Failure> {
    let (kernels, sessions) =
        runtime::block_on(async { tokio::join!(client.kernels(), client.sessions()) })?;
    let kernels = kernels.map_err(|error| match error {
        ServerError::Unauthorized {
            has_credentials: true,
            status: 403,
            ..
        } => {
            let label = client.server().label();
            let message = format!("The server {label} does not list its kernels");
            Failure::new(Kind::ServerRefused, message).hint(hint![
                "give the whole id of the kernel with ",
                flag("existing"),
            ])
        }
        error => error.into(),
    })?;
    // Not every server has sessions.
    Ok((kernels, sessions.unwrap_or_default()))
}

/// Whether a text is the whole id of a kernel: a UUID.
fn is_kernel_id(text: &str) -> bool {
    let is_dash = |index: usize| [8, 13, 18, 23].contains(&index);
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match byte {
            b'-' => is_dash(index),
            byte => byte.is_ascii_hexdigit() && !is_dash(index),
        })
}

/// Chooses a kernel of the lists of a server; the error states why there is no choice.
fn choose_running(
    kernels: &[RemoteKernel],
    sessions: &[RemoteSession],
    text: &str,
) -> Result<String, String> {
    let path = text.trim_start_matches("./").trim_start_matches('/');
    let has_path = |session: &&RemoteSession| {
        let known = session.path.as_deref().unwrap_or_default();
        !path.is_empty() && known.trim_start_matches('/') == path
    };
    if let Some(kernel) = sessions
        .iter()
        .find(has_path)
        .and_then(|session| session.kernel.as_ref())
    {
        return Ok(kernel.id.clone());
    }
    let lower = text.to_ascii_lowercase();
    let mut found = kernels
        .iter()
        .filter(|kernel| !text.is_empty() && kernel.id.to_ascii_lowercase().starts_with(&lower));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => Err(format!("The ids of several kernels start with `{text}`")),
        (None, _) => Err(format!("There is no kernel and no notebook `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(id: &str) -> RemoteKernel {
        serde_json::from_value(serde_json::json!({"id": id, "name": "python3"})).unwrap()
    }

    #[test]
    fn running_kernels_are_chosen_by_prefix_and_notebook() {
        let kernels = [kernel("ab12"), kernel("ab34"), kernel("cd56")];
        let session = serde_json::json!({"path": "lab/a.ipynb", "kernel": kernels[2]});
        let sessions = [serde_json::from_value(session).unwrap()];
        let choose = |text: &str| choose_running(&kernels, &sessions, text);
        assert_eq!(choose("ab1").as_deref(), Ok("ab12"));
        assert_eq!(choose("CD").as_deref(), Ok("cd56"));
        for path in ["lab/a.ipynb", "/lab/a.ipynb", "./lab/a.ipynb"] {
            assert_eq!(choose(path).as_deref(), Ok("cd56"), "{path}");
        }
        assert!(choose("ab").unwrap_err().contains("several"));
        for text in ["x", "", "a.ipynb", "/"] {
            assert!(choose(text).unwrap_err().contains("no kernel"), "{text}");
        }
    }

    #[test]
    fn whole_ids_are_recognised() {
        assert!(is_kernel_id("0b7c5d0e-3a5f-4d62-9c3e-6a0f1d2c3b4a"));
        for text in [
            "",
            "0b7c5d0e",
            "0b7c5d0e-3a5f-4d62-9c3e-6a0f1d2c3b4",
            "0b7c5d0e+3a5f-4d62-9c3e-6a0f1d2c3b4a",
        ] {
            assert!(!is_kernel_id(text), "{text}");
        }
    }
}
