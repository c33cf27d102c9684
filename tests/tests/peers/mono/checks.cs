// What the client does. Each check prints its name and what came back, as text.
using System;
using System.Collections.Generic;
using System.ServiceModel;
using System.Threading;
using Everywire.Cellar;

class Listener : IHelloCallback
{
    readonly Queue<string> heard = new Queue<string>();
    public void OnHello(string message) { lock (heard) { heard.Enqueue(message); Monitor.PulseAll(heard); } }
    public int Ask(int x) { return x * 2; }
    public string Next()
    {
        lock (heard)
        {
            while (heard.Count == 0) if (!Monitor.Wait(heard, 10000)) return null;
            return heard.Dequeue();
        }
    }
    public int Waiting { get { lock (heard) return heard.Count; } }
}

static class Checks
{
    static void Say(string name, object value) { Console.WriteLine(name + " " + Show.Of(value)); }

    public static void Bench(IRemoteObject o, int largest)
    {
        int x;
        string s;
        foreach (int size in new[] { 0, 1, 100, 1000, 65536, largest })
        {
            var data = o.GetBytes(size);
            bool right = data.Length == size;
            for (int i = 0; right && i < size; i++) right = data[i] == (byte)i;
            Say("GetBytes." + size, right);
            Say("PutBytes." + size, o.PutBytes(data));
        }
        o.VoidCall();
        Say("VoidCall", true);
        o.InInt(42);
        Say("InInt", true);
        o.OutInt(out x);
        Say("OutInt", x);
        o.InOutInt(ref x);
        Say("InOutInt", x);
        o.InString("Hello, World! 0123456789");
        Say("InString", true);
        o.OutString(out s);
        Say("OutString", s);
        o.InOutString(ref s);
        Say("InOutString", s);
    }

    public static void Duplex(IHello hello, Listener listener)
    {
        hello.Subscribe();
        hello.SayHello("first");
        Say("OnHello", listener.Next());
        for (int i = 0; i < 20; i++) hello.SayHello("n" + i);
        for (int i = 0; i < 20; i++) if (listener.Next() != "n" + i) throw new Exception("hellos out of order");
        Say("OnHello.20", true);
        Say("AskBack", hello.AskBack(20));
        hello.Unsubscribe();
        hello.SayHello("unheard");
        Say("AskBack.again", hello.AskBack(-1));
        Say("Waiting", listener.Waiting);
    }

    public static void Types(ICellar c)
    {
        Say("EchoBoolean", c.EchoBoolean(Samples.Boolean));
        Say("EchoByte", c.EchoByte(Samples.Byte));
        Say("EchoSByte", c.EchoSByte(Samples.SByte));
        Say("EchoInt16", c.EchoInt16(Samples.Int16));
        Say("EchoUInt16", c.EchoUInt16(Samples.UInt16));
        Say("EchoInt32", c.EchoInt32(Samples.Int32));
        Say("EchoUInt32", c.EchoUInt32(Samples.UInt32));
        Say("EchoInt64", c.EchoInt64(Samples.Int64));
        Say("EchoUInt64", c.EchoUInt64(Samples.UInt64));
        Say("EchoSingle", c.EchoSingle(Samples.Single));
        Say("EchoDouble", c.EchoDouble(Samples.Double));
        Say("EchoDecimal", c.EchoDecimal(Samples.Decimal));
        Say("EchoChar", c.EchoChar(Samples.Char));
        Say("EchoString", c.EchoString(Samples.String) == Samples.String);
        Say("EchoDateTime", c.EchoDateTime(Samples.DateTime));
        Say("EchoTimeSpan", c.EchoTimeSpan(Samples.TimeSpan));
        Say("EchoGuid", c.EchoGuid(Samples.Guid));
        Say("EchoUri", c.EchoUri(Samples.Uri));
        Say("EchoBytes", c.EchoBytes(Samples.Bytes));
        Say("EchoGrape", c.EchoGrape(Samples.Grape));
    }

    public static void Arrays(ICellar c)
    {
        Say("EchoBooleans", c.EchoBooleans(Samples.Booleans));
        Say("EchoInts", c.EchoInts(Samples.Ints));
        Say("EchoLongs", c.EchoLongs(Samples.Longs));
        Say("EchoDoubles", c.EchoDoubles(Samples.Doubles));
        Say("EchoStrings", c.EchoStrings(Samples.Strings));
        Say("EchoDates", c.EchoDates(Samples.Dates));
        Say("EchoGuids", c.EchoGuids(Samples.Guids));
        Say("EchoGrapes", c.EchoGrapes(Samples.Grapes));
        Say("EchoLabels", c.EchoLabels(Samples.Labels));
        Say("EchoStock", c.EchoStock(Samples.Stock));
        Say("EchoPlaces", c.EchoPlaces(Samples.Places));
    }

