//! The servers that the gateway client is tested with, and where they are installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skip;

/// The variable with the Python interpreter that has the packages of `scripts/test-requirements-enterprise.txt`.
const ENTERPRISE_PYTHON: &str = "CELLWRIGHT_TEST_ENTERPRISE_PYTHON";
/// The variable with the program `configurable-http-proxy`.
const HUB_PROXY: &str = "CELLWRIGHT_TEST_HUB_PROXY";

/// A program with the REST and WebSocket interface of Jupyter kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `jupyter_kernel_gateway`.
    KernelGateway,
    /// `jupyter_server`, without extensions.
    JupyterServer,
    /// `jupyter_enterprise_gateway` with kernels that are its children.
    EnterpriseGateway,
    /// `jupyter_enterprise_gateway` with kernels that a launcher starts and reports, as on other machines.
    EnterpriseGatewayDistributed,
    /// `jupyterhub` with one user, whose server it has spawned.
    JupyterHub,
}

/// The programs that an engine needs.
pub(super) struct Installation {
    pub(super) python: PathBuf,
    /// Only for [`Engine::JupyterHub`].
    pub(super) hub_proxy: Option<PathBuf>,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 5] = [
        Self::KernelGateway,
        Self::JupyterServer,
        Self::EnterpriseGateway,
        Self::EnterpriseGatewayDistributed,
        Self::JupyterHub,
    ];

    /// The word for this engine in `CELLWRIGHT_TEST_REQUIRE`.
    fn requirement(self) -> &'static str {
        match self {
            Self::KernelGateway | Self::JupyterServer => "gateway",
            Self::EnterpriseGateway | Self::EnterpriseGatewayDistributed => "enterprise",
            Self::JupyterHub => "hub",
        }
    }

    /// The module that Python runs.
    pub(super) fn module(self) -> &'static str {
        match self {
            Self::KernelGateway => "kernel_gateway",
            Self::JupyterServer => "jupyter_server",
            Self::EnterpriseGateway | Self::EnterpriseGatewayDistributed => "enterprise_gateway",
            Self::JupyterHub => "jupyterhub",
        }
    }

    /// The class with the options of the server.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::KernelGateway => "KernelGatewayApp",
            Self::JupyterServer => "ServerApp",
            Self::EnterpriseGateway | Self::EnterpriseGatewayDistributed => "EnterpriseGatewayApp",
            Self::JupyterHub => "JupyterHub",
        }
    }

    /// The variable from which the server reads its token.
    pub(super) fn token_variable(self) -> Option<&'static str> {
        match self {
            Self::KernelGateway => Some("KG_AUTH_TOKEN"),
            Self::JupyterServer => Some("JUPYTER_TOKEN"),
            Self::EnterpriseGateway | Self::EnterpriseGatewayDistributed => Some("EG_AUTH_TOKEN"),
            Self::JupyterHub => None,
        }
    }

    /// Whether the machine has this engine. Reports a skip if not.
    pub fn is_installed(self) -> bool {
        self.installation().is_some()
    }

    /// Finds the programs. Reports a skip if one is missing.
    pub(super) fn installation(self) -> Option<Installation> {
        let variable = match self.requirement() {
            "enterprise" => ENTERPRISE_PYTHON,
            _ => crate::PYTHON,
        };
        let missing = |reason: &str| {
            skip(self.requirement(), reason);
            None
        };
        let Some(python) = std::env::var_os(variable).map(PathBuf::from) else {
            return missing(&format!("{variable} is not set"));
        };
        if !has_module(&python, self.module()) {
            return missing(&format!(
                "{} has no module {}",
                python.display(),
                self.module()
            ));
        }
        let hub_proxy = std::env::var_os(HUB_PROXY).map(PathBuf::from);
        if self == Self::JupyterHub && hub_proxy.is_none() {
            return missing(&format!("{HUB_PROXY} is not set"));
        }
        Some(Installation { python, hub_proxy })
    }
}

fn has_module(python: &Path, module: &str) -> bool {
    let code = "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))";
    let status = Command::new(python)
        .args(["-I", "-c", code, module])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
