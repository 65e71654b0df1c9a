#include "validator/cuda/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "validator/cuda/kernels.hpp"

namespace tidepool::cuda {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Nanos kPatience{60'000'000'000};
constexpr Nanos kShortSubmission{200'000};  ///< longer than the host takes to give a few commands
constexpr unsigned kThreadsPerBlock = 256;

Nanos since(Clock::time_point start) {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count()};
}

/// Pages of memory that are mapped at addresses and unmapped again, as in pools that map memory page by page.
class Pages {
 public:
  static constexpr std::size_t kCount = 16;

  explicit Pages(const Gpu& gpu) : driver_{gpu.driver()}, here_{.id = gpu.device()} {
    driver_(driver_.address_reserve, &first_, kCount * kSize, kSize, Address{}, 0ULL);
  }
  /// Unmaps the mapped pages. After a failure, only some pages are mapped.
  ~Pages() {
    for (std::size_t i = 0; i < kCount; ++i) {
      if (memory_[i] == PhysicalMemory{}) continue;
      driver_.memory_unmap.status(address(i), kSize);
      driver_.memory_release.status(memory_[i]);
    }
    driver_.address_free.status(first_, kCount * kSize);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void map() {
    const MemoryProperties properties{.location = here_};
    const MemoryAccess access{.location = here_};
    for (std::size_t i = 0; i < kCount; ++i) {
      driver_(driver_.memory_create, &memory_[i], kSize, &properties, 0ULL);
      driver_(driver_.memory_map, address(i), kSize, std::size_t{0}, memory_[i], 0ULL);
      driver_(driver_.memory_access, address(i), kSize, &access, std::size_t{1});
    }
  }
  void unmap() {
    for (std::size_t i = 0; i < kCount; ++i) {
      driver_(driver_.memory_unmap, address(i), kSize);
      driver_(driver_.memory_release, std::exchange(memory_[i], PhysicalMemory{}));
    }
  }

 private:
  static constexpr auto kSize = static_cast<std::size_t>(kMapPage.count());
  Address address(std::size_t page) const { return first_ + page * kSize; }

  const Driver& driver_;
  const MemoryLocation here_;
  Address first_{};
  std::array<PhysicalMemory, kCount> memory_{};
};

class Bench {
 public:
  Bench(const Gpu& gpu, const CalibrationOptions& options)
      : gpu_{gpu},
        driver_{gpu.driver()},
        options_{options},
        device_{allocate(gpu, options.largest * 3, "copies")},
        span_{allocate(gpu, Bytes{sizeof(Span)}, "a kernel's arguments")},
        stamp_{allocate(gpu, Bytes{sizeof(Stamp)}, "times")},
        pinned_{allocate_pinned(gpu, options.largest * 2)} {
    // Kernels write the last third of the memory; copies move the first two thirds.
    const auto words = static_cast<std::uint64_t>(options.largest.count() / 8);
    const Span span{device_.get() + 2 * size(options.largest), words, words, 0};
    driver_(driver_.copy_in_now, span_.get(), static_cast<const void*>(&span), sizeof(span));
  }

  Calibration run() {
    Calibration calibration;
    Machine& machine = calibration.machine;
    machine.name = gpu_.name();
    std::replace(machine.name.begin(), machine.name.end(), ' ', '-');
    machine.capacity = free_;
    const LinkProbe probe{.shared = false,
                          .copy = [this](bool out, Bytes bytes) { return copy_alone(out, bytes); },
                          .both = [this](Bytes bytes, int count) { return copy_both(bytes, count); }};
    measure_links(probe, options_, calibration);
    measure_memory(calibration);
    measure_timer(calibration);
    measure_slowdown(calibration);
    measure_host(calibration);
    measure_allocator(calibration);
    machine.source = measured_now(gpu_.description());
    if (!measure_pages(calibration)) machine.source += "; page_map and page_unmap assumed to cost as segments do";
    return calibration;
  }

