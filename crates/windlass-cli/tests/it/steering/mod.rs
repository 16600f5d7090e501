//! Several processes on one store behave as one engine that an operator controls at run time.

mod clock;
mod emergency_stop;
mod health;
mod limits;
mod schedules;
mod workers;
