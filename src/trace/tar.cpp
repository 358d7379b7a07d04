#include "trace/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace neap::trace {

namespace {

constexpr std::size_t block = 512;
constexpr std::uint64_t largest_member = std::uint64_t{1} << 40U;
using Block = std::array<char, block>;

// A field of a header: up to its end or its first NUL.
std::string_view field(const Block& header, std::size_t from, std::size_t size) {
  const std::string_view all(header.data() + from, size);
  return all.substr(0, all.find('\0'));
}

std::optional<std::uint64_t> octal(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.empty() || text.size() > 20) return {};
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return {};
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

bool checksum_holds(const Block& header) {
  constexpr std::size_t from = 148, to = 156;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) {
    sum += i >= from && i < to ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
  }
  return octal(field(header, from, to - from)) == sum;
}

}  // namespace

struct TarReader::Archive {
  Bytes bytes;
  std::uint64_t left = 0;     // of the present member
  std::uint64_t padding = 0;  // after it

  // Fills all of `into`, or nothing at the end of the archive.
  Result<std::size_t> fill(std::span<char> into) {
    std::size_t got = 0;
    while (got < into.size()) {
      const auto more = bytes->read(into.subspan(got));
      if (!more) return more;
      if (*more == 0) break;
      got += *more;
    }
    if (got != 0 && got != into.size()) return cut_off();
    return got;
  }

  Result<void> pass_over() {
    Block ignored;
    for (std::uint64_t rest = left + padding; rest > 0;) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(rest, block));
      const auto got = fill(std::span<char>(ignored).first(part));
      if (!got) return tl::unexpected(got.error());
      if (*got == 0) return cut_off();
      rest -= part;
    }
    left = padding = 0;
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> cut_off() const {
    return fail(ErrorCode::invalid_argument, "the archive is cut off", bytes->name());
  }
};

namespace {

template <class Archive>
class Member : public ByteStream {
 public:
  Member(std::shared_ptr<Archive> archive, const std::string& name)
      : archive_(std::move(archive)), name_(archive_->bytes->name() + ":" + name) {}

  Result<std::size_t> read(std::span<char> into) override {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), archive_->left));
    if (part == 0) return std::size_t{0};
    const auto got = archive_->bytes->read(into.first(part));
    if (!got) return got;
    if (*got == 0) return archive_->cut_off();
    archive_->left -= *got;
    return got;
  }
  const std::string& name() const override { return name_; }

 private:
  std::shared_ptr<Archive> archive_;
  std::string name_;
};

}  // namespace

TarReader::TarReader(Bytes archive) : archive_(std::make_shared<Archive>()) {
  archive_->bytes = std::move(archive);
}
TarReader::~TarReader() = default;
TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;

Result<std::optional<Bytes>> TarReader::next() {
  while (true) {
    if (auto passed = archive_->pass_over(); !passed) return tl::unexpected(passed.error());
    Block header;
    const auto got = archive_->fill(header);
    if (!got) return tl::unexpected(got.error());
    const bool end =
        *got == 0 || std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; });
    if (end) return std::optional<Bytes>();
    const auto size = octal(field(header, 124, 12));
    if (!checksum_holds(header) || !size || *size > largest_member) {
      return fail(ErrorCode::invalid_argument, "expected a tar header", archive_->bytes->name());
    }
    archive_->left = *size;
    archive_->padding = (block - *size % block) % block;
    const char type = header[156];
    if (type != '0' && type != '\0') continue;  // folders, links, extended headers
    std::string name(field(header, 0, 100));
    const std::string_view prefix = field(header, 345, 155);
    if (field(header, 257, 5) == "ustar" && !prefix.empty()) {
      name = std::string(prefix) + "/" + name;
    }
    return std::optional<Bytes>(std::make_unique<Member<Archive>>(archive_, name));
  }
}

}  // namespace neap::trace
