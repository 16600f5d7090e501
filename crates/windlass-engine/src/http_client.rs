//! The one way in which we call others over HTTP: with the machine's roots, and no further than
//! where we were sent.

use reqwest::{Client, ClientBuilder, redirect};
use rustls::crypto::ring;
use std::sync::Arc;

/// A client to be finished with time-outs and headers. It follows no redirects: they would carry
/// secrets to wherever an answer says.
pub fn client() -> Result<ClientBuilder, String> {
    Ok(Client::builder()
        .tls_backend_preconfigured(tls()?)
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none()))
}

/// What went wrong with a request, by its innermost cause: the outermost says only that a request
/// failed. The URL is left out, since it may hold a secret.
pub(crate) fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// TLS with the machine's roots and a crypto provider of our own: a library installs none for the
/// whole process.
fn tls() -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
