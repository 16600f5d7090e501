//! Connection settings from a URL and from AWS's environment.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::config::Credentials;
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

use crate::{Error, ErrorClass, security::decode, url::query_start};

/// The settings of AWS clients for a URL: `dynamodb://` or `dynamodb://KEY:SECRET@REGION`, with
/// `?endpoint=http://…` for another endpoint than AWS. Everything else comes from AWS's environment:
/// variables, profiles, the machine's role.
pub async fn settings(url: &str) -> Result<SdkConfig, Error> {
    let given = UrlSettings::parse(url)?;
    let tls = Provider::Rustls(CryptoMode::Ring);
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(Builder::new().tls_provider(tls).build_https())
        .retry_config(
            RetryConfig::standard()
                .with_max_attempts(MAX_ATTEMPTS)
                .with_initial_backoff(MIN_RETRY_DELAY)
                .with_max_backoff(MAX_RETRY_DELAY),
        )
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .build(),
        );
    if let Some(region) = given.region {
        loader = loader.region(Region::new(region));
    }
    if let Some(endpoint) = given.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some((key, secret)) = given.credentials {
        loader = loader.credentials_provider(Credentials::new(key, secret, None, None, "url"));
    }
    let settings = loader.load().await;
    if settings.region().is_none() {
        return Err(invalid(
            "no AWS region is configured; write dynamodb://REGION, or set AWS_REGION",
        ));
    }
    Ok(settings)
}

/// The most attempts of a request. The client waits for a random time that doubles up to a limit, which
/// handles throttling, and gives up earlier when most of its requests fail.
const MAX_ATTEMPTS: u32 = 10;
const MIN_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A request of DynamoDB takes milliseconds, or as long as the transfer of a megabyte.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Default, PartialEq, Eq)]
struct UrlSettings {
    credentials: Option<(String, String)>,
    region: Option<String>,
    endpoint: Option<String>,
}

impl UrlSettings {
    fn parse(url: &str) -> Result<UrlSettings, Error> {
        let rest = url.trim().strip_prefix("dynamodb://").ok_or_else(|| invalid(EXPECTED))?;
        let (address, query) = rest.split_at(query_start(rest));
        let (credentials, region) = match address.rsplit_once('@') {
            None => (None, address),
            Some((credentials, region)) => {
                let (key, secret) = credentials.split_once(':').ok_or_else(|| invalid(EXPECTED))?;
                (Some((decode(key)?, decode(secret)?)), region)
            }
        };
        let region = region.trim_end_matches('/');
        if !region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(invalid(EXPECTED));
        }
        let mut given = UrlSettings {
            credentials,
            region: (!region.is_empty()).then(|| region.to_owned()),
            endpoint: None,
        };
        for parameter in query.trim_start_matches('?').split('&').filter(|text| !text.is_empty()) {
            match parameter.split_once('=') {
                Some(("endpoint", endpoint)) => given.endpoint = Some(decode(endpoint)?),
                _ => {
                    return Err(invalid(
                        "the DynamoDB URL has an unknown parameter; the only one is endpoint",
                    ));
                }
            }
        }
        Ok(given)
    }
}

const EXPECTED: &str = "the DynamoDB URL is not valid; write dynamodb://REGION, or dynamodb:// where \
                        AWS's environment says the region";

fn invalid(message: &str) -> Error {
    Error::new(ErrorClass::Definition, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_overrides_the_environment() {
        assert_eq!(UrlSettings::parse("dynamodb://").unwrap(), UrlSettings::default());
        let region = UrlSettings::parse("dynamodb://eu-west-1").unwrap();
        assert_eq!(region.region.as_deref(), Some("eu-west-1"));
        let all =
            UrlSettings::parse("dynamodb://key:se%2Fcret@us-east-1?endpoint=http://127.0.0.1:1")
                .unwrap();
        let expected = UrlSettings {
            credentials: Some(("key".to_owned(), "se/cret".to_owned())),
            region: Some("us-east-1".to_owned()),
            endpoint: Some("http://127.0.0.1:1".to_owned()),
        };
        assert_eq!(all, expected);
    }

    #[test]
    fn an_invalid_url_is_explained() {
        for url in ["dynamodb://a.b/c", "dynamodb://key@region", "dynamodb://r?table=secret"] {
            let error = UrlSettings::parse(url).unwrap_err();
            assert_eq!(error.class, ErrorClass::Definition);
            assert!(error.message.contains("DynamoDB URL"), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
