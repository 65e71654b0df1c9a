#include <algorithm>
#include <optional>

#include "simulator/packing/follower.hpp"
#include "simulator/pools/hole_map.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Serves a step from a layout that was planned for another one: the same program with a skipped op, an extra
/// allocation or another batch size. Requests are recognised by their sizes alone, in order (class Follower), as a live
/// allocator must. What is recognised gets its planned place; what is not, or finds that place taken, gets the lowest
/// place in the fallback region, [height, height + fallback), else the hole in the planned region that the plan needs
/// last, else the lowest place beyond both. A step whose requests all find their places needs `height`; one that
/// deviates needs no more than height + fallback unless a request is counted as `beyond`.
class LayoutPool final : public Pool {
 public:
  explicit LayoutPool(const Options& options) : fallback_{options.bytes("fallback")} {
    if (const std::string& file = options.word("file"); !file.empty()) layout_ = read_layout(file);
  }

  void start(const Trace&, Bytes capacity, Device&) override {
    capacity_ = capacity;
    holes_.emplace(capacity);
    follower_.emplace(layout_.requests, layout_.existing);
    planned_ = fallen_back_ = beyond_ = 0;
  }

  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    const Bytes size = std::max(round_up(request.size, layout_.alignment), layout_.alignment);
    if (const std::optional<std::size_t> which = follower_->next(request.size)) {
      const Bytes planned = layout_.requests[*which].offset;
      if (holes_->place_at(planned, size)) {
        ++planned_;
        return Block{planned, size};
      }
    }
    const std::optional<Bytes> address = place_elsewhere(size);
    if (!address) return {};
    ++fallen_back_;
    if (*address + size > limit()) ++beyond_;
    return Block{*address, size};
  }

  void release(const Block& block) override { holes_->release(block); }
  Bytes largest_hole() const override { return holes_->largest(); }

  std::vector<Count> counts() const override {
    return {{"planned", planned_},
            {"fallback", fallen_back_},
            {"beyond", beyond_},
            {"resynchronised", follower_->resynchronised()},
            {"worst_case_bytes", limit().count()}};
  }

 private:
  Bytes limit() const { return round_up(layout_.height, layout_.alignment) + fallback_; }

  std::optional<Bytes> place_elsewhere(Bytes size) {
    const Bytes height = round_up(layout_.height, layout_.alignment);
    const std::optional<Bytes> above = holes_->place_above(height, size);
    if (above && *above + size <= limit()) return above;
    const std::optional<Bytes> below = least_missed(height, size);
    if (!below) return above;
    if (above) holes_->release({*above, size});
    holes_->place_at(*below, size);
    return below;
  }

  /// The hole below `height` that the plan needs last, the smallest among equals.
  std::optional<Bytes> least_missed(Bytes height, Bytes size) const {
    std::optional<Bytes> best;
    std::size_t longest = 0;
    holes_->for_each_hole(size, [&](Bytes address) {
      if (address + size > height || longest == follower_->length()) return;
      const std::size_t unused = follower_->unused_for(address, size, follower_->length());
      if (best && unused <= longest) return;
      best = address;
      longest = unused;
    });
    return best;
  }

  Bytes fallback_, capacity_;
  LayoutFile layout_{
      .trace_hash = {}, .alignment = 512_B, .height = {}, .lower_bound = {}, .proof = {}, .requests = {}};
  std::optional<HoleMap> holes_;
  std::optional<Follower> follower_;
  std::int64_t planned_ = 0, fallen_back_ = 0, beyond_ = 0;
};

const RegisterPool kRegister{
    {.name = "layout",
     .summary = "a layout planned for another step (pack --layout-out), kept while the program deviates from it",
     .paper = "Tidepool; SmartPool (arXiv 1903.06631) and STAlloc (arXiv 2507.16274) look up by position alone",
     .options = {{"file", "", "file", "the layout; without one, everything falls back"},
                 {"fallback", "64MiB", "bytes", "region above the plan's height for what is not in the plan"}},
     .make = [](const Options& options) { return std::make_unique<LayoutPool>(options); }}};

}  // namespace
}  // namespace tidepool
