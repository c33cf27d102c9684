// Mono's WCF as a server and as a client of the contracts.
//
//   peer.exe serve CONTRACT BINDING ADDRESS [CONTRACT BINDING ADDRESS ...]
//       prints `ready` when all are open, and ends when its standard input does
//   peer.exe call CONTRACT BINDING ADDRESS CHECK...
//       prints a line for each answer, `ok` at the end
//   peer.exe wsdl CONTRACT BINDING ADDRESS DIRECTORY
//       writes what it would answer to `?wsdl` and to `?xsd=`: service.wsdl, wsdl0.wsdl, xsd0.xsd, ...
//   peer.exe endings BINDING
//       makes calls as it is told: see endings.cs
//   peer.exe host FILE KEY PROCESS
//       serves and calls as it is told, for many tests: see host.cs
//
// CONTRACT bench | hello | cellar | mill | benchmarking | Kitchen (to call only); BINDING see bindings.cs; CHECK bench[=LARGEST] | seven | kitchen | duplex | types | arrays | classes |
// operations | oneway | faults | quotas | objects | addressed | mill. $EVERYWIRE_TRUST names the file of the certificate that servers must have.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.ServiceModel.Description;
using System.Text;
using System.Threading;
using Everywire.Cellar;
using Everywire.Cross;
using Everywire.Mill;

static class Peer
{
    static int Main(string[] args)
    {
        CultureInfo.DefaultThreadCurrentCulture = Thread.CurrentThread.CurrentCulture = CultureInfo.InvariantCulture;
        Console.OutputEncoding = new UTF8Encoding(false);
        int status = 1;
        var trusted = Environment.GetEnvironmentVariable("EVERYWIRE_TRUST");
        if (trusted != null) Bindings.Trust(trusted);
        try
        {
            if (args.Length >= 4 && args[0] == "serve") Serve(args.Skip(1).ToArray());
            else if (args.Length == 5 && args[0] == "wsdl") Wsdl(args[1], args[2], args[3], args[4]);
            else if (args.Length >= 5 && args[0] == "call") Call(args[1], args[2], args[3], args.Skip(4));
            else if (args.Length == 2 && args[0] == "endings") Endings.Run(args[1]);
            else if (args.Length == 4 && args[0] == "host") Host.Run(args[1], args[2], int.Parse(args[3]));
            else throw new ArgumentException("see the head of peer.cs");
            status = 0;
        }
        catch (Exception e) { Console.Error.WriteLine(e); }
        Console.Out.Flush();
        Console.Error.Flush();
        // Mono's channels may wait for each other while they close, and its TLS while the program ends.
        End(status);
        return status;
    }

    [DllImport("libc", EntryPoint = "_exit")]
    public static extern void End(int status);

    static Type Contract(string name)
    {
        return name == "mill" ? typeof(IMill) : name == "bench" ? typeof(IRemoteObject) : name == "hello" ? typeof(IHello) : typeof(ICellar);
    }

    static void Wsdl(string contract, string binding, string address, string directory)
    {
        var exporter = new WsdlExporter();
        exporter.ExportEndpoint(new ServiceEndpoint(ContractDescription.GetContract(Contract(contract)), Bindings.Make(binding), new EndpointAddress(address)));
        int wsdls = 0, schemas = 0;
        foreach (System.Web.Services.Description.ServiceDescription document in exporter.GeneratedWsdlDocuments)
            document.Write(Path.Combine(directory, document.Services.Count > 0 ? "service.wsdl" : "wsdl" + wsdls++ + ".wsdl"));
        foreach (System.Xml.Schema.XmlSchema schema in exporter.GeneratedXmlSchemas.Schemas())
            using (var file = File.Create(Path.Combine(directory, "xsd" + schemas++ + ".xsd"))) schema.Write(file);
    }

    static void Serve(string[] what)
    {
        // Kept, or their finalizers close them.
        var hosts = new List<ServiceHost>();
        for (int i = 0; i + 2 < what.Length; i += 3) hosts.Add(Open(what[i], what[i + 1], what[i + 2]));
        Console.WriteLine("ready");
        Console.Out.Flush();
        while (Console.In.ReadLine() != null) { }
    }

    public static ServiceHost Open(string contract, string binding, string place)
    {
        object service = contract == "mill" ? new Mill() : contract == "bench" ? new RemoteObject() : contract == "hello" ? (object)new Hello() : new Cellar();
        var address = new Uri(place);
        var host = new ServiceHost(service, address);
        host.AddServiceEndpoint(Contract(contract), Bindings.Make(binding), "");
        if (address.Scheme == "http") host.Description.Behaviors.Add(new ServiceMetadataBehavior { HttpGetEnabled = true });
        // Those who exceed a quota want to know which.
        if (binding.EndsWith("-"))
            host.Description.Behaviors.Find<ServiceDebugBehavior>().IncludeExceptionDetailInFaults = true;
        host.Open();
        return host;
    }

    public static void Call(string contract, string binding, string address, IEnumerable<string> checks)
    {
        var made = Bindings.Make(binding);
        var to = new EndpointAddress(address);
        Listener listener = new Listener();
        object proxy = contract == "mill" ? new ChannelFactory<IMill>(made, to).CreateChannel()
                     : contract == "bench" ? new ChannelFactory<IRemoteObject>(made, to).CreateChannel()
                     : contract == "benchmarking" ? new ChannelFactory<IBenchmarking>(made, to).CreateChannel()
                     : contract == "Kitchen" ? new ChannelFactory<IKitchen>(made, to).CreateChannel()
                     : contract == "hello" ? new DuplexChannelFactory<IHello>(new InstanceContext(listener), made, to).CreateChannel()
                     : (object)new ChannelFactory<ICellar>(made, to).CreateChannel();
        foreach (string word in checks)
        {
            var check = word.Split('=');
            switch (check[0])
            {
                case "mill": MillChecks.All((IMill)proxy); break;
                case "bench": Checks.Bench((IRemoteObject)proxy, check.Length > 1 ? int.Parse(check[1]) : 1000000); break;
                case "seven": CrossChecks.Seven((IBenchmarking)proxy); break;
                case "kitchen": CrossChecks.Kitchen((IKitchen)proxy); break;
                case "duplex": Checks.Duplex((IHello)proxy, listener); break;
                case "types": Checks.Types((ICellar)proxy); break;
                case "arrays": Checks.Arrays((ICellar)proxy); break;
                case "classes": Checks.Classes((ICellar)proxy); break;
                case "operations": Checks.Operations((ICellar)proxy); break;
                case "oneway": Checks.OneWay((ICellar)proxy); break;
                case "faults": Checks.Faults((ICellar)proxy); break;
                case "objects": Checks.Objects((ICellar)proxy); break;
                // As routers do: the message says itself where it goes.
                case "addressed":
                    using (new OperationContextScope((IContextChannel)proxy))
                    {
                        OperationContext.Current.OutgoingMessageHeaders.To = new Uri(address);
                        Console.WriteLine("Take " + ((ICellar)proxy).Take(0));
                    }
                    break;
                case "quotas": Checks.Quotas((ICellar)proxy, () => new ChannelFactory<ICellar>(made, to).CreateChannel()); break;
                default: throw new ArgumentException("no check " + word);
            }
            Console.Out.Flush();
        }
        Console.WriteLine("ok");
    }
}
