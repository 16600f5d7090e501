//! Read replicas: what they serve, what they never serve, and what becomes of reads when one is
//! stopped or lags. The replicas are real: streaming standbys of a server of our own.

mod away;
mod fixture;
mod lagging;
mod mariadb;
mod served;
mod written_back;
