//===- CodeImage.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows the System V ABI, "Object files" and "Program loading", and its
// x86-64 supplement. The bytes come from a file: every offset is checked, even
// though code that is run afterwards has to be trusted anyway.
//
//===----------------------------------------------------------------------===//

#include "cpu/CodeImage.h"

#include <cinttypes>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace hyb::rt {

namespace {

Status refuse(const std::string &reason) {
  return Status(HYB_INVALID_FILE, "code of the artefact is refused: " + reason +
                                      "; compile the spec again");
}

/// More address space than any model's code needs.
constexpr uint64_t kMaxImage = uint64_t(1) << 30;

class Loader {
public:
  explicit Loader(Bytes object)
      : object(object), page(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) {}
  ~Loader() {
    if (base)
      ::munmap(base, imageSize);
  }

  Status load();

  uint8_t *takeBase() { return std::exchange(base, nullptr); }
  uint64_t size() const { return imageSize; }
  std::unordered_map<std::string, const void *> functions;

private:
  Status readProgramHeaders();
  Status checkSegment(const Elf64_Phdr &segment);
  Status copySegments();
  Status readDynamic();
  Status relocate();
  Status readSymbols();
  Status countSymbols(uint64_t *count);
  Status protect();

  /// `count` bytes of the image at virtual address `address`, or null.
  uint8_t *at(uint64_t address, uint64_t count) const {
    return address <= imageSize && count <= imageSize - address ? base + address
                                                                : nullptr;
  }
  template <typename T> bool read(uint64_t address, T *value) const {
    const uint8_t *place = at(address, sizeof(T));
    if (place)
      std::memcpy(value, place, sizeof(T));
    return place != nullptr;
  }

  Bytes object;
  uint64_t page;
  Elf64_Ehdr header = {};
  std::vector<Elf64_Phdr> segments; // PT_LOAD
  Elf64_Phdr dynamic = {}, readOnlyAfterRelocation = {};
  uint64_t relocations = 0, relocationBytes = 0;
  uint64_t symbols = 0, strings = 0, stringBytes = 0, hash = 0, gnuHash = 0;
  uint8_t *base = nullptr;
  uint64_t imageSize = 0;
};

Status Loader::checkSegment(const Elf64_Phdr &segment) {
  uint64_t end;
  if (segment.p_offset > object.size ||
      segment.p_filesz > object.size - segment.p_offset ||
      segment.p_filesz > segment.p_memsz ||
      __builtin_add_overflow(segment.p_vaddr, segment.p_memsz, &end) ||
      end > kMaxImage)
    return refuse("a segment reaches outside the object");
  if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
    return refuse("a segment is writable and executable");
  if (segment.p_vaddr < imageSize)
    return refuse("segments overlap or share a page");
  imageSize = (end + page - 1) / page * page;
  return Status();
}

Status Loader::readProgramHeaders() {
  if (object.size < sizeof(header))
    return refuse("it is too short for an ELF header");
  std::memcpy(&header, object.data, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
    return refuse("it is not a 64-bit ELF shared object");
  if (header.e_machine != EM_X86_64)
    return failure(HYB_UNSUPPORTED,
                   "code of the artefact is for ELF machine %u, this runtime "
                   "runs %u (x86-64); compile the spec for this machine",
                   header.e_machine, EM_X86_64);
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phoff > object.size ||
      header.e_phnum > (object.size - header.e_phoff) / sizeof(Elf64_Phdr))
    return refuse("its program headers do not fit");
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.data + header.e_phoff + i * sizeof(Elf64_Phdr),
                sizeof(segment));
    if (segment.p_type == PT_LOAD && segment.p_memsz > 0) {
      HYB_TRY(checkSegment(segment));
      segments.push_back(segment);
    } else if (segment.p_type == PT_DYNAMIC) {
      dynamic = segment;
    } else if (segment.p_type == PT_GNU_RELRO) {
      readOnlyAfterRelocation = segment;
    } else if (segment.p_type == PT_TLS || segment.p_type == PT_INTERP) {
      return refuse(segment.p_type == PT_TLS ? "it has thread-local storage"
                                             : "it asks for an interpreter");
    }
  }
  return segments.empty() ? refuse("it has nothing to load") : Status();
}

Status Loader::copySegments() {
  void *memory = ::mmap(nullptr, imageSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return failure(HYB_OUT_OF_MEMORY, "cannot map %" PRIu64 " bytes of code",
                   imageSize);
  base = static_cast<uint8_t *>(memory);
  for (const Elf64_Phdr &segment : segments)
    std::memcpy(base + segment.p_vaddr, object.data + segment.p_offset,
                segment.p_filesz);
  return Status();
}

Status Loader::readDynamic() {
  for (uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= dynamic.p_memsz;
       offset += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!read(dynamic.p_vaddr + offset, &entry))
      return refuse("its dynamic section is outside the image");
    switch (entry.d_tag) {
    case DT_NULL:
      return Status();
    case DT_RELA:
      relocations = entry.d_un.d_ptr;
      break;
    case DT_RELASZ:
      relocationBytes = entry.d_un.d_val;
      break;
    case DT_RELAENT:
      if (entry.d_un.d_val != sizeof(Elf64_Rela))
        return refuse("its relocations have an unknown size");
      break;
    case DT_SYMTAB:
      symbols = entry.d_un.d_ptr;
      break;
    case DT_SYMENT:
      if (entry.d_un.d_val != sizeof(Elf64_Sym))
        return refuse("its symbols have an unknown size");
      break;
    case DT_STRTAB:
      strings = entry.d_un.d_ptr;
      break;
    case DT_STRSZ:
      stringBytes = entry.d_un.d_val;
      break;
    case DT_HASH:
      hash = entry.d_un.d_ptr;
      break;
    case DT_GNU_HASH:
      gnuHash = entry.d_un.d_ptr;
      break;
    case DT_SONAME:
    case DT_RELACOUNT:
    case DT_FLAGS:
    case DT_FLAGS_1:
    case DT_DEBUG:
      break;
    default:
      // DT_NEEDED, DT_INIT, DT_JMPREL, DT_TEXTREL and whatever comes next: the
      // object wants something that kernels do not need.
      return refuse("its dynamic section has entry " +
                    std::to_string(entry.d_tag) +
                    ", but kernels may import and initialise nothing");
    }
  }
  return Status();
}

