//! One Jupyter Kernel Gateway for all processes of a user on this machine.
//!
//! A background process, the keeper, starts `python -m kernel_gateway` under a supervisor and watches it. Other processes
//! find the gateway through the files of a private directory:
//!
//! ```text
//! DIR/start.lock              held while a process starts a gateway
//! DIR/kernelspecs/kernels/    a kernelspec for each interpreter that has been used
//! DIR/N/keeper.lock           held by the keeper of gateway number N until it exits
//! DIR/N/info.json             address, token, processes; its time of modification is the heartbeat
//! DIR/N/used                  its time of modification: when a process last asked for the gateway
//! DIR/N/gateway.log           what the gateway prints
//! ```
//!
//! The gateway with the highest number gets new kernels. One with a lower number ends with its last kernel.
//!
//! # Modules, in reading order
//!
//! | module | purpose |
//! | --- | --- |
//! | [`files`] | the directory and the numbered directories in it |
//! | `record` | `info.json` |
//! | `kernelspec` | kernelspecs for the gateway |
//! | `health` | whether a gateway answers, and is the one of the record |
//! | `ensure` | finds a gateway or starts one |
//! | `keeper_options`, [`keeper`] | the background process |
//! | [`status`], [`stop`] | for users |
//!
//! The crate prints nothing and reads no environment variables: the caller passes all settings.

mod ensure;
mod error;
pub mod files;
mod health;
pub mod keeper;
mod keeper_options;
mod kernelspec;
mod log;
mod packages;
mod record;
pub mod status;
pub mod stop;

pub use ensure::{RunningGateway, StartOptions, ensure_running};
pub use error::LocalGatewayError;
pub use files::GatewayDir;
pub use kernelspec::StagedKernelspec;
pub use log::shows_exhaustion;
pub use packages::check_kernel_package;
pub use record::GatewayRecord;
