//! How the object store is called: with the machine's roots and the one crypto library, and with
//! time-outs under which a part of the usual size still goes over a slow line.

use std::sync::Arc;
use std::time::Duration;

use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientOptions, RetryConfig};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

/// Makes the client that requests go through. The library's own would look for a crypto provider
/// of the whole process, and a library of ours installs none.
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

/// A moment's trouble is bridged here; what lasts longer is the engine's to wait for, since it can
/// show that it waits.
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
