// A router on Mono's WCF: takes messages at one address and passes them on to another.
//
//   router.exe --binding basic|ws|tcp --listen HOST:PORT --to HOST:PORT --form pass|copy|change-copy|copy-change|typed --ready FILE
//
// But for `typed`, which knows the contract and calls the backend itself, its contract is any message. A request and its answer are treated
// alike: a copy goes to a thread of its own, which counts it; a change takes one header away and adds another.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Runtime.InteropServices;
using System.Runtime.Serialization;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.ServiceModel.Description;
using System.Threading;

[ServiceContract]
public interface IPassing
{
    [OperationContract(Action = "*", ReplyAction = "*")] Message Process(Message message);
}

[DataContract(Name = "Order", Namespace = "http://schemas.datacontract.org/2004/07/")]
public class Order
{
    [DataMember(Name = "id", Order = 0)] public int Id;
    [DataMember(Name = "customer", Order = 1)] public string Customer;
    [DataMember(Name = "product", Order = 2)] public string Product;
    [DataMember(Name = "quantity", Order = 3)] public int Quantity;
    [DataMember(Name = "price", Order = 4)] public double Price;
}

[ServiceContract(Name = "OrderService")]
public interface IOrders
{
    [OperationContract] Order[] GetOrders(int numOrders);
}

// Channels to the backend: as many as there are calls at once.
class Pool<T>
{
    readonly ChannelFactory<T> factory;
    readonly ConcurrentBag<T> idle = new ConcurrentBag<T>();

    public Pool(Binding binding, Uri to) { factory = new ChannelFactory<T>(binding, new EndpointAddress(to)); }

    public R Call<R>(Func<T, R> call)
    {
        T channel;
        if (!idle.TryTake(out channel)) channel = factory.CreateChannel();
        var result = call(channel);
        // One that failed is not used again.
        idle.Add(channel);
        return result;
    }
}

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single, AddressFilterMode = AddressFilterMode.Any)]
class Typed : IOrders
{
    readonly Pool<IOrders> backend;
    public Typed(Binding binding, Uri to) { backend = new Pool<IOrders>(binding, to); }
    public Order[] GetOrders(int numOrders) { return backend.Call(channel => channel.GetOrders(numOrders)); }
}

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single, AddressFilterMode = AddressFilterMode.Any)]
class Passing : IPassing
{
    const string Name = "Passed", Space = "urn:derby";

    readonly Uri to;
    readonly string form;
    readonly bool http;
    readonly Pool<IPassing> backend;
    readonly BlockingCollection<Message> copies = new BlockingCollection<Message>();
    long counted;

    public Passing(Binding binding, Uri to, string form)
    {
        this.to = to;
        this.form = form;
        http = to.Scheme == "http";
        backend = new Pool<IPassing>(binding, to);
        var counting = new Thread(() => { foreach (var copy in copies.GetConsumingEnumerable()) { counted++; copy.Close(); } });
        counting.IsBackground = true;
        counting.Start();
    }

    public Message Process(Message message)
    {
        var request = Treated(message);
        // Those of the next hop are other ones.
        request.Headers.To = to;
        request.Properties.Remove(HttpRequestMessageProperty.Name);
        request.Properties.Remove("Via");
        var answer = Treated(backend.Call(channel => channel.Process(request)));
        // Mono asks an answer whether it is a fault after its body has been written.
        if (http && form == "pass") answer = answer.CreateBufferedCopy(int.MaxValue).CreateMessage();
        answer.Properties.Remove(HttpResponseMessageProperty.Name);
        return answer;
    }

    Message Treated(Message message)
    {
        switch (form)
        {
            case "pass": return message;
            case "copy": return Copied(message);
            case "change-copy": Change(message); return Copied(message);
            case "copy-change": message = Copied(message); Change(message); return message;
            default: throw new ArgumentException("no form " + form);
        }
    }

    Message Copied(Message message)
    {
        var buffer = message.CreateBufferedCopy(int.MaxValue);
        copies.Add(buffer.CreateMessage());
        return buffer.CreateMessage();
    }

    static void Change(Message message)
    {
        int at = message.Headers.FindHeader(Name, Space);
        if (at >= 0) message.Headers.RemoveAt(at);
        message.Headers.Add(MessageHeader.CreateHeader(Name, Space, "by a router"));
    }
}

static class RouterProgram
{
    static int Main(string[] args)
    {
        try
        {
            var options = new Dictionary<string, string>();
            for (int i = 0; i + 1 < args.Length; i += 2) options[args[i]] = args[i + 1];
            string binding = options["--binding"], form = options["--form"];
            ServicePointManager.Expect100Continue = false;
            ServicePointManager.DefaultConnectionLimit = 1000;
            Func<string, Uri> at = place => new Uri(Bench.Scheme(binding) + "://" + place + "/OrderService");
            Uri own = at(options["--listen"]), to = at(options["--to"]);
            ServiceHost host;
            if (form == "typed")
            {
                host = new ServiceHost(new Typed(Bench.Binding(binding), to), own);
                host.AddServiceEndpoint(typeof(IOrders), Bench.Binding(binding), "");
            }
            else
            {
                host = new ServiceHost(new Passing(Bench.Binding(binding), to, form), own);
                host.AddServiceEndpoint(typeof(IPassing), Bench.Binding(binding), "");
            }
            // Each session holds a thread, and the pool makes new ones but slowly.
            if (!ThreadPool.SetMaxThreads(1000, 1000) || !ThreadPool.SetMinThreads(256, 256)) throw new Exception("too few threads");
            host.Description.Behaviors.Add(new ServiceThrottlingBehavior { MaxConcurrentSessions = 1000, MaxConcurrentCalls = 1000, MaxConcurrentInstances = 1000 });
            host.Open();
            AnswerAtOnce();
            File.WriteAllText(options["--ready"], "");
            Thread.Sleep(Timeout.Infinite);
            return 0;
        }
        catch (Exception e)
        {
            Console.Error.WriteLine("router: " + e);
            // Threads of the host would keep it alive.
            Environment.Exit(1);
            return 1;
        }
    }

    [DllImport("libc")] static extern int setsockopt(int socket, int level, int option, ref int value, int size);

    // Mono writes a large answer in parts, and each waits 40 ms until the client, which waits for the rest, acknowledges the one before. What
    // the listener says (TCP_NODELAY), and it is the only such socket yet, is said for those that it accepts.
    static void AnswerAtOnce()
    {
        int yes = 1;
        for (int socket = 3; socket < 256; socket++) setsockopt(socket, 6, 1, ref yes, sizeof(int));
    }
}
