package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * What a share consumer does with a record: the first rule whose every condition holds decides, else the default.
 *
 * <pre>{"default": "ACCEPT", "rules": [{"then": "REJECT", "topic": "orders", "partition": 0, "offsets": "0-9,12",
 *     "key": base64, "value": base64, "header": [key, base64], "deliveriesBelow": 3}]}</pre>
 */
record Rules(JsonNode spec) {
    enum Verdict {
        ACCEPT,
        REJECT,
        RELEASE,
        /** Neither acknowledged nor polled past, until the rules change or the consumer stops. */
        HOLD,
        /** The whole process ends, as if killed. */
        CRASH,
    }

    Verdict verdict(ConsumerRecord<byte[], byte[]> record) {
        var rules = StreamSupport.stream(spec.path("rules").spliterator(), false);
        var first = rules.filter(rule -> matches(rule, record)).findFirst();
        return Verdict.valueOf(Arguments.text(first.orElse(spec), first.isPresent() ? "then" : "default"));
    }

    private static boolean matches(JsonNode rule, ConsumerRecord<byte[], byte[]> record) {
        return holds(rule, "topic", topic -> topic.textValue().equals(record.topic()))
            && holds(rule, "partition", partition -> partition.asInt() == record.partition())
            && holds(rule, "offsets", ranges -> within(ranges.textValue(), record.offset()))
            && holds(rule, "key", key -> Arrays.equals(Arguments.bytes(key), record.key()))
            && holds(rule, "value", value -> Arrays.equals(Arguments.bytes(value), record.value()))
            && holds(rule, "header", header -> hasHeader(record, header))
            && holds(rule, "deliveriesBelow", limit -> record.deliveryCount().orElse((short) 1) < limit.asInt());
    }

    private static boolean holds(JsonNode rule, String condition, Predicate<JsonNode> check) {
        return !Arguments.has(rule, condition) || check.test(rule.get(condition));
    }

    private static boolean hasHeader(ConsumerRecord<byte[], byte[]> record, JsonNode header) {
        byte[] expected = Arguments.bytes(header.get(1));
        var found = record.headers().headers(header.get(0).textValue());
        return StreamSupport.stream(found.spliterator(), false).anyMatch(one -> Arrays.equals(one.value(), expected));
    }

    private static boolean within(String ranges, long offset) {
        return Arrays.stream(ranges.split(",")).anyMatch(range -> {
            String[] ends = range.split("-");
            return Long.parseLong(ends[0]) <= offset && offset <= Long.parseLong(ends[ends.length - 1]);
        });
    }
}
