// Both sides of `FiringSource` in `bench.idl` with JacORB, whose objects may all be called over the connection of their process:
//
// bidir_JacORB serve FILE     serves a source, and writes its reference into a file
// bidir_JacORB REFERENCE      has a sink of its own advised, is fired at, and prints what it heard
//
// Invariants: the lines are those of `bidir_omniorb.cc`.

import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.NVList;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.Request;
import org.omg.CORBA.ServerRequest;
import org.omg.CORBA.TCKind;
import org.omg.PortableServer.DynamicImplementation;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public class bidir_JacORB {
  public static void main(String[] arguments) throws Exception {
    Properties ours = new Properties();
    ours.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
    ours.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
    ours.setProperty("OAIAddr", "127.0.0.1");
    ours.setProperty("jacorb.log.default.verbosity", "0");
    ours.setProperty("org.omg.PortableInterceptor.ORBInitializerClass.both", "org.jacorb.orb.giop.BiDirConnectionInitializer");
    ORB orb = ORB.init(new String[0], ours);
    POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    Any both = orb.create_any();
    BidirectionalPolicyValueHelper.insert(both, BOTH.value);
    Policy[] policies = {orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, both)};
    POA poa = root.create_POA("both ways", root.the_POAManager(), policies);
    root.the_POAManager().activate();
    if (arguments[0].equals("serve")) {
      org.omg.CORBA.Object object = poa.id_to_reference(poa.activate_object(new Source(orb)));
      Files.write(Paths.get(arguments[1] + ".new"), orb.object_to_string(object).getBytes());
      Files.move(Paths.get(arguments[1] + ".new"), Paths.get(arguments[1]), StandardCopyOption.ATOMIC_MOVE);
      System.out.println("ready");
      orb.run();
      return;
    }
    Sink own = new Sink();
    org.omg.CORBA.Object sink = poa.id_to_reference(poa.activate_object(own));
    org.omg.CORBA.Object source = orb.string_to_object(arguments[0]);
    Request advise = source._request("Advise");
    advise.add_in_arg().insert_Object(sink);
    int cookie = invoke(orb, advise, TCKind.tk_ulong).return_value().extract_ulong();
    Request fire = source._request("Fire");
    fire.add_in_arg().insert_ulong(20);
    invoke(orb, fire, TCKind.tk_void);
    Request unadvise = source._request("Unadvise");
    unadvise.add_in_arg().insert_ulong(cookie);
    invoke(orb, unadvise, TCKind.tk_void);
    System.out.println("heard " + own.hellos + " and " + own.syncs);
    // Threads of the broker would go on.
    System.exit(0);
  }

  private static Request invoke(ORB orb, Request request, TCKind result) throws Exception {
    request.set_return_type(orb.get_primitive_tc(result));
    request.invoke();
    if (request.env().exception() != null) {
      throw request.env().exception();
    }
    return request;
  }

  private static class Sink extends DynamicImplementation {
    final AtomicInteger hellos = new AtomicInteger();
    final AtomicInteger syncs = new AtomicInteger();

    @Override
    public void invoke(ServerRequest request) {
      request.arguments(_orb().create_list(0));
      (request.operation().equals("Hello") ? hellos : syncs).incrementAndGet();
      Any nothing = _orb().create_any();
      nothing.type(_orb().get_primitive_tc(TCKind.tk_void));
      request.set_result(nothing);
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] key) {
      return new String[] {"IDL:Sink:1.0"};
    }
  }

  private static class Source extends DynamicImplementation {
    private final ORB orb;
    private final Map<Integer, org.omg.CORBA.Object> sinks = new ConcurrentHashMap<>();
    private final AtomicInteger last = new AtomicInteger();

    Source(ORB orb) {
      this.orb = orb;
    }

    @Override
    public void invoke(ServerRequest request) {
      boolean advises = request.operation().equals("Advise");
      Any given = orb.create_any();
      given.type(advises ? orb.create_interface_tc("IDL:Sink:1.0", "Sink") : orb.get_primitive_tc(TCKind.tk_ulong));
      NVList list = orb.create_list(0);
      list.add_value("", given, org.omg.CORBA.ARG_IN.value);
      request.arguments(list);
      Any result = orb.create_any();
      result.type(orb.get_primitive_tc(TCKind.tk_void));
      if (advises) {
        int cookie = last.incrementAndGet();
        sinks.put(cookie, given.extract_Object());
        result.insert_ulong(cookie);
      } else if (request.operation().equals("Unadvise")) {
        sinks.remove(given.extract_ulong());
      } else {
        fire(given.extract_ulong());
      }
      request.set_result(result);
    }

    private void fire(int hellos) {
      try {
        for (org.omg.CORBA.Object sink : sinks.values()) {
          for (int i = 0; i < hellos; i++) {
            sink._request("Hello").send_oneway();
          }
          bidir_JacORB.invoke(orb, sink._request("HelloSync"), TCKind.tk_void);
        }
      } catch (Exception raised) {
        throw new org.omg.CORBA.UNKNOWN(raised.toString());
      }
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] key) {
      return new String[] {"IDL:FiringSource:1.0", "IDL:Source:1.0"};
    }
  }
}
