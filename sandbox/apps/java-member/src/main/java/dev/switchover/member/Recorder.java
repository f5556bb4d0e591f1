package dev.switchover.member;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes a history in the format of sandbox/apps/history/events.py, for one thread. Every line is with the kernel when
 * the call returns, so SIGKILL tears at most the last.
 */
final class Recorder {
    static final long NO_OFFSET = -1;

    /** Longest time, in seconds, that one window of deliveries covers. */
    private static final double SPAN = 0.25;

    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    private final FileOutputStream out;
    private final String by;
    private final Map<TopicPartition, Window> windows = new LinkedHashMap<>();
    private final Set<TopicPartition> untouched = new HashSet<>();

    /** Offsets of one partition that came within SPAN, as ranges, ascending. */
    private static final class Window {
        private final double since;
        private double until;
        private final List<long[]> ranges = new ArrayList<>();

        Window(double since) {
            this.since = since;
        }

        /** False, and nothing is added, for an offset that does not lie above all others: a window could not show it. */
        boolean add(long offset, double now) {
            long[] last = ranges.isEmpty() ? null : ranges.get(ranges.size() - 1);
            if (last != null && offset <= last[1]) {
                return false;
            }
            if (last != null && offset == last[1] + 1) {
                last[1] = offset;
            } else {
                ranges.add(new long[] {offset, offset});
            }
            until = now;
            return true;
        }

        @Override
        public String toString() {
            return ranges.stream().map(Arrays::toString).collect(Collectors.joining(",", "[", "]"));
        }
    }

    Recorder(FileOutputStream out, String member, String instance, String words) throws IOException {
        this.out = out;
        this.by = ",\"member\":%s,\"run\":\"%x\"%s".formatted(
                quoted(member), System.currentTimeMillis(), instance.isEmpty() ? "" : ",\"instance\":" + quoted(instance));
        write("start", ",\"clock\":" + quoted(Files.readString(BOOT_ID).strip()) + ",\"words\":" + quoted(words));
    }

    /** Where a Recorder writes: standard output for "-", else the file's end, after a line that an earlier run left torn. */
    static FileOutputStream opened(String path) throws IOException {
        if (path.equals("-")) {
            return new FileOutputStream(FileDescriptor.out);
        }
        FileOutputStream out = new FileOutputStream(path, true);
        try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
            if (file.length() > 0) {
                file.seek(file.length() - 1);
                if (file.read() != '\n') {
                    out.write('\n');
                }
            }
        }
        return out;
    }

    /** Seconds of CLOCK_MONOTONIC, which HotSpot's nanoTime reads on Linux. */
    static double mono() {
        return System.nanoTime() / 1e9;
    }

    /** Assigned; `offset` is the committed one as asked for at `since`, NO_OFFSET for none, null when not known. */
    void claim(TopicPartition where, double since, Long offset) {
        writeWindow(where); // of a holding before this one
        untouched.add(where);
        write("claim", place(where) + seconds("since", since) + (offset == null ? "" : ",\"offset\":" + offset));
    }

    /** One record was handed to the application. */
    void delivered(TopicPartition where, long offset) {
        double now = mono();
        Window window = windows.get(where);
        if (window == null || now - window.since >= SPAN || !window.add(offset, now)) {
            writeWindow(where);
            window = new Window(now);
            window.add(offset, now);
            windows.put(where, window);
        }
        if (untouched.remove(where)) {
            writeWindow(where);
        }
    }

    /** Write every window; returns the time. To be called right before a commit is sent, as its `since`. */
    double flush() {
        List.copyOf(windows.keySet()).forEach(this::writeWindow);
        return mono();
    }

    /** Write the windows that are SPAN old. */
    void tick() {
        double now = mono();
        for (TopicPartition where : List.copyOf(windows.keySet())) {
            if (now - windows.get(where).since >= SPAN) {
                writeWindow(where);
            }
        }
    }

    /** The broker accepted a commit that was sent at `since`. */
    void commit(TopicPartition where, double since, long offset) {
        write("commit", place(where) + seconds("since", since) + ",\"offset\":" + offset);
    }

    void release(TopicPartition where) {
        writeWindow(where);
        write("release", place(where));
    }

    void lost(TopicPartition where) {
        writeWindow(where);
        write("lost", place(where));
    }

    void fenced(String words) {
        flush();
        write("fenced", ",\"words\":" + quoted(words));
    }

    void error(String words) {
        write("error", ",\"words\":" + quoted(words));
    }

    void stop() {
        flush();
        write("stop", "");
    }

    private void writeWindow(TopicPartition where) {
        Window window = windows.remove(where);
        if (window != null) {
            write("delivered", place(where) + seconds("since", window.since) + seconds("until", window.until)
                    + ",\"ranges\":" + window);
        }
    }

    private void write(String event, String rest) {
        String line = "{\"event\":\"" + event + "\"" + seconds("mono", mono())
                + String.format(Locale.ROOT, ",\"wall\":%.3f", System.currentTimeMillis() / 1e3) + by + rest + "}\n";
        try {
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException problem) {
            throw new UncheckedIOException("the history cannot be written", problem);
        }
    }

    private static String place(TopicPartition where) {
        return ",\"topic\":" + quoted(where.topic()) + ",\"partition\":" + where.partition();
    }

    private static String seconds(String key, double value) {
        return String.format(Locale.ROOT, ",\"%s\":%.6f", key, value);
    }

    private static String quoted(String words) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : words.toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < ' ') {
                quoted.append("\\u%04x".formatted((int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
