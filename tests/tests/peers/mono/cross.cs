// The C# faces of bench.idl and of a part of interop.idl, as `everywire describe --as wsdl` prints them: for objects of another system.
using System;
using System.Runtime.Serialization;
using System.ServiceModel;

namespace Everywire.Cross
{
    [ServiceContract(Name = "benchmarking")]
    public interface IBenchmarking
    {
        [OperationContract] void void_call();
        [OperationContract] void in_int_call(int v);
        [OperationContract] void out_int_call(out int v);
        [OperationContract] void in_out_int_call(ref int v);
        [OperationContract] void in_string_call(string v);
        [OperationContract] void out_string_call(out string v);
        [OperationContract] void in_out_string_call(ref string v);
    }

    [DataContract(Namespace = Space.Name)]
    public enum Colour { [EnumMember] red, [EnumMember] green, [EnumMember] blue }

    [DataContract(Namespace = Space.Name)]
    public class Point
    {
        [DataMember(Order = 0)] public int x;
        [DataMember(Order = 1)] public int y;
    }

    [DataContract(Namespace = Space.Name)]
    public class Refused
    {
        [DataMember(Order = 0)] public string why;
        [DataMember(Order = 1)] public int code;
        [DataMember(Order = 2)] public Colour mood;
    }

    [DataContract(Namespace = Space.Name)]
    public class Empty { }

    public static class Space { public const string Name = "http://schemas.datacontract.org/2004/07/interop"; }

    [ServiceContract(Name = "Kitchen")]
    public interface IKitchen
    {
        [OperationContract] string[] echo_names(string[] v);
        [OperationContract] Colour next_colour(Colour v);
        [OperationContract] string mix(int a, double b, out double sum, ref Point both);
        [FaultContract(typeof(Refused), Action = "http://tempuri.org/Kitchen/judgeRefusedFault", Name = "RefusedFault")]
        [FaultContract(typeof(Empty), Action = "http://tempuri.org/Kitchen/judgeEmptyFault", Name = "EmptyFault")]
        [OperationContract] int judge(int code);
        [OperationContract(IsOneWay = true)] void note(string what);
        [OperationContract] int noted();
    }

    static class CrossChecks
    {
        static void Say(string name, object value) { Console.WriteLine(name + " " + Show.Of(value)); }

        public static void Seven(IBenchmarking o)
        {
            int x;
            string s;
            o.void_call();
            o.in_int_call(int.MinValue);
            o.out_int_call(out x);
            Say("out_int_call", x);
            foreach (int start in new[] { 0, 41, -1, int.MaxValue - 1 })
            {
                x = start;
                o.in_out_int_call(ref x);
                Say("in_out_int_call." + start, x);
            }
            o.in_string_call("");
            o.out_string_call(out s);
            Say("out_string_call", s);
            s = new string('x', 100000);
            o.in_out_string_call(ref s);
            Say("in_out_string_call", s.Length);
        }

        public static void Kitchen(IKitchen o)
        {
            Say("echo_names", o.echo_names(new[] { "", "a", "more" }));
            Say("next_colour", o.next_colour(Colour.blue));
            double sum;
            var both = new Point { x = 3, y = 4 };
            string text = o.mix(-7, 0.25, out sum, ref both);
            Say("mix", new object[] { text, sum, both.x, both.y });
            Say("judge", o.judge(1));
            try { o.judge(-5); Say("judge.-5", "nothing"); }
            catch (FaultException<Refused> e) { Say("judge.-5", new object[] { e.Detail.why, e.Detail.code, e.Detail.mood.ToString() }); }
            try { o.judge(0); Say("judge.0", "nothing"); }
            catch (FaultException<Empty>) { Say("judge.0", "Empty"); }
            try { o.judge(13); Say("judge.13", "nothing"); }
            catch (FaultException e) { Say("judge.13", e.Code.Name); }
            Say("judge.again", o.judge(2));
            int noted = o.noted();
            for (int i = 0; i < 20; i++) o.note("x");
            Say("noted", o.noted() - noted);
        }
    }
}
