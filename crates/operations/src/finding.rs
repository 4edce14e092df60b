//! [`Finding`]: a result of a check, with a severity and a next step.

use serde::Serialize;

/// A result of a check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Stable name, such as `no-python`.
    pub code: &'static str,
    #[serde(rename = "level")]
    pub severity: Severity,
    pub text: String,
    /// What to do about it.
    pub next: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    /// Information only.
    Note,
    Warning,
    Error,
}

impl Severity {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    /// A finding without a next step.
    pub fn new(severity: Severity, code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            text: text.into(),
            next: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
