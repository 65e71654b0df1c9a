#include "tracer/dry/device/collective_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <system_error>

#include "tracer/dry/ranks/pending_results.hpp"

namespace tidepool::dry {
namespace {

/// Ends the process with exit code 1, as a job ends when NCCL aborts. Called when this rank cannot send a message, or
/// when a rank that it waits for has ended or does not send the awaited message.
[[noreturn]] void give_up(const CollectiveCall& call, std::uint64_t sequence, const char* reason) {
  std::fputs(fmt::format("tidepool dry run: rank {} of {} cannot go on in {} ({} {}): {}\n", call.communicator->rank(),
                         call.communicator->ranks(), call.function, call.name, sequence, reason)
                 .c_str(),
             stderr);
  std::_Exit(1);
}

void give(const CollectiveCall& call, std::uint64_t sequence) {
  const std::span<const std::byte> input{static_cast<const std::byte*>(call.input), call.input_bytes};
  if (call.peer)
    call.communicator->send(*call.peer, sequence, input);
  else
    call.communicator->contribute(sequence, input);
}

void take(const CollectiveCall& call, std::uint64_t sequence) {
  std::vector<std::byte> result;
  if (call.peer)
    result = call.communicator->receive(*call.peer, sequence);
  else
    result = call.combine(call.communicator->contributions(sequence, call.from));
  std::memcpy(call.output, result.data(), std::min(result.size(), call.output_bytes));
}

void or_give_up(const CollectiveCall& call, std::uint64_t sequence,
                void (*work)(const CollectiveCall&, std::uint64_t)) {
  try {
    work(call, sequence);
  } catch (const MailboxError& error) {
    give_up(call, sequence, error.what());
  } catch (const std::system_error& error) {
    give_up(call, sequence, error.what());
  }
}

}  // namespace

std::uint64_t next_sequence(const CollectiveCall& call) {
  if (!call.peer) return call.communicator->next_collective();
  return call.contributes ? call.communicator->next_sent(*call.peer) : call.communicator->next_received(*call.peer);
}

std::optional<std::uint64_t> exchange(const CollectiveCall& call, std::uint64_t sequence) {
  if (!call.exchanges) return {};
  if (call.contributes) {
    pending_results().fetch(reinterpret_cast<std::uint64_t>(call.input), call.input_bytes);
    or_give_up(call, sequence, give);
  }
  if (call.output_bytes == 0) return {};
  pending_results().fetch_readers(reinterpret_cast<std::uint64_t>(call.output), call.output_bytes);
  return pending_results().add(reinterpret_cast<std::uint64_t>(call.output), call.output_bytes,
                               [call, sequence] { or_give_up(call, sequence, take); });
}

}  // namespace tidepool::dry
