// A COM server for Wine that is called over TCP:   server [PORT]
// Prints `port PORT`, then `objref BASE64` of an object with ICupboard, then serves until its standard input ends.
#include <algorithm>
#include <vector>

#include "common.h"

#include "cupboard.midl.h"
#include "pantry.midl.h"

namespace {

LONG g_scales = 0;
// What Wait waits for, and Fire fires.
HANDLE g_fired = CreateEventA(nullptr, FALSE, FALSE, nullptr);

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

}  // namespace

int main(int argc, char** argv) try {
  check(CoInitializeEx(nullptr, COINIT_MULTITHREADED), "CoInitializeEx");
  know_proxies({IID_ICupboard, IID_IScales, IID_IPantry});
  const std::string port = listen_at(argc > 1 ? argv[1] : "");
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
