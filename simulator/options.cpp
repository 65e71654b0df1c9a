#include "simulator/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

/// Refuses a value that its option's unit does not allow.
void check_value(const std::string& owner, const OptionInfo& option, const std::string& value) {
  if (option.unit == "bytes" || option.unit == "ns") {
    try {
      option.unit == "bytes" ? static_cast<void>(parse_bytes(value)) : static_cast<void>(parse_nanos(value));
    } catch (const InputError& error) {
      throw error.at(fmt::format("{}: option '{}'", owner, option.name));
    }
    return;
  }
  const auto expected = [&](std::string_view what) {
    return InputError{fmt::format("{}: option '{}' is '{}'; expected {}", owner, option.name, value, what)};
  };
  if (option.unit == "text" || option.unit == "file") {
    // its owner reads it
  } else if (option.unit == "number") {
    if (!read_number(value)) throw expected("a number");
  } else if (option.unit == "on/off") {
    if (value != "on" && value != "off") throw expected("on or off");
  } else {
    const std::vector<std::string> words = split_list(option.unit, '|');
    if (std::find(words.begin(), words.end(), value) == words.end())
      throw expected(fmt::format("{}", fmt::join(words, ", ")));
  }
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Options::Options(std::string owner, const std::vector<OptionInfo>& declared,
                 const std::map<std::string, std::string>& given, std::uint64_t seed)
    : owner_{std::move(owner)}, declared_{declared}, seed_{seed} {
  for (const OptionInfo& option : declared_) values_[option.name] = option.default_value;
  for (const auto& [name, value] : given) {
    if (!values_.contains(name)) {
      std::vector<std::string> known;
      for (const OptionInfo& option : declared_) known.push_back(option.name);
      const std::string near = nearest(name, known);
      const std::string hint = near.empty() ? "" : fmt::format(", did you mean '{}'?", near);
      throw InputError{
          fmt::format("{0}: unknown option '{1}'{2} (tidepool policies {0} lists them)", owner_, name, hint)};
    }
    values_[name] = value;
  }
  for (const OptionInfo& option : declared_) check_value(owner_, option, values_[option.name]);
}

Bytes Options::bytes(const std::string& name) const { return parse_bytes(values_.at(name)); }
Nanos Options::nanos(const std::string& name) const { return parse_nanos(values_.at(name)); }
double Options::number(const std::string& name) const { return read_number(values_.at(name)).value(); }
bool Options::flag(const std::string& name) const { return values_.at(name) == "on"; }
const std::string& Options::word(const std::string& name) const { return values_.at(name); }

std::string Options::text() const {
  std::vector<std::string> changed;
  for (const OptionInfo& option : declared_)
    if (const std::string& value = values_.at(option.name); value != option.default_value)
      changed.push_back(option.name + "=" + value);
  return fmt::format("{}", fmt::join(changed, ","));
}

Spec::Spec(const std::string& written) : text{written} {
  const auto malformed = [&] { return InputError{fmt::format("'{}': expected name(key=value,...)", text)}; };
  std::string_view rest = trimmed(text);
  const std::size_t open = rest.find('(');
  name = trimmed(rest.substr(0, open));
  if (name.empty() || name.find_first_of("),=") != std::string::npos) throw malformed();
  if (open == std::string_view::npos) return;
  if (rest.back() != ')') throw malformed();
  rest = rest.substr(open + 1, rest.size() - open - 2);
  if (rest.find_first_of("()") != std::string_view::npos) throw malformed();
  for (const std::string& part : split_list(rest)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) throw malformed();
    const std::string key{trimmed(std::string_view{part}.substr(0, equals))};
    if (!options.emplace(key, trimmed(std::string_view{part}.substr(equals + 1))).second)
      throw InputError{fmt::format("'{}': option '{}' is given twice", text, key)};
  }
}

PolicyChain::PolicyChain(const std::string& written) : text{written} {
  // Results name each policy and its options apart, so options of a policy that came twice could be of either.
  for (const std::string& part : split_list(text, '+')) {
    Spec policy{part};
    if (std::any_of(policies.begin(), policies.end(), [&](const Spec& other) { return other.name == policy.name; }))
      throw InputError{
          fmt::format("'{}': policy '{}' is in the chain twice; expected each policy once", text, policy.name)};
    policies.push_back(std::move(policy));
  }
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (trimmed(text).empty()) return parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (text[i] != separator || depth > 0) continue;
    parts.emplace_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.emplace_back(trimmed(text.substr(begin)));
  return parts;
}

}  // namespace tidepool
