// The contracts that Mono's programs serve and call: that of the races, and one with every feature that Mono has.
using System;
using System.Collections.Generic;
using System.Runtime.Serialization;
using System.ServiceModel;

[ServiceContract]
public interface IRemoteObject
{
    [OperationContract] byte[] GetBytes(int numBytes);
    [OperationContract] int PutBytes(byte[] data);
    [OperationContract] void VoidCall();
    [OperationContract] void InInt(int x);
    [OperationContract] void OutInt(out int x);
    [OperationContract] void InOutInt(ref int x);
    [OperationContract] void InString(string s);
    [OperationContract] void OutString(out string s);
    [OperationContract] void InOutString(ref string s);
}

public interface IHelloCallback
{
    [OperationContract(IsOneWay = true)] void OnHello(string message);
    [OperationContract] int Ask(int x);
}

[ServiceContract(CallbackContract = typeof(IHelloCallback))]
public interface IHello
{
    [OperationContract] void Subscribe();
    [OperationContract] void Unsubscribe();
    [OperationContract] void SayHello(string message);
    [OperationContract] int AskBack(int x);
}

namespace Everywire.Cellar
{
    [DataContract]
    public enum Grape
    {
        [EnumMember] Riesling,
        [EnumMember] Syrah,
        [EnumMember(Value = "Pinot-Noir")] PinotNoir = 10,
    }

    // A member of each primitive type; its name is the type's.
    [DataContract]
    public class Primitives
    {
        [DataMember] public bool Boolean;
        [DataMember] public byte Byte;
        [DataMember] public byte[] Bytes;
        [DataMember] public char Char;
        [DataMember] public DateTime DateTime;
        [DataMember] public decimal Decimal;
        [DataMember] public double Double;
        [DataMember] public Guid Guid;
        [DataMember] public short Int16;
        [DataMember] public int Int32;
        [DataMember] public long Int64;
        [DataMember] public sbyte SByte;
        [DataMember] public float Single;
        [DataMember] public string String;
        [DataMember] public TimeSpan TimeSpan;
        [DataMember] public ushort UInt16;
        [DataMember] public uint UInt32;
        [DataMember] public ulong UInt64;
        [DataMember] public Uri Uri;
    }

    // Values that may be absent.
    [DataContract]
    public class Maybe
    {
        [DataMember] public DateTime? Date;
        [DataMember] public double? Double;
        [DataMember] public Grape? Grape;
        [DataMember] public int? Int;
        [DataMember] public Guid? Nothing;
    }

    [DataContract(Namespace = "urn:labels")]
    public class Label
    {
        [DataMember] public string Text;
        [DataMember] public int Year;
    }

    // Nested classes, lists of them, and itself.
    [DataContract]
    public class Rack
    {
        [DataMember] public Label Front;
        [DataMember] public List<Label> Labels;
        [DataMember] public Rack Next;
        [DataMember] public Dictionary<string, int> Stock;
    }

    // Of a type that no operation names.
    [DataContract]
    public class Crate
    {
        [DataMember] public int Count;
        [DataMember] public Label Front;
        [DataMember] public string[] Names;
    }

    [DataContract, KnownType(typeof(Label)), KnownType(typeof(Champagne)), KnownType(typeof(Crate))]
    public class Parcel
    {
        [DataMember] public object Value;
    }

    // Objects that are written once, however often they are referred to.
    [DataContract(IsReference = true)]
    public class Knot
    {
        [DataMember] public Knot Left;
        [DataMember] public string Name;
        [DataMember] public Knot Right;
    }

    // Order first where it is given, and an element that need not be there.
    [DataContract(Name = "Shelf", Namespace = "urn:labels")]
    public class OrderedShelf
    {
        [DataMember(Order = 2)] public int A;
        [DataMember(Order = 1)] public int B;
        [DataMember(Name = "third", IsRequired = true)] public string C;
        [DataMember(EmitDefaultValue = false)] public int Seldom;
    }

    [DataContract, KnownType(typeof(Sparkling)), KnownType(typeof(Champagne))]
    public class Wine
    {
        [DataMember] public string Name;
    }

    [DataContract]
    public class Sparkling : Wine
    {
        [DataMember] public double Bar;
    }

    [DataContract]
    public class Champagne : Sparkling
    {
        [DataMember] public string House;
    }

