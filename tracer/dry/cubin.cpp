#include "tracer/dry/cubin.hpp"

#include <elf.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "tracer/dry/lz4_block.hpp"

namespace tidepool::dry {
namespace {

using Bytes = std::span<const std::byte>;

/// The value at `offset`; zero if not all of its bytes are there.
template <class T>
T value_at(Bytes bytes, std::size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset)
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// `size` bytes from `offset` on; empty if not all of them are there.
Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset ? bytes.subspan(offset, size) : Bytes{};
}

std::string_view text_at(Bytes table, std::size_t offset) {
  if (offset >= table.size()) return {};
  const auto* first = reinterpret_cast<const char*>(table.data()) + offset;
  return {first, strnlen(first, table.size() - offset)};
}

// Attributes of .nv.info sections, and the form of their values. nvdisasm prints the form as EIFMT_SVAL and the
// attributes as EIATTR_MAX_THREADS, EIATTR_REQNTID, EIATTR_KPARAM_INFO, EIATTR_REGCOUNT and EIATTR_KPARAM_INFO_V2.
constexpr std::uint8_t kSizedValue = 4;
constexpr std::uint8_t kMaxThreads = 0x05, kRequiredThreads = 0x10, kParameterInfo = 0x17, kRegisterCount = 0x2f,
                       kParameterInfoV2 = 0x45;

/// Calls take(attribute, value) for each attribute of a .nv.info section whose value has the form kSizedValue. Stops at
/// an unknown form.
template <class Take>
void each_attribute(Bytes info, Take take) {
  std::size_t at = 0;
  while (at + 4 <= info.size()) {
    const auto format = value_at<std::uint8_t>(info, at), attribute = value_at<std::uint8_t>(info, at + 1);
    const std::size_t size = format == kSizedValue ? value_at<std::uint16_t>(info, at + 2) : 0;
    if (format == 0 || format > kSizedValue) return;
    if (format == kSizedValue) take(attribute, part(info, at + 4, size));
    at += 4 + size;
  }
}

void read_kernel_attribute(KernelBinary& kernel, std::uint8_t attribute, Bytes value) {
  constexpr std::size_t kMostParameters = 4096;  // enough for 32 KiB of pointers
  if (attribute == kParameterInfo || attribute == kParameterInfoV2) {
    constexpr std::size_t kValueBytes = 12;
    if (value.size() < kValueBytes) return;
    const auto ordinal = value_at<std::uint16_t>(value, 4);
    const auto packed = value_at<std::uint32_t>(value, 8);
    if (ordinal >= kMostParameters) return;
    if (kernel.parameters.size() <= ordinal) kernel.parameters.resize(ordinal + std::size_t{1});
    // The first version packs the size into one word with alignment and space; the second has a word for the size.
    kernel.parameters[ordinal] = {value_at<std::uint16_t>(value, 6),
                                  attribute == kParameterInfo ? packed >> 18 : packed, cupti::ParameterType::kUnknown};
  } else if (attribute == kMaxThreads || attribute == kRequiredThreads) {
    kernel.most_threads =
        value_at<std::uint32_t>(value, 0) * value_at<std::uint32_t>(value, 4) * value_at<std::uint32_t>(value, 8);
  }
}

struct Section {
  std::string_view name;
  std::uint32_t type = 0, link = 0;
  std::uint64_t size = 0;
  Bytes bytes;
};

bool is_elf(Bytes image) { return image.size() >= SELFMAG && std::memcmp(image.data(), ELFMAG, SELFMAG) == 0; }

constexpr std::uint32_t kFatBinary = 0xBA55ED50;  // its first four bytes

Bytes whole_fat_binary(const std::byte* begin) {
  const Bytes header{begin, 16};
  return {begin, value_at<std::uint16_t>(header, 6) + value_at<std::uint64_t>(header, 8)};
}

std::vector<Section> read_sections(Bytes cubin) {
  const auto header = value_at<Elf64_Ehdr>(cubin, 0);
  if (!is_elf(cubin) || header.e_ident[EI_CLASS] != ELFCLASS64) return {};
  const Bytes table = part(cubin, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  std::vector<Section> sections;
  const auto entry = [&](std::size_t i) { return value_at<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr)); };
  const auto bytes_of = [&](const Elf64_Shdr& s) {
    return s.sh_type == SHT_NOBITS ? Bytes{} : part(cubin, s.sh_offset, s.sh_size);
  };
  const Bytes names = bytes_of(entry(header.e_shstrndx));
  for (std::size_t i = 0; i < table.size() / sizeof(Elf64_Shdr); ++i) {
    const Elf64_Shdr s = entry(i);
    sections.push_back({text_at(names, s.sh_name), s.sh_type, s.sh_link, s.sh_size, bytes_of(s)});
  }
  return sections;
}

