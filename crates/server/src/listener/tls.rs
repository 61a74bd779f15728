//! Certificates and keys, from PEM files.

use rustls::{
    CertificateError, RootCertStore, ServerConfig,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("{} cannot be read as PEM: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{} holds no certificate; it needs one or more `BEGIN CERTIFICATE` blocks, the server's own first", path.display())]
    NoCertificate { path: PathBuf },
    #[error("certificate and key cannot be used: {0}; do they belong together?")]
    Unusable(#[from] rustls::Error),
}

pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |path: &Path, why: String| TlsError::Unreadable { path: path.into(), why };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: certificate.into() });
    }
    if let Some(complaint) = complaint(&chain) {
        tracing::warn!(certificate = %certificate.display(), "{complaint}");
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What clients will not like about a certificate, as far as that can be known without knowing whom they trust and which name
/// they call: looked at as by a client that trusts just this.
pub fn complaint(chain: &[CertificateDer<'_>]) -> Option<String> {
    let (own, others) = chain.split_first()?;
    let mut roots = RootCertStore::empty();
    roots.add(chain.last()?.clone().into_owned()).ok()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    let name = ServerName::try_from("localhost").ok()?;
    let wrong = verifier.verify_server_cert(own, others, &name, &[], UnixTime::now()).err()?;
    match &wrong {
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            Some(format!("the certificate has expired; clients will refuse it ({wrong})"))
        }
        wrong if format!("{wrong:?}").contains("CaUsedAsEndEntity") => Some(
            "the certificate says that it belongs to an authority (CA:TRUE) and not to a server: Windlass's workers and command line \
             refuse it. Make it again with `openssl req -x509 … -addext basicConstraints=critical,CA:FALSE` (docs/operations.md, \"TLS\")"
                .into(),
        ),
        _ => None,
    }
}
