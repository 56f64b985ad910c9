package dev.redrive.test;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.protocol.Errors;

/**
 * The Kafka clients of the tests, all in one process: starting a JVM for each would cost seconds.
 *
 * <p>A line on stdin is a request, {@code {"id": 1, "verb": "createTopic", "bootstrap": "127.0.0.1:9092", ...}}; it is answered on
 * stdout by {@code {"id": 1, "ok": ...}} or {@code {"id": 1, "error": "TOPIC_ALREADY_EXISTS", "message": "..."}}, in the order in which
 * requests finish. Bytes are base64. Ends at once, without leaving any group, when stdin closes.
 */
final class Clients {
    static final ObjectMapper JSON = new ObjectMapper();

    private final PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Map<String, Cluster> clusters = new ConcurrentHashMap<>();

    private Clients() {}

    public static void main(String[] arguments) throws IOException {
        new Clients().serve();
        Runtime.getRuntime().halt(0);
    }

    private void serve() throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            threads.execute(() -> answer(request));
        }
    }

    private void answer(JsonNode request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", request.get("id"));
        try {
            answer.put("ok", run(request));
        } catch (Throwable failure) {
            Throwable cause = cause(failure);
            answer.put("error", name(cause));
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        try {
            write(JSON.writeValueAsString(answer));
        } catch (IOException unwritable) {
            throw new IllegalStateException("an answer that is no JSON", unwritable);
        }
    }

    private synchronized void write(String line) {
        answers.println(line);
        answers.flush();
    }

    private Object run(JsonNode request) throws Exception {
        String bootstrap = request.get("bootstrap").textValue();
        String verb = request.get("verb").textValue();
        if (verb.equals("forget")) {
            Cluster known = clusters.remove(bootstrap);
            if (known != null) {
                known.close();
            }
            return null;
        }
        return clusters.computeIfAbsent(bootstrap, Cluster::new).run(verb, request);
    }

    private static Throwable cause(Throwable failure) {
        Throwable cause = failure;
        while ((cause instanceof ExecutionException || cause instanceof CompletionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }

    /** The name of Kafka's error code, or that of the exception where the broker did not send it. */
    static String name(Throwable failure) {
        Errors error = Errors.forException(failure);
        return error == Errors.UNKNOWN_SERVER_ERROR ? failure.getClass().getSimpleName() : error.name();
    }
}
