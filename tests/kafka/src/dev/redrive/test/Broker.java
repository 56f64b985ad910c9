package dev.redrive.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka node: {@code Broker PROPERTIES SHARE_VERSION}.
 *
 * <p>Formats its log folder where that is new, prints "ready" once clients can connect, shuts down at a line "stop" on stdin,
 * and ends at once, as if killed, when stdin closes: so it never outlives the tests that started it.
 */
final class Broker {
    /** All nodes of a cluster are formatted with one id. */
    private static final String CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk";

    private Broker() {}

    public static void main(String[] arguments) throws IOException {
        Path file = Path.of(arguments[0]);
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            properties.load(reader);
        }
        if (!Files.exists(Path.of(properties.getProperty("log.dirs"), "meta.properties"))) {
            format(file, arguments[1]);
        }
        KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
        obeyStdin(server);
        server.startup();
        System.out.println("ready");
        server.awaitShutdown();
        Runtime.getRuntime().halt(0);
    }

    private static void format(Path file, String shareVersion) {
        String[] command = {
            "format", "--cluster-id", CLUSTER_ID, "--config", file.toString(), "--feature", "share.version=" + shareVersion,
        };
        int status = StorageTool.execute(command, System.err);
        if (status != 0) {
            System.err.println("the log folder could not be formatted");
            Runtime.getRuntime().halt(status);
        }
    }

    private static void obeyStdin(KafkaRaftServer server) {
        Thread listener = new Thread(() -> {
            try (var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    if (line.equals("stop")) {
                        server.shutdown();
                    }
                }
            } catch (IOException closed) {
                // As good as the end of the input.
            }
            Runtime.getRuntime().halt(1);
        }, "stdin");
        listener.setDaemon(true);
        listener.start();
    }
}
