// One process for many tests: Mono takes longer to start, and to compile its own library, than most of them take.
//
//   peer.exe host FILE KEY PROCESS
//       listens at a port of this machine, writes its number into FILE, and takes orders from whoever knows KEY, one on each connection:
//         serve CONTRACT BINDING             answers `port NUMBER`
//         call CONTRACT BINDING ADDRESS CHECK...   as the program does; `failed` and the exception where that fails
//       ends with the PROCESS, or when nobody has wanted anything for a minute.
//
// Each service is an object of its own, and stays open: Mono's channels wait for each other while they close. Clients come one after
// another, since channels that Mono opens at the same time disturb each other.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.ServiceModel;
using System.Text;
using System.Threading;

static class Host
{
    const int Idle = 60;
    static readonly object Calls = new object();
    static readonly TextWriter raw = Console.Out;
    static readonly List<ServiceHost> services = new List<ServiceHost>();
    static int wanted;
    // What checks print goes to whoever ordered them.
    [ThreadStatic] static TextWriter asked;

    class Router : TextWriter
    {
        public override Encoding Encoding { get { return Encoding.UTF8; } }
        public override void Write(char c) { (asked ?? raw).Write(c); }
        public override void Write(string text) { (asked ?? raw).Write(text); }
        public override void WriteLine(string text) { (asked ?? raw).Write(text + "\n"); }
        public override void Flush() { (asked ?? raw).Flush(); }
    }

    public static void Run(string file, string key, int process)
    {
        Console.SetOut(new Router());
        // Mono has two connections to a host unless told, and as many threads as processors, and adds two a second.
        ServicePointManager.DefaultConnectionLimit = 64;
        ThreadPool.SetMaxThreads(4096, 4096);
        ThreadPool.SetMinThreads(1024, 1024);
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start(64);
        File.WriteAllText(file + ".new", ((IPEndPoint)listener.LocalEndpoint).Port.ToString());
        File.Move(file + ".new", file);
        new Thread(() => Watch(file, process)) { IsBackground = true }.Start();
        while (true)
        {
            var client = listener.AcceptTcpClient();
            Interlocked.Increment(ref wanted);
            new Thread(() =>
            {
                try { using (client) Order(client.GetStream(), key); }
                // Whoever ordered has gone.
                catch (Exception e) { Console.Error.WriteLine(e); }
                finally { Interlocked.Decrement(ref wanted); }
            }) { IsBackground = true }.Start();
        }
    }

    static void Watch(string file, int process)
    {
        int idle = 0;
        for (; idle < 2 * Idle && Directory.Exists("/proc/" + process); Thread.Sleep(500)) idle = wanted > 0 ? 0 : idle + 1;
        File.Delete(file);
        // Nobody is left who would start another one, and look into these for it.
        if (idle < 2 * Idle) foreach (var kind in new[] { "key", "lock", "log" }) File.Delete(Path.ChangeExtension(file, kind));
        Peer.End(0);
    }

    static void Order(Stream stream, string key)
    {
        var reader = new StreamReader(stream, new UTF8Encoding(false));
        var writer = new StreamWriter(stream, new UTF8Encoding(false)) { AutoFlush = true, NewLine = "\n" };
        if (reader.ReadLine() != key) return;
        writer.WriteLine("host " + key);
        var words = (reader.ReadLine() ?? "").Split(' ');
        try
        {
            if (words[0] == "serve")
            {
                writer.WriteLine("port " + Serve(words[1], words[2]));
                // Until nobody wants it any more.
                while (reader.ReadLine() != null) { }
                return;
            }
            lock (Calls)
            {
                asked = writer;
                Peer.Call(words[1], words[2], words[3], words.Skip(4));
            }
        }
        catch (Exception e) { writer.WriteLine("failed\n" + e); }
        finally { asked = null; }
    }

    // A port that nobody has: another one may take it between the question and its use.
    static int Serve(string contract, string binding)
    {
        for (int times = 0; ; times++)
        {
            var probe = new TcpListener(IPAddress.Loopback, 0);
            probe.Start();
            int port = ((IPEndPoint)probe.LocalEndpoint).Port;
            probe.Stop();
            string scheme = binding.StartsWith("tcp") ? "net.tcp" : "http";
            try
            {
                var service = Peer.Open(contract, binding, scheme + "://127.0.0.1:" + port + "/" + contract);
                lock (services) services.Add(service);
                return port;
            }
            catch (Exception) { if (times == 9) throw; }
        }
    }
}
