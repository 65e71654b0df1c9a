// The registry of pools and policies by name. Each registers itself; no other file names them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/options.hpp"
#include "simulator/planner.hpp"
#include "simulator/policy.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

enum class PolicyKind : std::uint8_t { kNone, kPool, kSwap, kRemat, kHybrid, kOrder };

struct PoolInfo {
  std::string name;
  std::string summary;
  std::string paper;  ///< source: paper with section, or product and version
  std::vector<OptionInfo> options;
  std::function<std::unique_ptr<Pool>(const Options&)> make;  ///< a planner leaves it empty: RegisterPool fills it in
  bool has_addresses = true;                                  ///< false: the pool only counts bytes
  Bytes granule{256};  ///< offsets are multiples of this, unless an option "alignment" gives another number
  /// For offline planners: all lifetimes are known beforehand. As a pool, a planner serves the planned offsets.
  std::function<std::unique_ptr<Planner>(const Options&)> plan = {};
};

struct PolicyInfo {
  std::string name;
  PolicyKind kind = PolicyKind::kRemat;
  std::string summary;
  std::string paper;
  std::vector<OptionInfo> options;
  std::function<std::unique_ptr<Policy>(const Options&)> make;
};

/// A namespace-scope object of this type in the .cpp of a pool or policy registers it. `built_for` names the headers
/// that a plug-in was compiled with, by version and hash; load_plugin refuses a plug-in with other headers without
/// reading its registrations.
struct RegisterPool {
  explicit RegisterPool(PoolInfo info, std::string_view built_for = TIDEPOOL_INTERFACE);
};
struct RegisterPolicy {
  explicit RegisterPolicy(PolicyInfo info, std::string_view built_for = TIDEPOOL_INTERFACE);
};

/// Sorted by name.
std::vector<const PoolInfo*> all_pools();
std::vector<const PolicyInfo*> all_policies();

/// @throws InputError  "no pool named 'best-fitt', did you mean 'best-fit'?; known: best-fit, ..."
const PoolInfo& find_pool(const std::string& name);
const PolicyInfo& find_policy(const std::string& name);

/// Names that a spec gives, without options, and the canonical text of the options that differ from their defaults.
struct SpecNames {
  std::string pool;     ///< "best-fit"
  std::string policy;   ///< "autoswap+coop"
  std::string options;  ///< "pytorch(segments=expandable) coop(partition=off)"
  bool operator==(const SpecNames&) const = default;
};

/// @throws InputError  for an unknown pool, policy or option
SpecNames names_of(const RunSpec& spec);

/// The paths that options of the unit "file" name: those of the pool, then those of the policies.
/// @throws InputError  for an unknown pool or policy
std::vector<std::string> files_of(const RunSpec& spec);

/// Loads pools and policies from a shared library that was built against an installed Tidepool; it stays loaded.
/// @throws InputError  naming the file and the reason, as in
///   "fifo.so: built against tidepool 0.1.0+5d41402a; this is tidepool 0.1.0+7b52009b"
///   "fifo.so: registers policy 'dtr', which is known already; expected a name of its own"
///   "fifo.so: registers policy 'a+b'; expected a name of letters, digits, - and _"
///   "fifo.so: registers no pool and no policy; expected a namespace-scope RegisterPool or RegisterPolicy"
void load_plugin(const std::string& path);

}  // namespace tidepool
