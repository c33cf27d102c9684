// The services. Each checks that what came is what the samples say, and fails with both values if not.
using System;
using System.Collections.Generic;
using System.ServiceModel;
using System.Threading;
using Everywire.Cellar;

static class Same
{
    public static T As<T>(T got, object wanted)
    {
        if (Show.Of(got) != Show.Of(wanted)) throw new FaultException<Broken>(new Broken { Why = "wanted " + Show.Of(wanted) + " but got " + Show.Of(got) }, "wrong value");
        return got;
    }
}

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single)]
class RemoteObject : IRemoteObject
{
    const string text = "Hello, World! 0123456789";

    public byte[] GetBytes(int numBytes) { var data = new byte[numBytes]; for (int i = 0; i < numBytes; i++) data[i] = (byte)i; return data; }
    public int PutBytes(byte[] data) { return data.Length; }
    public void VoidCall() { }
    public void InInt(int x) { Same.As(x, 42); }
    public void OutInt(out int x) { x = 42; }
    public void InOutInt(ref int x) { x++; }
    public void InString(string s) { Same.As(s, text); }
    public void OutString(out string s) { s = text; }
    public void InOutString(ref string s) { if (s == null) s = ""; }
}

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single)]
class Hello : IHello
{
    // By channel: Mono makes a new proxy for the caller each time.
    readonly Dictionary<IContextChannel, IHelloCallback> listeners = new Dictionary<IContextChannel, IHelloCallback>();

    static IHelloCallback Caller { get { return OperationContext.Current.GetCallbackChannel<IHelloCallback>(); } }
    public void Subscribe() { lock (listeners) listeners[OperationContext.Current.Channel] = Caller; }
    public void Unsubscribe() { lock (listeners) listeners.Remove(OperationContext.Current.Channel); }
    public int AskBack(int x) { return Caller.Ask(x) + 1; }
    public void SayHello(string message)
    {
        lock (listeners) foreach (var listener in listeners.Values) listener.OnHello(message);
    }
}

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single)]
class Cellar : ICellar
{
    readonly List<string> notes = new List<string>();

    public bool EchoBoolean(bool v) { return Same.As(v, Samples.Boolean); }
    public byte EchoByte(byte v) { return Same.As(v, Samples.Byte); }
    public sbyte EchoSByte(sbyte v) { return Same.As(v, Samples.SByte); }
    public short EchoInt16(short v) { return Same.As(v, Samples.Int16); }
    public ushort EchoUInt16(ushort v) { return Same.As(v, Samples.UInt16); }
    public int EchoInt32(int v) { return Same.As(v, Samples.Int32); }
    public uint EchoUInt32(uint v) { return Same.As(v, Samples.UInt32); }
    public long EchoInt64(long v) { return Same.As(v, Samples.Int64); }
    public ulong EchoUInt64(ulong v) { return Same.As(v, Samples.UInt64); }
    public float EchoSingle(float v) { return Same.As(v, Samples.Single); }
    public double EchoDouble(double v) { return Same.As(v, Samples.Double); }
    public decimal EchoDecimal(decimal v) { return Same.As(v, Samples.Decimal); }
    public char EchoChar(char v) { return Same.As(v, Samples.Char); }
    public string EchoString(string v) { return Same.As(v, Samples.String); }
    public DateTime EchoDateTime(DateTime v) { return Same.As(v, Samples.DateTime); }
    public TimeSpan EchoTimeSpan(TimeSpan v) { return Same.As(v, Samples.TimeSpan); }
    public Guid EchoGuid(Guid v) { return Same.As(v, Samples.Guid); }
    public Uri EchoUri(Uri v) { return Same.As(v, Samples.Uri); }
    public byte[] EchoBytes(byte[] v) { return Same.As(v, Samples.Bytes); }
    public Grape EchoGrape(Grape v) { return Same.As(v, Samples.Grape); }

    public bool[] EchoBooleans(bool[] v) { return Same.As(v, Samples.Booleans); }
    public int[] EchoInts(int[] v) { return Same.As(v, Samples.Ints); }
    public long[] EchoLongs(long[] v) { return Same.As(v, Samples.Longs); }
    public double[] EchoDoubles(double[] v) { return Same.As(v, Samples.Doubles); }
    // An absent text is an empty one to some.
    public string[] EchoStrings(string[] v) { return v.Length == 4 && v[2] == "" ? v : Same.As(v, Samples.Strings); }
    public DateTime[] EchoDates(DateTime[] v) { return Same.As(v, Samples.Dates); }
    public Guid[] EchoGuids(Guid[] v) { return Same.As(v, Samples.Guids); }
    public Grape[] EchoGrapes(Grape[] v) { return Same.As(v, Samples.Grapes); }
    public List<Label> EchoLabels(List<Label> v) { return Same.As(v, Samples.Labels); }
    public Dictionary<string, int> EchoStock(Dictionary<string, int> v) { return Same.As(v, Samples.Stock); }
    public Dictionary<int, Label> EchoPlaces(Dictionary<int, Label> v) { return Same.As(v, Samples.Places); }

    public Primitives EchoPrimitives(Primitives v) { return Same.As(v, Samples.Primitives); }
    public Maybe EchoMaybe(Maybe v) { return v.Int == null ? Same.As(v, Samples.MaybeNot) : Same.As(v, Samples.Maybe); }
    public int? EchoMaybeInt(int? v) { return v == null ? v : Same.As(v, Samples.Int32); }
    public Parcel EchoAny(Parcel v) { return v; }
    public Knot EchoKnot(Knot v) { return v; }
    public Rack EchoRack(Rack v) { return Same.As(v, Samples.Rack); }
    public OrderedShelf EchoShelf(OrderedShelf v) { return Same.As(v, Samples.Shelf); }
    public Wine EchoWine(Wine v) { return Same.As(v, Samples.Wine); }
    public Wine[] EchoWines(Wine[] v) { return Same.As(v, Samples.Wines); }

    public Receipt Buy(Order order)
    {
        Same.As(order.Customer, "Ann");
        Same.As(order.Priority, 9);
        Same.As(order.Item, Samples.Labels[0]);
        return new Receipt { Till = "till 3", Total = 12.50m * order.Count };
    }

    public int Take(int kind)
    {
        switch (kind)
        {
            case 0: return 17;
            case 1: throw new FaultException<OutOfStock>(new OutOfStock { Left = 2, Name = "Brut" }, "none left");
            case 2: throw new FaultException<Broken>(new Broken { Why = "dropped" }, "broken");
            case 3: throw new FaultException("closed today", new FaultCode("Closed", "urn:codes"));
            default: throw new InvalidOperationException("the roof leaks");
        }
    }

    public void Note(string text) { lock (notes) { notes.Add(text); Monitor.PulseAll(notes); } }
    public string[] Notes()
    {
        lock (notes)
        {
            // Nobody answers a note, so the question may come first; over HTTP Mono serves one call after the other.
            if (notes.Count == 0) Monitor.Wait(notes, 100);
            var all = notes.ToArray();
            notes.Clear();
            return all;
        }
    }
    public void Nothing() { }
    public int Split(int v, ref string text, out int half) { half = v / 2; text = text + text; return v - half; }
    public string Ring(int times) { return string.Concat(System.Linq.Enumerable.Repeat("ding ", times)).Trim(); }
}
