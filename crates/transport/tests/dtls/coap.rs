//! CoAP over DTLS: a message is a record, turned where it lies.

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, Opt, OptionNumber, Reply, Request, Server,
    ServerEvent, ServerSettings, Ticket,
};

use super::ends::{End, Told, connected};

/// Carries the output of one end's CoAP session to the other end.
fn pass(from: &mut End, said: &mut Vec<u8>, to: &mut End) -> Vec<u8> {
    assert!(from.dtls.wrap(said, 0));
    to.hear(Micros::ZERO, said);
    said.clear();
    match to.told.pop() {
        Some(Told::Data(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_and_its_response_travel_in_records() {
    let (mut device, mut gateway) = connected();
    let mut client = Client::new(Arc::new(ClientSettings::default()), 1);
    let mut server = Server::new(Arc::new(ServerSettings::default()), 2);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let ticket = Ticket { slot: 0, name: 7 };
    let path = [Opt::text(OptionNumber::URI_PATH, "t")];
    let request = Request::new(Code::POST, &path, b"21.5");
    let sent = client.request(Micros(0), ticket, &request, &mut up);
    sent.expect("there is room");
    let message = pass(&mut device, &mut up, &mut gateway);
    let event = server.receive(Micros(40), &message, &mut down);
    let Some(ServerEvent::Request(incoming)) = event else {
        panic!("a request");
    };
    assert_eq!(&*incoming.payload, b"21.5");
    let reply = Reply::new(Code::CHANGED, &[], b"");
    let sent = server.respond(Micros(50), incoming.pending, &reply, &mut down);
    sent.expect("it waits for an answer");
    let message = pass(&mut gateway, &mut down, &mut device);
    let event = client.receive(Micros(90), &message, &mut up);
    let Some(ClientEvent::Response(response)) = event else {
        panic!("a response");
    };
    assert_eq!((response.ticket, response.code), (ticket, Code::CHANGED));
}
