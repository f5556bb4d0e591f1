package dev.switchover.member;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.consumer.ConsumerThreadId;
import kafka.consumer.KafkaStream;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.consumer.ConsumerRebalanceListener;
import kafka.message.MessageAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * A member of a group that ZooKeeper coordinates. Several threads come here: one for each stream, and the client's that
 * rebalances; all that they share, the recorder too, is guarded by the recorder's lock.
 */
@SuppressWarnings("deprecation") // all of this client is
final class OldMembership implements ConsumerRebalanceListener {
    /** The client gave up: no rebalance at the start, or a stream that ended by an exception. */
    static final class OutOfTheGroup extends Exception {
        private static final long serialVersionUID = 1;

        OutOfTheGroup(Throwable problem) {
            super(problem.getMessage(), problem);
        }
    }

    /** Milliseconds that one turn takes. */
    private static final long TURN = 100;

    private final ConsumerConnector connector;
    private final Recorder recorder;
    private final OldSettings settings;
    private final StoredOffsets stored;
    private final Map<TopicPartition, Long> held = new HashMap<>(); // to the committed offset that the history has last
    private boolean leaving;
    private Throwable broken;
    private long due;

    /** Throws what the client refuses, and ZkException when ZooKeeper does not answer. */
    OldMembership(Recorder recorder, OldSettings settings) {
        this.recorder = recorder;
        this.settings = settings;
        this.stored = new StoredOffsets(settings);
        this.connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(settings.client()));
        connector.setConsumerRebalanceListener(this);
    }

    /** Register, rebalance and begin to consume. */
    void join() throws OutOfTheGroup {
        List<KafkaStream<byte[], byte[]>> streams;
        try {
            streams = settings.streams(connector);
        } catch (RuntimeException problem) { // ConsumerRebalanceFailedException, or what Scala throws without telling
            synchronized (recorder) {
                recorder.fenced(problem.getMessage());
            }
            connector.shutdown();
            throw new OutOfTheGroup(problem);
        }
        for (KafkaStream<byte[], byte[]> each : streams) {
            Thread thread = new Thread(() -> consume(each));
            thread.setUncaughtExceptionHandler((ignored, problem) -> {
                synchronized (recorder) {
                    broken = problem;
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        due = System.nanoTime();
    }

    /** Tell what was committed, when it is time. */
    void turn() throws OutOfTheGroup, InterruptedException {
        Thread.sleep(TURN);
        if (System.nanoTime() - due >= 0) {
            tellCommitted();
            due = System.nanoTime() + settings.commitInterval().toNanos();
        }
        synchronized (recorder) {
            if (broken != null) {
                recorder.fenced(broken.toString());
                throw new OutOfTheGroup(broken);
            }
        }
    }

    /** Stop the streams, then the client, which commits what they took and gives back its partitions all at once. */
    void leave() {
        synchronized (recorder) {
            leaving = true;
        }
        connector.shutdown();
        tellCommitted();
        synchronized (recorder) {
            held.keySet().forEach(recorder::release);
            recorder.stop();
        }
    }

    /**
     * The client has committed and releases all that it has. It names nothing when its ZooKeeper session was over: then
     * it has forgotten what it had. The sets cannot be read: they are Scala's, whatever their type says.
     */
    @Override
    public void beforeReleasingPartitions(Map<String, Set<Integer>> partitions) {
        boolean released = !partitions.isEmpty();
        if (released) {
            tellCommitted();
        }
        synchronized (recorder) {
            held.keySet().forEach(released ? recorder::release : recorder::lost);
            held.clear();
        }
    }

    /** The owner nodes are ours, and nothing is fetched yet. What is told is the assignment of all members. */
    @Override
    public void beforeStartingFetchers(String consumerId, Map<String, Map<Integer, ConsumerThreadId>> threads) {
        threads.forEach((topic, owners) -> owners.forEach((partition, thread) -> {
            if (thread.consumer().equals(consumerId)) {
                claim(new TopicPartition(topic, partition));
            }
        }));
    }

    private void claim(TopicPartition where) {
        double since = Recorder.mono();
        Long offset = storedOffset(where);
        synchronized (recorder) {
            recorder.claim(where, since, offset);
            held.put(where, offset);
        }
    }

    /**
     * A record is written down before next() takes it: from there on the client, on a thread of its own, may commit past
     * it at any time, and no window may be open then.
     */
    private void consume(KafkaStream<byte[], byte[]> stream) {
        ConsumerIterator<byte[], byte[]> records = stream.iterator();
        while (records.hasNext()) {
            synchronized (recorder) {
                if (leaving) {
                    return;
                }
                MessageAndMetadata<byte[], byte[]> record = records.peek();
                if (!settings.forgets(record.offset())) {
                    recorder.delivered(new TopicPartition(record.topic(), record.partition()), record.offset());
                    recorder.flush();
                }
                records.next();
            }
        }
    }

    /** The client tells nobody when it commits, nor whether that worked: what ZooKeeper holds tells both. */
    private void tellCommitted() {
        Set<TopicPartition> partitions;
        synchronized (recorder) {
            partitions = Set.copyOf(held.keySet());
        }
        for (TopicPartition each : partitions) {
            double since = Recorder.mono();
            Long offset = storedOffset(each);
            synchronized (recorder) {
                if (offset != null && offset != Recorder.NO_OFFSET && held.containsKey(each)
                        && !offset.equals(held.put(each, offset))) {
                    recorder.commit(each, since, offset);
                }
            }
        }
    }

    /** Null when it is not known. */
    private Long storedOffset(TopicPartition where) {
        try {
            return settings.storedInZooKeeper() ? stored.of(where) : null;
        } catch (StoredOffsets.Unreadable problem) {
            synchronized (recorder) {
                recorder.error("committed: " + problem.getMessage());
            }
            return null;
        }
    }
}
