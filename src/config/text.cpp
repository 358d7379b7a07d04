#include "config/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace neap::config {

namespace {

// Length of the UTF-8 character at `at`, 0 when it is not one. Overlong forms, surrogates and what
// is beyond the last code point are none: the JSON library ends the program over them.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(at);
  std::size_t length = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) length = 2;
  if (lead >= 0xe0 && lead < 0xf0) length = 3;
  if (lead >= 0xf0 && lead < 0xf5) length = 4;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const std::uint8_t second = byte(at + 1);
  const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

Error read_error(const std::string& path) {
  const int number = errno;
  ErrorCode code = ErrorCode::unavailable;
  if (number == ENOENT || number == ENOTDIR) code = ErrorCode::not_found;
  if (number == EACCES || number == EPERM) code = ErrorCode::permission_denied;
  return {code, std::string("cannot be read: ") + std::strerror(number), path};
}

Error over_size(const std::string& path) {
  return {ErrorCode::too_large,
          "over the limit of " + std::to_string(file_bytes_max / 1024) + " KiB for a file", path};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool check_text(std::string_view text, Problems& problems) {
  if (text.size() > file_bytes_max) {
    problems.add(0, "", over_size("").message);
    return false;
  }
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<std::uint8_t>(text[at]);
    const bool control =
        (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f;
    const std::size_t length = character_length(text, at);
    if (control || length == 0) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "0x%02x", byte);
      problems.add(line, "", std::string("not text: byte ") + hex + "; expected YAML in UTF-8");
      return false;
    }
    if (byte == '\n') ++line;
    at += length;
  }
  return true;
}

Result<std::string> read_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO that nobody writes must not hang.
  const bool standard_input = path == "-";
  const Descriptor file(standard_input ? STDIN_FILENO
                                       : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return tl::unexpected(read_error(path));
  }
  if (!standard_input && !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument, "not a regular file", path);
  }
  if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > file_bytes_max) {
    return tl::unexpected(over_size(path));
  }
  std::string text;
  char block[16 * 1024];
  while (true) {
    const ssize_t got = ::read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(read_error(path));
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
    if (text.size() > file_bytes_max) return tl::unexpected(over_size(path));
  }
}

}  // namespace neap::config
