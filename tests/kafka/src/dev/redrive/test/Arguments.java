package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;

/** Reads the arguments of requests; null and absent are the same. */
final class Arguments {
    private Arguments() {}

    static boolean has(JsonNode node, String name) {
        return node.hasNonNull(name);
    }

    static String text(JsonNode node, String name) {
        if (!has(node, name)) {
            throw new IllegalArgumentException("no " + name + " in " + node);
        }
        return node.get(name).textValue();
    }

    static String text(JsonNode node, String name, String otherwise) {
        return has(node, name) ? node.get(name).textValue() : otherwise;
    }

    static byte[] bytes(JsonNode node) {
        try {
            return node == null || node.isNull() ? null : node.binaryValue();
        } catch (IOException malformed) {
            throw new UncheckedIOException("no base64: " + node, malformed);
        }
    }

    static List<String> texts(JsonNode node, String name) {
        List<String> texts = new ArrayList<>();
        node.path(name).forEach(text -> texts.add(text.textValue()));
        return texts;
    }

    static Map<String, String> map(JsonNode node, String name) {
        Map<String, String> map = new LinkedHashMap<>();
        node.path(name).properties().forEach(entry -> map.put(entry.getKey(), entry.getValue().asText()));
        return map;
    }

    static TopicPartition partition(JsonNode node) {
        return new TopicPartition(text(node, "topic"), node.path("partition").asInt());
    }

    /** Settings of a client: the cluster's own and those that a request adds. */
    static Properties properties(Properties connection, Map<String, String> more) {
        Properties properties = new Properties();
        properties.putAll(connection);
        properties.putAll(more);
        return properties;
    }
}
