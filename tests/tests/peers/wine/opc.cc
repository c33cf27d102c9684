// A server of OPC Data Access 2.05a for Wine that is called over TCP:   opc [PORT]
// Prints `port PORT`, then `objref BASE64` of an object with IOPCServer, then serves until its standard input ends.
//
// Everything that travels is Wine's: its proxies and stubs, its marshalling of VARIANTs, its references and their counts. Since Wine
// cannot call back to other machines, its groups have no connection points. The interface compiler of the cross compiler writes the pointer
// in place of a text that a method returns by itself, so the address space is flat, and nobody has to ask for an item's name or properties.
#include <algorithm>
#include <map>
#include <vector>

#include "common.h"
#include "opc.h"

namespace {

constexpr HRESULT kInvalidHandle = HRESULT(0xC0040001), kBadType = HRESULT(0xC0040004), kBadRights = HRESULT(0xC0040006),
                  kUnknownItem = HRESULT(0xC0040007);
constexpr DWORD kReadable = 1, kWritable = 2;
constexpr WORD kGood = 192;

struct Point {
  VARIANT value;
  DWORD rights;
  FILETIME time;
};

// By their names.
std::map<std::wstring, Point> g_points;
LONG g_groups = 0;

template <class T> T* allocated(ULONG count) {
  const SIZE_T size = sizeof(T) * std::max<ULONG>(count, 1);
  return static_cast<T*>(memset(CoTaskMemAlloc(size), 0, size));
}

FILETIME now() {
  FILETIME time;
  GetSystemTimeAsFileTime(&time);
  return time;
}

void add(const wchar_t* name, DWORD rights, VARTYPE type, double number, const wchar_t* text = nullptr) {
  VARIANT value;
  VariantInit(&value);
  if (text) {
    value.vt = VT_BSTR;
    value.bstrVal = SysAllocString(text);
  } else {
    VARIANT wide;
    VariantInit(&wide);
    wide.vt = VT_R8;
    wide.dblVal = number;
    check(VariantChangeType(&value, &wide, 0, type), "a value");
  }
  g_points[name] = {value, rights, now()};
}

class Names : public Counted<IEnumString> {
public:
  explicit Names(std::vector<std::wstring> names, size_t at = 0) : names_(std::move(names)), at_(at) {}

private:
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid != IID_IUnknown && iid != IID_IEnumString) return E_NOINTERFACE;
    AddRef();
    return *out = static_cast<IEnumString*>(this), S_OK;
  }
  HRESULT STDMETHODCALLTYPE Next(ULONG count, LPOLESTR* texts, ULONG* fetched) override {
    ULONG given = 0;
    for (; given < count && at_ < names_.size(); ++given) texts[given] = copy(names_[at_++].c_str());
    if (fetched) *fetched = given;
    return given == count ? S_OK : S_FALSE;
  }
  HRESULT STDMETHODCALLTYPE Skip(ULONG count) override {
    const size_t left = names_.size() - at_;
    at_ += std::min<size_t>(count, left);
    return count <= left ? S_OK : S_FALSE;
  }
  HRESULT STDMETHODCALLTYPE Reset() override { return at_ = 0, S_OK; }
  HRESULT STDMETHODCALLTYPE Clone(IEnumString** other) override { return *other = new Names(names_, at_), S_OK; }

  std::vector<std::wstring> names_;
  size_t at_;
};

class Group : public IOPCGroupStateMgt, public IOPCItemMgt, public IOPCSyncIO {
public:
  Group(const WCHAR* name, DWORD rate, BOOL active, OPCHANDLE client, DWORD handle)
      : name_(name), rate_(rate), active_(active), client_(client), handle_(handle) {
    InterlockedIncrement(&g_groups);
  }
  virtual ~Group() { InterlockedDecrement(&g_groups); }
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid == IID_IUnknown || iid == IID_IOPCGroupStateMgt) *out = static_cast<IOPCGroupStateMgt*>(this);
    if (iid == IID_IOPCItemMgt) *out = static_cast<IOPCItemMgt*>(this);
    if (iid == IID_IOPCSyncIO) *out = static_cast<IOPCSyncIO*>(this);
    return *out ? (AddRef(), S_OK) : E_NOINTERFACE;
  }
  ULONG STDMETHODCALLTYPE AddRef() override { return ULONG(InterlockedIncrement(&count_)); }
  ULONG STDMETHODCALLTYPE Release() override {
    const LONG left = InterlockedDecrement(&count_);
    if (left == 0) delete this;
    return ULONG(left);
  }

