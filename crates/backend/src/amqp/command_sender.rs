//! The loop's end of the way of commands: renders them, and passes them to the library's thread.

use muster_conduct::{CommandSender, CommandToken, Untaken};
use muster_model::Micros;
use muster_platform::{CommandScratch, Dialect, OutboundCommand, TENANT};
use tokio::sync::mpsc;

use super::sending::Outgoing;

/// Takes commands to the senders of their tenants.
pub(super) struct AmqpSender {
    dialect: Dialect,
    /// By tenant, in order: the address of its replies to this consumer.
    replies: Vec<(String, String)>,
    /// One for each of them, while the connection is up.
    queues: Vec<mpsc::Sender<Outgoing>>,
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
            scratch: CommandScratch::default(),
        }
    }

    /// Returns the addresses of replies.
    pub(super) fn replies(&self) -> impl Iterator<Item = &str> {
        self.replies.iter().map(|(_, address)| address.as_str())
    }

    /// The connection is up.
    pub(super) fn up(&mut self, queues: Vec<mpsc::Sender<Outgoing>>) {
        self.queues = queues;
    }

    /// The connection is over, and with it every command under way.
    pub(super) fn lost(&mut self) {
        self.queues.clear();
    }

    /// The place of a tenant.
    fn place(&self, tenant: &str) -> Option<usize> {
        let search = |(known, _): &(String, String)| known.as_str().cmp(tenant);
        self.replies.binary_search_by(search).ok()
    }
}

impl CommandSender for AmqpSender {
    fn is_connected(&self) -> bool {
        !self.queues.is_empty()
    }

    fn has_room(&self) -> bool {
        self.queues.iter().any(|queue| queue.capacity() > 0)
    }

    /// Each tenant has a queue, so that one without credit holds back its own commands alone. A tenant without a queue
    /// has room: `take` says why its command goes nowhere.
    fn has_room_for(&self, tenant: &str) -> bool {
        let queue = self.place(tenant).and_then(|at| self.queues.get(at));
        queue.is_none_or(|queue| queue.capacity() > 0)
    }

    fn take(
        &mut self,
        _: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        let amqp = self.dialect.application.amqp.as_ref();
        let amqp = amqp.ok_or(Untaken::Ever)?;
        let at = self.place(command.tenant).ok_or(Untaken::Ever)?;
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
        queue.try_send(outgoing).map_err(|_| Untaken::Yet)
    }
}
