#include <optional>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/layout_places.hpp"

namespace tidepool {
namespace {

/// Serves a step from a layout that was planned for another step: the same program with a skipped op, an extra
/// allocation or another batch size. LayoutPlaces has the rules; it serves live jobs too.
class LayoutPool final : public Pool {
 public:
  explicit LayoutPool(const Options& options) : fallback_{options.bytes("fallback")} {
    if (const std::string& file = options.word("file"); !file.empty()) layout_ = read_layout(file);
  }

  void start(const Trace&, Bytes capacity, Device&) override { places_.emplace(layout_, fallback_, capacity, false); }
  std::optional<Block> place(const Request& request) override { return places_->place(request.size); }
  void release(const Block& block) override { places_->release(block); }
  Bytes largest_hole() const override { return places_->largest_hole(); }

  std::vector<Count> counts() const override {
    return {{"planned", places_->counts().planned},
            {"fallback", places_->counts().fallback},
            {"beyond", places_->counts().beyond},
            {"resynchronised", places_->resynchronised()},
            {"worst_case_bytes", places_->limit().count()}};
  }

 private:
  Bytes fallback_;
  LayoutFile layout_{
      .trace_hash = {}, .alignment = 512_B, .height = {}, .lower_bound = {}, .proof = {}, .requests = {}};
  std::optional<LayoutPlaces> places_;
};

const RegisterPool kLayout{
    {.name = "layout",
     .summary = "a layout planned for another step (pack --layout-out), kept while the program deviates from it",
     .paper = "Tidepool; SmartPool (arXiv 1903.06631) and STAlloc (arXiv 2507.16274) use only the position in the step",
     .options = {{"file", "", "file", "the layout; without one, the fallback region serves all requests"},
                 {"fallback", "64MiB", "bytes", "size of the region above the layout, for other requests"}},
     .make = [](const Options& options) { return std::make_unique<LayoutPool>(options); }}};

}  // namespace
}  // namespace tidepool
