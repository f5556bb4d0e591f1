import java.io.FileInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Stream;

/** What java.util.Properties reads in each file of a directory: a line "NAME KEY VALUE" for each, in hexadecimal; "NAME !" for a file that it refuses. */
class PropertiesDump {
    public static void main(String[] arguments) throws Exception {
        List<Path> files;
        try (Stream<Path> found = Files.list(Path.of(arguments[0]))) {
            files = found.sorted().toList();
        }
        for (Path file : files) {
            Properties read = new Properties();
            try (FileInputStream in = new FileInputStream(file.toFile())) {
                read.load(in);
            } catch (IllegalArgumentException refused) {
                System.out.println(file.getFileName() + " !");
                continue;
            }
            new TreeMap<Object, Object>(read).forEach((key, value) ->
                System.out.println(file.getFileName() + " " + hex(key) + " " + hex(value)));
        }
    }

    private static String hex(Object text) {
        return "x" + HexFormat.of().formatHex(text.toString().getBytes(StandardCharsets.UTF_16BE));
    }
}
