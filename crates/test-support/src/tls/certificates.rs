//! An authority of certificates and what it signs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Signs certificates. Only tests trust it.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its private key.
#[derive(Clone)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key_pem: String,
    key_der: Vec<u8>,
}

impl Authority {
    /// Makes a new key and a certificate that it signs itself.
    #[expect(clippy::new_without_default, reason = "each one is different")]
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        // Clients look for authorities by name.
        let name = format!("authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(parameters, key).unwrap();
        Self { issuer }
    }

    /// The certificate of the authority as PEM text.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Writes the certificate of the authority to `directory` and returns the path.
    pub fn write_to(&self, directory: &Path) -> PathBuf {
        let path = directory.join("authority.pem");
        std::fs::write(&path, self.pem()).unwrap();
        path
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for a server with these names; IP addresses are also names.
    pub fn server(&self, names: &[&str]) -> Identity {
        self.sign(names, "server", ExtendedKeyUsagePurpose::ServerAuth, false)
    }

    /// A certificate for a server that was valid in the past.
    pub fn expired_server(&self, names: &[&str]) -> Identity {
        self.sign(names, "server", ExtendedKeyUsagePurpose::ServerAuth, true)
    }

    /// A certificate for a client.
    pub fn client(&self, name: &str) -> Identity {
        self.sign(&[], name, ExtendedKeyUsagePurpose::ClientAuth, false)
    }

    fn sign(
        &self,
        names: &[&str],
        common_name: &str,
        purpose: ExtendedKeyUsagePurpose,
        is_expired: bool,
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters
            .distinguished_name
            .push(DnType::CommonName, common_name);
        parameters.extended_key_usages = vec![purpose];
        // Python checks that certificates name the key of their authority.
        parameters.use_authority_key_identifier_extension = true;
        if is_expired {
            parameters.not_before = date_time_ymd(2001, 1, 1);
            parameters.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificate: certificate.der().clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            key_der: key.serialize_der(),
        }
    }
}

impl Identity {
    /// The certificate as PEM text.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key as PEM text.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Writes `NAME.pem` and `NAME.key` to `directory` and returns their paths.
    pub fn write_to(&self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        let certificate = directory.join(format!("{name}.pem"));
        let key = directory.join(format!("{name}.key"));
        std::fs::write(&certificate, &self.certificate_pem).unwrap();
        std::fs::write(&key, &self.key_pem).unwrap();
        (certificate, key)
    }

    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key_der.clone()))
    }
}
