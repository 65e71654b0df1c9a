#include "simulator/studies/sweep/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <type_traits>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/one_device.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kLongestRange = 10'000;

template <class Number>
std::optional<Number> read(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

/// Appends a value unless the list has it already.
template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// The parts of a list, none of them empty.
std::vector<std::string> parts_of(std::string_view text) {
  const std::vector<std::string> parts = split_list(text);
  if (parts.empty() || std::find(parts.begin(), parts.end(), "") != parts.end())
    throw InputError{fmt::format("'{}' is not a list; expected values with commas between them", text)};
  return parts;
}

/// Makes the pool or policy once, so that a value out of range or a wrong file is an input error and not the failure of
/// a run.
template <class Info>
void refuse_values(const Info& info, const Spec& spec) {
  static_cast<void>(info.make(Options{info.name, info.options, spec.options}));
}

/// Reads specs, and checks their names and options. Two spellings of one spec count once.
/// @param field  the member of RunSpec that they are for
/// @param all    the specs that "all" stands for
template <class Part, class Info>
std::vector<Part> parse_specs(const char* option, const std::string& text, Part RunSpec::*field,
                              const std::vector<const Info*>& all) {
  std::vector<Part> specs;
  std::vector<SpecNames> seen;
  const auto add = [&](const Part& one) {
    RunSpec spec;
    spec.*field = one;
    const SpecNames names = names_of(spec);
    if (std::find(seen.begin(), seen.end(), names) != seen.end()) return;
    seen.push_back(names);
    if constexpr (std::is_same_v<Part, Spec>)
      refuse_values(find_pool(one.name), one);
    else
      for (const Spec& policy : one.policies)  // a policy in Python has no options, and is only made for runs
        if (!policy.options.empty()) refuse_values(find_policy(policy.name), policy);
    specs.push_back(one);
  };
  for (const std::string& part : naming(option, [&] { return parts_of(text); })) {
    if (part != "all")
      add(part);
    else
      for (const auto* info : all) add(info->name);
  }
  return specs;
}

bool moves_buffers(const PolicyChain& chain) {
  return std::any_of(chain.policies.begin(), chain.policies.end(),
                     [](const Spec& policy) { return find_policy(policy.name).kind != PolicyKind::kNone; });
}

/// The machines of a list. A comma may be part of a file's path: parts that name a file together are one.
std::vector<std::string> machines_in(std::string_view text) {
  std::vector<std::string> parts = parts_of(text), machines;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string joined = parts[i];
    for (std::size_t next = i + 1; next < parts.size(); ++next) {
      joined += "," + parts[next];
      if (std::error_code unknown; !std::filesystem::is_regular_file(joined, unknown)) continue;
      parts[i] = joined;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  parts.begin() + static_cast<std::ptrdiff_t>(next) + 1);
      break;
    }
    add_once(machines, parts[i]);
  }
  return machines;
}

bool is_share(std::string_view text) { return text.ends_with('x') || text.ends_with('%'); }

/// A share in the spelling of results: "0.6x" for "60%".
std::string in_one_way(const std::string& text) {
  return text.ends_with('%') ? fmt::format("{:.12g}x", *parse_share(text)) : text;
}

/// Value `i` of `count` evenly spaced values, as text: a share with up to 12 digits, or whole bytes.
std::string between(std::string_view first, std::string_view last, std::int64_t i, std::int64_t count) {
  if (is_share(first)) {
    const double a = *parse_share(first), b = *parse_share(last);
    return fmt::format("{:.12g}x", a + (b - a) * static_cast<double>(i) / static_cast<double>(count - 1));
  }
  const Int128 a = parse_bytes(first).count(), b = parse_bytes(last).count();
  return fmt::format("{}B", static_cast<std::int64_t>(a + (b - a) * i / (count - 1)));
}

}  // namespace

bool repeats(const Trace& trace) {
  return std::any_of(trace.buffers().begin(), trace.buffers().end(),
                     [](const Buffer& buffer) { return buffer.born_before && buffer.outlives; });
}

int parse_iterations(const std::string& text) {
  const auto iterations = read<int>(text);
  if (!iterations || *iterations < 1)
    throw InputError{fmt::format("--iterations: '{}' is not a number of iterations; expected 1 or more", text)};
  return *iterations;
}

std::vector<std::string> parse_capacities(std::string_view text) {
  std::vector<std::string> all;
  for (const std::string& part : parts_of(text)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      if (part != "machine") static_cast<void>(parse_capacity(part, Bytes{}));
      add_once(all, in_one_way(part));
      continue;
    }
    const std::size_t slash = part.find('/', dots);
    const std::string first = part.substr(0, dots);
    const std::string last = part.substr(dots + 2, slash == std::string::npos ? slash : slash - dots - 2);
    const auto count = slash == std::string::npos ? std::nullopt : read<std::int64_t>(part.substr(slash + 1));
    if (!count || *count < 2 || *count > kLongestRange || is_share(first) != is_share(last))
      throw InputError{
          fmt::format("'{}' is not a range; expected FIRST..LAST/COUNT, two shares or two sizes and a whole number "
                      "from 2 to {}, as in 0.3x..1.0x/8",
                      part, kLongestRange)};
    for (const std::string& end : {first, last})
      static_cast<void>(is_share(end) ? parse_capacity(end, Bytes{}) : parse_bytes(end));
    for (std::int64_t i = 0; i < *count; ++i) add_once(all, between(first, last, i, *count));
  }
  return all;
}

