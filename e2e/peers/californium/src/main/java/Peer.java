// Californium's two ends of CoAP: `serve PORT`, and `ask METHOD URI [BODY_FILE|-] [OUT_FILE]`,
// `non URI`, `ping URI`.

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

public final class Peer {
    public static void main(String[] words) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        switch (words[0]) {
            case "serve" -> serve(Integer.parseInt(words[1]));
            case "ask" -> ask(words);
            case "non" -> report(new CoapClient(words[1]).useNONs().get(), null);
            case "ping" -> System.out.println(new CoapClient(words[1]).ping(20_000) ? "pong" : "silence");
            default -> throw new IllegalArgumentException(words[0]);
        }
        if (!words[0].equals("serve")) {
            System.exit(0);
        }
    }

    private static Configuration settings() {
        return Configuration.createStandardWithoutFile()
                .set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 200_000)
                .set(CoapConfig.MAX_MESSAGE_SIZE, 1_024)
                .set(CoapConfig.PREFERRED_BLOCK_SIZE, 512);
    }

    private static void serve(int port) {
        CoapServer server = new CoapServer(settings());
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(settings()).setInetSocketAddress(address).build());
        server.add(new Hello(), new Later(), new Store(), new Busy());
        server.start();
    }

    private static void ask(String[] words) throws Exception {
        Request request = new Request(Code.valueOf(words[1].toUpperCase()));
        request.setURI(words[2]);
        if (words.length > 3 && !words[3].equals("-")) {
            request.setPayload(Files.readAllBytes(Path.of(words[3])));
        }
        CoapClient client = new CoapClient();
        client.setEndpoint(CoapEndpoint.builder().setConfiguration(settings()).build());
        client.setTimeout(60_000L);
        report(client.advanced(request), words.length > 4 ? words[4] : null);
    }

    private static void report(CoapResponse response, String file) throws Exception {
        if (response == null) {
            System.out.println("no response");
            return;
        }
        Type type = response.advanced().getType();
        int length = response.getPayload() == null ? 0 : response.getPayload().length;
        System.out.println(response.getCode() + " " + type + " bytes=" + length);
        if (file != null) {
            Files.write(Path.of(file), response.getPayload());
        }
    }

    private static final class Hello extends CoapResource {
        Hello() {
            super("hello");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond("hello");
        }
    }

    private static final class Later extends CoapResource {
        Later() {
            super("separate");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.accept();
            new Thread(() -> exchange.respond("at last")).start();
        }
    }

    private static final class Busy extends CoapResource {
        Busy() {
            super("busy");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.setMaxAge(2);
            exchange.respond(ResponseCode.SERVICE_UNAVAILABLE, "later");
        }
    }

    private static final class Store extends CoapResource {
        private volatile byte[] stored = new byte[0];

        Store() {
            super("store");
        }

        @Override
        public void handlePUT(CoapExchange exchange) {
            stored = exchange.getRequestPayload();
            exchange.respond(ResponseCode.CHANGED);
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond(ResponseCode.CONTENT, stored);
        }
    }
}
