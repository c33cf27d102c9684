// Mono's WCF calling the contract of the races.
//
//   client.exe REF-FILE BINDING race calls|bytes [--calls N] [--warmup N] [--budget-ms N] [--large-divisor N] [--server-pid PID] [--operation NAME] [--pause-ms N]
//
// The file is the server's, or has an address in its first line.
using System;
using System.IO;
using System.Linq;
using System.Net;
using System.ServiceModel;

static class Client
{
    static int Main(string[] args)
    {
        int status = 1;
        try
        {
            if (args.Length < 4 || args[2] != "race") throw new ArgumentException("see the head of client.cs");
            // Asked whether it may go on, Mono's server answers 40 ms late. Without the question its figures are its best.
            ServicePointManager.Expect100Continue = false;
            var plan = new Plan();
            for (int i = 4; i < args.Length; i += 2)
                if (i + 1 >= args.Length || !plan.Take(args[i], args[i + 1])) throw new ArgumentException("unknown option " + args[i]);
            string address = File.ReadLines(args[0]).First().Split('\t').Last().Trim();
            var o = new ChannelFactory<IRemoteObject>(Bench.Binding(args[1]), new EndpointAddress(address)).CreateChannel();
            if (args[3] == "calls") Calls(o, plan);
            else if (args[3] == "bytes") Bytes(o, plan);
            else throw new ArgumentException("unknown race " + args[3]);
            status = 0;
        }
        catch (Exception e) { Console.Error.WriteLine("client: " + e); }
        Console.Out.Flush();
        // Mono's channels may wait for each other while they close.
        Environment.Exit(status);
        return status;
    }

    static void Require(bool held, string what) { if (!held) throw new Exception("wrong answer: " + what); }

    static void Calls(IRemoteObject o, Plan plan)
    {
        Measure.Run(plan, "void_call", plan.Calls, () => o.VoidCall());
        Measure.Run(plan, "in_int_call", plan.Calls, () => o.InInt(42));
        Measure.Run(plan, "out_int_call", plan.Calls, () => { int x; o.OutInt(out x); Require(x == 42, "out_int_call"); });
        Measure.Run(plan, "in_out_int_call", plan.Calls, () => { int x = 42; o.InOutInt(ref x); Require(x == 43, "in_out_int_call"); });
        Measure.Run(plan, "in_string_call", plan.Calls, () => o.InString(Bench.Text));
        Measure.Run(plan, "out_string_call", plan.Calls, () => { string s; o.OutString(out s); Require(s == Bench.Text, "out_string_call"); });
        Measure.Run(plan, "in_out_string_call", plan.Calls, () => { string s = Bench.Text; o.InOutString(ref s); Require(s == Bench.Text, "in_out_string_call"); });
    }

    static void Bytes(IRemoteObject o, Plan plan)
    {
        Measure.Run(plan, "GetBytes 100 B", plan.Calls, () => Require(o.GetBytes(100).Length == 100, "GetBytes"));
        Measure.Run(plan, "GetBytes 1 MB", Math.Max(1, plan.Calls / plan.LargeDivisor), () => Require(o.GetBytes(1000000).Length == 1000000, "GetBytes"));
    }
}
