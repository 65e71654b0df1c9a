// NVTX ranges and marks: NVTX_INJECTION64_PATH names this library, and each copy of NVTX in the process hands it the
// table of its functions. The types are those of NVTX's own interface for tools, which is fixed; no NVTX header is
// needed.
#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>

#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {
namespace {

using Action = raw::RangeAction;

struct ExportedCallbacks {
  std::size_t size;
  int (*functions)(int module, void**** table, unsigned* count);
};

enum Module { kCore = 1, kCore2 = 5 };
enum CoreFunction { kMarkEx = 1, kMarkA, kMarkW, kStartEx, kStartA, kStartW, kEnd, kPushEx, kPushA, kPushW, kPop };
enum DomainFunction {
  kDomainMarkEx = 1,
  kDomainStartEx,
  kDomainEnd,
  kDomainPushEx,
  kDomainPop,
  kRegisterStringA = 10,
  kRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
};

enum MessageType { kAscii = 1, kUnicode, kRegistered };

struct EventAttributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};

std::atomic<std::uint64_t> last_range{0};
thread_local int depth = 0;

std::string_view narrow(const char* text) { return text == nullptr ? std::string_view{} : text; }

/// A wide text, with '?' for characters that are not ASCII.
std::string narrow(const wchar_t* text) {
  std::string narrowed;
  for (; text != nullptr && *text != L'\0'; ++text) narrowed += *text < 128 ? static_cast<char>(*text) : '?';
  return narrowed;
}

/// The handle of a domain or of a registered string points to its text, which lives as long as the process.
const std::string* kept(std::string_view text) { return new (std::nothrow) std::string{text}; }
std::string_view name_of(const void* handle) {
  return handle == nullptr ? std::string_view{} : *static_cast<const std::string*>(handle);
}

void record(Action action, std::string_view name, const void* domain, std::uint64_t id) {
  try {
    Recorder::instance().range(action, name, name_of(domain), id);
  } catch (...) {  // out of memory; the job must not see it
  }
}

void record(Action action, const EventAttributes* event, const void* domain, std::uint64_t id) {
  if (event == nullptr)  // recorded too, because the pop that ends the range is recorded
    record(action, "", domain, id);
  else if (event->message_type == kUnicode)
    record(action, narrow(static_cast<const wchar_t*>(event->message)), domain, id);
  else if (event->message_type == kRegistered)
    record(action, name_of(event->message), domain, id);
  else
    record(action, event->message_type == kAscii ? narrow(static_cast<const char*>(event->message)) : "", domain, id);
}

/// push(), pop(), begin() and end() are for all domains; `domain` is null for the default domain.
template <class Event>
int push(Event event, const void* domain) {
  record(Action::kPush, event, domain, 0);
  return depth++;
}
int pop(const void* domain) {
  record(Action::kPop, "", domain, 0);
  return depth > 0 ? --depth : -1;
}
template <class Event>
std::uint64_t begin(Event event, const void* domain) {
  const std::uint64_t id = ++last_range;
  record(Action::kBegin, event, domain, id);
  return id;
}
void end(std::uint64_t id, const void* domain) { record(Action::kEnd, "", domain, id); }

/// Puts the recorder's functions into the slots of a table.
class Table {
 public:
  Table(const ExportedCallbacks& exported, Module module) {
    if (exported.functions(module, &slots_, &count_) == 0) count_ = 0;
  }
  template <class Function>
  void set(unsigned index, Function* function) {
    if (index < count_ && slots_[index] != nullptr) *slots_[index] = reinterpret_cast<void*>(function);
  }

 private:
  void*** slots_ = nullptr;
  unsigned count_ = 0;
};

void attach(const ExportedCallbacks& exported) {
  using Event = const EventAttributes*;
  using Domain = const void*;
  Table core{exported, kCore};
  core.set(
      kMarkEx, +[](Event event) { record(Action::kMark, event, nullptr, 0); });
  core.set(
      kMarkA, +[](const char* text) { record(Action::kMark, narrow(text), nullptr, 0); });
  core.set(
      kMarkW, +[](const wchar_t* text) { record(Action::kMark, narrow(text), nullptr, 0); });
  core.set(
      kStartEx, +[](Event event) { return begin(event, nullptr); });
  core.set(
      kStartA, +[](const char* text) { return begin(narrow(text), nullptr); });
  core.set(
      kStartW, +[](const wchar_t* text) { return begin(std::string_view{narrow(text)}, nullptr); });
  core.set(
      kEnd, +[](std::uint64_t id) { end(id, nullptr); });
  core.set(
      kPushEx, +[](Event event) { return push(event, nullptr); });
  core.set(
      kPushA, +[](const char* text) { return push(narrow(text), nullptr); });
  core.set(
      kPushW, +[](const wchar_t* text) { return push(std::string_view{narrow(text)}, nullptr); });
  core.set(
      kPop, +[] { return pop(nullptr); });
  Table domains{exported, kCore2};
  domains.set(
      kDomainMarkEx, +[](Domain domain, Event event) { record(Action::kMark, event, domain, 0); });
  domains.set(
      kDomainStartEx, +[](Domain domain, Event event) { return begin(event, domain); });
  domains.set(
      kDomainEnd, +[](Domain domain, std::uint64_t id) { end(id, domain); });
  domains.set(
      kDomainPushEx, +[](Domain domain, Event event) { return push(event, domain); });
  domains.set(
      kDomainPop, +[](Domain domain) { return pop(domain); });
  domains.set(
      kRegisterStringA, +[](Domain, const char* text) -> const void* { return kept(narrow(text)); });
  domains.set(
      kRegisterStringW, +[](Domain, const wchar_t* text) -> const void* { return kept(narrow(text)); });
  domains.set(
      kDomainCreateA, +[](const char* text) -> const void* { return kept(narrow(text)); });
  domains.set(
      kDomainCreateW, +[](const wchar_t* text) -> const void* { return kept(narrow(text)); });
}

}  // namespace
}  // namespace tidepool::inject

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void* (*exported)(std::uint32_t)) {
  constexpr std::uint32_t kCallbacks = 1;
  const void* const table = exported == nullptr ? nullptr : exported(kCallbacks);
  if (table == nullptr) return 0;
  tidepool::inject::attach(*static_cast<const tidepool::inject::ExportedCallbacks*>(table));
  return 1;
}
