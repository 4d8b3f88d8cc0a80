import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.elements.AddressEndpointContext;
import org.eclipse.californium.elements.RawData;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConfig.DtlsRole;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

/**
 * A DTLS 1.2 peer by Californium: serves or asks one end of Muster's.
 *
 * <p>{@code Scandium serve|ask PORT IDENTITY KEY SUITE [CID-BYTES]}. Serving, it says back whatever it hears until it is
 * ended; asking, it says "hello", wants it back, and ends.
 */
public final class Scandium {
    private static final Map<String, CipherSuite> SUITES = Map.of(
            "PskCcm8", CipherSuite.TLS_PSK_WITH_AES_128_CCM_8,
            "PskCcm", CipherSuite.TLS_PSK_WITH_AES_128_CCM,
            "PskGcm", CipherSuite.TLS_PSK_WITH_AES_128_GCM_SHA256,
            "EcdhePskCcm8", CipherSuite.TLS_ECDHE_PSK_WITH_AES_128_CCM_8_SHA256,
            "EcdhePskCcm", CipherSuite.TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256,
            "EcdhePskGcm", CipherSuite.TLS_ECDHE_PSK_WITH_AES_128_GCM_SHA256);

    public static void main(String[] arguments) throws Exception {
        boolean serves = arguments[0].equals("serve");
        InetSocketAddress server = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
        DtlsConfig.register();
        DtlsConnectorConfig.Builder builder = DtlsConnectorConfig.builder(Configuration.createStandardWithoutFile())
                .setAddress(serves ? server : new InetSocketAddress("127.0.0.1", 0))
                .set(DtlsConfig.DTLS_ROLE, serves ? DtlsRole.SERVER_ONLY : DtlsRole.CLIENT_ONLY)
                .setAsList(DtlsConfig.DTLS_CIPHER_SUITES, SUITES.get(arguments[4]))
                .setAdvancedPskStore(
                        new AdvancedSinglePskStore(arguments[2], arguments[3].getBytes(StandardCharsets.UTF_8)));
        if (arguments.length > 5) {
            builder.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, Integer.valueOf(arguments[5]));
        }
        DTLSConnector connector = new DTLSConnector(builder.build());
        CountDownLatch answered = new CountDownLatch(1);
        connector.setRawDataReceiver(data -> {
            System.out.println("received " + new String(data.getBytes(), StandardCharsets.UTF_8) + " from "
                    + data.getInetSocketAddress());
            if (serves) {
                connector.send(RawData.outbound(data.getBytes(), data.getEndpointContext(), null, false));
            } else {
                answered.countDown();
            }
        });
        connector.start();
        if (serves) {
            System.out.println("listening");
            Thread.currentThread().join();
        }
        byte[] words = "hello".getBytes(StandardCharsets.UTF_8);
        connector.send(RawData.outbound(words, new AddressEndpointContext(server), null, false));
        boolean isAnswered = answered.await(10, TimeUnit.SECONDS);
        connector.stop();
        connector.destroy();
        System.exit(isAnswered ? 0 : 1);
    }
}
