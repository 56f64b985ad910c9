package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;

/** Share groups and consumer groups, and where they are in their topics. */
final class Groups {
    private final Admin admin;

    Groups(Admin admin) {
        this.admin = admin;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("shareGroup", this::describe);
        verbs.put("shareOffsets", arguments -> shareOffsets(admin, Arguments.text(arguments, "group")));
        verbs.put("alterShareOffsets", this::alterShareOffsets);
        verbs.put("deleteShareOffsets", this::deleteShareOffsets);
        verbs.put("deleteShareGroup", this::deleteShareGroup);
        verbs.put("consumerOffsets", arguments -> consumerOffsets(admin, Arguments.text(arguments, "group")));
    }

    record Partition(String topic, int partition) {
        static Partition of(TopicPartition partition) {
            return new Partition(partition.topic(), partition.partition());
        }
    }

    record Member(String id, String clientId, String host, List<Partition> partitions) {}

    record ShareGroup(String state, int epoch, List<Member> members) {}

    /** Null where there is no such group. */
    private Object describe(JsonNode arguments) throws Exception {
        String group = Arguments.text(arguments, "group");
        try {
            return view(admin.describeShareGroups(List.of(group)).describedGroups().get(group).get());
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof GroupIdNotFoundException) {
                return null;
            }
            throw failure;
        }
    }

    private static ShareGroup view(ShareGroupDescription group) {
        List<Member> members = group.members().stream().map(member -> new Member(
            member.consumerId(), member.clientId(), member.host(),
            member.assignment().topicPartitions().stream().map(Partition::of).toList())).toList();
        return new ShareGroup(group.groupState().toString(), group.groupEpoch(), members);
    }

    /** A start offset of null: the partition was never read. */
    record ShareOffset(String topic, int partition, Long start, Long lag) {}

    static List<ShareOffset> shareOffsets(Admin admin, String group) throws Exception {
        var offsets = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get();
        List<ShareOffset> found = new ArrayList<>();
        offsets.forEach((partition, offset) -> found.add(shareOffset(partition, offset)));
        found.sort(Comparator.comparing(ShareOffset::topic).thenComparing(ShareOffset::partition));
        return found;
    }

    private static ShareOffset shareOffset(TopicPartition partition, SharePartitionOffsetInfo offset) {
        Long start = offset == null ? null : (Long) offset.startOffset();
        Long lag = offset == null ? null : offset.lag().orElse(null);
        return new ShareOffset(partition.topic(), partition.partition(), start, lag);
    }

    private Object alterShareOffsets(JsonNode arguments) throws Exception {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        offsets.put(Arguments.partition(arguments), arguments.get("offset").asLong());
        admin.alterShareGroupOffsets(Arguments.text(arguments, "group"), offsets).all().get();
        return null;
    }

    private Object deleteShareOffsets(JsonNode arguments) throws Exception {
        String topic = Arguments.text(arguments, "topic");
        admin.deleteShareGroupOffsets(Arguments.text(arguments, "group"), Set.of(topic)).topicResult(topic).get();
        return null;
    }

    private Object deleteShareGroup(JsonNode arguments) throws Exception {
        admin.deleteShareGroups(List.of(Arguments.text(arguments, "group"))).all().get();
        return null;
    }

    record ConsumerOffset(String topic, int partition, long offset) {}

    static List<ConsumerOffset> consumerOffsets(Admin admin, String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        List<ConsumerOffset> found = new ArrayList<>();
        offsets.forEach((p, offset) -> found.add(new ConsumerOffset(p.topic(), p.partition(), offset == null ? -1 : offset.offset())));
        found.sort(Comparator.comparing(ConsumerOffset::topic).thenComparing(ConsumerOffset::partition));
        return found;
    }
}
