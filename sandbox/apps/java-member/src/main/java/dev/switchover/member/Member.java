package dev.switchover.member;

import java.io.FileOutputStream;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A sample consumer in Java that writes its history; settings as {@code python -m member} takes them (see Settings). */
public final class Member {
    private static volatile boolean stopping;

    private Member() {}

    public static void main(String[] arguments) throws IOException {
        CountDownLatch left = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                left.await(); // the process ends when this hook does
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        }));
        boolean outOfTheGroup = true; // also when something is thrown that nobody expected
        try {
            outOfTheGroup = !run(Settings.of(System.getenv()));
        } catch (RuntimeException problem) {
            problem.printStackTrace();
        } finally {
            left.countDown();
        }
        if (outOfTheGroup) {
            System.exit(1);
        }
    }

    /** Consume until told to stop: true. False when the client gave up for good. */
    private static boolean run(Settings settings) throws IOException {
        Map<String, Object> client = settings.client();
        try (FileOutputStream out = Recorder.opened(settings.history())) {
            Recorder recorder = new Recorder(out, settings.name(), settings.instance(), settings.words());
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(client);
            Membership membership = new Membership(consumer, recorder, settings);
            try {
                while (!stopping) {
                    membership.turn();
                }
            } catch (Membership.OutOfTheGroup problem) {
                System.err.println("member: out of the group: " + problem.getMessage());
                return false;
            }
            membership.leave();
            return true;
        }
    }
}
