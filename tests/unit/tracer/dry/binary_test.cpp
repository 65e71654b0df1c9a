// Data about kernels in compiled CUDA binaries.
#include "tests/catch.hpp"
#include "tests/cuda_binary.hpp"
#include "tracer/dry/cubin.hpp"
#include "tracer/dry/lz4_block.hpp"
#include "tracer/dry/occupancy.hpp"
#include "traces/base/error.hpp"

namespace tidepool::dry::binary_test {
namespace {

using test::CudaKernel;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span{text}); }

const std::vector<CudaKernel> kTwo{{"_Z4axpyiPKfPf", {{0, 4}, {8, 8}, {16, 8}}, 32, 1024, 256},
                                   {"_Z5applyI4ListEvT_", {{0, 24200}}, 40, 0, 0, true}};

TEST_CASE("parameters, registers, shared memory and launch bounds are read from a cubin") {
  const auto kernels = read_cubin(bytes(test::cubin(kTwo)));
  REQUIRE(kernels.size() == 2);
  const KernelBinary& axpy = kernels.at("_Z4axpyiPKfPf");
  REQUIRE(axpy.parameters.size() == 3);
  CHECK(axpy.parameters[0].size == 4);
  CHECK(axpy.parameters[2].offset == 16);
  CHECK(axpy.parameters[2].size == 8);
  CHECK(axpy.registers == 32);
  CHECK(axpy.shared_bytes == 1024);
  CHECK(axpy.most_threads == 256);
  const KernelBinary& apply = kernels.at("_Z5applyI4ListEvT_");
  REQUIRE(apply.parameters.size() == 1);
  CHECK(apply.parameters[0].size == 24200);  // more than the older form can represent
  CHECK(apply.registers == 40);
  CHECK(apply.most_threads == 0);
}

TEST_CASE("a device loads the newest cubin of its own major version that is not newer than the device") {
  const auto name = [](const std::string& kernel) { return test::cubin({{kernel, {}}}); };
  for (const auto packing : {test::Packing::kNone, test::Packing::kLz4, test::Packing::kZstd}) {
    const std::string fat =
        test::fat_binary({{80, name("k80")}, {86, name("k86")}, {90, name("k90")}, {120, name("k120")}}, packing);
    for (const auto& [major, minor, wanted] :
         {std::tuple{8, 0, "k80"}, {8, 6, "k86"}, {8, 9, "k86"}, {9, 0, "k90"}, {12, 1, "k120"}}) {
      const auto kernels = read_cubin(cubin_for_device(bytes(fat), major, minor).bytes);
      REQUIRE(kernels.size() == 1);
      CHECK(kernels.begin()->first == wanted);
    }
    CHECK(cubin_for_device(bytes(fat), 8, 9).capability == 86);
    CHECK(cubin_for_device(bytes(fat), 7, 5).bytes.empty());
    CHECK(cubin_for_device(bytes(fat), 10, 0).bytes.empty());
    const Cubin whole = cubin_for_device(reinterpret_cast<const std::byte*>(fat.data()), 9, 0);
    CHECK(read_cubin(whole.bytes).contains("k90"));
  }
}

TEST_CASE("an LZ4 block may repeat its bytes, and is refused if it does not decode to the stated size") {
  // "ab", then four bytes that repeat from two bytes before, then "c" as the last literal.
  const std::string block{
      "\x20"
      "ab\x02\0\x10"
      "c",
      7};
  const auto unpacked = [&](std::size_t size) { return unpack_lz4_block(bytes(block), size); };
  const std::vector<std::byte> found = unpacked(7);
  REQUIRE(found.size() == 7);
  CHECK(std::string(reinterpret_cast<const char*>(found.data()), 7) == "abababc");
  CHECK(unpacked(6).empty());
  CHECK(unpacked(8).empty());
  for (std::size_t size = 0; size + 1 < block.size(); ++size)
    CHECK(unpack_lz4_block(bytes(block.substr(0, size)), 7).empty());
  const std::string before{
      "\x20"
      "ab\x03\0\x10"
      "c",
      7};  // goes back three bytes, but there are only two
  CHECK(unpack_lz4_block(bytes(before), 7).empty());
}

TEST_CASE("a cubin that is cut off is read as far as it goes, and a fat binary that is cut off gives no cubin") {
  const std::string elf = test::cubin(kTwo), fat = test::fat_binary({{90, elf}}, test::Packing::kZstd);
  for (std::size_t size = 0; size < elf.size(); size += 7) CHECK(read_cubin(bytes(elf.substr(0, size))).size() <= 2);
  for (std::size_t size = 0; size < fat.size(); ++size)
    CHECK(cubin_for_device(bytes(fat.substr(0, size)), 9, 0).bytes.empty());
}

