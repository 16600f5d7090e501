//! The index in OpenSearch, written with `_bulk` requests that are signed as AWS requires.

use crate::action::Change;
use anyhow::{Context, bail};
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use serde_json::{Value as Json, json};
use std::time::{Duration, SystemTime};
use windlass_drivers::dynamodb::SdkConfig;

/// The index that `SEARCH_URL` and `SEARCH_INDEX` name.
pub(crate) struct SearchIndex {
    client: reqwest::Client,
    url: String,
    index: String,
    settings: SdkConfig,
}

const CONTENT_TYPE: &str = "application/x-ndjson";
const TIMEOUT: Duration = Duration::from_secs(30);

impl SearchIndex {
    pub(crate) async fn from_environment() -> anyhow::Result<SearchIndex> {
        let url = std::env::var("SEARCH_URL")
            .context("SEARCH_URL is not set; it must be the endpoint of an OpenSearch domain")?;
        let index = std::env::var("SEARCH_INDEX").unwrap_or_else(|_| "candidates".to_owned());
        let client = windlass_engine::client().map_err(anyhow::Error::msg)?;
        let client = client.timeout(TIMEOUT).build()?;
        let settings = windlass_aws::environment().await?;
        Ok(SearchIndex { client, url: url.trim_end_matches('/').to_owned(), index, settings })
    }

    /// Applies changes in order. Returns the first one that failed, from which on they must be applied again.
    pub(crate) async fn apply<'a>(
        &self,
        changes: &'a [Change],
    ) -> anyhow::Result<Option<&'a Change>> {
        if changes.is_empty() {
            return Ok(None);
        }
        let answer = self.bulk(changes.iter().map(|change| self.action(change)).collect()).await?;
        let items = answer["items"].as_array().context("the answer has no items")?;
        let mut failed = None;
        for (change, item) in changes.iter().zip(items) {
            let result =
                item.as_object().and_then(|item| item.values().next()).unwrap_or(&Json::Null);
            // 409: the index has a newer version. 404: it has no document to delete.
            let is_done = matches!(result["status"].as_u64(), Some(200..=299 | 404 | 409));
            if !is_done {
                eprintln!(
                    "{}",
                    json!({"message": "failed to index a candidate",
                    "identifier": change.identifier, "error": result["error"]})
                );
                failed = failed.or(Some(change));
            }
        }
        Ok(failed)
    }

    /// The lines of one change. A document whose version is older than the one in the index is refused.
    fn action(&self, change: &Change) -> String {
        let target = json!({"_index": self.index, "_id": change.identifier,
                            "version": change.version, "version_type": "external_gte"});
        match &change.document {
            Some(document) => format!("{}\n{document}\n", json!({ "index": target })),
            None => format!("{}\n", json!({ "delete": target })),
        }
    }

    async fn bulk(&self, body: String) -> anyhow::Result<Json> {
        let url = format!("{}/_bulk", self.url);
        let mut request = self.client.post(&url).header("content-type", CONTENT_TYPE);
        for (name, value) in self.signature(&url, &body).await? {
            request = request.header(name, value);
        }
        let response = request.body(body).send().await.context("the search engine")?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            bail!("the search engine answered {status}: {text}");
        }
        serde_json::from_str(&text).context("the answer of the search engine")
    }

    /// The headers that sign a request as the function's role.
    async fn signature(&self, url: &str, body: &str) -> anyhow::Result<Vec<(String, String)>> {
        let provider = self.settings.credentials_provider().context("there are no credentials")?;
        let identity = provider.provide_credentials().await?.into();
        let region = self.settings.region().context("there is no region")?.to_string();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&region)
            .name("es")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()?;
        let headers = [("content-type", CONTENT_TYPE)].into_iter();
        let request =
            SignableRequest::new("POST", url, headers, SignableBody::Bytes(body.as_bytes()))?;
        let (instructions, _) = sign(request, &params.into())?.into_parts();
        let (headers, _) = instructions.into_parts();
        let headers = headers.into_iter();
        Ok(headers.map(|one| (one.name().to_owned(), one.value().to_owned())).collect())
    }
}
