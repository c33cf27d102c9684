// A client whose connections end: reads `at ADDRESS`, which says where those behind it go, `call NUMBER SLOT` and `large NUMBER SLOT`, makes
// the calls of each slot in a thread of its own, one after another, and prints what it was told: `NUMBER WORD TEXT` (see
// tests/tests/endings/callers.rs). Each slot has a channel, which is made anew when a call failed, or when another address is told.
//
// A channel is left as it is, neither closed nor aborted: Mono would abort calls of other channels with it, and end with an exception of a
// thread of its own.
using System;
using System.Collections.Concurrent;
using System.Net;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Threading;

[ServiceContract(Name = "test.Counter", Namespace = "http://tempuri.org/")]
public interface ICounter
{
    [OperationContract(Name = "count")]
    int Count(int v);

    [OperationContract(Name = "large")]
    int Large(byte[] v);
}

static class Endings
{
    const int Slots = 20;
    static readonly object Gate = new object();
    static readonly ICounter[] Channels = new ICounter[Slots];
    static volatile Binding binding;
    static volatile string place;

    public static void Run(string name)
    {
        // It has two for a host unless told.
        ServicePointManager.DefaultConnectionLimit = 2 * Slots;
        // Nor does it begin with more threads for its own work than there are processors, and adds two a second.
        ThreadPool.SetMinThreads(4 * Slots, 4 * Slots);
        binding = Bindings.Make(name);
        var calls = new BlockingCollection<string[]>[Slots];
        for (int slot = 0; slot < Slots; slot++)
        {
            int mine = slot;
            var queue = calls[slot] = new BlockingCollection<string[]>();
            new Thread(() => { foreach (var call in queue.GetConsumingEnumerable()) Make(mine, call); }) { IsBackground = true }.Start();
        }
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            var words = line.Split(' ');
            if (words[0] != "at") { calls[int.Parse(words[2])].Add(words); continue; }
            if (words[1] == place) continue;
            // All calls are told: nobody uses the channels now.
            Array.Clear(Channels, 0, Slots);
            place = words[1];
        }
    }

    static void Make(int slot, string[] call)
    {
        int number = int.Parse(call[1]);
        try
        {
            if (Channels[slot] == null)
            {
                // Those of one factory, and those that Mono opens at once, disturb each other.
                lock (Gate)
                {
                    var channel = new ChannelFactory<ICounter>(binding, new EndpointAddress(place)).CreateChannel();
                    ((IClientChannel)channel).Open();
                    Channels[slot] = channel;
                }
            }
        }
        // A refusal, of the system or of the server: no message was sent.
        catch (Exception e) { Tell(number, "no", e); return; }
        try
        {
            int sum = call[0] == "call" ? Channels[slot].Count(number) : Channels[slot].Large(new byte[100 << 10]);
            Tell(number, sum == number + 1 ? "answered" : "maybe", null);
        }
        catch (Exception e)
        {
            Channels[slot] = null;
            Tell(number, IsUnsent(e) ? "no" : "maybe", e);
        }
    }

    // Over HTTP a channel opens without a connection.
    static bool IsUnsent(Exception e)
    {
        for (; e != null; e = e.InnerException)
            if (e is WebException && ((WebException)e).Status == WebExceptionStatus.ConnectFailure) return true;
        return false;
    }

    static void Tell(int number, string word, Exception why)
    {
        string text = why == null ? "" : (why.GetType().Name + ": " + why.Message).Replace("\n", " ").Replace("\r", "");
        lock (Channels)
        {
            Console.WriteLine(number + " " + word + " " + text);
            Console.Out.Flush();
        }
    }
}
