//! Read replicas: what is read from them, what never is, and what happens when one stops or lags. The replicas are real
//! streaming standbys of a test server.

mod fixture;
mod lagging;
mod mariadb;
mod served;
mod stopped;
mod written_back;