TEST_CASE("a parameter whose attribute is cut off is left out, and the others keep their places") {
  std::string elf = test::cubin({{"k", {{0, 4}, {8, 8}}}});
  const std::string head{"\x04\x17\x0c\0", 4};  // of a parameter's attribute: 12 bytes follow
  elf[elf.rfind(head) + 2] = '\x7f';
  const auto kernels = read_cubin(bytes(elf));
  REQUIRE(kernels.at("k").parameters.size() == 1);
  CHECK(kernels.at("k").parameters[0].size == 4);
}

TEST_CASE("a cubin that cannot be decompressed has neither bytes nor a capability") {
  for (const auto packing : {test::Packing::kLz4, test::Packing::kZstd}) {
    std::string fat = test::fat_binary({{90, test::cubin(kTwo)}}, packing);
    std::fill(fat.begin() + 16 + 64, fat.end(), '\xff');  // all behind the header of the entry
    const Cubin cubin = cubin_for_device(bytes(fat), 9, 0);
    CHECK(cubin.bytes.empty());
    CHECK(cubin.capability == 0);
  }
}

TEST_CASE("the scarcest resource bounds the blocks of a multiprocessor") {
  const DevicePreset& h100 = device_preset("h100-80gb");
  KernelBinary kernel;
  CHECK(blocks_per_multiprocessor(h100, kernel, 1024, 0) == 2);         // 2048 threads
  CHECK(blocks_per_multiprocessor(h100, kernel, 32, 0) == 32);          // blocks
  CHECK(blocks_per_multiprocessor(h100, kernel, 128, 100 << 10) == 2);  // 228 KiB of shared memory, 1 KiB more for each
  kernel.registers = 128;                                               // 65536 / (128 * 32) = 16 warps
  CHECK(blocks_per_multiprocessor(h100, kernel, 128, 0) == 4);
  CHECK(most_threads(kernel) == 512);
  CHECK(blocks_per_multiprocessor(h100, kernel, 1024, 0) == 0);
  kernel.most_threads = 256;
  CHECK(most_threads(kernel) == 256);
  // On a T4, the driver takes no shared memory of a block, so one block may have all 64 KiB. Without shared memory,
  // threads are scarce.
  CHECK(blocks_per_multiprocessor(device_preset("t4"), {}, 128, 64 << 10) == 1);
  CHECK(blocks_per_multiprocessor(device_preset("t4"), {}, 128, 0) == 8);
}

TEST_CASE("each of the four partitions of a multiprocessor has registers for whole warps") {
  KernelBinary kernel;
  kernel.registers = 40;  // 1280 a warp: 12 warps in 16384 registers, 48 in all partitions, though 65536 / 1280 is 51.2
  CHECK(blocks_per_multiprocessor(device_preset("h100-80gb"), kernel, 64, 0) == 24);
  kernel.registers = 80;  // 2560 a warp: 6 warps in each partition
  CHECK(most_threads(kernel) == 4 * 6 * 32);
  CHECK(blocks_per_multiprocessor(device_preset("t4"), kernel, 768, 0) == 1);
  CHECK(blocks_per_multiprocessor(device_preset("t4"), kernel, 800, 0) == 0);
}

TEST_CASE("a block takes shared memory in units of 128 B, before compute capability 8.0 of 256 B") {
  CHECK(blocks_per_multiprocessor(device_preset("t4"), {}, 32, 5000) == 12);  // 65536 / 5120; 65536 / 5000 is 13.1
  // With the driver's 1024 B, 8338 B are 66 units: 233472 / 8448 is 27.6, and 233472 / 8338 is 28.0009.
  CHECK(blocks_per_multiprocessor(device_preset("h100-80gb"), {}, 32, 7314) == 27);
}

TEST_CASE("a multiprocessor of compute capability 12.0 holds 24 blocks") {
  for (const char* const name : {"rtx-pro-6000", "rtx-pro-5000", "rtx-5090"})
    CHECK(blocks_per_multiprocessor(device_preset(name), {}, 32, 0) == 24);
}

TEST_CASE("unknown devices are refused with the nearest one") {
  CHECK(device_preset("t4").major == 7);
  CHECK_THROWS_WITH(
      device_preset("h100-80g"),
      "no device named 'h100-80g', did you mean 'h100-80gb'?; known: h100-80gb, h200, a100-80gb, a100-40gb, "
      "rtx-3090, rtx-4090, rtx-4080, rtx-3060, rtx-4060, b200, rtx-pro-6000, rtx-pro-5000, rtx-5090, l40s, l4, t4");
}

}  // namespace
}  // namespace tidepool::dry::binary_test
