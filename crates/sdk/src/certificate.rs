//! What is wrong with a server's certificate, in words that help.

use rustls::CertificateError;
use std::error::Error;

/// None: the failure was not about a certificate.
pub(crate) fn complaint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(rustls::Error::InvalidCertificate(wrong)) = cause.downcast_ref() {
            return Some(words(wrong));
        }
        // An I/O error does not name what it was made from among its sources.
        let inside = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = inside.and_then(|inside| complaint(inside)) {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

fn words(wrong: &CertificateError) -> String {
    let text = wrong.to_string();
    match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it was not signed by an authority that is trusted here; name the authority's certificate, or the server's own if it signed \
             itself, with --ca-cert FILE (WINDLASS_CA_CERT)"
                .into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!("it has expired ({text}); the server needs a new one"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("it is not valid yet ({text}); are both clocks right?")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is for another name ({text}); call the server by a name in the certificate's subjectAltName, or make a certificate with the name")
        }
        _ if text.contains("CaUsedAsEndEntity") || format!("{wrong:?}").contains("CaUsedAsEndEntity") => {
            "it says that it belongs to an authority (CA:TRUE) and not to a server, as `openssl req -x509` does unless told \
             otherwise; make it again with -addext basicConstraints=critical,CA:FALSE (docs/operations.md, \"TLS\")"
                .into()
        }
        _ => text,
    }
}
