package dev.switchover.member;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;

/**
 * A member of a consumer group that writes its history, under either protocol and any assignor: the lists given to the
 * listener are whole under an eager assignor and differences otherwise, and each partition is treated for itself.
 */
final class Membership implements ConsumerRebalanceListener {
    /** The client gave up for good: refused by the group, or fenced. */
    static final class OutOfTheGroup extends Exception {
        private static final long serialVersionUID = 1;

        OutOfTheGroup(KafkaException problem) {
            super(problem.getMessage(), problem);
        }
    }

    /** How long one turn waits for records. */
    private static final Duration POLL = Duration.ofMillis(100);

    /** Within which the coordinator must tell committed offsets, or accept them. */
    private static final Duration ANSWER = Duration.ofSeconds(10);

    private final Consumer<byte[], byte[]> consumer;
    private final Recorder recorder;
    private final Settings settings;
    private final Map<TopicPartition, Long> positions = new HashMap<>();
    private final Map<TopicPartition, Long> committed = new HashMap<>();
    private long due;

    Membership(Consumer<byte[], byte[]> consumer, Recorder recorder, Settings settings) {
        this.consumer = consumer;
        this.recorder = recorder;
        this.settings = settings;
        this.due = System.nanoTime() + settings.commitInterval().toNanos();
        consumer.subscribe(List.of(settings.topic()), this);
    }

    /** Deliver what the next poll brings, and commit when it is time. */
    void turn() throws OutOfTheGroup {
        try {
            consumer.poll(POLL).forEach(this::take);
        } catch (RetriableException problem) {
            recorder.error(name(problem));
        } catch (KafkaException problem) {
            recorder.fenced(name(problem) + ": " + problem.getMessage());
            throw new OutOfTheGroup(problem);
        }
        recorder.tick();
        if (System.nanoTime() - due >= 0) {
            commit(positions.keySet());
            due = System.nanoTime() + settings.commitInterval().toNanos();
        }
    }

    /** Close; the client calls onPartitionsRevoked for what is left. */
    void leave() {
        consumer.close();
        recorder.stop();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        double since = Recorder.mono();
        Map<TopicPartition, OffsetAndMetadata> offsets = null;
        try {
            offsets = partitions.isEmpty() ? Map.of() : consumer.committed(new HashSet<>(partitions), ANSWER);
        } catch (KafkaException problem) {
            recorder.error("committed: " + name(problem));
        }
        for (TopicPartition each : partitions) {
            if (offsets == null) {
                recorder.claim(each, since, null);
            } else {
                OffsetAndMetadata known = offsets.get(each);
                recorder.claim(each, since, known == null ? Recorder.NO_OFFSET : known.offset());
            }
        }
    }

    /** Commit, then release: the partitions go to others when this returns. */
    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit(partitions);
        partitions.forEach(recorder::release);
        forget(partitions);
    }

    /** Others may have them already: nothing is committed. */
    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        partitions.forEach(recorder::lost);
        forget(partitions);
    }

    private void take(ConsumerRecord<byte[], byte[]> record) {
        if (settings.stalls(record.partition())) {
            return;
        }
        TopicPartition where = new TopicPartition(record.topic(), record.partition());
        if (!settings.forgets(record.offset())) {
            recorder.delivered(where, record.offset());
        }
        positions.put(where, record.offset() + 1);
    }

    /** Commit where something was delivered since the last commit; what is refused is tried again next time. */
    private void commit(Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> fresh = new HashMap<>();
        for (TopicPartition each : partitions) {
            Long position = positions.get(each);
            if (position != null && !position.equals(committed.get(each))) {
                fresh.put(each, new OffsetAndMetadata(position));
            }
        }
        if (fresh.isEmpty()) {
            return;
        }
        double since = recorder.flush();
        try {
            consumer.commitSync(fresh, ANSWER);
        } catch (KafkaException problem) {
            recorder.error("commit: " + name(problem));
            return;
        }
        fresh.forEach((where, offset) -> {
            recorder.commit(where, since, offset.offset());
            committed.put(where, offset.offset());
        });
    }

    private void forget(Collection<TopicPartition> partitions) {
        partitions.forEach(positions::remove);
        partitions.forEach(committed::remove);
    }

    private static String name(KafkaException problem) {
        return problem.getClass().getSimpleName();
    }
}
