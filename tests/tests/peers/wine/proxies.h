// What the interface compiler's proxies take for granted and the cross compiler's headers leave out; both are exported by rpcrt4.
#pragma once
#include <objbase.h>

HRESULT STDMETHODCALLTYPE IUnknown_QueryInterface_Proxy(IUnknown*, REFIID, void**);
ULONG STDMETHODCALLTYPE IUnknown_AddRef_Proxy(IUnknown*);
ULONG STDMETHODCALLTYPE IUnknown_Release_Proxy(IUnknown*);

#define PROXY_DELEGATION
#define PROXY_CLSID_IS {0x6f3a1c10, 0x8d5e, 0x4b7a, {0x9c, 0x21, 0x5b, 0x2d, 0x8e, 0x0f, 0x4a, 0x2f}}
