//! Reads columns by name from rows of either database.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use uuid::Uuid;
#[cfg(feature = "postgres")]
use windlass_drivers::Row;
#[cfg(feature = "sqlite")]
use windlass_drivers::rusqlite;

use crate::{Result, StoreError};

/// A row whose columns are read by name.
pub(crate) trait Fields {
    fn opt_text(&self, name: &str) -> Result<Option<String>>;
    fn opt_int(&self, name: &str) -> Result<Option<i64>>;
    fn flag(&self, name: &str) -> Result<bool>;
    fn opt_id(&self, name: &str) -> Result<Option<Uuid>>;
    fn opt_time(&self, name: &str) -> Result<Option<DateTime<Utc>>>;
    fn opt_bytes(&self, name: &str) -> Result<Option<Vec<u8>>>;

    fn int(&self, name: &str) -> Result<i64> {
        self.opt_int(name)?.ok_or_else(|| missing(name))
    }

    fn text(&self, name: &str) -> Result<String> {
        self.opt_text(name)?.ok_or_else(|| missing(name))
    }

    fn id(&self, name: &str) -> Result<Uuid> {
        self.opt_id(name)?.ok_or_else(|| missing(name))
    }

    fn time(&self, name: &str) -> Result<DateTime<Utc>> {
        self.opt_time(name)?.ok_or_else(|| missing(name))
    }

    /// A column that contains JSON.
    fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        Ok(serde_json::from_str(&self.text(name)?)?)
    }

    /// A column that contains the name of a status.
    fn status<T>(&self, name: &str) -> Result<T>
    where
        T: std::str::FromStr<Err = windlass_core::state::UnknownStatus>,
    {
        Ok(self.text(name)?.parse()?)
    }

    /// A count that fits in 32 bits.
    fn small(&self, name: &str) -> Result<u32> {
        u32::try_from(self.int(name)?).map_err(|_| unreadable(name))
    }
}

#[cfg(feature = "postgres")]
impl Fields for Row {
    fn opt_text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_int(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_id(&self, name: &str) -> Result<Option<Uuid>> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_time(&self, name: &str) -> Result<Option<DateTime<Utc>>> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.try_get(name).map_err(windlass_drivers::Error::from)?)
    }
}

#[cfg(feature = "sqlite")]
impl Fields for rusqlite::Row<'_> {
    fn opt_text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_int(&self, name: &str) -> Result<Option<i64>> {
        Ok(self.get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.get(name).map_err(windlass_drivers::Error::from)?)
    }

    fn opt_id(&self, name: &str) -> Result<Option<Uuid>> {
        let text = self.opt_text(name)?;
        text.map(|text| text.parse().map_err(|_| unreadable(name))).transpose()
    }

    fn opt_time(&self, name: &str) -> Result<Option<DateTime<Utc>>> {
        let millis: Option<i64> = self.get(name).map_err(windlass_drivers::Error::from)?;
        let time = |millis| DateTime::from_timestamp_millis(millis).ok_or_else(|| unreadable(name));
        millis.map(time).transpose()
    }

    fn opt_bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.get(name).map_err(windlass_drivers::Error::from)?)
    }
}

fn missing(name: &str) -> StoreError {
    StoreError::Unreadable(format!("column `{name}` is missing or NULL"))
}

fn unreadable(name: &str) -> StoreError {
    StoreError::Unreadable(format!("column `{name}` has an unexpected value"))
}
