//! A shard on real loopback sockets, before peers that are played by hand.

mod connect;
mod http;
mod protocols;
mod rig;
mod shared;
mod unsendable;
mod waiting;
