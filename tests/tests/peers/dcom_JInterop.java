import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jinterop.dcom.common.JIException;
import org.jinterop.dcom.common.JISystem;
import org.jinterop.dcom.core.IJIComObject;
import org.jinterop.dcom.core.JIArray;
import org.jinterop.dcom.core.JICallBuilder;
import org.jinterop.dcom.core.JIClsid;
import org.jinterop.dcom.core.JIComServer;
import org.jinterop.dcom.core.JIFlags;
import org.jinterop.dcom.core.JILocalCoClass;
import org.jinterop.dcom.core.JILocalInterfaceDefinition;
import org.jinterop.dcom.core.JILocalMethodDescriptor;
import org.jinterop.dcom.core.JILocalParamsDescriptor;
import org.jinterop.dcom.core.JISession;
import org.jinterop.dcom.core.JIString;
import org.jinterop.dcom.core.JIVariant;
import org.jinterop.dcom.impls.JIObjectFactory;
import org.jinterop.dcom.impls.automation.IJIDispatch;

/** A DCOM client made of j-Interop: {@code dcom_JInterop DEED HOST DOMAIN USER PASSWORD NTLM}; it ends with a line {@code ok}. */
public final class dcom_JInterop {
    private static final String CLASS = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A10";
    private static final String NO_CLASS = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4AFF";
    private static final String PANTRY = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A01";
    private static final String SCALES = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A02";
    private static final String EVENTS = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A03";
    private static final String NOTES = "6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A04";
    private static final int NONE = JIFlags.FLAG_NULL;
    private static final int BSTR = JIFlags.FLAG_REPRESENTATION_STRING_BSTR;
    private static final int LPWSTR = JIFlags.FLAG_REPRESENTATION_STRING_LPWSTR;

    /** What the server calls. */
    public static final class Sink {
        final BlockingQueue<String> heard = new ArrayBlockingQueue<>(1000);

        public void Ticked(int number, JIString text) {
            heard.add("Ticked " + number + " " + text.getString());
        }

        public void Noted(JIVariant number, JIVariant text) throws JIException {
            heard.add("Noted " + number.getObjectAsInt() + " " + text.getObjectAsString().getString());
        }

        public void Noted(int number, JIString text) {
            heard.add("Noted " + number + " " + text.getString());
        }
    }

    /** What the server calls with an answer. */
    public static final class Scales {
        final BlockingQueue<String> labelled = new ArrayBlockingQueue<>(10);

        public void Weigh() {}

        public void Reverse() {}

        public Object[] Label(JIString text) {
            labelled.add(text.getString());
            return new Object[] {text.getString().length()};
        }
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("org.jinterop").setLevel(Level.parse(System.getProperty("level", "OFF")));
        JISystem.setAutoRegisteration(false);
        String host = arguments[1];
        JISession session = JISession.createSession(arguments[2], arguments[3], arguments[4]);
        session.setGlobalSocketTimeout(300_000);
        session.useNTLMv2(arguments[5].equals("ntlmv2"));
        switch (arguments[0]) {
            case "calls":
                calls(create(host, session));
                JISession another = JISession.createSession(session);
                another.useNTLMv2(session.isNTLMv2Enabled());
                missing(host, another);
                break;
            case "events":
                events(create(host, session));
                break;
            case "serves":
                serves(create(host, session));
                break;
            case "dies":
                dies(create(host, session));
                break;
            case "wrong":
                refused(() -> create(host, session), 0x00000005);
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
        JISession.destroySession(session);
        System.out.println("ok");
        // Its resolver and its timers would go on.
        System.exit(0);
    }

    private static IJIComObject create(String host, JISession session) throws Exception {
        return new JIComServer(JIClsid.valueOf(CLASS), host, session).createInstance();
    }

    private static void missing(String host, JISession session) throws Exception {
        refused(() -> new JIComServer(JIClsid.valueOf(NO_CLASS), host, session), 0x80040154);
    }

