// Calls procedures of ours, which `torture.midl` has, by Wine's RPC over TCP:   caller PORT
// Prints `ok` if every answer is as it should be.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "echo.h"

void* __RPC_USER midl_user_allocate(SIZE_T size) { return malloc(size); }
void __RPC_USER midl_user_free(void* memory) { free(memory); }

static void check(int holds, const char* what) {
  if (holds) return;
  printf("wrong: %s\n", what);
  exit(1);
}

int main(int argc, char** argv) {
  RPC_CSTR text = NULL;
  check(argc == 2, "usage");
  check(!RpcStringBindingComposeA(NULL, (RPC_CSTR) "ncacn_ip_tcp", (RPC_CSTR) "127.0.0.1", (RPC_CSTR)argv[1], NULL, &text), "text");
  check(!RpcBindingFromStringBindingA(text, &EchoBinding), "binding");

  unsigned long next = 0;
  for (unsigned long number = 0; number < 100; ++number) {
    AddOne(number, &next);
    check(next == number + 1, "AddOne");
  }
  for (unsigned long size = 0; size <= 100000; size = size * 7 + 1) {
    byte *data = malloc(size + 1), *echoed = calloc(size + 1, 1);
    for (unsigned long i = 0; i < size; ++i) data[i] = (byte)(i + 1);
    EchoData(size, data, echoed);
    check(!memcmp(data, echoed, size), "EchoData");
    SinkData(size, data);
    SourceData(size, echoed);
    for (unsigned long i = 0; i < size; ++i) check(echoed[i] == (byte)i, "SourceData");
    free(data);
    free(echoed);
  }
  unsigned short value = 4711, *one = &value, **two = &one;
  check(TestDoublePointer(&two) == 4711, "TestDoublePointer");
  two = NULL;
  check(TestDoublePointer(&two) == 0, "TestDoublePointer of nothing");
  puts("ok");
  return 0;
}
