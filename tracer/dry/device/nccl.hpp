// Types and helpers of the dry NCCL: the part of nccl.h that programs use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "tracer/dry/device/collective_call.hpp"
#include "tracer/dry/ranks/communicator.hpp"
#include "tracer/dry/ranks/reduction.hpp"

namespace tidepool::dry::nccl {

/// ncclResult_t.
enum Result : int { kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6 };

/// The object behind an ncclComm_t.
struct Handle {
  std::shared_ptr<Communicator> communicator;
};

/// A send or a receive between two ranks. The messages of a group are issued when the group ends.
struct Message {
  CollectiveCall call;
  void* stream = nullptr;
};

/// Issues a message, or keeps it for the end of the thread's group.
void post(Message message);
/// ncclGroupStart and ncclGroupEnd: groups nest, and the end of the outermost one issues the kept messages.
Result begin_group();
Result end_group();

/// A reduction: one of NCCL's own, or one that the program made.
struct ReductionOperator {
  Reduction reduction = Reduction::kSum;
  double factor = 1;  ///< multiplies every rank's input before the reduction
};
/// @return  its number as an ncclRedOp_t
int add_operator(const ReductionOperator& made);
/// The operator with this number; nothing if there is none.
std::optional<ReductionOperator> reduction_operator(int number);

/// Whether the values of a message or collective move. Integers (sizes, indices, bytes of objects) do up to 1 MiB,
/// floats (flags, norms) up to 4 KiB. More than that is data, which a dry run does not compute.
/// @param bytes  must be the same on all ranks that take part
bool values_matter(Element type, std::size_t bytes);

/// Remembers `reason` as that of the thread's last error, for ncclGetLastError. @return  `result`
Result fail(Result result, const char* reason);
const char* last_error();

}  // namespace tidepool::dry::nccl
