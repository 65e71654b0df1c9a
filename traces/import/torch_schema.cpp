#include "traces/import/torch_schema.hpp"

#include <algorithm>
#include <array>

namespace tidepool {

namespace {

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

SchemaArgument argument(std::string_view text) {
  SchemaArgument out;
  text = text.substr(0, text.find('='));
  out.written = text.find("!)") != std::string_view::npos;
  out.name = text.substr(text.rfind(' ') + 1);
  return out;
}

}  // namespace

std::vector<SchemaArgument> schema_arguments(std::string_view schema) {
  std::vector<SchemaArgument> arguments;
  std::size_t first = schema.find('(');
  if (first == std::string_view::npos) return arguments;
  int depth = 0;
  const auto add = [&](std::size_t end) {
    const std::string_view text = schema.substr(first + 1, end - first - 1);
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin != std::string_view::npos && text.substr(begin) != "*") arguments.push_back(argument(text.substr(begin)));
    first = end;
  };
  for (std::size_t i = first; i < schema.size(); ++i) {
    const char c = schema[i];
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (depth == 0) {
      add(i);
      break;
    }
    if (c == ',' && depth == 1) add(i);
  }
  return arguments;
}

std::string_view operator_name(std::string_view text) {
  text = text.substr(0, text.find('('));
  const std::size_t colons = text.rfind("::");
  if (colons != std::string_view::npos) text.remove_prefix(colons + 2);
  return text.substr(0, text.find('.'));
}

bool is_in_place(std::string_view name) { return name.ends_with('_') && !name.ends_with("__"); }

bool overwrites(std::string_view name) {
  constexpr std::array<std::string_view, 13> kNames{
      "bernoulli_",  "cauchy_", "copy_",    "exponential_", "fill_",          "geometric_",    "normal_",
      "log_normal_", "random_", "uniform_", "zero_",        "_foreach_copy_", "_foreach_zero_"};
  return contains(kNames, name);
}

bool only_allocates(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames{"resize_",     "resize_as_", "set_",       "detach_",
                                                    "squeeze_",    "unsqueeze_", "transpose_", "t_",
                                                    "as_strided_", "swapaxes_",  "swapdims_",  "requires_grad_"};
  return name.starts_with("empty") || name.starts_with("new_empty") || name.starts_with("_empty") ||
         contains(kNames, name);
}

bool draws_random_numbers(std::string_view name) {
  constexpr std::array<std::string_view, 23> kRandom{
      "alpha_dropout", "bernoulli", "cauchy",     "dropout",          "exponential",    "feature_dropout",
      "fused_dropout", "geometric", "log_normal", "multinomial",      "native_dropout", "normal",
      "poisson",       "rand",      "rand_like",  "randint",          "randint_like",   "randn",
      "randn_like",    "random",    "randperm",   "rrelu_with_noise", "uniform"};
  const std::size_t first = name.find_first_not_of('_');
  if (first == std::string_view::npos) return false;
  name = name.substr(first, name.find_last_not_of('_') - first + 1);  // in-place and private operators have underscores
  return std::find(kRandom.begin(), kRandom.end(), name) != kRandom.end();
}

}  // namespace tidepool
