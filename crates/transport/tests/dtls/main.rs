//! Both ends of DTLS against each other, in memory and under virtual time.

mod alerts;
mod coap;
mod ends;
mod golden;
mod handshakes;
mod identities;
mod neighbours;
mod network;
mod records;
mod resumption;
