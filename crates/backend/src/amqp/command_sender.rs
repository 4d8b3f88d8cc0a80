//! The loop's end of the way of commands: renders them, and passes them to the library's thread.

use muster_conduct::{CommandSender, CommandToken, Untaken};
use muster_model::Micros;
use muster_platform::{CommandScratch, Dialect, OutboundCommand, TENANT};
use tokio::sync::mpsc;

use super::sending::Outgoing;

/// Commands that a peer has not settled, at the most.
pub(super) const UNDER_WAY_MAX: usize = 1_000;

/// Takes commands to the senders of their tenants.
pub(super) struct AmqpSender {
    dialect: Dialect,
    /// By tenant, in order: the address of its replies to this consumer.
    replies: Vec<(String, String)>,
    /// One for each of them, while the connection is up.
    queues: Vec<mpsc::Sender<Outgoing>>,
    under_way: usize,
    /// Buffers in which a command is rendered.
    scratch: CommandScratch,
}

impl AmqpSender {
    /// The sender of commands to these tenants. Replies come to addresses that end with `reply_id`.
    pub(super) fn new(dialect: Dialect, tenants: &[String], reply_id: &str) -> Self {
        let amqp = dialect.application.amqp.as_ref();
        let prefix = amqp.map_or("", |amqp| amqp.replies);
        let reply = |tenant: &String| {
            let address = format!("{}{reply_id}", prefix.replace(TENANT, tenant));
            (tenant.clone(), address)
        };
        Self {
            dialect,
            replies: tenants.iter().map(reply).collect(),
            queues: Vec::new(),
            under_way: 0,
            scratch: CommandScratch::default(),
        }
    }

    /// Returns the addresses of replies.
    pub(super) fn replies(&self) -> impl Iterator<Item = &str> {
        self.replies.iter().map(|(_, address)| address.as_str())
    }

    /// The connection is up.
    pub(super) fn up(&mut self, queues: Vec<mpsc::Sender<Outgoing>>) {
        (self.queues, self.under_way) = (queues, 0);
    }

    /// The connection is over, and with it every command under way.
    pub(super) fn lost(&mut self) {
        self.up(Vec::new());
    }

    /// The peer has settled a command.
    pub(super) fn settled(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

impl CommandSender for AmqpSender {
    fn is_connected(&self) -> bool {
        !self.queues.is_empty()
    }

    fn has_room(&self) -> bool {
        self.is_connected()
            && self.under_way < UNDER_WAY_MAX
            && self.queues.iter().all(|queue| queue.capacity() > 0)
    }

    fn take(
        &mut self,
        _: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        let amqp = self.dialect.application.amqp.as_ref();
        let amqp = amqp.ok_or(Untaken::Ever)?;
        let mut replies = self.replies.iter();
        let at = replies.position(|(tenant, _)| tenant == command.tenant);
        let at = at.ok_or(Untaken::Ever)?;
        let queue = self.queues.get(at).ok_or(Untaken::Yet)?;
        let rendered = (amqp.command)(command, &mut self.scratch);
        let reply = rendered
            .correlation_id
            .map(|id| (id.to_owned(), self.replies[at].1.clone()));
        let outgoing = Outgoing {
            token,
            to: rendered.to.to_owned(),
            subject: rendered.subject,
            content_type: rendered.content_type,
            reply,
            payload: rendered.payload.to_vec(),
        };
        queue.try_send(outgoing).map_err(|_| Untaken::Yet)?;
        self.under_way += 1;
        Ok(())
    }
}