    private static void calls(IJIComObject unknown) throws Exception {
        IJIComObject pantry = unknown.queryInterface(PANTRY);
        equal(pantry.isDispatchSupported(), true);
        // `false`: the interface has the operations of IDispatch before its own.
        JICallBuilder add = new JICallBuilder(false);
        add.setOpnum(0);
        add.addInParamAsInt(-40, NONE);
        add.addInParamAsInt(82, NONE);
        add.addOutParamAsType(Integer.class, NONE);
        equal(pantry.call(add)[0], 42);

        for (String text : new String[] {"x", "Grüße, 世界"}) {
            JICallBuilder echo = new JICallBuilder(false);
            echo.setOpnum(1);
            echo.addInParamAsString(text, BSTR);
            echo.addOutParamAsObject(new JIString(BSTR), NONE);
            equal(((JIString) pantry.call(echo)[0]).getString(), text);
        }

        JICallBuilder refuse = new JICallBuilder(false);
        refuse.setOpnum(3);
        refuse.addInParamAsInt(0x8007000E, NONE);
        refused(() -> pantry.call(refuse), 0x8007000E);

        IJIComObject scales = unknown.queryInterface(SCALES);
        JICallBuilder weigh = new JICallBuilder(true);
        weigh.setOpnum(0);
        weigh.addInParamAsInt(4, NONE);
        weigh.addInParamAsObject(1_000_000L, NONE);
        weigh.addOutParamAsType(Long.class, NONE);
        weigh.addOutParamAsType(Double.class, NONE);
        equal(Arrays.asList(scales.call(weigh)), Arrays.asList(2_000_000L, 250_000.0));
        for (int size : new int[] {1, 4096, 40_000}) {
            Byte[] load = new Byte[size];
            for (int i = 0; i < size; i++) {
                load[i] = (byte) (7 * i + 3);
            }
            JICallBuilder reverse = new JICallBuilder(true);
            reverse.setOpnum(1);
            reverse.addInParamAsInt(size, NONE);
            reverse.addInParamAsArray(new JIArray(load, true), NONE);
            reverse.addOutParamAsObject(new JIArray(Byte.class, null, 1, true), NONE);
            Byte[] got = (Byte[]) ((JIArray) scales.call(reverse)[0]).getArrayInstance();
            for (int i = 0; i < size; i++) {
                equal(got[i], load[size - 1 - i]);
            }
        }
        JICallBuilder label = new JICallBuilder(true);
        label.setOpnum(2);
        label.addInParamAsString("Käse und Brot", LPWSTR);
        label.addOutParamAsType(Integer.class, NONE);
        equal(scales.call(label)[0], 13);
        System.out.println("called by number");

        IJIDispatch dispatch = (IJIDispatch) JIObjectFactory.narrowObject(unknown.queryInterface(IJIDispatch.IID));
        equal(dispatch.getIDsOfNames("Add"), 1);
        equal(dispatch.callMethodA("Add", new Object[] {100, -58})[0].getObjectAsInt(), 42);
        Object[] brot = {new JIString("Brot")};
        equal(dispatch.callMethodA("Echo", brot)[0].getObjectAsString().getString(), "Brot");
        JIVariant half = new JIVariant(2.5);
        equal(dispatch.callMethodA("Same", new Object[] {half})[0].getObjectAsDouble(), 2.5);
        refused(() -> dispatch.getIDsOfNames("NoSuchName"), 0x80020006);
        System.out.println("called by name");
    }

    private static void events(IJIComObject unknown) throws Exception {
        Sink sink = new Sink();
        String ticks = advise(unknown, sink, EVENTS, false, "Ticked", LPWSTR);
        fire(unknown, 3);
        hear(sink, "Ticked", 3);
        String notes = advise(unknown, sink, NOTES, true, "Noted", BSTR);
        JIObjectFactory.detachEventHandler(unknown, ticks);
        fire(unknown, 3);
        hear(sink, "Noted", 3);
        JIObjectFactory.detachEventHandler(unknown, notes);
        fire(unknown, 1);
        if (!sink.heard.isEmpty()) {
            throw new AssertionError("still called: " + sink.heard);
        }
        refused(() -> advise(unknown, sink, SCALES, false, "Ticked", LPWSTR), 0x80040200);
        System.out.println("called back");
    }

