#include <memory>

#include "policies/planning/eviction/victims.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Drops the largest buffer: h_size(b) = 1 / size(b), least first. O(log n) per change of a buffer's state.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1 (largest storage first).
struct LargestFirst {
  static constexpr const char* kScore = "size, B";
  Bytes size;
  std::uint32_t order = 0;
  LargestFirst() = default;
  LargestFirst(const View& view, VersionId v) : size{view.size(v)}, order{view.state(v).order} {}
  double score() const { return static_cast<double>(size.count()); }
  bool before(const LargestFirst& other) const { return size != other.size ? size > other.size : order > other.order; }
};

const RegisterPolicy kLargest{{.name = "largest",
                               .kind = PolicyKind::kRemat,
                               .summary = "drops the largest buffer first",
                               .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1",
                               .options = {},
                               .make = [](const Options&) { return std::make_unique<DropLeast<LargestFirst>>(); }}};

}  // namespace
}  // namespace tidepool
