// Artemis with AMQP 1.0 on loopback, its journal in a folder. An address that holds more bytes than the limit gives
// its senders no more credit. What its queues counted stands at a port of HTTP, a line a queue: name, added,
// acknowledged, held.
//
//     java -cp CLASSPATH Broker.java AMQP-PORT COUNTS-PORT FOLDER BYTES-OF-AN-ADDRESS

import com.sun.net.httpserver.HttpServer;

import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;

import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.postoffice.QueueBinding;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.Queue;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressFullMessagePolicy;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;

public final class Broker {
    private Broker() {
    }

    public static void main(final String[] args) throws Exception {
        final File folder = new File(args[2]);
        final ConfigurationImpl configuration = new ConfigurationImpl();
        configuration.setSecurityEnabled(false);
        configuration.setPersistenceEnabled(true);
        configuration.setJournalType(JournalType.NIO);
        configuration.setJournalDirectory(new File(folder, "journal").getPath());
        configuration.setBindingsDirectory(new File(folder, "bindings").getPath());
        configuration.setPagingDirectory(new File(folder, "paging").getPath());
        configuration.setLargeMessagesDirectory(new File(folder, "large").getPath());
        configuration.setJournalFileSize(1024 * 1024);
        configuration.setMaxDiskUsage(-1);
        configuration.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + args[0] + "?protocols=AMQP");
        configuration.addAddressSetting("#", new AddressSettings()
                .setDefaultAddressRoutingType(RoutingType.ANYCAST)
                .setDefaultQueueRoutingType(RoutingType.ANYCAST)
                .setAutoDeleteAddresses(false)
                .setAutoDeleteQueues(false)
                .setMaxSizeBytes(Long.parseLong(args[3]))
                .setAddressFullMessagePolicy(AddressFullMessagePolicy.BLOCK));
        final EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.start();
        count(broker.getActiveMQServer(), Integer.parseInt(args[1]));
    }

    private static void count(final ActiveMQServer broker, final int port) throws Exception {
        final HttpServer counts = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        counts.createContext("/", exchange -> {
            final byte[] text = broker.getPostOffice().getAllBindings()
                    .filter(QueueBinding.class::isInstance)
                    .map(binding -> line(((QueueBinding) binding).getQueue()))
                    .collect(Collectors.joining())
                    .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, text.length == 0 ? -1 : text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        counts.start();
    }

    private static String line(final Queue queue) {
        return String.format("%s %d %d %d%n", queue.getName(), queue.getMessagesAdded(),
                queue.getMessagesAcknowledged(), queue.getMessageCount());
    }
}
