// A client, outside: client.exe ADDRESS [wrong]. `wrong`: it sends what the contract does not allow.
using System;
using System.ServiceModel;
using System.ServiceModel.Channels;
using Shop;

[ServiceContract(Name = "Orders")]
interface IWrongOrders
{
    [OperationContract] Order[] GetOrders(string numOrders);
}

static class Client
{
    static int Main(string[] args)
    {
        var binding = new NetTcpBinding(SecurityMode.None);
        var address = new EndpointAddress(args[0]);
        int status = 0;
        try
        {
            Order[] orders;
            if (args.Length > 1) orders = new ChannelFactory<IWrongOrders>(binding, address).CreateChannel().GetOrders("many");
            else
            {
                var proxy = new ChannelFactory<IOrders>(binding, address).CreateChannel();
                using (new OperationContextScope((IContextChannel)proxy))
                {
                    OperationContext.Current.OutgoingMessageHeaders.Add(MessageHeader.CreateHeader("Customer", "urn:example:dmz", "Ada"));
                    orders = proxy.GetOrders(2);
                }
            }
            foreach (var order in orders) Console.WriteLine("order " + order.Number + " of " + order.Customer + ": " + order.Total);
        }
        catch (FaultException fault)
        {
            Console.WriteLine("refused: " + fault.Message);
            status = 1;
        }
        Console.Out.Flush();
        // Mono's channels may wait for each other while they close.
        Environment.Exit(status);
        return status;
    }
}
