//! The environment of Enterprise Gateway, and its kernelspec for kernels that a launcher starts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::free_port;

const LAUNCHER: &str = include_str!("distributed_launcher.py");

/// Sets where launchers report their kernels, and permits kernels of root, which Enterprise Gateway rejects by default.
pub(super) fn set_environment(command: &mut Command, directory: &Path) {
    command
        .env("EG_UNAUTHORIZED_USERS", "none")
        .env("EG_KERNEL_LOG_DIR", directory)
        .env("EG_RESPONSE_IP", "127.0.0.1")
        .env("EG_RESPONSE_PORT", free_port().to_string());
}

/// Writes the launcher and the kernelspec `python3`, which replaces the installed one.
pub(super) fn write_kernelspec(directory: &Path, python: &Path) {
    let launcher = directory.join("distributed_launcher.py");
    fs::write(&launcher, LAUNCHER).unwrap();
    let kernelspec = json!({
        "display_name": "Python 3 (distributed)",
        "language": "python",
        "argv": [
            python,
            launcher,
            "--RemoteProcessProxy.kernel-id",
            "{kernel_id}",
            "--RemoteProcessProxy.response-address",
            "{response_address}",
            "--RemoteProcessProxy.public-key",
            "{public_key}",
            "--test-pid",
            std::process::id().to_string(),
        ],
        "metadata": {
            "process_proxy": {
                "class_name": "enterprise_gateway.services.processproxies.distributed.DistributedProcessProxy",
                "config": {"remote_hosts": "localhost"},
            },
        },
    });
    let path = directory.join("data/kernels/python3");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("kernel.json"), kernelspec.to_string()).unwrap();
}
