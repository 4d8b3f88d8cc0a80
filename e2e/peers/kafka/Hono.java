// What stands between the reference gateway and Kafka for e2e/kafka-commands.sh, as Hono does: what surfaces at the
// gateway over MQTT becomes records with Hono's headers, and commands from Kafka are handed to the gateway. On
// standard input are lines `topic|user properties|payload` of mosquitto_sub; on standard error stands what
// is wrong with the commands.
//
//     java -cp CLASSPATH Hono.java BOOTSTRAP MQTT-PORT TENANT

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Utils;

public final class Hono {
    private static final int PARTITIONS = 3;
    private static final String FAILURE = "application/vnd.eclipse-hono-delivery-failure-notification+json";

    private final String tenant;
    private final KafkaProducer<String, byte[]> producer;
    private final KafkaConsumer<String, byte[]> consumer;
    private final DataOutputStream gateway;

    private Hono(String servers, int mqtt, String tenant) throws IOException, InterruptedException {
        this.tenant = tenant;
        Map<String, Object> common = Map.of("bootstrap.servers", servers);
        create(common);
        producer = new KafkaProducer<>(common, new StringSerializer(), new ByteArraySerializer());
        Map<String, Object> reading = Map.of("bootstrap.servers", servers, "auto.offset.reset", "earliest");
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new ByteArrayDeserializer());
        var parts = IntStream.range(0, PARTITIONS).mapToObj(at -> new TopicPartition("hono.command." + tenant, at));
        consumer.assign(parts.toList());
        gateway = connect(mqtt);
    }

    public static void main(String[] args) throws Exception {
        Hono hono = new Hono(args[0], Integer.parseInt(args[1]), args[2]);
        System.out.println("ready");
        Thread commands = new Thread(hono::carryCommands);
        commands.setDaemon(true);
        commands.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            hono.surface(line);
        }
    }

    private void create(Map<String, Object> common) throws InterruptedException {
        try (Admin admin = Admin.create(common)) {
            for (String name : List.of("telemetry", "event", "command", "command_response")) {
                admin.createTopics(List.of(new NewTopic("hono." + name + "." + tenant, PARTITIONS, (short) 1))).all().get();
            }
        } catch (ExecutionException e) {
            System.err.println("wrong: " + e.getCause());
        }
    }

    // What surfaced: `<endpoint>/<tenant>/<device>`, and behind that correlation id and status.
    private void surface(String line) {
        String[] parts = line.split("\\|", 3);
        String[] levels = parts[0].split("/", -1);
        String device = levels.length > 2 ? levels[2] : "";
        String type = "application/json";
        String topic;
        switch (levels[0]) {
            case "telemetry", "event" -> topic = "hono." + levels[0] + ".";
            case "command_response" -> topic = "hono.command_response.";
            case "command_failure" -> {
                topic = "hono.command_response.";
                type = FAILURE;
            }
            default -> {
                return;
            }
        }
        var record = new ProducerRecord<>(topic + tenant, device, parts[2].getBytes(StandardCharsets.UTF_8));
        head(record, "device_id", device);
        head(record, "content-type", type);
        head(record, "creation-time", Long.toString(System.currentTimeMillis()));
        if (levels.length == 5) {
            head(record, "tenant_id", tenant);
            head(record, "correlation-id", levels[3]);
            head(record, "status", levels[4]);
        } else {
            head(record, "qos", "1");
            head(record, "orig_adapter", "hono-coap");
            int ttd = parts[1].indexOf("ttd:");
            if (ttd >= 0) {
                head(record, "ttd", parts[1].substring(ttd + 4).split(" ")[0]);
            }
        }
        producer.send(record);
    }

    private static void head(ProducerRecord<String, byte[]> record, String name, String value) {
        record.headers().add(name, value.getBytes(StandardCharsets.UTF_8));
    }

    private void carryCommands() {
        while (true) {
            for (ConsumerRecord<String, byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                String wrong = carry(record);
                if (!wrong.isEmpty()) {
                    System.err.println("wrong: command at " + record.offset() + " of " + record.partition() + ": " + wrong);
                }
            }
        }
    }

    // What is wrong with a command, by what Hono demands of it.
    private String carry(ConsumerRecord<String, byte[]> record) {
        String device = header(record, "device_id");
        String name = header(record, "subject");
        String id = header(record, "correlation-id");
        String reply = header(record, "response-required");
        byte[] key = record.key().getBytes(StandardCharsets.UTF_8);
        if (!record.key().equals(device)) return "device_id is not the key: " + device;
        if (name.isEmpty()) return "no subject";
        if (!reply.isEmpty() && !reply.equals("true")) return "response-required is " + reply;
        if (id.isEmpty() == reply.equals("true")) return "correlation id `" + id + "`, response-required `" + reply + "`";
        if (id.length() > 255) return "a correlation id of " + id.length();
        if (record.partition() != Utils.toPositive(Utils.murmur2(key)) % PARTITIONS) return "another partition than Java's";
        try {
            publish("command/" + tenant + "/" + device + "/" + id + "/" + name, record.value());
            return "";
        } catch (IOException e) {
            return "not handed over: " + e;
        }
    }

    private static String header(ConsumerRecord<String, byte[]> record, String name) {
        Header header = record.headers().lastHeader(name);
        return header == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
    }

    // MQTT 3.1.1, as far as is needed to publish at QoS 0.
    private static DataOutputStream connect(int port) throws IOException {
        Socket socket = new Socket("127.0.0.1", port);
        socket.setTcpNoDelay(true);
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        DataOutputStream connect = new DataOutputStream(body);
        connect.writeUTF("MQTT");
        connect.write(new byte[] {4, 2, 0, 0});
        connect.writeUTF("kafka");
        packet(out, 0x10, body.toByteArray());
        byte[] answer = socket.getInputStream().readNBytes(4);
        if (answer.length < 4 || answer[3] != 0) throw new IOException("the gateway refuses the connection");
        return out;
    }

    private void publish(String topic, byte[] payload) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        DataOutputStream publish = new DataOutputStream(body);
        publish.writeUTF(topic);
        publish.write(payload);
        packet(gateway, 0x30, body.toByteArray());
    }

    private static void packet(DataOutputStream out, int first, byte[] body) throws IOException {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        whole.write(first);
        for (int left = body.length; ; left >>= 7) {
            whole.write(left < 128 ? left : left & 0x7f | 0x80);
            if (left < 128) break;
        }
        whole.write(body);
        out.write(whole.toByteArray());
        out.flush();
    }
}
