//! Parts and reports in files and object stores: what a chunk or a job puts out, typed, exact, and
//! visible whole or not at all.
//!
//! A [`Destination`] says where, a [`schema`] which columns, a [`PartWriter`] streams one object there, a
//! [`Manifest`], written last, lists what counts. Nothing here knows a store or an engine.

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
mod rebatch;
mod rows;
mod schema;
mod upload;
mod writer;

pub use arrow_array::RecordBatch;
pub use arrow_schema::{DataType, Field, SchemaRef};
pub use cell::Cell;
pub use destination::Destination;
pub use error::{Class, Error, Result};
pub use format::{Compression, Format, Output};
pub use manifest::{Manifest, ManifestColumn, ManifestPart, Totals};
pub use name::PartName;
pub use orphan_scan::{OrphanScan, survey};
pub use path_template::{TemplateVars, fill, placeholders};
pub use rows::{RowBuilder, Unread};
pub use schema::{schema, schema_of, type_name};
pub use writer::{PartWriter, Written};
