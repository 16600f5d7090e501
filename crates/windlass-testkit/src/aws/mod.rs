//! The parts of AWS that moto lacks: the Lambda runtime, the rule that invokes a function with events, the event
//! source mappings that invoke one with messages and with changes of a table, a search engine, a gateway that
//! watches requests, and state machines that invoke a function.

mod bus;
mod function;
mod gateway;
mod http;
mod mapping;
mod runtime;
mod search;
mod state_machine;
mod stream;
mod trigger;

pub use bus::EventBus;
pub use function::{Failure, Function, Invocation};
pub use gateway::{Gateway, Moment};
pub use mapping::EventSourceMapping;
pub use search::SearchEngine;
pub use state_machine::StateMachine;
pub use stream::StreamMapping;
pub use trigger::DeployedTrigger;
