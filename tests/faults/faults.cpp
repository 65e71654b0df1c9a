// Calls of the C library that fail on request, in the program `tidepool` if it loads this library (LD_PRELOAD). Tests
// let one call fail in each run: the first, the second, and so on, as SQLite's own tests do.
//   TIDEPOOL_FAULT=KIND:N       the N-th call of this kind fails; with N = 0, none does
//   TIDEPOOL_FAULT_COUNTS=FILE  receives a line for each kind: the kind and the number of its calls
// Calls between the beginning and the end of main() count, except writes to stderr. Kinds: memory (ENOMEM), write
// (EIO), full (ENOSPC, for the N-th call and all later ones), sync (EIO), read (EIO), short_read (the call reads at
// most half of the requested bytes, rounded up), remove (ENOTEMPTY, of unlinkat: files and folders within folders).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// glibc's own allocator. Its functions can be called before dlsym() has found the next malloc().
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
}

namespace {

enum Kind : std::size_t { kMemory, kWrite, kFull, kSync, kRead, kShortRead, kRemove, kKinds };
constexpr std::array<const char*, kKinds> kNames{"memory", "write", "full", "sync", "read", "short_read", "remove"};

std::array<std::atomic<long>, kKinds> calls{};
std::atomic<bool> armed = false;
std::size_t failing = kKinds;
long failing_call = 0;

/// Counts a call of a kind, within main() of `tidepool`. @return whether the call must fail
bool fails(Kind kind) {
  if (!armed) return false;
  const long call = ++calls[kind];
  return kind == failing && failing_call > 0 && (kind == kFull ? call >= failing_call : call == failing_call);
}

/// Counts a call that writes. @return the error that it must end with; 0 for none
int write_error(int descriptor) {
  if (descriptor == STDERR_FILENO) return 0;
  const bool once = fails(kWrite);  // a call counts for both kinds, also if it fails as the first one
  return fails(kFull) ? ENOSPC : once ? EIO : 0;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <class Result>
Result failed(int error, Result result) {
  errno = error;
  return result;
}

/// Sets errno and the stream's error flag. @return the value that fread and fwrite return when they fail: 0
std::size_t broken(std::FILE* file, int error) {
  constexpr int kErrorSeen = 0x20;  // the flag of ferror() in glibc's streams
  file->_flags |= kErrorSeen;
  return failed<std::size_t>(error, 0);
}

/// The most bytes (of fread: items) that a call may read: half of the requested ones, rounded up, for a short read; -1,
/// with errno set, for a failure.
ssize_t readable(std::size_t bytes) {
  const bool fails_at_all = fails(kRead);
  const bool less = fails(kShortRead);
  return fails_at_all ? failed<ssize_t>(EIO, -1) : static_cast<ssize_t>(less ? (bytes + 1) / 2 : bytes);
}

void read_request() {
  const char* text = std::getenv("TIDEPOOL_FAULT");
  const char* colon = text != nullptr ? std::strchr(text, ':') : nullptr;
  if (colon == nullptr) return;
  const auto length = static_cast<std::size_t>(colon - text);
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (std::strlen(kNames[kind]) == length && std::strncmp(kNames[kind], text, length) == 0) failing = kind;
  failing_call = std::atol(colon + 1);
}

void write_counts() {
  const char* path = std::getenv("TIDEPOOL_FAULT_COUNTS");
  std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  for (std::size_t kind = 0; kind < kKinds; ++kind) std::fprintf(file, "%s %ld\n", kNames[kind], calls[kind].load());
  std::fclose(file);
}

using Main = int(int, char**, char**);
Main* real_main = nullptr;

int main_with_faults(int argc, char** argv, char** environment) {
  const bool ours = std::strcmp(program_invocation_short_name, "tidepool") == 0;
  if (ours) read_request();
  armed = ours;
  const int code = real_main(argc, argv, environment);
  armed = false;
  if (ours) write_counts();
  return code;
}

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(), void (*loader)(),
                      void* stack) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return next<Start>("__libc_start_main")(main_with_faults, argc, argv, init, fini, loader, stack);
}

void* malloc(std::size_t size) { return fails(kMemory) ? failed<void*>(ENOMEM, nullptr) : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) {
  return fails(kMemory) ? failed<void*>(ENOMEM, nullptr) : __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  return fails(kMemory) ? failed<void*>(ENOMEM, nullptr) : __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails(kMemory) ? failed<void*>(ENOMEM, nullptr) : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  if (fails(kMemory)) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  static const auto real = next<decltype(write)>("write");
  const int error = write_error(descriptor);
  return error != 0 ? failed<ssize_t>(error, -1) : real(descriptor, bytes, size);
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  static const auto real = next<decltype(writev)>("writev");
  const int error = write_error(descriptor);
  return error != 0 ? failed<ssize_t>(error, -1) : real(descriptor, parts, count);
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t size, off64_t at) {
  static const auto real = next<decltype(pwrite64)>("pwrite64");
  const int error = write_error(descriptor);
  return error != 0 ? failed<ssize_t>(error, -1) : real(descriptor, bytes, size, at);
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t at) {
  return pwrite64(descriptor, bytes, size, at);
}
int ftruncate64(int descriptor, off64_t size) {
  static const auto real = next<decltype(ftruncate64)>("ftruncate64");
  const int error = write_error(descriptor);
  return error != 0 ? failed(error, -1) : real(descriptor, size);
}
std::size_t fwrite(const void* bytes, std::size_t size, std::size_t count, std::FILE* file) {
  static const auto real = next<decltype(fwrite)>("fwrite");
  const int error = write_error(fileno(file));
  return error != 0 ? broken(file, error) : real(bytes, size, count, file);
}
int fclose(std::FILE* file) {
  static const auto real = next<decltype(fclose)>("fclose");
  const bool writes = (fcntl(fileno(file), F_GETFL) & O_ACCMODE) != O_RDONLY;
  const int error = writes ? write_error(fileno(file)) : 0;
  const int code = real(file);
  return error != 0 ? failed(error, EOF) : code;
}

int fsync(int descriptor) {
  static const auto real = next<decltype(fsync)>("fsync");
  return fails(kSync) ? failed(EIO, -1) : real(descriptor);
}
int fdatasync(int descriptor) {
  static const auto real = next<decltype(fdatasync)>("fdatasync");
  return fails(kSync) ? failed(EIO, -1) : real(descriptor);
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
  static const auto real = next<decltype(read)>("read");
  const ssize_t most = readable(size);
  return most < 0 ? -1 : real(descriptor, bytes, static_cast<std::size_t>(most));
}
ssize_t pread64(int descriptor, void* bytes, std::size_t size, off64_t at) {
  static const auto real = next<decltype(pread64)>("pread64");
  const ssize_t most = readable(size);
  return most < 0 ? -1 : real(descriptor, bytes, static_cast<std::size_t>(most), at);
}
ssize_t pread(int descriptor, void* bytes, std::size_t size, off_t at) { return pread64(descriptor, bytes, size, at); }
std::size_t fread(void* bytes, std::size_t size, std::size_t count, std::FILE* file) {
  static const auto real = next<decltype(fread)>("fread");
  const ssize_t most = readable(count);
  return most < 0 ? broken(file, EIO) : real(bytes, size, static_cast<std::size_t>(most), file);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  static const auto real = next<decltype(unlinkat)>("unlinkat");
  return fails(kRemove) ? failed(ENOTEMPTY, -1) : real(folder, name, flags);
}

}  // extern "C"
