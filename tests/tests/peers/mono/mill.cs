// A contract of XmlSerializer: attributes, texts beside them, lists without an element around them, choices; its service, and what
// the client does.
using System;
using System.ComponentModel;
using System.ServiceModel;
using System.Xml.Schema;
using System.Xml.Serialization;

namespace Everywire.Mill
{
    // .NET's types are in the contract's namespace unless they say otherwise, Mono's are not.
    static class Space { public const string Mill = "http://everywire.test/mill"; }

    [XmlType(Namespace = Space.Mill)]
    public enum Grain { Rye, Wheat, [XmlEnum("Durum-Wheat")] Durum }

    [Flags, XmlType(Namespace = Space.Mill)]
    public enum Sieve { Fine = 1, Coarse = 2, Bran = 4 }

    [XmlType(Namespace = Space.Mill)]
    public class Label
    {
        [XmlAttribute] public uint Count;
        [XmlText] public string Text;
    }

    [XmlType(Namespace = Space.Mill)]
    public class Price
    {
        [XmlText] public decimal Amount;
        [XmlAttribute] public string Currency;
    }

    [XmlType(Namespace = Space.Mill), XmlInclude(typeof(Firm))]
    public class Party
    {
        [XmlAttribute] public string Key;
        public string Name;
    }

    [XmlType(Namespace = Space.Mill)]
    public class Firm : Party
    {
        [XmlAttribute] public long Register;
        public string Seat;
    }

    [XmlType(Namespace = Space.Mill)]
    public class Sack
    {
        [XmlAttribute(Form = XmlSchemaForm.Qualified)] public DateTime Filled;
        [XmlAttribute, DefaultValue(Grain.Wheat)] public Grain Grain = Grain.Wheat;
        [XmlAttribute] public int Id;
        [XmlAttribute("lang", Namespace = "http://www.w3.org/XML/1998/namespace")] public string Language;
        [XmlAttribute] public string Mark;
        [XmlAttribute] public short Rank;
        [XmlIgnore] public bool RankSpecified;
        [XmlAttribute(DataType = "base64Binary")] public byte[] Seal;
        [XmlAttribute] public Sieve Sieves;
        [XmlAttribute] public int[] Sizes;
        public int Count;
        [XmlIgnore] public bool CountSpecified;
        public Party From;
        [XmlElement("Text", typeof(string)), XmlElement("Price", typeof(Price)), XmlElement("Whole", typeof(int))] public object[] Items;
        [XmlElement("Label")] public Label[] Labels;
        [XmlArrayItem("Line")] public Label[] Lines;
        public string Note;
        [XmlElement("Number")] public int[] Numbers;
        [XmlElement("Card", typeof(string)), XmlElement("Cash", typeof(decimal))] public object Payment;
        [DefaultValue(7)] public int Weeks = 7;
        public decimal Weight;
    }

    // Mono looks for the attribute at operations only.
    [ServiceContract(Namespace = Space.Mill)]
    public interface IMill
    {
        [OperationContract, XmlSerializerFormat] Sack EchoSack(Sack v);
        [OperationContract, XmlSerializerFormat] Label EchoLabel(Label v);
        [OperationContract, XmlSerializerFormat] Price EchoPrice(Price v);
        [OperationContract, XmlSerializerFormat] Party EchoParty(Party v);
        [OperationContract, XmlSerializerFormat] Label[] EchoLabels(Label[] v);
        [OperationContract, XmlSerializerFormat] int Add(int a, int b, string note);
    }

    [ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single)]
    class Mill : IMill
    {
        public Sack EchoSack(Sack v)
        {
            // An absent text or list is an empty one to some.
            if (v.Note == "") v.Note = null;
            if (v.Lines != null && v.Lines.Length == 0) v.Lines = null;
            return v.RankSpecified ? Same.As(v, Wares.Full) : Same.As(v, Wares.Empty);
        }
        public Label EchoLabel(Label v) { return Same.As(v, Wares.Label); }
        public Price EchoPrice(Price v) { return Same.As(v, Wares.Price); }
        public Party EchoParty(Party v) { return Same.As(v, Wares.Firm); }
        public Label[] EchoLabels(Label[] v) { return Same.As(v, Wares.Labels); }
        public int Add(int a, int b, string note) { Same.As(note, "sum"); return a + b; }
    }

    // What is sent, in both directions.
    static class Wares
    {
        public static readonly Label Label = new Label { Count = 4000000000, Text = "<flour> & \"bran\"\n'fine'" };
        public static readonly Label[] Labels = { Label, new Label { Count = 0, Text = "x" } };
        public static readonly Price Price = new Price { Amount = 37.50m, Currency = "€" };
        public static readonly Firm Firm = new Firm { Key = "K \"1\" <&>\t\n", Name = "Mill & Sons", Register = -9000000000, Seat = "Uptown" };
        public static readonly Sack Full = new Sack
        {
            Filled = new DateTime(2020, 1, 2, 3, 4, 5, DateTimeKind.Utc), Grain = Grain.Durum, Id = -17, Language = "de", Mark = "A<1>",
            Rank = -3, RankSpecified = true, Seal = new byte[] { 0, 1, 254, 255 }, Sieves = Sieve.Fine | Sieve.Bran, Sizes = new[] { 1, -2, 70000 },
            Count = 0, CountSpecified = true, From = Firm, Items = new object[] { "first", 5, Price, "last" }, Labels = Labels, Lines = Labels,
            Note = "note", Numbers = new[] { 3, 0, -1 }, Payment = 12.5m, Weeks = 9, Weight = 1.250m,
        };
        public static readonly Sack Empty = new Sack { Filled = new DateTime(1999, 12, 31, 0, 0, 0, DateTimeKind.Utc), Sieves = Sieve.Coarse, Payment = "visa" };
    }

    static class MillChecks
    {
        static void Say(string name, object value) { Console.WriteLine(name + " " + Show.Of(value).Replace("\n", "\\n").Replace("\t", "\\t")); }

        public static void All(IMill mill)
        {
            Say("EchoSack", mill.EchoSack(Wares.Full));
            Say("EchoSack.empty", mill.EchoSack(Wares.Empty));
            Say("EchoLabel", mill.EchoLabel(Wares.Label));
            Say("EchoPrice", mill.EchoPrice(Wares.Price));
            Say("EchoParty", mill.EchoParty(Wares.Firm));
            Say("EchoLabels", mill.EchoLabels(Wares.Labels));
            Say("Add", mill.Add(40, 2, "sum"));
        }
    }
}
