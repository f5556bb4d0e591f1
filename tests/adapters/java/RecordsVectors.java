import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataValue;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

/**
 * Prints tests/unit/golden/records.txt: values of every version, encoded by the classes of Kafka 4.4. Run as a source file:
 * `java -cp "LIBS/*" RecordsVectors.java > records.txt`. A line is a name, the version, what is in it, and the bytes.
 */
public class RecordsVectors {
    private static final short FIRST = 0;

    public static void main(String[] arguments) {
        for (short version = 0; version <= OffsetCommitValue.HIGHEST_SUPPORTED_VERSION; version++) {
            for (int metadata : List.of(0, 5, 126, 127, 300)) {
                for (boolean id : version < 4 ? List.of(false) : List.of(false, true)) {
                    var value = new OffsetCommitValue().setOffset(1L << 40 | metadata).setMetadata("m".repeat(metadata))
                        .setCommitTimestamp(1_700_000_000_000L + metadata);
                    if (version == 1) {
                        value.setExpireTimestamp(1_800_000_000_000L);
                    }
                    if (version >= 3) {
                        value.setLeaderEpoch(7);
                    }
                    if (id) {
                        value.setTopicId(new Uuid(1, metadata));
                    }
                    print("commit", version, metadata + (id ? "+id" : ""), value);
                }
            }
        }
        for (short version = 0; version <= GroupMetadataValue.HIGHEST_SUPPORTED_VERSION; version++) {
            var member = new GroupMetadataValue.MemberMetadata().setMemberId("m-1").setClientId("c")
                .setClientHost("/127.0.0.1").setSessionTimeout(10_000)
                .setSubscription(HexFormat.of().parseHex("0000" + "00000001" + "0001" + "74" + "ffffffff"))
                .setAssignment(HexFormat.of().parseHex("0000" + "00000001" + "0001" + "74"
                    + "00000002" + "00000000" + "00000003" + "ffffffff"));
            if (version >= 1) {
                member.setRebalanceTimeout(20_000);
            }
            if (version >= 3) {
                member.setGroupInstanceId("i-1");
            }
            var value = new GroupMetadataValue().setProtocolType("consumer").setGeneration(9).setProtocol("range")
                .setLeader("m-1").setMembers(List.of(member));
            if (version >= 2) {
                value.setCurrentStateTimestamp(1_700_000_000_000L);
            }
            print("ClassicGroup", version, "one-member", value);
        }
        consumerProtocol();
    }

    private static void consumerProtocol() {
        print("Epoch", FIRST, "without-hash", new ConsumerGroupMetadataValue().setEpoch(3));
        print("Epoch", FIRST, "with-hash", new ConsumerGroupMetadataValue().setEpoch(3).setMetadataHash(99));
        print("TargetEpoch", FIRST, "without-time", new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(4));
        print("TargetEpoch", FIRST, "with-time", new ConsumerGroupTargetAssignmentMetadataValue().setAssignmentEpoch(4)
            .setAssignmentTimestamp(1_700_000_000_000L));
        var member = new ConsumerGroupMemberMetadataValue().setInstanceId(null).setRackId(null).setServerAssignor(null)
            .setClientId("c").setClientHost("/127.0.0.1")
            .setSubscribedTopicNames(List.of("t", "u")).setRebalanceTimeoutMs(20_000);
        print("Member", FIRST, "topics", member);
        print("Member", FIRST, "all", member.setInstanceId("i-1").setRackId("r").setSubscribedTopicRegex("t.*")
            .setServerAssignor("uniform").setClassicMemberMetadata(
                new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata().setSessionTimeoutMs(10_000)
                    .setSupportedProtocols(List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol().setName("range")
                        .setMetadata(new byte[] {0, 0})))));
        print("Target", FIRST, "two-topics", new ConsumerGroupTargetAssignmentMemberValue().setTopicPartitions(List.of(
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(new Uuid(1, 2))
                .setPartitions(List.of(0, 3)),
            new ConsumerGroupTargetAssignmentMemberValue.TopicPartition().setTopicId(new Uuid(3, 4))
                .setPartitions(List.of(1)))));
        print("Current", FIRST, "pending", new ConsumerGroupCurrentMemberAssignmentValue().setMemberEpoch(6)
            .setPreviousMemberEpoch(5).setState((byte) 1).setAssignedPartitions(List.of(
                new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions().setTopicId(new Uuid(1, 2))
                    .setPartitions(List.of(0)).setAssignmentEpochs(List.of(6))))
            .setPartitionsPendingRevocation(List.of(
                new ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions().setTopicId(new Uuid(1, 2))
                    .setPartitions(List.of(3)))));
    }

    private static void print(String name, short version, String about, ApiMessage value) {
        var buffer = MessageUtil.toVersionPrefixedByteBuffer(version, value);
        var bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        System.out.println(name + " " + version + " " + about + " " + HexFormat.of().formatHex(bytes));
    }
}
