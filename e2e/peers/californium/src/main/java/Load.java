// Californium's client core as a generator of load, which `just bench coap-peers` sets beside Muster: clients with an
// endpoint each, each with one confirmable POST of 100 bytes under way.
// `cpu ADDRESS CLIENTS WARM_SECONDS SECONDS` prints requests and CPU time of the process, as a line of JSON.
// `idle ADDRESS CLIENTS` has each client ask once, says `ready`, and goes on until its input ends.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.MessageObserverAdapter;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.elements.AddressEndpointContext;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

public final class Load {
    private static final byte[] BODY = "x".repeat(100).getBytes();

    private final AddressEndpointContext server;
    private final List<CoapEndpoint> clients = new ArrayList<>();
    private final LongAdder answered = new LongAdder();
    private final AtomicLong failed = new AtomicLong();

    private Load(String address, int count) throws Exception {
        String[] parts = address.split(":");
        server = new AddressEndpointContext(new InetSocketAddress(parts[0], Integer.parseInt(parts[1])));
        // As few threads as it can do with: two of each client's own, and these.
        Configuration settings = Configuration.createStandardWithoutFile()
                .set(UdpConfig.UDP_RECEIVER_THREAD_COUNT, 1)
                .set(UdpConfig.UDP_SENDER_THREAD_COUNT, 1);
        int cores = Runtime.getRuntime().availableProcessors();
        ScheduledExecutorService work = Executors.newScheduledThreadPool(cores);
        ScheduledExecutorService chores = Executors.newSingleThreadScheduledExecutor();
        for (int client = 0; client < count; client++) {
            CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(settings)
                    .setInetSocketAddress(new InetSocketAddress("127.0.0.1", 0)).build();
            endpoint.setExecutors(work, chores);
            endpoint.start();
            clients.add(endpoint);
        }
    }

    public static void main(String[] words) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        Load load = new Load(words[1], Integer.parseInt(words[2]));
        switch (words[0]) {
            case "cpu" -> load.cpu(Long.parseLong(words[3]), Long.parseLong(words[4]));
            case "idle" -> load.idle();
            default -> throw new IllegalArgumentException(words[0]);
        }
        System.exit(0);
    }

    private void cpu(long warmSeconds, long seconds) throws Exception {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (CoapEndpoint client : clients) {
            ask(client, () -> askAgain(client));
        }
        Thread.sleep(warmSeconds * 1_000);
        long before = answered.sum();
        long began = system.getProcessCpuTime();
        Thread.sleep(seconds * 1_000);
        long messages = answered.sum() - before;
        double cpu = (system.getProcessCpuTime() - began) / 1e9;
        System.out.printf(Locale.ROOT, "{\"messages\":%d,\"failed\":%d,\"cpu_s\":%f}%n", messages, failed.get(), cpu);
    }

    private void askAgain(CoapEndpoint client) {
        ask(client, () -> askAgain(client));
    }

    private void idle() throws Exception {
        CountDownLatch all = new CountDownLatch(clients.size());
        for (CoapEndpoint client : clients) {
            ask(client, all::countDown);
        }
        all.await();
        // What a client leaves behind for a while is no part of one that is idle.
        System.gc();
        System.out.println("ready");
        while (System.in.read() >= 0) {
            continue;
        }
    }

    private void ask(CoapEndpoint client, Runnable then) {
        Request request = Request.newPost();
        request.setDestinationContext(server);
        request.getOptions().setUriPath("telemetry").setContentFormat(42);
        request.setPayload(BODY);
        request.addMessageObserver(new MessageObserverAdapter() {
            @Override
            public void onResponse(Response response) {
                if (response.getCode() == ResponseCode.CHANGED) {
                    answered.increment();
                } else {
                    failed.incrementAndGet();
                }
                then.run();
            }

            @Override
            protected void failed() {
                failed.incrementAndGet();
                then.run();
            }
        });
        client.sendRequest(request);
    }
}
