//! TLS with rustls and ring, verified as libpq does for each `sslmode`.

use std::{fmt::Display, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
    client::{
        WantsClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    Error, ErrorClass,
    security::{ClientCertificate, Roots, Security, Verify},
};

/// Creates TLS connectors.
#[derive(Clone)]
pub(super) struct Tls {
    inner: MakeRustlsConnect,
}

impl<S> MakeTlsConnect<S> for Tls
where
    MakeRustlsConnect: MakeTlsConnect<S>,
{
    type Stream = <MakeRustlsConnect as MakeTlsConnect<S>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<S>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<S>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        // The client needs a connector even without TLS, as on a Unix socket, which has no host name. This
        // name is never sent or compared.
        let host = if host.is_empty() { "localhost" } else { host };
        MakeTlsConnect::<S>::make_tls_connect(&mut self.inner, host)
    }
}

/// A configuration with its own crypto provider, since a library must not install a process-wide one.
pub(super) fn connector(security: Security) -> Result<Tls, Error> {
    let Security { verify, roots, client, .. } = security;
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match verify {
        Verify::Nothing => Arc::new(Lenient { provider: provider.clone(), chain: None }),
        Verify::Chain => {
            let chain = strict(&provider, roots)?;
            Arc::new(Lenient { provider: provider.clone(), chain: Some(chain) })
        }
        Verify::Full => strict(&provider, roots)?,
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorClass::Other, error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match client {
        Some(client) => identified(config, &client)?,
        None => config.with_no_client_auth(),
    };
    Ok(Tls { inner: MakeRustlsConnect::new(config) })
}

/// Adds the client certificate.
fn identified(
    config: ConfigBuilder<ClientConfig, WantsClientCert>,
    ClientCertificate { chain, key }: &ClientCertificate,
) -> Result<ClientConfig, Error> {
    let unusable = |what: &str, path: &Path, error: &dyn Display| {
        let path = path.display();
        Error::new(ErrorClass::Definition, format!("{what} {path} cannot be used: {error}"))
    };
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable("sslcert", chain, &error))?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("sslkey", key, &error))?;
    config
        .with_client_auth_cert(certificates, private)
        .map_err(|error| unusable("sslcert", chain, &error))
}

fn strict(
    provider: &Arc<CryptoProvider>,
    roots: Roots,
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(store(roots)?), provider.clone())
        .build()
        .map_err(|error| {
            Error::new(ErrorClass::Definition, format!("no usable root certificate: {error}"))
        })
}

fn store(roots: Roots) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::System => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            let unusable = |error: String| {
                let path = path.display();
                Error::new(
                    ErrorClass::Definition,
                    format!("sslrootcert {path} cannot be used: {error}"),
                )
            };
            let found =
                CertificateDer::pem_file_iter(&path).map_err(|e| unusable(e.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|e| unusable(e.to_string()))?;
                store.add(certificate).map_err(|e| unusable(e.to_string()))?;
            }
        }
    }
    Ok(store)
}

/// Ignores the name, and without chain verification the whole certificate. The signatures of the handshake are
/// always verified, since they bind the encryption to the certificate.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The name is checked last, so the chain was valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
