package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;

/** Topics, their offsets, and the deletion of records. */
final class Topics {
    private final Admin admin;

    Topics(Admin admin) {
        this.admin = admin;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("createTopic", this::create);
        verbs.put("describeTopic", arguments -> describe(admin, Arguments.text(arguments, "topic")));
        verbs.put("deleteTopic", this::delete);
        verbs.put("growPartitions", this::grow);
        verbs.put("offsets", this::offsets);
        verbs.put("deleteRecords", this::deleteRecords);
    }

    private Object create(JsonNode arguments) throws Exception {
        NewTopic topic = new NewTopic(
            Arguments.text(arguments, "topic"),
            Optional.ofNullable(arguments.get("partitions")).map(JsonNode::asInt),
            Optional.ofNullable(arguments.get("replicationFactor")).map(factor -> (short) factor.asInt()));
        topic.configs(Arguments.map(arguments, "configs"));
        var created = admin.createTopics(List.of(topic));
        created.all().get();
        return created.topicId(topic.name()).get().toString();
    }

    static Object describe(Admin admin, String topic) throws Exception {
        return view(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
    }

    /** A topic in the shape that answers give it. */
    record View(String id, int partitions, int replicationFactor, Map<Integer, Integer> leaders) {}

    static View view(TopicDescription topic) {
        Map<Integer, Integer> leaders = new TreeMap<>();
        topic.partitions().forEach(p -> leaders.put(p.partition(), p.leader() == null ? null : p.leader().id()));
        int replicas = topic.partitions().get(0).replicas().size();
        return new View(topic.topicId().toString(), topic.partitions().size(), replicas, leaders);
    }

    private Object delete(JsonNode arguments) throws Exception {
        admin.deleteTopics(List.of(Arguments.text(arguments, "topic"))).all().get();
        return null;
    }

    private Object grow(JsonNode arguments) throws Exception {
        NewPartitions partitions = NewPartitions.increaseTo(arguments.get("partitions").asInt());
        admin.createPartitions(Map.of(Arguments.text(arguments, "topic"), partitions)).all().get();
        return null;
    }

    /** First and next offset of a partition, and the end that read_committed sees. */
    record Ends(long start, long end, long stable) {}

    private Object offsets(JsonNode arguments) throws Exception {
        String topic = Arguments.text(arguments, "topic");
        Map<Integer, Ends> byPartition = new TreeMap<>();
        ends(admin, List.of(topic)).forEach((partition, ends) -> byPartition.put(partition.partition(), ends));
        return byPartition;
    }

    static Map<TopicPartition, Ends> ends(Admin admin, List<String> topics) throws Exception {
        Map<TopicPartition, OffsetSpec> earliest = new HashMap<>();
        Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
        admin.describeTopics(topics).allTopicNames().get().forEach((name, topic) -> topic.partitions().forEach(p -> {
            earliest.put(new TopicPartition(name, p.partition()), OffsetSpec.earliest());
            latest.put(new TopicPartition(name, p.partition()), OffsetSpec.latest());
        }));
        var starts = admin.listOffsets(earliest).all();
        var ends = admin.listOffsets(latest).all();
        var stable = admin.listOffsets(latest, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all();
        Map<TopicPartition, Ends> found = new HashMap<>();
        for (TopicPartition p : latest.keySet()) {
            found.put(p, new Ends(starts.get().get(p).offset(), ends.get().get(p).offset(), stable.get().get(p).offset()));
        }
        return found;
    }

    private Object deleteRecords(JsonNode arguments) throws Exception {
        var before = RecordsToDelete.beforeOffset(arguments.get("before").asLong());
        admin.deleteRecords(Map.of(Arguments.partition(arguments), before)).all().get();
        return null;
    }
}
