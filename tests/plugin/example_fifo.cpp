#include <memory>
#include <vector>

#include "simulator/registry.hpp"

namespace {

using namespace tidepool;

/// First in, first out: when an allocation does not fit, drops the version that became evictable first, of those that
/// may be dropped now. O(versions) per eviction. An example for writers of plug-ins, not a published policy.
class ExampleFifo final : public Policy {
 public:
  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    VersionId oldest;
    for (std::size_t i = 0; i < view.trace().versions().size(); ++i)
      if (const VersionId v{i}; view.droppable(v) && view.size(v) > Bytes{} &&
                                (!oldest.valid() || view.state(v).order < view.state(oldest).order))
        oldest = v;
    if (oldest.valid()) out.push_back({.verb = Verb::kDrop, .before = view.op(), .subject = oldest.value()});
  }
};

const RegisterPolicy kExampleFifo{{.name = "example-fifo",
                                   .kind = PolicyKind::kRemat,
                                   .summary = "drops what became evictable first",
                                   .paper = "an example for writers of plug-ins",
                                   .options = {},
                                   .make = [](const Options&) { return std::make_unique<ExampleFifo>(); }}};

}  // namespace
