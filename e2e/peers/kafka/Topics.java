// Changes a topic of Kafka: `grow TOPIC PARTITIONS` gives it so many partitions in all, `delete TOPIC` deletes it.
//
//     java -cp CLASSPATH Topics.java BOOTSTRAP CHANGE...

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;

public final class Topics {
    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0]))) {
            switch (args[1]) {
                case "grow" -> {
                    var wanted = NewPartitions.increaseTo(Integer.parseInt(args[3]));
                    admin.createPartitions(Map.of(args[2], wanted)).all().get();
                }
                case "delete" -> admin.deleteTopics(List.of(args[2])).all().get();
                default -> throw new IllegalArgumentException("no such change: " + args[1]);
            }
        }
    }
}
