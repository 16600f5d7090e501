//! Ports for servers that restart while their clients stay.

use std::net::{Ipv4Addr, TcpListener};
use std::time::SystemTime;

/// A port below the kernel's range for outgoing connections, so that no outgoing connection takes it while a
/// server restarts.
pub fn free_port() -> u16 {
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is after 1970");
    let first = now.subsec_micros().wrapping_add(std::process::id().wrapping_mul(97));
    (0..12_000)
        .map(|next| 20_000 + (first.wrapping_add(next) % 12_000) as u16)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("no port is free")
}
