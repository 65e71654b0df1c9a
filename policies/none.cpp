#include <memory>

#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Keeps everything: the step as it was recorded. If the step exceeds the capacity, the run is out of memory.
class None final : public Policy {};

const RegisterPolicy kNone{{.name = "none",
                            .kind = PolicyKind::kNone,
                            .summary = "keeps everything; out of memory where that does not fit",
                            .paper = "the program as it was recorded",
                            .options = {},
                            .make = [](const Options&) { return std::make_unique<None>(); }}};

}  // namespace
}  // namespace tidepool
