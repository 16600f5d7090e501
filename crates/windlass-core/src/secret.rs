//! Text that must not be printed, logged or stored.

use serde::{Deserialize, Serialize, Serializer};

/// A secret of the configuration. It is printed as `…` and serialized as an empty string.
///
/// ```
/// use windlass_core::Secret;
///
/// let secret = Secret::from("hush".to_owned());
/// assert_eq!(format!("{secret:?}"), "…");
/// assert_eq!(secret.expose(), "hush");
/// ```
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("")
    }
}
