// The bindings that Mono has, by the names of the command line.
using System;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Text;
using System.Xml;

static class Bindings
{
    public static string Scheme(string name) { return name.StartsWith("tcp") ? "net.tcp" : "http"; }

    public static Binding Make(string name)
    {
        var binding = Bare(name);
        binding.SendTimeout = binding.ReceiveTimeout = TimeSpan.FromSeconds(60);
        binding.OpenTimeout = binding.CloseTimeout = TimeSpan.FromSeconds(20);
        return binding;
    }

    static Binding Bare(string name)
    {
        const int size = 1 << 26;
        var quotas = new XmlDictionaryReaderQuotas
        {
            MaxArrayLength = size, MaxStringContentLength = size, MaxBytesPerRead = size, MaxNameTableCharCount = size, MaxDepth = 64,
        };
        switch (name)
        {
            case "basic":
                return new BasicHttpBinding { MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas };
            case "ws":
                return new WSHttpBinding(SecurityMode.None) { MaxReceivedMessageSize = size, ReaderQuotas = quotas };
            case "binhttp":
                var encoding = new BinaryMessageEncodingBindingElement();
                quotas.CopyTo(encoding.ReaderQuotas);
                return new CustomBinding(encoding, new HttpTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
            case "tcp":
                return new NetTcpBinding(SecurityMode.None) { MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas };
            case "tcpstreamed":
                return new NetTcpBinding(SecurityMode.None)
                {
                    MaxReceivedMessageSize = size, ReaderQuotas = quotas, TransferMode = TransferMode.Streamed,
                };
            case "tcptext":
                return new CustomBinding(new TextMessageEncodingBindingElement(MessageVersion.Soap12WSAddressing10, Encoding.UTF8),
                                         new TcpTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
            default:
                throw new ArgumentException("no binding " + name);
        }
    }
}
