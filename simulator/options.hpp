// Options of a pool or policy: declared at its registration, checked and typed at its construction.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/nearest.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// One declared option. `unit` is "bytes", "ns", "number", "on/off", "file", "text" (parsed by its owner) or the list
/// of allowed words, like "first|best". Values are written with their units: 2MiB, 10us, 0.5, on, a.layout,
/// [256:1,>:4], best.
struct OptionInfo {
  std::string name;
  std::string default_value;
  std::string unit;
  std::string meaning;
};

/// The values of all options of one pool or policy: those that the user gave, and the defaults of the others.
class Options {
 public:
  /// @throws InputError  "dtr: unknown option 'treshold', did you mean 'threshold'? (tidepool policies dtr lists them)"
  /// @throws InputError  "coop: option 'partition' is 'yes'; expected on or off"
  Options(std::string owner, const std::vector<OptionInfo>& declared, const std::map<std::string, std::string>& given,
          std::uint64_t seed = 1);

  Bytes bytes(const std::string& name) const;
  Nanos nanos(const std::string& name) const;
  double number(const std::string& name) const;
  bool flag(const std::string& name) const;
  const std::string& word(const std::string& name) const;  ///< also for files and texts
  /// Seed of the run, for policies that draw random numbers.
  std::uint64_t seed() const { return seed_; }
  /// Canonical text: "name=value,..." of every option that differs from its default.
  std::string text() const;

 private:
  std::string owner_;
  std::vector<OptionInfo> declared_;
  std::map<std::string, std::string> values_;
  std::uint64_t seed_;
};

/// A pool or policy with its options, as people write it: "name" or "name(key=value,key=value)".
struct Spec {
  std::string text;  ///< as it was written
  std::string name;
  std::map<std::string, std::string> options;

  /// @throws InputError  "'coop(window': expected name(key=value,...)"
  Spec(const std::string& written);
  Spec(const char* written) : Spec{std::string{written}} {}

  bool operator==(const Spec&) const = default;
};

/// Policies that are asked one after the other, as in "dtr+coop(window=1MiB)".
struct PolicyChain {
  std::string text;  ///< as it was written
  std::vector<Spec> policies;

  /// @throws InputError  as Spec, and "'lru+lru': policy 'lru' is in the chain twice; expected each policy once"
  PolicyChain(const std::string& written);
  PolicyChain(const char* written) : PolicyChain{std::string{written}} {}

  bool operator==(const PolicyChain&) const = default;
};

/// The parts between the separators outside parentheses and brackets, without spaces around each part.
std::vector<std::string> split_list(std::string_view text, char separator = ',');

}  // namespace tidepool
