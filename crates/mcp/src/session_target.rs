//! [`SessionTarget`]: the session that a call names. The path of a notebook names its session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_host::protocol::{SessionQuery, SessionSelector};
use cellwright_host::reply::{SessionInfo, SessionState};
use cellwright_operations::eval::canonical;
use cellwright_operations::kernels::{VARIABLES_MAX, variable_names};

use super::server::Server;
use super::wording;

/// Maximum length of a session name, in characters.
const NAME_MAX: usize = 200;

/// How long a reply waits for the variables of another session.
const VARIABLES_TIMEOUT: Duration = Duration::from_secs(1);

/// A session, which need not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionTarget {
    pub(super) name: String,
    /// The working directory of the session, if it is known.
    pub(super) cwd: Option<PathBuf>,
}

impl SessionTarget {
    /// The session of a notebook: its path below the first root. `path` has no links.
    pub(super) fn of_notebook(server: &Server, path: &Path) -> Self {
        let base = server.roots().base().unwrap_or_default();
        let inside = path.strip_prefix(&base).unwrap_or(path);
        Self {
            name: session_name(&inside.to_string_lossy()),
            cwd: path.parent().map(Path::to_owned),
        }
    }

    /// Finds the session that a client names: `@1`, `kernel://1`, a name, or the path of a notebook.
    pub(super) async fn resolve(server: &Server, given: &str) -> Result<Self, Failure> {
        Self::choose(server, given, &server.sessions().await?)
    }

    fn choose(server: &Server, given: &str, sessions: &[SessionInfo]) -> Result<Self, Failure> {
        let given = given.strip_prefix("notebook://").unwrap_or(given);
        if let Some(id) = given
            .strip_prefix('@')
            .or_else(|| given.strip_prefix("kernel://"))
        {
            let found = sessions.iter().find(|session| session.id.to_string() == id);
            return found.map(Self::from_info).ok_or_else(|| {
                let message = format!("There is no session {}", wording::sanitize_name(given));
                let failure = Failure::new(Kind::BadArguments, message);
                failure.hint("`kernels` list shows the sessions")
            });
        }
        let name = session_name(given);
        let named: Vec<&SessionInfo> = sessions
            .iter()
            .filter(|session| session.session == name || session.session == given)
            .collect();
        // As for a call that names no session, the one in the first root comes first.
        let base = server.roots().base().map(canonical).unwrap_or_default();
        let here: Vec<&SessionInfo> = named
            .iter()
            .copied()
            .filter(|session| Path::new(&session.cwd) == base)
            .collect();
        let named = if here.len() == 1 { here } else { named };
        if let Some(found) = select_one(&named, given)? {
            return Ok(Self::from_info(found));
        }
        // The path of a notebook, or its file name if that is unique.
        if given.to_lowercase().ends_with(".ipynb") {
            let notebook = server.roots().resolve_file(given).ok();
            let exists = |path: &Path| path.symlink_metadata().is_ok();
            let notebook = notebook.filter(|place| exists(place.path()));
            if let Some(place) = notebook {
                let target = Self::of_notebook(server, place.display_path());
                let same = sessions
                    .iter()
                    .find(|session| session.session == target.name);
                return Ok(same.map_or(target, Self::from_info));
            }
            let suffix = format!("/{name}");
            let named: Vec<&SessionInfo> = sessions
                .iter()
                .filter(|session| session.session.ends_with(&suffix))
                .collect();
            if let Some(found) = select_one(&named, given)? {
                return Ok(Self::from_info(found));
            }
        }
        Ok(Self {
            name: given.to_owned(),
            cwd: None,
        })
    }

    fn from_info(session: &SessionInfo) -> Self {
        Self {
            name: session.session.clone(),
            cwd: Some(PathBuf::from(&session.cwd)),
        }
    }

    /// The selector of the host for this session.
    pub(super) fn selector(self, server: &Server) -> Result<SessionSelector, Failure> {
        let base = server.roots().base().ok();
        let dir = base.as_deref().unwrap_or(Path::new("/"));
        let settings = server.engine().settings(dir)?;
        // The shared host would search all projects for the name.
        let only = base.clone().filter(|_| !server.kernels().is_in_process());
        Ok(SessionSelector {
            name: self.name,
            cwd: self.cwd.or_else(|| only.map(canonical)),
            here: base.map(canonical),
            owner: settings.eval.owner.clone(),
        })
    }
}

/// The sessions, except `session`, whose idle kernel has a variable of this name.
pub(super) async fn sessions_with_variable(
    server: &Server,
    name: &str,
    session: Option<&str>,
) -> Vec<String> {
    let mut found = Vec::new();
    // A host that does not answer has no sessions to suggest.
    for other in server.sessions().await.unwrap_or_default() {
        let is_idle = other.state == SessionState::Idle;
        if !is_idle || Some(other.session.as_str()) == session {
            continue;
        }
        let Ok(selector) = SessionTarget::from_info(&other).selector(server) else {
            continue;
        };
        let query = SessionQuery::Variables {
            limit: VARIABLES_MAX,
        };
        let reply = server
            .kernels()
            .query(selector, query, VARIABLES_TIMEOUT)
            .await;
        let names = reply.ok().flatten().map(|reply| variable_names(&reply));
        if names.is_some_and(|names| names.iter().any(|other| other == name)) {
            found.push(other.session);
        }
    }
    found
}

/// The only session with a name.
fn select_one<'s>(
    named: &[&'s SessionInfo],
    given: &str,
) -> Result<Option<&'s SessionInfo>, Failure> {
    match named {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => {
            let message = format!(
                "`{}` names {} sessions",
                wording::sanitize_name(given),
                several.len()
            );
            let mut failure = Failure::new(Kind::BadArguments, message);
            for session in several {
                failure.causes.push(format!(
                    "@{}: {} in {}",
                    session.id, session.session, session.cwd
                ));
            }
            let example = several.last().map_or(0, |session| session.id);
            let hint = format!("name one by its path or its id, such as `session: @{example}`");
            Err(failure.hint(hint))
        }
    }
}

/// A session name for the path of a notebook: sessions have no white space in their names.
fn session_name(path: &str) -> String {
    let plain = |c: char| {
        if c.is_control() || c.is_whitespace() {
            '_'
        } else {
            c
        }
    };
    let name: String = path.trim_start_matches("./").chars().map(plain).collect();
    // The end of a path distinguishes notebooks.
    let skipped = name.chars().count().saturating_sub(NAME_MAX);
    let name: String = name.chars().skip(skipped).collect();
    match name.strip_prefix(['@', '-']) {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}
