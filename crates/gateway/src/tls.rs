//! The TLS configuration of a server: rustls with ring.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tracing::debug;

use crate::error::ServerError;
use crate::server::TlsOptions;

/// The largest file of certificates that is read.
const PEM_FILE_LIMIT: u64 = 4 << 20;

/// Builds the configuration. Reads the certificates of the system only if no authority is named.
pub(crate) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, ServerError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &options.ca {
        for certificate in read_certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| bad_file(path, error.to_string()))?;
        }
    } else {
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            debug!(%error, "a certificate of the system cannot be read");
        }
        roots.add_parsable_certificates(system.certs);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad_file(Path::new("TLS"), error.to_string()))?
        .with_root_certificates(roots);
    let config = match &options.client_cert {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let key_path = options.client_key.as_ref().unwrap_or(path);
            let key = PrivateKeyDer::from_pem_slice(&read_file(key_path)?)
                .map_err(|error| bad_file(key_path, error.to_string()))?;
            builder
                .with_client_auth_cert(read_certificates(path)?, key)
                .map_err(|error| bad_file(path, error.to_string()))?
        }
    };
    Ok(Arc::new(config))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let text = read_file(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(bad_file(path, "it contains no certificate".to_owned()))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(bad_file(path, error.to_string())),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, ServerError> {
    let metadata = fs::metadata(path).map_err(|error| bad_file(path, error.to_string()))?;
    if !metadata.is_file() || metadata.len() > PEM_FILE_LIMIT {
        return Err(bad_file(path, "it is not a PEM file".to_owned()));
    }
    fs::read(path).map_err(|error| bad_file(path, error.to_string()))
}

fn bad_file(path: &Path, problem: String) -> ServerError {
    ServerError::Certificate {
        path: path.to_owned(),
        problem,
    }
}
