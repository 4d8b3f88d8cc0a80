//! Cost of a consumer of AMQP 1.0 next to `fe2o3-amqp` alone, before a peer that sends as fast as credit allows: CPU
//! time of the whole process, from connecting to the last message.
//!
//! ```text
//! amqp_cost serve MESSAGES         # the peer of one connection after the other; prints its port
//! amqp_cost bare PORT MESSAGES     # receives and accepts every message and looks at none
//! amqp_cost muster PORT MESSAGES   # decodes each, has it join the ledger, and accepts it
//! ```
//!
//! Prints a line of JSON.

#[path = "cost/running.rs"]
mod running;

use std::collections::VecDeque;
use std::io::Write;

use fe2o3_amqp::acceptor::{
    ConnectionAcceptor, LinkAcceptor, LinkEndpoint, SaslAnonymousMechanism, SessionAcceptor,
};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Data, Message, Properties};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use muster_backend::amqp_loop;
use muster_conduct::Order;
use muster_protocol::layer::Plain;
use muster_transport::Clients;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use running::{Done, Messages, Running, START, TENANT, cpu_s, report};

const ADDRESS: &str = "telemetry/load-tests";
/// The credit of both, a scenario's default.
const CREDIT: u32 = 1_000;
/// Messages under way to a consumer, more than its credit.
const UNDER_WAY: usize = 4_096;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["serve", messages] => runtime.block_on(serve(messages.parse()?)),
        ["bare", port, messages] => runtime.block_on(bare(port.parse()?, messages.parse()?)),
        ["muster", port, messages] => muster(port.parse()?, messages.parse()?),
        _ => Err("usage: amqp_cost serve MESSAGES | bare|muster PORT MESSAGES".into()),
    }
}

/// Serves one consumer after the other.
async fn serve(messages: u64) -> Done {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(connection(stream, messages));
    }
}

async fn connection(stream: TcpStream, messages: u64) -> Done {
    let acceptor = ConnectionAcceptor::builder()
        .container_id("amqp-cost")
        .sasl_acceptor(SaslAnonymousMechanism::new())
        .build();
    let mut connection = acceptor.accept(stream).await?;
    let sessions = SessionAcceptor::new();
    while let Ok(mut session) = sessions.accept(&mut connection).await {
        tokio::spawn(async move {
            let links = LinkAcceptor::new();
            while let Ok(link) = links.accept(&mut session).await {
                if let LinkEndpoint::Sender(sender) = link {
                    tokio::spawn(send(sender, messages));
                }
            }
        });
    }
    Ok(())
}

/// Sends every message on the address of telemetry, and nothing on others.
async fn send(mut sender: Sender, messages: u64) -> Done {
    let source = sender.source().as_ref().and_then(|it| it.address.clone());
    if source.as_deref() != Some(ADDRESS) {
        let _ = sender.on_detach().await;
        return Ok(());
    }
    let plan = running::plan(&backend(1), messages)?;
    let mut all = Messages::new(&plan)?;
    let mut under_way = VecDeque::new();
    for number in 0..messages {
        let (device, payload) = all.render(number)?;
        under_way.push_back(sender.send_batchable(message(&device, payload)).await?);
        if under_way.len() > UNDER_WAY
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
    }
    for rest in under_way {
        rest.await?;
    }
    let _ = sender.on_detach().await;
    Ok(())
}

/// As Hono's adapters make it.
fn message(device: &str, payload: &[u8]) -> Message<Data> {
    let properties = Properties::builder()
        .to(ADDRESS)
        .content_type("application/vnd.eclipse.ditto+json")
        .build();
    let further = ApplicationProperties::builder()
        .insert("device_id", device.to_owned())
        .insert("tenant_id", TENANT)
        .insert("orig_adapter", "hono-coap")
        .insert("orig_address", "/telemetry")
        .insert("ttd", 10_i32)
        .build();
    Message::builder()
        .properties(properties)
        .application_properties(further)
        .data(payload)
        .build()
}

/// The library's own loop with the same credit.
async fn bare(port: u16, messages: u64) -> Done {
    let began = cpu_s();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut connection = Connection::builder()
        .container_id("bare")
        .sasl_profile(SaslProfile::Anonymous)
        .open_with_stream(stream)
        .await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut receiver = Receiver::builder()
        .name("bare")
        .source(ADDRESS)
        .credit_mode(CreditMode::Auto(CREDIT))
        .attach(&mut session)
        .await?;
    for _ in 0..messages {
        let delivery = receiver.recv::<Body<Value>>().await?;
        receiver.accept(&delivery).await?;
    }
    report(messages, messages, began)
}

/// A consumer as a run has it.
fn muster(port: u16, messages: u64) -> Done {
    let plan = running::plan(&backend(port), messages)?;
    let began = cpu_s();
    let made = |spec: &_, mailbox| amqp_loop(spec, &mut Clients::Plain(Plain), None, mailbox);
    let consumer = Running::start(&plan, made, [START, Order::Connect])?;
    consumer.consume(messages, began)
}

/// The keys of the backend at a port.
fn backend(port: u16) -> String {
    format!(r#"url: "amqp://127.0.0.1:{port}", credit: {CREDIT}"#)
}
