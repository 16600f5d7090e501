//! Posts alerts to a webhook as JSON, signed according to Standard Webhooks.
//!
//! `docs/alerts.md` documents the format for receivers.

use crate::http_client::{cause, client};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use ring::hmac;
use serde_json::json;
use std::time::Duration;
use windlass_core::Secret;
use windlass_core::config::Alerts;
use windlass_store::Alert;

/// Timeout of a request; posting is retried after it.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// The configured webhook.
pub(super) struct Webhook {
    client: Client,
    url: String,
    keys: Vec<hmac::Key>,
}

impl Webhook {
    /// The webhook of this configuration; `None` if it has none.
    pub(super) fn new(alerts: &Alerts) -> Result<Option<Webhook>, String> {
        let Some(webhook) = &alerts.webhook else { return Ok(None) };
        let client = client()?.timeout(WEBHOOK_TIMEOUT).build().map_err(cause)?;
        let keys = alerts.secrets.iter().map(key).collect();
        Ok(Some(Webhook { client, url: webhook.url().to_owned(), keys }))
    }

    /// Posts an alert. Only the status of the response matters; its body is not read.
    pub(super) async fn post(&self, alert: &Alert) -> Result<(), String> {
        // The end of an alert is a message of its own.
        let end = if alert.cleared_at.is_some() { "-cleared" } else { "" };
        let (id, timestamp) = (format!("{}{end}", alert.id), Utc::now().timestamp());
        let body = json!({
            "id": alert.id,
            "kind": alert.kind,
            "jobType": alert.job_type,
            "jobId": alert.job_id,
            "message": alert.message,
            "at": alert.at,
            "clearedAt": alert.cleared_at,
            "clearedReason": alert.cleared_reason,
            "details": alert.details,
        });
        let body = body.to_string();
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json");
        let request = request
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.signature(&format!("{id}.{timestamp}.{body}")));
        let response =
            request.body(body).send().await.map_err(|error| match error.is_timeout() {
                true => format!("the receiver did not respond within {WEBHOOK_TIMEOUT:?}"),
                false => format!("cannot connect to the receiver: {}", cause(error)),
            })?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                Err(format!("the receiver returned {status}; set alerts.webhook to the final URL"))
            }
            status => Err(format!("the receiver returned {status}")),
        }
    }

    /// One signature per secret, so that a receiver can still verify with the old secret after a rotation.
    fn signature(&self, content: &str) -> String {
        let sign = |key| format!("v1,{}", STANDARD.encode(hmac::sign(key, content.as_bytes())));
        self.keys.iter().map(sign).collect::<Vec<_>>().join(" ")
    }
}

/// The key of a secret: base64 after `whsec_`, or else the bytes of the text.
fn key(secret: &Secret) -> hmac::Key {
    let text = secret.expose();
    let decoded = text.strip_prefix("whsec_").and_then(|rest| STANDARD.decode(rest).ok());
    hmac::Key::new(hmac::HMAC_SHA256, &decoded.unwrap_or_else(|| text.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_example_of_the_specification() {
        let secret = Secret::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let webhook = Webhook {
            client: client().unwrap().build().unwrap(),
            url: String::new(),
            keys: vec![key(&secret), key(&Secret::from("another secret".to_owned()))],
        };
        let content = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        let signature = webhook.signature(content);
        let (first, second) = signature.split_once(' ').unwrap();
        assert_eq!(first, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(second.starts_with("v1,") && second != first);
    }
}
