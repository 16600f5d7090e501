//! What AWS does between its services and moto does not: Lambda's runtime, the rule that invokes a
//! function with events, the trigger that invokes one with messages, and a gateway to watch it all.

mod bus;
mod function;
mod gateway;
mod http;
mod mapping;
mod runtime;

pub use bus::EventBus;
pub use function::{Failure, Function};
pub use gateway::{Gateway, Moment};
pub use mapping::EventSourceMapping;
