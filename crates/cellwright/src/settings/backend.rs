//! [`Backend`]: what runs code.

/// What runs code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The built-in runner, which needs only Python.
    #[default]
    Runner,
    /// A Jupyter kernel.
    Jupyter,
}

impl Backend {
    pub(crate) const NAMES: &[&str] = &["runner", "jupyter"];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "runner" => Some(Self::Runner),
            "jupyter" => Some(Self::Jupyter),
            _ => None,
        }
    }
}
