//! What runs: the gateways of a user, and their kernels.

use cellwright_gateway::RemoteKernel;
use cellwright_stdext::error_chain;

use crate::error::LocalGatewayError;
use crate::files::{GatewayDir, Generation, KeeperState};
use crate::health::{self, Health};
use crate::record::GatewayRecord;

/// A gateway whose keeper runs.
#[derive(Clone, Debug)]
pub struct GatewayStatus {
    /// Its directory and number.
    pub generation: Generation,
    /// Address and processes.
    pub record: GatewayRecord,
    /// Its kernels, or why it does not answer.
    pub kernels: Result<Vec<RemoteKernel>, String>,
}

/// The running gateways, newest first. Removes the files of gateways that were killed.
pub async fn status(dir: &GatewayDir) -> Result<Vec<GatewayStatus>, LocalGatewayError> {
    if let Some(_lock) = dir.try_lock_start()? {
        dir.remove_stale();
    }
    let mut all = Vec::new();
    for generation in dir.generations() {
        let KeeperState::Running(record) = generation.keeper()? else {
            continue;
        };
        let kernels = match health::check(&record).await {
            Health::Healthy(kernels) => Ok(kernels),
            Health::NotListening => Err("it does not listen on its port".to_owned()),
            Health::Failing(error) => Err(error_chain::format(&error)),
        };
        all.push(GatewayStatus {
            generation,
            record: *record,
            kernels,
        });
    }
    Ok(all)
}
