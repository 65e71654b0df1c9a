// A program of two ranks that uses CUDA and NCCL like other programs, to run against the dry device. If a check fails,
// the program prints the line of the check and exits with 3. With "leave" as its argument, rank 1 ends before the last
// collective.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

struct UniqueId {
  char bytes[128];
};

template <class Function>
Function* entry(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function*>(found);
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  return entry<int(Arguments...)>(name)(arguments...);
}

void expect(bool held, int line) {
  if (held) return;
  std::fprintf(stderr, "ranks: line %d\n", line);
  std::exit(3);
}

constexpr int kInt64 = 4, kFloat = 7, kSum = 0, kRanks = 2;
constexpr std::size_t kMany = 1 << 20;

std::int64_t value_at(const void* device) {
  std::int64_t value = -1;
  expect(call("cudaMemcpy", static_cast<void*>(&value), device, sizeof value, 2) == 0, __LINE__);
  return value;
}

void* memory(std::size_t bytes) {
  void* made = nullptr;
  expect(call("cudaMalloc", &made, bytes) == 0, __LINE__);
  return made;
}

int run_rank(int rank, const UniqueId& id, bool leaves) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  expect(call("cudaSetDevice", rank) == 0, __LINE__);
  void *comm = nullptr, *half = nullptr, *stream = nullptr;
  expect(call("cudaStreamCreateWithFlags", &stream, 1U) == 0, __LINE__);
  expect(call("ncclCommInitRank", &comm, kRanks, id, rank) == 0, __LINE__);
  auto* const numbers = static_cast<std::int64_t*>(memory(64));
  const std::int64_t own = rank + 1;
  expect(call("cudaMemcpy", static_cast<void*>(numbers), static_cast<const void*>(&own), sizeof own, 1) == 0, __LINE__);
  void *const data = memory(kMany * 4), *const gathered = memory(kMany * 4 * kRanks);

  using Input = const void*;
  expect(call("ncclAllReduce", Input{numbers}, static_cast<void*>(numbers + 1), std::size_t{1}, kInt64, kSum, comm,
              stream) == 0,
         __LINE__);
  expect(value_at(numbers + 1) == 3, __LINE__);
  expect(
      call("ncclAllGather", Input{numbers}, static_cast<void*>(numbers + 2), std::size_t{1}, kInt64, comm, stream) == 0,
      __LINE__);
  expect(value_at(numbers + 2) == 1 && value_at(numbers + 3) == 2, __LINE__);
  expect(call("ncclAllGather", Input{data}, gathered, kMany, kFloat, comm, stream) == 0, __LINE__);
  expect(call("ncclReduceScatter", Input{gathered}, data, kMany, kFloat, kSum, comm, stream) == 0, __LINE__);
  expect(call("ncclCommSplit", comm, 0, -rank, &half, Input{nullptr}) == 0, __LINE__);  // reverses the ranks

  // Both ranks send before they receive. Neither waits for ever, since the messages of a group move at the same time.
  expect(call("ncclGroupStart") == 0, __LINE__);
  expect(call("ncclSend", Input{numbers}, std::size_t{1}, kInt64, rank, half, stream) == 0, __LINE__);
  expect(call("ncclRecv", static_cast<void*>(numbers + 4), std::size_t{1}, kInt64, rank, half, stream) == 0, __LINE__);
  expect(call("ncclGroupEnd") == 0, __LINE__);
  expect(call("cudaStreamSynchronize", stream) == 0, __LINE__);
  expect(value_at(numbers + 4) == 2 - rank, __LINE__);

  if (leaves && rank == 1) return 0;
  expect(call("ncclAllReduce", Input{numbers}, static_cast<void*>(numbers), std::size_t{1}, kInt64, kSum, comm,
              stream) == 0,
         __LINE__);
  expect(call("cudaDeviceSynchronize") == 0, __LINE__);
  expect(value_at(numbers) == 3, __LINE__);

  // An unknown operator and an unknown rank are refused: nothing is done, and no rank waits.
  constexpr int kInvalidArgument = 4, kOwnOperators = 5;
  for (const int operation : {-1, kOwnOperators})
    expect(call("ncclAllReduce", Input{numbers}, static_cast<void*>(numbers), std::size_t{1}, kInt64, operation, comm,
                stream) == kInvalidArgument,
           __LINE__);
  for (const int root : {-1, kRanks})
    expect(call("ncclBroadcast", Input{numbers}, static_cast<void*>(numbers), std::size_t{1}, kInt64, root, comm,
                stream) == kInvalidArgument,
           __LINE__);
  expect(entry<const char*(void*)>("ncclGetLastError")(comm) ==
             std::string_view{
                 "no communicator, an unknown element type or reduction, or a rank outside of the communicator"},
         __LINE__);
  void* other = nullptr;
  expect(call("cudaSetDevice", 1 - rank) == 0 && call("cudaMalloc", &other, std::size_t{1}) != 0, __LINE__);
  expect(call("ncclCommDestroy", half) == 0 && call("ncclCommDestroy", comm) == 0, __LINE__);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool leaves = count > 1 && std::strcmp(arguments[1], "leave") == 0;
  UniqueId id{};
  std::memcpy(id.bytes, "an id of the test", 17);
  std::array<pid_t, kRanks> ranks{};
  for (int rank = 0; rank < kRanks; ++rank)
    if (ranks[static_cast<std::size_t>(rank)] = fork(); ranks[static_cast<std::size_t>(rank)] == 0)
      std::exit(run_rank(rank, id, leaves));
  int worst = 0;
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) worst = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  return worst;
}
