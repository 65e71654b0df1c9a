// Tries many ways to choose what is dropped, and keeps the best.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "policies/planning/search/remat_candidate.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// Where candidates are tried: on the run's own pool, or by a sum of rounded bytes.
struct Trying {
  Bytes capacity;
  std::optional<Bytes> granule = {};  ///< of the sum; none: on the run's own pool
};

struct Tried {
  Candidate candidate;
  Nanos makespan;
};

/// Judges candidates by full simulation of the run, in order of promise, until one is as good as the certified bound
/// says that any can be, or the effort is spent:
///   1. dropping by next use in several formulas;
///   2. what a minimum cut keeps until the instant that is hardest to get over, with each formula;
///   3. the same followed by cuts at later instants; with less room than there is, since what is recomputed needs some;
///      at other instants;
///   4. registered policies that know nothing of the future; more of them if nothing has ended well;
///   5. random changes to what each version's cost counts, kept where they help.
/// A run that becomes slower than the best is given up, and so is one that takes a hundred times the step where the run
/// has no overhead limit. Deterministic.
class RecomputeSearch {
 public:
  /// @param effort    below kLittle: the two most promising only; 1: a second or so where the trace has 10^4 ops
  /// @param reactive  what answers in the first iteration instead; none: nothing does
  RecomputeSearch(const Trace& trace, const RunSpec& spec, double effort, std::string reactive);

  CandidateMaker& maker() { return maker_; }
  /// The policy as it is tried.
  std::unique_ptr<Policy> answer(const Candidate& candidate, Bytes capacity);

  /// Searches for the best. The best first, at most kFew; none: nothing ended well.
  std::vector<Tried> search(const Trying& where);
  /// Nothing: it did not end well, or is not faster than that.
  std::optional<Tried> attempt(const Candidate& candidate, const Trying& where, std::optional<Nanos> faster_than);
  /// Those that end well there, the fastest first.
  std::vector<Tried> attempt_all(const std::vector<Tried>& known, const Trying& where);
  /// What a run by a sum of bytes came to, in full.
  struct Record {
    Nanos makespan;
    Plan plan;
    PlaceLog log;
  };
  std::optional<Record> record(const Candidate& candidate, const Trying& where);

  /// Whether a run that takes this long has lost no time at all. Something must have been tried.
  bool nothing_lost(Nanos makespan) const { return makespan <= spec_.assume.clock_start + baseline_; }

  static constexpr std::size_t kFew = 6;
  static constexpr double kLittle = 0.05;

 private:
  struct Round;
  std::unique_ptr<Policy> answer(const Candidate& candidate, const Trying& where, std::shared_ptr<PlaceLog> log);
  void offer(Round& round, const Candidate& candidate);
  void offer_all(Round& round, const std::vector<Candidate::Cut>& cuts);
  void try_plans(Round& round, std::int32_t instant);
  void improve(Round& round);

  const Trace& trace_;
  const RunSpec spec_;
  const double effort_;
  const std::string reactive_;
  CandidateMaker maker_;
  Nanos baseline_;  ///< of the run, once something was tried
};

}  // namespace tidepool
