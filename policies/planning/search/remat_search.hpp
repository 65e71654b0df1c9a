// The search of tide-remat: many ways to choose drops are tried, and the best is kept.
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

/// The pool of trials: the run's own pool, or a sum of rounded bytes.
struct Trying {
  Bytes capacity;
  std::optional<Bytes> granule = {};  ///< of the sum; none: on the run's own pool
};

struct Tried {
  Candidate candidate;
  Nanos makespan;
};

/// Judges candidates by full simulation of the run, most promising first, until one comes close to the certified bound
/// or the effort is spent:
///   1. dropping by next use in several formulas;
///   2. the four most promising formulas, keeping the versions of a minimum cut until the hardest instant;
///   3. the same with variations of the cut: with less memory, since recomputed versions need some; with further cuts
///      at later instants; at instants nearby;
///   4. some published policies; more of them if no candidate has ended well;
///   5. random changes of the weights of the versions' costs, kept if they help.
/// A run is stopped when it becomes slower than the best or, without an overhead limit, takes a hundred times the step.
/// Deterministic.
class RecomputeSearch {
 public:
  /// @param effort    below kLittle: only the two most promising; 1: about a second if the trace has 10^4 ops
  /// @param reactive  the policy of the first iteration; may be none
  RecomputeSearch(const Trace& trace, const RunSpec& spec, double effort, std::string reactive);

  CandidateMaker& maker() { return maker_; }
  /// The policy of a candidate, in the form in which it was tried.
  std::unique_ptr<Policy> answer(const Candidate& candidate, Bytes capacity);

  /// Searches for the best candidates: at most kFew, best first; empty if none ended well.
  std::vector<Tried> search(const Trying& where);
  /// None if the run did not end well, or is not faster than the given time.
  std::optional<Tried> attempt(const Candidate& candidate, const Trying& where, std::optional<Nanos> faster_than);
  /// The known candidates that end well in this pool, the fastest first.
  std::vector<Tried> attempt_all(const std::vector<Tried>& known, const Trying& where);
  /// The results of a run, with its requests if it counts bytes.
  struct Record {
    Nanos makespan;
    Plan plan;
    PlaceLog log;
  };
  std::optional<Record> record(const Candidate& candidate, const Trying& where);

  /// Whether a run of this time has no overhead. At least one run must have been tried.
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
  Nanos baseline_;  ///< of the run; valid once something was tried
};

}  // namespace tidepool
