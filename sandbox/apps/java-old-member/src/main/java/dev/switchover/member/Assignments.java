package dev.switchover.member;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import kafka.consumer.AssignmentContext;
import kafka.consumer.PartitionAssignor;
import kafka.consumer.PartitionAssignor$;
import kafka.utils.ZkUtils;
import scala.collection.JavaConverters;

/**
 * What the client's own arithmetic gives to the members that are registered in ZooKeeper. Each computes its own share, as
 * in a rebalance; nobody consumes. ZOOKEEPER_CONNECT, and a file with lines of a group and its strategy. Prints a line of
 * JSON for each member: {"group", "consumer", "threads": {"topic-partition": thread id}}.
 */
@SuppressWarnings("deprecation") // all of this client is
public final class Assignments {
    /** Milliseconds within which ZooKeeper must answer. */
    private static final int ANSWER = 10_000;

    private Assignments() {}

    public static void main(String[] arguments) throws IOException {
        List<String> groups = Files.readAllLines(Path.of(arguments[0]));
        ZkUtils zookeeper = ZkUtils.apply(System.getenv("ZOOKEEPER_CONNECT"), ANSWER, ANSWER, false);
        try {
            for (String line : groups) {
                String[] words = line.split(" ");
                PartitionAssignor assignor = PartitionAssignor$.MODULE$.createInstance(words[1]);
                for (String each : JavaConverters.seqAsJavaListConverter(zookeeper.getConsumersInGroup(words[0])).asJava()) {
                    System.out.println(assigned(assignor, new AssignmentContext(words[0], each, true, zookeeper), words[0]));
                }
            }
        } finally {
            zookeeper.close();
        }
    }

    /** Names need no quoting: neither topics nor consumer ids have characters that do. */
    private static String assigned(PartitionAssignor assignor, AssignmentContext context, String group) {
        var mine = assignor.assign(context).get(context.consumerId());
        String threads = JavaConverters.mutableMapAsJavaMapConverter(mine).asJava().entrySet().stream()
                .map(each -> "\"%s-%d\":\"%s\"".formatted(
                        each.getKey().topic(), each.getKey().partition(), each.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        return "{\"group\":\"%s\",\"consumer\":\"%s\",\"threads\":%s}".formatted(group, context.consumerId(), threads);
    }
}
