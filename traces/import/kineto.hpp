// Records of torch.profiler (Kineto's Chrome trace), typed: device activity, launches, memory events and ranges.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/base/quantity.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A text of the file, by its index in Kineto::texts.
using KinetoText = std::uint32_t;

/// A kernel, copy or memset on a device. A kernel of NCCL or RCCL, by its name, is a kCollective.
struct KinetoActivity {
  KinetoText name = 0;
  OpKind kind = OpKind::kKernel;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::int64_t correlation = -1;  ///< the launch that it belongs to; -1 = not recorded
  Nanos start;
  Nanos duration{-1};                          ///< -1 = the profiler lost its end
  std::optional<KinetoText> group_ranks = {};  ///< of a collective, since 2024: "[0, 1, 2, 3]"
};

/// A call of the CUDA or HIP runtime or driver that may have started device activity.
struct KinetoLaunch {
  std::int64_t correlation = -1;
  std::int64_t thread = 0;  ///< of the host, as the file numbers it; -1 = its name is no number
  Nanos time;
  Nanos end;
};

enum class KinetoWaitKind : std::uint8_t {
  kStream,  ///< the host waits for a stream or an event
  kDevice,  ///< the host waits for all streams
  kEvent,   ///< a stream is told to wait for an event; the host goes on
};

/// A call that makes the host or a stream wait. The stream or event that is waited for is not recorded.
struct KinetoWait {
  KinetoWaitKind kind = KinetoWaitKind::kStream;
  KinetoText name = 0;
  std::int64_t thread = 0;
  Nanos begin;
  Nanos end;
};

/// An allocation or free of PyTorch's allocator in the memory of a device; those of the host are left out.
struct KinetoMemory {
  std::int64_t thread = 0;
  Nanos time;
  std::int64_t device = 0;
  std::int64_t address = -1;   ///< -1 = not recorded (2021)
  std::int64_t bytes = 0;      ///< negative for a free
  std::int64_t total = -1;     ///< bytes allocated on the device after this event; -1 = not recorded (2021)
  std::int64_t reserved = -1;  ///< bytes that the allocator has reserved on the device; -1 = not recorded (2021)
};

enum class KinetoRangeKind : std::uint8_t {
  kOperator,    ///< cpu_op
  kAnnotation,  ///< record_function and the profiler's own
  kModule,      ///< a call of an nn.Module
};

/// A range of time on a thread of the host.
struct KinetoRange {
  KinetoRangeKind kind = KinetoRangeKind::kOperator;
  KinetoText name = 0;
  std::int64_t thread = 0;
  Nanos begin;
  Nanos end;
  bool differentiated = false;        ///< has a sequence number: autograd recorded it, or runs its backward
  std::int64_t record_function = -1;  ///< the profiler's number for the call, until 2023 as "External id"; -1 = none
  std::int64_t input_bytes = -1;      ///< of an annotation "nccl:...": of all its inputs; -1 = not recorded
};

/// Times are those of the file, in ns, in any epoch; records are in the order of the file.
struct Kineto {
  std::vector<std::string> texts;
  std::vector<KinetoActivity> activities;
  std::vector<KinetoLaunch> launches;
  std::vector<KinetoWait> waits;
  std::vector<KinetoMemory> memory;
  bool has_host_memory = false;  ///< whether memory events of the host were left out
  std::vector<KinetoRange> ranges;
  std::string foreign;  ///< category of activity on an accelerator that is no GPU, as in "mtia_ccp_events"
  std::map<std::int64_t, std::string> devices;  ///< names, by number
  std::optional<std::int64_t> rank;             ///< of "distributedInfo"
  std::optional<std::int64_t> world_size;       ///< of "distributedInfo": the number of ranks
};

/// Reads a Kineto file of any generation since 2021: {"traceEvents": [...], ...}. Events of other kinds are ignored.
/// O(file), at several hundred MB/s; beside the file, memory for the records alone.
/// @throws InputError  "t.json:event 12: kernel without \"ts\"", events counted from 0
Kineto parse_kineto(const Input& input);

/// Puts the records in the order in which the host issued them: an activity where it was launched, activities of one
/// stream in the order in which they ran, memory events by their time. The trace has no ops of the host, and its ops
/// have no uses, because the file does not say which kernel uses which buffer. Activities that were launched before the
/// profile began come before everything else.
/// @param only  the one device to look at
/// @throws InputError  "no device 2; the file has 0, 1"
Trace to_trace(const Kineto& kineto, std::optional<std::int64_t> only = {});

/// A collective of one rank, as in its profile.
struct KinetoCollective {
  OpId op;
  std::string name;               ///< of the annotation "nccl:NAME" around its launch; else of the kernel
  std::int64_t input_bytes = -1;  ///< -1 = not recorded
  std::string group_ranks = {};   ///< "[0, 1, 2, 3]"; "" = not recorded
};

/// The buffers that activities use, from another record of the same run.
struct KinetoOperands {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  struct Life {
    std::int64_t device = 0;
    std::int64_t bytes = 0;
    bool born_before = false;
    bool outlives = false;
  };
  struct Use {
    std::size_t life = 0;
    Access access = Access::kRead;
    Evidence evidence = Evidence::kSchema;
  };
  std::vector<Life> lives;
  std::vector<std::vector<Use>> uses;  ///< by call of an operator
  std::vector<std::size_t> calls;      ///< by activity: the call that launched it; kNone = none
};

/// One rank of a job, on its own clock.
struct KinetoRank {
  Trace trace;
  Nanos begin;  ///< the file's time at which the trace's times begin
  std::vector<KinetoCollective> collectives;
};

/// Like to_trace(), with the data to simulate the rank beside others. A call in which the host waited for the device is
/// an op (kHostWait) on the stream that it waited for; so is the call of a copy that had ended when the call returned.
/// A call that waits for all streams is an op on one of them, with orders after the last ops of the others. Waits of
/// streams for each other are orders. The stream or event of a wait is not recorded, so it is inferred in agreement
/// with the recorded times (see KinetoWaits). A call is left out if no stream agrees with them.
/// @param operands  replace the file's memory events. A buffer lives from the first to the last activity that uses it,
///                  unless it existed before or outlives the step. Each activity of a call uses the call's buffers.
///                  The first activity writes the buffers that the call writes; later ones read and write them
KinetoRank to_rank(const Kineto& kineto, const KinetoOperands* operands = nullptr);

}  // namespace tidepool
