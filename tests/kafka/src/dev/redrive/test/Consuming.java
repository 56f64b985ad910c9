package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Ordinary consumers: the independent count of what a topic holds, and consumer groups. */
final class Consuming implements AutoCloseable {
    private final Properties connection;
    private final Map<String, Member> members = new ConcurrentHashMap<>();

    Consuming(Properties connection) {
        this.connection = connection;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("readTopic", this::readTopic);
        verbs.put("startConsumer", this::startConsumer);
        verbs.put("stopConsumer", this::stopConsumer);
    }

    record Read(int partition, long offset, long timestamp, byte[] key, byte[] value, List<byte[][]> headers) {
        static Read of(ConsumerRecord<byte[], byte[]> record) {
            List<byte[][]> headers = new ArrayList<>();
            record.headers().forEach(header -> headers.add(new byte[][] {keyBytes(header), header.value()}));
            return new Read(record.partition(), record.offset(), record.timestamp(), record.key(), record.value(), headers);
        }

        /** The key as it is on the wire: key() has what is not UTF-8 replaced, and works once. */
        private static byte[] keyBytes(Header header) {
            try {
                Field field = header.getClass().getDeclaredField("keyBuffer");
                field.setAccessible(true);
                ByteBuffer buffer = (ByteBuffer) field.get(header);
                if (buffer == null) {
                    return header.key().getBytes(StandardCharsets.UTF_8);
                }
                byte[] key = new byte[buffer.remaining()];
                buffer.duplicate().get(key);
                return key;
            } catch (ReflectiveOperationException changed) {
                throw new IllegalStateException("this Kafka keeps header keys elsewhere", changed);
            }
        }
    }

    /** Every record from the log's start to the end at the time of the call, as {@code isolation} sees it. */
    private Object readTopic(JsonNode arguments) {
        String topic = Arguments.text(arguments, "topic");
        Map<String, String> settings = Map.of("isolation.level", Arguments.text(arguments, "isolation"), "enable.auto.commit", "false");
        List<Read> found = new ArrayList<>();
        try (var consumer = consumer(settings)) {
            List<TopicPartition> partitions =
                consumer.partitionsFor(topic).stream().map(info -> new TopicPartition(topic, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.offset() < ends.get(new TopicPartition(topic, record.partition()))) {
                        found.add(Read.of(record));
                    }
                }
            }
        }
        return found;
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, String> settings) {
        return new KafkaConsumer<>(Arguments.properties(connection, settings), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** A member of a consumer group that commits what it reads, from the log's start, and stays until it is stopped. */
    private final class Member implements Runnable {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Thread thread = new Thread(this, "consumer");
        private volatile boolean stopped;
        private long count;

        Member(JsonNode arguments) {
            consumer = consumer(Map.of(
                "group.id", Arguments.text(arguments, "group"), "auto.offset.reset", "earliest", "group.protocol", "consumer",
                "enable.auto.commit", "false"));
            consumer.subscribe(Arguments.texts(arguments, "topics"));
        }

        @Override
        public void run() {
            try (consumer) {
                while (!stopped) {
                    int polled = consumer.poll(Duration.ofMillis(200)).count();
                    if (polled > 0) {
                        consumer.commitSync();
                    }
                    count += polled;
                }
            } catch (WakeupException woken) {
                // The way to end it.
            }
        }

        long stop() throws InterruptedException {
            stopped = true;
            consumer.wakeup();
            thread.join();
            return count;
        }
    }

    private Object startConsumer(JsonNode arguments) {
        Member member = new Member(arguments);
        members.put(Arguments.text(arguments, "name"), member);
        member.thread.start();
        return null;
    }

    private Object stopConsumer(JsonNode arguments) throws Exception {
        return members.remove(Arguments.text(arguments, "name")).stop();
    }

    @Override
    public void close() {
        members.values().forEach(member -> {
            member.stopped = true;
            member.consumer.wakeup();
        });
    }
}
