import java.io.BufferedReader;
import java.io.FileReader;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jinterop.dcom.common.JISystem;
import org.openscada.opc.lib.common.ConnectionInformation;
import org.openscada.opc.lib.da.Group;
import org.openscada.opc.lib.da.Item;
import org.openscada.opc.lib.da.ItemState;
import org.openscada.opc.lib.da.Server;

/** Utgard as a client of the third race: {@code OpcUtgard HOST DOMAIN USER PASSWORD CLSID RACE PLAN}; one JSON object for each operation. */
public final class OpcUtgard {
    private static long calls = 10_000, warmup = 500, budgetNs = 0;
    private static String only = null;
    private static final List<String> servers = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("org.jinterop").setLevel(Level.OFF);
        JISystem.setAutoRegisteration(false);
        for (int i = 6; i + 1 < arguments.length; i += 2) {
            switch (arguments[i]) {
                case "--calls": calls = Math.max(1, Long.parseLong(arguments[i + 1])); break;
                case "--warmup": warmup = Long.parseLong(arguments[i + 1]); break;
                case "--budget-ms": budgetNs = Long.parseLong(arguments[i + 1]) * 1_000_000; break;
                case "--server-pid": servers.add(arguments[i + 1]); break;
                case "--operation": only = arguments[i + 1]; break;
                default: break;
            }
        }
        ConnectionInformation information = new ConnectionInformation();
        information.setHost(arguments[0]);
        information.setDomain(arguments[1]);
        information.setUser(arguments[2]);
        information.setPassword(arguments[3]);
        information.setClsid(arguments[4]);
        ScheduledExecutorService threads = Executors.newSingleThreadScheduledExecutor();
        Server server = new Server(information, threads);
        server.connect();
        for (int items : new int[] {100, 1}) {
            String operation = "read " + items;
            if (only == null || only.equals(operation)) {
                measure(server, operation, items);
            }
        }
        server.disconnect();
        // Its resolver and its timers would go on.
        System.exit(0);
    }

    private static void measure(Server server, String operation, int items) throws Exception {
        Group group = server.addGroup("");
        String[] names = new String[items];
        for (int i = 0; i < items; i++) {
            names[i] = String.format(Locale.ROOT, "Line.Item%03d", i);
        }
        Map<String, Item> added = group.addItems(names);
        Item[] all = new Item[items];
        for (int i = 0; i < items; i++) {
            all[i] = added.get(names[i]);
        }
        long[] times = new long[items];
        long begun = System.nanoTime();
        for (long i = 0; i < warmup; i++) {
            read(group, all, times);
            if (budgetNs != 0 && System.nanoTime() - begun > budgetNs / 5) {
                break;
            }
        }
        List<Long> samples = new ArrayList<>();
        double own = ownCpu(), other = serverCpu();
        long start = System.nanoTime(), last = start;
        for (long i = 0; i < calls; i++) {
            read(group, all, times);
            long now = System.nanoTime();
            samples.add((now - last) * 1000);
            last = now;
            if (budgetNs != 0 && now - start > budgetNs) {
                break;
            }
        }
        say(operation, samples, last - start, ownCpu() - own, serverCpu() - other);
        long[] before = times.clone();
        for (long since = System.nanoTime(); Arrays.equals(before, times); read(group, all, times)) {
            if (System.nanoTime() - since > 20_000_000_000L) {
                throw new AssertionError("the values do not change");
            }
        }
        server.removeGroup(group, true);
    }

    /** A value is made of its item's number and of its time, in milliseconds. */
    private static void read(Group group, Item[] all, long[] times) throws Exception {
        Map<Item, ItemState> states = group.read(false, all);
        for (int i = 0; i < all.length; i++) {
            ItemState state = states.get(all[i]);
            long time = state.getTimestamp().getTimeInMillis();
            float value = state.getValue().getObjectAsFloat();
            boolean fits = value == (i + 1) * 100_000 + time % 100_000;
            if (state.getErrorCode() != 0 || state.getQuality() != 192 || time < times[i] || !fits) {
                throw new AssertionError("the value of item " + i + " is wrong: " + value + " at " + time + " after " + times[i]);
            }
            times[i] = time;
        }
    }

    private static double ownCpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e3;
    }

    /** Microseconds of all threads that the server has now. */
    private static double serverCpu() throws Exception {
        double sum = 0;
        for (String server : servers) {
            File[] tasks = new File("/proc/" + server + "/task").listFiles();
            for (File task : tasks == null ? new File[0] : tasks) {
                try (BufferedReader reader = new BufferedReader(new FileReader(new File(task, "schedstat")))) {
                    sum += Long.parseLong(reader.readLine().split(" ")[0]) / 1e3;
                } catch (java.io.IOException gone) {
                    // It ended meanwhile.
                }
            }
        }
        return sum;
    }

    private static void say(String operation, List<Long> samples, long totalNs, double own, double other) {
        int count = samples.size(), size = Math.max(1, (count + 19) / 20);
        StringBuilder blocks = new StringBuilder(), histogram = new StringBuilder();
        for (int at = 0; at < count; at += size) {
            List<Long> block = new ArrayList<>(samples.subList(at, Math.min(count, at + size)));
            block.sort(null);
            blocks.append(at > 0 ? "," : "").append(block.get(block.size() / 2));
        }
        Map<Long, Long> times = new TreeMap<>();
        for (long sample : samples) {
            times.merge(sample, 1L, Long::sum);
        }
        for (Map.Entry<Long, Long> entry : times.entrySet()) {
            histogram.append(histogram.length() > 0 ? "," : "").append('[').append(entry.getKey()).append(',').append(entry.getValue()).append(']');
        }
        String server = servers.isEmpty() ? "null" : String.format(Locale.ROOT, "%.3f", other);
        System.out.println(String.format(Locale.ROOT,
            "{\"operation\":\"%s\",\"calls\":%d,\"total_ns\":%d,\"client_cpu_us\":%.3f,\"server_cpu_us\":%s,\"blocks_ps\":[%s],\"histogram_ps\":[%s]}",
            operation, count, totalNs, own, server, blocks, histogram));
    }
}