std::vector<std::uint64_t> parse_seeds(std::string_view text) {
  std::vector<std::uint64_t> all;
  for (const std::string& part : parts_of(text)) {
    const std::size_t dots = part.find("..");
    const auto first = read<std::int64_t>(std::string_view{part}.substr(0, dots));
    const auto last = dots == std::string::npos ? first : read<std::int64_t>(std::string_view{part}.substr(dots + 2));
    if (!first || !last || *first < 0 || *last < *first || *last - *first >= kLongestRange)
      throw InputError{fmt::format(
          "'{}' is not a seed; expected a whole number from 0 on, or a range of at most {} of them, as in 7 or 1..3",
          part, kLongestRange)};
    for (std::int64_t i = 0; i <= *last - *first; ++i) add_once(all, static_cast<std::uint64_t>(*first + i));
  }
  return all;
}

Grid::Grid(const GridText& text, const Trace& trace)
    : pools_{parse_specs("--pool", text.pool, &RunSpec::pool, all_pools())},
      policies_{parse_specs("--policy", text.policy, &RunSpec::policy, all_policies())} {
  require_one_device(trace, "a run has one memory");
  if (std::any_of(policies_.begin(), policies_.end(), moves_buffers))
    naming("--policy", [&] { require_uses(trace, "a plan could move any buffer at no cost"); });
  capacities_ = naming("--capacity", [&] { return parse_capacities(text.capacity); });
  seeds_ = naming("--seed", [&] { return parse_seeds(text.seed); });
  for (const std::string& name : naming("--machine", [&] { return machines_in(text.machine); }))
    machines_.push_back(issuing(find_machine(name), trace));
  common_.assume = Assumptions::find(text.assume);
  ideal_peak_ = tidepool::ideal_peak(trace, common_.assume);
  if (text.overhead_limit == "none") {
    common_.overhead_limit.reset();
  } else if (!text.overhead_limit.empty()) {
    common_.overhead_limit = read<double>(text.overhead_limit);
    if (!common_.overhead_limit || !(*common_.overhead_limit >= 1) || !std::isfinite(*common_.overhead_limit))
      throw InputError{
          fmt::format("--overhead-limit: '{}' is not a multiple; expected a number of at least 1, as in 2.0, or none",
                      text.overhead_limit)};
  }
  if (text.first && !text.iterations.empty())
    throw InputError{"--first: one step alone; expected no --iterations beside it"};
  common_.steady = !text.first && (!text.iterations.empty() || (repeats(trace) && common_.assume.name.empty()));
  if (common_.steady) common_.iterations = kUsualIterations;
  if (!text.iterations.empty()) common_.iterations = std::max(common_.iterations, parse_iterations(text.iterations));
  common_.count_search = text.count_search;
  for (const Machine& machine : machines_) {
    std::vector<Bytes>& of_machine = capacities_of_.emplace_back();
    for (const std::string& capacity : capacities_)
      add_once(of_machine, capacity == "machine" ? machine.capacity : parse_capacity(capacity, ideal_peak_));
  }
}

std::vector<std::string> Grid::files() const {
  std::vector<std::string> all;
  const auto add = [&](const RunSpec& spec) {
    for (const std::string& file : files_of(spec)) add_once(all, file);
  };
  for (const Spec& pool : pools_) add({.pool = pool});
  for (const PolicyChain& policy : policies_) add({.policy = policy});
  return all;
}

std::size_t Grid::size() const {
  std::size_t capacities = 0;
  for (const std::vector<Bytes>& of_machine : capacities_of_) capacities += of_machine.size();
  return capacities * policies_.size() * pools_.size() * seeds_.size();
}

RunSpec Grid::at(std::size_t index) const {
  std::size_t machine = 0;
  const auto runs_on = [&] {
    return policies_.size() * pools_.size() * capacities_of_[machine].size() * seeds_.size();
  };
  while (index >= runs_on()) index -= runs_on(), ++machine;
  const auto next = [&](const auto& list) -> const auto& {
    const auto& value = list[index % list.size()];
    index /= list.size();
    return value;
  };
  RunSpec spec = common_;
  spec.seed = next(seeds_);
  spec.capacity = next(capacities_of_[machine]);
  spec.pool = next(pools_);
  spec.policy = next(policies_);
  spec.machine = machines_[machine];
  return spec;
}

}  // namespace tidepool
