#include "tracer/cupti/parameter_scan.hpp"

#include <array>
#include <cstring>
#include <string>

#include "tests/catch.hpp"

namespace tidepool::parameter_scan_test {

using namespace tidepool::cupti;

namespace {

constexpr std::uint64_t kBase = 0x7f4200000000;

std::vector<FoundPointer> scanned(const KernelLayout& layout, std::vector<const void*> values, const LiveRanges& ranges,
                                  const TensorMaps& maps = {}) {
  ParameterScan scan;
  scan.scan(layout, values.data(), ranges, maps);
  return {scan.found().begin(), scan.found().end()};
}

LiveRanges one_range() {
  LiveRanges ranges;
  ranges.add(kBase, 1 << 20);
  return ranges;
}

}  // namespace

TEST_CASE("pointers among launch parameters are found, and are const if the kernel's name says so") {
  const std::uint64_t input = kBase, output = kBase + 512;
  const std::int32_t count = 7;
  KernelLayout layout{{0, 8}, {8, 8}, {16, 4}};
  apply_types(layout, parameter_types("_Z3addPKfPfi"));
  CHECK(scanned(layout, {&input, &output, &count}, one_range()) ==
        std::vector<FoundPointer>{{input, 0, 0, PointerPlace::kParameter, true, true},
                                  {output, 1, 0, PointerPlace::kParameter, false, true}});
}

TEST_CASE("the types in a name are not used if they do not fit the layout of the parameters") {
  KernelLayout more{{0, 8}, {8, 8}}, narrow{{0, 4}};
  apply_types(more, std::vector{ParameterType::kPointerToConst});
  apply_types(narrow, std::vector{ParameterType::kPointerToConst});
  CHECK(more[0].type == ParameterType::kUnknown);
  CHECK(narrow[0].type == ParameterType::kUnknown);
}

TEST_CASE("pointers inside structs passed by value are found at aligned words of the parameter buffer") {
  struct List {
    std::uint32_t count = 2, pad = 0;
    std::uint64_t pointers[2] = {kBase + 64, kBase + 128};
    std::uint64_t length = 1000;
  } list;
  CHECK(scanned({{0, sizeof list}}, {&list}, one_range()) ==
        std::vector<FoundPointer>{{kBase + 64, 0, 8, PointerPlace::kInside, false, true},
                                  {kBase + 128, 0, 16, PointerPlace::kInside, false, true}});
  // A parameter at offset 4 of the parameter buffer: its aligned words begin 4 bytes into the parameter.
  std::array<std::byte, 4 + sizeof list> shifted{};
  std::memcpy(shifted.data() + 4, &list, sizeof list);
  CHECK(scanned({{4, sizeof shifted}}, {shifted.data()}, one_range()) ==
        std::vector<FoundPointer>{{kBase + 64, 0, 12, PointerPlace::kInside, false, true},
                                  {kBase + 128, 0, 20, PointerPlace::kInside, false, true}});
}

TEST_CASE("words outside live memory are reported only if they could be device addresses") {
  const std::uint64_t unknown = 0x7f9900000000, small = 4096, huge = ~0ULL;
  const KernelLayout layout{{0, 8}, {8, 8}, {16, 8}};
  CHECK(scanned(layout, {&unknown, &small, &huge}, one_range()) ==
        std::vector<FoundPointer>{{unknown, 0, 0, PointerPlace::kParameter, false, false}});
  KernelLayout value{{0, 8, ParameterType::kValue}};
  CHECK(scanned(value, {&unknown}, one_range()).empty());  // its type in the name is no pointer
}

TEST_CASE("a tensor map that is passed by value leads to the memory for which it was encoded") {
  alignas(64) std::array<std::byte, 192> parameter{};
  for (std::size_t i = 0; i < 128; ++i) parameter[64 + i] = std::byte(i);
  TensorMaps maps;
  maps.add(parameter.data() + 64, kBase + 4096);
  CHECK(scanned({{64, 192}}, {parameter.data()}, one_range(), maps) ==
        std::vector<FoundPointer>{{kBase + 4096, 0, 64, PointerPlace::kTensorMap, false, true}});
  parameter[70] = std::byte{0xff};  // makes it another tensor map
  for (const FoundPointer& pointer : scanned({{64, 192}}, {parameter.data()}, one_range(), maps))
    CHECK(pointer.place != PointerPlace::kTensorMap);
}

TEST_CASE("the number of remembered tensor maps is limited, and the oldest ones are forgotten") {
  TensorMaps maps;
  std::array<std::byte, kTensorMapBytes> descriptor{};
  const auto numbered = [&](std::uint32_t number) {
    std::memcpy(descriptor.data(), &number, sizeof number);
    return descriptor.data();
  };
  for (std::uint32_t i = 0; i < 70'000; ++i) maps.add(numbered(i), i);
  CHECK(maps.find(numbered(69'999)) == 69'999);
  CHECK(maps.find(numbered(40'000)) == 40'000);
  CHECK(maps.find(numbered(0)) == std::nullopt);
}

TEST_CASE("a packed parameter buffer is read like its parameters, and never past its end") {
  std::array<std::uint64_t, 2> words{kBase + 8, kBase + 16};
  const auto bytes = std::as_bytes(std::span{words});
  ParameterScan scan;
  scan.scan_packed({{0, 8}, {8, 8}}, bytes, one_range(), {});
  CHECK(scan.found().size() == 2);
  scan.scan_packed({{0, 8}, {8, 16}, {0xfffffff8, 16}}, bytes, one_range(), {});
  CHECK(scan.found().size() == 1);
}

}  // namespace tidepool::parameter_scan_test
