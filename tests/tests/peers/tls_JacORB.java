// A client and a server on JacORB, over TLS alone.
//
//   tls_JacORB call REFERENCE STORE     calls an object of the shared contract; prints what it answers
//   tls_JacORB serve FILE STORE         serves one; writes its reference into the file
//
// STORE is a key store with the password `changeit`: who is trusted, and this side's own certificate.

import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Properties;
import org.omg.CORBA.Any;
import org.omg.CORBA.NVList;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Request;
import org.omg.CORBA.ServerRequest;
import org.omg.CORBA.TCKind;
import org.omg.PortableServer.DynamicImplementation;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public class tls_JacORB {
  public static void main(String[] arguments) throws Exception {
    Properties ours = new Properties();
    ours.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    ours.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    ours.setProperty("OAIAddr", "127.0.0.1");
    ours.setProperty("jacorb.log.default.verbosity", "0");
    ours.setProperty("jacorb.security.support_ssl", "on");
    ours.setProperty("jacorb.ssl.socket_factory", "org.jacorb.security.ssl.sun_jsse.SSLSocketFactory");
    ours.setProperty("jacorb.ssl.server_socket_factory", "org.jacorb.security.ssl.sun_jsse.SSLServerSocketFactory");
    ours.setProperty("jacorb.security.keystore", arguments[2]);
    ours.setProperty("jacorb.security.keystore_password", "changeit");
    ours.setProperty("jacorb.security.jsse.trustees_from_ks", "on");
    // Bits of AssociationOptions, in hexadecimal: trust in the target is had and wanted.
    for (String side : new String[] {"client", "server"}) {
      ours.setProperty("jacorb.security.ssl." + side + ".supported_options", "60");
      ours.setProperty("jacorb.security.ssl." + side + ".required_options", "20");
    }
    ORB orb = ORB.init(new String[0], ours);
    if (arguments[0].equals("call")) {
      call(orb, arguments[1]);
      // Threads of the broker would go on.
      System.exit(0);
    }
    POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    root.the_POAManager().activate();
    org.omg.CORBA.Object object = root.id_to_reference(root.activate_object(new Benchmarking(orb)));
    Files.write(Paths.get(arguments[1] + ".new"), orb.object_to_string(object).getBytes());
    Files.move(Paths.get(arguments[1] + ".new"), Paths.get(arguments[1]), StandardCopyOption.ATOMIC_MOVE);
    orb.run();
  }

  private static void call(ORB orb, String reference) throws Exception {
    org.omg.CORBA.Object object = orb.string_to_object(reference);
    System.out.println("is_a " + object._is_a("IDL:benchmarking:1.0"));
    Request request = object._request("in_out_int_call");
    Any number = request.add_inout_arg();
    number.insert_long(41);
    request.set_return_type(orb.get_primitive_tc(TCKind.tk_void));
    request.invoke();
    if (request.env().exception() != null) {
      throw request.env().exception();
    }
    System.out.println("in_out_int_call " + number.extract_long());
    String large = "x".repeat(300000);
    request = object._request("in_out_string_call");
    Any text = request.add_inout_arg();
    text.insert_string(large);
    request.set_return_type(orb.get_primitive_tc(TCKind.tk_void));
    request.invoke();
    if (request.env().exception() != null) {
      throw request.env().exception();
    }
    System.out.println("in_out_string_call " + text.extract_string().equals(large));
  }

  private static class Benchmarking extends DynamicImplementation {
    private final ORB orb;

    Benchmarking(ORB orb) {
      this.orb = orb;
    }

    public String[] _all_interfaces(POA poa, byte[] id) {
      return new String[] {"IDL:benchmarking:1.0"};
    }

    public void invoke(ServerRequest request) {
      NVList arguments = orb.create_list(0);
      Any value = orb.create_any();
      boolean number = request.operation().equals("in_out_int_call");
      boolean text = request.operation().equals("in_out_string_call");
      if (!number && !text) {
        throw new org.omg.CORBA.BAD_OPERATION();
      }
      value.type(orb.get_primitive_tc(number ? TCKind.tk_long : TCKind.tk_string));
      arguments.add_value("v", value, org.omg.CORBA.ARG_INOUT.value);
      request.arguments(arguments);
      if (number) {
        value.insert_long(value.extract_long() + 1);
      }
    }
  }
}
