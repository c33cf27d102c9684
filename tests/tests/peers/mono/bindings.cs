// The bindings that Mono has, by the names of the command line.
using System;
using System.Net;
using System.Security.Cryptography.X509Certificates;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Text;
using System.Xml;

static class Bindings
{
    // Of servers, the one certificate that is trusted.
    public static void Trust(string file)
    {
        var wanted = new X509Certificate2(file).GetCertHashString();
        ServicePointManager.SecurityProtocol = SecurityProtocolType.Tls12;
        ServicePointManager.ServerCertificateValidationCallback =
            (sender, certificate, chain, errors) => certificate.GetCertHashString() == wanted;
    }

    // A name with a `-` behind it has the quotas that .NET had before 4.5, and few octets for a message.
    public static Binding Make(string name)
    {
        var binding = Bare(name.TrimEnd('-'), name.EndsWith("-"));
        // Only what hangs takes so long.
        binding.SendTimeout = binding.ReceiveTimeout = TimeSpan.FromSeconds(300);
        binding.OpenTimeout = TimeSpan.FromSeconds(300);
        binding.CloseTimeout = TimeSpan.FromSeconds(60);
        return binding;
    }

    static Binding Bare(string name, bool few)
    {
        int size = few ? 1 << 16 : 1 << 26;
        var quotas = new XmlDictionaryReaderQuotas
        {
            MaxArrayLength = size, MaxStringContentLength = size, MaxBytesPerRead = size, MaxNameTableCharCount = size, MaxDepth = 64,
        };
        if (few) quotas = new XmlDictionaryReaderQuotas { MaxArrayLength = 1000, MaxStringContentLength = 2000, MaxDepth = 12 };
        switch (name)
        {
            case "basic":
                return new BasicHttpBinding { MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas };
            case "basics":
                return new BasicHttpBinding(BasicHttpSecurityMode.Transport)
                {
                    MaxReceivedMessageSize = size, MaxBufferSize = size, ReaderQuotas = quotas,
                };
            case "wss":
                var secured = new WSHttpBinding(SecurityMode.Transport) { MaxReceivedMessageSize = size, ReaderQuotas = quotas };
                secured.Security.Transport.ClientCredentialType = HttpClientCredentialType.None;
                return secured;
            case "binhttps":
                var inside = new BinaryMessageEncodingBindingElement();
                quotas.CopyTo(inside.ReaderQuotas);
                return new CustomBinding(inside, new HttpsTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
            case "ws":
                return new WSHttpBinding(SecurityMode.None) { MaxReceivedMessageSize = size, ReaderQuotas = quotas };
            case "binhttp":
                var encoding = new BinaryMessageEncodingBindingElement();
                quotas.CopyTo(encoding.ReaderQuotas);
                return new CustomBinding(encoding, new HttpTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
            case "soap12":
                var alone = new TextMessageEncodingBindingElement(MessageVersion.Soap12, Encoding.UTF8);
                quotas.CopyTo(alone.ReaderQuotas);
                return new CustomBinding(alone, new HttpTransportBindingElement { MaxReceivedMessageSize = size, MaxBufferSize = size });
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
