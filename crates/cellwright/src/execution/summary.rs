//! [`ExecutionSummary`]: what a person sees at the end of an execution, and the exit code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::report::ExecutionStatus;
use crate::failure::Failure;
use crate::notice::{NoticeKind, UserNotice};

/// What a person is told at the end, and the exit code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecutionSummary {
    pub(crate) status: ExecutionStatus,
    pub(crate) notices: Vec<UserNotice>,
    pub(crate) failure: Option<Failure>,
    /// How long it took until a kernel was ready.
    #[serde(default)]
    pub(crate) kernel_ready: Option<Duration>,
    /// How it went with a notebook.
    #[serde(default)]
    pub(crate) summary: Option<String>,
}

impl ExecutionSummary {
    /// The exit code: that of the code, and if that is fine, of what became of it.
    pub(crate) fn exit_code(&self) -> u8 {
        match &self.failure {
            Some(trouble) if self.status == ExecutionStatus::Ok => trouble.exit_code(),
            _ => self.status.exit_code(),
        }
    }

    /// What went wrong, if anything did.
    pub(crate) fn trouble(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether there is a notice of that kind.
    pub(crate) fn has_notice(&self, kind: NoticeKind) -> bool {
        self.notices.iter().any(|notice| notice.kind == kind)
    }

    /// How it went with a notebook.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// Why there was no kernel for it, if there was none.
    pub(crate) fn start_failure(&self) -> Option<Failure> {
        let refused = self.status == ExecutionStatus::NotStarted;
        self.failure.clone().filter(|_| refused)
    }
}
