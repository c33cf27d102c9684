// A local server of the contracts' classes:   server REF-FILE
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>

#include "com.h"

namespace {

const OLECHAR kText[] = L"Hello, World! 0123456789";

class BenchmarkingServant : public Counted<IBenchmarking> {
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IBenchmarking) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IBenchmarking*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE void_call() override { return S_OK; }
  HRESULT STDMETHODCALLTYPE in_int_call(LONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE out_int_call(LONG* v) override { return *v = 42, S_OK; }
  HRESULT STDMETHODCALLTYPE in_out_int_call(LONG* v) override { return ++*v, S_OK; }
  HRESULT STDMETHODCALLTYPE in_string_call(BSTR) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE out_string_call(BSTR* v) override { return *v = SysAllocString(kText), S_OK; }
  HRESULT STDMETHODCALLTYPE in_out_string_call(BSTR*) override { return S_OK; }
};

class RemoteObjectServant : public Counted<IRemoteObject> {
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IRemoteObject) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IRemoteObject*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetBytes(LONG n, ULONG* size, BYTE** bytes) override {
    *size = ULONG(n);
    *bytes = static_cast<BYTE*>(CoTaskMemAlloc(SIZE_T(n)));
    if (!*bytes) return E_OUTOFMEMORY;
    memset(*bytes, 7, SIZE_T(n));
    return S_OK;
  }
};

// Who listens, by cookie.
class Sinks {
public:
  HRESULT add(IUnknown* sink, REFIID iid, DWORD* cookie) {
    IUnknown* events = nullptr;
    const HRESULT result = sink->QueryInterface(iid, reinterpret_cast<void**>(&events));
    if (FAILED(result)) return CONNECT_E_CANNOTCONNECT;
    std::lock_guard<std::mutex> held(lock_);
    sinks_[*cookie = ++next_] = events;
    return S_OK;
  }
  HRESULT remove(DWORD cookie) {
    IUnknown* events = nullptr;
    {
      std::lock_guard<std::mutex> held(lock_);
      const auto found = sinks_.find(cookie);
      if (found == sinks_.end()) return CONNECT_E_NOCONNECTION;
      events = found->second;
      sinks_.erase(found);
    }
    events->Release();
    return S_OK;
  }

private:
  std::mutex lock_;
  std::map<DWORD, IUnknown*> sinks_;
  DWORD next_ = 0;
};

class CallbackServant : public Named<ICallback> {
  HRESULT STDMETHODCALLTYPE Advise(IUnknown* sink, DWORD* cookie) override {
    return sinks_.add(sink, IID__ICallbackEvents, cookie);
  }
  HRESULT STDMETHODCALLTYPE Unadvise(DWORD cookie) override { return sinks_.remove(cookie); }
  Sinks sinks_;
};

class SlowConnectionPointsServant : public Named<ISlowConnectionPoints>, public IConnectionPointContainer, public IConnectionPoint {
  using Base = Named<ISlowConnectionPoints>;
  ULONG STDMETHODCALLTYPE AddRef() override { return Base::AddRef(); }
  ULONG STDMETHODCALLTYPE Release() override { return Base::Release(); }
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    if (iid == IID_IConnectionPointContainer) *out = static_cast<IConnectionPointContainer*>(this);
    else if (iid == IID_IConnectionPoint) *out = static_cast<IConnectionPoint*>(this);
    else return Base::QueryInterface(iid, out);
    AddRef();
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE EnumConnectionPoints(IEnumConnectionPoints**) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE FindConnectionPoint(REFIID iid, IConnectionPoint** point) override {
    *point = nullptr;
    if (iid != IID__ISlowConnectionPointsEvents) return CONNECT_E_NOCONNECTION;
    AddRef();
    return *point = this, S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetConnectionInterface(IID* iid) override { return *iid = IID__ISlowConnectionPointsEvents, S_OK; }
  HRESULT STDMETHODCALLTYPE GetConnectionPointContainer(IConnectionPointContainer** container) override {
    AddRef();
    return *container = this, S_OK;
  }
  HRESULT STDMETHODCALLTYPE Advise(IUnknown* sink, DWORD* cookie) override {
    return sinks_.add(sink, IID__ISlowConnectionPointsEvents, cookie);
  }
  HRESULT STDMETHODCALLTYPE Unadvise(DWORD cookie) override { return sinks_.remove(cookie); }
  HRESULT STDMETHODCALLTYPE EnumConnections(IEnumConnections**) override { return E_NOTIMPL; }
  Sinks sinks_;
};

template <class Object, class Face> class Factory : public Counted<IClassFactory> {
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IClassFactory) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IClassFactory*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE CreateInstance(IUnknown* outer, REFIID iid, void** out) override {
    if (outer) return CLASS_E_NOAGGREGATION;
    Face* made = new Object;
    const HRESULT result = made->QueryInterface(iid, out);
    made->Release();
    return result;
  }
  HRESULT STDMETHODCALLTYPE LockServer(BOOL) override { return S_OK; }
};

template <class Object, class Face> void offer(REFCLSID clsid) {
  DWORD cookie = 0;
  check(CoRegisterClassObject(clsid, new Factory<Object, Face>, CLSCTX_LOCAL_SERVER, REGCLS_MULTIPLEUSE, &cookie), "class");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return std::cerr << "usage: server REF-FILE\n", 2;
  check(CoInitializeEx(nullptr, COINIT_MULTITHREADED), "CoInitializeEx");
  know_proxies();
  offer<BenchmarkingServant, IBenchmarking>(CLSID_Benchmarking);
  offer<RemoteObjectServant, IRemoteObject>(CLSID_RemoteObject);
  offer<CallbackServant, ICallback>(CLSID_Callback);
  offer<SlowConnectionPointsServant, ISlowConnectionPoints>(CLSID_SlowConnectionPoints);
  const std::string whole = argv[1], partial = whole + ".part";
  std::ofstream(partial) << "classes\tlocal\n";
  if (!MoveFileA(partial.c_str(), whole.c_str())) throw std::runtime_error("cannot write " + whole);
  Sleep(INFINITE);
  return 0;
} catch (const std::exception& error) {
  return std::cerr << "server: " << error.what() << "\n", 1;
}
