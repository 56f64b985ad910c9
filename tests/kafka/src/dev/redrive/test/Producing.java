package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers: single batches, transactions, and traffic that goes on until it is stopped. */
final class Producing implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    private final Properties connection;
    private final Map<Map<String, String>, KafkaProducer<byte[], byte[]>> producers = new ConcurrentHashMap<>();
    private final Map<String, KafkaProducer<byte[], byte[]>> transactions = new ConcurrentHashMap<>();
    private final Map<String, Traffic> traffic = new ConcurrentHashMap<>();

    Producing(Properties connection) {
        this.connection = connection;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("produce", this::produce);
        verbs.put("endTransaction", this::endTransaction);
        verbs.put("startTraffic", this::startTraffic);
        verbs.put("stopTraffic", this::stopTraffic);
    }

    record Sent(int partition, long offset) {}

    /** {@code transaction}: none, commit, abort, or open, which leaves it open under the name {@code transactionName}. */
    private Object produce(JsonNode arguments) throws Exception {
        Map<String, String> settings = Arguments.map(arguments, "properties");
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        String topic = Arguments.text(arguments, "topic");
        arguments.path("records").forEach(record -> records.add(record(topic, record)));
        String transaction = Arguments.text(arguments, "transaction", "none");
        if (transaction.equals("none")) {
            return send(producers.computeIfAbsent(settings, this::producer), records);
        }
        return transact(settings, transaction, Arguments.text(arguments, "transactionName", ""), records);
    }

    private List<Sent> transact(
        Map<String, String> settings, String ending, String name, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        Map<String, String> transactional = new HashMap<>(settings);
        transactional.putIfAbsent("transactional.id", "test-" + UUID.randomUUID());
        KafkaProducer<byte[], byte[]> producer = producer(transactional);
        producer.initTransactions();
        producer.beginTransaction();
        List<Sent> sent = send(producer, records);
        if (ending.equals("open")) {
            transactions.put(name, producer);
        } else {
            end(producer, ending.equals("commit"));
        }
        return sent;
    }

    private Object endTransaction(JsonNode arguments) {
        end(transactions.remove(Arguments.text(arguments, "transactionName")), arguments.get("commit").asBoolean());
        return null;
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, boolean commit) {
        try (producer) {
            if (commit) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.putIfAbsent("linger.ms", "5");
        return new KafkaProducer<>(Arguments.properties(connection, all), new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static List<Sent> send(
        KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        records.forEach(record -> futures.add(producer.send(record)));
        producer.flush();
        List<Sent> sent = new ArrayList<>();
        for (var future : futures) {
            sent.add(new Sent(future.get().partition(), future.get().offset()));
        }
        return sent;
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, JsonNode record) {
        List<Header> headers = new ArrayList<>();
        record.path("headers").forEach(pair -> headers.add(new RecordHeader(pair.get(0).textValue(), Arguments.bytes(pair.get(1)))));
        Integer partition = Arguments.has(record, "partition") ? (Integer) record.get("partition").asInt() : null;
        Long timestamp = Arguments.has(record, "timestamp") ? (Long) record.get("timestamp").asLong() : null;
        byte[] key = Arguments.bytes(record.get("key"));
        return new ProducerRecord<>(topic, partition, timestamp, key, Arguments.bytes(record.get("value")), headers);
    }

    /** Sends the records of the request over and over, one each {@code everyMillis}. */
    private final class Traffic implements Runnable {
        private final List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        private final long everyMillis;
        private final KafkaProducer<byte[], byte[]> producer = producer(Map.of());
        private final Thread thread = new Thread(this, "traffic");
        private long sent;

        Traffic(JsonNode arguments) {
            String topic = Arguments.text(arguments, "topic");
            arguments.path("records").forEach(record -> records.add(record(topic, record)));
            everyMillis = arguments.get("everyMillis").asLong();
        }

        @Override
        public void run() {
            try (producer) {
                for (; !Thread.interrupted(); sent++) {
                    producer.send(records.get((int) (sent % records.size())));
                    Thread.sleep(everyMillis);
                }
            } catch (InterruptedException | org.apache.kafka.common.errors.InterruptException stopped) {
                // The way to end it; closing the producer sends what is left.
            }
        }

        long stop() throws InterruptedException {
            thread.interrupt();
            thread.join();
            return sent;
        }
    }

    private Object startTraffic(JsonNode arguments) {
        Traffic started = new Traffic(arguments);
        traffic.put(Arguments.text(arguments, "name"), started);
        started.thread.start();
        return null;
    }

    private Object stopTraffic(JsonNode arguments) throws Exception {
        return traffic.remove(Arguments.text(arguments, "name")).stop();
    }

    @Override
    public void close() {
        traffic.values().forEach(running -> running.thread.interrupt());
        producers.values().forEach(producer -> producer.close(PATIENCE));
        transactions.values().forEach(producer -> producer.close(PATIENCE));
    }
}
