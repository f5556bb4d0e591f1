package dev.switchover.member;

import java.nio.charset.StandardCharsets;
import org.I0Itec.zkclient.ZkClient;
import org.I0Itec.zkclient.ZkConnection;
import org.I0Itec.zkclient.exception.ZkException;
import org.I0Itec.zkclient.serialize.BytesPushThroughSerializer;
import org.apache.kafka.common.TopicPartition;

/** The committed offsets of a group as ZooKeeper holds them, read in a session of its own. */
final class StoredOffsets {
    /** ZooKeeper does not answer, or holds no number. */
    static final class Unreadable extends Exception {
        private static final long serialVersionUID = 1;

        Unreadable(RuntimeException problem) {
            super(problem.toString(), problem);
        }
    }

    /** Milliseconds within which ZooKeeper must answer. */
    private static final int ANSWER = 5_000;

    private final ZkClient zookeeper;
    private final String directory;

    /** Throws ZkException when nothing can be reached. */
    StoredOffsets(OldSettings settings) {
        directory = "/consumers/" + settings.group() + "/offsets/";
        zookeeper = new ZkClient(new ZkConnection(settings.zookeeper(), ANSWER), ANSWER,
                new BytesPushThroughSerializer(), ANSWER);
    }

    /** The next offset to read; Recorder.NO_OFFSET for none. */
    long of(TopicPartition where) throws Unreadable {
        try {
            byte[] data = zookeeper.readData(directory + where.topic() + "/" + where.partition(), true);
            return data == null ? Recorder.NO_OFFSET : Long.parseLong(new String(data, StandardCharsets.US_ASCII));
        } catch (ZkException | NumberFormatException problem) {
            throw new Unreadable(problem);
        }
    }
}
