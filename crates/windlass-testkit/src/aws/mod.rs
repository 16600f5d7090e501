//! The parts of AWS that moto lacks: the Lambda runtime, the rule that invokes a function with events, the event
//! source mapping that invokes one with messages, and a gateway that watches requests.

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
