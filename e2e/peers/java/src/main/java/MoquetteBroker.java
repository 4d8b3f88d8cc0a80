import io.moquette.broker.Server;
import io.moquette.broker.config.MemoryConfig;
import java.util.Properties;

/** Moquette on three ports of loopback: plain, TLS with client certificates, WebSocket. */
final class MoquetteBroker {
    public static void main(String[] args) throws Exception {
        Properties told = new Properties();
        told.setProperty("host", "127.0.0.1");
        told.setProperty("port", args[0]);
        told.setProperty("ssl_port", args[1]);
        told.setProperty("websocket_port", args[2]);
        told.setProperty("websocket_path", "/mqtt");
        told.setProperty("key_store_type", "pkcs12");
        told.setProperty("jks_path", args[3] + "/both.p12");
        told.setProperty("key_store_password", "changeit");
        told.setProperty("key_manager_password", "changeit");
        told.setProperty("need_client_auth", "true");
        told.setProperty("allow_anonymous", "true");
        told.setProperty("persistence_enabled", "false");
        told.setProperty("data_path", args[3]);
        told.setProperty("telemetry_enabled", "false");
        new Server().startServer(new MemoryConfig(told));
        System.out.println("ready");
    }
}