    /** An object of ours is called: asked for an interface, called by it, given back. */
    private static void serves(IJIComObject unknown) throws Exception {
        IJIComObject pantry = unknown.queryInterface(PANTRY);
        for (String text : new String[] {"Brot", "Käse und Brot"}) {
            Scales scales = new Scales();
            // One whose references were all given back is gone, though it is marshalled once more.
            JICallBuilder delegate = new JICallBuilder(false);
            delegate.setOpnum(5);
            delegate.addInParamAsComObject(export(unknown, scales), NONE);
            delegate.addInParamAsString(text, BSTR);
            delegate.addOutParamAsType(Integer.class, NONE);
            equal(pantry.call(delegate)[0], text.length());
            equal(scales.labelled.poll(), text);
        }
        System.out.println("was called");
    }

    private static IJIComObject export(IJIComObject unknown, Scales scales) throws Exception {
        JILocalInterfaceDefinition definition = new JILocalInterfaceDefinition(SCALES, false);
        // It numbers methods in the order in which they are added.
        definition.addMethodDescriptor(new JILocalMethodDescriptor("Weigh", new JILocalParamsDescriptor()));
        definition.addMethodDescriptor(new JILocalMethodDescriptor("Reverse", new JILocalParamsDescriptor()));
        JILocalParamsDescriptor parameters = new JILocalParamsDescriptor();
        parameters.addInParamAsObject(new JIString(LPWSTR), NONE);
        definition.addMethodDescriptor(new JILocalMethodDescriptor("Label", parameters));
        JILocalCoClass local = new JILocalCoClass(definition, scales);
        local.setSupportedEventInterfaces(Arrays.asList(SCALES));
        return JIObjectFactory.buildObject(unknown.getAssociatedSession(), local);
    }

    /** Somebody listens, and is gone all of a sudden. */
    private static void dies(IJIComObject unknown) throws Exception {
        Sink sink = new Sink();
        advise(unknown, sink, EVENTS, false, "Ticked", LPWSTR);
        fire(unknown, 1);
        hear(sink, "Ticked", 1);
        System.out.println("listening");
        System.out.flush();
        // Until it is killed.
        Thread.sleep(600_000);
    }

    private static String advise(IJIComObject unknown, Sink sink, String iid, boolean byName, String method, int text)
            throws Exception {
        JILocalInterfaceDefinition definition = new JILocalInterfaceDefinition(iid, byName);
        JILocalParamsDescriptor parameters = new JILocalParamsDescriptor();
        parameters.addInParamAsType(Integer.class, NONE);
        parameters.addInParamAsObject(new JIString(text), NONE);
        definition.addMethodDescriptor(
                byName
                        ? new JILocalMethodDescriptor(method, 1, parameters)
                        : new JILocalMethodDescriptor(method, parameters));
        JILocalCoClass local = new JILocalCoClass(definition, sink);
        local.setSupportedEventInterfaces(Arrays.asList(iid));
        IJIComObject exported = JIObjectFactory.buildObject(unknown.getAssociatedSession(), local);
        return JIObjectFactory.attachEventHandler(unknown, iid, exported);
    }

    private static void fire(IJIComObject unknown, int times) throws Exception {
        JICallBuilder fire = new JICallBuilder(false);
        fire.setOpnum(4);
        fire.addInParamAsInt(times, NONE);
        unknown.queryInterface(PANTRY).call(fire);
    }

    private static void hear(Sink sink, String method, int times) throws Exception {
        for (int number = 0; number < times; number++) {
            equal(sink.heard.poll(300, TimeUnit.SECONDS), method + " " + number + " " + method + " " + number);
        }
    }

    private interface Deed {
        void run() throws Exception;
    }

    private static void refused(Deed deed, int code) throws Exception {
        try {
            deed.run();
        } catch (JIException refusal) {
            equal(Integer.toHexString(refusal.getErrorCode()), Integer.toHexString(code));
            return;
        }
        throw new AssertionError("nothing failed");
    }

    private static void equal(Object got, Object expected) {
        if (!expected.equals(got)) {
            throw new AssertionError(got + " instead of " + expected);
        }
    }
}
