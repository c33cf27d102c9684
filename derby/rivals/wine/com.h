// What both programs need of COM: apartments, errors, and the marshalling of the contracts' interfaces, whose proxies and
// stubs are part of each program instead of a registered library.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <olectl.h>

#include "bench.h"
#include "callbacks.h"

extern "C" HRESULT STDAPICALLTYPE DllGetClassObject(REFCLSID, REFIID, void**);

inline void check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  char code[16];
  std::snprintf(code, sizeof code, "0x%08lx", static_cast<unsigned long>(result));
  throw std::runtime_error(std::string(what) + ": " + code);
}

// The class of the proxies and stubs, in this process only.
inline void know_proxies() {
  static const CLSID kProxies = {0x2c9e0a50, 0x6b1f, 0x4e0c, {0x9d, 0x57, 0x3a, 0x7c, 0x5f, 0x1e, 0x8b, 0x0f}};
  IUnknown* factory = nullptr;
  check(DllGetClassObject(kProxies, IID_IUnknown, reinterpret_cast<void**>(&factory)), "proxies");
  DWORD cookie = 0;
  check(CoRegisterClassObject(kProxies, factory, CLSCTX_INPROC_SERVER, REGCLS_MULTIPLEUSE, &cookie), "proxies");
  for (const IID& iid : {IID_IBenchmarking, IID_IRemoteObject, IID_ICallback, IID__ICallbackEvents,
                         IID__ISlowConnectionPointsEvents, IID_ISlowConnectionPoints})
    check(CoRegisterPSClsid(iid, kProxies), "proxies");
}

// Reference counting, and an IDispatch that nobody calls: the races call by number.
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

template <class Interface> class Named : public Counted<Interface> {
public:
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IDispatch && iid != __uuidof(Interface)) return E_NOINTERFACE;
    *out = static_cast<Interface*>(this);
    this->AddRef();
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetTypeInfoCount(UINT* count) override { return *count = 0, S_OK; }
  HRESULT STDMETHODCALLTYPE GetTypeInfo(UINT, LCID, ITypeInfo**) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE GetIDsOfNames(REFIID, LPOLESTR*, UINT, LCID, DISPID*) override { return E_NOTIMPL; }
  HRESULT STDMETHODCALLTYPE Invoke(DISPID, REFIID, LCID, WORD, DISPPARAMS*, VARIANT*, EXCEPINFO*, UINT*) override {
    return E_NOTIMPL;
  }
};
