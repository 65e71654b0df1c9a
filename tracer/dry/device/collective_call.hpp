// Work in which several ranks take part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tracer/dry/ranks/communicator.hpp"

namespace tidepool::dry {

/// One rank's part of a collective, or of a message from one rank to another.
struct CollectiveCall {
  using Contents = std::vector<std::vector<std::byte>>;

  const char* function = nullptr;  ///< name of the NCCL function
  std::string_view name;           ///< all_reduce, send, ...: the name of the collective in job files
  std::shared_ptr<Communicator> communicator;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t input_bytes = 0, output_bytes = 0;
  double moved_bytes = 0;  ///< over this rank's link in one direction, by an algorithm that uses all links
  std::optional<std::uint32_t> peer = {};  ///< of a message: the other rank

  /// Whether values move; if not, the output keeps its content.
  bool exchanges = false;
  bool contributes = true;                                              ///< other ranks need this rank's input
  std::vector<std::uint32_t> from = {};                                 ///< ranks whose contributions make the output
  std::function<std::vector<std::byte>(const Contents&)> combine = {};  ///< makes the output from their contributions
};

/// Counts the call. @return  its number, from 0, among the collectives of its communicator, the messages to its peer,
/// or those from its peer (raw::Collective::sequence)
std::uint64_t next_sequence(const CollectiveCall& call);

/// Posts this rank's input for the other ranks, if values move. The output is written when the result is fetched. The
/// process ends with exit code 1 if the input cannot be posted, or if the fetch gets no input from another rank.
/// @return  the number of the result in pending_results(); none if this rank receives no values
std::optional<std::uint64_t> exchange(const CollectiveCall& call, std::uint64_t sequence);

}  // namespace tidepool::dry
