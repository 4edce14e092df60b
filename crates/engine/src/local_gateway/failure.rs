//! Errors of the shared gateway as failures for users.

use cellwright_diagnostics::failure::Failure;
use cellwright_diagnostics::install;
use cellwright_kernel::KernelError;
use cellwright_local_gateway::LocalGatewayError;
use cellwright_stdext::error_chain;

use crate::ipykernel;

/// The failure of a command that needs the gateway.
pub fn into_failure(error: LocalGatewayError) -> Failure {
    Failure::from(into_kernel_error(error))
}

/// The error of a kernel that could not start for want of a gateway.
pub(super) fn into_kernel_error(error: LocalGatewayError) -> KernelError {
    let (problem, install_command) = match &error {
        LocalGatewayError::MissingPackages { python, packages } if packages == &["ipykernel"] => {
            return KernelError::NoIpykernel {
                install_command: Some(ipykernel::install_command(python)),
                python: python.clone(),
            };
        }
        LocalGatewayError::MissingPackages { python, .. } => {
            let packages = "jupyter_kernel_gateway ipykernel";
            let command = install::install_command(python, packages, ipykernel::has_uv());
            let problem = format!(
                "kernel_gateway (jupyter-kernel-gateway) or ipykernel not installed. Run: {command}"
            );
            (problem, Some(command))
        }
        error => (error_chain::format(error), None),
    };
    KernelError::NoLocalGateway {
        problem,
        log: error.into_log(),
        install_command,
    }
}
