//! The HTTP client of the object store: with the system's root certificates, ring, and timeouts that allow a part
//! of the usual size over a slow connection.

use std::sync::Arc;
use std::time::Duration;

use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientOptions, RetryConfig};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Creates the HTTP client. The default one needs a process-wide crypto provider, which a library must not install.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = tls().and_then(|tls| {
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls)
                .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(Duration::from_secs(5))
                .read_timeout(Duration::from_secs(60))
                .timeout(Duration::from_secs(300));
            Ok(builder.build()?)
        });
        client
            .map(HttpClient::new)
            .map_err(|source| object_store::Error::Generic { store: "S3", source })
    }
}

/// Retries short failures. The engine retries longer ones, since it can report that it is waiting.
pub(crate) fn retries() -> RetryConfig {
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

fn tls() -> Result<ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
