// What the interface compiler's proxies take for granted and the cross compiler's headers leave out; both are exported by rpcrt4.
#pragma once
#include <objbase.h>

HRESULT STDMETHODCALLTYPE IUnknown_QueryInterface_Proxy(IUnknown*, REFIID, void**);
ULONG STDMETHODCALLTYPE IUnknown_AddRef_Proxy(IUnknown*);
ULONG STDMETHODCALLTYPE IUnknown_Release_Proxy(IUnknown*);

#define PROXY_DELEGATION
#define PROXY_CLSID_IS {0x2c9e0a50, 0x6b1f, 0x4e0c, {0x9d, 0x57, 0x3a, 0x7c, 0x5f, 0x1e, 0x8b, 0x0f}}
