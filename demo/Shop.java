import static java.util.stream.Collectors.joining;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * The shop of the demo: it produces orders, and its share group "orders" ships them or, while it is broken, rejects them.
 *
 * <p>{@code Shop BOOTSTRAP} obeys the lines on stdin and ends each answer with a line "." on stdout:
 * <pre>
 * topic         creates the topic "orders" with 3 partitions
 * produce N     writes N orders to it
 * start broken  runs the consumer of the group "orders"; broken, it rejects every order
 * start fixed   ... fixed, it ships them
 * stop          stops it
 * topics        lists the topics and what is in them
 * report        counts what an independent consumer finds on the topic, and what was shipped
 * </pre>
 */
public final class Shop {
    private static final String TOPIC = "orders";
    private static final String GROUP = "orders";
    private static final int PARTITIONS = 3;

    private final String bootstrap;
    private final Map<String, Integer> shipped = new TreeMap<>();
    private Worker worker;
    private int produced;

    private Shop(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        Shop shop = new Shop(arguments[0]);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(shop.answer(line.strip()) + "\n.");
        }
        // A consumer that still runs must not keep the process.
        Runtime.getRuntime().halt(0);
    }

    private String answer(String command) throws IOException {
        try {
            return obey(command.split(" +"));
        } catch (Exception failure) {
            return "failed: " + failure;
        }
    }

    private String obey(String[] words) throws Exception {
        return switch (words[0]) {
            case "topic" -> createTopic();
            case "produce" -> produce(Integer.parseInt(words[1]));
            case "start" -> start(words[1].equals("fixed"));
            case "stop" -> stop();
            case "topics" -> topics();
            case "report" -> report();
            default -> "failed: topic | produce N | start broken | start fixed | stop | topics | report";
        };
    }

    private String createTopic() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(TOPIC, PARTITIONS, (short) 1))).all().get();
        }
        return "topic " + TOPIC + " has " + PARTITIONS + " partitions";
    }

    /** What topics there are, Kafka's own left out, and how far each has been written. */
    private String topics() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
            admin.describeTopics(admin.listTopics().names().get()).allTopicNames().get().forEach((name, topic) ->
                topic.partitions().forEach(partition -> ends.put(new TopicPartition(name, partition.partition()), OffsetSpec.latest())));
            Map<String, Long> written = new TreeMap<>();
            admin.listOffsets(ends).all().get().forEach((partition, end) -> written.merge(partition.topic(), end.offset(), Long::sum));
            return written.entrySet().stream().map(topic -> topic.getKey() + ": " + topic.getValue() + " records").collect(joining("\n"));
        }
    }

    private String produce(int count) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            List<Future<?>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++, produced++) {
                String order = "order-" + produced;
                var record = new ProducerRecord<>(TOPIC, produced % PARTITIONS, order, "{\"item\": " + produced + "}");
                record.headers().add("tenant", "acme".getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(record));
            }
            for (Future<?> one : sent) {
                one.get();
            }
        }
        return count + " orders produced";
    }

    private String start(boolean fixed) throws Exception {
        stop();
        worker = new Worker(fixed);
        worker.start();
        return "a " + (fixed ? "fixed" : "broken") + " consumer of group " + GROUP + " runs";
    }

    private String stop() throws InterruptedException {
        if (worker == null) {
            return "no consumer runs";
        }
        worker.stopping = true;
        worker.join();
        worker = null;
        return "the consumer is stopped";
    }

    /** Ships or rejects what the share group gives it. */
    private final class Worker extends Thread {
        private final boolean fixed;
        private volatile boolean stopping;

        Worker(boolean fixed) {
            super("worker");
            this.fixed = fixed;
        }

        @Override
        public void run() {
            Map<String, Object> settings =
                Map.of("bootstrap.servers", bootstrap, "group.id", GROUP, "share.acknowledgement.mode", "explicit");
            try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(TOPIC));
                while (!stopping) {
                    for (var record : consumer.poll(Duration.ofMillis(200))) {
                        consumer.acknowledge(record, fixed ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT);
                        if (fixed) {
                            ship(record.key());
                        }
                    }
                    consumer.commitSync();
                }
            }
        }
    }

    private synchronized void ship(String order) {
        shipped.merge(order, 1, Integer::sum);
    }

    private synchronized String report() {
        StringBuilder table = new StringBuilder("RECORDS   ORDERS   SENT BY               ATTEMPT\n");
        count().forEach((origin, orders) -> table.append(
            String.format("%-9d %-8d %-21s %s%n", orders.size(), new HashSet<>(orders).size(), origin.sender, origin.attempt)));
        long twice = shipped.values().stream().filter(times -> times > 1).count();
        return table.append(String.format("shipped: %d of %d orders, %d of them twice", shipped.size(), produced, twice)).toString();
    }

    private record Origin(String attempt, String sender) implements Comparable<Origin> {
        static Origin of(ConsumerRecord<String, String> record) {
            String replay = header(record, "redrive.replay");
            return replay == null
                ? new Origin("", "the shop")
                // namespace/name/uid
                : new Origin(header(record, "redrive.attempt"), replay.substring(0, replay.lastIndexOf('/')));
        }

        private static String header(ConsumerRecord<?, ?> record, String name) {
            Header header = record.headers().lastHeader(name);
            return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
        }

        @Override
        public int compareTo(Origin other) {
            return (sender + attempt).compareTo(other.sender + other.attempt);
        }
    }

    /** The orders on the topic by who sent them, read from its start to its end by a consumer without a group. */
    private Map<Origin, List<String>> count() {
        Map<Origin, List<String>> found = new TreeMap<>();
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var partitions = consumer.partitionsFor(TOPIC).stream().map(info -> new TopicPartition(TOPIC, info.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Set<TopicPartition> unread = new HashSet<>(partitions);
            while (!unread.isEmpty()) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    found.computeIfAbsent(Origin.of(record), origin -> new ArrayList<>()).add(record.key());
                }
                unread.removeIf(partition -> consumer.position(partition) >= ends.get(partition));
            }
        }
        return found;
    }
}
