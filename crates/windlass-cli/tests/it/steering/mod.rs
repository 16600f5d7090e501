//! Several processes on one store behave as one engine that an operator can steer while it runs.

mod clock;
mod health;
mod limits;
mod schedules;
mod stop;
mod workers;
