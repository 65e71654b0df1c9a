#include "simulator/studies/text/at_once.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "simulator/studies/text/interruptible.hpp"

namespace tidepool {

EndsAtOnce::EndsAtOnce(std::function<void()> last)
    : thread_{[last = std::move(last)](const std::stop_token& stop) {
        constexpr std::chrono::milliseconds kLook{50}, kPatience{500};
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock{mutex};
        std::chrono::milliseconds asked{0};
        while (asked < kPatience) {
          if (changed.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); })) return;
          if (Interruptible::asked()) asked += kLook;
        }
        last();
        std::fflush(nullptr);
        std::_Exit(Interruptible::code());
      }} {}

}  // namespace tidepool
