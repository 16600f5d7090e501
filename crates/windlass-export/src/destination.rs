//! Destinations of parts and reports: a folder, or a prefix of a bucket.

use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};

use crate::{Error, Result, client, local};

/// A folder or a bucket prefix. Cheap to clone. Nothing is created or contacted before the first access.
#[derive(Clone, Debug)]
pub struct Destination {
    url: String,
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The path, if it is a folder.
    folder: Option<PathBuf>,
}

impl Destination {
    /// Opens the destination of a URL: `file:reports/x/`, relative to the current folder, or
    /// `s3://bucket/prefix/`, with credentials, region and endpoint from the usual variables of AWS (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL` …).
    pub fn open(url: &str) -> Result<Destination> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Destination::open_with(url, variables)
    }

    /// The same with these variables instead of the environment's. Later ones override earlier ones.
    pub fn open_with(
        url: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Destination> {
        match url.split_once(':') {
            Some(("file", rest)) => folder(url, rest),
            Some(("s3", rest)) => bucket(url, rest, variables),
            _ => Err(invalid(url, "must be `file:folder/` or `s3://bucket/prefix/`")),
        }
    }

    /// Splits the URL of an object into the URL of its destination and its name.
    pub fn split(url: &str) -> Result<(&str, &str)> {
        let start = url.find(':').map_or(0, |colon| colon + 1);
        let at = url[start..].rfind('/').map_or(start, |slash| start + slash + 1);
        match url.split_at(at) {
            (_, "") => Err(invalid(url, "must name a file, but ends in `/`")),
            ("s3://", _) => Err(invalid(url, "must name an object in the bucket")),
            parts => Ok(parts),
        }
    }

    /// The URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of an object.
    pub fn object_url(&self, name: &str) -> String {
        format!("{}/{name}", self.url.trim_end_matches('/'))
    }

    /// Writes a small object in one request. It becomes visible when it is complete.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let path = self.path(name)?;
        self.put_at(&path, bytes.into()).await.map_err(|error| self.failed(error))
    }

    /// Writes an object in one request.
    pub(crate) async fn put_at(&self, path: &Path, bytes: Bytes) -> object_store::Result<()> {
        match self.file(path) {
            Some(file) => local::put(file, bytes).await,
            None => self.store.put(path, bytes.into()).await.map(drop),
        }
    }

    /// Begins a multipart upload.
    pub(crate) async fn begin_at(
        &self,
        path: &Path,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        match self.file(path) {
            Some(file) => local::begin(file).await,
            None => self.store.put_multipart(path).await,
        }
    }

    /// The file of an object, if the destination is a folder.
    fn file(&self, path: &Path) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(path.filename()?))
    }

    /// The bytes of an object. `None` if it does not exist.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        let path = self.path(name)?;
        let got = match self.store.get(&path).await {
            Ok(found) => found.bytes().await,
            Err(error) => Err(error),
        };
        match got {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => self.none_if_missing(error),
        }
    }

    /// `None` if there is no such object.
    pub(crate) fn none_if_missing<T>(&self, error: object_store::Error) -> Result<Option<T>> {
        match error {
            object_store::Error::NotFound { source, .. }
                if !source.to_string().contains("NoSuchBucket") =>
            {
                Ok(None)
            }
            error => Err(self.failed(error)),
        }
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub async fn remove(&self, name: &str) -> Result<()> {
        if let Some(folder) = &self.folder {
            // Files left by a crash have names that the object store refuses.
            return match tokio::fs::remove_file(folder.join(checked(name)?)).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::from_io(&self.url, &error))
                }
                _ => Ok(()),
            };
        }
        match self.store.delete(&self.path(name)?).await {
            Err(error) if !matches!(error, object_store::Error::NotFound { .. }) => {
                Err(self.failed(error))
            }
            _ => Ok(()),
        }
    }

    /// The objects directly in the destination, with their sizes, sorted by name.
    pub async fn list(&self) -> Result<Vec<(String, u64)>> {
        let mut found = match &self.folder {
            Some(folder) => self.list_folder(folder).await?,
            None => {
                let prefix = Some(&self.prefix).filter(|prefix| !prefix.as_ref().is_empty());
                let listed = self.store.list_with_delimiter(prefix).await;
                let objects = listed.map_err(|error| self.failed(error))?.objects.into_iter();
                let named = objects.filter_map(|object| {
                    Some((object.location.filename()?.to_owned(), object.size))
                });
                named.collect()
            }
        };
        found.sort();
        Ok(found)
    }

    async fn list_folder(&self, folder: &FilePath) -> Result<Vec<(String, u64)>> {
        let failed = |error: std::io::Error| Error::from_io(&self.url, &error);
        let mut entries = match tokio::fs::read_dir(folder).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            // A file may be deleted between listing and reading its metadata.
            let Ok(metadata) = entry.metadata().await else { continue };
            if let Ok(name) = entry.file_name().into_string()
                && metadata.is_file()
            {
                found.push((name, metadata.len()));
            }
        }
        Ok(found)
    }

    pub(crate) fn path(&self, name: &str) -> Result<Path> {
        let name = checked(name)?;
        let path = match self.prefix.as_ref() {
            "" => Path::parse(name),
            prefix => Path::parse(format!("{prefix}/{name}")),
        };
        path.map_err(|error| invalid(&self.url, &error.to_string()))
    }

    pub(crate) fn failed(&self, error: object_store::Error) -> Error {
        Error::from_store(&self.url, error)
    }
}

