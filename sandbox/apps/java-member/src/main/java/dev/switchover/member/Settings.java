package dev.switchover.member;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * BOOTSTRAP_SERVERS, TOPIC, GROUP, HOSTNAME, HISTORY (a file, or - for standard output), GROUP_PROTOCOL (classic or
 * consumer), ASSIGNOR (names with commas between them; one of the brokers' under the consumer protocol), INSTANCE_ID,
 * COMMIT_INTERVAL (seconds), STALL_PARTITION and FORGET. The same names, meanings and defaults as
 * sandbox/apps/member/settings.py and faults.py.
 */
record Settings(
        String bootstrap, String topic, String group, String name, String history, String protocol, String assignor,
        String instance, Duration commitInterval, OptionalInt stallPartition, OptionalInt forget) {

    /** The names that the assignors have in the group protocol, and in librdkafka's settings. */
    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
            "range", RangeAssignor.class, "roundrobin", RoundRobinAssignor.class, "sticky", StickyAssignor.class,
            "cooperative-sticky", CooperativeStickyAssignor.class);

    /** Throws IllegalArgumentException for what does not exist: a protocol, an assignor, a number, a fault planted here. */
    static Settings of(Map<String, String> environment) {
        String protocol = environment.getOrDefault("GROUP_PROTOCOL", "classic");
        if (!List.of("classic", "consumer").contains(protocol)) {
            throw new IllegalArgumentException("GROUP_PROTOCOL is classic or consumer, not '" + protocol + "'");
        }
        if (!environment.getOrDefault("DOUBLE", "").isEmpty()) {
            throw new IllegalArgumentException("DOUBLE is a fault of the member in Python alone");
        }
        double interval = Double.parseDouble(environment.getOrDefault("COMMIT_INTERVAL", "1"));
        return new Settings(
                environment.getOrDefault("BOOTSTRAP_SERVERS", "kafka:9092"),
                environment.getOrDefault("TOPIC", "orders"),
                environment.getOrDefault("GROUP", "orders"),
                environment.getOrDefault("HOSTNAME", "member"),
                environment.getOrDefault("HISTORY", "-"),
                protocol,
                environment.getOrDefault("ASSIGNOR", ""),
                environment.getOrDefault("INSTANCE_ID", ""),
                Duration.ofMillis(Math.round(interval * 1000)),
                number(environment.getOrDefault("STALL_PARTITION", "")),
                number(environment.getOrDefault("FORGET", "")));
    }

    /** Nothing of this partition is delivered or committed, though the member owns it. */
    boolean stalls(int partition) {
        return stallPartition.isPresent() && partition == stallPartition.getAsInt();
    }

    /** Of so many records one is not delivered, and the commit goes past it all the same. */
    boolean forgets(long offset) {
        return forget.isPresent() && offset % forget.getAsInt() == forget.getAsInt() - 1;
    }

    String words() {
        return "group %s, %s protocol, assignor %s".formatted(
                group, protocol, assignor.isEmpty() ? "by default" : assignor);
    }

    /**
     * What kafka-clients is given. It refuses session.timeout.ms, heartbeat.interval.ms and partition.assignment.strategy
     * under the consumer protocol, and group.remote.assignor under the classic one (docs/facts/groups.md#clients).
     */
    Map<String, Object> client() {
        Map<String, Object> client = new HashMap<>(Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
                ConsumerConfig.CLIENT_ID_CONFIG, name,
                ConsumerConfig.GROUP_ID_CONFIG, group,
                ConsumerConfig.GROUP_PROTOCOL_CONFIG, protocol,
                ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                ConsumerConfig.METADATA_MAX_AGE_CONFIG, 10_000,
                ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
                ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class));
        if (!instance.isEmpty()) {
            client.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, instance);
        }
        if (!assignor.isEmpty() && protocol.equals("consumer")) {
            client.put(ConsumerConfig.GROUP_REMOTE_ASSIGNOR_CONFIG, assignor);
        } else if (!assignor.isEmpty()) {
            client.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG,
                    List.of(assignor.split(",")).stream().map(Settings::assignorClass).toList());
        }
        return client;
    }

    private static OptionalInt number(String words) {
        return words.isEmpty() ? OptionalInt.empty() : OptionalInt.of(Integer.parseInt(words));
    }

    private static Class<?> assignorClass(String assignor) {
        Class<?> found = ASSIGNORS.get(assignor.strip());
        if (found == null) {
            throw new IllegalArgumentException("ASSIGNOR names '" + assignor + "'; there are " + ASSIGNORS.keySet());
        }
        return found;
    }
}
