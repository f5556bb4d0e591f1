import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.SchemaException;

/**
 * What records of `__consumer_offsets` hold, by the classes that Kafka generates from its schemas: those of the version
 * whose jars are on the class path. Run as a source file: `java -cp "LIBS/*" RecordsOracle.java`.
 *
 * Reads a line "KEY VALUE" for each record, in hexadecimal, "-" for none, and answers with a line of JSON: type, key,
 * version, value and, of members in the consumers' protocol, topics and assigned (null: not to be read); or only "error",
 * what Kafka said to the bytes. The names of fields are those of the schemas.
 */
public class RecordsOracle {
    private static final String GENERATED = "org.apache.kafka.coordinator.group.generated.";

    private static final Map<Short, String> NAMES = Map.of(
        (short) 0, "OffsetCommit", (short) 1, "OffsetCommit", (short) 2, "GroupMetadata", (short) 3, "ConsumerGroupMetadata",
        (short) 5, "ConsumerGroupMemberMetadata", (short) 6, "ConsumerGroupTargetAssignmentMetadata",
        (short) 7, "ConsumerGroupTargetAssignmentMember", (short) 8, "ConsumerGroupCurrentMemberAssignment");

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] record = line.split(" ");
            ObjectNode answer;
            try {
                answer = read(bytes(record[0]), bytes(record[1]));
            } catch (Exception problem) {
                answer = JsonNodeFactory.instance.objectNode();
                answer.put("error", String.valueOf(
                    problem instanceof InvocationTargetException ? problem.getCause() : problem));
            }
            out.println(answer);
        }
        out.flush();
    }

    private static ObjectNode read(ByteBuffer key, ByteBuffer value) throws Exception {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        short type = key.getShort();
        answer.put("type", type);
        String name = NAMES.get(type);
        if (name == null) {
            return answer;
        }
        // In 3.9 the type is the version of the key's class, since 4.0 every key has version 0.
        answer.set("key", message(GENERATED + name + "Key", key, newest(GENERATED + name + "Key") == 0 ? 0 : type));
        if (value == null) {
            return answer;
        }
        short version = value.getShort();
        answer.put("version", version);
        if (version < 0 || version > newest(GENERATED + name + "Value")) {
            return answer;
        }
        JsonNode read = message(GENERATED + name + "Value", value, version);
        answer.set("value", read);
        if (type == 2 && read.get("protocolType").asText().equals("consumer")) {
            for (JsonNode member : read.get("members")) {
                blobs((ObjectNode) member);
            }
        }
        return answer;
    }

    private static void blobs(ObjectNode member) throws Exception {
        byte[] subscription = member.get("subscription").binaryValue();
        try {
            List<String> wanted = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(subscription)).topics();
            wanted.forEach(member.putArray("topics")::add);
        } catch (SchemaException refused) {
            member.putNull("topics");
        }
        ArrayNode assigned = member.putArray("assigned");
        byte[] assignment = member.get("assignment").binaryValue();
        if (assignment.length == 0) {
            return;
        }
        try {
            for (TopicPartition each : ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(assignment)).partitions()) {
                assigned.addArray().add(each.topic()).add(each.partition());
            }
        } catch (SchemaException refused) {
            member.putNull("assigned");
        }
    }

    private static short newest(String type) throws Exception {
        return Class.forName(type).getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
    }

    private static JsonNode message(String type, ByteBuffer from, short version) throws Exception {
        Class<?> message = Class.forName(type);
        Object read = message.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(from), version);
        Class<?> converter = Class.forName(type + "JsonConverter");
        return (JsonNode) converter.getMethod("write", message, short.class).invoke(null, read, version);
    }

    private static ByteBuffer bytes(String hexadecimal) {
        return hexadecimal.equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hexadecimal));
    }
}
