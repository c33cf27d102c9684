// The backend, inside the network: backend.exe ADDRESS. It says on each call which headers the edge has put beside it.
using System;
using System.Linq;
using System.ServiceModel;
using System.Threading;
using Shop;

[ServiceBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, InstanceContextMode = InstanceContextMode.Single)]
class Backend : IOrders
{
    public Order[] GetOrders(int numOrders)
    {
        var headers = OperationContext.Current.IncomingMessageHeaders;
        Func<string, string> said = name =>
            headers.FindHeader(name, "urn:example:dmz") < 0 ? "nobody" : headers.GetHeader<string>(name, "urn:example:dmz");
        Console.WriteLine("GetOrders(" + numOrders + "), checked by " + said("Checked") + ", asked by " + said("Customer"));
        return Enumerable.Range(1, numOrders)
            .Select(number => new Order { Number = number, Customer = "customer " + number, Total = number * 9.5 })
            .ToArray();
    }

    static void Main(string[] args)
    {
        var host = new ServiceHost(new Backend(), new Uri(args[0]));
        host.AddServiceEndpoint(typeof(IOrders), new NetTcpBinding(SecurityMode.None), "");
        host.Open();
        Console.WriteLine("ready");
        Thread.Sleep(Timeout.Infinite);
    }
}
