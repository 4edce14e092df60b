//! The values of an argument: sessions, kernels, runs, cells and fixed names. No host is started, no code runs.

use std::path::Path;
use std::time::Duration;

use cellwright_engine::engine::Engine;
use cellwright_engine::kernels::working_directory;
use cellwright_engine::settings::ServerSettings;
use cellwright_host::kernel_host::KernelHost;
use cellwright_notebook::{Cells, file, outline};
use cellwright_operations::kernel_specs::kernel_names;
use cellwright_stdext::secret::redact;
use clap::Arg;

use super::{Candidate, Position};

/// A host that does not answer in time has no candidates.
const HOST_TIMEOUT: Duration = Duration::from_secs(1);

/// The candidates for an argument; `None` for the names of files.
pub(super) fn candidates(
    arg: &Arg,
    position: &Position<'_>,
    typed: &str,
    engine: &Engine,
) -> Option<Vec<Candidate>> {
    let fixed: Vec<Candidate> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| Candidate {
            value: value.get_name().to_owned(),
            description: value
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default(),
        })
        .collect();
    if !fixed.is_empty() {
        return Some(fixed);
    }
    match (position.verbs.as_slice(), arg.get_id().as_str()) {
        (_, "session") | (["kernels", _], "name") => Some(sessions()),
        (_, "kernel") => Some(kernels(engine)),
        (_, "gateway") => Some(servers(engine)),
        (["runs", _], "run" | "id" | "runs") => Some(runs()),
        (["notebook", "type"], "kind" | "kind_flag") | (["notebook", "insert"], "kind") => {
            Some(["code", "markdown", "raw"].map(plain).into())
        }
        (["notebook", _], "cell" | "after" | "before")
        | (["run"], "cells" | "from" | "to" | "above" | "below" | "edit_cell" | "edit_cells") => {
            Some(cells(position, typed))
        }
        // Texts and numbers have no candidates.
        (
            _,
            "code" | "old" | "new" | "source" | "timeout" | "total_timeout" | "wait" | "answers"
            | "owner" | "rev" | "tag" | "tags" | "params",
        ) => Some(Vec::new()),
        _ => None,
    }
}

fn plain(value: &str) -> Candidate {
    Candidate {
        value: value.to_owned(),
        description: String::new(),
    }
}

/// The result of a request to a running host.
fn ask<T: Default>(
    request: impl Future<Output = Result<Option<T>, cellwright_diagnostics::failure::Failure>>,
) -> T {
    let host = KernelHost::Shared;
    let answer = host.block_on(async { Ok(tokio::time::timeout(HOST_TIMEOUT, request).await) });
    match answer {
        Ok(Ok(Ok(Some(found)))) => found,
        _ => T::default(),
    }
}

fn sessions() -> Vec<Candidate> {
    let host = KernelHost::Shared;
    let mut found: Vec<Candidate> = Vec::new();
    for session in ask(host.list_sessions()) {
        let kernel = session.name.unwrap_or_default();
        let description = format!("{kernel} in {}", session.cwd);
        // Several directories can have a session with the same name.
        match found
            .iter_mut()
            .find(|other| other.value == session.session)
        {
            Some(other) => other.description.push_str(&format!(", {description}")),
            None => found.push(Candidate {
                value: session.session,
                description,
            }),
        }
    }
    found
}

fn runs() -> Vec<Candidate> {
    let host = KernelHost::Shared;
    let runs = ask(host.list_runs());
    runs.into_iter().map(|run| plain(&run.run)).collect()
}

fn kernels(engine: &Engine) -> Vec<Candidate> {
    let names = kernel_names(engine).unwrap_or_default();
    let candidate = |(value, description)| Candidate { value, description };
    names.into_iter().map(candidate).collect()
}

/// The servers of the settings.
fn servers(engine: &Engine) -> Vec<Candidate> {
    let settings = working_directory(None)
        .ok()
        .and_then(|cwd| engine.settings(&cwd).ok());
    let settings = settings.unwrap_or_default();
    let candidate = |server: &ServerSettings| Candidate {
        value: server.name.clone(),
        // A URL can contain a token.
        description: redact(server.text("url").unwrap_or_default()).into_owned(),
    };
    settings.servers().iter().map(candidate).collect()
}

/// The cells of the notebook that the line names: by index, or by id if the word starts with a letter.
fn cells(position: &Position<'_>, typed: &str) -> Vec<Candidate> {
    let path = position
        .values
        .iter()
        .map(Path::new)
        .find(|path| path.is_file());
    let Some((notebook, _)) = path.and_then(|path| file::load_any_format(path, None).ok()) else {
        return Vec::new();
    };
    let by_id = !typed.is_empty() && !typed.starts_with(|c: char| c.is_ascii_digit());
    let candidate = |entry: outline::OutlineEntry| {
        let id = notebook.id(entry.index).map(std::borrow::Cow::into_owned);
        let value = match id {
            Some(id) if by_id => id,
            _ if by_id => return None,
            _ => entry.index.to_string(),
        };
        Some(Candidate {
            value,
            description: format!("{} {}", entry.kind, entry.first_line),
        })
    };
    outline::outline(&notebook)
        .into_iter()
        .filter_map(candidate)
        .collect()
}
