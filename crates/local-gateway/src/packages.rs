//! Whether an interpreter has the packages of a gateway and of its kernels.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::error::LocalGatewayError;

/// How long an interpreter may take to answer.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Prints the version of each module's package, or `-`. It does not import them, which would take seconds.
const SCRIPT: &str = "\
import importlib.util
from importlib.metadata import version
for module, package in (('kernel_gateway', 'jupyter_kernel_gateway'), ('ipykernel_launcher', 'ipykernel')):
    found = importlib.util.find_spec(module)
    try:
        print(version(package) if found else '-')
    except Exception:
        print('unknown' if found else '-')
";

/// The package of the gateway, as the installer names it.
pub(crate) const GATEWAY_PACKAGE: &str = "jupyter_kernel_gateway";
/// The package of Python kernels.
pub(crate) const KERNEL_PACKAGE: &str = "ipykernel";

/// The oldest major version of the gateway that the configuration works with.
const GATEWAY_MAJOR_MIN: u32 = 3;

/// The versions of the packages; `None`: not installed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packages {
    pub(crate) gateway: Option<String>,
    pub(crate) kernel: Option<String>,
}

impl Packages {
    /// Asks an interpreter.
    pub(crate) async fn query(
        python: &Path,
        env: &[(OsString, OsString)],
    ) -> Result<Self, LocalGatewayError> {
        let failed = |reason: String| LocalGatewayError::Python {
            python: python.to_owned(),
            reason,
        };
        let mut command = Command::new(python);
        command
            .args(["-c", SCRIPT])
            .env_clear()
            .envs(env.iter().cloned())
            // A file in the working directory could shadow a module.
            .current_dir("/")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = match tokio::time::timeout(QUERY_TIMEOUT, command.output()).await {
            Ok(Ok(output)) if output.status.success() => output,
            Ok(Ok(output)) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let last = stderr.lines().rfind(|line| !line.trim().is_empty());
                return Err(failed(
                    last.map_or_else(|| output.status.to_string(), str::to_owned),
                ));
            }
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed("it does not answer".to_owned())),
        };
        Ok(Self::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim);
        let mut version = || {
            let line = lines.next().filter(|line| !line.is_empty() && *line != "-");
            line.map(str::to_owned)
        };
        Self {
            gateway: version(),
            kernel: version(),
        }
    }

    /// Returns an error if the interpreter cannot run a gateway.
    pub(crate) fn check(&self, python: &Path) -> Result<(), LocalGatewayError> {
        let mut packages = Vec::new();
        if !self.has_gateway() {
            packages.push(GATEWAY_PACKAGE);
        }
        if self.kernel.is_none() {
            packages.push(KERNEL_PACKAGE);
        }
        if packages.is_empty() {
            return Ok(());
        }
        Err(LocalGatewayError::MissingPackages {
            python: python.to_owned(),
            packages,
        })
    }

    fn has_gateway(&self) -> bool {
        self.gateway.as_ref().is_some_and(|version| {
            let major = version
                .split('.')
                .next()
                .and_then(|major| major.parse().ok());
            major.is_none_or(|major: u32| major >= GATEWAY_MAJOR_MIN)
        })
    }
}

/// Returns an error if an interpreter has no ipykernel.
pub async fn check_kernel_package(
    python: &Path,
    env: &[(OsString, OsString)],
) -> Result<(), LocalGatewayError> {
    match Packages::query(python, env).await?.kernel {
        Some(_) => Ok(()),
        None => Err(LocalGatewayError::MissingPackages {
            python: python.to_owned(),
            packages: vec![KERNEL_PACKAGE],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_old_packages_are_named() {
        let missing = |text: &str| match Packages::parse(text).check(Path::new("p")) {
            Ok(()) => Vec::new(),
            Err(LocalGatewayError::MissingPackages { packages, .. }) => packages,
            Err(error) => panic!("{error}"),
        };
        assert!(missing("3.0.1\n7.4.0\n").is_empty());
        assert!(missing("unknown\nunknown\n").is_empty());
        assert_eq!(missing("-\n7.4.0\n"), [GATEWAY_PACKAGE]);
        assert_eq!(missing("2.5.2\n7.4.0\n"), [GATEWAY_PACKAGE]);
        assert_eq!(missing("3.0.1\n-\n"), [KERNEL_PACKAGE]);
        assert_eq!(missing(""), [GATEWAY_PACKAGE, KERNEL_PACKAGE]);
    }
}
