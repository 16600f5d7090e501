//! Writes parts and reports to files and object stores. An object becomes visible when it is complete.
//!
//! A [`Destination`] is a folder or a bucket prefix. A [`schema`] defines the columns. A [`PartWriter`] streams one
//! object. A [`Manifest`], written last, lists the valid parts. This crate does not depend on the store or the
//! engine.

mod cell;
mod client;
mod column;
mod content;
mod csv;
mod datetime;
mod decimal;
mod destination;
mod encode;
mod error;
mod format;
mod json;
mod local;
mod manifest;
mod name;
mod orphan_scan;
mod path_template;
mod reading;
mod rebatch;
mod redshift;
mod rows;
mod schema;
mod upload;
mod writer;

pub use arrow_array::RecordBatch;
pub use arrow_schema::{DataType, Field, SchemaRef};
pub use cell::Cell;
pub use destination::Destination;
pub use error::{Error, Result};
pub use format::{Compression, Format, Output};
pub use manifest::{Manifest, ManifestColumn, ManifestPart, Totals};
pub use name::PartName;
pub use orphan_scan::{OrphanScan, scan_orphans};
pub use path_template::{TemplateVars, fill_template, placeholders};
pub use reading::StoredObject;
pub use redshift::{redshift_output, redshift_type, write_redshift_manifest};
pub use rows::{InvalidValue, RowBuilder};
pub use schema::{columns_in, schema, schema_of, type_name};
pub use writer::{PartWriter, SealedPart, Written};
