// The bounds of runs, each computed once for all runs that share it.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "simulator/solvers/bounds/bound.hpp"

namespace tidepool {

/// The actions of a chain of policies, as with_text() writes them. If a policy has the option "with", this option names
/// its actions; otherwise they are all actions of its kind.
/// @throws InputError  for an unknown policy, or an unknown option of a policy that has the option "with"
std::string allowed_by(const PolicyChain& policy);

/// The query for the bound of a run: it allows the actions of the run's policies, as given by allowed_by().
/// @return  refers to `trace` and to the machine in `spec`
/// @throws InputError  as allowed_by()
BoundQuery query_of(const Trace& trace, const RunSpec& spec);

/// A cache of quick bounds. Several threads may ask; one of them computes, the others wait for it.
class BoundCache {
 public:
  /// The best quick bound for a run; none if there is none.
  std::optional<Bound> find(const Trace& trace, const RunSpec& spec);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_future<std::optional<Bound>>> known_;
};

}  // namespace tidepool
