//! Tests of alerts with running servers and a webhook receiver.

mod delivery;
mod endings;
mod fixture;
mod kinds;
mod signature;
mod webhook_receiver;
