#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "simulator/engine/pools/hole_map.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Coop's cheap tensor partitioning: best fit over one arena. Buffers that are expensive to compute take the low end of
/// the hole and cheap ones the high end, so that cheap buffers become neighbours. With dear=density, a buffer is
/// expensive if its producer takes longer per byte than that of the trace's median buffer; with dear=name, if its
/// producer is a convolution or a matrix multiplication by name (as in OneFlow). A buffer without a producer is
/// expensive too. With groups=1, all buffers take the low end. Small buffers may have a region of their own at the top.
/// Without a limit there is no top: all buffers take the low end, in one region. O(log n) per request.
/// Paper: Zhang et al., "Coop: Memory is not a Commodity", NeurIPS 2023; code: OneFlow 25c8978c,
/// core/vm/remat/allocator.cpp with one or two groups.
class TwoEnded final : public Pool {
 public:
  explicit TwoEnded(const Options& options)
      : alignment_{size_of("two-ended", options, "alignment")},
        small_{options.bytes("small")},
        region_{options.bytes("region")},
        one_group_{options.word("groups") == "1"},
        by_name_{options.word("dear") == "name"} {}

  void start(const Trace& trace, Bytes whole, Device&) override {
    const Bytes capacity = alignment_ * (whole / alignment_);  // so that the high end of the last hole is aligned
    capacity_ = capacity;
    holes_.emplace(capacity);
    small_holes_.emplace(Bytes{});
    small_from_ = capacity;
    cheap_.assign(trace.versions().size(), false);
    if (whole == kNoLimit) return;
    if (small_ > Bytes{} && region_ < capacity) {
      // One map for each of the two parts. In the map of the small part, the other part counts as taken.
      small_from_ = alignment_ * ((capacity - region_) / alignment_);
      holes_.emplace(small_from_);
      small_holes_.emplace(capacity);
      small_holes_->place_at({}, small_from_);
    }
    if (one_group_) return;
    if (by_name_)
      rank_by_name(trace);
    else
      rank_by_density(trace);
  }

  std::optional<Block> place(const Request& request) override {
    if (request.size > capacity_) return {};
    const Bytes size = std::max(round_up(request.size, alignment_), alignment_);
    if (request.size <= small_)
      if (const std::optional<Bytes> address = small_holes_->place_best(size)) return Block{*address, size};
    const bool cheap = request.version.valid() && cheap_[request.version.index()];
    const std::optional<Bytes> address = cheap ? holes_->place_best_high(size) : holes_->place_best(size);
    if (!address) return {};
    return Block{*address, size};
  }
  void release(const Block& block) override { (block.offset >= small_from_ ? small_holes_ : holes_)->release(block); }
  Bytes largest_hole() const override { return std::max(holes_->largest(), small_holes_->largest()); }

 private:
  static constexpr std::array<std::string_view, 3> kDear{"conv", "mm", "matmul"};

  void rank_by_name(const Trace& trace) {
    for (std::size_t i = 0; i < cheap_.size(); ++i) {
      const OpId producer = trace.versions()[i].producer;
      if (!producer.valid()) continue;
      const std::string_view name = trace.text(trace.op(producer).name);
      cheap_[i] = std::none_of(kDear.begin(), kDear.end(),
                               [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
    }
  }
  void rank_by_density(const Trace& trace) {
    std::vector<double> density(trace.versions().size(), -1);
    std::vector<double> known;
    for (std::size_t i = 0; i < density.size(); ++i) {
      const VersionId v{i};
      const OpId producer = trace.version(v).producer;
      if (trace.version(v).kind == VersionKind::kView || !producer.valid() || trace.size(v) == Bytes{}) continue;
      density[i] =
          static_cast<double>(trace.op(producer).duration.count()) / static_cast<double>(trace.size(v).count());
      known.push_back(density[i]);
    }
    if (known.empty()) return;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    for (std::size_t i = 0; i < density.size(); ++i) cheap_[i] = density[i] >= 0 && density[i] <= *middle;
  }

  Bytes alignment_, small_, region_, capacity_, small_from_;
  bool one_group_, by_name_;
  std::optional<HoleMap> holes_, small_holes_;
  std::vector<bool> cheap_;  // by version
};

const RegisterPool kTwoEnded{
    {.name = "two-ended",
     .summary = "best fit; buffers that are expensive to compute at the low end of a hole, cheap ones at the high end",
     .paper = "Zhang et al., Coop: Memory is not a Commodity, NeurIPS 2023, cheap tensor partitioning",
     .options = {{"alignment", "512B", "bytes", "sizes and offsets are multiples of it"},
                 {"groups", "2", "1|2", "1: everything at the low end"},
                 {"dear", "density", "density|name",
                  "what makes a buffer expensive: its producer's time per byte, or its producer's name"},
                 {"small", "0B", "bytes", "buffers up to this live in a region of their own; OneFlow: 10kB"},
                 {"region", "10240kB", "bytes", "size of that region, at the top"}},
     .make = [](const Options& options) { return std::make_unique<TwoEnded>(options); }}};

}  // namespace
}  // namespace tidepool
