// Gives users of Kafka rights: each further argument is `user operation resource name`, such as `app READ TOPIC readings`.
//
//     java -cp CLASSPATH Rights.java BOOTSTRAP RIGHT...

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public final class Rights {
    public static void main(String[] args) throws Exception {
        List<AclBinding> rights = Arrays.stream(args).skip(1).map(Rights::binding).toList();
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0]))) {
            admin.createAcls(rights).all().get();
        }
    }

    private static AclBinding binding(String right) {
        String[] words = right.split(" ");
        var resource = new ResourcePattern(ResourceType.fromString(words[2]), words[3], PatternType.LITERAL);
        var operation = AclOperation.fromString(words[1]);
        var entry = new AccessControlEntry("User:" + words[0], "*", operation, AclPermissionType.ALLOW);
        return new AclBinding(resource, entry);
    }
}
