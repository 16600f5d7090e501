//! Runs an ephemeral PostgreSQL and prints its URL; it ends when standard input does.
//!
//! For trying things by hand, and for the test that kills it to see its server die.

use std::io::Read;

use windlass_testkit::{Options, PostgresServer};

fn main() {
    let server = PostgresServer::start(Options::default());
    println!("{}", server.url("postgres"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
