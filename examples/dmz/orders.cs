// The same contract in C#.
using System.Runtime.Serialization;
using System.ServiceModel;

namespace Shop
{
    [DataContract]
    public class Order
    {
        [DataMember(Order = 0)] public int Number;
        [DataMember(Order = 1)] public string Customer;
        [DataMember(Order = 2)] public double Total;
    }

    [ServiceContract(Name = "Orders")]
    public interface IOrders
    {
        [OperationContract] Order[] GetOrders(int numOrders);
    }
}