private:
  struct Held {
    std::wstring id;
    OPCHANDLE client;
  };

  HRESULT STDMETHODCALLTYPE GetState(DWORD* rate, BOOL* active, LPWSTR* name, LONG* bias, FLOAT* deadband, DWORD* locale,
                                     OPCHANDLE* client, OPCHANDLE* handle) override {
    *rate = rate_, *active = active_, *name = copy(name_.c_str()), *bias = 0, *deadband = 0, *locale = 0x409;
    *client = client_, *handle = handle_;
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE SetState(DWORD* rate, DWORD* revised, BOOL* active, LONG*, FLOAT*, DWORD*, OPCHANDLE* client) override {
    if (rate) rate_ = *rate;
    if (active) active_ = *active;
    if (client) client_ = *client;
    return *revised = rate_, S_OK;
  }
  HRESULT STDMETHODCALLTYPE SetName(LPCWSTR name) override { return name_ = name, S_OK; }
  HRESULT STDMETHODCALLTYPE CloneGroup(LPCWSTR, REFIID, LPUNKNOWN* group) override { return *group = nullptr, E_NOTIMPL; }

  HRESULT define(DWORD count, OPCITEMDEF* items, bool keep, OPCITEMRESULT** results, HRESULT** errors) {
    *results = allocated<OPCITEMRESULT>(count);
    *errors = allocated<HRESULT>(count);
    HRESULT all = S_OK;
    for (DWORD i = 0; i < count; ++i) {
      const auto found = g_points.find(items[i].item_id ? items[i].item_id : L"");
      if (found == g_points.end()) {
        (*errors)[i] = kUnknownItem, all = S_FALSE;
        continue;
      }
      (*results)[i].canonical_type = found->second.value.vt;
      (*results)[i].access_rights = found->second.rights;
      if (!keep) continue;
      (*results)[i].server = ++last_;
      items_[last_] = {found->first, items[i].client};
    }
    return all;
  }
  HRESULT STDMETHODCALLTYPE AddItems(DWORD count, OPCITEMDEF* items, OPCITEMRESULT** results, HRESULT** errors) override {
    return define(count, items, true, results, errors);
  }
  HRESULT STDMETHODCALLTYPE ValidateItems(DWORD count, OPCITEMDEF* items, BOOL, OPCITEMRESULT** results, HRESULT** errors) override {
    return define(count, items, false, results, errors);
  }
  HRESULT STDMETHODCALLTYPE RemoveItems(DWORD count, OPCHANDLE* items, HRESULT** errors) override {
    *errors = allocated<HRESULT>(count);
    HRESULT all = S_OK;
    for (DWORD i = 0; i < count; ++i)
      if (!items_.erase(items[i])) (*errors)[i] = kInvalidHandle, all = S_FALSE;
    return all;
  }
  HRESULT STDMETHODCALLTYPE SetActiveState(DWORD count, OPCHANDLE*, BOOL, HRESULT** errors) override {
    return *errors = allocated<HRESULT>(count), S_OK;
  }
  HRESULT STDMETHODCALLTYPE SetClientHandles(DWORD count, OPCHANDLE* items, OPCHANDLE* clients, HRESULT** errors) override {
    *errors = allocated<HRESULT>(count);
    for (DWORD i = 0; i < count; ++i) items_[items[i]].client = clients[i];
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE SetDatatypes(DWORD count, OPCHANDLE*, VARTYPE*, HRESULT** errors) override {
    return *errors = allocated<HRESULT>(count), S_OK;
  }
  HRESULT STDMETHODCALLTYPE CreateEnumerator(REFIID, LPUNKNOWN* enumerator) override { return *enumerator = nullptr, E_NOTIMPL; }

  HRESULT STDMETHODCALLTYPE Read(OPCDATASOURCE, DWORD count, OPCHANDLE* items, OPCITEMSTATE** states, HRESULT** errors) override {
    *states = allocated<OPCITEMSTATE>(count);
    *errors = allocated<HRESULT>(count);
    HRESULT all = S_OK;
    for (DWORD i = 0; i < count; ++i) {
      const auto held = items_.find(items[i]);
      if (held == items_.end()) {
        (*errors)[i] = kInvalidHandle, all = S_FALSE;
        continue;
      }
      const Point& point = g_points[held->second.id];
      (*states)[i].client = held->second.client;
      (*states)[i].timestamp = point.time;
      (*states)[i].quality = kGood;
      check(VariantCopy(&(*states)[i].value, const_cast<VARIANT*>(&point.value)), "a copy");
    }
    return all;
  }
  HRESULT STDMETHODCALLTYPE Write(DWORD count, OPCHANDLE* items, VARIANT* values, HRESULT** errors) override {
    *errors = allocated<HRESULT>(count);
    HRESULT all = S_OK;
    for (DWORD i = 0; i < count; ++i) {
      const auto held = items_.find(items[i]);
      HRESULT& error = (*errors)[i];
      if (held == items_.end()) {
        error = kInvalidHandle;
      } else {
        Point& point = g_points[held->second.id];
        if (!(point.rights & kWritable)) error = kBadRights;
        else if (FAILED(VariantChangeType(&point.value, &values[i], 0, point.value.vt))) error = kBadType;
        else point.time = now();
      }
      if (error != S_OK) all = S_FALSE;
    }
    return all;
  }

  LONG count_ = 1;
  std::wstring name_;
  DWORD rate_;
  BOOL active_;
  OPCHANDLE client_;
  DWORD handle_;
  DWORD last_ = 0;
  std::map<DWORD, Held> items_;
};

class Server : public IOPCServer, public IOPCCommon, public IOPCBrowseServerAddressSpace {
  HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** out) override {
    *out = nullptr;
    if (iid == IID_IUnknown || iid == IID_IOPCServer) *out = static_cast<IOPCServer*>(this);
    if (iid == IID_IOPCCommon) *out = static_cast<IOPCCommon*>(this);
    if (iid == IID_IOPCBrowseServerAddressSpace) *out = static_cast<IOPCBrowseServerAddressSpace*>(this);
    return *out ? (AddRef(), S_OK) : E_NOINTERFACE;
  }
  // There is one, which lives as long as the program.
  ULONG STDMETHODCALLTYPE AddRef() override { return 2; }
  ULONG STDMETHODCALLTYPE Release() override { return 1; }

  HRESULT STDMETHODCALLTYPE AddGroup(LPCWSTR name, BOOL active, DWORD rate, OPCHANDLE client, LONG*, FLOAT*, DWORD, OPCHANDLE* handle,
                                     DWORD* revised, REFIID riid, LPUNKNOWN* group) override {
    *revised = std::max<DWORD>(rate, 10);
    *handle = ++last_;
    Group* made = new Group(name, *revised, active, client, last_);
    const HRESULT result = made->QueryInterface(riid, reinterpret_cast<void**>(group));
    made->Release();
    return result;
  }
  HRESULT STDMETHODCALLTYPE GetErrorString(HRESULT, LCID, LPWSTR* text) override { return *text = copy(L"an error"), S_OK; }
  HRESULT STDMETHODCALLTYPE GetGroupByName(LPCWSTR, REFIID, LPUNKNOWN* group) override { return *group = nullptr, E_INVALIDARG; }
  HRESULT STDMETHODCALLTYPE GetStatus(OPCSERVERSTATUS** status) override {
    *status = allocated<OPCSERVERSTATUS>(1);
    (*status)->start_time = (*status)->current_time = (*status)->last_update_time = now();
    (*status)->state = OPC_STATUS_RUNNING;
    (*status)->group_count = DWORD(g_groups);
    (*status)->band_width = 0xffffffff;
    (*status)->major_version = 2, (*status)->minor_version = 5, (*status)->build_number = 7;
    (*status)->vendor_info = copy(L"Wine");
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE RemoveGroup(OPCHANDLE, BOOL) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE CreateGroupEnumerator(OPCENUMSCOPE, REFIID, LPUNKNOWN* groups) override {
    return *groups = nullptr, E_NOTIMPL;
  }

  HRESULT STDMETHODCALLTYPE SetLocaleID(LCID) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE GetLocaleID(LCID* locale) override { return *locale = 0x409, S_OK; }
  HRESULT STDMETHODCALLTYPE QueryAvailableLocaleIDs(DWORD* count, LCID** locales) override {
    *count = 1, *locales = allocated<LCID>(1), **locales = 0x409;
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetErrorString(HRESULT, LPWSTR* text) override { return *text = copy(L"an error"), S_OK; }
  HRESULT STDMETHODCALLTYPE SetClientName(LPCWSTR) override { return S_OK; }

  HRESULT STDMETHODCALLTYPE QueryOrganization(OPCNAMESPACETYPE* kind) override { return *kind = OPC_NS_FLAT, S_OK; }
  HRESULT STDMETHODCALLTYPE ChangeBrowsePosition(OPCBROWSEDIRECTION, LPCWSTR) override { return E_FAIL; }
  HRESULT STDMETHODCALLTYPE BrowseOPCItemIDs(OPCBROWSETYPE, LPCWSTR, VARTYPE, DWORD, IEnumString** names) override {
    std::vector<std::wstring> found;
    for (const auto& point : g_points) found.push_back(point.first);
    return *names = new Names(std::move(found)), S_OK;
  }
  HRESULT STDMETHODCALLTYPE GetItemID(LPWSTR name, LPWSTR* id) override { return *id = copy(name), S_OK; }
  HRESULT STDMETHODCALLTYPE BrowseAccessPaths(LPCWSTR, IEnumString** paths) override { return *paths = nullptr, E_NOTIMPL; }

  DWORD last_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  check(CoInitializeEx(nullptr, COINIT_MULTITHREADED), "CoInitializeEx");
  know_proxies({IID_IOPCServer, IID_IOPCCommon, IID_IOPCBrowseServerAddressSpace, IID_IOPCGroupStateMgt, IID_IOPCItemMgt,
                IID_IOPCSyncIO});
  add(L"Tank.Level", kReadable, VT_R4, 50);
  add(L"Tank.Setpoint", kReadable | kWritable, VT_I2, 10);
  add(L"Tank.Deep.Price", kReadable | kWritable, VT_CY, 1.25);
  add(L"Tank.Deep.Since", kReadable, VT_DATE, 36526.5);
  add(L"Valve", kReadable | kWritable, VT_BOOL, 0);
  add(L"Name", kReadable, VT_BSTR, 0, L"Tank nº one");
  const std::string port = listen_at(argc > 1 ? argv[1] : "");
  Server* server = new Server;
  const std::string objref = marshalled(static_cast<IOPCServer*>(server), IID_IOPCServer);
  std::printf("port %s\nobjref %s\n", port.c_str(), objref.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "opc: %s\n", error.what()), 1;
}
