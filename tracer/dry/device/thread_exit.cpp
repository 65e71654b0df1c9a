// The end of a thread while Python shuts down.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <initializer_list>

namespace {

/// Whether a Python interpreter is in this process and shuts down.
bool python_ends() {
  for (const char* const name : {"Py_IsFinalizing", "_Py_IsFinalizing"})  // since 3.13, and before
    if (const auto asked = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name)); asked != nullptr)
      return asked() != 0;
  return false;
}

}  // namespace

#pragma GCC visibility push(default)
/// Python before 3.14 ends a thread that wants the interpreter while Python shuts down. If the thread runs C++ code
/// that cannot be unwound, the process aborts. Without a GPU to wait for, this happens to many jobs: their last
/// backward pass still releases its objects. Here, such a thread waits for the end of the process instead, as in Python
/// 3.14 (github.com/python/cpython/issues/87135).
extern "C" __attribute__((__noreturn__)) void pthread_exit(void* value) {  // as pthread.h declares it
  while (python_ends()) pause();
  reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "pthread_exit"))(value);
  __builtin_unreachable();
}
#pragma GCC visibility pop
