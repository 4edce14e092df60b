//! [`Finding`]: a result of a check, with a severity and a next step.

use serde::Serialize;

/// A result of a check.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// Stable name, such as `no-python`.
    pub(crate) code: &'static str,
    #[serde(rename = "level")]
    pub(crate) severity: Severity,
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) next: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Ok,
    /// Information only.
    Note,
    Warning,
    Error,
}

impl Finding {
    /// A finding without a next step.
    pub(crate) fn new(severity: Severity, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            text: text.into(),
            next: None,
        }
    }

    /// Adds the next step.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
