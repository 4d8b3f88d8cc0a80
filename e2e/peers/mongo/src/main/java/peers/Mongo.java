package peers;

import java.util.List;

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

/** An independent server of MongoDB's wire protocol, in memory, under the wire version that MongoDB 5.0 has. */
public final class Mongo {
    private static final MongoVersion FIVE = new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 13;
        }
    };

    public static void main(final String[] args) {
        final MongoServer server = new MongoServer(new MemoryBackend().version(FIVE));
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
        System.out.println("ready");
    }
}
