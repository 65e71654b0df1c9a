#include "tracer/cupti/options.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tidepool::cupti {
namespace {

std::string text(const char* name, std::string otherwise = {}) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

template <class Number>
void read(const char* name, Number& number, std::string& problem) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return;
  const char* const end = value + std::strlen(value);
  Number read{};
  if (const auto [stop, error] = std::from_chars(value, end, read); error == std::errc{} && stop == end)
    number = read;
  else
    problem = std::string{name} + " is '" + value + "'; expected a whole number";
}

}  // namespace

RecorderOptions options_from_environment() {
  RecorderOptions options;
  options.folder = text(variable::kFolder);
  options.cupti = text(variable::kCupti);
  options.iteration_range = text(variable::kIterationRange, options.iteration_range);
  options.iteration_kernel = text(variable::kIterationKernel);
  options.torch = std::getenv(variable::kTorch) != nullptr;
  int wait = 0, device_buffers = 0, resolve = 1, detach = 1;
  read(variable::kSkip, options.skip, options.problem);
  read(variable::kIterations, options.iterations, options.problem);
  read(variable::kSignal, options.signal, options.problem);
  read(variable::kFlushLimit, options.flush_limit_ms, options.problem);
  read(variable::kWait, wait, options.problem);
  read(variable::kDeviceBuffers, device_buffers, options.problem);
  read(variable::kResolve, resolve, options.problem);
  read(variable::kDetach, detach, options.problem);
  options.wait = wait != 0;
  options.device_buffers = device_buffers != 0;
  options.resolve = resolve != 0;
  options.detach = detach != 0;
  return options;
}

}  // namespace tidepool::cupti