    [DataContract]
    public class OutOfStock
    {
        [DataMember] public int Left;
        [DataMember] public string Name;
    }

    [DataContract(Namespace = "urn:labels")]
    public class Broken
    {
        [DataMember] public string Why;
    }

    [MessageContract(WrapperName = "Order", WrapperNamespace = "http://everywire.test/cellar")]
    public class Order
    {
        [MessageHeader(Namespace = "http://everywire.test/cellar")] public string Customer;
        [MessageHeader(Namespace = "urn:headers")] public int Priority;
        [MessageBodyMember(Namespace = "http://everywire.test/cellar", Order = 1)] public Label Item;
        [MessageBodyMember(Namespace = "http://everywire.test/cellar", Order = 2)] public int Count;
    }

    [MessageContract(WrapperName = "Bill", WrapperNamespace = "urn:bills")]
    public class Receipt
    {
        [MessageHeader(Namespace = "urn:headers")] public string Till;
        [MessageBodyMember(Namespace = "urn:bills")] public decimal Total;
    }

    [ServiceContract(Namespace = "http://everywire.test/cellar")]
    public interface ICellar
    {
        [OperationContract] bool EchoBoolean(bool v);
        [OperationContract] byte EchoByte(byte v);
        [OperationContract] sbyte EchoSByte(sbyte v);
        [OperationContract] short EchoInt16(short v);
        [OperationContract] ushort EchoUInt16(ushort v);
        [OperationContract] int EchoInt32(int v);
        [OperationContract] uint EchoUInt32(uint v);
        [OperationContract] long EchoInt64(long v);
        [OperationContract] ulong EchoUInt64(ulong v);
        [OperationContract] float EchoSingle(float v);
        [OperationContract] double EchoDouble(double v);
        [OperationContract] decimal EchoDecimal(decimal v);
        [OperationContract] char EchoChar(char v);
        [OperationContract] string EchoString(string v);
        [OperationContract] DateTime EchoDateTime(DateTime v);
        [OperationContract] TimeSpan EchoTimeSpan(TimeSpan v);
        [OperationContract] Guid EchoGuid(Guid v);
        [OperationContract] Uri EchoUri(Uri v);
        [OperationContract] byte[] EchoBytes(byte[] v);
        [OperationContract] Grape EchoGrape(Grape v);

        [OperationContract] bool[] EchoBooleans(bool[] v);
        [OperationContract] int[] EchoInts(int[] v);
        [OperationContract] long[] EchoLongs(long[] v);
        [OperationContract] double[] EchoDoubles(double[] v);
        [OperationContract] string[] EchoStrings(string[] v);
        [OperationContract] DateTime[] EchoDates(DateTime[] v);
        [OperationContract] Guid[] EchoGuids(Guid[] v);
        [OperationContract] Grape[] EchoGrapes(Grape[] v);
        [OperationContract] List<Label> EchoLabels(List<Label> v);
        [OperationContract] Dictionary<string, int> EchoStock(Dictionary<string, int> v);
        [OperationContract] Dictionary<int, Label> EchoPlaces(Dictionary<int, Label> v);

        [OperationContract] Primitives EchoPrimitives(Primitives v);
        [OperationContract] Maybe EchoMaybe(Maybe v);
        [OperationContract] int? EchoMaybeInt(int? v);
        [OperationContract] Parcel EchoAny(Parcel v);
        [OperationContract] Knot EchoKnot(Knot v);
        [OperationContract] Rack EchoRack(Rack v);
        [OperationContract] OrderedShelf EchoShelf(OrderedShelf v);
        [OperationContract] Wine EchoWine(Wine v);
        [OperationContract] Wine[] EchoWines(Wine[] v);

        [OperationContract] Receipt Buy(Order order);
        // 0: all is well; 1 OutOfStock; 2 Broken; 3 a fault without a contract; 4 any other exception.
        [OperationContract, FaultContract(typeof(OutOfStock)), FaultContract(typeof(Broken))] int Take(int kind);
        [OperationContract(IsOneWay = true)] void Note(string text);
        [OperationContract] string[] Notes();
        [OperationContract] void Nothing();
        [OperationContract] int Split(int v, ref string text, out int half);
        [OperationContract(Action = "urn:cellar:ring", ReplyAction = "urn:cellar:rang")] string Ring(int times);
    }
}
