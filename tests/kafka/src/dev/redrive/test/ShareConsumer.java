package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A real share consumer, on a thread of its own, that acknowledges by {@link Rules}. */
final class ShareConsumer implements Runnable {
    private static final Duration CLOSING = Duration.ofSeconds(5);

    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final Thread thread;
    private final List<Delivery> deliveries = new ArrayList<>();
    private final List<String> errors = new ArrayList<>();
    private Rules rules;
    private boolean stopping;

    /** One record as it was given to this consumer, and what was done with it. */
    record Delivery(String topic, int partition, long offset, int count, byte[] key, byte[] value, Rules.Verdict verdict) {}

    record Seen(List<Delivery> deliveries, List<String> errors) {}

    ShareConsumer(Properties connection, JsonNode arguments) {
        Map<String, String> settings = new HashMap<>(Arguments.map(arguments, "properties"));
        settings.put("group.id", Arguments.text(arguments, "group"));
        settings.put("share.acknowledgement.mode", "explicit");
        settings.putIfAbsent("client.id", Arguments.text(arguments, "name"));
        consumer = new KafkaShareConsumer<>(
            Arguments.properties(connection, settings), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(Arguments.texts(arguments, "topics"));
        rules = new Rules(arguments.get("rules"));
        thread = new Thread(this, "share consumer " + Arguments.text(arguments, "name"));
    }

    void start() {
        thread.start();
    }

    synchronized void change(Rules changed) {
        rules = changed;
        notifyAll();
    }

    void askToStop() {
        synchronized (this) {
            stopping = true;
            notifyAll();
        }
        consumer.wakeup();
    }

    /** Leaves the group; what is held is released. */
    void stop() throws InterruptedException {
        askToStop();
        thread.join();
    }

    synchronized Seen seen() {
        return new Seen(List.copyOf(deliveries), List.copyOf(errors));
    }

    @Override
    public void run() {
        try {
            while (!isStopping()) {
                List<ConsumerRecord<byte[], byte[]>> polled = new ArrayList<>();
                consumer.poll(Duration.ofMillis(500)).forEach(polled::add);
                handle(polled);
            }
        } catch (WakeupException woken) {
            // The way to end a poll.
        } catch (RuntimeException failure) {
            fail(failure);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } finally {
            consumer.close(CLOSING);
        }
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    private synchronized void fail(Exception failure) {
        errors.add(Clients.name(failure) + ": " + failure.getMessage());
    }

    /** Acknowledges all of them, waiting for other rules as long as some are to be held. */
    private void handle(List<ConsumerRecord<byte[], byte[]>> records) throws InterruptedException {
        List<ConsumerRecord<byte[], byte[]>> waiting = records;
        while (!waiting.isEmpty()) {
            Rules inForce = rules();
            List<ConsumerRecord<byte[], byte[]>> held = new ArrayList<>();
            for (var record : waiting) {
                if (!settle(record, inForce.verdict(record))) {
                    held.add(record);
                }
            }
            if (held.size() < waiting.size()) {
                consumer.commitSync().values().forEach(result -> result.ifPresent(this::fail));
            }
            waiting = held;
            if (!waiting.isEmpty() && !awaitOtherRules(inForce)) {
                return;
            }
        }
    }

    private synchronized Rules rules() {
        return rules;
    }

    /** False where the consumer is to stop instead. */
    private synchronized boolean awaitOtherRules(Rules inForce) throws InterruptedException {
        while (rules == inForce && !stopping) {
            wait();
        }
        return !stopping;
    }

    /** False where the record is held. */
    private boolean settle(ConsumerRecord<byte[], byte[]> record, Rules.Verdict verdict) {
        note(record, verdict);
        switch (verdict) {
            case ACCEPT -> consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            case REJECT -> consumer.acknowledge(record, AcknowledgeType.REJECT);
            case RELEASE -> consumer.acknowledge(record, AcknowledgeType.RELEASE);
            case HOLD -> {
                return false;
            }
            case CRASH -> Runtime.getRuntime().halt(1);
        }
        return true;
    }

    private synchronized void note(ConsumerRecord<byte[], byte[]> record, Rules.Verdict verdict) {
        int count = record.deliveryCount().orElse((short) 0);
        deliveries.add(new Delivery(record.topic(), record.partition(), record.offset(), count, record.key(), record.value(), verdict));
    }
}
