#include "traces/op_names.hpp"

#include <array>

namespace tidepool {

bool names_collective(std::string_view kernel) { return kernel.starts_with("nccl") || kernel.starts_with("rccl"); }

std::string_view copy_name(std::size_t kind) {
  static constexpr std::array<std::string_view, 14> kNames{
      "memcpy",      "memcpy HtoD",         "memcpy DtoH",         "memcpy HtoA",        "memcpy AtoH",
      "memcpy AtoA", "memcpy AtoD",         "memcpy DtoA",         "memcpy DtoD",        "memcpy HtoH",
      "memcpy PtoP", "memcpy unified HtoD", "memcpy unified DtoH", "memcpy unified DtoD"};
  return kNames[kind < kNames.size() ? kind : 0];
}

}  // namespace tidepool
