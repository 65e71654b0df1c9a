// Work in a process of its own, which ends when its time is over.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace tidepool {

/// The text that `work` returns; none if it has not ended after so much time of the processor (or ten times as much on
/// the clock), or if Interruptible::asked(). The work is done by a copy of this process, so that it can be ended at any
/// point.
/// @throws InputError  if `work` throws it; std::runtime_error  if it throws anything else or the copy dies
/// @param used  grows by the time of the processor that the work took
std::optional<std::string> in_time(std::chrono::milliseconds limit, const std::function<std::string()>& work,
                                   std::chrono::nanoseconds& used);

}  // namespace tidepool
