#include "simulator/plan.hpp"

#include <fmt/format.h>

namespace tidepool {
namespace {

std::string what_is_done(const Action& action) {
  switch (action.verb) {
    case Verb::kReserve:
      return fmt::format("reserve [{}, +{})", action.offset.count(), action.size.count());
    case Verb::kRelease:
      return fmt::format("release [{}, +{})", action.offset.count(), action.size.count());
    case Verb::kMap:
      return fmt::format("map [{}, +{}) to [{}, +{})", action.offset.count(), action.size.count(),
                         (kMapPage * action.subject).count(), action.size.count());
    case Verb::kUnmap:
      return fmt::format("unmap [{}, +{})", action.offset.count(), action.size.count());
    case Verb::kAlloc:
      return fmt::format("alloc version {}", action.subject);
    case Verb::kScratch:
      return fmt::format("scratch version {}", action.subject);
    case Verb::kFree:
      return fmt::format("free version {}", action.subject);
    case Verb::kRun:
      return fmt::format("run op {}", action.subject);
    case Verb::kCopy:
      return fmt::format("copy version {}", action.subject);
    case Verb::kSwapOut:
      return fmt::format("swap out version {}", action.subject);
    case Verb::kSwapIn:
      return fmt::format("swap in version {}", action.subject);
    case Verb::kDrop:
      return fmt::format("drop version {}", action.subject);
    case Verb::kAwait:
      return fmt::format("await version {}", action.subject);
    case Verb::kNext:
      return fmt::format("begin iteration {}", action.subject);
  }
  return fmt::format("verb {} version {}", static_cast<int>(action.verb), action.subject);
}

}  // namespace

std::string to_text(const Action& action) {
  return what_is_done(action) +
         (action.before.valid() ? fmt::format(" before op {}", action.before.value()) : " after the last op");
}

}  // namespace tidepool
