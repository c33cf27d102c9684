import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jinterop.dcom.common.JISystem;
import org.jinterop.dcom.core.JIVariant;
import org.openscada.opc.dcom.list.ClassDetails;
import org.openscada.opc.lib.common.ConnectionInformation;
import org.openscada.opc.lib.da.Async20Access;
import org.openscada.opc.lib.da.Group;
import org.openscada.opc.lib.da.Item;
import org.openscada.opc.lib.da.ItemState;
import org.openscada.opc.lib.da.Server;
import org.openscada.opc.lib.da.browser.Branch;
import org.openscada.opc.lib.da.browser.Leaf;
import org.openscada.opc.lib.list.Categories;
import org.openscada.opc.lib.list.Category;
import org.openscada.opc.lib.list.ServerList;

/** An OPC client made of Utgard: {@code opc_Utgard HOST DOMAIN USER PASSWORD CLSID}; it ends with a line {@code ok}. */
public final class opc_Utgard {
    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("org.jinterop").setLevel(Level.OFF);
        JISystem.setAutoRegisteration(false);
        list(arguments);
        ConnectionInformation information = new ConnectionInformation();
        information.setHost(arguments[0]);
        information.setDomain(arguments[1]);
        information.setUser(arguments[2]);
        information.setPassword(arguments[3]);
        information.setClsid(arguments[4]);
        ScheduledExecutorService threads = Executors.newSingleThreadScheduledExecutor();
        Server server = new Server(information, threads);
        server.connect();
        equal(server.getServerState().getServerState().name(), "OPC_STATUS_RUNNING");
        browse(server);
        values(server);
        callbacks(server);
        server.disconnect();
        System.out.println("ok");
        // Its resolver and its timers would go on.
        System.exit(0);
    }

    private static void equal(Object got, Object expected) {
        if (!expected.equals(got)) {
            throw new AssertionError(got + " instead of " + expected);
        }
    }

    /** OpcEnum. */
    private static void list(String[] arguments) throws Exception {
        ServerList list = new ServerList(arguments[0], arguments[2], arguments[3], arguments[1]);
        Category[] categories = {Categories.OPCDAServer20};
        Collection<ClassDetails> found = list.listServersWithDetails(categories, new Category[] {});
        equal(found.size(), 1);
        ClassDetails details = found.iterator().next();
        equal(details.getClsId().toLowerCase(), arguments[4].toLowerCase());
        System.out.println("server " + details.getProgId() + " " + details.getDescription());
        equal(list.getClsIdFromProgId(details.getProgId()).toLowerCase(), arguments[4].toLowerCase());
    }

    private static List<String> sorted(Collection<String> names) {
        List<String> sorted = new ArrayList<>(names);
        Collections.sort(sorted);
        return sorted;
    }

    private static void browse(Server server) throws Exception {
        System.out.println("flat " + sorted(server.getFlatBrowser().browse()));
        System.out.println("filtered " + sorted(server.getFlatBrowser().browse("Tank.[L-S]*")));
        Branch root = server.getTreeBrowser().browse();
        List<String> found = new ArrayList<>();
        for (Leaf leaf : root.getLeaves()) {
            found.add(leaf.getItemId());
        }
        for (Branch branch : root.getBranches()) {
            for (Leaf leaf : branch.getLeaves()) {
                found.add(branch.getName() + "/" + leaf.getName() + "=" + leaf.getItemId());
            }
        }
        System.out.println("tree " + sorted(found));
    }

    private static void values(Server server) throws Exception {
        Group group = server.addGroup("utgard");
        Item level = group.addItem("Tank.Level");
        for (boolean device : new boolean[] {false, true}) {
            ItemState state = level.read(device);
            equal(state.getErrorCode(), 0);
            equal(state.getQuality(), (short) 192);
            equal(state.getValue().getObjectAsFloat(), 50.0f);
        }
        Item setpoint = group.addItem("Tank.Setpoint");
        equal(setpoint.write(new JIVariant(321)), 0);
        equal((int) setpoint.read(true).getValue().getObjectAsShort(), 321);
        // What is only read.
        equal(level.write(new JIVariant(1.0f)), 0xC0040006);
        equal(group.validateItems("No.Such").get("No.Such").getErrorCode(), 0xC0040007);
        equal(group.getName(), "utgard");
        group.setActive(false);
        equal(group.isActive(), false);
        server.removeGroup(group, true);
        System.out.println("read and written");
    }

    private static void callbacks(Server server) throws Exception {
        BlockingQueue<Float> heard = new ArrayBlockingQueue<>(1000);
        Async20Access access = new Async20Access(server, 50, false);
        access.addItem("Tank.Level", (item, state) -> {
            try {
                heard.add(state.getValue().getObjectAsFloat());
            } catch (Exception failure) {
                failure.printStackTrace();
            }
        });
        access.bind();
        equal(heard.poll(300, TimeUnit.SECONDS), 50.0f);
        // The server is told to go on by what is written.
        Group group = server.addGroup("");
        equal(group.addItem("Tank.Valve").write(new JIVariant(true)), 0);
        for (Float value = 50.0f; value != 60.0f; ) {
            value = heard.poll(300, TimeUnit.SECONDS);
            equal(value != null, true);
        }
        access.unbind();
        server.removeGroup(group, true);
        System.out.println("called back");
    }
}
