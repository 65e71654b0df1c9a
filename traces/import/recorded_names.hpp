// Meaning of names in the files of other programs: NVTX ranges of a training step, streams, and files of the user's
// code.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// The phase of a range, from its name, as in "Forward", "MulBackward0" or "Optimizer.step#SGD.step". The name must
/// contain one of the words forward, fwd, backward, bwd, optimizer or optim, in any case, and no word of another phase.
std::optional<Phase> phase_named(std::string_view name);

/// Whether a range counts iterations: its name has step, iter, iteration or batch, in any case, and a number behind it
/// (only blanks and _-#:= may stand between), as in "Warm-up Step 1", "iter_12" and "ProfilerStep#3".
bool names_iteration(std::string_view name);

/// Whether a range is named by a module path: an identifier and at least one more identifier or number, joined by dots,
/// as in "encoder.layer.0.attention".
bool names_module(std::string_view name);

/// Whether a file of a call stack is Python code that the user wrote: a cell of a notebook, standard input or a .py
/// file, but not one of an installed package, of Python itself, of PyTorch's sources, or one that a compiler made.
/// @param file  as code objects name it, of any system: "/home/ada/net/model.py", "C:\\net\\model.py",
///              "<ipython-input-3-0a1b>", "<stdin>"
bool is_user_code(std::string_view file);

/// No program has so many streams, but a damaged file may claim them.
inline constexpr std::size_t kMostStreams = 4096;

/// "7" on device 0, or "1:7" on device 1: streams of other devices than 0 carry the device in their name.
inline std::string stream_name(std::int64_t device, std::int64_t stream) {
  return device == 0 ? fmt::format("{}", stream) : fmt::format("{}:{}", device, stream);
}

}  // namespace tidepool
