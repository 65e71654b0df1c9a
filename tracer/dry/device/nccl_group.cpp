// Groups of NCCL calls, reductions that programs make, and errors.
#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/nccl.hpp"

namespace tidepool::dry::nccl {
namespace {

thread_local int depth = 0;
thread_local std::vector<Message> kept;
thread_local std::string reason_of_error;

constexpr int kOwnOperators = 5;  // ncclNumOps: numbers from here on are the program's
std::mutex operators_mutex;
std::vector<ReductionOperator> operators;

void issue(const Message& message) {
  DryDevice& dry_device = DryDevice::get();
  dry_device.call(dry_device.stream(message.stream), message.call);
}

/// NCCL runs the messages of a group at the same time. Here, they run one after the other, so their order must be the
/// same on all ranks: by communicator, then by pair of ranks, then by direction. A send of a rank to itself comes
/// before the receive.
auto order(const Message& message) {
  const CollectiveCall& call = message.call;
  const std::uint32_t own = call.communicator->rank(), peer = call.peer.value_or(own);
  const std::uint32_t from = call.contributes ? own : peer, to = call.contributes ? peer : own;
  return std::tuple{call.communicator->id(), std::min(own, peer), std::max(own, peer), from, to, !call.contributes};
}

}  // namespace

void post(Message message) {
  if (depth > 0)
    kept.push_back(std::move(message));
  else
    issue(message);
}

Result begin_group() {
  ++depth;
  return kSuccess;
}

Result end_group() {
  if (depth == 0) return fail(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth > 0) return kSuccess;
  std::vector<Message> messages = std::exchange(kept, {});
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return order(a) < order(b); });
  for (const Message& message : messages) issue(message);
  return kSuccess;
}

int add_operator(const ReductionOperator& made) {
  const std::lock_guard lock{operators_mutex};
  operators.push_back(made);
  return kOwnOperators + static_cast<int>(operators.size()) - 1;
}

std::optional<ReductionOperator> reduction_operator(int number) {
  if (number < 0) return {};
  if (number < kOwnOperators) return ReductionOperator{static_cast<Reduction>(number), 1};
  const std::lock_guard lock{operators_mutex};
  const auto made = static_cast<std::size_t>(number - kOwnOperators);
  if (made >= operators.size()) return {};
  return operators[made];
}

bool values_matter(Element type, std::size_t bytes) {
  constexpr std::size_t kMostWhole = std::size_t{1} << 20, kMostFloats = 4096;
  return bytes <= (is_whole(type) ? kMostWhole : kMostFloats);
}

Result fail(Result result, const char* reason) {
  reason_of_error = reason;
  return result;
}

const char* last_error() { return reason_of_error.c_str(); }

}  // namespace tidepool::dry::nccl
