package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;

/** What this process knows of one Kafka cluster: its clients and the verbs that use them. */
final class Cluster implements AutoCloseable {
    /** One thing that can be asked for. */
    interface Verb {
        Object run(JsonNode arguments) throws Exception;
    }

    private final Map<String, Verb> verbs = new HashMap<>();
    private final Admin admin;
    private final Producing producing;
    private final ShareConsumers shareConsumers;
    private final Consuming consuming;

    Cluster(String bootstrap) {
        Properties connection = new Properties();
        connection.put("bootstrap.servers", bootstrap);
        // A broker that was killed and comes back is found again within the patience of a test.
        connection.put("reconnect.backoff.max.ms", "500");
        admin = Admin.create(connection);
        producing = new Producing(connection);
        shareConsumers = new ShareConsumers(connection);
        consuming = new Consuming(connection);
        producing.register(verbs);
        shareConsumers.register(verbs);
        consuming.register(verbs);
        new Topics(admin).register(verbs);
        new Configs(admin).register(verbs);
        new Groups(admin).register(verbs);
        verbs.put("snapshot", new Snapshot(admin));
    }

    Object run(String name, JsonNode arguments) throws Exception {
        Verb verb = verbs.get(name);
        if (verb == null) {
            throw new IllegalArgumentException("no verb " + name);
        }
        return verb.run(arguments);
    }

    @Override
    public void close() {
        shareConsumers.close();
        consuming.close();
        producing.close();
        admin.close(Duration.ofSeconds(1));
    }
}
