package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.config.ConfigResource;

/**
 * All that a cluster holds: equal snapshots mean that nothing was changed in between. {@code about} leaves out topics and groups
 * whose name does not contain it, as other tests change theirs meanwhile.
 */
final class Snapshot implements Cluster.Verb {
    private final Admin admin;

    Snapshot(Admin admin) {
        this.admin = admin;
    }

    record Topic(Topics.View topic, Map<String, String> configs, Map<Integer, Topics.Ends> offsets) {}

    record Group(String kind, String state, List<?> offsets) {}

    record State(Map<String, Topic> topics, Map<String, Group> groups, Map<String, Map<String, String>> groupConfigs) {}

    @Override
    public Object run(JsonNode arguments) throws Exception {
        String about = Arguments.text(arguments, "about", "");
        return new State(topics(about), groups(about), groupConfigs(about));
    }

    private Map<String, Topic> topics(String about) throws Exception {
        List<String> names = admin.listTopics().names().get().stream().filter(name -> name.contains(about)).toList();
        var descriptions = admin.describeTopics(names).allTopicNames().get();
        var configs = configs(ConfigResource.Type.TOPIC, names);
        var ends = Topics.ends(admin, names);
        Map<String, Topic> topics = new TreeMap<>();
        for (String name : names) {
            Map<Integer, Topics.Ends> offsets = new TreeMap<>();
            ends.forEach((partition, found) -> {
                if (partition.topic().equals(name)) {
                    offsets.put(partition.partition(), found);
                }
            });
            topics.put(name, new Topic(Topics.view(descriptions.get(name)), configs.get(name), offsets));
        }
        return topics;
    }

    private Map<String, Group> groups(String about) throws Exception {
        Map<String, Group> groups = new TreeMap<>();
        for (GroupListing group : admin.listGroups().all().get()) {
            if (group.groupId().contains(about)) {
                groups.put(group.groupId(), view(group));
            }
        }
        return groups;
    }

    private Group view(GroupListing group) throws Exception {
        GroupType type = group.type().orElse(GroupType.UNKNOWN);
        List<?> offsets = type == GroupType.SHARE
            ? Groups.shareOffsets(admin, group.groupId()) : Groups.consumerOffsets(admin, group.groupId());
        return new Group(type.toString(), group.groupState().map(Object::toString).orElse(""), offsets);
    }

    /** Also of groups that are not there: a config needs no group. */
    private Map<String, Map<String, String>> groupConfigs(String about) throws Exception {
        List<String> names = new ArrayList<>();
        admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions())
            .all().get().forEach(resource -> names.add(resource.name()));
        return configs(ConfigResource.Type.GROUP, names.stream().filter(name -> name.contains(about)).toList());
    }

    private Map<String, Map<String, String>> configs(ConfigResource.Type type, List<String> names) throws Exception {
        Map<String, Map<String, String>> configs = new TreeMap<>();
        List<ConfigResource> resources = names.stream().map(name -> new ConfigResource(type, name)).toList();
        admin.describeConfigs(resources).all().get().forEach(
            (resource, config) -> configs.put(resource.name(), Configs.overrides(config)));
        return configs;
    }
}
