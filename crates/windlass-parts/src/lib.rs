//! Parts and reports in files and object stores: what a chunk or a job puts out, typed, exact, and
//! visible whole or not at all.
//!
//! A [`Place`] says where, a [`schema`] which columns, a [`PartWriter`] streams one object there, a
//! [`Manifest`], written last, lists what counts. Nothing here knows a store or an engine.

mod cell;
mod client;
mod column;
mod content;
mod csv;
mod cut;
mod decimal;
mod encode;
mod error;
mod fill;
mod format;
mod json;
mod local;
mod manifest;
mod moment;
mod name;
mod place;
mod rows;
mod schema;
mod survey;
mod upload;
mod writer;

pub use arrow_array::RecordBatch;
pub use arrow_schema::{DataType, Field, SchemaRef};
pub use cell::Cell;
pub use error::{Class, Error, Result};
pub use fill::{Words, fill, placeholders};
pub use format::{Compression, Format, Output};
pub use manifest::{Manifest, ManifestColumn, ManifestPart, Totals};
pub use name::PartName;
pub use place::Place;
pub use rows::{RowBuilder, Unread};
pub use schema::{schema, schema_of, type_name};
pub use survey::{Survey, survey};
pub use writer::{PartWriter, Written};
