#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Counts bytes and nothing else: a request fits when the sum of live bytes stays within the capacity. No memory
/// behaves like this; it is the lower bound of every pool and the assumption of papers that know no addresses.
class Ideal final : public Pool {
 public:
  void start(const Trace&, Bytes capacity, Device&) override { free_ = capacity; }
  std::optional<Block> place(const Request& request) override {
    if (request.size > free_) return {};
    free_ -= request.size;
    return Block{kNoAddress, request.size};
  }
  void release(const Block& block) override { free_ += block.size; }
  Bytes largest_hole() const override { return free_; }

 private:
  Bytes free_;
};

const RegisterPool kIdeal{{.name = "ideal",
                           .summary = "counts bytes: no addresses, no rounding, no fragmentation",
                           .paper = "the assumption of address-blind papers, among them Kirisame et al., ICLR 2021",
                           .options = {},
                           .make = [](const Options&) { return std::make_unique<Ideal>(); },
                           .has_addresses = false}};

}  // namespace
}  // namespace tidepool
