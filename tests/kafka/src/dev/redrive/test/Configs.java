package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.config.ConfigResource;

/** Configs of topics, groups and brokers, and the cluster's feature levels. */
final class Configs {
    private final Admin admin;

    Configs(Admin admin) {
        this.admin = admin;
    }

    void register(Map<String, Cluster.Verb> verbs) {
        verbs.put("configs", this::get);
        verbs.put("alterConfigs", this::alter);
        verbs.put("updateFeature", this::updateFeature);
        verbs.put("featureLevel", this::featureLevel);
    }

    /** {@code overrides}: only what is set on the resource itself. */
    private Object get(JsonNode arguments) throws Exception {
        ConfigResource resource = resource(arguments);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        return arguments.path("overrides").asBoolean() ? overrides(config) : values(config.entries());
    }

    static Map<String, String> overrides(Config config) {
        var own = config.entries().stream().filter(entry -> switch (entry.source()) {
            case DYNAMIC_TOPIC_CONFIG, DYNAMIC_GROUP_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG -> true;
            default -> false;
        });
        return values(own.toList());
    }

    private static Map<String, String> values(Collection<ConfigEntry> entries) {
        Map<String, String> values = new TreeMap<>();
        entries.forEach(entry -> values.put(entry.name(), entry.value()));
        return values;
    }

    private Object alter(JsonNode arguments) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        Arguments.map(arguments, "set").forEach(
            (name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        Arguments.texts(arguments, "delete").forEach(
            name -> changes.add(new AlterConfigOp(new ConfigEntry(name, null), AlterConfigOp.OpType.DELETE)));
        admin.incrementalAlterConfigs(Map.of(resource(arguments), changes)).all().get();
        return null;
    }

    /** A broker's name is its id, or empty for what holds for all brokers. */
    private static ConfigResource resource(JsonNode arguments) {
        ConfigResource.Type type = ConfigResource.Type.valueOf(Arguments.text(arguments, "resource"));
        return new ConfigResource(type, Arguments.text(arguments, "name"));
    }

    private Object updateFeature(JsonNode arguments) throws Exception {
        short level = (short) arguments.get("level").asInt();
        String feature = Arguments.text(arguments, "feature");
        boolean up = level >= level(feature);
        var kind = up ? FeatureUpdate.UpgradeType.UPGRADE : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE;
        admin.updateFeatures(Map.of(feature, new FeatureUpdate(level, kind)), new UpdateFeaturesOptions()).all().get();
        return null;
    }

    private Object featureLevel(JsonNode arguments) throws Exception {
        return level(Arguments.text(arguments, "feature"));
    }

    /** 0 where the feature is not finalized. */
    private short level(String feature) throws Exception {
        var finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(feature);
        return finalized == null ? 0 : finalized.maxVersionLevel();
    }
}
