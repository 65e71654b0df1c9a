// Executes a plan on the memory of this machine: real bytes, one thread per lane, every read compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct HostOptions {
  bool copy_on_write = false;  ///< see Assumptions::copy_on_write
  bool threads = true;         ///< one per lane; without, everything is done in issue order
  Bytes arena = 256_MiB;       ///< most memory for content; larger plans are scaled down, a word for many bytes
  double time_scale = 0;       ///< > 0: ops and copies take this multiple of their time; needs threads
  Machine machine = {};        ///< its links time the copies; used with time_scale only
  Nanos patience = Nanos{60'000'000'000};  ///< nothing ends for so long while a lane waits: the run is stuck
  bool detail = false;                     ///< keep every transfer

  /// For tests that the checks can fail: what a backend might get wrong.
  struct Faults {
    std::optional<Verb> ignore_waits_on = {};  ///< nobody waits for kSwapOut, kSwapIn or kRun
    Nanos late_copies = {};                    ///< copies to and from the host begin so much later
    bool redraw = false;                       ///< a random op that runs again draws again
  } faults = {};
};

/// The first read, in issue order, that did not find what the program without any policy would have found there.
struct Corruption {
  std::size_t action = 0;  ///< index in the plan; the number of actions if it is an output, found wrong at the end
  OpId op = {};            ///< that read it; none for outputs
  BufferId buffer = {};
  VersionId version = {};
  Bytes offset = {};  ///< first wrong byte within the buffer, rounded down to the scale
  std::uint64_t expected = 0;
  std::uint64_t found = 0;
  std::string found_is;  ///< "the content of version 5", "cleared memory" or "unknown content"
};

/// What one lane did.
struct LaneReport {
  std::string name;
  std::int64_t tasks = 0;
  Bytes bytes = {};  ///< of versions read and written
  Nanos busy = {};   ///< wall time in its tasks
};

struct TransferReport {
  std::size_t action = 0;
  Verb verb = Verb::kSwapOut;
  VersionId version = {};
  Bytes bytes = {};
  Nanos measured = {};  ///< divided by the time scale if there is one
};

enum class HostOutcome : std::uint8_t { kOk, kCorrupt, kStuck };
std::string_view to_text(HostOutcome outcome);

struct HostReport {
  HostOutcome outcome = HostOutcome::kOk;
  std::string message;  ///< why, unless ok
  Bytes corrupt = {};   ///< bytes read that differed from what the program would have read
  std::optional<Corruption> first;
  Bytes peak = {};  ///< largest sum of bytes of versions that had places at once
  Bytes read = {};  ///< bytes compared
  Bytes unit = {};  ///< bytes that one word stood for, at most
  Nanos wall = {};
  std::optional<Nanos> measured;          ///< wall time divided by the time scale, if there is one
  std::vector<LaneReport> lanes;          ///< one for each stream, then d2h, h2d, upkeep
  std::vector<TransferReport> transfers;  ///< with HostOptions::detail, in issue order by direction
};

/// Executes `plan`. An op compares every word of its inputs with what they should hold and writes outputs whose words
/// depend on what it found; in-place updates replace the bytes where they are; places that end are cleared. At the end
/// every output of the trace is compared, wherever it is.
/// @throws PlanError   for a plan that no memory could execute, naming the action
/// @throws InputError  for a plan that has more pieces than `arena` has words
HostReport execute_on_host(const Trace& trace, const Plan& plan, const HostOptions& options = {});

}  // namespace tidepool
