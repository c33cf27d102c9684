// What servers of COM under Wine share: objects that count their references, proxies and stubs, a port, and OBJREFs as text.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <winsock2.h>

#include <olectl.h>

extern "C" HRESULT STDAPICALLTYPE DllGetClassObject(REFCLSID, REFIID, void**);

inline void check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  char text[64];
  std::snprintf(text, sizeof text, "%s: 0x%08lx", what, static_cast<unsigned long>(result));
  throw std::runtime_error(text);
}

template <class Interface> class Counted : public Interface {
public:
  virtual ~Counted() = default;
  ULONG STDMETHODCALLTYPE AddRef() override { return ULONG(InterlockedIncrement(&count_)); }
  ULONG STDMETHODCALLTYPE Release() override {
    const LONG left = InterlockedDecrement(&count_);
    if (left == 0) delete this;
    return ULONG(left);
  }

private:
  LONG count_ = 1;
};

inline WCHAR* copy(const WCHAR* text) {
  const SIZE_T size = (wcslen(text) + 1) * sizeof(WCHAR);
  return static_cast<WCHAR*>(memcpy(CoTaskMemAlloc(size), text, size));
}

// The class of the proxies and stubs, in this process only.
inline void know_proxies(std::initializer_list<IID> interfaces) {
  static const CLSID kProxies = {0x6f3a1c10, 0x8d5e, 0x4b7a, {0x9c, 0x21, 0x5b, 0x2d, 0x8e, 0x0f, 0x4a, 0x2f}};
  IUnknown* factory = nullptr;
  check(DllGetClassObject(kProxies, IID_IUnknown, reinterpret_cast<void**>(&factory)), "proxies");
  DWORD cookie = 0;
  check(CoRegisterClassObject(kProxies, factory, CLSCTX_INPROC_SERVER, REGCLS_MULTIPLEUSE, &cookie), "proxies");
  for (const IID& iid : interfaces) check(CoRegisterPSClsid(iid, kProxies), "proxies");
}

// A port that is free; nobody else takes it before long.
inline unsigned free_port() {
  WSADATA data;
  if (WSAStartup(MAKEWORD(2, 2), &data)) throw std::runtime_error("WSAStartup");
  const SOCKET socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int len = sizeof address;
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), len) || getsockname(socket, reinterpret_cast<sockaddr*>(&address), &len))
    throw std::runtime_error("no free port");
  closesocket(socket);
  return ntohs(address.sin_port);
}

// Has COM answer on TCP at this port, or at one that is free. The port.
inline std::string listen_at(const std::string& wanted) {
  const std::string port = wanted.empty() ? std::to_string(free_port()) : wanted;
  std::string protocol = "ncacn_ip_tcp", endpoint = port;
  const RPC_STATUS status = RpcServerUseProtseqEpA(reinterpret_cast<RPC_CSTR>(&protocol[0]), RPC_C_PROTSEQ_MAX_REQS_DEFAULT,
                                                   reinterpret_cast<RPC_CSTR>(&endpoint[0]), nullptr);
  if (status) throw std::runtime_error("RpcServerUseProtseqEp: " + std::to_string(status));
  return port;
}

inline std::string base64(const BYTE* raw, SIZE_T size) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (SIZE_T i = 0; i < size; i += 3) {
    const unsigned bits = raw[i] << 16 | (i + 1 < size ? raw[i + 1] : 0) << 8 | (i + 2 < size ? raw[i + 2] : 0);
    for (int digit = 0; digit < 4; ++digit) text += i + SIZE_T(digit) <= size ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return text;
}

inline std::string marshalled(IUnknown* object, REFIID iid) {
  IStream* stream = nullptr;
  check(CreateStreamOnHGlobal(nullptr, TRUE, &stream), "stream");
  // Written into a table: it may be read any number of times.
  check(CoMarshalInterface(stream, iid, object, MSHCTX_DIFFERENTMACHINE, nullptr, MSHLFLAGS_TABLESTRONG), "CoMarshalInterface");
  HGLOBAL memory = nullptr;
  check(GetHGlobalFromStream(stream, &memory), "memory");
  STATSTG state;
  check(stream->Stat(&state, STATFLAG_NONAME), "Stat");
  const BYTE* raw = static_cast<const BYTE*>(GlobalLock(memory));
  return base64(raw, SIZE_T(state.cbSize.QuadPart));
}