/// Sets the number of registers that a thread of each kernel uses, from the section .nv.info. That section is common to
/// all kernels and gives each kernel as an index into the symbol table.
void read_registers(const std::vector<Section>& sections, std::map<std::string, KernelBinary>& kernels) {
  const Section *symbols = nullptr, *common = nullptr;
  for (const Section& section : sections) {
    if (section.type == SHT_SYMTAB) symbols = &section;
    if (section.name == ".nv.info") common = &section;
  }
  if (symbols == nullptr || common == nullptr || symbols->link >= sections.size()) return;
  each_attribute(common->bytes, [&](std::uint8_t attribute, Bytes value) {
    if (attribute != kRegisterCount) return;
    const auto symbol =
        value_at<Elf64_Sym>(symbols->bytes, std::size_t{value_at<std::uint32_t>(value, 0)} * sizeof(Elf64_Sym));
    const auto found = kernels.find(std::string{text_at(sections[symbols->link].bytes, symbol.st_name)});
    if (found != kernels.end()) found->second.registers = value_at<std::uint32_t>(value, 4);
  });
}

}  // namespace

std::map<std::string, KernelBinary> read_cubin(Bytes cubin) {
  constexpr std::string_view kInfo = ".nv.info.", kShared = ".nv.shared.";
  std::map<std::string, KernelBinary> kernels;
  const auto sections = read_sections(cubin);
  for (const Section& section : sections)
    if (section.name.starts_with(kInfo)) {
      KernelBinary& kernel = kernels[std::string{section.name.substr(kInfo.size())}];
      each_attribute(section.bytes,
                     [&](std::uint8_t attribute, Bytes value) { read_kernel_attribute(kernel, attribute, value); });
    }
  for (const Section& section : sections)
    if (section.name.starts_with(kShared))
      if (const auto found = kernels.find(std::string{section.name.substr(kShared.size())}); found != kernels.end())
        found->second.shared_bytes = static_cast<std::uint32_t>(section.size);
  read_registers(sections, kernels);
  return kernels;
}

Cubin cubin_for_device(Bytes fat_binary, int major, int minor) {
  constexpr std::uint16_t kElf = 2;
  constexpr std::uint64_t kLz4 = 0x2000;  // in the flags of an entry; zstd is 0x8000
  constexpr std::uint64_t kMostBytes = std::uint64_t{128}
                                       << 20;  // of one unpacked cubin: damaged bytes must not fill the memory
  if (value_at<std::uint32_t>(fat_binary, 0) != kFatBinary) return {};
  const auto header_bytes = value_at<std::uint16_t>(fat_binary, 6);
  Bytes entries = part(fat_binary, header_bytes, value_at<std::uint64_t>(fat_binary, 8));
  Bytes best, best_header;
  int best_minor = -1;
  while (entries.size() >= 64) {
    const std::uint64_t header = value_at<std::uint32_t>(entries, 4), size = value_at<std::uint64_t>(entries, 8);
    const Bytes body = part(entries, header, size);
    if (header < 64 || body.empty()) break;
    const auto capability = static_cast<int>(value_at<std::uint32_t>(entries, 28) & 0xffff);
    if (value_at<std::uint16_t>(entries, 0) == kElf && capability / 10 == major && capability % 10 <= minor &&
        capability % 10 > best_minor)
      best = body, best_header = entries.first(header), best_minor = capability % 10;
    entries = entries.subspan(header + size);
  }
  const auto packed = value_at<std::uint32_t>(best_header, 16);
  const auto unpacked = value_at<std::uint64_t>(best_header, 56);
  std::vector<std::byte> cubin;
  if (packed == 0) {
    cubin.assign(best.begin(), best.end());
  } else if (packed > best.size() || unpacked > kMostBytes) {
    return {};
  } else if ((value_at<std::uint64_t>(best_header, 40) & kLz4) != 0) {
    cubin = unpack_lz4_block(best.first(packed), unpacked);
  } else {
    cubin.resize(unpacked);
    const std::size_t got = ZSTD_decompress(cubin.data(), cubin.size(), best.data(), packed);
    cubin.resize(ZSTD_isError(got) ? 0 : got);
  }
  const int capability = cubin.empty() ? 0 : major * 10 + best_minor;
  return {std::move(cubin), capability};
}

Cubin cubin_for_device(const std::byte* fat_binary, int major, int minor) {
  return cubin_for_device(whole_fat_binary(fat_binary), major, minor);
}

Cubin cubin_of_image(Bytes image, int major, int minor) {
  if (is_elf(image)) return {{image.begin(), image.end()}, major * 10 + minor};
  return cubin_for_device(image, major, minor);
}

Bytes whole_image(const std::byte* begin) {
  if (value_at<std::uint32_t>({begin, sizeof kFatBinary}, 0) == kFatBinary) return whole_fat_binary(begin);
  if (!is_elf({begin, SELFMAG})) return {};
  const auto header = value_at<Elf64_Ehdr>({begin, sizeof(Elf64_Ehdr)}, 0);
  const Bytes table{begin + header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)};
  std::uint64_t end =
      std::max(header.e_shoff + table.size(), header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (std::size_t at = 0; at < table.size(); at += sizeof(Elf64_Shdr)) {
    const auto section = value_at<Elf64_Shdr>(table, at);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return {begin, end};
}

}  // namespace tidepool::dry
