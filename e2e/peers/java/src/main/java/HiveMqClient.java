import com.hivemq.client.mqtt.MqttClientSslConfig;
import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt3.Mqtt3BlockingClient;
import com.hivemq.client.mqtt.mqtt3.Mqtt3Client;
import com.hivemq.client.mqtt.mqtt5.Mqtt5BlockingClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5Client;
import com.hivemq.client.mqtt.MqttWebSocketConfig;
import java.io.FileInputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntConsumer;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;

/** hivemq-mqtt-client as `sub` or `pub`; the arguments are those of every client here (interop.sh). */
final class HiveMqClient {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final MqttWebSocketConfig WEB = MqttWebSocketConfig.builder().serverPath("mqtt").build();
    private final Map<String, String> told = new HashMap<>();

    public static void main(String[] args) throws Exception {
        HiveMqClient client = new HiveMqClient();
        for (int at = 1; at < args.length; at += 2) client.told.put(args[at], args[at + 1]);
        if (client.told.getOrDefault("--version", "5").equals("5")) client.five(args[0]);
        else client.three(args[0]);
        System.exit(0);
    }

    private String of(String key, String otherwise) {
        return told.getOrDefault(key, otherwise);
    }

    private int count() {
        return Integer.parseInt(of("--count", "1"));
    }

    private MqttQos qos() {
        return MqttQos.fromCode(Integer.parseInt(of("--qos", "0")));
    }

    private byte[] body(int n) {
        return (of("--payload", "m") + (count() == 1 ? "" : "-" + n)).getBytes(StandardCharsets.UTF_8);
    }

    private static void came(String topic, int qos, boolean retained, byte[] payload) {
        System.out.println(topic + " " + qos + " " + retained + " " + new String(payload, StandardCharsets.UTF_8));
    }

    private KeyStore store(String name) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream file = new FileInputStream(of("--pki", "") + "/" + name)) {
            store.load(file, PASSWORD);
        }
        return store;
    }

    private MqttClientSslConfig tls() throws Exception {
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store("ca.p12"));
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store("client.p12"), PASSWORD);
        return MqttClientSslConfig.builder().trustManagerFactory(trust).keyManagerFactory(keys).build();
    }

    private URI url() {
        return URI.create(of("--url", ""));
    }

    private void five(String command) throws Exception {
        var builder = Mqtt5Client.builder().serverHost(url().getHost()).serverPort(url().getPort());
        if (url().getScheme().equals("mqtts")) builder = builder.sslConfig(tls());
        if (url().getScheme().equals("ws")) builder = builder.webSocketConfig(WEB);
        Mqtt5BlockingClient client = builder.buildBlocking();
        var connect = client.connectWith();
        if (told.containsKey("--receive-maximum")) {
            int most = Integer.parseInt(of("--receive-maximum", ""));
            connect = connect.restrictions().receiveMaximum(most).applyRestrictions();
        }
        if (told.containsKey("--will")) {
            connect = connect.willPublish().topic(of("--will", "")).qos(MqttQos.AT_LEAST_ONCE)
                    .payload("gone".getBytes(StandardCharsets.UTF_8)).applyWillPublish();
        }
        connect.send();
        if (command.equals("sub")) listen(client);
        else speak(n -> client.publishWith().topic(of("--topic", "")).qos(qos()).retain(retain()).payload(body(n)).send());
        client.disconnect();
    }

    /** One of 3.1.1 is used as one of 5 would be: the library has two of everything. */
    private void three(String command) throws Exception {
        var builder = Mqtt3Client.builder().serverHost(url().getHost()).serverPort(url().getPort());
        if (url().getScheme().equals("mqtts")) builder = builder.sslConfig(tls());
        if (url().getScheme().equals("ws")) builder = builder.webSocketConfig(WEB);
        Mqtt3BlockingClient client = builder.buildBlocking();
        client.connect();
        if (command.equals("sub")) listen(client);
        else speak(n -> client.publishWith().topic(of("--topic", "")).qos(qos()).retain(retain()).payload(body(n)).send());
        client.disconnect();
    }

    private boolean retain() {
        return told.containsKey("--retain");
    }

    private void listen(Mqtt5BlockingClient client) throws Exception {
        try (var publishes = client.publishes(MqttGlobalPublishFilter.ALL)) {
            client.subscribeWith().topicFilter(of("--topic", "")).qos(qos()).send();
            System.out.println("subscribed");
            for (int n = 0; n < count(); n++) {
                var message = publishes.receive();
                came(message.getTopic().toString(), message.getQos().getCode(), message.isRetain(), message.getPayloadAsBytes());
            }
        }
    }

    private void listen(Mqtt3BlockingClient client) throws Exception {
        try (var publishes = client.publishes(MqttGlobalPublishFilter.ALL)) {
            client.subscribeWith().topicFilter(of("--topic", "")).qos(qos()).send();
            System.out.println("subscribed");
            for (int n = 0; n < count(); n++) {
                var message = publishes.receive();
                came(message.getTopic().toString(), message.getQos().getCode(), message.isRetain(), message.getPayloadAsBytes());
            }
        }
    }

    private void speak(IntConsumer publish) {
        for (int n = 0; n < count(); n++) publish.accept(n);
        System.out.println("accepted " + count());
    }
}