fn folder(url: &str, rest: &str) -> Result<Destination> {
    let path = match rest.strip_prefix("//") {
        Some(path) if path.starts_with('/') => path,
        Some(_) => return Err(invalid(url, "must be `file:folder/` or `file:///folder/`")),
        None => rest,
    };
    let absolute = std::path::absolute(if path.is_empty() { "." } else { path })
        .map_err(|error| Error::from_io(url, &error))?;
    // The path of the current folder has no symbolic links, so `..` can be resolved by name.
    let mut folder = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(folder.pop()),
            other => folder.push(other),
        }
    }
    let prefix = folder.to_str().and_then(|text| Path::parse(text.trim_matches('/')).ok());
    let prefix = prefix.ok_or_else(|| invalid(url, "has a name that is not valid UTF-8"))?;
    // Only for reading. `local` writes files, private and durable.
    let store = Arc::new(LocalFileSystem::new());
    Ok(Destination { url: url.to_owned(), store, prefix, folder: Some(folder) })
}

fn bucket(
    url: &str,
    rest: &str,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Destination> {
    let rest = rest.strip_prefix("//").unwrap_or_default();
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(invalid(url, "must be `s3://bucket/prefix/`"));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let prefix = Path::parse(prefix).map_err(|error| invalid(url, &error.to_string()))?;
    let mut builder = AmazonS3Builder::new();
    for (name, value) in variables.into_iter().filter(|(name, _)| name.starts_with("AWS_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder
        .with_bucket_name(bucket)
        .with_http_connector(client::Connector)
        .with_retry(client::retries())
        .build()
        .map_err(|error| invalid(url, &error.to_string()))?;
    Ok(Destination { url: url.to_owned(), store: Arc::new(store), prefix, folder: None })
}

/// Refuses a name that is not directly in the destination.
fn checked(name: &str) -> Result<&str> {
    let leaves_destination = name.is_empty()
        || name.contains('/')
        || [".", ".."].contains(&name)
        || name.chars().any(char::is_control);
    if leaves_destination {
        Err(Error::Invalid(format!("{name:?} is not a valid file name")))
    } else {
        Ok(name)
    }
}

fn invalid(url: &str, what: &str) -> Error {
    Error::Invalid(format!("`{url}`: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_url_is_split() {
        for (url, destination, name) in [
            ("file:reports/a/b.csv", "file:reports/a/", "b.csv"),
            ("file:b.csv", "file:", "b.csv"),
            ("s3://bucket/a/b.csv", "s3://bucket/a/", "b.csv"),
            ("s3://bucket/b.csv", "s3://bucket/", "b.csv"),
        ] {
            assert_eq!(Destination::split(url).unwrap(), (destination, name));
        }
        for wrong in ["file:reports/", "s3://bucket/", "s3://bucket"] {
            assert!(Destination::split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn folders_are_relative_to_the_current_folder() {
        let current = std::env::current_dir().unwrap();
        let of = |url: &str| Destination::open_with(url, []).unwrap().folder.unwrap();
        assert_eq!(of("file:a/b/"), current.join("a/b"));
        assert_eq!(of("file:"), current);
        assert_eq!(of("file:../x"), current.parent().unwrap().join("x"));
        assert_eq!(of("file:///x/y z/"), FilePath::new("/x/y z"));
    }

    #[test]
    fn invalid_urls_are_refused() {
        for wrong in
            ["reports/", "ftp://x/", "s3:bucket", "s3:///x", "file://host/x", "s3://b/a//c/"]
        {
            assert!(Destination::open_with(wrong, []).is_err(), "{wrong}");
        }
        let destination = Destination::open_with("file:x", []).unwrap();
        for wrong in ["", "..", "a/b", "a\nb"] {
            assert!(destination.path(wrong).is_err(), "{wrong:?}");
        }
    }
}
