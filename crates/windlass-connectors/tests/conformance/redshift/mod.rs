//! Loading Redshift, on the testkit's stand-in: a server that refuses what Redshift refuses, in front of PostgreSQL
//! and moto.

mod cut;
mod fixture;
mod races;
mod refused;
mod rows;
