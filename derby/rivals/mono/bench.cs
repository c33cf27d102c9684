// The contract of the races, and the bindings that Mono has for it.
using System;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Xml;

[ServiceContract]
public interface IRemoteObject
{
    [OperationContract] byte[] GetBytes(int numBytes);
    [OperationContract] int PutBytes(byte[] data);
    [OperationContract] void VoidCall();
    [OperationContract] void InInt(int x);
    [OperationContract] void OutInt(out int x);
    [OperationContract] void InOutInt(ref int x);
    [OperationContract] void InString(string s);
    [OperationContract] void OutString(out string s);
    [OperationContract] void InOutString(ref string s);
}

static class Bench
{
    public const string Text = "Hello, World! 0123456789";

    public static string Scheme(string binding) { return binding == "tcp" ? "net.tcp" : "http"; }

    // Without security, and with room for the large transfers; all else as it is by default.
    public static Binding Binding(string name)
    {
        const int size = 1 << 26;
        var quotas = new XmlDictionaryReaderQuotas { MaxArrayLength = size, MaxStringContentLength = size, MaxBytesPerRead = size };
        switch (name)
        {
            case "basic":
                return new BasicHttpBinding { MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas };
            case "ws":
                return new WSHttpBinding(SecurityMode.None) { MaxReceivedMessageSize = size, ReaderQuotas = quotas };
            case "tcp":
                return new NetTcpBinding(SecurityMode.None) { MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas };
            case "binhttp":
                var encoding = new BinaryMessageEncodingBindingElement();
                quotas.CopyTo(encoding.ReaderQuotas);
                return new CustomBinding(encoding, new HttpTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
            default:
                throw new ArgumentException("no binding " + name);
        }
    }
}
