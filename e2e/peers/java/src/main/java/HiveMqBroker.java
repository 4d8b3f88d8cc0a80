import com.hivemq.embedded.EmbeddedHiveMQ;
import java.nio.file.Files;
import java.nio.file.Path;

/** HiveMQ Community Edition on three ports of loopback: plain, TLS with client certificates, WebSocket. */
final class HiveMqBroker {
    private static final String CONFIG = """
            <?xml version="1.0"?>
            <hivemq>
              <listeners>
                <tcp-listener><port>%s</port><bind-address>127.0.0.1</bind-address></tcp-listener>
                <tls-tcp-listener><port>%s</port><bind-address>127.0.0.1</bind-address><tls>
                  <keystore><path>%s/server.p12</path><password>changeit</password><private-key-password>changeit</private-key-password></keystore>
                  <truststore><path>%s/ca.p12</path><password>changeit</password></truststore>
                  <client-authentication-mode>REQUIRED</client-authentication-mode>
                </tls></tls-tcp-listener>
                <websocket-listener><port>%s</port><bind-address>127.0.0.1</bind-address><path>/mqtt</path>
                  <subprotocols><subprotocol>mqtt</subprotocol></subprotocols></websocket-listener>
              </listeners>
              <anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics>
            </hivemq>
            """;

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory(Path.of(args[3]), "hivemq");
        for (String name : new String[] {"conf", "data", "extensions"}) {
            Files.createDirectories(folder.resolve(name));
        }
        Files.writeString(folder.resolve("conf/config.xml"),
                CONFIG.formatted(args[0], args[1], args[3], args[3], args[2]));
        EmbeddedHiveMQ broker = EmbeddedHiveMQ.builder()
                .withConfigurationFolder(folder.resolve("conf"))
                .withDataFolder(folder.resolve("data"))
                .withExtensionsFolder(folder.resolve("extensions"))
                .withoutLoggingBootstrap()
                .build();
        broker.start().join();
        System.out.println("ready");
    }
}
