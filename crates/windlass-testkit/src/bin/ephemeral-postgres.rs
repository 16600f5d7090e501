//! Runs an ephemeral PostgreSQL and prints its URL. Stops when standard input is closed.
//!
//! For manual use, and for the test that kills this process and checks that its server dies too.

use std::io::Read;

use windlass_testkit::{Options, PostgresServer};

fn main() {
    let server = PostgresServer::start(Options::default());
    println!("{}", server.url("postgres"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
