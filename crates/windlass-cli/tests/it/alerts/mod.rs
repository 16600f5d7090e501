//! Alerts as whoever receives them sees it: real servers, a real listener.

mod delivery;
mod fixture;
mod kinds;
mod receiver;
mod signature;
