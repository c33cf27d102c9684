//! Namespaces, actions and addresses.

/// SOAP 1.1.
pub(crate) const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// SOAP 1.2.
pub(crate) const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// WS-Addressing 1.0.
pub(crate) const ADDRESSING: &str = "http://www.w3.org/2005/08/addressing";
/// WS-Addressing of August 2004.
pub(crate) const AUGUST: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
/// Addressing of messages whose transport says where they go and what they ask for (`AddressingVersion.None`).
pub(crate) const NO_ADDRESSING: &str = "http://schemas.microsoft.com/ws/2005/05/addressing/none";
/// The address of whoever sent the request, over the connection it came by.
pub(crate) const ANONYMOUS: &str = "http://www.w3.org/2005/08/addressing/anonymous";
/// The address of nobody: no answer is wanted.
pub(crate) const NOBODY: &str = "http://www.w3.org/2005/08/addressing/none";
/// The codes of WCF's dispatcher.
pub(crate) const DISPATCHER: &str =
    "http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher";
/// The action of faults that the dispatcher raises.
pub(crate) const DISPATCHER_FAULT: &str =
    "http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher/fault";
/// The action of faults about addressing.
pub(crate) const ADDRESSING_FAULT: &str = "http://www.w3.org/2005/08/addressing/fault";
/// The action of faults that a contract does not declare.
pub(crate) const SOAP_FAULT: &str = "http://www.w3.org/2005/08/addressing/soap/fault";
/// The reason of a fault whose thrower gave none, as .NET writes it.
pub(crate) const NO_REASON: &str = "The creator of this fault did not specify a Reason.";
/// WS-Security 1.0.
pub(crate) const SECURITY: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
/// Where `ExceptionDetail` is defined.
pub(crate) const EXCEPTION_DETAIL: &str = "http://schemas.datacontract.org/2004/07/System.ServiceModel";
/// Subcodes for kinds of failures that WCF has no code for.
pub(crate) const FAILURE: &str = "urn:everywire:failure";
