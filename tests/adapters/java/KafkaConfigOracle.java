import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import kafka.server.BrokerFeatures;
import kafka.server.DynamicBrokerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.QuotaConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka's own definitions of what stands in ZooKeeper, and its word on values. Run as a source file:
 * `java -cp "LIBS/*" KafkaConfigOracle.java`.
 *
 * Prints a line "topic|client|ip|broker|throttle KEY TYPE VALIDATOR" for each definition, "dynamic KEY TYPE" for each of a broker that
 * may change while it runs, and "feature NAME LOW HIGH" for each feature of a broker. Then reads a line "KEY VALUE" for each setting of a topic, the value in hexadecimal, and answers with "taken" or
 * "refused" as a broker does that reads it when it starts.
 */
public class KafkaConfigOracle {
    public static void main(String[] arguments) throws Exception {
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        print(out, "topic", LogConfig.configDefCopy());
        print(out, "client", QuotaConfigs.userAndClientQuotaConfigs());
        print(out, "ip", QuotaConfigs.ipConfigs());
        print(out, "broker", AbstractKafkaConfig.CONFIG_DEF);
        print(out, "throttle", QuotaConfigs.brokerQuotaConfigs());
        for (String key : CollectionConverters.asJava(DynamicBrokerConfig.AllDynamicConfigs())) {
            out.println("dynamic " + key + " " + AbstractKafkaConfig.CONFIG_DEF.configKeys().get(key).type);
        }
        new TreeMap<>(BrokerFeatures.createDefault(false).supportedFeatures().features()).forEach(
            (name, range) -> out.println("feature " + name + " " + range.min() + " " + range.max()));
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 2);
            String value = new String(HexFormat.of().parseHex(words[1]), StandardCharsets.UTF_8);
            try {
                new LogConfig(Map.of(words[0], value));
                out.println("taken");
            } catch (ConfigException refusal) {
                out.println("refused");
            }
        }
        out.flush();
    }

    private static void print(PrintStream out, String kind, ConfigDef definitions) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            out.println(kind + " " + key.name + " " + key.type + " " + (key.validator == null ? "" : key.validator));
        }
    }
}
