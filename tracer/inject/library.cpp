#include "tracer/inject/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace tidepool::inject {
namespace {

/// The path of the mapped library whose file name begins with the text; "" if there is none.
std::string mapped(std::string_view beginning) {
  struct Search {
    std::string_view beginning;
    std::string found;
  } search{beginning, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& asked = *static_cast<Search*>(data);
        const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (!path.substr(path.rfind('/') + 1).starts_with(asked.beginning)) return 0;
        asked.found = path;
        return 1;
      },
      &search);
  return search.found;
}

/// A library and the first required function that it lacks.
struct Symbols {
  void* library;
  std::string missing = {};

  template <class Function>
  void optional(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
  }
  template <class Function>
  void required(const char* name, Function*& function) {
    optional(name, function);
    if (function == nullptr && missing.empty()) missing = name;
  }
};

/// Paths where libcupti may be, for jobs that have not loaded it. Of the frameworks, only PyTorch loads it by itself,
/// and the dynamic loader does not search the folders of toolkits.
std::vector<std::string> candidates() {
  std::vector<std::string> found;
  const auto add_toolkit = [&](const std::string& folder) {
    for (const char* inside : {"/extras/CUPTI/lib64/libcupti.so", "/lib64/libcupti.so"})
      found.push_back(folder + inside);
  };
  if (const char* const home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') add_toolkit(home);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) found.emplace_back(name);
  add_toolkit("/usr/local/cuda");
  return found;
}

std::string last_error() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

std::string CuptiLibrary::load(const char* named) {
  void* library = nullptr;
  if (named != nullptr && *named != '\0') {
    library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return last_error();
    path = named;
  } else if (path = mapped("libcupti.so"); !path.empty()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  }
  std::string reason;
  for (const std::string& candidate : candidates()) {
    if (library != nullptr) break;
    path = candidate;
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr && (reason.empty() || path.find('/') == std::string::npos)) reason = last_error();
  }
  if (library == nullptr) return reason;

  Symbols symbols{library};
  symbols.required("cuptiGetVersion", get_version);
  symbols.required("cuptiSubscribe", subscribe);
  symbols.optional("cuptiSubscribe_v2", subscribe_v2);
  symbols.required("cuptiUnsubscribe", unsubscribe);
  symbols.required("cuptiFinalize", finalize);
  symbols.required("cuptiEnableCallback", enable_callback);
  symbols.required("cuptiGetCallbackName", callback_name);
  symbols.required("cuptiGetResultString", result_string);
  symbols.required("cuptiGetTimestamp", timestamp);
  symbols.required("cuptiGetStreamIdEx", stream_id);
  symbols.optional("cuptiGetGraphNodeId", graph_node_id);
  symbols.required("cuptiActivityRegisterCallbacks", register_callbacks);
  symbols.required("cuptiActivityEnable", enable);
  symbols.required("cuptiActivityDisable", disable);
  symbols.required("cuptiActivityGetNextRecord", next_record);
  symbols.required("cuptiActivityGetNumDroppedRecords", dropped_records);
  symbols.required("cuptiActivityFlushAll", flush_all);
  symbols.optional("cuptiActivityFlushPeriod", flush_period);
  symbols.required("cuptiActivitySetAttribute", set_attribute);
  symbols.required("cuptiActivityGetAttribute", get_attribute);
  symbols.optional("cuptiActivityEnableAllSyncRecords", all_sync_records);
  symbols.optional("cuptiActivityEnableAllocationSource", allocation_source);
  if (!symbols.missing.empty()) return path + " has no " + symbols.missing;
  ask_version();
  return {};
}

void CuptiLibrary::ask_version() {
  if (get_version(&version) != CUPTI_SUCCESS) version = 0;
}

std::string DriverLibrary::load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return "libcuda.so.1 is not loaded";
  Symbols symbols{library};
  symbols.required("cuDriverGetVersion", version);
  symbols.optional("cuFuncGetName", function_name);
  symbols.optional("cuFuncGetParamInfo", function_parameter);
  symbols.optional("cuKernelGetName", kernel_name);
  symbols.optional("cuKernelGetParamInfo", kernel_parameter);
  symbols.required("cuPointerGetAttributes", pointer_attributes);
  return symbols.missing.empty() ? "" : "libcuda.so.1 has no " + symbols.missing;
}

}  // namespace tidepool::inject