    public static void Classes(ICellar c)
    {
        var primitives = c.EchoPrimitives(Samples.Primitives);
        Say("EchoPrimitives", Show.Of(primitives) == Show.Of(Samples.Primitives));
        Say("EchoMaybe", c.EchoMaybe(Samples.Maybe));
        Say("EchoMaybe.not", c.EchoMaybe(Samples.MaybeNot));
        Say("EchoMaybeInt", c.EchoMaybeInt(Samples.Int32));
        Say("EchoMaybeInt.not", c.EchoMaybeInt(null));
        Say("EchoRack", c.EchoRack(Samples.Rack));
        Say("EchoShelf", c.EchoShelf(Samples.Shelf));
        Say("EchoWine", c.EchoWine(Samples.Wine));
        Say("EchoWines", c.EchoWines(Samples.Wines));
    }

    public static void Objects(ICellar c)
    {
        foreach (var v in new object[] { 17, "text", Samples.Labels[0], Samples.Wine, new Crate { Count = 3, Front = Samples.Labels[0], Names = new[] { "a", "b" } }, null })
            Say("EchoAny", c.EchoAny(new Parcel { Value = v }).Value);
        var leaf = new Knot { Name = "leaf" };
        var twice = new Knot { Left = leaf, Name = "twice", Right = leaf };
        Say("EchoKnot", c.EchoKnot(new Knot { Left = twice, Name = "root", Right = twice }));
        var ring = new Knot { Name = "ring" };
        ring.Left = ring;
        Refused("EchoKnot.ring", () => c.EchoKnot(ring));
        // 2^25 leaves, if somebody wrote them all.
        for (int i = 0; i < 25; i++) leaf = new Knot { Left = leaf, Name = "k", Right = leaf };
        Refused("EchoKnot.many", () => c.EchoKnot(leaf));
        Say("Take", c.Take(0));
    }

    public static void Operations(ICellar c)
    {
        var receipt = c.Buy(new Order { Customer = "Ann", Priority = 9, Item = Samples.Labels[0], Count = 3 });
        Say("Buy", receipt);
        c.Nothing();
        Say("Nothing", true);
        int half;
        string text = "ab";
        int rest = c.Split(7, ref text, out half);
        Say("Split", new object[] { rest, half, text });
        Say("Ring", c.Ring(2));
    }

    // Mono's streamed client waits for an answer to it, and there is none.
    public static void OneWay(ICellar c)
    {
        c.Note("one-way");
        Say("Notes", c.Notes());
    }

    public static void Faults(ICellar c)
    {
        Say("Take", c.Take(0));
        for (int kind = 1; kind < 5; kind++) Say("Take." + kind, Fault(c, kind));
        Say("Take.after", c.Take(0));
    }

    // Against MaxReceivedMessageSize=100000, MaxArrayLength=1000, MaxStringContentLength=2000, MaxDepth=12.
    public static void Quotas(ICellar c, Func<ICellar> again)
    {
        var rack = Samples.Rack;
        for (int i = 0; i < 10; i++) rack = new Rack { Next = rack };
        Refused("MaxArrayLength", () => c.EchoBytes(new byte[1200]));
        Say("Take", c.Take(0));
        Refused("MaxStringContentLength", () => c.EchoString(new string('x', 2001)));
        Say("Take", c.Take(0));
        Refused("MaxDepth", () => c.EchoRack(rack));
        Say("Take", c.Take(0));
        Refused("MaxReceivedMessageSize", () => c.EchoBytes(new byte[200000]));
        Say("Take", again().Take(0));
    }

    static void Refused(string name, Action deed)
    {
        try { deed(); Say(name, "nothing"); }
        catch (Exception e) { Say(name, e.GetType().Name + ": " + e.Message.Replace('\n', ' ') + (e.InnerException == null ? "" : " <- " + e.InnerException.Message)); }
    }

    static object[] Fault(ICellar c, int kind)
    {
        try { return new object[] { c.Take(kind) }; }
        catch (FaultException<OutOfStock> e) { return new object[] { "OutOfStock", e.Detail, e.Message }; }
        catch (FaultException<Broken> e) { return new object[] { "Broken", e.Detail, e.Message }; }
        catch (FaultException e)
        {
            var code = e.Code.SubCode ?? e.Code;
            return new object[] { code.Name, code.Namespace, e.Message };
        }
        catch (CommunicationException e) { return new object[] { e.GetType().Name }; }
    }
}
