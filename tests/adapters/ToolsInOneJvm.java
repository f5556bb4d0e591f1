import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Kafka's and ZooKeeper's command line tools, one after the other in one JVM, whose start is most of what each takes. */
public class ToolsInOneJvm {
    /** The status with which the tool first wanted to end: some catch what keeps them from it, and want another then. */
    private static Integer status;

    private static void end(int code) {
        status = status == null ? code : status;
        throw new IllegalStateException("ended with " + status);
    }

    /** Prints its port, then takes for each call the class and its arguments, and answers what it printed and its status. */
    public static void main(String[] none) throws Exception {
        PrintStream own = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(printed, true));
        org.apache.kafka.common.utils.Exit.setExitProcedure((code, message) -> end(code));
        org.apache.kafka.common.utils.Exit.setHaltProcedure((code, message) -> end(code));
        org.apache.zookeeper.util.ServiceUtils.setSystemExitProcedure(ToolsInOneJvm::end);
        try (ServerSocket server = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            own.println(server.getLocalPort());
            own.flush();
            while (true) {
                try (Socket socket = server.accept()) {
                    DataInputStream in = new DataInputStream(socket.getInputStream());
                    String name = in.readUTF();
                    String[] arguments = new String[in.readInt()];
                    for (int i = 0; i < arguments.length; i++) {
                        arguments[i] = in.readUTF();
                    }
                    printed.reset();
                    status = null;
                    try {
                        Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
                    } catch (InvocationTargetException thrown) {
                        if (status == null) {
                            thrown.getCause().printStackTrace();
                            status = 1;
                        }
                    }
                    DataOutputStream out = new DataOutputStream(socket.getOutputStream());
                    out.writeInt(status == null ? 0 : status);
                    out.write(printed.toByteArray());
                    out.flush();
                }
            }
        }
    }
}
