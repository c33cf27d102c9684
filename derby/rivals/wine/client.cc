// Races local COM:   client REF-FILE race calls|bytes|callbacks [--calls N] [--warmup N] [--budget-ms N] [--large-divisor N]
//                    [--server-pid PID] [--operation NAME] [--pause-ms N]
#include <cstring>
#include <iostream>

#include "com.h"
#include "measure.h"

namespace {

const OLECHAR kText[] = L"Hello, World! 0123456789";

void require(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(std::string(what) + " gave a wrong result");
}

template <class Interface> Interface* create(REFCLSID clsid) {
  void* made = nullptr;
  check(CoCreateInstance(clsid, nullptr, CLSCTX_LOCAL_SERVER, __uuidof(Interface), &made), "CoCreateInstance");
  return static_cast<Interface*>(made);
}

void race_calls(const Plan& plan) {
  IBenchmarking* object = create<IBenchmarking>(CLSID_Benchmarking);
  measure(plan, "void_call", plan.calls, [&] { check(object->void_call(), "void_call"); });
  measure(plan, "in_int_call", plan.calls, [&] { check(object->in_int_call(42), "in_int_call"); });
  measure(plan, "out_int_call", plan.calls, [&] {
    LONG v = 0;
    check(object->out_int_call(&v), "out_int_call");
    require(v == 42, "out_int_call");
  });
  measure(plan, "in_out_int_call", plan.calls, [&] {
    LONG v = 42;
    check(object->in_out_int_call(&v), "in_out_int_call");
    require(v == 43, "in_out_int_call");
  });
  measure(plan, "in_string_call", plan.calls, [&] {
    const BSTR v = SysAllocString(kText);
    check(object->in_string_call(v), "in_string_call");
    SysFreeString(v);
  });
  measure(plan, "out_string_call", plan.calls, [&] {
    BSTR v = nullptr;
    check(object->out_string_call(&v), "out_string_call");
    require(v && v[0] == 'H', "out_string_call");
    SysFreeString(v);
  });
  measure(plan, "in_out_string_call", plan.calls, [&] {
    BSTR v = SysAllocString(kText);
    check(object->in_out_string_call(&v), "in_out_string_call");
    require(v && v[0] == 'H', "in_out_string_call");
    SysFreeString(v);
  });
  object->Release();
}

void race_bytes(const Plan& plan) {
  IRemoteObject* object = create<IRemoteObject>(CLSID_RemoteObject);
  const auto get = [&](LONG n) {
    ULONG size = 0;
    BYTE* bytes = nullptr;
    check(object->GetBytes(n, &size, &bytes), "GetBytes");
    require(size == ULONG(n), "GetBytes");
    CoTaskMemFree(bytes);
  };
  measure(plan, "GetBytes 100 B", plan.calls, [&] { get(100); });
  measure(plan, "GetBytes 1 MB", std::max<std::uint64_t>(1, plan.calls / plan.large_divisor), [&] { get(1000000); });
  object->Release();
}

template <class Interface> class Sink : public Named<Interface> {
  HRESULT STDMETHODCALLTYPE Hello() override { return S_OK; }
};

void race_callbacks(const Plan& plan) {
  measure(plan, "connection point", plan.calls, [&] {
    IUnknown* sink = new Sink<_ISlowConnectionPointsEvents>;
    ISlowConnectionPoints* object = create<ISlowConnectionPoints>(CLSID_SlowConnectionPoints);
    IConnectionPointContainer* container = nullptr;
    check(object->QueryInterface(IID_IConnectionPointContainer, reinterpret_cast<void**>(&container)), "container");
    IConnectionPoint* point = nullptr;
    check(container->FindConnectionPoint(IID__ISlowConnectionPointsEvents, &point), "FindConnectionPoint");
    DWORD cookie = 0;
    check(point->Advise(sink, &cookie), "Advise");
    check(point->Unadvise(cookie), "Unadvise");
    for (IUnknown* held : {static_cast<IUnknown*>(point), static_cast<IUnknown*>(container), static_cast<IUnknown*>(object), sink})
      held->Release();
  });
  measure(plan, "callback", plan.calls, [&] {
    IUnknown* sink = new Sink<_ICallbackEvents>;
    ICallback* object = create<ICallback>(CLSID_Callback);
    DWORD cookie = 0;
    check(object->Advise(sink, &cookie), "Advise");
    check(object->Unadvise(cookie), "Unadvise");
    object->Release();
    sink->Release();
  });
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4 || std::strcmp(argv[2], "race") != 0) return std::cerr << "usage: client REF-FILE race calls|bytes|callbacks\n", 2;
  const std::string race = argv[3];
  Plan plan;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    if (i + 1 >= argc) throw std::runtime_error(word + " wants a value");
    const char* value = argv[++i];
    const auto number = [&] { return std::strtoull(value, nullptr, 10); };
    if (word == "--calls") plan.calls = number();
    else if (word == "--warmup") plan.warmup = number();
    else if (word == "--budget-ms") plan.budget_ms = number();
    else if (word == "--large-divisor") plan.large_divisor = std::max(1ULL, number());
    else if (word == "--server-pid") plan.server_pids.push_back(int(number()));
    else if (word == "--operation") plan.only = value;
    else if (word == "--pause-ms") plan.pause_ms = number();
    else throw std::runtime_error("unknown option " + word);
  }
  check(CoInitializeEx(nullptr, COINIT_MULTITHREADED), "CoInitializeEx");
  know_proxies();
  if (race == "calls") race_calls(plan);
  else if (race == "bytes") race_bytes(plan);
  else if (race == "callbacks") race_callbacks(plan);
  else throw std::runtime_error("unknown race " + race);
  CoUninitialize();
  return 0;
} catch (const std::exception& error) {
  return std::cerr << "client: " << error.what() << "\n", 1;
}
