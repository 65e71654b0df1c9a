// NCCL's entry points of collectives and messages.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/nccl.hpp"

using namespace tidepool::dry;
using namespace tidepool::dry::nccl;

namespace {

using Contents = CollectiveCall::Contents;

/// The arguments that all collectives and messages have.
struct Arguments {
  const void* input;
  void* output;
  std::size_t count;
  int type;
  const Handle* handle;
  void* stream;

  bool valid() const { return handle != nullptr && element_bytes(type).has_value(); }
  bool valid_with(int peer) const { return valid() && peer >= 0 && peer < static_cast<int>(ranks()); }
  bool valid_with(const std::optional<ReductionOperator>& reduction) const { return valid() && reduction.has_value(); }
  Element element() const { return static_cast<Element>(type); }
  std::size_t bytes() const { return count * *element_bytes(type); }
  std::uint32_t rank() const { return handle->communicator->rank(); }
  std::uint32_t ranks() const { return handle->communicator->ranks(); }
};

std::vector<std::byte> joined(const Contents& parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Part `index` of content whose parts have `bytes` each.
std::vector<std::byte> part(const std::vector<std::byte>& all, std::size_t index, std::size_t bytes) {
  const auto begin = std::min(all.size(), index * bytes), end = std::min(all.size(), begin + bytes);
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<std::byte> first(const Contents& parts) { return parts.front(); }

/// A call with the members that all collectives have.
/// @param whole  bytes of the largest message, the same on all ranks; it decides whether values move
CollectiveCall base(const Arguments& of, const char* function, std::string_view name, std::size_t whole) {
  CollectiveCall call;
  call.function = function;
  call.name = name;
  call.communicator = of.handle->communicator;
  call.input = of.input;
  call.output = of.output;
  call.exchanges = values_matter(of.element(), whole);
  return call;
}

/// Bytes that each rank sends while `bytes` bytes, divided into one part for each rank, go once around a ring of all
/// ranks: all but one part.
double ring(const Arguments& of, std::size_t bytes) {
  return static_cast<double>(bytes) * (of.ranks() - 1) / of.ranks();
}

Result issue(const Arguments& of, const CollectiveCall& call) {
  if (of.count == 0) return nccl::kSuccess;
  DryDevice& dry_device = DryDevice::get();
  dry_device.call(dry_device.stream(of.stream), call);
  return nccl::kSuccess;
}

Result wrong() {
  return fail(kInvalidArgument,
              "no communicator, an unknown element type or reduction, or a rank outside of the communicator");
}

auto reduction_of(const Arguments& of, const ReductionOperator& made) {
  return
      [type = of.element(), made](const Contents& parts) { return reduced(parts, type, made.reduction, made.factor); };
}

Result message(const Arguments& of, int peer, bool sends) {
  if (!of.valid_with(peer)) return wrong();
  if (of.count == 0) return nccl::kSuccess;
  CollectiveCall call = base(of, sends ? "ncclSend" : "ncclRecv", sends ? "send" : "recv", of.bytes());
  call.peer = static_cast<std::uint32_t>(peer);
  call.contributes = sends;
  (sends ? call.input_bytes : call.output_bytes) = of.bytes();
  call.moved_bytes = static_cast<double>(of.bytes());
  post({std::move(call), of.stream});
  return nccl::kSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result ncclAllReduce(const void* input, void* output, std::size_t count, int type, int reduction, Handle* handle,
                     void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  const auto made = reduction_operator(reduction);
  if (!of.valid_with(made)) return wrong();
  CollectiveCall call = base(of, "ncclAllReduce", "all_reduce", of.bytes());
  call.input_bytes = call.output_bytes = of.bytes();
  call.moved_bytes = 2 * ring(of, of.bytes());
  call.from = all_ranks(of.ranks());
  call.combine = reduction_of(of, *made);
  return issue(of, call);
}

Result ncclReduce(const void* input, void* output, std::size_t count, int type, int reduction, int root, Handle* handle,
                  void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  const auto made = reduction_operator(reduction);
  if (!of.valid_with(made) || !of.valid_with(root)) return wrong();
  CollectiveCall call = base(of, "ncclReduce", "reduce", of.bytes());
  call.input_bytes = of.bytes();
  call.output_bytes = static_cast<int>(of.rank()) == root ? of.bytes() : 0;
  call.moved_bytes = static_cast<double>(of.bytes());
  call.from = all_ranks(of.ranks());
  call.combine = reduction_of(of, *made);
  return issue(of, call);
}

Result ncclReduceScatter(const void* input, void* output, std::size_t count, int type, int reduction, Handle* handle,
                         void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  const auto made = reduction_operator(reduction);
  if (!of.valid_with(made)) return wrong();
  const std::size_t whole = of.bytes() * of.ranks();
  CollectiveCall call = base(of, "ncclReduceScatter", "reduce_scatter", whole);
  call.input_bytes = whole;
  call.output_bytes = of.bytes();
  call.moved_bytes = ring(of, whole);
  call.from = all_ranks(of.ranks());
  call.combine = [reduce = reduction_of(of, *made), rank = of.rank(), bytes = of.bytes()](const Contents& parts) {
    return part(reduce(parts), rank, bytes);
  };
  return issue(of, call);
}

Result ncclAllGather(const void* input, void* output, std::size_t count, int type, Handle* handle, void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  if (!of.valid()) return wrong();
  const std::size_t whole = of.bytes() * of.ranks();
  CollectiveCall call = base(of, "ncclAllGather", "all_gather", whole);
  call.input_bytes = of.bytes();
  call.output_bytes = whole;
  call.moved_bytes = ring(of, whole);
  call.from = all_ranks(of.ranks());
  call.combine = joined;
  return issue(of, call);
}

Result ncclBroadcast(const void* input, void* output, std::size_t count, int type, int root, Handle* handle,
                     void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  if (!of.valid_with(root)) return wrong();
  CollectiveCall call = base(of, "ncclBroadcast", "broadcast", of.bytes());
  call.contributes = static_cast<int>(of.rank()) == root;
  call.input_bytes = call.contributes ? of.bytes() : 0;
  call.output_bytes = call.contributes && input == output ? 0 : of.bytes();
  call.moved_bytes = static_cast<double>(of.bytes());
  call.from = {static_cast<std::uint32_t>(root)};
  call.combine = first;
  return issue(of, call);
}
Result ncclBcast(void* buffer, std::size_t count, int type, int root, Handle* handle, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, handle, stream);
}

Result ncclAlltoAll(const void* input, void* output, std::size_t count, int type, Handle* handle, void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  if (!of.valid()) return wrong();
  const std::size_t whole = of.bytes() * of.ranks();
  CollectiveCall call = base(of, "ncclAlltoAll", "all_to_all", whole);
  call.input_bytes = call.output_bytes = whole;
  call.moved_bytes = ring(of, whole);
  call.from = all_ranks(of.ranks());
  call.combine = [rank = of.rank(), bytes = of.bytes()](const Contents& parts) {
    Contents own;
    for (const auto& each : parts) own.push_back(part(each, rank, bytes));
    return joined(own);
  };
  return issue(of, call);
}

Result ncclGather(const void* input, void* output, std::size_t count, int type, int root, Handle* handle,
                  void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  if (!of.valid_with(root)) return wrong();
  const std::size_t whole = of.bytes() * of.ranks();
  CollectiveCall call = base(of, "ncclGather", "gather", whole);
  call.input_bytes = of.bytes();
  call.output_bytes = static_cast<int>(of.rank()) == root ? whole : 0;
  call.moved_bytes = ring(of, whole);
  call.from = all_ranks(of.ranks());
  call.combine = joined;
  return issue(of, call);
}

Result ncclScatter(const void* input, void* output, std::size_t count, int type, int root, Handle* handle,
                   void* stream) {
  const Arguments of{input, output, count, type, handle, stream};
  if (!of.valid_with(root)) return wrong();
  const std::size_t whole = of.bytes() * of.ranks();
  CollectiveCall call = base(of, "ncclScatter", "scatter", whole);
  call.contributes = static_cast<int>(of.rank()) == root;
  call.input_bytes = call.contributes ? whole : 0;
  call.output_bytes = of.bytes();
  call.moved_bytes = ring(of, whole);
  call.from = {static_cast<std::uint32_t>(root)};
  call.combine = [rank = of.rank(), bytes = of.bytes()](const Contents& parts) {
    return part(parts.front(), rank, bytes);
  };
  return issue(of, call);
}

Result ncclSend(const void* input, std::size_t count, int type, int peer, Handle* handle, void* stream) {
  return message({input, nullptr, count, type, handle, stream}, peer, true);
}
Result ncclRecv(void* output, std::size_t count, int type, int peer, Handle* handle, void* stream) {
  return message({nullptr, output, count, type, handle, stream}, peer, false);
}

}  // extern "C"
#pragma GCC visibility pop
