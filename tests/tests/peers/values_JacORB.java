// Both sides of `stock.idl` on JacORB:
//
//   values_JacORB serve FILE     serves a store, and writes its reference into a file
//   values_JacORB REFERENCE      calls a store, and prints what it is answered, a line for each call

import java.io.File;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.function.Supplier;
import org.omg.CORBA.StringHolder;
import org.omg.CORBA.SystemException;
import org.omg.CORBA.portable.StreamableValue;
import org.omg.CORBA.portable.ValueFactory;
import org.omg.CORBA_2_3.ORB;
import org.omg.CORBA_2_3.portable.InputStream;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import stock.*;

public class values_JacORB {
  static final class OwnWare extends Ware {}

  static final class OwnPacked extends Packed {}

  static final class OwnCooled extends Cooled {}

  static final class OwnChain extends Chain {}

  static final class OwnPair extends Pair {}

  private static ORB orb;

  private static void known(String id, Supplier<StreamableValue> fresh) {
    orb.register_value_factory(id, new ValueFactory() {
      public Serializable read_value(InputStream in) { return in.read_value(fresh.get()); }
    });
  }

  public static void main(String[] words) throws Exception {
    Properties ours = new Properties();
    ours.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    ours.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    ours.setProperty("OAIAddr", "127.0.0.1");
    ours.setProperty("jacorb.log.default.verbosity", "0");
    orb = (ORB) org.omg.CORBA.ORB.init(new String[0], ours);
    known(WareHelper.id(), OwnWare::new);
    known(ChainHelper.id(), OwnChain::new);
    known(PairHelper.id(), OwnPair::new);
    known(PackedHelper.id(), OwnPacked::new);
    known(CooledHelper.id(), OwnCooled::new);
    if (words.length == 2) {
      serve(words[1]);
    } else {
      ask(StoreHelper.unchecked_narrow(orb.string_to_object(words[0])));
      // Threads of the broker would go on.
      System.exit(0);
    }
  }

  private static Ware ware(int code) {
    Ware made = new OwnWare();
    made.code = code;
    return made;
  }

  private static Packed packed(Packed made, int code, int seal, Ware inner, double weight) {
    made.code = code;
    made.seal = (byte) seal;
    made.inner = inner;
    made.weight = weight;
    return made;
  }

  private static Pair pair(Ware left, Ware right) {
    Pair made = new OwnPair();
    made.left = left;
    made.right = right;
    return made;
  }

  private static String show(Ware ware) {
    if (ware == null) return "null";
    if (!(ware instanceof Packed)) return "W(" + ware.code + ")";
    Packed more = (Packed) ware;
    String by = ware instanceof Cooled ? "," + ((Cooled) ware).by : "";
    return "P(" + more.code + "," + more.seal + "," + show(more.inner) + "," + more.weight + by + ")";
  }

  private static String show(Ware[] wares) {
    StringJoiner line = new StringJoiner(" ");
    for (Ware ware : wares) line.add(show(ware));
    return line.toString();
  }

  private static String show(Pair pair) {
    return pair == null ? "null" : show(pair.left) + " " + show(pair.right);
  }

  private interface Call {
    String made(StringHolder behind);
  }

  private static void told(String what, Call call) {
    StringHolder behind = new StringHolder("behind");
    String told;
    try {
      told = call.made(behind) + " " + behind.value;
    } catch (SystemException failed) {
      told = failed.getClass().getSimpleName();
    }
    System.out.println(what + ": " + told);
  }

  private static void ask(Store store) {
    Ware one = ware(7);
    Packed two = packed(new OwnPacked(), 1, 2, ware(3), 1.5);
    Packed nested = packed(new OwnPacked(), 6, 5, two, 2.5);
    OwnCooled cooled = new OwnCooled();
    packed(cooled, 4, 3, null, 0.5);
    cooled.by = "ice";
    told("ware", b -> show(store.pass_ware(one, b)));
    told("null", b -> show(store.pass_ware(null, b)));
    told("cut", b -> show(store.pass_ware(two, b)));
    told("packed", b -> show(store.pass_packed(two, b)));
    told("cut within", b -> show(store.pass_packed(nested, b)));
    told("both cut", b -> show(store.pass_ware(nested, b)));
    told("not cut", b -> show(store.pass_packed(cooled, b)));
    told("cooled", b -> show(store.pass_cooled(cooled, b)));
    for (String note : new String[] {"hi", "", null}) told("note", b -> store.pass_note(note, b));
    for (int[] sizes : new int[][] {{1, 2, 3}, {}, null}) {
      told("sizes", b -> {
        int[] back = store.pass_sizes(sizes, b);
        return back == null ? "null" : java.util.Arrays.toString(back).replace(", ", " ");
      });
    }
    told("chain", b -> {
      Chain head = null;
      for (int i = 0; i < 5; i++) {
        Chain next = head;
        head = new OwnChain();
        head.item = i;
        head.next = next;
      }
      StringJoiner line = new StringJoiner(" ");
      for (Chain at = store.pass_chain(head, b); at != null; at = at.next) line.add("" + at.item);
      return line.toString();
    });
    told("shared", b -> show(store.pass_pair(pair(one, one), b)));
    told("shared and cut", b -> show(store.pass_pair(pair(two, two), b)));
    told("half", b -> show(store.pass_pair(pair(null, one), b)));
    told("no pair", b -> show(store.pass_pair(null, b)));
    told("wares", b -> show(store.pass_wares(new Ware[] {one, two, one, null, two}, b)));
    told("shelf", b -> {
      Shelf back = store.pass_shelf(new Shelf((byte) 3, two, "label"), b);
      return back.floor + " " + show(back.front) + " " + back.label;
    });
    told("best", b -> show(store.best(b)));
    told("twins", b -> show(store.twins(b)));
    told("mixed", b -> show(store.mixed(b)));
  }

  private static void serve(String file) throws Exception {
    POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    poa.the_POAManager().activate();
    org.omg.CORBA.Object store = poa.servant_to_reference(new Own());
    Files.write(Paths.get(file + ".new"), orb.object_to_string(store).getBytes());
    new File(file + ".new").renameTo(new File(file));
    System.out.println("ready");
    orb.run();
  }

  private static final class Own extends StorePOA {
    private <T> T back(T what, StringHolder behind) {
      behind.value = behind.value == null ? "behind" : behind.value + "!";
      return what;
    }

    public Ware pass_ware(Ware what, StringHolder behind) { return back(what, behind); }
    public Packed pass_packed(Packed what, StringHolder behind) { return back(what, behind); }
    public Cooled pass_cooled(Cooled what, StringHolder behind) { return back(what, behind); }
    public String pass_note(String what, StringHolder behind) { return back(what, behind); }
    public int[] pass_sizes(int[] what, StringHolder behind) { return back(what, behind); }
    public Chain pass_chain(Chain what, StringHolder behind) { return back(what, behind); }
    public Pair pass_pair(Pair what, StringHolder behind) { return back(what, behind); }
    public Ware[] pass_wares(Ware[] what, StringHolder behind) { return back(what, behind); }
    public Shelf pass_shelf(Shelf what, StringHolder behind) { return back(what, behind); }

    private Packed two() {
      return packed(new OwnPacked(), 1, 2, ware(3), 1.5);
    }

    public Ware best(StringHolder behind) { return back(two(), behind); }
    public Pair twins(StringHolder behind) {
      Ware one = ware(7);
      return back(pair(one, one), behind);
    }
    public Ware[] mixed(StringHolder behind) {
      Ware one = ware(7), two = two();
      return back(new Ware[] {one, two, one, null, two}, behind);
    }
  }
}
