package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;

/** The share consumers that run against one cluster, by name. */
final class ShareConsumers implements AutoCloseable {
    private final Properties connection;
    private final Map<String, ShareConsumer> running = new ConcurrentHashMap<>();

    ShareConsumers(Properties connection) {
        this.connection = connection;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("startShareConsumer", this::start);
        verbs.put("changeRules", this::changeRules);
        verbs.put("seen", arguments -> find(arguments).seen());
        verbs.put("stopShareConsumer", this::stop);
    }

    private Object start(JsonNode arguments) {
        ShareConsumer consumer = new ShareConsumer(connection, arguments);
        if (running.putIfAbsent(Arguments.text(arguments, "name"), consumer) != null) {
            throw new IllegalArgumentException("there is a share consumer of that name");
        }
        consumer.start();
        return null;
    }

    private Object changeRules(JsonNode arguments) {
        find(arguments).change(new Rules(arguments.get("rules")));
        return null;
    }

    private Object stop(JsonNode arguments) throws Exception {
        ShareConsumer consumer = find(arguments);
        running.values().remove(consumer);
        consumer.stop();
        return consumer.seen();
    }

    private ShareConsumer find(JsonNode arguments) {
        ShareConsumer consumer = running.get(Arguments.text(arguments, "name"));
        if (consumer == null) {
            throw new IllegalArgumentException("no share consumer of that name");
        }
        return consumer;
    }

    @Override
    public void close() {
        running.values().forEach(ShareConsumer::askToStop);
    }
}