Status Loader::relocate() {
  const uint8_t *table = at(relocations, relocationBytes);
  if (!table || relocationBytes % sizeof(Elf64_Rela) != 0)
    return refuse("its relocations are outside the image");
  for (uint64_t i = 0; i < relocationBytes; i += sizeof(Elf64_Rela)) {
    Elf64_Rela relocation;
    std::memcpy(&relocation, table + i, sizeof(relocation));
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_RELATIVE ||
        ELF64_R_SYM(relocation.r_info) != 0)
      return refuse("relocation of type " +
                    std::to_string(ELF64_R_TYPE(relocation.r_info)) +
                    ", only relative ones are allowed");
    uint8_t *place = at(relocation.r_offset, sizeof(uint64_t));
    uint64_t addend = static_cast<uint64_t>(relocation.r_addend);
    if (!place || addend > imageSize)
      return refuse("a relocation is outside the image");
    uint64_t value = reinterpret_cast<uint64_t>(base) + addend;
    std::memcpy(place, &value, sizeof(value));
  }
  return Status();
}

/// The dynamic section does not say how many symbols there are; the hash table
/// does: DT_HASH in its second word, DT_GNU_HASH by its longest chain.
Status Loader::countSymbols(uint64_t *count) {
  if (hash) {
    uint32_t chains;
    if (!read(hash + 4, &chains))
      return refuse("its hash table is outside the image");
    *count = chains;
    return Status();
  }
  uint32_t words[4]; // buckets, first symbol, bloom size, bloom shift
  if (!gnuHash || !read(gnuHash, &words))
    return refuse("it has no table of symbols");
  uint64_t buckets = gnuHash + sizeof(words) + uint64_t(words[2]) * 8;
  uint64_t chains = buckets + uint64_t(words[0]) * 4;
  uint64_t last = 0;
  for (uint32_t i = 0; i < words[0]; ++i) {
    uint32_t first;
    if (!read(buckets + uint64_t(i) * 4, &first))
      return refuse("its hash table is outside the image");
    last = first > last ? first : last;
  }
  *count = words[1];
  if (last < words[1])
    return Status();
  uint32_t link = 0;
  for (; !(link & 1); ++last)
    if (!read(chains + (last - words[1]) * 4, &link))
      return refuse("its hash table is outside the image");
  *count = last;
  return Status();
}

Status Loader::readSymbols() {
  uint64_t count;
  HYB_TRY(countSymbols(&count));
  const uint8_t *names = at(strings, stringBytes);
  if (!names || stringBytes == 0 || names[stringBytes - 1] != 0)
    return refuse("its names are outside the image");
  for (uint64_t i = 1; i < count; ++i) {
    Elf64_Sym symbol;
    if (!read(symbols + i * sizeof(symbol), &symbol) ||
        symbol.st_name >= stringBytes)
      return refuse("a symbol is outside the image");
    const char *name = reinterpret_cast<const char *>(names + symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF)
      return refuse("it needs '" + std::string(name).substr(0, 64) + "'");
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
      continue;
    for (const Elf64_Phdr &segment : segments)
      if ((segment.p_flags & PF_X) && symbol.st_value >= segment.p_vaddr &&
          symbol.st_value < segment.p_vaddr + segment.p_memsz)
        functions.emplace(name, base + symbol.st_value);
  }
  return Status();
}

Status Loader::protect() {
  for (const Elf64_Phdr &segment : segments) {
    uint64_t begin = segment.p_vaddr / page * page;
    uint64_t end = (segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
    int access = (segment.p_flags & PF_R ? PROT_READ : 0) |
                 (segment.p_flags & PF_W ? PROT_WRITE : 0) |
                 (segment.p_flags & PF_X ? PROT_EXEC : 0);
    if (::mprotect(base + begin, end - begin, access) != 0)
      return failure(HYB_UNSUPPORTED,
                     "the system does not let this process run code from "
                     "memory; allow executable mappings");
  }
  // Only whole pages: the end of the part may be shared with variables.
  uint64_t begin = readOnlyAfterRelocation.p_vaddr / page * page;
  uint64_t length = readOnlyAfterRelocation.p_memsz / page * page;
  if (length > 0 && at(begin, length))
    ::mprotect(base + begin, length, PROT_READ);
  return Status();
}

Status Loader::load() {
  HYB_TRY(readProgramHeaders());
  HYB_TRY(copySegments());
  HYB_TRY(readDynamic());
  if (relocationBytes > 0)
    HYB_TRY(relocate());
  HYB_TRY(readSymbols());
  return protect();
}

} // namespace

Result<CodeImage> CodeImage::load(Bytes object) {
  Loader loader(object);
  HYB_TRY(loader.load());
  CodeImage image;
  image.functions = std::move(loader.functions);
  image.size = loader.size();
  image.base = loader.takeBase();
  return image;
}

CodeImage::~CodeImage() {
  if (base)
    ::munmap(base, size);
}

const void *CodeImage::function(std::string_view name) const {
  auto it = functions.find(std::string(name));
  return it == functions.end() ? nullptr : it->second;
}

} // namespace hyb::rt
