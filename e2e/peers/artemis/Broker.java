// A broker of Artemis in memory, whose queue `q` takes what is published on `readings`. Orders come by standard input:
// `count` prints what was ever added to the queue and acknowledged there, `restart` ends every connection of AMQP and
// listens again, `destroy` deletes the queue with its consumers. Each is answered by a line.
//
//     java -cp CLASSPATH Broker.java AMQP-PORT MQTT-PORT PASSWORD [FURTHER-PARAMETERS-OF-THE-AMQP-ACCEPTOR]

import java.util.Scanner;
import java.util.Set;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.CoreAddressConfiguration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

public final class Broker {
    private static final String QUEUE = "q";

    public static void main(String[] args) throws Exception {
        var embedded = new EmbeddedActiveMQ();
        embedded.setConfiguration(configuration(args));
        embedded.setSecurityManager(users(args[2]));
        embedded.start();
        System.out.println("ready");
        var orders = new Scanner(System.in);
        while (orders.hasNextLine()) {
            System.out.println(obey(embedded.getActiveMQServer(), orders.nextLine()));
        }
        embedded.stop();
    }

    private static ConfigurationImpl configuration(String[] args) throws Exception {
        var configuration = new ConfigurationImpl();
        configuration.setPersistenceEnabled(false);
        String further = args.length > 3 ? ";" + args[3] : "";
        configuration.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + args[0] + "?protocols=AMQP" + further);
        configuration.addAcceptorConfiguration("mqtt", "tcp://127.0.0.1:" + args[1] + "?protocols=MQTT");
        configuration.addAddressSetting("absent", new AddressSettings().setAutoCreateAddresses(false).setAutoCreateQueues(false));
        var address = new CoreAddressConfiguration().setName("readings").addRoutingType(RoutingType.MULTICAST);
        configuration.addAddressConfiguration(address.addQueueConfig(queue()));
        configuration.putSecurityRoles("#", Set.of(new Role("all", true, true, true, true, true, true, true, true, true, true)));
        return configuration;
    }

    private static QueueConfiguration queue() {
        return new QueueConfiguration(QUEUE).setAddress("readings").setRoutingType(RoutingType.MULTICAST);
    }

    // `app` may do anything, `nobody` may log in.
    private static ActiveMQJAASSecurityManager users(String password) {
        var users = new SecurityConfiguration();
        users.addUser("app", password);
        users.addRole("app", "all");
        users.addUser("nobody", password);
        users.addRole("nobody", "none");
        return new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users);
    }

    private static String obey(ActiveMQServer server, String order) throws Exception {
        switch (order) {
            case "count":
                var queue = server.locateQueue(SimpleString.toSimpleString(QUEUE));
                return "count " + queue.getMessagesAdded() + " " + queue.getMessagesAcknowledged();
            case "restart":
                var acceptor = server.getRemotingService().getAcceptor("amqp");
                acceptor.stop();
                acceptor.start();
                return "restarted";
            case "destroy":
                server.destroyQueue(SimpleString.toSimpleString(QUEUE), null, false, true);
                return "destroyed";
            default:
                return "unknown " + order;
        }
    }
}