 private:
  static std::size_t size(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

  void submit(bool out, Bytes bytes, Stream stream) {
    auto* const host = static_cast<char*>(pinned_.get()) + (out ? 0 : size(options_.largest));
    const Address device = device_.get() + (out ? 0 : size(options_.largest));
    if (out)
      driver_(driver_.copy_out, static_cast<void*>(host), device, size(bytes), stream);
    else
      driver_(driver_.copy_in, device, static_cast<const void*>(host), size(bytes), stream);
  }

  void record(const Owned<Event>& event, const Owned<Stream>& stream) {
    driver_(driver_.event_record, event.get(), stream.get());
  }
  void wait(const Owned<Event>& event) {
    if (wait_for(gpu_, event.get(), kPatience)) return;
    gpu_.abandon();
    throw Error{0, fmt::format("the device has not answered for {}", to_text(kPatience))};
  }

  /// Writes `largest` bytes, limited by the memory's rate.
  void write_all(Stream stream) {
    launch(gpu_, clear_, gpu_.processors() * 8, kThreadsPerBlock, stream, span_.get(), 0U);
  }
  void spin(Stream stream, Nanos duration = {}) {
    launch(gpu_, spin_, 1, 1, stream, stamp_.get(), 0U, Address{}, 0U, static_cast<std::uint64_t>(duration.count()));
  }

  /// Time on the device of the commands that `work` submits to the first stream. A kernel keeps the device busy until
  /// all of them have been submitted.
  template <class Work>
  Nanos timed(Work work) {
    spin(streams_[0].get(), kShortSubmission);
    record(begin_[0], streams_[0]);
    work();
    record(end_[0], streams_[0]);
    wait(end_[0]);
    return elapsed(gpu_, begin_[0].get(), end_[0].get());
  }

  Nanos copy_alone(bool out, Bytes bytes) {
    return timed([&] { submit(out, bytes, streams_[0].get()); });
  }

  std::pair<Nanos, Nanos> copy_both(Bytes bytes, int count) {
    spin(streams_[0].get(), kShortSubmission);
    record(begin_[0], streams_[0]);
    driver_(driver_.stream_wait, streams_[1].get(), begin_[0].get(), 0U);
    for (int i = 0; i < count; ++i)
      for (const bool out : {true, false}) submit(out, bytes, streams_[out ? 0 : 1].get());
    for (std::size_t i = 0; i < 2; ++i) record(end_[i], streams_[i]);
    for (std::size_t i = 0; i < 2; ++i) wait(end_[i]);
    return {elapsed(gpu_, begin_[0].get(), end_[0].get()), elapsed(gpu_, begin_[0].get(), end_[1].get())};
  }

  template <class Sample>
  double figure(Calibration& calibration, const char* name, const char* unit, Sample sample) {
    std::vector<double> values;
    sample();  // the first call takes longer
    for (int i = 0; i < options_.samples; ++i) values.push_back(sample());
    return add_figure(calibration, name, unit, std::move(values)).median;
  }

  static double rate(double amount, Nanos time) {
    return amount * 1e9 / static_cast<double>(std::max(time, 1_ns).count());
  }

  void measure_memory(Calibration& calibration) {
    const auto bytes = static_cast<double>(options_.largest.count());
    const double copy = figure(calibration, "copy within the device", "bytes/s", [&] {
      return rate(bytes, timed([&] {
                    driver_(driver_.copy_within, device_.get(), device_.get() + size(options_.largest),
                            size(options_.largest), streams_[0].get());
                  }));
    });
    calibration.machine.device_copy = BytesPerSecond{std::llround(copy / 1e6) * 1'000'000};
    figure(calibration, "memory written by a kernel", "bytes/s",
           [&] { return rate(bytes, timed([&] { write_all(streams_[0].get()); })); });
    constexpr unsigned kRounds = 4096;
    const unsigned blocks = gpu_.processors() * 8;
    figure(calibration, "fp32 arithmetic without tensor cores", "flop/s", [&] {
      const double flops = 2.0 * 8 * kRounds * blocks * kThreadsPerBlock;  // 8 multiply-adds in each round
      return rate(flops, timed([&] {
                    launch(gpu_, multiply_, blocks, kThreadsPerBlock, streams_[0].get(), stamp_.get(), kRounds);
                  }));
    });
  }

  /// Measures the step of the device's timer. Ops of timed runs begin and end at values of this timer.
  void measure_timer(Calibration& calibration) {
    figure(calibration, "step of the device's timer", "ns", [&] {
      launch(gpu_, tick_, 1, 1, streams_[0].get(), stamp_.get());
      record(end_[0], streams_[0]);
      wait(end_[0]);
      Stamp stamp{};
      driver_(driver_.copy_out_now, static_cast<void*>(&stamp), stamp_.get(), sizeof(stamp));
      return static_cast<double>(stamp.end);
    });
  }

  /// Measures by how much copies slow down a kernel that writes memory as fast as it can.
  void measure_slowdown(Calibration& calibration) {
    constexpr int kKernels = 8;
    const auto kernels = [&] {
      for (int i = 0; i < kKernels; ++i) write_all(streams_[0].get());
    };
    std::vector<double> alone;
    for (int i = 0; i < options_.samples; ++i) alone.push_back(static_cast<double>(timed(kernels).count()));
    std::sort(alone.begin(), alone.end());
    const double usual = std::max(1.0, alone[alone.size() / 2]);
    for (const bool out : {true, false}) {
      Link& link = out ? calibration.machine.d2h : calibration.machine.h2d;
      const auto copies = 2 + static_cast<int>(2 * usual / static_cast<double>(link.time(options_.largest).count()));
      const double slower =
          figure(calibration, out ? "d2h slows a kernel that writes" : "h2d slows a kernel that writes", "%", [&] {
            for (int i = 0; i < copies; ++i) submit(out, options_.largest, streams_[1].get());
            const Nanos took = timed(kernels);
            record(end_[1], streams_[1]);
            wait(end_[1]);
            return std::max(0.0, static_cast<double>(took.count()) / usual - 1) * 100;
          });
      link.slowdown_ppm = std::min<std::int64_t>(std::llround(slower * 1e4), 10'000'000);
    }
  }

  /// The host's time for one command, averaged over commands that are too few to block the host.
  template <class Submit>
  double host_time(Submit give) {
    constexpr int kCount = 200;
    const auto start = Clock::now();
    for (int i = 0; i < kCount; ++i) give();
    const Nanos took = since(start);
    record(end_[0], streams_[0]);
    wait(end_[0]);
    return static_cast<double>(took.count()) / kCount;
  }

  void measure_host(Calibration& calibration) {
    Machine& machine = calibration.machine;
    const double launch =
        figure(calibration, "launch of a kernel", "ns", [&] { return host_time([&] { spin(streams_[0].get()); }); });
    const double submitted = figure(calibration, "submission of a copy", "ns",
                                    [&] { return host_time([&] { submit(true, Bytes{1}, streams_[0].get()); }); });
    machine.launch = Nanos{std::llround(launch)};
    machine.submit = Nanos{std::llround(submitted)};
  }

  void measure_allocator(Calibration& calibration) {
    Machine& machine = calibration.machine;
    std::vector<double> frees;
    const double alloc = figure(calibration, "cudaMalloc", "ns", [&] {
      const auto start = Clock::now();
      Address memory{};
      driver_(driver_.allocate, &memory, size(options_.largest));
      const Nanos took = since(start);
      const auto again = Clock::now();
      driver_(driver_.free, memory);
      frees.push_back(static_cast<double>(since(again).count()));
      return static_cast<double>(took.count());
    });
    frees.erase(frees.begin());  // figure() leaves out the first call, too
    machine.segment_alloc = machine.page_map = Nanos{std::llround(alloc)};
    machine.segment_free = machine.page_unmap =
        Nanos{std::llround(add_figure(calibration, "cudaFree", "ns", std::move(frees)).median)};
    const auto pin = [&](Bytes bytes, const char* name) {
      return figure(calibration, name, "ns", [&] {
        const auto start = Clock::now();
        const Owned<void*> memory = allocate_pinned(gpu_, bytes);
        return static_cast<double>(since(start).count());
      });
    };
    const double small = pin(2_MiB, "pinning 2 MiB"), large = pin(options_.largest, "pinning the largest copy");
    const double more = std::max(1.0, large - small);
    machine.host.pin_rate = BytesPerSecond{
        std::max<std::int64_t>(1, std::llround(static_cast<double>((options_.largest - 2_MiB).count()) / more * 1e3)) *
        1'000'000};
    machine.host.pin_latency = Nanos{std::llround(small)};
  }

  /// @return  false if the device cannot map memory page by page or if mapping fails, for example for lack of memory.
  ///          Then `calibration` is unchanged
  bool measure_pages(Calibration& calibration) {
    try {
      int able = 0;
      driver_(driver_.device_attribute, &able, kAttributeMapsMemory, gpu_.device());
      if (able == 0) return false;
      Pages pages{gpu_};
      std::vector<double> unmaps;
      const double map = figure(calibration, "mapping a page of 2 MiB", "ns", [&] {
        const auto start = Clock::now();
        pages.map();
        const Nanos took = since(start);
        const auto again = Clock::now();
        pages.unmap();
        unmaps.push_back(static_cast<double>(since(again).count()) / Pages::kCount);
        return static_cast<double>(took.count()) / Pages::kCount;
      });
      unmaps.erase(unmaps.begin());  // figure() leaves out the first call, too
      calibration.machine.page_map = Nanos{std::llround(map)};
      calibration.machine.page_unmap =
          Nanos{std::llround(add_figure(calibration, "unmapping a page of 2 MiB", "ns", std::move(unmaps)).median)};
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  const Gpu& gpu_;
  const Driver& driver_;
  const CalibrationOptions options_;
  const Bytes free_ = gpu_.free_memory();  ///< before this object allocates any
  const Owned<Address> device_, span_, stamp_;
  const Owned<void*> pinned_;
  const Function clear_ = gpu_.kernel("tidepool_clear"), spin_ = gpu_.kernel("tidepool_spin"),
                 multiply_ = gpu_.kernel("tidepool_multiply"), tick_ = gpu_.kernel("tidepool_tick");
  const std::array<Owned<Stream>, 2> streams_{make_stream(gpu_), make_stream(gpu_)};
  const std::array<Owned<Event>, 2> begin_{make_event(gpu_, true), make_event(gpu_, true)};
  const std::array<Owned<Event>, 2> end_{make_event(gpu_, true), make_event(gpu_, true)};
};

}  // namespace

Calibration calibrate(const Gpu& gpu, const CalibrationOptions& options) { return Bench{gpu, options}.run(); }

}  // namespace tidepool::cuda
