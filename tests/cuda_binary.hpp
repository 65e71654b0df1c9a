// Compiled CUDA binaries in nvcc's layout, with only the parts that tests read.
#pragma once

#include <elf.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tidepool::test {

struct CudaParameter {
  std::uint16_t offset = 0, bytes = 0;
};

struct CudaKernel {
  std::string name;
  std::vector<CudaParameter> parameters;
  std::uint32_t registers = 0, shared_bytes = 0, most_threads = 0;
  bool long_sizes = false;  ///< parameters in the newer form, for more than 4 KiB of them
};

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string kernel_info(const CudaKernel& kernel) {
  std::string info;
  put(info, std::uint32_t{0x00000401});  // an attribute without a value; nvcc begins many kernels with it
  info.resize(4);
  info[0] = 1;
  for (std::uint16_t i = 0; i < kernel.parameters.size(); ++i) {
    const CudaParameter& p = kernel.parameters[i];
    put(info, static_cast<std::uint32_t>(4 | (kernel.long_sizes ? 0x45 : 0x17) << 8 | 12 << 16));
    put(info, std::uint32_t{0});
    put(info, i);
    put(info, p.offset);
    put(info, static_cast<std::uint32_t>(kernel.long_sizes ? p.bytes : p.bytes << 18 | 0x1f000));
  }
  if (kernel.most_threads != 0) {
    put(info, static_cast<std::uint32_t>(4 | 0x05 << 8 | 12 << 16));
    for (const std::uint32_t extent : {kernel.most_threads, 1u, 1u}) put(info, extent);
  }
  return info;
}

/// An ELF file with the sections of a cubin for these kernels.
inline std::string cubin(const std::vector<CudaKernel>& kernels) {
  struct Section {
    std::string name, bytes;
    std::uint32_t type = SHT_PROGBITS, link = 0;
    std::uint64_t empty_size = 0;
  };
  std::string symbol_names(1, '\0'), symbols(sizeof(Elf64_Sym), '\0'), common;
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(symbol_names.size());
    symbol_names += kernels[i].name + '\0';
    put(symbols, symbol);
    put(common, static_cast<std::uint32_t>(4 | 0x2f << 8 | 8 << 16));
    put(common, i + 1);
    put(common, kernels[i].registers);
  }
  std::vector<Section> sections{{"", "", SHT_NULL},
                                {".strtab", symbol_names, SHT_STRTAB},
                                {".symtab", symbols, SHT_SYMTAB, 1},
                                {".nv.info", common}};
  for (const CudaKernel& kernel : kernels) {
    sections.push_back({".nv.info." + kernel.name, kernel_info(kernel)});
    if (kernel.shared_bytes != 0)
      sections.push_back({".nv.shared." + kernel.name, "", SHT_NOBITS, 0, kernel.shared_bytes});
  }
  std::string names;
  sections.push_back({".shstrtab", "", SHT_STRTAB});
  std::vector<Elf64_Shdr> headers;
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    names += section.name + '\0';
    header.sh_type = section.type;
    header.sh_link = section.link;
    headers.push_back(header);
  }
  sections.back().bytes = names;
  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_shnum = static_cast<Elf64_Half>(sections.size());
  file.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  std::string body;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    headers[i].sh_offset = sizeof file + body.size();
    headers[i].sh_size = sections[i].type == SHT_NOBITS ? sections[i].empty_size : sections[i].bytes.size();
    body += sections[i].bytes;
  }
  file.e_shoff = sizeof file + body.size();
  std::string elf;
  put(elf, file);
  elf += body;
  for (const Elf64_Shdr& header : headers) put(elf, header);
  return elf;
}

enum class Packing { kNone, kLz4, kZstd };

/// An LZ4 block without matches, for at least 15 bytes of content: a token, which says that there are 15 bytes or more;
/// the number of bytes beyond 15, as bytes of 255 and a last byte; the content.
inline std::string lz4_block(const std::string& content) {
  const std::size_t more = content.size() - 15;
  return '\xf0' + std::string(more / 255, '\xff') + static_cast<char>(more % 255) + content;
}

/// A fat binary with a cubin for each compute capability (90 for 9.0).
inline std::string fat_binary(const std::vector<std::pair<std::uint32_t, std::string>>& cubins, Packing packing) {
  const bool packed = packing != Packing::kNone;
  std::string entries;
  for (const auto& [capability, elf] : cubins) {
    std::string body = elf;
    if (packing == Packing::kLz4) body = lz4_block(elf);
    if (packing == Packing::kZstd) {
      body.resize(ZSTD_compressBound(elf.size()));
      body.resize(ZSTD_compress(body.data(), body.size(), elf.data(), elf.size(), 1));
    }
    const auto stored = static_cast<std::uint32_t>(body.size());
    body.resize((body.size() + 7) / 8 * 8);
    put(entries, std::uint16_t{2});  // a cubin
    put(entries, std::uint16_t{0x101});
    put(entries, std::uint32_t{64});
    put(entries, std::uint64_t{body.size()});
    put(entries, packed ? stored : 0u);
    put(entries, std::uint32_t{0});
    put(entries, std::uint32_t{0x10008});
    put(entries, capability);
    put(entries, std::uint64_t{0});
    put(entries, std::uint64_t{packing == Packing::kZstd ? 0x8011u : packed ? 0x2011u : 0x11u});
    put(entries, std::uint64_t{0});
    put(entries, std::uint64_t{packed ? elf.size() : 0});
    entries += body;
  }
  std::string fat;
  put(fat, std::uint32_t{0xBA55ED50});
  put(fat, std::uint16_t{1});
  put(fat, std::uint16_t{16});
  put(fat, std::uint64_t{entries.size()});
  return fat + entries;
}

}  // namespace tidepool::test
