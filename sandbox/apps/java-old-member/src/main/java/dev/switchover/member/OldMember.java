package dev.switchover.member;

import java.io.FileOutputStream;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;

/** A sample consumer on Kafka's old high-level client, coordinated by ZooKeeper; settings in OldSettings. */
public final class OldMember {
    private static volatile boolean stopping;

    private OldMember() {}

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
            outOfTheGroup = !run(OldSettings.of(System.getenv()));
        } catch (RuntimeException | InterruptedException problem) {
            problem.printStackTrace();
        } finally {
            left.countDown();
        }
        if (outOfTheGroup) {
            System.exit(1); // threads of the client would keep the process alive, a member that owns nothing
        }
    }

    /** Consume until told to stop: true. False when the client gave up. */
    private static boolean run(OldSettings settings) throws IOException, InterruptedException {
        try (FileOutputStream out = Recorder.opened(settings.history())) {
            Recorder recorder = new Recorder(out, settings.name(), "", settings.words());
            OldMembership membership = new OldMembership(recorder, settings);
            try {
                membership.join();
                while (!stopping) {
                    membership.turn();
                }
            } catch (OldMembership.OutOfTheGroup problem) {
                System.err.println("member: out of the group: " + problem.getMessage());
                return false;
            }
            membership.leave();
            return true;
        }
    }
}
