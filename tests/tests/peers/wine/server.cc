// A COM server for Wine that is called over TCP:   server [PORT]
// Prints `port PORT`, then `objref BASE64` of an object with ICupboard, then serves until its standard input ends.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <winsock2.h>

#include <olectl.h>

#include "cupboard.midl.h"
#include "pantry.midl.h"

extern "C" HRESULT STDAPICALLTYPE DllGetClassObject(REFCLSID, REFIID, void**);

namespace {

void check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  char text[64];
  std::snprintf(text, sizeof text, "%s: 0x%08lx", what, static_cast<unsigned long>(result));
  throw std::runtime_error(text);
}

LONG g_scales = 0;
// What Wait waits for, and Fire fires.
HANDLE g_fired = CreateEventA(nullptr, FALSE, FALSE, nullptr);

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

// With a free-threaded marshaler if it is asked for: then its references go out in another form.
class Scales : public Counted<IScales> {
public:
  explicit Scales(bool free) {
    InterlockedIncrement(&g_scales);
    if (free) check(CoCreateFreeThreadedMarshaler(this, &marshaler_), "marshaler");
  }
  ~Scales() override {
    if (marshaler_) marshaler_->Release();
    InterlockedDecrement(&g_scales);
  }
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    if (iid == IID_IMarshal && marshaler_) return marshaler_->QueryInterface(iid, out);
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IScales) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IScales*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE Weigh(LONG pieces, hyper* grams, double* each) override {
    *each = double(*grams) / pieces;
    *grams *= 2;
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Reverse(ULONG count, BYTE* load, BYTE* reversed) override {
    for (ULONG i = 0; i < count; ++i) reversed[i] = load[count - 1 - i];
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Label(const WCHAR* text, ULONG* length) override { return *length = ULONG(wcslen(text)), S_OK; }

private:
  IUnknown* marshaler_ = nullptr;
};

// By number as IPantry; by name as its type library says, for ILabels as well.
class Shelf : public Counted<IPantry> {
public:
  explicit Shelf(ITypeInfo* info) : info_(info) { info_->AddRef(); }
  ~Shelf() override { info_->Release(); }

private:
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IDispatch && iid != IID_IPantry && iid != DIID_ILabels) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IPantry*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetTypeInfoCount(UINT* count) override { return *count = 1, S_OK; }
  HRESULT STDMETHODCALLTYPE GetTypeInfo(UINT, LCID, ITypeInfo** info) override {
    info_->AddRef();
    return *info = info_, S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetIDsOfNames(REFIID, LPOLESTR* names, UINT count, LCID, DISPID* ids) override {
    return info_->GetIDsOfNames(names, count, ids);
  }
  HRESULT STDMETHODCALLTYPE Invoke(DISPID id, REFIID, LCID, WORD flags, DISPPARAMS* given, VARIANT* result, EXCEPINFO* info,
                                   UINT* wrong) override {
    return info_->Invoke(static_cast<IPantry*>(this), id, flags, given, result, info, wrong);
  }
  HRESULT STDMETHODCALLTYPE Add(LONG a, LONG b, LONG* sum) override { return *sum = a + b, S_OK; }
  HRESULT STDMETHODCALLTYPE Echo(BSTR text, BSTR* echo) override { return *echo = SysAllocString(text), S_OK; }
  HRESULT STDMETHODCALLTYPE Same(VARIANT value, VARIANT* same) override {
    VariantInit(same);
    return VariantCopy(same, &value);
  }
  HRESULT STDMETHODCALLTYPE Refuse(LONG code) override { return HRESULT(code); }
  HRESULT STDMETHODCALLTYPE Fire(LONG) override { return SetEvent(g_fired) ? S_OK : E_FAIL; }
  HRESULT STDMETHODCALLTYPE Delegate(IScales* scales, BSTR text, LONG* length) override {
    if (!scales) return E_POINTER;
    ULONG told = 0;
    const HRESULT result = scales->Label(text, &told);
    *length = LONG(told);
    return result;
  }
  ITypeInfo* info_;
};

WCHAR* copy(const WCHAR* text) {
  const SIZE_T size = (wcslen(text) + 1) * sizeof(WCHAR);
  return static_cast<WCHAR*>(memcpy(CoTaskMemAlloc(size), text, size));
}

class Cupboard : public Counted<ICupboard> {
public:
  explicit Cupboard(ITypeInfo* pantry) : pantry_(pantry) {}

private:
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_ICupboard) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<ICupboard*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE Turn(const Jar* jar, const Size* size, Jar* turned, Size* doubled) override {
    *turned = *jar;
    turned->label = copy(jar->label);
    turned->note = SysAllocString(jar->note);
    std::swap(turned->seal[0], turned->seal[2]);
    turned->grams = -jar->grams;
    turned->since = jar->since + 1;
    doubled->width = SHORT(size->width * 2);
    doubled->height = size->height * 2;
    doubled->volume = size->volume * 2;
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Fill(ULONG count, Jar* jars) override {
    for (ULONG i = 0; i < count; ++i) {
      const std::wstring label = L"jar " + std::to_wstring(i);
      jars[i] = {i % 2 ? WET : FROZEN, LONG(i), SHORT(i), LONGLONG(i) << 33, i / 2.0, copy(label.c_str()),
                 SysAllocString(label.c_str() + 4), {1, 2, BYTE(i)}, LONG(i) * 7};
    }
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Sort(SAFEARRAY* names, SAFEARRAY** sorted, SAFEARRAY** lengths) override {
    LONG last = -1;
    HRESULT result = SafeArrayGetUBound(names, 1, &last);
    if (FAILED(result)) return result;
    std::vector<std::wstring> held;
    for (LONG i = 0; i <= last; ++i) {
      BSTR name = nullptr;
      if (FAILED(result = SafeArrayGetElement(names, &i, &name))) return result;
      held.emplace_back(name ? name : L"");
      SysFreeString(name);
    }
    *sorted = SafeArrayCreateVector(VT_BSTR, 0, ULONG(last + 1));
    *lengths = SafeArrayCreateVector(VT_I4, 0, ULONG(last + 1));
    std::vector<std::wstring> order = held;
    std::sort(order.begin(), order.end());
    for (LONG i = 0; i <= last; ++i) {
      BSTR name = SysAllocString(order[SIZE_T(i)].c_str());
      LONG length = LONG(held[SIZE_T(i)].size());
      SafeArrayPutElement(*sorted, &i, name);
      SafeArrayPutElement(*lengths, &i, &length);
      SysFreeString(name);
    }
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Open(boolean free, IScales** scales) override { return *scales = new Scales(free), S_OK; }
  HRESULT STDMETHODCALLTYPE Lend(IScales* scales, LPCWSTR text, IScales** back, ULONG* length) override {
    *back = scales;
    *length = 0;
    if (!scales) return S_OK;
    scales->AddRef();
    return scales->Label(text, length);
  }
  HRESULT STDMETHODCALLTYPE Living(LONG* scales) override { return *scales = g_scales, S_OK; }
  HRESULT STDMETHODCALLTYPE Pantry(IUnknown** pantry) override { return *pantry = new Shelf(pantry_), S_OK; }
  HRESULT STDMETHODCALLTYPE Wait() override { return WaitForSingleObject(g_fired, INFINITE) == WAIT_OBJECT_0 ? S_OK : E_FAIL; }

  ITypeInfo* pantry_;
};

// The class of the proxies and stubs, in this process only.
void know_proxies() {
  static const CLSID kProxies = {0x6f3a1c10, 0x8d5e, 0x4b7a, {0x9c, 0x21, 0x5b, 0x2d, 0x8e, 0x0f, 0x4a, 0x2f}};
  IUnknown* factory = nullptr;
  check(DllGetClassObject(kProxies, IID_IUnknown, reinterpret_cast<void**>(&factory)), "proxies");
  DWORD cookie = 0;
  check(CoRegisterClassObject(kProxies, factory, CLSCTX_INPROC_SERVER, REGCLS_MULTIPLEUSE, &cookie), "proxies");
  for (const IID& iid : {IID_ICupboard, IID_IScales, IID_IPantry}) check(CoRegisterPSClsid(iid, kProxies), "proxies");
}

// Registers a type library: what is called by name is marshalled as it says.
ITypeLib* know_types(const std::wstring& file) {
  ITypeLib* library = nullptr;
  check(LoadTypeLibEx(file.c_str(), REGKIND_REGISTER, &library), "type library");
  return library;
}

// The directory of this program.
std::wstring here() {
  wchar_t path[MAX_PATH];
  const std::wstring file(path, GetModuleFileNameW(nullptr, path, MAX_PATH));
  return file.substr(0, file.rfind(L'\\') + 1);
}

// A port that is free; nobody else takes it before long.
unsigned free_port() {
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

std::string base64(const BYTE* raw, SIZE_T size) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (SIZE_T i = 0; i < size; i += 3) {
    const unsigned bits = raw[i] << 16 | (i + 1 < size ? raw[i + 1] : 0) << 8 | (i + 2 < size ? raw[i + 2] : 0);
    for (int digit = 0; digit < 4; ++digit) text += i + SIZE_T(digit) <= size ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  return text;
}

std::string marshalled(IUnknown* object, REFIID iid) {
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

}  // namespace

int main(int argc, char** argv) try {
  check(CoInitializeEx(nullptr, COINIT_MULTITHREADED), "CoInitializeEx");
  know_proxies();
  const std::string port = argc > 1 ? argv[1] : std::to_string(free_port());
  std::string protocol = "ncacn_ip_tcp", endpoint = port;
  const RPC_STATUS status = RpcServerUseProtseqEpA(reinterpret_cast<RPC_CSTR>(&protocol[0]), RPC_C_PROTSEQ_MAX_REQS_DEFAULT,
                                                   reinterpret_cast<RPC_CSTR>(&endpoint[0]), nullptr);
  if (status) throw std::runtime_error("RpcServerUseProtseqEp: " + std::to_string(status));
  // It describes IDispatch, which others are derived from.
  know_types(L"stdole2.tlb");
  know_types(here() + L"cupboard.tlb");
  ITypeInfo* pantry = nullptr;
  check(know_types(here() + L"pantry.tlb")->GetTypeInfoOfGuid(IID_IPantry, &pantry), "type information");
  ICupboard* cupboard = new Cupboard(pantry);
  const std::string objref = marshalled(cupboard, IID_ICupboard);
  std::printf("port %s\nobjref %s\n", port.c_str(), objref.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "server: %s\n", error.what()), 1;
}
