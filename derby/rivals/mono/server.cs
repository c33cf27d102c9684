// Mono's WCF serving the contract of the races.
//
//   server.exe --ref-file FILE --binding basic|ws|tcp|binhttp --listen HOST[:PORT] [--publish HOST:PORT]
//
// Writes its address to the file when it is open: `IRemoteObject`, a tabulator, the address. Without a port it takes a free one.
using System;
using System.Collections.Concurrent;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.ServiceModel;
using System.Threading;

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single, AddressFilterMode = AddressFilterMode.Any)]
class Servant : IRemoteObject
{
    readonly ConcurrentDictionary<int, byte[]> blocks = new ConcurrentDictionary<int, byte[]>();

    public byte[] GetBytes(int numBytes)
    {
        return blocks.GetOrAdd(numBytes, n => { var block = new byte[n]; for (int i = 0; i < n; i++) block[i] = (byte)i; return block; });
    }
    public int PutBytes(byte[] data) { return data.Length; }
    public void VoidCall() { }
    public void InInt(int x) { }
    public void OutInt(out int x) { x = 42; }
    public void InOutInt(ref int x) { x++; }
    public void InString(string s) { }
    public void OutString(out string s) { s = Bench.Text; }
    public void InOutString(ref string s) { }
}

static class Server
{
    static int Main(string[] args)
    {
        try
        {
            string file = null, binding = null, listen = null, publish = null;
            for (int i = 0; i + 1 < args.Length; i += 2)
                switch (args[i])
                {
                    case "--ref-file": file = args[i + 1]; break;
                    case "--binding": binding = args[i + 1]; break;
                    case "--listen": listen = args[i + 1]; break;
                    case "--publish": publish = args[i + 1]; break;
                    default: throw new ArgumentException("unknown option " + args[i]);
                }
            if (file == null || binding == null || listen == null) throw new ArgumentException("see the head of server.cs");
            if (!listen.Contains(":")) listen += ":" + FreePort();
            var address = new Uri(Bench.Scheme(binding) + "://" + listen + "/IRemoteObject");
            var host = new ServiceHost(new Servant(), address);
            host.AddServiceEndpoint(typeof(IRemoteObject), Bench.Binding(binding), "");
            host.Open();
            string told = publish == null ? address.ToString() : Bench.Scheme(binding) + "://" + publish + "/IRemoteObject";
            File.WriteAllText(file + ".new", "IRemoteObject\t" + told + "\n");
            File.Move(file + ".new", file);
            Thread.Sleep(Timeout.Infinite);
            return 0;
        }
        catch (Exception e)
        {
            Console.Error.WriteLine("server: " + e);
            // Threads of the host would keep it alive.
            Environment.Exit(1);
            return 1;
        }
    }

    static int FreePort()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        int port = ((IPEndPoint)listener.LocalEndpoint).Port;
        listener.Stop();
        return port;
    }
}
