#include "validator/cuda/spins.hpp"

#include "validator/cuda/kernels.hpp"

namespace tidepool::cuda {
namespace {

Bytes size_of(std::size_t numbers) { return Bytes{static_cast<std::int64_t>(numbers * sizeof(std::uint32_t))}; }

}  // namespace

Spins::Spins(const Gpu& gpu, const DeviceProgram& program, Address stamps)
    : gpu_{gpu},
      predecessors_{program},
      stamps_{stamps},
      before_{allocate(gpu, size_of(predecessors_.all().size() + 1), "the order of the steps")},
      spin_{gpu.kernel("tidepool_spin")},
      copied_{make_event(gpu, false)},
      stamped_(program.steps.size()),
      stampers_(program.lanes.count()) {
  std::vector<std::uint32_t> before = predecessors_.all();
  before.push_back(static_cast<std::uint32_t>(program.steps.size()));
  gpu.driver()(gpu.driver().copy_in_now, before_.get(), static_cast<const void*>(before.data()),
               before.size() * sizeof(std::uint32_t));
  for (std::uint32_t number = 0; number < program.steps.size(); ++number) {
    if (program.steps[number].kind != TaskKind::kRun) continue;
    for (const std::uint32_t step : predecessors_.of(number)) {
      const DeviceStep& other = program.steps[step];
      if (other.kind == TaskKind::kRun || stamped_[step]) continue;
      stamped_[step].emplace(make_event(gpu, false));
      if (!stampers_[other.lane]) stampers_[other.lane].emplace(make_stream(gpu));
    }
  }
}

void Spins::spin(Stream stream, std::uint32_t number, std::size_t first, std::uint32_t count, std::uint64_t duration) {
  launch(gpu_, spin_, 1, 1, stream, stamps_, number, before_.get() + first * sizeof(std::uint32_t), count, duration);
}

void Spins::spin_op(Stream stream, std::uint32_t step, std::uint64_t duration) {
  const auto before = predecessors_.of(step);
  for (const std::uint32_t other : before)
    if (stamped_[other]) gpu_.driver()(gpu_.driver().stream_wait, stream, stamped_[other]->get(), 0U);
  if (before.empty())
    spin(stream, step, predecessors_.all().size(), 1, duration);
  else
    spin(stream, step, predecessors_.first(step), static_cast<std::uint32_t>(before.size()), duration);
}

void Spins::after_copy(Stream stream, const DeviceStep& step, std::uint32_t number) {
  if (!stamped_[number]) return;
  const Driver& driver = gpu_.driver();
  Stream stamper = stampers_[step.lane]->get();
  driver(driver.event_record, copied_.get(), stream);
  driver(driver.stream_wait, stamper, copied_.get(), 0U);
  stamp(stamper, number);
  driver(driver.event_record, stamped_[number]->get(), stamper);
}

void Spins::join(Stream stream) {
  const Driver& driver = gpu_.driver();
  for (const std::optional<Owned<Stream>>& stamper : stampers_) {
    if (!stamper) continue;
    driver(driver.event_record, copied_.get(), stamper->get());
    driver(driver.stream_wait, stream, copied_.get(), 0U);
  }
}

}  // namespace tidepool::cuda
