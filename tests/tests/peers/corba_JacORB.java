// A client and a server on JacORB, for its Interface Repository: what it reads of others', and objects that it describes.
//
//   corba_JacORB read REFERENCE           prints what the repository of an object's server says of the object
//   corba_JacORB serve REPOSITORY FILE    serves a tank, described by the repository whose reference is in a file; writes its reference
//   corba_JacORB repository FILE          serves the repository of the classes on its class path; writes its reference

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Properties;
import org.omg.CORBA.*;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public class corba_JacORB {
  private static final Properties OURS = new Properties();

  static {
    OURS.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    OURS.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    OURS.setProperty("OAIAddr", "127.0.0.1");
    OURS.setProperty("jacorb.log.default.verbosity", "0");
  }

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "read":
        read(ORB.init(new String[0], OURS), arguments[1]);
        break;
      case "serve":
        serve(arguments[1], arguments[2]);
        break;
      default:
        OURS.forEach((name, value) -> System.setProperty((String) name, (String) value));
        String classes = corba_JacORB.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        org.jacorb.ir.IRServer.main(new String[] {classes, arguments[1]});
        // It goes on by threads of its own.
        return;
    }
    // Threads of the broker would go on.
    System.exit(0);
  }

  private static String word(TypeCode code) throws Exception {
    switch (code.kind().value()) {
      case TCKind._tk_struct:
      case TCKind._tk_union:
      case TCKind._tk_enum:
      case TCKind._tk_alias:
      case TCKind._tk_except:
      case TCKind._tk_objref:
        return code.id();
      default:
        return "kind " + code.kind().value();
    }
  }

  private static void read(ORB orb, String reference) throws Exception {
    org.omg.CORBA.Object object = orb.string_to_object(reference);
    InterfaceDef definition = InterfaceDefHelper.narrow(object._get_interface_def());
    org.omg.CORBA.InterfaceDefPackage.FullInterfaceDescription told = definition.describe_interface();
    System.out.println("interface " + definition.absolute_name() + " " + told.id);
    for (String base : told.base_interfaces) {
      System.out.println("base " + base + " " + object._is_a(base));
    }
    for (OperationDescription operation : told.operations) {
      StringBuilder line = new StringBuilder("operation " + operation.name + " " + word(operation.result));
      for (ParameterDescription parameter : operation.parameters) {
        line.append(", ").append(parameter.mode.value()).append(" ").append(parameter.name).append(" ").append(word(parameter.type));
        if (!parameter.type_def.type().equal(parameter.type)) {
          throw new Exception("the definition of " + parameter.name + " has another type");
        }
      }
      for (ExceptionDescription raised : operation.exceptions) {
        line.append(" raises ").append(word(raised.type));
      }
      System.out.println(line + " of " + operation.defined_in);
    }
    for (AttributeDescription attribute : told.attributes) {
      System.out.println("attribute " + attribute.name + " " + word(attribute.type) + " " + attribute.mode.value() + " of " + attribute.defined_in);
    }
    Repository repository = RepositoryHelper.narrow(definition.containing_repository());
    walk(repository, repository);
  }

  private static void walk(Container container, Repository repository) throws Exception {
    for (Contained contained : container.contents(DefinitionKind.dk_all, true)) {
      Contained again = repository.lookup_id(contained.id());
      if (!again.absolute_name().equals(contained.absolute_name())) {
        throw new Exception(contained.id() + " has two names");
      }
      System.out.println("definition " + contained.absolute_name() + " " + contained.def_kind().value() + " " + contained.describe().value.type().id());
      int kind = contained.def_kind().value();
      if (kind == DefinitionKind._dk_Module || kind == DefinitionKind._dk_Interface) {
        walk(ContainerHelper.narrow(contained), repository);
      }
    }
  }

  private static void serve(String repository, String file) throws Exception {
    OURS.setProperty("ORBInitRef.InterfaceRepository", "file:" + repository);
    ORB orb = ORB.init(new String[0], OURS);
    POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    poa.the_POAManager().activate();
    org.omg.CORBA.Object tank = poa.servant_to_reference(new Tank());
    Files.write(Paths.get(file + ".new"), orb.object_to_string(tank).getBytes());
    new File(file + ".new").renameTo(new File(file));
    orb.run();
  }

  private static final class Tank extends plant.TankPOA {
    private double level = 4;

    public String name() { return "T1"; }
    public void ping() { }
    public double level() { return level; }
    public double fill(double litres, plant.PointHolder at) throws plant.Empty {
      if (litres < 0) throw new plant.Empty(3, "negative");
      at.value = new plant.Point(1, 2);
      return level += litres;
    }
    public plant.Point[] history(int n, plant.ColourHolder c) {
      c.value = plant.Colour.blue;
      plant.Point[] path = new plant.Point[n];
      Arrays.setAll(path, i -> new plant.Point(i, i));
      return path;
    }
    public plant.Node tree(plant.Node n) { return n; }
    public plant.Maybe perhaps(plant.Maybe m) { return m; }
    public plant.Choice choose(plant.Choice c) { return c; }
    public Any pass(Any x) { return x; }
    public String shorten(String[] s, int[] a) { return "short"; }
    public plant.Base other(plant.Tank of, org.omg.CORBA.Object any) { return of; }
    public void hint(String what) { }
  }
}
