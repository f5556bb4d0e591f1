package dev.switchover.member;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import kafka.consumer.Blacklist;
import kafka.consumer.KafkaStream;
import kafka.consumer.Whitelist;
import kafka.javaapi.consumer.ConsumerConnector;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * GROUP, HOSTNAME, HISTORY and FORGET as the other members take them (Settings of java-member). Its own:
 * ZOOKEEPER_CONNECT, which also tells the brokers; TOPIC (names with commas between them) or instead of it WHITELIST or
 * BLACKLIST (a pattern); STREAMS (of each topic); STRATEGY (range or roundrobin); CONSUMER_ID; OFFSETS_STORAGE (zookeeper
 * or kafka) and DUAL_COMMIT (true or false); SESSION_TIMEOUT_MS; AUTO_COMMIT_INTERVAL_MS.
 *
 * <p>With OFFSETS_STORAGE=kafka the history tells no committed offset: the old consumer has no way to ask for it.
 */
@SuppressWarnings("deprecation") // all of this client is
record OldSettings(
        String zookeeper, String group, String name, String history, List<String> topics, String whitelist,
        String blacklist, int streams, Map<String, String> given, Duration commitInterval, boolean storedInZooKeeper,
        OptionalInt forget) {

    /** Throws IllegalArgumentException for a strategy or a number that does not exist, and for faults of other members. */
    static OldSettings of(Map<String, String> environment) {
        String strategy = environment.getOrDefault("STRATEGY", "range");
        if (!List.of("range", "roundrobin").contains(strategy)) { // the client would take range
            throw new IllegalArgumentException("STRATEGY is range or roundrobin, not '" + strategy + "'");
        }
        for (String fault : List.of("DOUBLE", "STALL_PARTITION")) {
            if (!environment.getOrDefault(fault, "").isEmpty()) {
                throw new IllegalArgumentException(fault + " is no fault of the old member");
            }
        }
        String interval = environment.getOrDefault("AUTO_COMMIT_INTERVAL_MS", "1000");
        String storage = environment.getOrDefault("OFFSETS_STORAGE", "zookeeper");
        Map<String, String> given = new HashMap<>(Map.of(
                "auto.commit.interval.ms", interval,
                "offsets.storage", storage,
                "partition.assignment.strategy", strategy,
                "zookeeper.session.timeout.ms", environment.getOrDefault("SESSION_TIMEOUT_MS", "6000")));
        given.computeIfAbsent("dual.commit.enabled", ignored -> environment.get("DUAL_COMMIT"));
        given.computeIfAbsent("consumer.id", ignored -> environment.get("CONSUMER_ID"));
        String forget = environment.getOrDefault("FORGET", "");
        return new OldSettings(
                environment.getOrDefault("ZOOKEEPER_CONNECT", "zookeeper:2181"),
                environment.getOrDefault("GROUP", "orders"),
                environment.getOrDefault("HOSTNAME", "member"),
                environment.getOrDefault("HISTORY", "-"),
                List.of(environment.getOrDefault("TOPIC", "orders").split(",")),
                environment.getOrDefault("WHITELIST", ""),
                environment.getOrDefault("BLACKLIST", ""),
                Integer.parseInt(environment.getOrDefault("STREAMS", "1")),
                given,
                Duration.ofMillis(Long.parseLong(interval)),
                storage.equals("zookeeper"),
                forget.isEmpty() ? OptionalInt.empty() : OptionalInt.of(Integer.parseInt(forget)));
    }

    /** Of so many records one is not delivered, and the commit goes past it all the same. */
    boolean forgets(long offset) {
        return forget.isPresent() && offset % forget.getAsInt() == forget.getAsInt() - 1;
    }

    String words() {
        return "group %s, old consumer %s, %s".formatted(group, AppInfoParser.getVersion(), given);
    }

    Properties client() {
        Properties client = new Properties();
        client.putAll(given);
        client.setProperty("zookeeper.connect", zookeeper);
        client.setProperty("group.id", group);
        client.setProperty("client.id", name);
        client.setProperty("auto.offset.reset", "smallest");
        return client;
    }

    /** Register with what is to be consumed; throws what the first rebalance ends with. */
    List<KafkaStream<byte[], byte[]>> streams(ConsumerConnector connector) {
        if (!whitelist.isEmpty()) {
            return connector.createMessageStreamsByFilter(new Whitelist(whitelist), streams);
        }
        if (!blacklist.isEmpty()) {
            return connector.createMessageStreamsByFilter(new Blacklist(blacklist), streams);
        }
        Map<String, Integer> wanted = new HashMap<>();
        topics.forEach(topic -> wanted.put(topic, streams));
        return connector.createMessageStreams(wanted).values().stream().flatMap(List::stream).toList();
    }
}
