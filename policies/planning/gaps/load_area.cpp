#include "policies/planning/gaps/load_area.hpp"

#include "policies/planning/gaps/range_tree.hpp"

namespace tidepool {

LoadArea::LoadArea(const StepCircle& circle) : circle_{circle}, before_(circle.size() + 1), taken_(circle.size() + 2) {
  for (std::size_t k = 0; k < circle.size(); ++k)
    before_[k + 1] = before_[k] + Int128{circle.load[k].count()} * (circle.start[k + 1] - circle.start[k]).count();
}

void LoadArea::take(const Gap& gap) {
  for_each_range(circle_.size(), gap.release + std::size_t{1}, gap.due, [&](std::size_t first, std::size_t last) {
    take_from(first, gap.size);
    take_from(last, -gap.size);
  });
}

double LoadArea::of(const Gap& gap) const {
  Int128 sum = 0;
  for_each_range(circle_.size(), gap.release + std::size_t{1}, gap.due,
                 [&](std::size_t first, std::size_t last) { sum += up_to(last) - up_to(first); });
  return static_cast<double>(sum);
}

void LoadArea::take_from(std::size_t slot, Bytes bytes) {
  const Int128 bytes_ns = Int128{bytes.count()} * circle_.start[slot].count();
  for (std::size_t i = slot + 1; i < taken_.size(); i += i & -i) {
    taken_[i].bytes += bytes.count();
    taken_[i].bytes_ns += bytes_ns;
  }
}

Int128 LoadArea::up_to(std::size_t slot) const {
  Taken sum;
  for (std::size_t i = slot; i > 0; i -= i & -i) {
    sum.bytes += taken_[i].bytes;
    sum.bytes_ns += taken_[i].bytes_ns;
  }
  return before_[slot] - (sum.bytes * circle_.start[slot].count() - sum.bytes_ns);
}

}  // namespace tidepool
