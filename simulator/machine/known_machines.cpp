// The machines that have a fixed name. Only titan-x-pcie3's links are measured; the rest is assumed until somebody
// measures it.
#include "simulator/machine/machine.hpp"

namespace tidepool {
namespace {

constexpr Bytes gib(std::int64_t count) { return Bytes{count << 30}; }
constexpr BytesPerSecond gb_per_s(double count) { return BytesPerSecond{static_cast<std::int64_t>(count * 1e9)}; }
Link link(double gb, std::int64_t latency_us, std::int64_t duplex_percent = 100) {
  return {
      .rate = gb_per_s(gb), .latency = Nanos{latency_us * 1'000}, .times = {}, .duplex_ppm = duplex_percent * 10'000};
}

}  // namespace

const std::vector<Machine>& known_machines() {
  // A device copy reads and writes: half the nominal memory bandwidth.
  static const std::vector<Machine> kMachines{
      {.name = "a100-pcie4",
       .capacity = gib(80),
       .h2d = link(26.0, 10, 71),
       .d2h = link(26.0, 10, 71),
       .device_copy = gb_per_s(967),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source =
           "assumed: nominal 80 GB; 26.0 GB/s is the host-to-device figure of nvbandwidth's README, taken for both "
           "directions, and 18.6 of it both ways at once; 10 us, and 6 us to submit a copy, of the 5 to 7 in DualPath "
           "(arXiv 2602.21548, section 5.2); half of 1,935 GB/s; 50 us for cudaMalloc, cudaFree and every page mapped "
           "or "
           "unmapped"},
      {.name = "g10-a100",
       .capacity = gib(40),
       .h2d = {BytesPerSecond{16'915'728'695}, Nanos{10'000}},
       .d2h = {BytesPerSecond{16'915'728'695}, Nanos{10'000}},
       .device_copy = gb_per_s(777),
       .segment_alloc = {},
       .segment_free = {},
       .page_map = {},
       .page_unmap = {},
       .source =
           "assumed: G10 (Zhang et al., MICRO 2023), example.config: GPU_memory_size_GB 40 and PCIe bandwidth 15.754 "
           "GB/s, both taken as multiples of 2^30 B; 10 us; half of 1,555 GB/s; allocating is free"},
      {.name = "gh200-c2c",
       .capacity = gib(96),
       .h2d = link(375, 10, 50),
       .d2h = link(297, 10, 50),
       .device_copy = gb_per_s(2000),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source =
           "assumed: nominal 96 GB; 375 and 297 GB/s as KTH published for NVLink-C2C, about half of it both "
           "ways at once (nvbandwidth issue 41); 10 us, and 6 us to submit a copy (DualPath); half of 4,000 GB/s; "
           "50 us for cudaMalloc, cudaFree and every page mapped or unmapped"},
      {.name = "h100-pcie5",
       .capacity = gib(80),
       .h2d = link(55.6, 10, 71),
       .d2h = link(55.6, 10, 71),
       .device_copy = gb_per_s(1675),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source =
           "assumed: nominal 80 GB; 55.6 GB/s is the host-to-device figure of NVIDIA's nvbandwidth article, taken "
           "for both directions, 71 % of it both ways at once as a100-pcie4; 10 us, and 6 us to submit a copy "
           "(DualPath); half of 3,350 GB/s; 50 us for cudaMalloc, cudaFree and every page mapped or "
           "unmapped"},
      {.name = "h200-pcie5",
       .capacity = Bytes{std::int64_t{143'771} << 20},
       .h2d = link(55.6, 10, 71),
       .d2h = link(55.6, 10, 71),
       .device_copy = gb_per_s(2400),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source = "assumed: 143,771 MiB as nvidia-smi shows; links and submission as h100-pcie5; half of 4,800 GB/s; 50 "
                 "us for "
                 "cudaMalloc, cudaFree and every page mapped or unmapped"},
      {.name = "p100-pcie3",
       .capacity = gib(16),
       .h2d = link(12, 10),
       .d2h = link(12, 10),
       .device_copy = gb_per_s(366),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source = "assumed: nominal 16 GB; links and submission as v100-pcie3; half of 732 GB/s; 50 us for cudaMalloc, "
                 "cudaFree and every page mapped or unmapped"},
      {.name = "titan-x-pcie3",
       .capacity = gib(12),
       .h2d = {BytesPerSecond{12'150'668'287}, Nanos{9'700}},
       .d2h = {BytesPerSecond{13'227'513'228}, Nanos{47'200}},
       .device_copy = gb_per_s(240),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .source = "links measured by the authors of AutoSwap (junzhezhang/memInfoSwap): out 47.2 us + 0.0756 ns/B, in "
                 "9.7 us + 0.0823 ns/B, pinned; assumed: nominal 12 GB; half of 480 GB/s; 50 us for cudaMalloc, "
                 "cudaFree and every page mapped or unmapped"},
      {.name = "v100-nvlink2",
       .capacity = gib(16),
       .h2d = link(65, 10),
       .d2h = link(65, 10),
       .device_copy = gb_per_s(450),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source =
           "assumed: nominal 16 GB; 65 GB/s of the nominal 75 of POWER9's NVLink 2; no figure known for both ways "
           "at once; 10 us, and 6 us to submit a copy (DualPath); half of 900 GB/s; 50 us for cudaMalloc, cudaFree and "
           "every page mapped or unmapped"},
      {.name = "v100-pcie3",
       .capacity = gib(16),
       .h2d = link(12, 10),
       .d2h = link(12, 10),
       .device_copy = gb_per_s(450),
       .segment_alloc = Nanos{50'000},
       .segment_free = Nanos{50'000},
       .page_map = Nanos{50'000},
       .page_unmap = Nanos{50'000},
       .submit = Nanos{6'000},
       .source = "assumed: nominal 16 GB; 12 GB/s of the nominal 15.754 of PCIe 3.0 x16; no figure known for both ways "
                 "at once; 10 us, and 6 us to submit a copy (DualPath); half of 900 GB/s; 50 us for cudaMalloc, "
                 "cudaFree and every page mapped or unmapped"}};
  return kMachines;
}

}  // namespace tidepool
