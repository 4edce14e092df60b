//! [`KernelStarts`]: the call that started the kernel of each session, to compare its environment and its working directory
//! with those of later calls.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_engine::environment::describes_terminal;
use cellwright_engine::kernels::SerializedSelection;
use cellwright_kernel::session::{SessionId, SessionReport};
use cellwright_stdext::LockExt;

use super::super::protocol::ExecuteParams;

/// Number of variables that a notice names.
const NAMES_MAX: usize = 8;

/// The calls that started the current kernels.
#[derive(Default)]
pub(super) struct KernelStarts(Mutex<HashMap<SessionId, KernelStart>>);

struct KernelStart {
    kernel: SerializedSelection,
    cwd: PathBuf,
    /// Values that the kernel does not have, and which a notice has reported.
    reported: BTreeSet<(OsString, OsString)>,
}

impl KernelStarts {
    /// Records the call that started the kernel of a session.
    pub(super) fn record(&self, session: SessionId, kernel: SerializedSelection, cwd: PathBuf) {
        let start = KernelStart {
            kernel,
            cwd,
            reported: BTreeSet::new(),
        };
        self.0.lock_ignoring_poison().insert(session, start);
    }

    /// What a call should know about the kernel of an existing session.
    pub(super) fn compare(
        &self,
        session: SessionId,
        name: &str,
        params: &ExecuteParams,
    ) -> Vec<UserNotice> {
        let other_cwd = || {
            let starts = self.0.lock_ignoring_poison();
            let cwd = &starts.get(&session)?.cwd;
            let text = format!(
                "the kernel of session `{name}` runs in {}, not in {}",
                cwd.display(),
                params.cwd.path().display()
            );
            (*cwd != params.cwd.path()).then(|| UserNotice::new(NoticeKind::KernelOtherCwd, text))
        };
        let other_cwd = params.expects_cwd.then(other_cwd).flatten();
        let requested = &params.request.env;
        let environment = self.compare_environment(session, name, &params.kernel, requested);
        other_cwd.into_iter().chain(environment).collect()
    }

    /// A notice if the caller has variables with values that the kernel of the session did not start with. Each value is
    /// reported once. `requested` are variables that the call sets in the kernel.
    fn compare_environment(
        &self,
        session: SessionId,
        name: &str,
        kernel: &SerializedSelection,
        requested: &[(String, String)],
    ) -> Option<UserNotice> {
        let mut starts = self.0.lock_ignoring_poison();
        let start = starts.get_mut(&session)?;
        let mut names = Vec::new();
        for variable in kernel.other_variables(&start.kernel) {
            let text = variable.0.to_string_lossy().into_owned();
            let is_requested = requested.iter().any(|(other, _)| *other == text);
            if !is_requested && !describes_terminal(&text) && start.reported.insert(variable) {
                names.push(text);
            }
        }
        if names.is_empty() {
            return None;
        }
        let more = names.len().saturating_sub(NAMES_MAX);
        names.truncate(NAMES_MAX);
        let mut list = names.join(", ");
        if more > 0 {
            list.push_str(&format!(" and {more} more"));
        }
        let text = format!(
            "the kernel of session `{name}` keeps the environment that it started with; it does not have your values of \
             {list}"
        );
        Some(UserNotice::new(NoticeKind::EnvironmentDiffers, text))
    }

    /// Forgets all other sessions.
    pub(super) fn retain(&self, sessions: &[SessionReport]) {
        let exists = |id: &SessionId| sessions.iter().any(|report| report.id == *id);
        self.0.lock_ignoring_poison().retain(|id, _| exists(id));
    }
}
